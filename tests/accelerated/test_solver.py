"""Accelerations under constraints: the minimum of MuJoCo's cost."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.simulators import needs

pytestmark = needs("swarm")


def problems(n: int, rows: int, size: int, seed: int = 0) -> tuple[Any, ...]:
    """Random ones, as a robot has them; some constraints are not there: zeros."""
    rng = np.random.default_rng(seed)
    jacobian = rng.normal(size=(n, rows, size))
    stiffness = rng.uniform(1.0, 300.0, (n, rows))
    target = 3.0 * rng.normal(size=(n, rows))
    absent = rng.random((n, rows)) < 0.3
    jacobian[absent], target[absent] = 0.0, 0.0
    root = rng.normal(size=(n, size, size))
    mass = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(size)
    force, start = 3.0 * rng.normal(size=(2, n, size))
    arrays = (jacobian, stiffness, target, mass, force, start)
    return tuple(jnp.asarray(array, jnp.float32) for array in arrays)


@pytest.mark.parametrize(("rows", "size"), [(2, 2), (38, 6), (108, 14)])
def test_newtons_method_finds_the_minimum(rows: int, size: int) -> None:
    from moie.accelerated import solver

    given = problems(50, rows, size)
    found, forces = jax.jit(jax.vmap(solver.newton))(*given)
    jacobian, stiffness, target, mass, force, _ = (np.asarray(x, np.float64) for x in given)
    gap = np.einsum("nrv,nv->nr", jacobian, found) - target
    expected = -stiffness * np.minimum(0.0, gap)
    scale = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(forces, expected, atol=1e-5 * scale)
    # The cost is convex: where its gradient is zero is the minimum.
    pulls = np.einsum("nvw,nw->nv", mass, found) - force
    rest = pulls - np.einsum("nrv,nr->nv", jacobian, expected)
    assert np.abs(rest).max() < 1e-4 * scale
    assert (expected > 0).any(axis=1).mean() > 0.5


def test_no_constraint_and_no_force_is_no_acceleration() -> None:
    from moie.accelerated import solver

    zero = jnp.zeros
    found, forces = solver.newton(zero((4, 3)), zero(4), zero(4), jnp.eye(3), zero(3), jnp.ones(3))
    assert (np.asarray(found) == 0.0).all()
    assert (np.asarray(forces) == 0.0).all()


def test_damped_accelerations_are_those_of_larger_masses() -> None:
    from moie.accelerated import solver

    given = problems(50, 12, 6)
    damping = jnp.asarray(np.random.default_rng(1).uniform(0.0, 2.0, (50, 6)), jnp.float32)
    _, forces = jax.vmap(solver.newton)(*given)
    found, same, damped = jax.vmap(solver.damped)(*given, damping)
    np.testing.assert_array_equal(same, forces)
    jacobian, _, _, mass, force, _ = (np.asarray(x, np.float64) for x in given)
    pushed = force + np.einsum("nrv,nr->nv", jacobian, forces)
    larger = mass + np.asarray(damping, np.float64)[:, :, None] * np.eye(6)
    expected = np.linalg.solve(larger, pushed[..., None])[..., 0]
    np.testing.assert_allclose(damped, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert not np.allclose(damped, found, rtol=0.1)


@pytest.mark.parametrize("name", ["newton", "damped"])
def test_the_program_for_a_gpu_computes_the_same(name: str) -> None:
    from moie.accelerated import solver

    method, given = getattr(solver, name), problems(3, 5, 3)  # sizes that have to be filled up
    if name == "damped":
        given = (*given, jnp.ones((3, 3)))

    def kernel(*problem: Any) -> Any:
        return solver.as_one_program(method, *problem, interpret=True)

    for ours, theirs in zip(jax.vmap(kernel)(*given), jax.vmap(method)(*given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    lowered = jax.jit(jax.vmap(partial(solver.as_one_program, method))).trace(*given)
    assert "xla.gpu.triton" in lowered.lower(lowering_platforms=("cuda",)).as_text()
