"""Settings: to JSON and back, each checked, the presets as the paper has them."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from moie import api
from moie.environments.catalogue import TASKS
from moie.errors import InputError
from moie.learn.config import LearnerConfig
from moie.runs.config import (
    RunConfig,
    from_json,
    settings_of,
    to_json,
    with_schedule,
    with_settings,
)
from moie.runs.presets import PAPER, preset
from tests.simulators import needs

CHANGED = with_settings(
    RunConfig("Pendulum-v1"), {"seed": 3, "hidden": (8, 4), "bound": 0.1, "experts": 5}
)


def test_json_round_trip() -> None:
    for config in (RunConfig("Hopper-v5"), CHANGED, *(preset(task, 0) for task in PAPER)):
        assert from_json(json.loads(json.dumps(to_json(config)))) == config


def test_every_setting_has_a_name_of_its_own() -> None:
    def count(kind: type) -> int:
        fields = dataclasses.fields(kind)
        return sum(count(f.type) if dataclasses.is_dataclass(f.type) else 1 for f in fields)

    assert len(settings_of(RunConfig)) == count(RunConfig)


def test_settings_are_replaced_by_name() -> None:
    assert CHANGED.learner.critic.hidden == (8, 4)
    assert CHANGED.learner.trust_region.bound == 0.1
    assert CHANGED.learner.update == LearnerConfig().update


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("bound", 1, 1.0),
        ("hidden", [8], (8,)),
        ("seed", np.int64(3), 3),
        ("bound", np.float32(0.5), 0.5),
        ("standardise", False, False),
    ],
)
def test_values_that_mean_the_same_are_taken(name: str, given: Any, expected: Any) -> None:
    config = with_settings(RunConfig("Pendulum-v1"), {name: given})
    *way, last = settings_of(RunConfig)[name]
    part: Any = config
    for step in way:
        part = getattr(part, step)
    assert getattr(part, last) == expected
    assert type(getattr(part, last)) is type(expected)
    json.dumps(to_json(config))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"exprets": 5}, "unknown setting 'exprets'; did you mean experts"),
        ({"zzz": 5}, "unknown setting 'zzz'; settings are"),
        ({"policy": 5}, "unknown setting 'policy'"),
        ({"experts": "ten"}, "experts is 'ten', expected a value of type int"),
        ({"experts": 1.5}, "experts is 1.5, expected a value of type int"),
        ({"experts": True}, "experts is True, expected a value of type int"),
        ({"experts": None}, "experts is None, expected a value of type int"),
        ({"standardise": 1}, "standardise is 1, expected a value of type bool"),
        ({"bound": "0.1"}, "bound is '0.1', expected a value of type float"),
        ({"hidden": 8}, "hidden is 8, expected a value of type tuple"),
        ({"hidden": ["a"]}, "hidden is 'a', expected a value of type int"),
        ({"hidden": []}, "hidden is (), expected at least one layer"),
        ({"experts": 0}, "experts is 0, expected at least 1"),
        ({"experts": 9, "batch_steps": 8}, "experts is 9, expected no more than batch_steps (8)"),
        ({"seed": -1}, "seed is -1, expected zero or more"),
        ({"seed": 2**63}, "expected zero or more, below 2**63"),
        ({"iterations": 0}, "iterations is 0, expected at least 1"),
        ({"batch_steps": 1, "experts": 1}, "batch_steps is 1, expected at least 2"),
        ({"bound": float("nan")}, "bound is nan, expected a finite number"),
        ({"discount": 1.1}, "discount is 1.1, expected a number above 0, at most 1"),
        ({"evaluation_every": -1}, "evaluation_every is -1, expected 0 or more"),
        ({"evaluation_episodes": 0}, "evaluation_episodes is 0, expected at least 1"),
    ],
)
def test_a_bad_setting_is_named_with_what_was_expected(settings: dict, words: str) -> None:
    with pytest.raises(InputError) as caught:
        with_settings(RunConfig("Pendulum-v1"), settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, [], {}, {"task": 5}, {"seed": 1}])
def test_json_that_is_no_configuration_is_refused(content: Any) -> None:
    with pytest.raises(InputError, match="names no task"):
        from_json(content)


# --- presets -------------------------------------------------------------------------------------


@needs("bullet")
@needs("box2d")
def test_the_papers_tasks_have_the_papers_settings() -> None:
    # Section 5 of the design, from the paper's experiments.
    assert set(PAPER) == {task.id for task in TASKS}
    for task in TASKS:
        config = api.task_preset(task.short)
        small = task.short in ("inverted-pendulum", "bipedal-walker", "pendulum")
        assert config.task == task.id
        assert config.iterations == (500 if small else 1000)
        assert (config.batch_steps, config.standardise) == (3008, False)
        policy, trust, update = (
            config.learner.policy,
            config.learner.trust_region,
            config.learner.update,
        )
        warm = task.short in ("halfcheetah", "ant")
        assert policy.temperature == (0.33 if warm else 1.0)
        assert policy.initial_std == 1.0
        assert (trust.bound, trust.entropy_fraction, trust.entropy_fall) == (0.015, 0.5, 0.0075)
        assert (update.epochs, update.minibatch) == (20, 64)
        assert (update.weight_rate, update.action_rate, update.std_rate) == (0.01, 0.01, 0.001)
        selection, critic = config.learner.selection, config.learner.critic
        assert (selection.candidates, selection.runners_up) == (2000, 3)
        assert (selection.delete_share, selection.reweight_share) == (0.5, 0.66)
        assert (critic.hidden, critic.critic_rate, critic.critic_epochs) == ((64, 64), 3e-4, 10)
        assert (critic.critic_minibatch, critic.discount, critic.decay) == (64, 0.99, 0.95)
        assert config.evaluation.evaluation_episodes == 5


def test_other_tasks_are_standardised_and_their_temperature_follows_the_features() -> None:
    config = api.task_preset("tests.probes:Scales-v0")
    assert config.standardise
    assert config.learner.policy.temperature == pytest.approx(2.7 / 3)
    assert config.learner.policy.experts == 10


@needs("bullet")
@needs("box2d")
def test_crisp_standardises_every_task_and_keeps_the_papers_budget() -> None:
    for task in TASKS:
        config = api.task_preset(task.short, "crisp")
        paper = api.task_preset(task.short, "moie")
        assert config.learner.algorithm == "crisp"
        assert config.standardise
        assert config.scales_actions
        assert not paper.scales_actions
        assert config.iterations == paper.iterations
        assert config.learner.policy.temperature == pytest.approx(2.7 / len(task.features))
        assert (config.scaling_batches, config.scaling_hold) == (4, 10)


def test_crisps_schedules_keep_their_length() -> None:
    config = with_settings(api.task_preset("pendulum", "crisp"), {"iterations": 40})
    assert config.progress(10) == 0.25
    started = with_schedule(config)
    assert started.schedule == 40
    longer = dataclasses.replace(started, iterations=80)
    assert with_schedule(longer) == longer
    assert [longer.progress(i) for i in (10, 40, 60)] == [0.25, 1.0, 1.0]
    moie = api.task_preset("pendulum", "moie")
    assert with_schedule(moie) == moie


def test_crisp_knows_the_action_range_of_raw_features_too() -> None:
    config = with_settings(api.task_preset("pendulum", "crisp"), {"standardise": False})
    assert config.scales_actions
