"""Wrappers with which seeded episodes repeat, bit for bit, whatever ran before them.

Simulators keep more between episodes than their `reset` returns to the start.
"""

from typing import Any

import gymnasium as gym


class FreshWorld(gym.Wrapper):
    """BipedalWalker with a new Box2D world in each episode, so that episodes repeat.

    The environment keeps one world and only destroys its bodies. The world's broad phase hands the
    freed proxy numbers out again in another order and sorts new contacts by them; the solver and
    the contact listener follow the order of contacts. So the same episode, run after two others,
    can differ from its first step on, by 1e-2. Gymnasium's LunarLander makes a new world for the
    same symptom (Farama-Foundation/Gymnasium issue 728).
    """

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        walker: Any = self.unwrapped
        walker._destroy()
        walker.world = type(walker.world)()
        return self.env.reset(**kwargs)


class ClearContacts(gym.Wrapper):
    """A PyBullet environment that starts each episode without contacts of the one before.

    `reset` restores a saved state, but contact points between parts that did not touch when it was
    saved stay in Bullet's cache; where the robot happens to restart close to such a point it
    survives, and the first step differs in its last digits (about one in 500 of Hopper's episodes).
    With the robot far above the floor for one collision check, Bullet drops them all.
    """

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        base: Any = self.unwrapped
        if getattr(base, "stateId", -1) >= 0:  # else nothing would bring the robot down again
            for body in base.robot.objects:
                base._p.resetBasePositionAndOrientation(body, (0, 0, 1000), (0, 0, 0, 1))
            base._p.performCollisionDetection()
        return self.env.reset(**kwargs)
