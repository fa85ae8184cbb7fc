"""The algorithms: one record for each, which all others read. It needs no jax: the functions that
learn are loaded when a run starts. `docs/adding_an_algorithm.md` says how to add one."""

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moie.errors import InputError, require

if TYPE_CHECKING:
    from moie.learn.algorithm import Method

MIXTURE = frozenset({"experts", "temperature"})
SELECTION = frozenset({"bound", "selection"})
FLOOR = frozenset({"entropy_fraction", "entropy_fall"})
DASHED, DASH_DOT = (0, (4, 1.5)), (0, (5, 1.2, 1, 1.2))


@dataclass(frozen=True)
class Algorithm:
    """Facts about an algorithm that are known without running it."""

    name: str
    """The name in `--algorithm` and in files."""
    title: str
    """The name in figures and tables, where the number of experts follows."""
    about: str
    """A phrase for the help of `--algorithm`."""
    method: str
    """MODULE:NAME of its `learn.algorithm.Method`, the functions that learn."""
    uses: frozenset[str]
    """Groups of settings, and single ones, that it looks at, of those in `OPTIONAL`; all algorithms
    look at all others."""
    colour: str
    marker: str = "h"
    line: Any = "-"
    """Line style of its curves, in Matplotlib's terms."""
    title_end: str = ""
    """The end of the title, after the number of experts."""
    has_visited_prototypes: bool = False
    """Whether the prototypes of its policy are states that were visited."""
    is_baseline: bool = True
    """Whether it is there to compare with: its curves are thinner."""
    is_scaled: bool = False
    """Whether it works in scaled units on the paper's tasks, too: features standardised unless the
    user says otherwise, actions in halves of their range always."""
    preset: tuple[tuple[str, Any], ...] = ()
    """Settings of a run, with defaults that differ from everyone else's."""

    @property
    def has_experts(self) -> bool:
        """Whether its policy is a mixture of experts."""
        return self.uses >= MIXTURE

    def load(self) -> "Method":
        """The functions that learn; imports jax."""
        import jax

        module, name = self.method.split(":")
        # It may be asked for while a step is traced: arrays of the module must be no tracers.
        with jax.ensure_compile_time_eval():
            return getattr(import_module(module), name)


SHIPPED = (
    Algorithm(
        name="moie",
        title="moie",
        about="the paper's mixture of interpretable experts",
        method="moie.learn.mixture:MIXTURE",
        uses=MIXTURE | SELECTION | FLOOR | {"update"},
        colour="#d55e00",
        marker="o",
        has_visited_prototypes=True,
        is_baseline=False,
    ),
    Algorithm(
        name="crisp",
        title="crisp",
        about="a mixture that may be taken at its word",
        method="moie.learn.crisp:CRISP",
        uses=MIXTURE | SELECTION | {"crisp", "schedule"},
        colour="#7a0177",
        marker="*",
        has_visited_prototypes=True,
        is_baseline=False,
        is_scaled=True,
        # An untrained policy hardly moves some features: look wider.
        preset=(("scaling_batches", 4), ("scaling_hold", 10)),
    ),
    Algorithm(
        name="ppo",
        title="PPO",
        about="PPO on a network",
        method="moie.learn.baselines:PPO",
        uses=frozenset({"ppo", "network"}),
        colour="#0072b2",
        marker="s",
    ),
    Algorithm(
        name="trpo",
        title="TRPO",
        about="TRPO on a network",
        method="moie.learn.baselines:TRPO",
        uses=frozenset({"trpo", "network"}),
        colour="#009e73",
        marker="^",
    ),
    Algorithm(
        name="trpo-linear",
        title="TRPO linear",
        about="TRPO on a linear map",
        method="moie.learn.baselines:TRPO_LINEAR",
        uses=frozenset({"trpo"}),
        colour="#7d8590",
        marker="v",
        line=(0, (1, 1.2)),
    ),
    Algorithm(
        name="ppo-diffproto",
        title="PPO diffproto",
        about="PPO on a mixture, its prototypes learned by gradient",
        method="moie.learn.baselines:PPO_DIFFPROTO",
        uses=MIXTURE | {"ppo"},
        colour="#56b4e9",
        marker="D",
        line=DASHED,
    ),
    Algorithm(
        name="trpo-diffproto",
        title="TRPO diffproto",
        about="TRPO on a mixture, its prototypes learned by gradient",
        method="moie.learn.baselines:TRPO_DIFFPROTO",
        uses=MIXTURE | {"trpo"},
        colour="#cc79a7",
        marker="P",
        line=DASHED,
    ),
    Algorithm(
        name="ppo-diffproto-entropy",
        title="PPO diffproto",
        title_end=" + entropy",
        about="ppo-diffproto with moie's entropy floor",
        method="moie.learn.baselines:PPO_DIFFPROTO_ENTROPY",
        uses=MIXTURE | FLOOR | {"ppo"},
        colour="#7b5fb8",
        marker="X",
        line=DASH_DOT,
    ),
    Algorithm(
        name="trpo-diffproto-entropy",
        title="TRPO diffproto",
        title_end=" + entropy",
        about="trpo-diffproto with moie's entropy floor",
        method="moie.learn.baselines:TRPO_DIFFPROTO_ENTROPY",
        uses=MIXTURE | FLOOR | {"trpo"},
        colour="#b8860b",
        marker="p",
        line=DASH_DOT,
    ),
)
DEFAULT = "moie"
OPTIONAL = frozenset[str]().union(*(one.uses for one in SHIPPED))
"""Groups of settings, and single settings, that not every algorithm uses."""
_known = {one.name: one for one in SHIPPED}


def names() -> tuple[str, ...]:
    """Names of all algorithms, in the order of figures and tables."""
    return tuple(_known)


def algorithm(name: Any) -> Algorithm:
    """The record of an algorithm; InputError where there is none of that name."""
    require(name in names(), "algorithm", name, f"one of {', '.join(names())}")
    return _known[name]


def register(new: Algorithm) -> None:
    """Add an algorithm for as long as this process lives; InputError where it cannot be."""
    is_name = re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", new.name)
    require(is_name, "algorithm", new.name, "words like 'my-own'")
    if _known.get(new.name, new) != new:
        raise InputError(f"algorithm {new.name}: there is another one of that name")
    if unknown := sorted(new.uses - OPTIONAL):
        expected = f"some of {', '.join(sorted(OPTIONAL))}"
        raise InputError(f"uses is {', '.join(unknown)}, expected {expected}")
    require(re.fullmatch(r"[\w.]+:\w+", new.method), "method", new.method, "MODULE:NAME")
    _known[new.name] = new
