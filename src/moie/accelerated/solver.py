"""The accelerations of a robot under its constraints: MuJoCo's problem, for small robots.

MuJoCo minimises 1/2 (x - free) M (x - free) + 1/2 sum D min(0, J x - aref)^2 over accelerations x,
by Newton's method; so does this, in MJX's place. MJX's line search makes small steps one after the
other, each a handful of programs on an accelerator, and all robots wait; here a search is exact and
takes one step (the derivative along a line is piecewise linear: it is known when it is known at
all breakpoints), and on a GPU the whole method is one program.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

LONGEST = 15
"""Newton steps, at most; a robot in the air takes one, one that lands three or four."""
SMALL = 1e-5
"""Of a step, relative to the accelerations: the next one would be lost in rounding."""
Matrix = Float[Array, "v v"]
Vector = Float[Array, " v"]
Method = Callable[..., tuple[Array, ...]]


def solve_positive(matrix: Matrix, vector: Vector) -> Vector:
    """x of `matrix x = vector` for a positive definite matrix, by elimination. Rows and columns are
    picked by masks: a program for a GPU has no other way."""
    number = jnp.arange(len(vector))

    def eliminate(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        left, right = carry
        here = number == k
        row = jnp.sum(jnp.where(here[:, None], left, 0.0), axis=0)
        column = jnp.sum(jnp.where(here[None, :], left, 0.0), axis=1)
        pivot = jnp.sum(jnp.where(here, row, 0.0))
        factor = jnp.where(here, 0.0, column / pivot)
        there = jnp.sum(jnp.where(here, right, 0.0))
        return left - factor[:, None] * row[None, :], right - factor * there

    left, right = jax.lax.fori_loop(0, len(vector), eliminate, (matrix, vector))
    diagonal = jnp.sum(jnp.where(number[:, None] == number[None, :], left, 0.0), axis=1)
    return right / diagonal


def _with_diagonal(matrix: Matrix, diagonal: Vector) -> Matrix:
    number = jnp.arange(len(diagonal))
    return matrix + jnp.where(number[:, None] == number[None, :], diagonal[None, :], 0.0)


def _times(matrix: Array, vector: Vector) -> Array:
    return jnp.sum(matrix * vector[None, :], axis=1)


def _hessian(mass: Matrix, jacobian: Array, weight: Array) -> Matrix:
    """M + J' diag(weight) J, row by row."""
    number = jnp.arange(len(mass))

    def add(i: Array, total: Array) -> Array:
        here = number == i
        column = jnp.sum(jnp.where(here[None, :], jacobian, 0.0), axis=1)
        row = jnp.sum((weight * column)[:, None] * jacobian, axis=0)
        return total + jnp.where(here[:, None], row[None, :], 0.0)

    return jax.lax.fori_loop(0, len(mass), add, mass)


def _length(gap: Array, speed: Array, stiffness: Array, slope: Array, bend: Array) -> Array:
    """How far to go along a line: where the derivative of the cost is zero. `gap` and `speed` are
    J x - aref and its change along the line; without constraints the derivative would be
    slope + bend t."""
    breaks = jnp.where(speed == 0.0, -1.0, -gap / jnp.where(speed == 0.0, 1.0, speed))
    at_break = jnp.minimum(0.0, gap[None, :] + breaks[:, None] * speed[None, :])
    derivative = slope + breaks * bend
    derivative = derivative + jnp.sum(at_break * (stiffness * speed)[None, :], axis=1)
    is_ahead = breaks > 0.0
    low = jnp.max(jnp.where(is_ahead & (derivative < 0.0), breaks, 0.0))
    high = jnp.min(jnp.where(is_ahead & (derivative >= 0.0), breaks, jnp.inf))
    between = jnp.where(high < jnp.inf, 0.5 * (low + high), low + 1.0)
    pull = jnp.where(gap + between * speed < 0.0, stiffness * speed, 0.0)
    curvature = bend + jnp.sum(pull * speed)
    length = -(slope + jnp.sum(pull * gap)) / jnp.where(curvature > 0.0, curvature, 1.0)
    return jnp.where(curvature > 0.0, jnp.clip(length, low, high), 0.0)


def newton(
    jacobian: Float[Array, "rows v"],
    stiffness: Float[Array, " rows"],
    target: Float[Array, " rows"],
    mass: Matrix,
    force: Vector,
    start: Vector,
) -> tuple[Vector, Float[Array, " rows"]]:
    """The accelerations, and the forces of the constraints. It starts from `start` or from the
    accelerations without constraints, whichever costs less, and ends when a step is small."""
    free = solve_positive(mass, force)

    def cost(x: Array) -> Array:
        gap = jnp.minimum(0.0, _times(jacobian, x) - target)
        off = x - free
        return jnp.sum(off * _times(mass, off)) + jnp.sum(stiffness * gap * gap)

    def goes_on(carry: tuple[Array, Array, Any]) -> Array:
        x, step, number = carry
        size = jnp.max(jnp.abs(x))
        return (number < LONGEST) & (jnp.max(jnp.abs(step)) > SMALL * size)

    def iterate(carry: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
        x, _, number = carry
        gap = _times(jacobian, x) - target
        weight = jnp.where(gap < 0.0, stiffness, 0.0)
        left = _times(mass, x) - force
        gradient = left + jnp.sum(jacobian * (weight * gap)[:, None], axis=0)
        line = -solve_positive(_hessian(mass, jacobian, weight), gradient)
        slope, bend = jnp.sum(line * left), jnp.sum(line * _times(mass, line))
        step = _length(gap, _times(jacobian, line), stiffness, slope, bend) * line
        return x + step, step, number + 1

    x = jnp.where(cost(start) < cost(free), start, free)
    endless = jnp.full_like(x, jnp.inf)
    x, _, _ = jax.lax.while_loop(goes_on, iterate, (x, endless, jnp.int32(0)))
    return x, -stiffness * jnp.minimum(0.0, _times(jacobian, x) - target)


def damped(
    jacobian: Array,
    stiffness: Array,
    target: Array,
    mass: Matrix,
    force: Vector,
    start: Vector,
    damping: Vector,
) -> tuple[Vector, Array, Vector]:
    """`newton`, and the accelerations by which Euler's method changes the velocities: the same
    forces on masses to which the damping of a step is added, as MuJoCo integrates it."""
    found, forces = newton(jacobian, stiffness, target, mass, force, start)
    pushed = force + jnp.sum(jacobian * forces[:, None], axis=0)
    return found, forces, solve_positive(_with_diagonal(mass, damping), pushed)


def solve(method: Method, *problem: Array) -> tuple[Array, ...]:
    """`newton` or `damped`; on a GPU as one program for each robot."""
    if jax.default_backend() == "gpu":
        return as_one_program(method, *problem)
    return method(*problem)


def as_one_program(method: Method, *problem: Array, interpret: bool = False) -> tuple[Array, ...]:
    """`solve` as a kernel; sizes are powers of two there, the rest is filled with constraints that
    are never active and with free masses of one."""
    from jax.experimental.pallas import triton

    jacobian, stiffness, target, mass, *vectors = problem
    n_rows, n = jacobian.shape
    rows, size = pl.next_power_of_2(n_rows), pl.next_power_of_2(n)
    more, wide = (0, rows - n_rows), (0, size - n)
    filler = (jnp.arange(size) >= n).astype(mass.dtype)
    filled = (
        jnp.pad(jacobian, (more, wide)),
        jnp.pad(stiffness, more),
        jnp.pad(target, more),
        _with_diagonal(jnp.pad(mass, (wide, wide)), filler),
        *(jnp.pad(vector, wide) for vector in vectors),
    )

    def kernel(*references: Any) -> None:
        given, answers = references[: len(filled)], references[len(filled) :]
        for answer, value in zip(answers, method(*(one[...] for one in given)), strict=True):
            answer[...] = value

    call = pl.pallas_call(
        kernel,
        out_shape=jax.eval_shape(method, *filled),
        compiler_params=triton.CompilerParams(num_warps=max(1, rows // 32)),
        interpret=interpret,
    )
    wanted = jax.eval_shape(method, *problem)
    return tuple(answer[: len(one)] for answer, one in zip(call(*filled), wanted, strict=True))
