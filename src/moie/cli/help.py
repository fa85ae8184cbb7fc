"""The pages of `moie COMMAND --help`. Options and their texts come from the dataclasses that hold
them: one place for the parser, the help and the code."""

import ast
import dataclasses
import inspect
import shutil
import textwrap
import types
import typing
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from moie.accelerated.catalogue import TASKS as SWARM_TASKS
from moie.cli.arguments import Swarm
from moie.learn.config import LearnerConfig
from moie.runs.config import EvaluationConfig, RunConfig

INDENT = 27
WIDEST = 100
WORDS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}
FIRST = (
    *(
        "algorithm",
        "experts",
        "seed",
        "seeds",
        "environments",
        "steps",
        "iterations",
        "out",
        "workers",
    ),
    *("evaluation_every", "evaluation_episodes", "batch_steps", "feature_names", "action_names"),
)
"""The options of `moie train` that most people need."""
HEADINGS = {
    "config": "Scale of features and actions",
    "policy": "Mixture policy",
    "trust_region": "Trust region and exploration",
    "update": "Gradient steps (moie)",
    "selection": "Search for prototypes (moie and crisp)",
    "crisp": "Crisp",
    "critic": "Value networks (all algorithms)",
    "network": "Network policy (ppo and trpo)",
    "ppo": "PPO and its variants",
    "trpo": "TRPO and its variants",
    "train": "Simulation",
}
BY_TASK = ("iterations", "temperature", "standardise", "scaling_batches", "scaling_hold")
"""Settings whose default follows from the task."""


@dataclass(frozen=True)
class Option:
    """One option, or one positional argument, as the help shows it."""

    name: str
    left: str
    """The option as it is typed."""
    right: str
    """Its meaning and its default."""
    is_positional: bool


def _typed(name: str, hint: Any, is_positional: bool) -> str:
    """An option as it is typed."""
    if is_positional:
        return _annotated(hint, "metavar") or name.upper()
    flag, kind = name.replace("_", "-"), _plain(hint)
    if kind is bool:
        return f"--{flag} / --no-{flag}"
    return f"--{flag} {_annotated(hint, 'metavar') or _word(kind)}"


def _shown(default: Any) -> str:
    """The default as text; empty where there is none or the help says it."""
    if default is None or default is dataclasses.MISSING or default == ():
        return ""
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, tuple):
        return " ".join(map(str, default))
    return f"{default:.4g}" if isinstance(default, float) else str(default)


def _annotated(hint: Any, *names: str) -> str:
    """The first text that annotations of a type have under one of these names: `help` and
    `metavar` are tyro's, `documentation` is `Doc`'s."""
    notes = getattr(hint, "__metadata__", ())
    texts = (getattr(note, name, None) for note in notes for name in names)
    return next(filter(None, texts), "")


def _plain(hint: Any) -> Any:
    """The type without annotations and without None."""
    while hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _plain(next(one for one in typing.get_args(hint) if one is not type(None)))
    return hint


def _word(kind: Any) -> str:
    """The placeholder of a value."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return "|".join(map(str, parts))
    if origin is tuple:
        word = _word(parts[0])
        return f"{word} [{word} ...]"
    return WORDS[kind]


def _docstrings(kind: type) -> dict[str, str]:
    """The string below each field of a dataclass and of those it inherits from."""
    texts = {}
    for one in filter(dataclasses.is_dataclass, kind.__mro__):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                texts[ast.unparse(field.target)] = ast.literal_eval(text.value)
    return texts


def options_of(kind: type, values: object = None, by_task: Container[str] = ()) -> list[Option]:
    """Options of a dataclass except those that are dataclasses; defaults are those of `values`.
    `by_task`: names of those whose default is not known before the task is."""
    texts, hints = _docstrings(kind), typing.get_type_hints(kind, include_extras=True)
    options = []
    # Inherited options come last.
    for field in sorted(dataclasses.fields(kind), key=lambda f: f.name not in kind.__annotations__):
        hint = hints[field.name]
        if dataclasses.is_dataclass(_plain(hint)) or (kind is RunConfig and field.name == "task"):
            continue
        text = texts.get(field.name) or _annotated(hint, "help", "documentation")
        default = field.default if values is None else getattr(values, field.name)
        shown = "depends on the task" if field.name in by_task else _shown(default)
        right = " ".join(f"{text} {f'(default: {shown})' if shown else ''}".split())
        is_required = field.default is dataclasses.MISSING and kind is not RunConfig
        is_positional = is_required or tyro.conf.Positional in getattr(hint, "__metadata__", ())
        left = _typed(field.name, hint, is_positional)
        options.append(Option(field.name, left, right, is_positional))
    return options


def _lines(options: list[Option], width: int) -> list[str]:
    lines = []
    for option in options:
        left, text = (
            f"  {option.left}",
            textwrap.wrap(option.right, width - INDENT, break_on_hyphens=False),
        )
        if len(left) > INDENT - 2:
            lines.append(left)
            left = ""
        lines.append(f"{left:<{INDENT}}{text[0]}" if text else left)
        lines += [" " * INDENT + line for line in text[1:]]
    return lines


def _page(usage: str, about: str, sections: dict[str, list[Option]]) -> str:
    width = min(shutil.get_terminal_size().columns, WIDEST)
    lines = [f"usage: {usage}", "", *textwrap.wrap(" ".join(about.split()), width)]
    for heading, options in sections.items():
        if options:
            lines += ["", f"{heading}:", *_lines(options, width)]
    return "\n".join(lines)


def command_help(command: str, kind: type) -> str:
    """The help of any command but train."""
    options = options_of(kind)
    given = [option for option in options if option.is_positional]
    usage = " ".join([f"moie {command}", *(option.left for option in given), "[options]"])
    rest = [option for option in options if not option.is_positional]
    return _page(usage, inspect.getdoc(kind) or "", {"Arguments": given, "Options": rest})


def train_help(kind: type, task: str | None, config: RunConfig) -> str:
    """The help of `moie train` and `moie swarm`, whose arguments are of this kind: the most used
    options first, then all others by subject."""
    learner, by_task = config.learner, BY_TASK if task is None else ()
    parts: dict[str, list[Option]] = {"config": options_of(RunConfig, config, by_task)}
    first = options_of(EvaluationConfig, config.evaluation) + options_of(LearnerConfig, learner)
    for item in dataclasses.fields(learner):
        part = getattr(learner, item.name)
        if dataclasses.is_dataclass(part):
            parts[item.name] = options_of(type(part), part, by_task)
    parts["train"] = [one for one in options_of(kind) if one.name != "config"]
    known = {one.name: one for options in (first, *parts.values()) for one in options}
    known.pop("seed" if kind is Swarm else "environments")
    sections = {"Most used options": [known[name] for name in FIRST if name in known]}
    for name, options in parts.items():
        sections[HEADINGS[name]] = [one for one in options if one.name not in FIRST]
    command = "train"
    about = "Train a policy. TASK is a short name that 'moie tasks' lists or any Gymnasium id."
    if kind is Swarm:
        command = "swarm"
        about = (
            "Train a policy with many seeds at once, on an accelerator if there is one. TASK is "
            f"{', '.join(SWARM_TASKS)}."
        )
    if task is None:
        about += f" 'moie {command} TASK --help' shows the defaults for a task."
    else:
        about += f" The defaults shown are those for {config.task} with {learner.algorithm}."
    return _page(f"moie {command} {task or 'TASK'} [options]", about, sections)
