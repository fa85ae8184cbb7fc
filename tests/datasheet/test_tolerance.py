"""Tolerances by bisection, with the policy's own memberships."""

import numpy as np
import pytest

from moie.policy.reading import leaders
from moie.sheet.tolerance import tolerance
from tests.datasheet.conftest import ZOO, parts_of


def first_change(parts, u: np.ndarray, direction: np.ndarray, most: float) -> float:
    """The distance in radii along a direction at which another part leads, up to a largest one: a
    scan, then bisection."""
    policy, radii = parts.policy, parts.radii

    def lead(steps: np.ndarray) -> np.ndarray:
        return leaders(policy, (u + steps[:, None] * direction) * radii)

    steps = np.linspace(0, most, 400)
    changed = np.flatnonzero(lead(steps) != lead(steps[:1])[0])
    if not len(changed):
        return np.inf
    low, high = steps[changed[0] - 1], steps[changed[0]]
    for _ in range(50):
        middle = (low + high) / 2
        if lead(np.asarray([middle]))[0] == lead(steps[:1])[0]:
            low = middle
        else:
            high = middle
    return high


@pytest.mark.parametrize("name", ZOO)
def test_a_tolerance_is_exact(name: str) -> None:
    parts, rng = parts_of(name), np.random.default_rng(0)
    u = parts.visited[rng.permutation(len(parts.visited))[:6]]
    found = tolerance(parts, u)
    assert (found.leaders == np.argmax(parts.memberships(u), axis=1)).all()
    for state, lead, together in zip(u, found.leaders, found.together, strict=True):
        normals = parts.places - (parts.places[lead] if lead < len(parts.places) else state)
        spheres = state - parts.places
        some = np.concatenate([normals, spheres, -spheres])
        size = np.linalg.norm(some, axis=1)
        some = some[size > 0] / size[size > 0, None]
        least = min(first_change(parts, state, one, 1.1 * together + 1e-9) for one in some)
        assert least == pytest.approx(together, rel=1e-6, abs=1e-9)
        for one in rng.normal(size=(10, len(state))):
            one = one / np.linalg.norm(one)
            assert first_change(parts, state, one, 0.999999 * together) == np.inf


@pytest.mark.parametrize("name", ZOO)
def test_a_tolerance_of_one_feature_is_exact(name: str) -> None:
    parts, rng = parts_of(name), np.random.default_rng(1)
    u = parts.visited[rng.permutation(len(parts.visited))[:4]]
    found = tolerance(parts, u)
    assert (found.alone >= found.together[:, None] - 1e-9).all()
    for state, alone in zip(u, found.alone, strict=True):
        for i in range(len(state)):
            most = 1.1 * alone[i] + 1e-9 if np.isfinite(alone[i]) else 30.0
            ways = (sign * np.eye(len(state))[i] for sign in (1.0, -1.0))
            least = min(first_change(parts, state, way, most) for way in ways)
            assert least == pytest.approx(alone[i], rel=1e-6, abs=1e-9)
