"""What if: who leads where, held against the policy itself."""

import base64
import itertools
import re

import numpy as np
import pytest

import moie
from moie.errors import InputError
from moie.policy.mixture import Mixture
from moie.workshop import questions
from moie.workshop.live import DEFAULT, Acting

STATE = np.array([0.6, -0.8, 1.5])


@pytest.fixture(scope="module")
def acting() -> Acting:
    policy = moie.load("zoo:pendulum")
    assert isinstance(policy, Mixture)
    return Acting(policy, 1, tuple(range(100, 100 + policy.n_experts)))


def leader(acting: Acting, state: np.ndarray) -> int:
    """Who has the largest share, from the explanation."""
    why = acting.policy.explain(state)
    return DEFAULT if why.default_share > why.memberships[0] else acting.ids[why.experts[0]]


def test_profiles_say_who_leads(acting: Acting) -> None:
    visited = questions.Visited.of(acting.policy)
    told = questions.what_if(acting, visited, STATE)
    assert told["leader"] == leader(acting, STATE)
    for j, segments in enumerate(told["profiles"]):
        low, high = told["ranges"][j]
        assert (segments[0]["from"], segments[-1]["to"]) == (low, high)
        step = (high - low) / questions.POINTS
        for one, following in itertools.pairwise(segments):
            assert one["to"] == following["from"]
            assert one["leader"] != following["leader"]
        for one in segments:
            state = STATE.copy()
            for at in (one["from"] + step, (one["from"] + one["to"]) / 2, one["to"] - step):
                if one["from"] < at < one["to"]:
                    state[j] = at
                    assert leader(acting, state) == one["leader"]


def test_takeovers_are_true(acting: Acting) -> None:
    visited = questions.Visited.of(acting.policy)
    told = questions.what_if(acting, visited, STATE)
    said = re.compile(r"(expert (\d+)|the default) takes over (above|below) ([-+.e\d]+)")
    found = [(j, *one) for j, text in enumerate(told["takeovers"]) for one in said.findall(text)]
    assert found
    for j, name, number, side, edge in found:
        low, high = told["ranges"][j]
        beyond = (high - low) / questions.POINTS * (1 if side == "above" else -1)
        state = STATE.copy()
        state[j] = float(edge) + 1.5 * beyond
        expected = DEFAULT if name == "the default" else int(number)
        assert leader(acting, state) == expected


def test_the_map_says_who_leads(acting: Acting) -> None:
    visited = questions.Visited.of(acting.policy)
    told = questions.leader_map(acting, visited, STATE, 0, 2)
    leaders = np.frombuffer(base64.b64decode(told["leaders"]), np.uint8)
    shares = np.frombuffer(base64.b64decode(told["shares"]), np.uint8)
    leaders = leaders.reshape(told["height"], told["width"])
    across = np.linspace(*told["x_range"], told["width"])
    down = np.linspace(*told["y_range"][::-1], told["height"])
    for row, column in np.random.default_rng(0).integers(0, leaders.shape, (50, 2)):
        state = STATE.copy()
        state[0], state[2] = across[column], down[row]
        at = leaders[row, column]
        told_leader = DEFAULT if at == questions.NO_EXPERT else told["ids"][at]
        assert told_leader == leader(acting, state)
        why = acting.policy.explain(state)
        most = max(why.default_share, *why.memberships)
        assert shares[row * told["width"] + column] == round(255 * most)


@pytest.mark.parametrize(("x", "y"), [(0, 0), (-1, 0), (0, 3)])
def test_maps_of_other_features_are_refused(acting: Acting, x: int, y: int) -> None:
    with pytest.raises(InputError, match="expected two of 3"):
        questions.leader_map(acting, questions.Visited.of(acting.policy), STATE, x, y)


def test_what_was_visited_grows(acting: Acting) -> None:
    visited = questions.Visited.of(acting.policy)
    before = visited.ranges(STATE)
    visited.add(np.array([0.0, 0.0, 50.0]))
    after = visited.ranges(STATE)
    assert (after[:, 0] <= before[:, 0]).all()
    assert after[2, 1] > 50.0
    with pytest.raises(InputError, match="state has 2 numbers, expected 3"):
        questions.checked_state(acting.policy, [0.0, 1.0])
