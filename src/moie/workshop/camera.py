"""Pictures that are drawn in little time: twenty-five a second leave a core half of its time."""

import contextlib
import importlib
from typing import Any

from gymnasium.envs.registration import EnvSpec

from moie.explanation.scenes import Stage

SIZE = (480, 360)


class LiveStage(Stage):
    """A stage without shadows and reflections, which take most of the time."""

    def __init__(self, task: EnvSpec):
        super().__init__(task, SIZE)
        base: Any = self.env.unwrapped
        self._mujoco: Any = getattr(base, "mujoco_renderer", None)
        self._is_plain = self._mujoco is None
        if self._mujoco is not None:
            self._mujoco.width, self._mujoco.height = SIZE

    def _drawn(self) -> Any:
        drawn = self.env.render()
        if self._is_plain:
            return drawn
        # The viewer, whose flags these are, is made by the first picture.
        self._is_plain = True
        with contextlib.suppress(AttributeError, ImportError):  # a later Gymnasium's
            flags = importlib.import_module("mujoco").mjtRndFlag
            scene = self._mujoco._get_viewer("rgb_array").scn
            scene.flags[flags.mjRND_SHADOW] = scene.flags[flags.mjRND_REFLECTION] = 0
        return self.env.render()
