"""PyBullet's walkers, stepped with a handful of batched queries instead of dozens of single ones.

The packaged environments ask the simulator for each joint and each body part by itself, most of
them several times, and spend two thirds of a step in Python. Here a step asks once for all joints,
once for all links and once for all contacts with the floor, and sets all torques at once. Models,
resets and the terms of the reward are the package's own. Every number comes from the same
operations in the same order and precision, so observations and rewards are equal bit for bit: that
is why NumPy's functions are called where Python's own could round the last bit differently.
"""

from functools import partial
from inspect import isbuiltin
from math import inf, isnan, sqrt
from typing import Any

import gymnasium as gym
import numpy as np
import pybullet
from numpy.typing import NDArray
from pybullet_envs_gymnasium import gym_locomotion_envs as packaged

WALKERS = (
    packaged.HopperBulletEnv,
    packaged.Walker2DBulletEnv,
    packaged.HalfCheetahBulletEnv,
    packaged.AntBulletEnv,
)
BASE = -1  # Bullet's number for the link that a body hangs on
ANY_LINK = -2
TORQUE = pybullet.TORQUE_CONTROL
AT_LIMIT = float(np.float32(0.99))  # the package compares in single precision


def total(values):
    """The sum of up to 128 numbers as NumPy adds them up: eight rows, then what is left."""
    if len(values) < 8:
        result, *rest = values
    else:
        rows, n_rows = values[:8], len(values) // 8
        for row in range(1, n_rows):
            rows = [a + b for a, b in zip(rows, values[8 * row : 8 * row + 8], strict=True)]
        a, b, c, d, e, f, g, h = rows
        result, rest = ((a + b) + (c + d)) + ((e + f) + (g + h)), values[8 * n_rows :]
    for value in rest:  # not `sum`: from Python 3.12 on it corrects the rounding
        result += value
    return result


class BatchedWalker(gym.Wrapper):
    """One of `WALKERS` as `gymnasium.make` returns it, past its wrappers but with its time limit.

    What the package keeps between steps is kept where the package keeps it, so that rendering, and
    even the package's own `step`, go on from there.
    """

    def __init__(self, env: gym.Env):
        """`env` has been reset before, so the simulator runs and the floor is the last part."""
        super().__init__(env)
        walker: Any = env.unwrapped
        robot = walker.robot
        self.walker, self.robot = walker, robot
        self.client = walker._p._client
        for name, function in vars(pybullet).items():  # else looked up anew with each call
            # The client's own `disconnect` remembers that it did: a second one, whenever this is
            # collected, would end the simulation that has the number by then.
            if isbuiltin(function) and name != "disconnect":
                setattr(walker._p, name, partial(function, physicsClientId=self.client))
        (self.body,) = robot.objects
        ((self.ground, _),) = walker.ground_ids
        self.joints = [joint.jointIndex for joint in robot.ordered_joints]
        self.spans = [
            (joint.lowerLimit, joint.upperLimit - joint.lowerLimit)
            for joint in robot.ordered_joints
        ]
        self.gains = [robot.power * joint.power_coef for joint in robot.ordered_joints]
        self.feet = [foot.bodyPartIndex for foot in robot.feet]
        *parts, floor = robot.parts.values()
        self.links = [part.bodyPartIndex for part in parts if part.bodyPartIndex != BASE]
        self.torso_part = parts.index(robot.robot_body)
        self.torso_is_base = robot.robot_body.bodyPartIndex == BASE
        self.floor_xyz = floor.current_position().tolist()
        self.rotation, self.velocity, self.to_target = np.eye(3), np.zeros(3), np.zeros(2)
        self.speeds: NDArray[np.float32] = np.zeros(len(self.joints), np.float32)
        self.is_broken = False
        limit = env.spec.max_episode_steps if env.spec else None
        self.max_steps = inf if limit is None else limit
        self.n_steps: int | None = None  # before the first `reset`
        robot.calc_state = self.observe  # for the package's `reset`

    def reset(self, **kwargs: Any) -> tuple[NDArray[np.float32], dict[str, Any]]:
        self.n_steps, self.is_broken = 0, False
        return self.walker.reset(**kwargs)

    def render(self) -> Any:
        return self.walker.render()

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """`WalkerBaseBulletEnv.step`."""
        walker, robot, client = self.walker, self.robot, self.client
        if self.n_steps is None:
            raise gym.error.ResetNeeded("call reset before the first step")
        action = np.asarray(action)
        torques = [
            gain * (-1.0 if a < -1.0 else 1.0 if a > 1.0 else a)
            for gain, a in zip(self.gains, action.tolist(), strict=True)
        ]
        pybullet.setJointMotorControlArray(
            self.body, self.joints, TORQUE, forces=torques, physicsClientId=client
        )
        pybullet.stepSimulation(client)
        state = self.observe()  # the feet's contacts in it are those of the step before

        height = float(state[0]) + robot.initial_z
        walker._alive = alive = float(robot.alive_bonus(height, robot.body_rpy[1]))
        done = bool(walker._isDone()) or self.is_broken

        before = walker.potential
        walker.potential = robot.calc_potential()
        progress = walker.potential - before

        contacts = pybullet.getContactPoints(self.body, self.ground, ANY_LINK, BASE, client)
        touching = {contact[3] for contact in contacts}
        robot.feet_contact[:] = [foot in touching for foot in self.feet]

        singles, count = list(action), len(self.gains)
        power = total([abs(a * v) for a, v in zip(singles, self.speeds, strict=True)]) / count
        stall = total([a * a for a in singles]) / count
        electricity = walker.electricity_cost * float(power)
        electricity += walker.stall_torque_cost * float(stall)
        at_limit = walker.joints_at_limit_cost * robot.joints_at_limit
        walker.rewards = [alive, progress, electricity, at_limit, 0.0]
        reward = sum(walker.rewards)
        walker.reward += reward
        self.n_steps += 1
        return state, reward, done, self.n_steps >= self.max_steps, {}

    def observe(self) -> NDArray[np.float32]:
        """`WalkerBase.calc_state`, with what it leaves behind for the reward."""
        robot = self.robot
        joints: list[float] = []
        states = pybullet.getJointStates(self.body, self.joints, self.client)
        for (position, velocity, _, _), (lower, span) in zip(states, self.spans, strict=True):
            joints += (2 * (position - lower) / span - 1.0, 0.1 * velocity)

        (x, y, z), orientation, speed = self._torso_and_places()
        robot.body_rpy = roll, pitch, yaw = pybullet.getEulerFromQuaternion(orientation)
        if robot.initial_z is None:
            robot.initial_z = z

        to_target = self.to_target
        to_target[0] = ahead_y = robot.walk_target_y - y
        to_target[1] = ahead_x = robot.walk_target_x - x
        robot.walk_target_dist = sqrt(to_target.dot(to_target))
        robot.walk_target_theta = theta = np.arctan2(ahead_y, ahead_x)
        angle = theta - yaw

        rotation, cos, sin = self.rotation, np.cos(-yaw), np.sin(-yaw)
        rotation[0, 0] = rotation[1, 1] = cos
        rotation[0, 1], rotation[1, 0] = -sin, sin
        self.velocity[:] = speed
        vx, vy, vz = rotation.dot(self.velocity).tolist()
        numbers = [z - robot.initial_z, np.sin(angle), np.cos(angle), 0.3 * vx, 0.3 * vy, 0.3 * vz]
        numbers += (roll, pitch, *joints, *robot.feet_contact.tolist())
        state = np.array(numbers, np.float32)
        rounded = state.tolist()
        angles = rounded[8 : 8 + len(joints) : 2]
        robot.joints_at_limit = sum([abs(angle) > AT_LIMIT for angle in angles])
        robot.joint_speeds = self.speeds = state[9 : 8 + len(joints) : 2]
        if isnan(sum(rounded)) or max(rounded) > 5 or min(rounded) < -5:
            state = np.clip(state, -5, 5)
            self.is_broken = bool(np.isnan(state).any())
        return state

    def _torso_and_places(self):
        """The mean place of all parts with the torso's height, its orientation and its speed."""
        links = pybullet.getLinkStates(
            self.body,
            self.links,
            computeLinkVelocity=not self.torso_is_base,
            physicsClientId=self.client,
        )
        places = [link[0] for link in links]
        if self.torso_is_base:
            torso, orientation = pybullet.getBasePositionAndOrientation(self.body, self.client)
            speed, _ = pybullet.getBaseVelocity(self.body, self.client)
            places.insert(self.torso_part, torso)
        else:
            link = links[self.torso_part]
            torso, orientation, (forward, _, upward) = link[0], link[1], link[6]
            speed = (forward, link[7][2], upward)  # the package reads y from the turning speed
        places.append(self.floor_xyz)
        x, y, _ = zip(*places, strict=True)
        n_parts = len(places)
        self.robot.body_real_xyz = torso
        self.robot.body_xyz = place = (total(x) / n_parts, total(y) / n_parts, torso[2])
        return place, orientation, speed
