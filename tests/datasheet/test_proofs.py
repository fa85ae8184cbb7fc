"""Every figure that is called proved, against random states and against states that a search chose
to break it. The formulas here are the policy's own, not the data sheet's."""

from dataclasses import replace

import numpy as np
import pytest

from moie.policy.mixture import Mixture
from moie.policy.reading import leaders
from moie.sheet.bounds import largest_mean, shares_over, slopes_over
from moie.sheet.caps import caps
from moie.sheet.facts import outward, upward
from moie.sheet.steepest import slopes_at
from tests.datasheet.conftest import ZOO, facts_of, parts_of

FEW = pytest.param(2_000, 0.03, id="few")
MANY = pytest.param(100_000, 1.0, id="many", marks=pytest.mark.slow)
EFFORT = pytest.mark.parametrize(("n", "work"), [FEW, MANY])
EVERY = pytest.mark.parametrize("name", ZOO)


def anywhere(policy: Mixture, n: int, seed: int = 0) -> np.ndarray:
    """States of all kinds: around prototypes, between two of them, far away."""
    rng = np.random.default_rng(seed)
    one, other = policy.prototypes[rng.integers(policy.n_experts, size=(2, n))]
    blend = rng.uniform(-0.2, 1.2, (n, 1))
    noise = rng.normal(size=one.shape) * policy.radii * rng.choice([0.0, 0.1, 0.5, 3.0], (n, 1))
    return one + blend * (other - one) + noise


def in_box(name: str, n: int, seed: int = 0) -> np.ndarray:
    """States of the visited box: uniform, and half of them visited ones a little moved."""
    parts, rng = parts_of(name), np.random.default_rng(seed)
    low, high = parts.states.min(axis=0), parts.states.max(axis=0)
    uniform = rng.uniform(low, high, (n, len(low)))
    visited = parts.states[rng.integers(len(parts.states), size=n)]
    moved = visited + rng.normal(size=visited.shape) * parts.radii * rng.choice([0, 0.3], (n, 1))
    return np.clip(np.where(rng.random((n, 1)) < 0.5, uniform, moved), low, high)


@EVERY
@EFFORT
def test_commands_stay_within_their_range(name: str, n: int, work: float) -> None:
    policy = parts_of(name).policy
    states = np.concatenate([anywhere(policy, n), in_box(name, n), policy.prototypes])
    found = policy.clipped(policy.means(states))
    for j, one in enumerate(facts_of(name, work)["commands"]):
        assert one["joint"] == policy.action_names[j]
        assert one["low"] <= found[:, j].min() <= found[:, j].max() <= one["high"]


@EVERY
@EFFORT
def test_an_expert_deleted_changes_no_more(name: str, n: int, work: float) -> None:
    policy = parts_of(name).policy
    states = np.concatenate([anywhere(policy, n), policy.prototypes])
    whole, memberships = policy.clipped(policy.means(states)), policy.memberships(states)
    for one in facts_of(name, work)["deletion"]:
        k = one["expert"]
        weights = policy.weights.copy()
        weights[k] = 0.0
        rest = policy.clipped(replace(policy, weights=weights).means(states))
        change = np.abs(whole - rest).max(axis=0)
        assert (change <= np.asarray(one["largest_change"]) + 1e-6).all()
        assert memberships[:, k].max() <= one["largest_share"] <= 1.01 * one["share_by_weight"]


def margins(policy: Mixture, states: np.ndarray, k: int) -> np.ndarray:
    """By how much the logarithm of an expert's strength exceeds that of every other part."""
    away = (states[:, None, :] - policy.prototypes) / policy.radii
    with np.errstate(divide="ignore"):
        logs = np.log(policy.weights) - (away**2).sum(axis=2)
    others = np.append(np.delete(logs, k, axis=1), np.zeros((len(states), 1)), axis=1)
    return logs[:, k] - others.max(axis=1)


def climbed(value, states, low, high, radii, rounds, seed=0):
    """States moved at random within a box, wherever a value that is to be large grows."""
    rng = np.random.default_rng(seed)
    best, states = value(states), states.copy()
    step = np.full((len(states), 1), 0.5)
    for _ in range(rounds):
        which = rng.random(states.shape) < rng.choice([0.1, 0.3, 1.0])
        trial = np.clip(states + which * step * radii * rng.normal(size=states.shape), low, high)
        new = value(trial)
        up = (new > best)[:, None]
        states, best = np.where(up, trial, states), np.maximum(best, new)
        step = np.clip(np.where(up, 1.5 * step, 0.8 * step), 1e-3, 2.0)
    return states, best


@EVERY
@EFFORT
def test_who_never_leads_does_not_and_others_stay_in_their_ranges(
    name: str, n: int, work: float
) -> None:
    parts = parts_of(name)
    policy, leading = parts.policy, facts_of(name, work)["leading"]
    low, high = parts.states.min(axis=0), parts.states.max(axis=0)
    never = [k for k in range(policy.n_experts) if policy.label(k) in leading["never"]]
    assert len(never) + len(leading["experts"]) == policy.n_experts
    assert not set(never) & set(leaders(policy, anywhere(policy, n)).tolist())
    wide = policy.prototypes.min(axis=0) - 9, policy.prototypes.max(axis=0) + 9
    for k in never:
        start = anywhere(policy, 20)
        ends = np.minimum(wide[0], start.min(axis=0)), np.maximum(wide[1], start.max(axis=0))
        _, best = climbed(lambda x, k=k: margins(policy, x, k), start, *ends, policy.radii, 40)
        assert best.max() <= 0
    states = np.concatenate([in_box(name, n), parts.states])
    lead = leaders(policy, states)
    for one in leading["experts"]:
        k = one["expert"]
        start = np.concatenate([states[lead == k][:30], states[:10]])
        if one["nowhere"]:
            assert not (lead == k).any()
            args = (low, high, policy.radii, 100)
            assert climbed(lambda x, k=k: margins(policy, x, k), start, *args)[1].max() <= 0
            continue
        names = [row["feature"] for row in one["ranges"]]
        for row in one["ranges"][:3]:
            i = policy.feature_names.index(row["feature"])
            for sign in (1.0, -1.0):

                def out(x, k=k, i=i, sign=sign):
                    ahead = margins(policy, x, k)
                    return np.where(ahead > 0, sign * x[:, i], -1e9 + np.minimum(ahead, 0))

                pushed, _ = climbed(out, start, low, high, policy.radii, 40)
                states_of_k = pushed[margins(policy, pushed, k) > 0]
                _within(policy, states_of_k, one["ranges"], names)
        _within(policy, states[lead == k], one["ranges"], names)


def _within(policy: Mixture, states: np.ndarray, ranges: list[dict], names: list[str]) -> None:
    for name, row in zip(names, ranges, strict=True):
        values = states[:, policy.feature_names.index(name)]
        assert (values >= row["low"]).all()
        assert (values <= row["high"]).all()


@EVERY
def test_the_slopes_that_are_searched_are_those_of_the_policy(name: str) -> None:
    parts = parts_of(name)
    states, h = in_box(name, 50), 1e-5
    found = slopes_at(parts, states / parts.radii)
    for i in range(len(parts.radii)):
        step = np.zeros(len(parts.radii))
        step[i] = h * parts.radii[i]
        difference = parts.policy.means(states + step) - parts.policy.means(states - step)
        np.testing.assert_allclose(difference / (2 * h), found[:, :, i], atol=1e-6, rtol=1e-5)


@EVERY
@EFFORT
def test_no_slope_exceeds_its_bound(name: str, n: int, work: float) -> None:
    parts, slope = parts_of(name), facts_of(name, work)["slope"]
    names = list(parts.policy.feature_names)
    bounds = np.zeros((len(slope["joints"]), len(names)))
    for j, one in enumerate(slope["joints"]):
        for row in one["features"]:
            bounds[j, names.index(row["feature"])] = row["bound_per_radius"]
            assert row["found_per_radius"] <= row["bound_per_radius"]
            assert row["bound_per_radius"] <= row["closed_form_per_radius"]
            assert (
                row["bound"] * parts.radii[names.index(row["feature"])]
                >= 0.999 * (row["found_per_radius"])
            )
        assert one["bound"] == bounds[j].max()
    u = in_box(name, n) / parts.radii
    for some in np.array_split(u, max(1, n // 5000)):
        assert (np.abs(slopes_at(parts, some)).max(axis=0) <= bounds + 1e-9).all()
    low, high = parts.box
    for j, one in enumerate(slope["joints"]):
        i = names.index(one["feature"])

        def steep(x: np.ndarray, i: int = i, j: int = j) -> np.ndarray:
            return np.abs(slopes_at(parts, x)[:, j, i])

        first = u[np.argsort(-steep(u[:2000]))[:20]]
        best = climbed(steep, first, low, high, np.ones(len(low)), 60)[1].max()
        assert best <= bounds[j, i] + 1e-9
        assert best <= 1.05 * one["found"]  # the product's own search is no worse


@EVERY
def test_bounds_over_a_box_hold_in_it(name: str) -> None:
    """Boxes of all sizes around states of all kinds."""
    parts, rng = parts_of(name), np.random.default_rng(1)
    centre = np.concatenate([anywhere(parts.policy, 60), in_box(name, 60)]) / parts.radii
    half = rng.uniform(0, 1, centre.shape) * rng.choice([0.01, 0.1, 0.5, 2.0], (len(centre), 1))
    low, high = centre - half, centre + half
    shares = shares_over(parts, low, high)
    features, joints = list(range(centre.shape[1])), list(range(parts.actions.shape[1]))
    bounds, _ = slopes_over(parts, low, high, features, joints)
    assert (shares.low.sum(axis=1) <= 1 + 1e-9).all()
    assert (shares.high.sum(axis=1) >= 1 - 1e-9).all()
    different = ~np.eye(len(parts.heads) + 1, dtype=bool)
    for _ in range(60):
        corner = rng.integers(2, size=centre.shape)
        part = np.where(rng.random((len(centre), 1)) < 0.5, corner, rng.random(centre.shape))
        u = low + part * (high - low)
        psi = parts.memberships(u)
        assert (psi >= shares.low - 1e-9).all()
        assert (psi <= shares.high + 1e-9).all()
        products = (psi[:, :, None] * psi[:, None, :])[:, different]
        assert (products <= shares.products[:, different] + 1e-9).all()
        assert (np.abs(slopes_at(parts, u)) <= bounds + 1e-9).all()


@EVERY
def test_two_experts_are_active_together_as_far_as_is_proved(name: str) -> None:
    parts = parts_of(name)
    limits, n, (low, high) = caps(parts), len(parts.heads), parts.box
    u = in_box(name, 3000) / parts.radii
    psi = parts.memberships(u)
    for k, other in zip(*np.triu_indices(n, 1), strict=True):
        both = psi[:, k] * psi[:, other]
        assert both.max() <= limits[k, other] + 1e-12
    k, other = np.unravel_index(np.argmin(limits[:n, :n]), (n, n))

    def product(x: np.ndarray) -> np.ndarray:
        return np.log(parts.memberships(x)[:, [k, other]]).sum(axis=1)

    start = u[np.argsort(-product(u))[:20]]
    best = climbed(product, start, low, high, np.ones(len(low)), 100)[1].max()
    assert best <= np.log(limits[k, other]) + 1e-6
    assert np.log(limits[k, other]) <= best + 1.0  # and little more is proved


def test_bounds_over_small_boxes_are_near_the_slope() -> None:
    """Branch and bound can come as near as it likes."""
    parts = parts_of("hopper")
    u, names = in_box("hopper", 20) / parts.radii, list(range(15))
    slope = np.abs(slopes_at(parts, u))
    bounds, _ = slopes_over(parts, u - 1e-4, u + 1e-4, names, [0, 1, 2])
    np.testing.assert_allclose(bounds, slope, atol=5e-3)


def test_the_largest_mean_is_that_of_a_linear_program() -> None:
    from scipy.optimize import linprog

    rng = np.random.default_rng(0)
    for _ in range(30):
        values, psi = rng.normal(size=6), rng.dirichlet(np.ones(6))
        low, high = psi * rng.uniform(0, 1, 6), np.minimum(1, psi * rng.uniform(1, 3, 6))
        ends = list(zip(low, high, strict=True))
        found = linprog(-values, A_eq=np.ones((1, 6)), b_eq=[1.0], bounds=ends)
        assert largest_mean(values, low, high) == pytest.approx(-found.fun, abs=1e-9)


def test_ranges_are_those_of_a_convex_program() -> None:
    """By a solver that knows nothing of multipliers: no wider than a hundredth of a radius."""
    from scipy.optimize import minimize

    from moie.sheet.leading import regions

    parts = parts_of("hopper")
    low, high = parts.box
    for one in regions(parts):
        at = parts.experts.tolist().index(one.expert)
        q, head = parts.places[at], parts.heads[at]
        others = [j for j in range(len(parts.heads)) if j != at]
        normals = 2 * (parts.places[others] - q)
        offsets = (parts.places[others] ** 2).sum(axis=1) - (q**2).sum()
        offsets += head - parts.heads[others]
        for i, sign in ((7, 1.0), (7, -1.0), (0, 1.0)):
            aim = sign * np.eye(len(q))[i]
            inside = [
                {"type": "ineq", "fun": lambda u, g=offsets, n=normals: g - n @ u},
                {"type": "ineq", "fun": lambda u, q=q, h=head: h - ((u - q) ** 2).sum()},
            ]
            start, ends = np.clip(q, low, high), list(zip(low, high, strict=True))
            best = minimize(
                lambda u, c=aim: c @ u, start, bounds=ends, constraints=inside, method="SLSQP"
            )
            proved = one.low[i] if sign > 0 else -one.high[i]
            assert best.success
            assert proved - 1e-5 <= best.fun <= proved + 0.01


def test_rounding_is_outwards() -> None:
    assert outward(0.1234, 0.01, up=True) == 0.13
    assert outward(-0.1234, 0.01, up=True) == -0.12
    assert outward(0.1234, 0.01, up=False) == 0.12
    assert outward(1.0, 0.01, up=True) == outward(1.0, 0.01, up=False) == 1.0
    assert outward(123.4, 10.0, up=False) == 123.0
    assert upward(0.012341) == 0.0124
    assert upward(0.0) == 0.0
    assert upward(12345.6) == 12346.0
