"""The commands: they call the Python interface with their arguments and print the result."""

import argparse
import contextlib
import difflib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import tyro

from moie import api
from moie.cli.arguments import (
    Compare,
    Datasheet,
    Edit,
    Evaluate,
    Explain,
    Export,
    Prune,
    Resume,
    Show,
    Studio,
    Study,
    Swarm,
    Train,
    Zoo,
)
from moie.cli.help import command_help, train_help
from moie.errors import InputError
from moie.files import check_writable, make_place, typed, write_bytes
from moie.learn.config import LearnerConfig
from moie.runs.config import RunConfig
from moie.studies import interface
from moie.terminal import say, say_file

Arguments = TypeVar("Arguments")


def _wants_help(arguments: Sequence[str]) -> bool:
    return bool({"-h", "--help"} & set(arguments))


def _parse(
    kind: type[Arguments], arguments: Sequence[str], command: str, **options: Any
) -> Arguments:
    if _wants_help(arguments):
        say(command_help(command, kind))
        raise SystemExit(0)
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    program, said = f"moie {command}", io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(kind, args=arguments, prog=program, config=config, **options)
    except SystemExit:
        raise InputError(f"{_in_one_line(said.getvalue())}; see '{program} --help'") from None


def _in_one_line(box: str) -> str:
    """The mistake, and the nearest options, from the box that tyro draws around them."""
    parts = re.split(r"─{3,}", re.sub(r"[│╭╰╮╯]", " ", box))
    parts = [" ".join(part.split()) for part in parts if part.strip()]
    wrong = parts[1].removesuffix(".").removesuffix(" (required)") if len(parts) > 1 else box
    near = [re.findall(r"--[\w-]+", part) for part in parts if part.startswith("Perhaps you meant")]
    return wrong + (f"; nearest: {', '.join(near[0])}" if near and near[0] else "")


def train(arguments: Sequence[str]) -> None:
    """`moie train TASK ...`."""
    given = _training("train", Train, arguments, api.task_preset)
    _say_where(api.train_config(**_options(given)))


def swarm(arguments: Sequence[str]) -> None:
    """`moie swarm TASK ...`."""
    given = _training("swarm", Swarm, arguments, api.swarm_preset)
    runs = api.swarm_config(**_options(given))
    _say_swarm(runs[0].path.parent)


def _training(
    command: str,
    kind: type[Arguments],
    arguments: Sequence[str],
    preset_of: Callable[[str, str | None], RunConfig],
) -> Arguments:
    """The arguments of a command that trains: the task comes first, since the defaults depend on
    it."""
    has_task = bool(arguments) and not arguments[0].startswith("-")
    if not has_task and not _wants_help(arguments):
        raise InputError(
            f"the task is missing: moie {command} TASK [options]; see 'moie tasks' and "
            f"'moie {command} --help'"
        )
    algorithm = _algorithm_in(arguments)
    if not has_task:
        learner = LearnerConfig() if algorithm is None else LearnerConfig(algorithm)
        say(train_help(kind, None, RunConfig("TASK", learner=learner)))
        raise SystemExit(0)
    preset = preset_of(arguments[0], algorithm)
    if _wants_help(arguments):
        say(train_help(kind, arguments[0], preset))
        raise SystemExit(0)
    make: Any = kind
    return _parse(kind, arguments[1:], f"{command} {arguments[0]}", default=make(preset))


def _algorithm_in(arguments: Sequence[str]) -> str | None:
    """The value of --algorithm; other defaults depend on it."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--algorithm", default=None, nargs="?")
    return parser.parse_known_args(arguments)[0].algorithm


def _options(given: Any, *others: str) -> dict[str, Any]:
    """The arguments of a command, without `others`, as keyword arguments of the function that
    does its work."""
    names = [item.name for item in fields(given) if item.name not in others]
    return {name: getattr(given, name) for name in names}


def resume(arguments: Sequence[str]) -> None:
    """`moie resume RUN`."""
    from moie.accelerated.folder import is_swarm

    given = _parse(Resume, arguments, "resume")
    run = api.resume(given.run, **_options(given, "run"))
    if is_swarm(run.path):
        _say_swarm(run.path)
    else:
        _say_where(run)


def _say_swarm(path: Path) -> None:
    say(f"runs: {path}")
    say(f"compare them with: {typed('compare', path)}")


def _say_where(run: api.Run) -> None:
    say(f"run: {run.path}")
    say(f"look at it with: {typed('show', run.path)}")


def evaluate(arguments: Sequence[str]) -> None:
    """`moie evaluate RUN`."""
    given = _parse(Evaluate, arguments, "evaluate")
    say(api.evaluate(given.run, **_options(given, "run")))


def show(arguments: Sequence[str]) -> None:
    """`moie show RUN`."""
    given = _parse(Show, arguments, "show")
    text = api.show(given.run, format=given.format, everything=given.all)
    if given.format == "toml":
        say_file(text)
    else:
        say(text)


def datasheet(arguments: Sequence[str]) -> None:
    """`moie datasheet RUN`."""
    given = _parse(Datasheet, arguments, "datasheet")
    if given.out is not None:
        check_writable(given.out)
    made = api.datasheet(given.run, **_options(given, "run", "format", "json", "out"))
    if given.out is not None:
        make_place(given.out)
        write_bytes(given.out, made.html())
        say(f"page: {given.out}")
    elif given.json or given.format == "json":
        say_file(made.json())
    else:
        say(made)


def edit(arguments: Sequence[str]) -> None:
    """`moie edit RUN FILE`."""
    given = _parse(Edit, arguments, "edit")
    say(api.edit(given.run, **_options(given, "run")))


def explain(arguments: Sequence[str]) -> None:
    """`moie explain RUN`."""
    given = _parse(Explain, arguments, "explain")
    if given.state is None:
        say(f"report: {api.explain(given.run, **_options(given, 'run', 'state'))}")
        return
    from moie.policy.observation import read_state

    say(api.load(given.run).explain(read_state(given.state)))


def prune(arguments: Sequence[str]) -> None:
    """`moie prune RUN`."""
    from moie.explanation.table import pruning_table

    given = _parse(Prune, arguments, "prune")
    pruning, file = api.prune(given.run, **_options(given, "run"))
    say(pruning_table(pruning))
    say(f"policy: {file}")


def studio(arguments: Sequence[str]) -> None:
    """`moie studio RUN`."""
    given = _parse(Studio, arguments, "studio")
    api.studio(given.run, **_options(given, "run"))


def export(arguments: Sequence[str]) -> None:
    """`moie export RUN --to c`, `moie export --check DIR`."""
    given = _parse(Export, arguments, "export")
    if given.check is not None and given != Export(check=given.check):
        raise InputError("--check takes the folder of an export and nothing else")
    if given.check is not None:
        say(api.check_export(given.check))
        return
    if given.run is None or given.to is None:
        missing = "the run or policy file" if given.run is None else "the language"
        forms = "moie export RUN --to c|onnx|python|javascript, or moie export --check DIR"
        raise InputError(f"{missing} is missing: {forms}")
    ranges = {name: (low, high) for name, low, high in given.feature_range}
    if len(ranges) < len(given.feature_range):
        names = [name for name, _, _ in given.feature_range]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"--feature-range names '{twice}' more than once, expected one range")
    options = _options(given, "run", "check", "feature_range")
    folder = api.export(given.run, **options, feature_ranges=ranges)
    say(f"export: {folder}")
    say(f"check it with: {typed('export --check', folder)}")


def study(arguments: Sequence[str]) -> None:
    """`moie study NAME`."""
    given = _parse(Study, arguments, "study")
    if given.status:
        _say_status(given)
        return
    runs = interface.study(given.study, **_options(given, "study", "status"))
    say(f"runs: {runs.path}")
    say(f"compare them with: {typed('compare', runs.path)}")
    if runs.unfinished:
        lines = [f"  {one.name}: {one.error or one.state}" for one in runs.unfinished]
        raise InputError(
            "\n".join([f"{len(lines)} of {len(runs.statuses)} runs are not done", *lines])
        )


def _say_status(given: Study) -> None:
    from moie.studies.progress import report

    cluster = ("address", "cpus", "cpus_per_run", "worker_timeout")
    runs = interface.study_status(given.study, **_options(given, "study", "status", *cluster))
    say(report(runs.name, runs.statuses))
    for line in runs.misfits:
        say(f"  misfit   {line}")
    for line in runs.damaged:
        say(f"  damaged  {line}")
    if not runs.path.exists():
        say(f"  there is nothing at {runs.path} yet")


def compare(arguments: Sequence[str]) -> None:
    """`moie compare PATH ...`."""
    given = _parse(Compare, arguments, "compare")
    if not given.paths:
        raise InputError("a folder of runs or a file of curves is missing: moie compare PATH ...")
    page = interface.compare(*given.paths, **_options(given, "paths"))
    say(f"page: {page}")


def tasks(arguments: Sequence[str]) -> None:
    """`moie tasks`: the paper's tasks; any other Gymnasium id works too."""
    if arguments and arguments[0] not in ("-h", "--help"):
        raise InputError(f"moie tasks takes no arguments, got {' '.join(arguments)!r}")
    from moie.runs.presets import PAPER

    say(f"{'name':<18} {'id':<30} {'features':>8} {'actions':>8} {'iterations':>11}  needs")
    for task in api.tasks():
        iterations, _ = PAPER[task.id]
        needs = f"moie[{task.package_extra}]" if task.package_extra else "-"
        counts = f"{len(task.features):>8} {len(task.joints):>8} {iterations:>11}"
        say(f"{task.short:<18} {task.id:<30} {counts}  {needs}")
    say(
        "\nThese have the paper's settings. Any other Gymnasium id with Box observations and "
        "actions\nworks too ('Hopper-v5', 'my_module:MyEnv-v0'); its features are standardised."
    )


def zoo(arguments: Sequence[str]) -> None:
    """`moie zoo [NAME ...]`: the policies that come with moie."""
    from moie.zoo import table
    from moie.zoo.catalogue import find

    chosen = [find(name) for name in _parse(Zoo, arguments, "zoo").names]
    say("\n\n".join(map(table.details, chosen)) if chosen else table.listing())


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    command.__name__: command
    for command in (
        *(train, swarm, resume, evaluate, show, datasheet, explain, prune, edit, studio, export),
        *(study, compare, tasks, zoo),
    )
}


def run(arguments: Sequence[str]) -> None:
    """Find the command and run it."""
    name = arguments[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"commands are {', '.join(COMMANDS)}"
        raise InputError(f"unknown command {name!r}; {hint}")
    COMMANDS[name](arguments[1:])
