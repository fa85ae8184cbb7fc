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

    name: str  # the name in `--algorithm` and in files
    title: str  # the name in figures and tables, where the number of experts follows
    about: str  # a phrase for the help of `--algorithm`
    method: str  # MODULE:NAME of its `learn.algorithm.Method`, the functions that learn
    uses: frozenset[str]
    """Groups of settings, and single ones, that it looks at, of those in `OPTIONAL`; all algorithms
    look at all others."""
    colour: str
    marker: str = "h"
    line: Any = "-"  # line style of its curves, in Matplotlib's terms
    title_end: str = ""  # the end of the title, after the number of experts
    has_visited_prototypes: bool = False
    """Whether the prototypes of its policy are states that were visited."""
    is_baseline: bool = True  # whether it is there to compare with: its curves are thinner
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


def _diffproto(base: str, colour: str, marker: str, has_floor: bool = False) -> Algorithm:
    """PPO or TRPO on a mixture whose prototypes need not be visited states."""
    name = f"{base}-diffproto"
    return Algorithm(
        name=f"{name}-entropy" if has_floor else name,
        title=f"{base.upper()} diffproto",
        title_end=" + entropy" if has_floor else "",
        about=f"{name} with moie's entropy floor"
        if has_floor
        else f"{base.upper()} on a mixture, its prototypes learned by gradient",
        method=f"moie.learn.baselines:{base.upper()}_DIFFPROTO{'_ENTROPY' if has_floor else ''}",
        uses=MIXTURE | (FLOOR if has_floor else set()) | {base},
        colour=colour,
        marker=marker,
        line=DASH_DOT if has_floor else DASHED,
    )


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
    _diffproto("ppo", "#56b4e9", "D"),
    _diffproto("trpo", "#cc79a7", "P"),
    _diffproto("ppo", "#7b5fb8", "X", has_floor=True),
    _diffproto("trpo", "#b8860b", "p", has_floor=True),
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
