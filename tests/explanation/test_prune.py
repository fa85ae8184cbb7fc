"""Pruning finds what is not needed, keeps what is, and promises only what it has measured."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moie
from moie import api
from moie.cli import main
from moie.explanation.prune import change, prune, removals, without
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


def test_duplicates_and_the_dead_are_found_without_any_loss(tmp_path: Path) -> None:
    policy = with_superfluous()
    file = tmp_path / "policy.safetensors"
    file.write_bytes(policy_file.to_bytes(policy))
    found, smaller_file = api.prune(file, loss=0.0, workers=1, quiet=True)
    first, second = found["curve"][1], found["curve"][2]
    assert {first["removed"], second["removed"]} == {4, 3} or {
        first["removed"],
        second["removed"],
    } == {4, 1}
    assert first["change"] < 1e-9
    assert second["change"] < 1e-7
    assert first["within"]
    assert second["within"]
    assert found["n_experts"] <= 3
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
    assert step["change"] == pytest.approx(best, rel=1e-6)


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
    found, smaller = api.prune(file, loss=0.9, episodes=2, workers=1, quiet=True)
    assert found["n_experts"] < 3
    np.testing.assert_array_equal(moie.load(smaller).metric, metric)


def fake(returns_of: dict[int, tuple[float, float]]):
    """What policies of some size earn: on the seeds that choose, and on those that confirm."""
    calls: list[tuple[int, int, int]] = []

    def measure(policy, series, count):
        calls.append((policy.n_experts, series, count))
        noise = np.linspace(-1, 1, count)
        values = returns_of[policy.n_experts][series] + noise
        return {"sampled": list(values), "mean": list(values)}

    return measure, calls


def test_the_smallest_within_the_loss_is_confirmed_on_other_seeds() -> None:
    policy = tiny.policy(WALK, experts=4)
    states = np.random.default_rng(1).normal(size=(100, 3))
    measure, calls = fake({4: (100, 100), 3: (99, 99), 2: (96, 90), 1: (50, 99)})
    found, smaller = prune(policy, states, 0.05, 6, measure)
    assert [row["within"] for row in found["curve"]] == [True, True, True, False]
    # Two experts were good enough where they were chosen, not where it was checked.
    assert [row["n_experts"] for row in found["confirmation"]] == [2, 3]
    assert [row["within"] for row in found["confirmation"]] == [False, True]
    assert smaller.n_experts == found["n_experts"] == 3
    assert {(n, count) for n, series, count in calls if series == 1} == {(4, 12), (3, 12), (2, 12)}


def test_where_nothing_can_go_everything_stays() -> None:
    policy = tiny.policy(WALK, experts=3)
    states = np.random.default_rng(1).normal(size=(100, 3))
    measure, _ = fake({3: (100, 100), 2: (90, 90), 1: (50, 50)})
    found, same = prune(policy, states, 0.05, 4, measure)
    assert found["n_experts"] == same.n_experts == 3
    np.testing.assert_array_equal(same.prototypes, policy.prototypes)


def test_a_loss_is_a_share_of_a_negative_return_too() -> None:
    policy = tiny.policy(WALK, experts=3)
    states = np.random.default_rng(1).normal(size=(100, 3))
    measure, _ = fake({3: (-100, -100), 2: (-104, -104), 1: (-106, -106)})
    found, _ = prune(policy, states, 0.05, 4, measure)
    assert found["n_experts"] == 2


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
    assert main.main(["prune", str(run), "--episodes", "2", "--workers", "1"]) == 0
    out = capfd.readouterr().out
    assert f"policy: {run / 'pruned.safetensors'}" in out
    assert "smallest policy within 5% or the error: " in out
    assert main.main(["show", str(run / "pruned.safetensors")]) == 0
    shown = capfd.readouterr().out
    assert " before pruning\n" in shown
    assert main.main(["evaluate", str(run / "pruned.safetensors"), "--episodes", "1"]) == 0
