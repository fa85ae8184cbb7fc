"""MuJoCo's robots as pure functions: one step of Gymnasium's environments over MJX.

`mjx.step` keeps all that MuJoCo computes between two steps; here only what decides the future is
kept (`Body`), so that thousands of robots fit into a checkpoint. The stages of a Runge-Kutta step
are one loop, so that the equations of motion are compiled once and not four times.
"""

import contextlib
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jaxtyping import Array, Float

from moie.accelerated import solver

with contextlib.redirect_stdout(io.StringIO()):  # it says that it has no Warp
    from mujoco import mjx

PLANE, CAPSULE = int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_CAPSULE)
RUNGE_KUTTA = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))
"""How far a stage goes from the beginning of the step, and its weight in the result."""


@contextlib.contextmanager
def sums_in_order() -> Iterator[None]:
    """While MJX is traced, its sums over the children of a body are written out.

    As it has them they are scattered: on an accelerator in any order, so that no two runs end with
    the same bytes. XLA can be told to keep an order (`--xla_gpu_deterministic_ops`), but sorts
    first, which took half of a step's time and more; and it lost values of other scatters.
    """
    operations: Any = jax.ops
    original = operations.segment_sum
    operations.segment_sum = _sum_of_each
    try:
        yield
    finally:
        operations.segment_sum = original


def _sum_of_each(data: Array, segment_ids: np.ndarray, num_segments: int) -> Array:
    """`jax.ops.segment_sum` where the segments are known while tracing."""
    none = jnp.zeros_like(data[0])
    members = [np.flatnonzero(segment_ids == segment) for segment in range(num_segments)]
    return jnp.stack(
        [sum((data[i] for i in some[1:]), data[some[0]]) if len(some) else none for some in members]
    )


class Body(NamedTuple):
    """The state of one robot."""

    qpos: Float[Array, " q"]
    qvel: Float[Array, " v"]
    qacc: Float[Array, " v"]
    """Where the solver starts."""
    position: Float[Array, " n"]
    """Of the main body, as MuJoCo has it after a step: that of the step's last stage. Empty where
    no reward depends on it."""
    forces: Float[Array, "bodies 6"]
    """Contact forces on each body; empty where nothing depends on them."""


class Simulator:
    """The equations of motion of a robot."""

    def __init__(self, model: mujoco.MjModel, frame_skip: int, feels_contact: bool = False):
        """`feels_contact`: whether `position` and `forces` are needed."""
        self.model = model
        """As MuJoCo has it."""
        self._model = mjx.put_model(model)
        self._blank: Any = mjx.make_data(self._model)
        self._geom_types = np.asarray(model.geom_type)
        self._feels_contact, self._frame_skip = feels_contact, frame_skip
        self._step = jnp.float32(model.opt.timestep)
        self._is_runge_kutta = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        self._is_free = bool(model.nq > model.nv)
        self.seconds = float(model.opt.timestep * frame_skip)
        """Simulated in a step of the environment."""

    def at(self, qpos: Float[Array, " q"], qvel: Float[Array, " v"]) -> Body:
        """A robot put into a state, as Gymnasium's `set_state` does it."""
        n, bodies = (2, self._model.nbody) if self._feels_contact else (0, 0)
        return Body(qpos, qvel, jnp.zeros_like(qvel), qpos[:n], jnp.zeros((bodies, 6)))

    def step(self, body: Body, control: Float[Array, " u"]) -> Body:
        """One step of the environment: as many of the simulator's as it skips frames."""
        advance = self._runge_kutta if self._is_runge_kutta else self._euler
        return advance(body, control)

    def _forward(
        self, qpos: Any, qvel: Any, qacc: Any, control: Any, damping: Array | None = None
    ) -> tuple[Any, Array]:
        """`mjx.forward` of a model without tendons, equality constraints, joints with friction and
        sensors, but with MuJoCo's contact frames and `solver` in place of `mjx.solve`; and the
        accelerations by which velocities change, damped where a damping is given."""
        model, blank = self._model, self._blank
        data: Any = blank.replace(qpos=qpos, qvel=qvel, ctrl=control)
        with sums_in_order():
            for part in (mjx.kinematics, mjx.com_pos, mjx.crb, mjx.collision):
                data = part(model, data)
            data = self._aligned(data)
            for part in (mjx.make_constraint, mjx.transmission, mjx.fwd_velocity):
                data = part(model, data)
            data = mjx.fwd_actuation(model, data)
        force = data.qfrc_passive - data.qfrc_bias + data.qfrc_actuator
        inner = data._impl
        problem = (inner.efc_J, inner.efc_D, inner.efc_aref, inner.M, force, qacc)
        if damping is None:
            found, forces = solver.solve(solver.newton, *problem)
            change = found
        else:
            found, forces, change = solver.solve(solver.damped, *problem, damping)
        return data.tree_replace({"_impl.efc_force": forces}).replace(qacc=found), change

    def _aligned(self, data: Any) -> Any:
        """Contacts of capsules with the floor: the first tangent is the capsule's axis, however
        steep it is. MJX takes another one where it is steep, and friction, a pyramid around the
        tangents, would differ."""
        contact = data._impl.contact
        if not len(contact.dist):
            return data
        normal = contact.frame[:, 0]
        axis = data.geom_xmat[contact.geom[:, 1], :, 2]
        flat = axis - normal * jnp.sum(normal * axis, axis=1, keepdims=True)
        length = jnp.sqrt(jnp.sum(flat * flat, axis=1, keepdims=True))
        tangent = flat / jnp.maximum(length, 1e-9)
        frame = jnp.stack([normal, tangent, jnp.cross(normal, tangent)], axis=1)
        types = jnp.asarray(self._geom_types)[contact.geom]
        is_capsule = jnp.all(types == jnp.array([PLANE, CAPSULE]), axis=1) & (length[:, 0] > 1e-6)
        frame = jnp.where(is_capsule[:, None, None], frame, contact.frame)
        return data.tree_replace({"_impl.contact.frame": frame})

    def _seen(self, body: Body, data: Any, is_last: Array) -> Body:
        """With position and forces of these data, which are MuJoCo's after its last stage."""
        if not self._feels_contact:
            return body

        def measured() -> tuple[Array, Array]:
            with sums_in_order():
                felt: Any = mjx.rne_postconstraint(self._model, data)
            return data.xpos[1, :2], felt._impl.cfrc_ext

        position, forces = jax.lax.cond(is_last, measured, lambda: (body.position, body.forces))
        return body._replace(position=position, forces=forces)

    def _euler(self, body: Body, control: Array) -> Body:
        damping = self._step * self._model.dof_damping

        def substep(body: Body, is_last: Array) -> tuple[Body, None]:
            given = (body.qpos, body.qvel, body.qacc, control, damping)
            data, qacc = self._forward(*given)
            qvel = body.qvel + self._step * qacc
            qpos = self._moved(body.qpos, qvel)
            after = body._replace(qpos=qpos, qvel=qvel, qacc=data.qacc)
            return self._seen(after, data, is_last), None

        is_last = jnp.arange(self._frame_skip) == self._frame_skip - 1
        return jax.lax.scan(substep, body, is_last)[0]

    def _runge_kutta(self, body: Body, control: Array) -> Body:
        def stage(carry: tuple[Body, Array, Array, Array, Array], row: Any):
            body, velocity, qacc, mean_velocity, mean_qacc = carry
            reach, weight, ends, is_last = row
            qpos = self._moved(body.qpos, reach * velocity)
            velocity = body.qvel + reach * self._step * qacc
            data, qacc = self._forward(qpos, velocity, body.qacc, control)
            mean_velocity = mean_velocity + weight * velocity
            mean_qacc = mean_qacc + weight * qacc
            after = Body(
                jnp.where(ends, self._moved(body.qpos, mean_velocity), body.qpos),
                jnp.where(ends, body.qvel + self._step * mean_qacc, body.qvel),
                qacc,
                body.position,
                body.forces,
            )
            keep = jnp.where(ends, 0.0, 1.0)
            after = self._seen(after, data, is_last)
            return (after, velocity, qacc, keep * mean_velocity, keep * mean_qacc), None

        reach, weight = np.tile(np.array(RUNGE_KUTTA, np.float32).T, self._frame_skip)
        number = np.arange(len(reach))
        rows = (reach, weight, number % 4 == 3, number == len(reach) - 1)
        zero = jnp.zeros_like(body.qvel)
        carry, _ = jax.lax.scan(stage, (body, zero, zero, zero, zero), rows)
        return carry[0]

    def _moved(self, qpos: Array, velocity: Array) -> Array:
        """Positions after one of the simulator's steps at a velocity."""
        if not self._is_free:
            return qpos + self._step * velocity
        place = qpos[:3] + self._step * velocity[:3]
        turned = _turned(qpos[3:7], self._step * velocity[3:6])
        return jnp.concatenate([place, turned, qpos[7:] + self._step * velocity[6:]])


def _turned(quaternion: Float[Array, " 4"], rotation: Float[Array, " 3"]) -> Float[Array, " 4"]:
    """A quaternion after a rotation in its own frame, of unit length."""
    angle = jnp.sqrt(jnp.sum(rotation * rotation))
    half = 0.5 * angle
    axis = rotation * jnp.where(angle > 1e-6, jnp.sin(half) / jnp.maximum(angle, 1e-6), 0.5)
    w, v = quaternion[0], quaternion[1:]
    cos = jnp.cos(half)
    real = w * cos - jnp.dot(v, axis)
    imaginary = w * axis + cos * v + jnp.cross(v, axis)
    turned = jnp.concatenate([real[None], imaginary])
    return turned / jnp.sqrt(jnp.sum(turned * turned))
