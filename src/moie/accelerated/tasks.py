"""Gymnasium's MuJoCo tasks as pure functions of one robot: reset, step, observation, reward.

Weights, ranges, noise and models are read from Gymnasium's own environment; only the formulas of
its Python code are written again here, and a test holds the two together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from moie.accelerated.catalogue import check_task
from moie.accelerated.physics import Body, Simulator
from moie.environments import tasks


class World(NamedTuple):
    """A robot in its episode."""

    body: Body
    travelled: Float[Array, " n"]
    """Where the robot's coordinates begin: they start from zero in every step, so that no digits
    are lost to a robot that has run far."""


class Step(NamedTuple):
    """What an environment answers."""

    world: World
    observation: Float[Array, " d"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]


@dataclass(frozen=True)
class Rules:
    """What Gymnasium's Python code adds to the physics. Functions take its environment (for the
    settings), then arrays."""

    observe: Callable[[Any, Body], Array]
    reward: Callable[[Any, Array, Body, Array, Array], Array]
    """Of the speed along x, the body after the step, the action, and whether it is healthy."""
    is_healthy: Callable[[Any, Body], Array]
    normal_velocities: bool = False
    """Whether the noise of a reset is normal for velocities, not uniform."""
    n_travelled: int = 1
    """Coordinates that no observation and no force depends on: x, or x and y."""
    feels_contact: bool = False


def _without_place(env: Any, body: Body) -> Array:
    return jnp.concatenate([body.qpos[1:], body.qvel])


def _without_place_clipped(env: Any, body: Body) -> Array:
    return jnp.concatenate([body.qpos[1:], jnp.clip(body.qvel, -10, 10)])


def _forces(env: Any, body: Body) -> Array:
    return jnp.clip(body.forces, *env._contact_force_range)


def _ant_sees(env: Any, body: Body) -> Array:
    return jnp.concatenate([body.qpos[2:], body.qvel, _forces(env, body)[1:].ravel()])


def _runs(env: Any, speed: Array, body: Body, action: Array, healthy: Array) -> Array:
    return env._forward_reward_weight * speed - env._ctrl_cost_weight * jnp.sum(action * action)


def _walks(env: Any, speed: Array, body: Body, action: Array, healthy: Array) -> Array:
    return _runs(env, speed, body, action, healthy) + env._healthy_reward * healthy


def _ant_walks(env: Any, speed: Array, body: Body, action: Array, healthy: Array) -> Array:
    felt = _forces(env, body)
    return _walks(env, speed, body, action, healthy) - env._contact_cost_weight * jnp.sum(
        felt * felt
    )


def _within(value: Array, limits: tuple[float, float]) -> Array:
    return (limits[0] < value) & (value < limits[1])


def _upright(env: Any, body: Body) -> Array:
    z, angle = body.qpos[1], body.qpos[2]
    return _within(z, env._healthy_z_range) & _within(angle, env._healthy_angle_range)


def _hopper_is_healthy(env: Any, body: Body) -> Array:
    rest = jnp.concatenate([body.qpos[2:], body.qvel])
    return _upright(env, body) & jnp.all(_within(rest, env._healthy_state_range))


def _ant_is_healthy(env: Any, body: Body) -> Array:
    low, high = env._healthy_z_range
    return (low <= body.qpos[2]) & (body.qpos[2] <= high)


RULES = {
    "Ant-v5": Rules(
        _ant_sees,
        _ant_walks,
        _ant_is_healthy,
        normal_velocities=True,
        n_travelled=2,
        feels_contact=True,
    ),
    "HalfCheetah-v5": Rules(
        _without_place, _runs, lambda env, body: jnp.asarray(True), normal_velocities=True
    ),
    "Hopper-v5": Rules(_without_place_clipped, _walks, _hopper_is_healthy),
    "InvertedPendulum-v5": Rules(
        lambda env, body: jnp.concatenate([body.qpos, body.qvel]),
        lambda env, speed, body, action, healthy: healthy.astype(jnp.float32),
        lambda env, body: jnp.abs(body.qpos[1]) <= 0.2,
        n_travelled=0,
    ),
    "Walker2d-v5": Rules(_without_place_clipped, _walks, _upright),
}


class Task:
    """A task for an accelerator."""

    def __init__(self, name: str):
        """InputError where there is no such task."""
        check_task(name)
        env: Any = tasks.make(name)
        self.name, self._env, self.rules = name, env.unwrapped, RULES[name]
        self.simulator = Simulator(self._env.model, self._env.frame_skip, self.rules.feels_contact)
        self.longest = int(env.spec.max_episode_steps)
        """Steps after which an episode is cut."""
        self.action_low = np.asarray(env.action_space.low, np.float32)
        self.action_high = np.asarray(env.action_space.high, np.float32)
        self.n_features = int(env.observation_space.shape[0])

    def reset(self, key: PRNGKeyArray) -> World:
        """The beginning of an episode."""
        env, scale = self._env, self._env._reset_noise_scale
        q_key, v_key = jax.random.split(key)
        qpos, qvel = (jnp.asarray(x, jnp.float32) for x in (env.init_qpos, env.init_qvel))
        if self.rules.normal_velocities:
            noise = scale * jax.random.normal(v_key, qvel.shape)
        else:
            noise = jax.random.uniform(v_key, qvel.shape, minval=-scale, maxval=scale)
        qpos = qpos + jax.random.uniform(q_key, qpos.shape, minval=-scale, maxval=scale)
        return self.at(qpos, qvel + noise)

    def at(self, qpos: Float[Array, " q"], qvel: Float[Array, " v"]) -> World:
        """A robot put into a state."""
        return World(self.simulator.at(qpos, qvel), jnp.zeros(self.rules.n_travelled))

    def observe(self, world: World) -> Float[Array, " d"]:
        """What the policy sees."""
        return self.rules.observe(self._env, world.body)

    def qpos(self, world: World) -> Float[Array, " q"]:
        """MuJoCo's positions, with the way that lies behind."""
        n = self.rules.n_travelled
        return world.body.qpos.at[:n].add(world.travelled)

    def distance(self, world: World) -> Float[Array, ""]:
        """Metres along x since the beginning of the episode, nearly."""
        return self.qpos(world)[0]

    def step(self, world: World, action: Float[Array, " u"]) -> Step:
        """One step with an action within the action space."""
        n = self.rules.n_travelled
        body = world.body
        start = body.qpos[:n]
        shift = jnp.zeros_like(body.qpos).at[:n].set(start)
        body = body._replace(
            qpos=body.qpos - shift, position=body.position - shift[: len(body.position)]
        )
        began = self._place(body)
        body = self.simulator.step(body, action)
        speed = (self._place(body) - began) / self.simulator.seconds
        healthy = self.rules.is_healthy(self._env, body)
        world = World(body, world.travelled + start)
        reward = self.rules.reward(self._env, speed, body, action, healthy)
        return Step(world, self.observe(world), reward, ~healthy)

    def _place(self, body: Body) -> Array:
        return body.position[0] if self.rules.feels_contact else body.qpos[0]
