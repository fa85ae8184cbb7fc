"""A check at the start of a run that the environment follows its seed."""

import numpy as np

from moie.errors import EnvironmentFault
from moie.policy.base import Policy
from moie.rollout.episode import Job, Purpose
from moie.rollout.pool import Pool

STEPS = 3
"""Steps of the two episodes that are compared."""


def ignored_seed(pool: Pool, policy: Policy, run_seed: int) -> str | None:
    """A warning about an environment that does not repeat its beginning; None where it does. An
    episode that fails here may never be needed, so that is passed over; but not one that no worker
    survives: to wait for as many again would take long."""
    jobs = [Job(run_seed, Purpose.REPEATING, 0, 0, STEPS + more) for more in (0, 1)]
    pool.queue(policy, jobs)
    try:
        first, second = (episode.observations for episode in pool.collect(jobs))
    except EnvironmentFault as fault:
        if "step" not in fault.record:
            raise
        return None
    both = min(len(first), len(second))
    step, feature = np.unravel_index(np.argmax(first[:both] != second[:both]), first[:both].shape)
    one, other = first[step, feature], second[step, feature]
    if one == other:
        return None
    when = f"after step {step}" if step else "at the start"
    return (
        f"warning: {policy.task} does not repeat: two episodes after reset(seed={jobs[0].seed}) "
        f"with the same actions differ {when}, {policy.feature_names[feature]} is {one:.6g} and "
        f"{other:.6g}. Results will depend on chance and on the number of workers, and prototypes "
        "cannot be replayed. The environment should call super().reset(seed=seed) and take all "
        "that is random from self.np_random"
    )
