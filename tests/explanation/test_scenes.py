"""Robots stay in the picture, wherever they walk."""

import numpy as np
import pytest

from moie.explanation.scenes import STILL, Stage
from tests.simulators import needs


@needs("mujoco")
@pytest.mark.parametrize("task", ["Hopper-v5", "HalfCheetah-v5", "Ant-v5"])
def test_mujocos_robots_are_seen_far_away(task: str) -> None:
    with Stage(task, STILL) as stage:
        stage.begin(0)
        (near,) = stage.picture()
        base = stage.env.unwrapped
        qpos, qvel = base.data.qpos.copy(), base.data.qvel.copy()  # type: ignore[attr-defined]
        qpos[0] += 100.0
        base.set_state(qpos, qvel)  # type: ignore[attr-defined]
        (far,) = stage.picture()
        # The floor's squares are elsewhere; without the robot hardly any colour of it is left.
        robot = np.ptp(near.astype(int), axis=2) > 60
        seen = np.ptp(far.astype(int), axis=2) > 60
        assert robot.sum() > 200
        assert seen.sum() > 0.5 * robot.sum()
