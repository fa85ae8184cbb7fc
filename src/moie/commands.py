"""The commands: arguments to calls of the Python interface, results to text."""

import argparse
import contextlib
import difflib
import io
import math
import re
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import tyro

from moie import api
from moie.arguments import Compare, Evaluate, Explain, Prune, Resume, Show, Study, Train
from moie.errors import InputError
from moie.learn.config import require
from moie.runs.config import with_settings
from moie.runs.machinery import n_workers
from moie.runs.stopping import stoppable
from moie.studies import interface
from moie.terminal import say

if TYPE_CHECKING:
    from moie.runs.evaluation import Evaluation
    from moie.runs.truth import Truth

Arguments = TypeVar("Arguments")


def _parse(
    kind: type[Arguments], arguments: Sequence[str], command: str, **options: Any
) -> Arguments:
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    program, said = f"moie {command}", io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(kind, args=arguments, prog=program, config=config, **options)
    except SystemExit as stop:
        if stop.code:
            raise InputError(f"{_in_one_line(said.getvalue())}; see '{program} --help'") from None
        raise


def _in_one_line(box: str) -> str:
    """What is wrong, and the nearest options, from the box that tyro draws around them."""
    parts = re.split(r"─{3,}", re.sub(r"[│╭╰╮╯]", " ", box))
    parts = [" ".join(part.split()) for part in parts if part.strip()]
    wrong = parts[1].removesuffix(".").removesuffix(" (required)") if len(parts) > 1 else box
    near = [re.findall(r"--[\w-]+", part) for part in parts if part.startswith("Perhaps you meant")]
    return wrong + (f"; nearest: {', '.join(near[0])}" if near and near[0] else "")


def train(arguments: Sequence[str]) -> None:
    """`moie train TASK ...`: the task comes first, it decides on the defaults."""
    if not arguments or arguments[0].startswith("-"):
        wants_help = bool({"-h", "--help"} & set(arguments))
        line = "moie train TASK [settings]; see 'moie tasks' and 'moie train TASK --help'"
        if not wants_help:
            raise InputError(f"the task is missing: {line}")
        say(f"usage: {line}")
        return
    preset = api.task_preset(arguments[0], _algorithm_in(arguments))
    given = _parse(Train, arguments[1:], f"train {arguments[0]}", default=Train(preset))
    config = given.config
    if given.steps is not None:
        config = with_settings(config, {"iterations": api.iterations_for(given.steps, config)})
    run = api.train_config(
        config, given.out, given.workers, given.worker_timeout, given.packaged_env
    )
    _say_where(run)


def _algorithm_in(arguments: Sequence[str]) -> str | None:
    """What --algorithm says; it decides on the other defaults."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--algorithm", default=None, nargs="?")
    return parser.parse_known_args(arguments)[0].algorithm


def resume(arguments: Sequence[str]) -> None:
    """`moie resume RUN`."""
    given = _parse(Resume, arguments, "resume")
    _say_where(
        api.resume(
            given.run,
            iterations=given.iterations,
            trust_task=given.trust_task,
            workers=given.workers,
            worker_timeout=given.worker_timeout,
            packaged_env=given.packaged_env,
        )
    )


def _say_where(run: api.Run) -> None:
    say(f"run: {run.path}")
    say(f"look at it with: moie show {run.path}")


def evaluate(arguments: Sequence[str]) -> None:
    """`moie evaluate RUN`."""
    given = _parse(Evaluate, arguments, "evaluate")
    require(given.episodes >= 1, "episodes", given.episodes, "at least 1")
    require(given.seed >= 0, "seed", given.seed, "zero or more")
    workers = n_workers(given.workers)
    policy = api.load(given.run)
    api.check_consent(policy.task, given.trust_task, given.run)
    from moie.runs.truth import evaluate as measure

    with stoppable() as check:
        found, truth = measure(policy, given.episodes, given.seed, workers, check=check)
    say(f"{policy.task}: {given.episodes} episodes of each kind, seed {given.seed}")
    for one in found:
        line = f"  {one.kind:<7} actions: {_return(one)}"
        if len(one.returns) > 1:
            line += " (standard error)"
        lengths = f"{min(one.lengths)} to {max(one.lengths)}"
        line += f", length {sum(one.lengths) / len(one.lengths):.0f} ({lengths})"
        if one.distances is not None:
            line += f", distance {sum(one.distances) / len(one.distances):.2f} m"
        say(line)
    if truth is not None:
        say(_as_read(truth))


def _return(one: "Evaluation") -> str:
    """With its standard error, where there is one."""
    error = "" if math.isnan(one.standard_error) else f" ± {one.standard_error:.1f}"
    return f"return {one.mean:.1f}{error}"


def _as_read(truth: "Truth") -> str:
    """How literally a mixture may be taken."""
    from moie.runs.truth import SAID

    def share(part: "Evaluation") -> str:
        ratio, kept = truth.ratio(part), truth.kept(part)
        said = [] if ratio is None else [f"{ratio:.0%} of the whole"]
        said += [] if kept is None else [f"{kept:.0%} of its gain over the default action"]
        return f" ({', '.join(said)})" if said else ""

    alone, pair = (_return(part) + share(part) for part in (truth.alone, truth.pair))
    return (
        f"  read literally: in range {truth.in_range:.0%}, coverage {truth.coverage:.0%}, "
        f"attention {truth.attention:.1f} parts at a time\n"
        f"  leading part alone: {alone}\n"
        f"  leading pair: {pair}\n"
        f"  default action only: {_return(truth.default)}\n"
        f"  the program {SAID[truth.reading]}"
    )


def show(arguments: Sequence[str]) -> None:
    """`moie show RUN`."""
    given = _parse(Show, arguments, "show")
    from moie.explain.program import program

    say(program(api.load(given.run)))


def explain(arguments: Sequence[str]) -> None:
    """`moie explain RUN`."""
    given = _parse(Explain, arguments, "explain")
    if given.state is not None:
        from moie.explain.state import read_state

        say(api.load(given.run).explain(read_state(given.state)))
        return
    report = api.explain(
        given.run,
        out=given.out,
        episodes=given.episodes,
        seed=given.seed,
        loss=given.loss,
        actions=given.actions,
        pruning=given.pruning,
        pictures=given.pictures,
        trust_task=given.trust_task,
        workers=given.workers,
    )
    say(f"report: {report}")


def prune(arguments: Sequence[str]) -> None:
    """`moie prune RUN`."""
    given = _parse(Prune, arguments, "prune")
    found, file = api.prune(
        given.run,
        loss=given.loss,
        out=given.out,
        episodes=given.episodes,
        seed=given.seed,
        trust_task=given.trust_task,
        workers=given.workers,
    )
    from moie.explain.program import pruning_table

    say(pruning_table(found))
    say(f"policy: {file}")


def study(arguments: Sequence[str]) -> None:
    """`moie study NAME`."""
    given = _parse(Study, arguments, "study")
    options: dict[str, Any] = {"out": given.out, "iterations": given.iterations}
    options |= {name: getattr(given, name) for name in ("tasks", "algorithms", "experts", "seeds")}
    if given.status:
        from moie.studies.progress import report

        found = interface.study_status(given.study, **options)
        say(report(found.name, found.statuses))
        for line in found.misfits:
            say(f"  misfit   {line}")
        if not found.path.exists():
            say(f"  there is nothing at {found.path} yet")
        return
    found = interface.study(
        given.study,
        address=given.address,
        cpus=given.cpus,
        cpus_per_run=given.cpus_per_run,
        worker_timeout=given.worker_timeout,
        **options,
    )
    say(f"runs: {found.path}")
    say(f"compare them with: moie compare {shlex.quote(str(found.path))}")
    if found.unfinished:
        lines = [f"  {one.name}: {one.error or one.state}" for one in found.unfinished]
        raise InputError(
            "\n".join([f"{len(lines)} of {len(found.statuses)} runs are not done", *lines])
        )


def compare(arguments: Sequence[str]) -> None:
    """`moie compare PATH ...`."""
    given = _parse(Compare, arguments, "compare")
    if not given.paths:
        raise InputError("a folder of runs or a file of curves is missing: moie compare PATH ...")
    say(f"page: {interface.compare(*given.paths, out=given.out, steps=given.steps)}")


def tasks(arguments: Sequence[str]) -> None:
    """`moie tasks`: the paper's tasks; any other Gymnasium id works too."""
    if arguments and arguments[0] not in ("-h", "--help"):
        raise InputError(f"moie tasks takes no arguments, got {' '.join(arguments)!r}")
    from moie.presets import PAPER
    from moie.rollout.task_names import TASKS

    say(f"{'name':<18} {'id':<30} {'features':>8} {'actions':>8} {'iterations':>11}  needs")
    for task in TASKS:
        iterations, _ = PAPER[task.id]
        needs = f"moie[{task.package_extra}]" if task.package_extra else "-"
        counts = f"{len(task.features):>8} {len(task.joints):>8} {iterations:>11}"
        say(f"{task.short:<18} {task.id:<30} {counts}  {needs}")
    say(
        "\nThese have the paper's settings. Any other Gymnasium id with Box observations and "
        "actions\nworks too ('Hopper-v5', 'my_module:MyEnv-v0'); its features are standardised."
    )


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "show": show,
    "explain": explain,
    "prune": prune,
    "study": study,
    "compare": compare,
    "tasks": tasks,
}


def run(arguments: Sequence[str]) -> None:
    """Find the command and run it."""
    name = arguments[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"commands are {', '.join(COMMANDS)}"
        raise InputError(f"unknown command {name!r}; {hint}")
    COMMANDS[name](arguments[1:])
