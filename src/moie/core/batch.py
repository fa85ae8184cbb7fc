"""The record that crosses layers: one iteration's transitions, episodes laid end to end."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float


class Batch(NamedTuple):
    """N transitions in the learner's units (features and actions scaled, see `rollout.scaling`).

    `terminated` and `episode_end` never meet in one flag: only the first ends the return.
    """

    states: Float[Array, "N d"]
    next_states: Float[Array, "N d"]
    taken: Float[Array, "N A"]
    rewards: Float[Array, " N"]
    terminated: Bool[Array, " N"]  # the step led to a terminal state
    episode_end: Bool[Array, " N"]  # last step of its episode, for whatever reason
