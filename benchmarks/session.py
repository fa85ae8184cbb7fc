"""A training session in one process, for benchmarks: sample, learn, go on."""

import math

import jax

from moie.core.batch import Batch
from moie.environments import tasks
from moie.learn import learner
from moie.learn.learner import LearnerState, Report
from moie.learn.runtime import prepare
from moie.rollout.episode import Job, Purpose, lay_end_to_end, run_episode
from moie.runs import presets
from moie.runs.config import with_settings
from moie.runs.deployment import deploy, first_policy, scaling_of

prepare()  # jax is imported by now, but has not run anything


class Session:
    """The presets on one of the paper's tasks; features are left as they come."""

    def __init__(self, task: str, experts: int, *, algorithm: str = "moie", packaged: bool = False):
        settings = {"experts": experts, "algorithm": algorithm}
        self.config = with_settings(presets.preset(task, 0, algorithm), settings)
        self.env = tasks.make(task, packaged=packaged)
        spaces = (self.env.observation_space, self.env.action_space)
        sizes = (math.prod(space.shape or ()) for space in spaces)
        key = jax.random.key(self.config.seed)
        self.state = learner.start_jit(self.config.learner, *sizes, key=key)
        self.policy = first_policy(self.config, self.env, self.state.policy)
        self.scaling = scaling_of(self.policy, self.config)

    def sample(self) -> Batch:
        """The next iteration's batch."""
        iteration, n_steps = int(self.state.iteration), self.config.batch_steps
        self.episodes = []
        while (done := sum(episode.length for episode in self.episodes)) < n_steps:
            number = len(self.episodes)
            job = Job(self.config.seed, Purpose.TRAINING, iteration, number, n_steps - done)
            self.episodes.append(run_episode(self.env, self.policy, job))
        self.steps = lay_end_to_end(self.episodes, n_steps)
        return jax.device_put(self.scaling.to_learner(self.steps))

    def take(self, state: LearnerState, report: Report) -> None:
        """Go on with what was learned from the batch."""
        self.state = state
        self.policy = deploy(self.policy, state, report, self.scaling, self.steps, self.episodes, 0)
