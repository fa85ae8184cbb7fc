"""What is printed is what acts: a reader who has only the text of `moie show` gets the commands."""

import re
from pathlib import Path

import numpy as np
import pytest

import moie
from moie.environments.catalogue import TASKS
from moie.explanation.printed import LITTLE, printed
from moie.explanation.program import program
from moie.policy.mixture import Mixture
from moie.policy.reading import Reading, leaders, shares
from moie.runs.evaluation import Evaluator
from tests import tiny
from tests.explanation.reader import Program, read
from tests.simulators import needs

EXTRAS = {task.short: task.package_extra for task in TASKS}
EXTRAS |= {"hopper-v5": "mujoco", "halfcheetah-v5": "mujoco"}
ZOO = [pytest.param(n, marks=needs(extra) if extra else ()) for n, extra in EXTRAS.items()]
MOST = 10_000


def zoo(name: str) -> Mixture:
    policy = moie.load(f"zoo:{name}")
    assert isinstance(policy, Mixture)
    return policy


def visited(policy: Mixture, seed: int = 777) -> np.ndarray:
    """States of mean-action episodes that had no part in what is printed."""
    count = 50 if policy.task == "Pendulum-v1" else 12
    with Evaluator(policy.task, seed, 2) as evaluator:
        episodes = evaluator.episodes(policy, count, kinds=["mean"])["mean"]
    states = np.concatenate([one.observations[:-1] for one in episodes])
    return states[np.linspace(0, len(states) - 1, min(MOST, len(states))).astype(int)]


def errors(policy: Mixture, found: Program, states: np.ndarray) -> np.ndarray:
    """(N,): the largest error of a command, as a share of its range."""
    wanted = policy.clipped(policy.means(states))
    rows = [dict(zip(policy.feature_names, row, strict=True)) for row in states.tolist()]
    computed = [found.command(row) for row in rows]
    commands = np.asarray([[one[joint] for joint in policy.action_names] for one in computed])
    return (np.abs(commands - wanted) / (policy.action_high - policy.action_low)).max(axis=1)


def right_leader(policy: Mixture, found: Program, states: np.ndarray) -> float:
    rows = [dict(zip(policy.feature_names, row, strict=True)) for row in states.tolist()]
    names = [*(f"expert {k}" for k in range(policy.n_experts)), "OTHERWISE"]
    wanted = [names[k] for k in leaders(policy, states)]
    return float(
        np.mean([found.leader(row) == name for row, name in zip(rows, wanted, strict=True)])
    )


@pytest.mark.parametrize("name", ZOO)
def test_the_commands_can_be_computed_from_the_text_alone(name: str) -> None:
    policy, text = zoo(name), program(zoo(name), 80)
    assert max(map(len, text.splitlines())) <= 80
    states = visited(policy)
    assert len(states) > 5000
    found = read(text)
    assert np.mean(errors(policy, found, states) <= 0.05) >= 0.99
    assert right_leader(policy, found, states) >= 0.95


def test_a_policy_that_was_just_trained_can_be_computed_too(pendulum: Path) -> None:
    policy = moie.load(pendulum)
    assert isinstance(policy, Mixture)
    found = read(program(policy, 80))
    states = visited(policy)
    assert np.mean(errors(policy, found, states) <= 0.05) >= 0.99
    assert right_leader(policy, found, states) >= 0.95


@pytest.mark.parametrize("name", EXTRAS)
def test_everything_is_nearly_exact(name: str) -> None:
    policy = zoo(name)
    found = read(program(policy, 80, everything=True))
    assert set(found.radii) == set(policy.feature_names)
    assert len(found.blocks) == policy.n_experts + 1
    assert policy.visited is not None
    assert errors(policy, found, policy.visited.features).max() < 1e-3


@pytest.mark.parametrize("name", EXTRAS)
def test_no_sentence_is_false(name: str) -> None:
    policy, text = zoo(name), program(zoo(name), 80)
    assert policy.visited is not None
    states, reading = policy.visited.features, Reading(policy)
    joined = " ".join(line.lstrip("# ") for line in text.splitlines())
    parts = leaders(policy, states)
    found = read(text)

    assert re.findall(r"of which (\d+) can lead", joined) == [str(reading.can_lead.sum())]
    assert f"in how many of {len(states)} states of {policy.visited.episodes} episodes" in joined
    for block in found.blocks:
        k = policy.n_experts if block.name == "OTHERWISE" else int(block.name.split()[1])
        share = float(np.mean(parts == k))
        if led := re.search(r"leads (less than )?(\d+)%", block.said):
            assert 0 < share < 0.005 if led[1] else round(100 * share) == int(led[2])
        elif "did not lead there" in block.said:
            assert share == 0
        else:
            (most,) = re.findall(r"can never lead, has at most (\d+)% of a command", block.said)
            assert share == 0
            assert shares(policy, states)[:, k].max() <= (int(most) + 0.5) / 100
    for radii, h in re.findall(r"IF within ([\d.]+) radii \(h ([+-][\d.]+)\)", text):
        assert float(radii) == pytest.approx(float(h) ** 0.5, abs=0.051)  # both are rounded

    medians, wanted = np.median(states, axis=0), policy.clipped(policy.means(states))
    span = policy.action_high - policy.action_low
    if hidden := re.search(r"(\d+) more features? hardly .*? in these states \((.*?)\)", joined):
        names = hidden[2].split(", ")
        assert len(names) == int(hidden[1])
        assert {*names, *found.radii} == set(policy.feature_names)
        other = states.copy()
        for name_ in names:
            i = policy.feature_names.index(name_)
            other[:, i] = medians[i]
        moved = policy.clipped(policy.means(other))
        assert (np.abs(moved - wanted) / span).max() <= LITTLE
    if left := re.search(r"Left out, because none of them can ever lead: (.*?);", joined):
        gone = [int(k) for k in re.findall(r"expert (\d+)", left[1])]
        assert not reading.can_lead[gone].any()
        without = tiny.replaced(
            policy, weights=np.where(np.isin(range(len(policy.weights)), gone), 0, policy.weights)
        )
        moved = without.clipped(without.means(states))
        assert (np.abs(moved - wanted) / span).max() <= LITTLE
    for feature, low, high in re.findall(
        r"^   (.+?) {3,}[\d.]+ {3}([+-][\d.]+) to ([+-][\d.]+)", text, re.M
    ):
        i = policy.feature_names.index(feature.strip())
        inside = (states[:, i] >= float(low) - 0.01) & (states[:, i] <= float(high) + 0.01)
        assert 0.85 <= inside.mean() <= 1.0


def test_where_it_was_never_measured_it_says_so() -> None:
    text = program(tiny.policy("Pendulum-v1"), 80)
    assert "How often each part leads was not measured" in " ".join(text.split("\n# "))
    assert "leads:" not in text
    found = read(text)
    assert len(found.radii) == 3  # nothing is known about what matters: all are printed


def test_more_digits_are_printed_until_the_commands_are_right() -> None:
    """Two experts that are strong far away, where small differences of what is printed decide."""
    states = np.random.default_rng(0).uniform(-0.05, 0.05, (400, 3)).astype(np.float32)
    ahead = np.array([1.0, 0.0, 0.0])
    policy = tiny.policy(
        "Pendulum-v1",
        experts=2,
        prototypes=np.stack([ahead + 0.0137, -ahead + 0.0112]),
        weights=np.exp([60.0, 60.43]),
        actions=np.array([[-2.0], [2.0]]),
        temperature=50.0,
        visited=tiny.visited(states),
    )
    assert printed(policy).head_decimals > 1
    found = read(program(policy, 80))
    assert np.mean(errors(policy, found, states.astype(float)) <= 0.05) >= 0.99
