"""The arguments of each command: fields are options, their docstrings the help."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from moie.runs.config import RunConfig

RunPath = tyro.conf.Positional[Path]


def _help(text: str, metavar: str | None = None) -> Any:
    return tyro.conf.arg(help=text, metavar=metavar)


# Options that several commands have.
RunOrFile = Annotated[RunPath, _help("A run directory or a policy file.")]
Workers = Annotated[
    int | None,
    _help("Processes that simulate; as many as there are cores without. Changes no result."),
]
Timeout = Annotated[
    float, _help("Seconds without a sign of life after which a worker is replaced.")
]
Packaged = Annotated[
    bool, _help("Step PyBullet's walkers as they are packaged. Slower; changes no result.")
]
TaskOfFile = Annotated[
    str | None,
    _help(
        "MODULE:ID, where the run's task is one that a module of yours registers: the module is "
        "looked for in the current folder too.",
        metavar="MODULE:ID",
    ),
]
TrustTask = Annotated[
    bool,
    _help(
        "Import the module of a task 'module:Id' that the run or the file names. It may execute "
        "anything: only for files that you trust."
    ),
]


@dataclass(frozen=True)
class Train:
    """Learn a policy; the values shown are this task's own."""

    config: RunConfig
    out: Path | None = None
    """The run directory, which must not exist; runs/TASK[-ALGORITHM][-kEXPERTS]-sSEED without."""
    steps: int | None = None
    """Environment steps to learn from, instead of --iterations."""
    workers: Workers = None
    worker_timeout: Timeout = 300.0
    packaged_env: Packaged = False


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped or killed, exactly where it would have gone."""

    run: RunPath
    """The run directory."""
    iterations: int | None = None
    """Learn up to this many iterations instead of those the run was started with."""
    task: TaskOfFile = None
    trust_task: TrustTask = False
    workers: Workers = None
    worker_timeout: Timeout = 300.0
    packaged_env: Packaged = False


@dataclass(frozen=True)
class Evaluate:
    """Measure a policy: return, length and distance, with sampled and with mean actions; for a
    mixture also how literally its program may be taken."""

    run: RunOrFile
    episodes: int = 20
    """Episodes of each kind."""
    seed: int = field(default=1_000_000)
    """Of the episodes."""
    task: TaskOfFile = None
    trust_task: TrustTask = False
    workers: Workers = None


@dataclass(frozen=True)
class Explain:
    """Write a report that shows what a policy does: program, pictures, figures, a player."""

    run: RunOrFile
    out: Path | None = None
    """The folder to write; RUN/explanation without one. An older explanation is replaced."""
    state: Path | None = None
    """Instead of the report: explain the action in one state, a JSON list or a .npy file."""
    episodes: int = 10
    """Episodes of each kind of actions."""
    actions: Literal["mean", "sampled"] = "mean"
    """Of the episodes that the report looks into."""
    seed: int = 2_000_000
    """Of the episodes."""
    loss: float = 0.05
    """Share of the return that pruning may cost."""
    pruning: bool = True
    """Whether to look for the smallest policy that is good enough."""
    pictures: bool = True
    """Whether to draw prototypes and a video."""
    task: TaskOfFile = None
    trust_task: TrustTask = False
    workers: Workers = None


@dataclass(frozen=True)
class Prune:
    """Remove the experts that a policy does not need, and measure what that costs."""

    run: RunOrFile
    loss: float = 0.05
    """Share of the return that may be lost; what is within the error of the comparison counts as
    no loss."""
    out: Path | None = None
    """The policy file to write; RUN/pruned.safetensors without one."""
    episodes: int = 10
    """Episodes of each kind of actions after each removal; twice as many confirm the choice."""
    seed: int = 2_000_000
    """Of the episodes."""
    task: TaskOfFile = None
    trust_task: TrustTask = False
    workers: Workers = None


@dataclass(frozen=True)
class Show:
    """Print a policy as a program of IF blocks, in order of use."""

    run: RunOrFile


@dataclass(frozen=True)
class Study:
    """Make all runs of a study, or go on with them: many tasks, learners and seeds."""

    study: Annotated[
        tyro.conf.Positional[str],
        _help(
            "The name of a study that comes with moie (paper-locomotion, paper-small, "
            "paper-diffproto, crisp, smoke), or a TOML file.",
            metavar="NAME",
        ),
    ]
    out: Path | None = None
    """The study's folder; runs/NAME without."""
    status: bool = False
    """Only say how far it is, wherever it runs."""
    address: str | None = None
    """Of the Ray cluster to join ("auto": the one of this machine); one is started here, and
    stopped at the end, without. All machines must see the study's folder."""
    cpus: int | None = None
    """Of the cluster that is started here; as many as there are cores without."""
    cpus_per_run: int = 1
    """CPUs, and simulating processes, that a run gets. Changes no result."""
    iterations: int | None = None
    """Go up to so many iterations in each run, for now; without this the study goes on to its own
    number."""
    tasks: tuple[str, ...] | None = None
    """Only these of the study's tasks."""
    algorithms: tuple[str, ...] | None = None
    """Only these of its algorithms."""
    experts: tuple[int, ...] | None = None
    """Only these of its numbers of experts; learners without experts stay."""
    seeds: tuple[int, ...] | None = None
    """Only these of its seeds."""
    worker_timeout: Timeout = 300.0


@dataclass(frozen=True)
class Compare:
    """Compare the runs of a study, or of any folder: figures, tables, one page."""

    paths: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        tyro.conf.arg(
            help="A folder of runs, or a file of curves or evaluations (.parquet). Several are "
            "compared together; a run that is in two of them counts where it went further.",
            metavar="PATH [PATH ...]",
            help_behavior_hint="(required)",
        ),
    ]
    out: Path | None = None
    """The folder to write; PATH/comparison without, where there is one path only. An older
    comparison is replaced."""
    steps: int | None = None
    """Compare after so many environment steps; where the shortest complete runs of a task end,
    without."""
