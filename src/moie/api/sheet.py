"""The function that makes a data sheet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from moie.api.policies import find_task, load

if TYPE_CHECKING:
    from moie.policy.base import Policy
    from moie.sheet.sheet import Datasheet


def datasheet(
    policy: str | os.PathLike[str] | Policy,
    *,
    episodes: int = 0,
    seed: int = 3_000_000,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
) -> Datasheet:
    """What is proved of a policy's commands for all states, and what was measured. `print` the
    result, or use its `facts`, its `json()` and its `html()`.

    Args:
        policy: a run directory, a policy file, a name such as "zoo:hopper", or a policy.
        episodes: fresh episodes with mean actions whose return is measured; 0: none. A policy whose
            file holds no visited states is simulated for 5 episodes in any case.
        seed: seed of the episodes.
        task, trust_task, workers: see `moie.evaluate`.
    """
    from moie.policy.base import Policy
    from moie.policy.mixture import Mixture
    from moie.runs.config import whole
    from moie.sheet.sheet import datasheet as make
    from moie.stopping import stoppable
    from moie.system import n_cores

    episodes, seed = whole("episodes", episodes, 0), whole("seed", seed, 0)
    count = n_cores() if workers is None else whole("workers", workers)
    where = "the policy" if isinstance(policy, Policy) else policy
    given = policy if isinstance(policy, Policy) else load(policy)
    if episodes or (isinstance(given, Mixture) and given.visited is None):
        find_task(given.task, task, trust_task, where)
    with stoppable():
        return make(given, episodes, seed, count)
