"""Pruning finds what is not needed, keeps what is, and promises only what it has measured."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moie
from moie import api
from moie.cli import main
from moie.explanation.order import TIED, change, removals, without
from moie.explanation.prune import prune
from moie.explanation.table import pruning_table
from moie.policy import file as policy_file
from moie.policy.mixture import Mixture
from moie.policy.truth import in_range
from tests import tiny

WALK = "tests.probes:Walk-v0"


def with_superfluous() -> Mixture:
    """Three experts that do something; expert 3 is where 1 is, and does the same; 4 is dead."""
    plain = tiny.policy(WALK, experts=3)
    return tiny.policy(
        WALK,
        experts=5,
        prototypes=np.concatenate([plain.prototypes, plain.prototypes[[1, 0]] + [[0.0], [0.3]]]),
        actions=np.concatenate([plain.actions, plain.actions[[1, 0]] + [[0.0], [0.5]]]),
        weights=np.append(plain.weights, [0.7, 0.0]),
    )


def test_duplicates_and_the_dead_are_found_without_any_episode(tmp_path: Path) -> None:
    policy = with_superfluous()
    file = tmp_path / "policy.safetensors"
    file.write_bytes(policy_file.to_bytes(policy))
    options = {"episodes": 2, "most_episodes": 2, "workers": 1, "quiet": True}
    found, smaller_file = api.prune(file, loss=0.0, **options)
    first, second = found["curve"][1], found["curve"][2]
    assert {first["removed"], second["removed"]} in ({4, 1}, {4, 3})
    for row in (first, second):
        assert (row["answer"], row["bound"]) == ("proved", 0.0)
        assert row["largest"] < 1e-7
        assert row["sampled"] is row["mean"] is None
    assert found["n_experts"] == 3
    assert (found["loss"], found["margin"]) == (0.0, 0.01)
    smaller = moie.load(smaller_file)
    assert smaller_file == tmp_path / "policy-pruned.safetensors"
    assert smaller.n_experts == found["n_experts"] == len(found["kept"])
    assert smaller.trained["pruned"] == {"from": 5, "kept": found["kept"], "loss": 0.0}


def test_a_removal_that_changes_nothing_leaves_the_same_policy() -> None:
    policy = with_superfluous()
    states = np.random.default_rng(1).normal(size=(300, 3))
    policies, steps = zip(*removals(policy, states), strict=True)
    assert [smaller.n_experts for smaller in policies] == [5, 4, 3, 2, 1]
    np.testing.assert_allclose(policies[2].means(states), policy.means(states), atol=1e-12)
    assert steps[3]["change"] > 0.01
    for i, step in enumerate(steps):
        assert set(step["kept"]) == set(range(5)) - {s["removed"] for s in steps[: i + 1]}


def test_each_removal_is_the_best_there_is() -> None:
    policy = tiny.policy(WALK, experts=5)
    states = np.random.default_rng(1).normal(size=(100, 3))
    _, (_, step), *_ = removals(policy, states)
    heirs = [(k, j) for k in range(5) for j in (None, *range(5)) if j != k]
    best = min(change(policy, without(policy, k, j), states) for k, j in heirs)
    assert best * (1 - 1e-6) <= step["change"] <= best + TIED


def test_what_hardly_matters_goes_in_an_order_that_the_visited_states_do_not_decide() -> None:
    """Three of seven experts have next to no weight: the one that is proved to matter least goes
    first, and none needs an heir."""
    weights = np.array([2.0, 3e-4, 1.5, 1e-4, 2e-4, 3.0, 1.0])
    policy = tiny.policy(WALK, experts=7, weights=weights)
    orders = set()
    for seed in range(10):
        states = np.random.default_rng(seed).normal(size=(40, 3))
        steps = [step for _, step in removals(policy, states)][1:4]
        orders.add(tuple((step["removed"], step["heir"]) for step in steps))
    ((first, second, third),) = orders
    assert {first, second, third} == {(1, None), (3, None), (4, None)}


def test_changes_are_those_of_the_commands() -> None:
    policy = tiny.policy(WALK, experts=4)
    states = np.random.default_rng(1).normal(size=(100, 3))
    span = policy.action_high - policy.action_low
    last = 0.0
    for smaller, step in removals(policy, states):
        moved = np.abs(
            smaller.clipped(smaller.means(states)) - policy.clipped(policy.means(states))
        )
        assert step["largest"] == pytest.approx((moved / span).max())
        assert step["largest"] <= step["bound"] + 1e-6
        assert last <= step["bound"] <= 1
        last = step["bound"]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.integers(1, 3), st.booleans(), st.integers(0, 10_000))
def test_pruning_makes_no_action_no_negative_weight_and_no_metric_of_its_own(
    n_experts: int, n_actions: int, is_in_range: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    policy = tiny.policy(
        WALK,
        experts=n_experts,
        weights=rng.exponential(2, n_experts) * rng.integers(0, 2, n_experts),
        actions=rng.uniform(-1, 1, (n_experts, n_actions)) * (1 if is_in_range else 4),
        default_action=np.zeros(n_actions),
        action_low=-np.ones(n_actions),
        action_high=np.ones(n_actions),
        metric=rng.uniform(0.1, 3, 3),
    )
    total = policy.weights.sum()
    for smaller, step in removals(policy, rng.normal(size=(30, 3))):
        kept = step["kept"]
        np.testing.assert_array_equal(smaller.actions, policy.actions[kept])
        np.testing.assert_array_equal(smaller.metric, policy.metric)
        assert (smaller.weights >= policy.weights[kept]).all()  # which are not negative
        assert smaller.weights.sum() <= total * (1 + 1e-12)
        if is_in_range:
            assert in_range(smaller) == 1.0


def test_labels_and_what_was_done_by_hand_stay_with_their_experts() -> None:
    edits = tuple(
        {"part": "weight", "expert": k, "name": None, "before": 0.5, "after": 1.0}
        for k in (0, 2, None)
    )
    policy = tiny.policy(WALK, labels=("a", "b", "c"), edits=edits)
    smaller = without(policy, 0, heir=None)
    assert [smaller.label(k) for k in range(2)] == ['expert 0 "b"', 'expert 1 "c"']
    assert [one["expert"] for one in smaller.edits] == [1, None]
    assert without(tiny.policy(WALK, labels=("a", "", "")), 0, None).labels == ()


def test_a_pruned_policy_keeps_its_metric(tmp_path: Path) -> None:
    metric = np.array([0.5, 1.0, 2.0])
    file = tmp_path / "policy.safetensors"
    file.write_bytes(policy_file.to_bytes(tiny.policy(WALK, experts=3, metric=metric)))
    options = {"episodes": 10, "most_episodes": 400, "workers": 1, "quiet": True}
    found, smaller = api.prune(file, loss=0.9, **options)
    assert found["n_experts"] < 3
    np.testing.assert_array_equal(moie.load(smaller).metric, metric)


def fake(returns_of: dict[int, tuple[float, float]]):
    """What policies of some size earn, with sampled and with mean actions: a little more or less in
    each episode. All calls are kept."""
    calls: list[tuple[int, str, int, int]] = []

    def measure(policy, kind, first, count):
        calls.append((policy.n_experts, kind, first, count))
        noise = np.random.default_rng([policy.n_experts, first]).uniform(-1, 1, count)
        return list(returns_of[policy.n_experts][kind == "mean"] + noise)

    return measure, calls


def pruned(
    returns_of: dict[int, tuple[float, float]], most: int = 1000, loss: float = 0.05, **changes
):
    """What pruning finds where policies earn so much, and which episodes it asked for."""
    policy = tiny.policy(WALK, experts=max(returns_of), **changes)
    states = np.random.default_rng(1).normal(size=(100, 3))
    measure, calls = fake(returns_of)
    found, smaller = prune(policy, states, loss, (6, most), measure)
    assert smaller.n_experts == found["n_experts"] == len(found["kept"])
    assert found["simulated"] == sum(count for *_, count in calls)
    return found, calls


def answers(found) -> list[str]:
    return [row["answer"] for row in found["curve"]]


def test_the_search_ends_at_the_first_that_is_not_good_enough() -> None:
    found, calls = pruned({4: (100, 100), 3: (99, 99), 2: (70, 100), 1: (100, 100)})
    assert answers(found) == ["whole", "enough", "not enough", "not tried"]
    assert found["n_experts"] == 3
    # What is not tried is measured for the curve alone; what is clear takes few episodes.
    assert sum(count for n, _, _, count in calls if n == 1) == 2 * 6
    assert sum(count for n, _, _, count in calls if n == 2) < 150
    assert found["curve"][1]["mean"]["verdict"] == "enough"


def test_one_kind_of_actions_that_loses_too_much_is_too_much() -> None:
    for returns in ((70, 100), (100, 70)):
        found, _ = pruned({3: (100, 100), 2: returns, 1: (50, 50)})
        assert answers(found) == ["whole", "not enough", "not tried"]


def test_what_the_limit_leaves_open_is_undecided_and_stays() -> None:
    found, calls = pruned({3: (100, 100), 2: (99, 99), 1: (99, 99)}, most=40)
    assert answers(found) == ["whole", "undecided", "not tried"]
    assert found["n_experts"] == 3
    assert max(first + count for _, _, first, count in calls) == 40
    table = pruning_table(found)
    assert "2 experts: sampled actions lose " in table
    assert "40 episodes: undecided" in table
    assert "more episodes (--most-episodes) may decide what is undecided" in table
    assert "smallest policy that may be taken to lose at most 5%: 3 experts, " in table


def test_no_episode_is_asked_for_twice() -> None:
    _, calls = pruned({4: (100, 100), 3: (99, 99), 2: (98, 98), 1: (50, 50)})
    for n in (4, 3, 2, 1):
        for kind in ("sampled", "mean"):
            asked = [(first, count) for m, k, first, count in calls if (m, k) == (n, kind)]
            ends = [first + count for first, count in asked]
            assert [first for first, _ in asked] == [0, *ends[:-1]]


def test_what_acts_alike_is_not_simulated_and_needs_no_luck() -> None:
    """Though the smaller policies earn nothing by chance, with a loss of zero."""
    weights = np.array([2.0, 1e-4, 1.0, 1e-4])
    returns = {4: (100.0, 100.0), 3: (0.0, 0.0), 2: (0.0, 0.0), 1: (0.0, 0.0)}
    found, calls = pruned(returns, loss=0.0, weights=weights)
    assert answers(found) == ["whole", "proved", "proved", "not enough"]
    assert found["kept"] == [0, 2]
    assert {n for n, *_ in calls} == {4, 1}
    assert "acts alike (proved)" in pruning_table(found)


def test_what_was_seen_to_be_small_must_be_proved_to_stay_within_the_tolerance() -> None:
    """An expert far from all visited states: with little weight its action is never far from the
    others'; with much weight it is, and it would be reached where nobody looked."""
    far = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    returns = {3: (100.0, 100.0), 2: (0.0, 0.0), 1: (0.0, 0.0)}
    for weight, answer in ((0.05, "seen"), (50.0, "not enough")):
        weights = np.array([2.0, 2.0, weight])
        actions = np.array([[-0.5], [0.5], [0.9]])
        changes = {"prototypes": far, "weights": weights, "actions": actions}
        found, _ = pruned(returns, **changes)
        row = found["curve"][1]
        assert row["removed"] == 2
        assert row["largest"] < 1e-6
        assert row["answer"] == answer


def test_where_nothing_can_go_everything_stays() -> None:
    found, _ = pruned({3: (100, 100), 2: (80, 80), 1: (50, 50)})
    assert found["n_experts"] == 3
    assert found["kept"] == [0, 1, 2]


def test_a_loss_is_a_share_of_a_negative_return_too() -> None:
    found, _ = pruned({3: (-100, -100), 2: (-102, -102), 1: (-109, -109)})
    assert answers(found) == ["whole", "enough", "not enough"]


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    file = tiny.policy(WALK, experts=4).save(tmp_path / "policy.safetensors")
    options = {"loss": 0.5, "episodes": 4, "most_episodes": 60, "quiet": True}
    found = [
        api.prune(file, workers=n, out=tmp_path / f"{n}.safetensors", **options) for n in (1, 3)
    ]
    assert found[0][0] == found[1][0]
    assert found[0][1].read_bytes() == found[1][1].read_bytes()


def test_a_task_that_is_known_needs_the_experts_that_say_what_is_best(tmp_path: Path) -> None:
    """Two experts are right, each on its side; a third hardly acts, a fourth says what the first
    says. What is left has the same returns but for what was allowed."""
    policy = tiny.policy(
        "tests.probes:Known-v0",
        experts=4,
        prototypes=np.array([[-0.5, 0, 0], [0.5, 0, 0], [0.0, 0, 0], [-0.5, 0, 0]]),
        actions=np.array([[-0.6], [0.6], [0.5], [-0.6]]),
        weights=np.array([99.0, 99.0, 0.001, 50.0]),
        temperature=2.0,
        metric=np.array([2.0, 0.1, 0.01]),
        log_std=np.array([-4.0]),
    )
    file = policy.save(tmp_path / "policy.safetensors")
    found, smaller = api.prune(file, loss=0.2, most_episodes=400, workers=1, quiet=True)
    assert answers(found) == ["whole", "proved", "proved", "not enough"]
    left = moie.load(smaller)
    assert dict(zip(left.actions[:, 0], left.weights, strict=True)) == {-0.6: 149.0, 0.6: 99.0}


def test_only_a_pruned_policy_is_replaced(
    pendulum: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    run = tiny.copy(pendulum, tmp_path / "run")
    (tmp_path / "thesis.tex").write_text("do not touch")
    before = tiny.contents(tmp_path)
    for out in (run / "policy.safetensors", tmp_path / "thesis.tex", run):
        assert main.main(["prune", str(run), "--out", str(out)]) == 2
        said = capfd.readouterr().err
        assert f"{out} exists and is not a pruned policy; choose another --out" in said
    nowhere = tmp_path / "thesis.tex" / "small.safetensors"
    assert main.main(["prune", str(run), "--out", str(nowhere)]) == 2
    assert f"cannot write {nowhere}" in capfd.readouterr().err
    assert tiny.contents(tmp_path) == before


def test_an_action_of_one_value_is_left_out() -> None:
    policy = tiny.policy(WALK, experts=3, action_low=np.array([0.5]), action_high=np.array([0.5]))
    steps = removals(policy, np.random.default_rng(0).normal(size=(20, 3)))
    assert [step["change"] for _, step in steps] == [0.0, 0.0, 0.0]


def test_the_command_prints_the_curve_and_the_file(
    pendulum: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    run = tiny.copy(pendulum, tmp_path / "run")
    words = ["--episodes", "2", "--most-episodes", "6", "--workers", "1"]
    assert main.main(["prune", str(run), *words]) == 0
    out = capfd.readouterr().out
    assert f"policy: {run / 'pruned.safetensors'}" in out
    assert "smallest policy that may be taken to lose at most 5%: " in out
    assert main.main(["show", str(run / "pruned.safetensors")]) == 0
    shown = capfd.readouterr().out
    assert " before pruning\n" in shown
    assert main.main(["evaluate", str(run / "pruned.safetensors"), "--episodes", "1"]) == 0
