"""The accelerations of a robot under its constraints: MuJoCo's problem, for small robots.

MuJoCo minimises 1/2 (x - free) M (x - free) + 1/2 sum D min(0, J x - aref)^2 over accelerations x,
by Newton's method; so does this, in MJX's place. MJX's line search makes small steps one after the
other, each a handful of programs on an accelerator, and all robots wait; here a search is exact and
takes one step (the derivative along a line is piecewise linear: it is known when it is known at
all breakpoints), and on a GPU the whole method is one program.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

LONGEST = 15
"""Newton steps, at most; a robot in the air takes one, one that lands three or four."""
SMALL = 1e-5
"""Of a step, relative to the accelerations: the next one would be lost in rounding."""
LANES = 32
"""Robots of one program on a GPU: as many as compute in step."""
SEARCHES, EXACT = 20, 1e-6
"""Steps of a search along a line, at most, and how exact its length is."""
Matrix = Float[Array, "v v"]
Vector = Float[Array, " v"]


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


@jax.custom_batching.custom_vmap
def solve(*problem: Array) -> tuple[Vector, Array]:
    """`newton`; for many robots on a GPU, one program with a robot in every lane."""
    return newton(*problem)


@solve.def_vmap
def _solve_many(size: int, is_batched: list[bool], *problems: Array) -> Any:
    axes = [0 if batched else None for batched in is_batched]
    if jax.default_backend() != "gpu":
        return jax.vmap(newton, in_axes=axes)(*problems), (True, True)
    whole = [
        one if batched else jnp.broadcast_to(one, (size, *one.shape))
        for one, batched in zip(problems, is_batched, strict=True)
    ]
    return side_by_side(*whole), (True, True)


def side_by_side(
    jacobian: Float[Array, "N rows v"],
    stiffness: Float[Array, "N rows"],
    target: Float[Array, "N rows"],
    mass: Float[Array, "N v v"],
    force: Float[Array, "N v"],
    start: Float[Array, "N v"],
    interpret: bool = False,
) -> tuple[Float[Array, "N v"], Float[Array, "N rows"]]:
    """`newton` of many robots as a kernel: each of its programs takes some, one a lane, and writes
    matrices out as scalars, so that lanes never wait for each other's sums."""
    from jax.experimental.pallas import triton

    n_robots, n_rows, n = jacobian.shape
    n_programs = pl.cdiv(n_robots, LANES)
    more = n_programs * LANES - n_robots
    problem = (jacobian, stiffness, target, mass, force, start)
    # Robots last: what neighbouring lanes read lies side by side. Filled up with the last robot.
    given = [
        jnp.moveaxis(jnp.pad(one, ((0, more), *((0, 0),) * (one.ndim - 1)), mode="edge"), 0, -1)
        for one in problem
    ]
    shapes = [(n,), (n_rows,), (n_rows,), (n_rows,)]
    found, forces, *_ = pl.pallas_call(
        _Lanes(n_rows, n),
        grid=(n_programs,),
        in_specs=[_block(*one.shape[:-1]) for one in given],
        out_specs=[_block(*shape) for shape in shapes],
        out_shape=[
            jax.ShapeDtypeStruct((*shape, n_programs * LANES), jacobian.dtype) for shape in shapes
        ],
        compiler_params=triton.CompilerParams(num_warps=1),
        interpret=interpret,
    )(*given)
    return jnp.moveaxis(found, -1, 0)[:n_robots], jnp.moveaxis(forces, -1, 0)[:n_robots]


def _block(*shape: int) -> pl.BlockSpec:
    """A program's robots of an array, all else whole."""
    before = (0,) * len(shape)
    return pl.BlockSpec((*shape, LANES), lambda program: (*before, program))


Lane = Float[Array, " lanes"]
Lanes = tuple[Lane, ...]
"""The components of a vector, each in all lanes."""


class _Lanes:
    """The kernel of `side_by_side`: `newton` with every number a scalar in each lane."""

    def __init__(self, n_rows: int, n: int):
        self.n_rows, self.n = n_rows, n

    def __call__(self, *references: Any) -> None:
        """Solve the problems of a program's robots."""
        given, (found, forces, gaps, speeds) = references[:6], references[6:]
        self.jacobian, self.stiffness, self.target, self.mass, self.force, start = given
        self.gaps, self.speeds = gaps, speeds  # of this program alone, to be read again
        begin = tuple(start[i, :] for i in range(self.n))
        no_constraint = tuple(-self.force[i, :] for i in range(self.n))
        free = self._newton_step(self._mass_rows(), no_constraint)
        is_cheaper = self._cost(begin, free) < self._cost(free, free)
        x = tuple(jnp.where(is_cheaper, a, b) for a, b in zip(begin, free, strict=True))
        goes_on = jnp.ones_like(x[0])  # one or zero: there is no other sum over lanes

        def any_goes_on(carry: tuple[Lanes, Lane, Array]) -> Array:
            _, goes_on, number = carry
            return (number < LONGEST) & (jnp.max(goes_on) > 0.0)

        def iterate(carry: tuple[Lanes, Lane, Array]) -> tuple[Lanes, Lane, Array]:
            x, goes_on, number = carry
            step = self._step(x)
            moved = tuple(
                jnp.where(goes_on > 0.0, a + b, a) for a, b in zip(x, step, strict=True)
            )
            is_large = _largest(step) > SMALL * _largest(moved)
            return moved, jnp.where(is_large, goes_on, 0.0), number + 1

        x, _, _ = jax.lax.while_loop(any_goes_on, iterate, (x, goes_on, jnp.int32(0)))
        for i in range(self.n):
            found[i, :] = x[i]

        def push(r: Array, _: None) -> None:
            gap = self._along(r, x) - self.target[r, :]
            forces[r, :] = -self.stiffness[r, :] * jnp.minimum(0.0, gap)

        jax.lax.fori_loop(0, self.n_rows, push, None)

    def _along(self, r: Array, x: Lanes) -> Lane:
        """A row of the Jacobian, times x."""
        return sum((self.jacobian[r, i, :] * x[i] for i in range(1, self.n)), self.jacobian[r, 0, :] * x[0])

    def _mass_rows(self) -> list[list[Lane]]:
        """Its lower triangle."""
        return [[self.mass[i, j, :] for j in range(i + 1)] for i in range(self.n)]

    def _times_mass(self, x: Lanes) -> Lanes:
        return tuple(sum((self.mass[i, j, :] * x[j] for j in range(1, self.n)), self.mass[i, 0, :] * x[0]) for i in range(self.n))

    def _cost(self, x: Lanes, free: Lanes) -> Lane:
        off = tuple(a - b for a, b in zip(x, free, strict=True))
        smooth = sum((a * b for a, b in zip(off, self._times_mass(off), strict=True)), jnp.zeros_like(x[0]))

        def add(r: Array, total: Lane) -> Lane:
            gap = jnp.minimum(0.0, self._along(r, x) - self.target[r, :])
            return total + self.stiffness[r, :] * gap * gap

        return jax.lax.fori_loop(0, self.n_rows, add, smooth)

    def _newton_step(self, lower: list[list[Lane]], gradient: Lanes) -> Lanes:
        """-(hessian)^-1 gradient, for the hessian's lower triangle: L D L' with unit L."""
        n = self.n
        unit: list[list[Lane]] = [[] for _ in range(n)]
        pivots: list[Lane] = []
        for j in range(n):
            scaled = [unit[j][k] * pivots[k] for k in range(j)]
            pivot = lower[j][j]
            for k in range(j):
                pivot = pivot - scaled[k] * unit[j][k]
            pivots.append(pivot)
            inverse = 1.0 / pivot
            for i in range(j + 1, n):
                rest = lower[i][j]
                for k in range(j):
                    rest = rest - scaled[k] * unit[i][k]
                unit[i].append(rest * inverse)
        x = [-one for one in gradient]
        for i in range(n):
            for k in range(i):
                x[i] = x[i] - unit[i][k] * x[k]
        x = [one / pivot for one, pivot in zip(x, pivots, strict=True)]
        for i in reversed(range(n)):
            for k in range(i + 1, n):
                x[i] = x[i] - unit[k][i] * x[k]
        return tuple(x)

    def _step(self, x: Lanes) -> Lanes:
        """A Newton step, of the exact length."""
        n = self.n
        left = tuple(a - self.force[i, :] for i, a in enumerate(self._times_mass(x)))
        triangle = tuple(one for row in self._mass_rows() for one in row)

        def add(r: Array, carry: tuple[Lanes, Lanes]) -> tuple[Lanes, Lanes]:
            row = tuple(self.jacobian[r, i, :] for i in range(n))
            gap = sum((a * b for a, b in zip(row, x, strict=True)), -self.target[r, :])
            self.gaps[r, :] = gap
            weight = jnp.where(gap < 0.0, self.stiffness[r, :], 0.0)

            def push(carry: tuple[Lanes, Lanes]) -> tuple[Lanes, Lanes]:
                triangle, gradient = carry
                heavy = tuple(weight * one for one in row)
                products = (heavy[i] * row[j] for i in range(n) for j in range(i + 1))
                return (
                    tuple(a + b for a, b in zip(triangle, products, strict=True)),
                    tuple(a + b * gap for a, b in zip(gradient, heavy, strict=True)),
                )

            # Few of a robot's constraints act; those that act on none are passed over.
            return jax.lax.cond(jnp.max(weight) > 0.0, push, lambda carry: carry, carry)

        triangle, gradient = jax.lax.fori_loop(0, self.n_rows, add, (triangle, left))
        flat = list(triangle)
        lower = [flat[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] for i in range(n)]
        line = self._newton_step(lower, gradient)
        length = self._length(line, left)
        return tuple(length * one for one in line)

    def _length(self, line: Lanes, left: Lanes) -> Lane:
        """`_length` by Newton's method between the closest bounds known: the derivative is
        piecewise linear, so that it ends."""
        none = jnp.zeros_like(line[0])
        slope = sum((a * b for a, b in zip(line, left, strict=True)), none)
        bend = sum((a * b for a, b in zip(line, self._times_mass(line), strict=True)), none)

        def store(r: Array, _: None) -> None:
            self.speeds[r, :] = self._along(r, line)

        jax.lax.fori_loop(0, self.n_rows, store, None)

        def search(carry: tuple[Lane, Lane, Lane, Lane, Array]):
            length, low, high, _, number = carry

            def add(r: Array, sums: tuple[Lane, Lane]) -> tuple[Lane, Lane]:
                speed = self.speeds[r, :]
                gap = self.gaps[r, :] + length * speed
                pull = jnp.where(gap < 0.0, self.stiffness[r, :] * speed, 0.0)
                return sums[0] + pull * gap, sums[1] + pull * speed

            derivative, curvature = jax.lax.fori_loop(
                0, self.n_rows, add, (slope + bend * length, bend)
            )
            ends = jnp.where(curvature > 0.0, derivative / jnp.where(curvature > 0.0, curvature, 1.0), 0.0)
            low = jnp.where(derivative < 0.0, length, low)
            high = jnp.where(derivative < 0.0, high, length)
            wanted = length - ends
            is_between = (wanted >= low) & (wanted <= high)
            wanted = jnp.where(is_between, wanted, 0.5 * (low + high))
            moves = jnp.abs(wanted - length) > EXACT * length
            return wanted, low, high, jnp.where(moves, 1.0, 0.0), number + 1

        def any_moves(carry: tuple[Lane, Lane, Lane, Lane, Array]) -> Array:
            return (carry[4] < SEARCHES) & (jnp.max(carry[3]) > 0.0)

        one = jnp.ones_like(none)
        begin = (one, none, jnp.full_like(none, jnp.inf), one, jnp.int32(0))
        return jax.lax.while_loop(any_moves, search, begin)[0]


def _largest(components: Lanes) -> Lane:
    largest = jnp.abs(components[0])
    for one in components[1:]:
        largest = jnp.maximum(largest, jnp.abs(one))
    return largest
