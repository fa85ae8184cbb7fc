"""A swarm ends with the same bytes only if nothing is summed in the order a GPU comes to it."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.simulators import needs

pytestmark = needs("swarm")
SCATTER = re.compile(
    r'"stablehlo\.scatter"\((?P<body>.*?)\}\) : \((?P<types>.*?)\) -> (?P<result>\S+)', re.DOTALL
)


def sums_in_any_order(program: str) -> list[str]:
    """What is scattered and added up as floating-point numbers, where places may coincide."""
    return [
        found["types"]
        for found in SCATTER.finditer(program)
        if "stablehlo.add" in found["body"]
        and "unique_indices = true" not in found["body"]
        and re.search(r"xf\d\d>", found["result"])
    ]


def test_what_would_be_in_any_order_is_recognised() -> None:
    places = jnp.array([0, 0, 1])
    scattered = jax.jit(lambda x: jnp.zeros(2).at[places].add(x)).lower(jnp.ones(3))
    assert len(sums_in_any_order(scattered.as_text())) == 1


@pytest.mark.parametrize("name", ["Ant-v5", "HalfCheetah-v5"])
def test_no_step_of_a_robot_sums_in_any_order(name: str) -> None:
    from moie.accelerated.tasks import Task

    task = Task(name)
    world = task.reset(jax.random.key(0))
    text = jax.jit(task.step).lower(world, jnp.zeros(len(task.action_low))).as_text()
    found = sums_in_any_order(text)
    if name != "Ant-v5":
        assert not found
        return
    # Ant feels its contacts: two numbers at most are added up for a body, in which order does not
    # matter, and for the floor zeros.
    (contacts,) = found
    assert "x6xf32" in contacts
    model = task.simulator.model
    capsules = model.geom_bodyid[model.geom_type == 3]
    assert len(capsules) == len(set(capsules.tolist()))
    (ball,) = model.geom_bodyid[model.geom_type == 2]
    assert ball not in capsules


@pytest.mark.parametrize("algorithm", ["moie", "trpo"])
def test_no_learner_sums_in_any_order(algorithm: str) -> None:
    from dataclasses import replace

    from moie.learn.learner import learn, start
    from tests.learn.test_learner import CONFIG, N_ACTIONS, N_FEATURES, random_batch

    config = replace(CONFIG, algorithm=algorithm)
    keys = jax.random.split(jax.random.key(0), 2)
    states = jax.vmap(lambda key: start(config, N_FEATURES, N_ACTIONS, key=key))(keys)
    batches = jax.tree.map(lambda x: jnp.stack([x, x]), random_batch(0))
    together = jax.jit(jax.vmap(lambda state, batch: learn(config, state, batch)))
    assert not sums_in_any_order(together.lower(states, batches).as_text())


def test_sums_over_bodies_are_those_of_jax() -> None:
    from moie.accelerated import physics

    data = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)), jnp.float32)
    ids = np.array([2, 0, 2, -1, 0, 2])
    expected = jax.ops.segment_sum(data, ids, 4)
    with physics.sums_in_order():
        np.testing.assert_allclose(jax.ops.segment_sum(data, ids, 4), expected, rtol=1e-6)
    assert jax.ops.segment_sum.__module__.startswith("jax")
