"""The arguments of each command: fields are options, their docstrings the help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from moie.runs.config import RunConfig, whole

RunPath = tyro.conf.Positional[Path]


def _help(text: str, metavar: str | None = None) -> Any:
    return tyro.conf.arg(help=text, metavar=metavar)


# Options that several commands have.
RUN_OR_FILE = "A run directory, a policy file, or zoo:NAME, a policy that 'moie zoo' lists."
RunOrFile = Annotated[RunPath, _help(RUN_OR_FILE)]
Workers = Annotated[
    int | None,
    _help("Simulation processes; default: number of cores. Does not change the result."),
]
Timeout = Annotated[
    float, _help("Seconds after which a simulation process that does not respond is replaced.")
]
Packaged = Annotated[
    bool,
    _help("Step PyBullet's walkers with their original code. Slower; does not change the result."),
]
Steps = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: whole("steps", words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    ),
]


@dataclass(frozen=True, kw_only=True)
class WithTask:
    """Options of the commands that simulate the task of a run or a file."""

    task: Annotated[str | None, tyro.conf.arg(metavar="MODULE:ID")] = None
    """The run's task, if a module of yours registers it. The module may be in the current
    folder."""
    trust_task: bool = False
    """Import the module of a task 'module:Id' that the run or the file names. It may run any code:
    use this only for files that you trust."""
    workers: Workers = None


@dataclass(frozen=True)
class Train:
    """Train a policy."""

    config: RunConfig
    out: Path | None = None
    """The run directory, which must not exist; default: runs/TASK[-ALGORITHM][-kEXPERTS]-sSEED."""
    steps: Steps | None = None
    """Environment steps to learn from (1e6 is accepted too), rounded up to whole batches; overrides
    --iterations."""
    workers: Workers = None
    worker_timeout: Timeout = 300.0
    packaged_env: Packaged = False


@dataclass(frozen=True)
class Swarm:
    """Train a policy with many seeds at once, on an accelerator."""

    config: RunConfig
    seeds: str = "25"
    """How many seeds, counted from 0, or which: 0,3,7."""
    out: Path | None = None
    """The folder of the swarm, which must not exist; each seed is a run in it; default:
    runs/TASK[-ALGORITHM][-kEXPERTS]-swarm."""
    steps: Steps | None = None
    """Environment steps that each seed learns from (1e6 is accepted too), rounded up to whole
    batches; overrides --iterations."""
    environments: int | None = None
    """Environments of each seed, side by side; a divisor of --batch-steps; default: the largest
    one up to 100."""
    at_once: int | None = None
    """Seeds that learn side by side; default: all."""
    workers: Workers = None
    worker_timeout: Timeout = 300.0


@dataclass(frozen=True)
class Resume(WithTask):
    """Continue a run that was stopped or killed. It ends with the same policy as if it had never
    stopped."""

    run: RunPath
    """The run directory, or the folder of a swarm."""
    iterations: int | None = None
    """Train up to this many iterations; default: as many as the run was started for."""
    worker_timeout: Timeout = 300.0
    packaged_env: Packaged = False


@dataclass(frozen=True)
class Evaluate(WithTask):
    """Measure a policy: return, length and distance, with sampled and with mean actions; for a
    mixture also how literally its program may be read."""

    run: RunOrFile
    episodes: int = 20
    """Episodes with sampled actions, and as many with mean actions."""
    seed: int = 1_000_000
    """Random seed of the episodes."""


@dataclass(frozen=True)
class Explain(WithTask):
    """Write a report that shows what a policy does: program, pictures, figures, a player."""

    run: RunOrFile
    out: Path | None = None
    """The folder to write; default: RUN/explanation, or NAME-explanation here for a policy of the
    zoo. An older explanation is replaced."""
    state: Path | None = None
    """Explain the action in one state instead of writing a report: a JSON list or a .npy file."""
    episodes: int = 10
    """Episodes with sampled actions, and as many with mean actions."""
    actions: Literal["mean", "sampled"] = "mean"
    """Which of the episodes the report looks into, by their kind of actions."""
    seed: int = 2_000_000
    """Random seed of the episodes."""
    loss: float = 0.05
    """Fraction of the return that pruning may cost."""
    most_episodes: int = 2000
    """Pruning gives up on a comparison after so many episodes of each kind."""
    pruning: bool = True
    """Look for the smallest policy that is good enough."""
    pictures: bool = True
    """Draw the prototypes and a video."""


@dataclass(frozen=True)
class Prune(WithTask):
    """Remove the experts that a policy does not need, and measure what that costs."""

    run: RunOrFile
    loss: float = 0.05
    """Fraction of the return that may be lost; less than 0.01 counts as 0.01."""
    out: Path | None = None
    """The policy file to write; default: RUN/pruned.safetensors, or NAME-pruned.safetensors here
    for a policy of the zoo."""
    episodes: int = 10
    """Episodes with sampled actions, and as many with mean actions, that show which states the
    policy visits; each comparison begins with as many others."""
    most_episodes: int = 2000
    """Most episodes of each kind in a comparison; without a verdict by then it is undecided, and
    the search ends."""
    seed: int = 2_000_000
    """Random seed of the episodes."""


@dataclass(frozen=True)
class Show:
    """Print a policy as a program of IF blocks, in order of use."""

    run: RunOrFile
    format: Literal["text", "toml"] = "text"
    """text: the program; toml: a file that a person can change and 'moie edit' reads back."""
    all: bool = False
    """Print the features and experts that hardly count, too, and more digits."""


@dataclass(frozen=True)
class Datasheet(WithTask):
    """Print what is proved of a policy's commands for all states (their range, who can lead where,
    their slopes), how much its sensors may be wrong, and its size."""

    run: RunOrFile
    format: Literal["text", "json"] = "text"
    """text: sentences and tables; json: all figures."""
    json: bool = False
    """The same as --format json."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.html")] = None
    """Write a page instead, which prints on one sheet of A4."""
    episodes: int = 0
    """Fresh episodes with mean actions whose return is measured; 100 take minutes. 0: none."""
    seed: int = 3_000_000
    """Random seed of the episodes."""


@dataclass(frozen=True)
class Edit(WithTask):
    """Change a policy by hand, and measure what that costs."""

    run: RunOrFile
    file: Annotated[
        tyro.conf.Positional[Path],
        _help("The policy as 'moie show RUN --format toml' prints it, with your changes.", "FILE"),
    ]
    out: Path | None = None
    """The policy file to write; default: RUN/edited.safetensors, or NAME-edited.safetensors here
    for a policy of the zoo."""
    episodes: int = 20
    """Episodes with sampled actions, and as many with mean actions, before and after, on the same
    seeds; 0: measure nothing."""
    seed: int = 1_000_000
    """Random seed of the episodes."""


@dataclass(frozen=True)
class Studio:
    """Open a page where a policy acts live and can be changed by hand. It is served to this machine
    only, until Ctrl-C."""

    run: RunOrFile
    out: Path | None = None
    """The policy file that Save proposes; default: RUN/edited.safetensors, or
    NAME-edited.safetensors here for a policy of the zoo."""
    port: int = 0
    """The port to listen on; default: one that is free."""
    browser: bool = True
    """Open the page in a browser."""
    seed: int = 0
    """Seed of the first episode."""
    episodes: int = 20
    """Episodes with sampled actions, and as many with mean actions, before and after, of Try."""
    timeout: float = 10.0
    """Seconds after which a simulator that does not respond is replaced."""
    task: Annotated[str | None, tyro.conf.arg(metavar="MODULE:ID")] = None
    """The run's task, if a module of yours registers it. The module may be in the current
    folder."""
    trust_task: bool = False
    """Import the module of a task 'module:Id' that the run or the file names. It may run any code:
    use this only for files that you trust."""


@dataclass(frozen=True)
class Export:
    """Write a policy in another language, scaling and clipping included, with test vectors; or run
    the test vectors of an export again."""

    run: Annotated[
        tyro.conf.Positional[Path | None],
        _help(RUN_OR_FILE, metavar="RUN"),
    ] = None
    to: Annotated[str | None, tyro.conf.arg(metavar="c|onnx|python|javascript")] = None
    """The language. c: C99, one header and one source; onnx: a model for onnxruntime and others."""
    out: Path | None = None
    """The folder to write; default: RUN/export-TO, FILE-export-TO beside a policy file, or
    NAME-export-TO here for a policy of the zoo. An older export is replaced, unless something was
    added to it or changed."""
    precision: Annotated[str | None, tyro.conf.arg(metavar="float|double")] = None
    """The numbers of C; default: float."""
    name: str | None = None
    """What files, functions, types and macros are called; default: after the task."""
    safe_action: Annotated[tuple[float, ...] | None, tyro.conf.arg(metavar="FLOAT [FLOAT ...]")] = (
        None
    )
    """The action for an observation with a number that is NaN, infinite or outside the feature's
    range; default: the policy's default action, within the action range. A model of ONNX gives NaN
    instead."""
    feature_range: Annotated[
        tuple[tuple[str, float, float], ...],
        tyro.conf.arg(metavar="NAME LOW HIGH"),
        tyro.conf.UseAppendAction,
    ] = ()
    """A feature, and the lowest and the highest number of it that is used; once for each feature
    that has a range. Default: every finite number is used."""
    check: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Run the test vectors of the export in this folder instead. This runs the code in it: use it
    only for exports that you trust."""


@dataclass(frozen=True)
class Zoo:
    """List the trained policies that come with moie, or tell all that is known of some."""

    names: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        _help("Policies to tell everything about; default: list all.", metavar="[NAME ...]"),
    ]


@dataclass(frozen=True)
class Study:
    """Start all runs of a study (many tasks, algorithms and seeds), or continue them."""

    study: Annotated[
        tyro.conf.Positional[str],
        _help(
            "The name of a study that comes with moie (paper-locomotion, paper-small, "
            "paper-diffproto, crisp, smoke), or a TOML file.",
            metavar="NAME",
        ),
    ]
    out: Path | None = None
    """The study's folder; default: runs/NAME."""
    status: bool = False
    """Only show how far the study is, wherever it runs."""
    engine: Literal["ray", "swarm"] = "ray"
    """What makes the runs. ray: each by itself, on the processors of this machine or of a cluster;
    swarm: all seeds of a learner on a MuJoCo task at once, as 'moie swarm' does, on an accelerator
    of this machine; runs of other tasks then follow as with ray."""
    address: str | None = None
    """Address of the Ray cluster to join ("auto": the one on this machine); default: start one here
    and stop it at the end. All machines must see the study's folder."""
    cpus: int | None = None
    """CPUs of the cluster that is started here; default: number of cores."""
    cpus_per_run: int = 1
    """CPUs, and simulation processes, for each run. Does not change the result."""
    iterations: int | None = None
    """Train each run up to this many iterations for now; default: as many as the study declares."""
    tasks: tuple[str, ...] | None = None
    """Only these tasks of the study."""
    algorithms: tuple[str, ...] | None = None
    """Only these algorithms of the study."""
    experts: tuple[int, ...] | None = None
    """Only runs with these numbers of experts; algorithms without experts are kept."""
    seeds: tuple[int, ...] | None = None
    """Only these seeds of the study."""
    worker_timeout: Timeout = 300.0


@dataclass(frozen=True)
class Compare:
    """Compare the runs of a study, or of any folder: figures, tables, one page."""

    paths: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        tyro.conf.arg(
            help="A folder of runs, or a .parquet file of curves or evaluations. Several are "
            "compared together; of a run that is in two of them, the longer one counts.",
            metavar="PATH [PATH ...]",
            help_behavior_hint="(required)",
        ),
    ]
    out: Path | None = None
    """The folder to write; default, for a single path: PATH/comparison. An older comparison is
    replaced."""
    steps: Steps | None = None
    """Compare after this many environment steps (1e6 is accepted too); default: where the shortest
    complete runs of a task end."""
    algorithms: tuple[str, ...] | None = None
    """Compare only runs of these algorithms; default: all."""
