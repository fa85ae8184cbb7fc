"""Progress of many seeds in one line: quartiles of their returns."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from moie.runs.config import RunConfig
from moie.runs.progress import Progress, clock


class SwarmProgress:
    """Shows rows of the metrics of all seeds as they come."""

    def __init__(self, progress: Progress, config: RunConfig, n_seeds: int):
        self._progress, self._config, self._n_seeds = progress, config, n_seeds
        self._evaluated: dict[int, list[float]] = {}
        self._times: deque[tuple[int, float]] = deque(maxlen=50)

    @contextmanager
    def of(self, iteration: int) -> Iterator[None]:
        """While a swarm learns, from an iteration on."""
        self._times.append((iteration, time.monotonic()))
        with self._progress.of(self._config, iteration, _said(self._n_seeds)):
            yield

    def measured(self, rows: list[dict[str, Any]]) -> None:
        """Rows that are complete and may hold an evaluation."""
        for row in rows:
            if row.get("return_sampled") is not None:
                self._evaluated.setdefault(row["iteration"], []).append(row["return_sampled"])

    def final(self, rows: list[dict[str, Any]]) -> None:
        """The last row of each seed, with the returns of its final policy."""
        for kind in ("sampled", "mean"):
            names = {"Gymnasium": f"return_{kind}", "MJX": f"return_{kind}_mjx"}
            facts = [_quartiles(name, [row.get(of) for row in rows]) for name, of in names.items()]
            if any(facts):
                self._progress.note(f"final policies, {kind} actions: {'  '.join(facts)}")

    def show(self, rows: list[dict[str, Any]], done: int) -> None:
        """The rows of an iteration, one a seed."""
        self._times.append((done, time.monotonic()))
        (first, began), (last, now) = self._times[0], self._times[-1]
        seconds = (now - began) / max(last - first, 1)
        facts = [_quartiles("return", [row.get("return_batch") for row in rows])]
        if self._evaluated:
            facts.append(_quartiles("Gymnasium", list(self._evaluated[max(self._evaluated)])))
        speed = self._n_seeds * self._config.batch_steps / max(seconds, 1e-9)
        left = clock(seconds * (self._config.iterations - done))
        pace = f"{speed:,.0f} steps/s  {left} left"
        self._progress.advance(done, "  ".join(filter(None, facts)), pace)


def _said(n_seeds: int) -> str:
    return f"{n_seeds} seed{'' if n_seeds == 1 else 's'}"


def _quartiles(name: str, values: list[float | None]) -> str:
    """Median, and between which values half of the seeds are."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
    return f"{name} {middle:.0f} ({low:.0f} to {high:.0f})"
