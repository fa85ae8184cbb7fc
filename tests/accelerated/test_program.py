"""The program of a swarm takes every learner as it is."""

from typing import Any

import jax
import numpy as np
import pytest

from moie.learn import registry
from tests import tiny
from tests.simulators import needs

pytestmark = needs("swarm")


@pytest.mark.parametrize("algorithm", registry.names())
def test_an_iteration_of_any_algorithm_hands_on_what_it_was_given(algorithm: str) -> None:
    from moie.accelerated.program import Program
    from moie.accelerated.records import Plan
    from moie.accelerated.tasks import Task
    from moie.api import task_preset
    from moie.runs.config import with_settings

    config = with_settings(task_preset("InvertedPendulum-v5", algorithm), tiny.SETTINGS)
    program = Program(Task("InvertedPendulum-v5"), config, 8, 1)
    given: Any = (np.bool_(True), np.bool_(True), np.float32(0), np.int32(1))
    seeds = jax.eval_shape(lambda: program.start([0, 1, 2]))
    after, record = jax.eval_shape(program._iterate_once, seeds, Plan(*given))

    def types(tree: Any) -> Any:
        return jax.tree.map(lambda x: (x.shape, x.dtype), tree)

    assert jax.tree.structure(after) == jax.tree.structure(seeds)
    assert types(after) == types(seeds)
    assert types(record.policy) == types(seeds.learner.policy)
    is_mixture_of_visited = algorithm in ("moie", "crisp")
    assert (record.visited is not None) == is_mixture_of_visited
    if is_mixture_of_visited:
        assert record.visited.qpos.shape == (3, 3, 2)


def test_final_policies_are_measured_from_the_beginning_of_an_episode_to_its_end() -> None:
    import equinox as eqx
    import jax.numpy as jnp

    from moie.accelerated.program import Program
    from moie.accelerated.tasks import Task
    from moie.api import task_preset
    from moie.runs.config import with_settings

    task = Task("InvertedPendulum-v5")
    task.longest = 60
    settings = tiny.SETTINGS | {"evaluation_episodes": 4}
    config = with_settings(task_preset(task.name, "trpo-linear"), settings)
    program = Program(task, config, 8, 1)
    start = program.start([0, 1, 2])
    # One that lets the pole fall, one that catches it, and one that does so with much noise.
    catching = jnp.array([[0.0, 5.0, 0.2, 1.0]])
    seeds = eqx.tree_at(
        lambda s: (s.learner.policy.matrix, s.learner.policy.log_std),
        start,
        (jnp.stack([0.0 * catching, catching, catching]), jnp.array([[-9.0], [-9.0], [1.0]])),
    )
    measured = program.measure(seeds)
    assert 10 < measured["mean"][0] < 60
    assert (measured["mean"][1:] == 60).all()
    assert measured["sampled"][1] == 60
    assert measured["sampled"][2] < 60
    # How far the robots of training have come does not matter.
    later = eqx.tree_at(lambda s: s.running.steps, seeds, start.running.steps + 59)
    assert (program.measure(later)["sampled"] == measured["sampled"]).all()


def test_a_robot_that_is_lost_ends_its_episode_and_disturbs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import jax.numpy as jnp

    from moie.accelerated.program import Program
    from moie.accelerated.records import Plan
    from moie.accelerated.tasks import Step, Task, World
    from moie.api import task_preset
    from moie.runs.config import with_settings

    task = Task("InvertedPendulum-v5")
    real: Any = task.step

    def step(world: World, action: Any) -> Step:
        """All robots that are left of the middle are lost."""
        wrong = jnp.where(world.body.qpos[0] < 0.0, jnp.nan, 1.0)
        return jax.tree.map(
            lambda x: x * wrong if jnp.issubdtype(x.dtype, jnp.floating) else x,
            real(world, action),
        )

    monkeypatch.setattr(task, "step", step)
    config = with_settings(task_preset(task.name, "trpo-linear"), tiny.SETTINGS)
    program = Program(task, config, 8, 1)
    given: Any = (np.bool_(True), np.bool_(True), np.float32(0), np.int32(1))
    seeds, moments, ended = jax.jit(program.sample)(program.start([0, 1]), Plan(*given))
    was_left = np.asarray(moments.qpos)[..., 0] < 0.0
    assert was_left.any()
    assert not was_left.all()
    assert np.asarray(moments.terminated)[was_left].all()
    assert np.asarray(moments.ends)[was_left].all()
    assert (np.asarray(moments.reward)[was_left] == 0.0).all()
    assert (np.asarray(moments.next_state) == np.asarray(moments.state))[was_left].all()
    np.testing.assert_array_equal(ended.lost, was_left.sum(axis=(0, 2)))
    for leaf in jax.tree.leaves((seeds.worlds, moments, ended)):
        assert np.isfinite(leaf).all()
