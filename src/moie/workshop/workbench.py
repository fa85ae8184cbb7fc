"""The policy on the workbench: the draft that a person changes, its history, who is silent.

Experts are known by ids that never change: those of the policy that was opened have their numbers,
one that is added gets the next. Muted experts, and all others while one is solo, act with weight
zero. That is no change to the draft and not undone; but it is what acts, is tried and is saved.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moie.errors import InputError, require
from moie.explanation.origins import origin_said, use_said
from moie.policy.base import Array
from moie.policy.handwork import Record, listed, named
from moie.policy.mixture import Mixture
from moie.policy.reading import Reading
from moie.present.style import PALETTE, REST
from moie.surgery.changes import changes
from moie.surgery.draft import Draft, built, problems
from moie.surgery.parts import factors
from moie.workshop.live import Acting

MOST_HISTORY = 500
MOST_EXPERTS = 200
OF_EXPERTS = {"action": "actions", "prototype": "prototypes", "weight": "weights"}
"""The arrays of a draft with a row, or a number, for each expert."""


@dataclass(frozen=True, eq=False)
class Present:
    """A draft, and the id of each of its experts."""

    draft: Draft
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Past:
    """What undo or redo goes back to, and the change between, in words."""

    present: Present
    said: str


class Workbench:
    """A policy that is being changed by hand. What is refused raises InputError and changes
    nothing."""

    def __init__(self, original: Mixture):
        self.original = original
        self.now = Present(Draft.of(original), tuple(range(original.n_experts)))
        self.muted: set[int] = set()
        self.solo: int | None = None
        self.version = 0
        self._next_id = original.n_experts
        self._undo: list[Past] = []
        self._redo: list[Past] = []
        self._held: tuple[Any, ...] | None = None  # the part that a slider holds
        self._reading = Reading(original)
        self._rank = {k: rank for rank, k in enumerate(self._reading.order)}
        self._saved = self._acting_parts()
        self._build()

    # --- what acts -----------------------------------------------------------------------------

    def _build(self) -> None:
        self.version += 1
        self.policy = built(self.sounding, self.original)
        self.acting = Acting(self.policy.without_origins(), self.version, self.now.ids)

    @property
    def silent(self) -> set[int]:
        """The ids of experts that do not act."""
        others = {k for k in self.now.ids if self.solo is not None and k != self.solo}
        return {k for k in self.now.ids if k in self.muted} | others

    @property
    def sounding(self) -> Draft:
        """The draft as it acts: silent experts have no weight."""
        draft, silent = self.now.draft, self.silent
        if not silent:
            return draft
        weights = draft.weights.copy()
        weights[[k in silent for k in self.now.ids]] = 0.0
        return replace(draft, weights=weights)

    def _acting_parts(self) -> tuple[Any, ...]:
        return self.now, frozenset(self.silent)

    def mark_saved(self) -> None:
        """What acts now is on the disk."""
        self._saved = self._acting_parts()

    # --- changes -------------------------------------------------------------------------------

    def _place(self, expert: int) -> int:
        if expert not in self.now.ids:
            raise InputError(f"there is no expert {expert}; there are {list(self.now.ids)}")
        return self.now.ids.index(expert)

    def _checked(self, draft: Draft) -> Draft:
        if found := problems(draft, self.original):
            raise InputError(found[0])
        return draft

    def _change(self, present: Present, said: str, held: tuple[Any, ...] | None = None) -> None:
        """Replace the present; while a slider is held, all that it does is one change."""
        if held is None or held != self._held:
            self._undo = [*self._undo[-MOST_HISTORY + 1 :], Past(self.now, said)]
        elif self._undo:
            self._undo[-1] = Past(self._undo[-1].present, said)
        self._redo, self._held, self.now = [], held, present
        self._build()

    def set(
        self, part: str, value: Any, expert: int | None, index: int | None, final: bool
    ) -> None:
        """Set one number, or a label. `final`: the slider was released."""
        draft, where = self.now.draft, (part, expert, index)
        what = part
        if part == "temperature":
            draft = replace(draft, temperature=float(value))
        elif part == "metric":
            name = self._name_of(self.original.feature_names, index)
            metric = factors(draft.metric, len(self.original.feature_names)).copy()
            metric[index] = value
            draft, what = replace(draft, metric=metric), f"metric of {name}"
        else:
            require(expert is not None, "expert", expert, "the id of an expert")
            i = self._place(int(expert or 0))
            draft, what = self._expert_set(draft, i, part, value, index)
            what = f"{self._name(i)}: {what}"
        self._change(replace(self.now, draft=self._checked(draft)), what, where)
        if final:
            self._held = None
            if self._undo and not self._differs(self._undo[-1].present.draft, draft):
                self.now = self._undo.pop().present
                self._build()

    def _expert_set(
        self, draft: Draft, i: int, part: str, value: Any, index: int | None
    ) -> tuple[Draft, str]:
        """A draft with one part of expert i set, and what was set, in words."""
        if part == "label":
            labels = (*draft.labels[:i], str(value).strip(), *draft.labels[i + 1 :])
            return replace(draft, labels=labels), "label"
        rows: Any = getattr(draft, OF_EXPERTS[part]).copy()
        if part == "weight":
            rows[i] = value
            return replace(draft, weights=rows), "weight"
        is_action = part == "action"
        names = self.original.action_names if is_action else self.original.feature_names
        name = self._name_of(names, index)
        rows[i, index] = value
        return replace(draft, **{OF_EXPERTS[part]: rows}), f"{part} of {name}"

    def _name_of(self, names: tuple[str, ...], index: int | None) -> str:
        if index is None or not 0 <= index < len(names):
            raise InputError(f"index is {index}, expected a number from 0 to {len(names) - 1}")
        return names[index]

    @staticmethod
    def _differs(one: Draft, other: Draft) -> bool:
        arrays = ("prototypes", "actions", "weights")
        same = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        n = one.prototypes.shape[1]
        same &= np.array_equal(factors(one.metric, n), factors(other.metric, n))
        return not same or one.labels != other.labels or one.temperature != other.temperature

    def delete(self, expert: int) -> None:
        """Take an expert away."""
        i, now = self._place(expert), self.now
        said = f"{self._name(i)} deleted"
        draft = _taken(now.draft, [j for j in range(len(now.ids)) if j != i])
        present = Present(self._checked(draft), (*now.ids[:i], *now.ids[i + 1 :]))
        self.muted.discard(expert)
        self.solo = None if self.solo == expert else self.solo
        self._change(present, said)

    def add(self, state: Array) -> int:
        """Add an expert that does in a state what is done there now; its id."""
        draft, k = self.now.draft, self._next_id
        require(len(self.now.ids) < MOST_EXPERTS, "experts", MOST_EXPERTS, "no more than that")
        action = np.clip(self.policy.means(state[None, :]), *self.policy.bounds)
        weights = np.append(draft.weights, max(1.0, float(np.median(draft.weights))))
        draft = replace(
            draft,
            labels=(*draft.labels, ""),
            prototypes=np.concatenate([draft.prototypes, state[None, :]]),
            actions=np.concatenate([draft.actions, action]),
            weights=weights,
            sources=(*draft.sources, None),
        )
        present = Present(self._checked(draft), (*self.now.ids, k))
        self._next_id += 1
        self._change(present, f"expert {k} added")
        return k

    def back_to_original(self) -> None:
        """All as it was opened."""
        ids = tuple(range(self.original.n_experts))
        self._change(Present(Draft.of(self.original), ids), "back to the original")

    def undo(self) -> None:
        """Take the last change back."""
        self._travel(self._undo, self._redo, "undo")

    def redo(self) -> None:
        """Make the change that was taken back."""
        self._travel(self._redo, self._undo, "do again")

    def _travel(self, here: list[Past], there: list[Past], what: str) -> None:
        if not here:
            raise InputError(f"there is nothing to {what}")
        past = here.pop()
        there.append(Past(self.now, past.said))
        self.now, self._held = past.present, None
        self.solo = self.solo if self.solo in self.now.ids else None
        self._build()

    def mute(self, expert: int, on: bool) -> None:
        """Silence an expert, or have it act again."""
        self._place(expert)
        (self.muted.add if on else self.muted.discard)(expert)
        self._build()

    def set_solo(self, expert: int, on: bool) -> None:
        """Silence all others, or have them act again."""
        self._place(expert)
        if on or self.solo == expert:
            self.solo = expert if on else None
        self._build()

    # --- what the page is told -----------------------------------------------------------------

    def _name(self, i: int) -> str:
        """What an expert is called: by its id, which it keeps."""
        return named(f"expert {self.now.ids[i]}", self.now.draft.labels[i])

    def colour(self, expert: int) -> str:
        """The colour of an expert: those of the report for the most used, grey for all others."""
        rank = self._rank.get(expert, expert)
        return PALETTE[rank] if rank < len(PALETTE) else REST

    def _expert(self, i: int, records: list[Record]) -> dict[str, Any]:
        k, draft = self.now.ids[i], self.now.draft
        source = draft.sources[i]
        changed = {one["part"] for one in records if one["expert"] == i}
        earlier = () if source is None else self.original.by_hand(source)
        origin = "made by hand"
        if source is not None and "prototype" not in changed:
            origin = origin_said(self.original, source)
        return {
            "id": k,
            "name": self._name(i),
            "label": draft.labels[i],
            "colour": self.colour(k),
            "weight": float(draft.weights[i]),
            "prototype": draft.prototypes[i].tolist(),
            "action": draft.actions[i].tolist(),
            "origin": origin,
            "use": "" if source is None else use_said(self._reading, source),
            "changed": sorted(changed | set(earlier)),
            "muted": k in self.muted,
            "solo": k == self.solo,
            "silent": k in self.silent,
        }

    def _in_order(self) -> list[int]:
        """The experts in order of use, as `moie show` has them; those that were added come last."""
        rank = [self._rank.get(k, len(self._rank) + k) for k in self.now.ids]
        return sorted(range(len(rank)), key=rank.__getitem__)

    def _listed(self, records: list[Record]) -> list[str]:
        """Changes in sentences, about experts by their ids."""
        ids, labels = self.now.ids, [""] * self._next_id
        for k, label in zip(ids, self.now.draft.labels, strict=True):
            labels[k] = label
        by_id = [
            one if one["expert"] is None else one | {"expert": ids[one["expert"]]}
            for one in records
        ]
        return listed(by_id, labels)

    def told(self) -> dict[str, Any]:
        """All that the page shows of the policy."""
        draft, n = self.now.draft, len(self.original.feature_names)
        records = changes(draft, self.original)
        original = self.original
        return {
            "type": "policy",
            "version": self.version,
            "temperature": draft.temperature,
            "metric": factors(draft.metric, n).tolist(),
            "radii": self.policy.radii.tolist(),
            "experts": [self._expert(i, records) for i in self._in_order()],
            "original": {
                "temperature": original.temperature,
                "metric": factors(original.metric, n).tolist(),
            },
            "undo": self._undo[-1].said if self._undo else None,
            "redo": self._redo[-1].said if self._redo else None,
            "changes": self._listed(records),
            "unsaved": self._saved != self._acting_parts(),
            "silent": len(self.silent),
        }


def _taken(draft: Draft, some: list[int]) -> Draft:
    """A draft of some of its experts."""
    return replace(
        draft,
        labels=tuple(draft.labels[i] for i in some),
        prototypes=draft.prototypes[some],
        actions=draft.actions[some],
        weights=draft.weights[some],
        sources=tuple(draft.sources[i] for i in some),
    )
