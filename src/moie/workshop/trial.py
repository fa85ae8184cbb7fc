"""Try: the changed policy and the original on the same seeds, in the background."""

import threading
from collections.abc import Callable
from typing import Any

from moie.errors import MoieError, Stopped
from moie.policy.mixture import Mixture
from moie.surgery.price import Change, acts_alike, measure
from moie.system import n_cores

SEED = 1_000_000
"""That of `moie evaluate` and `moie edit`."""


class Trial:
    """Episodes of two policies, in a thread and in processes of their own. `tell` is called from
    that thread with what the page is told."""

    def __init__(
        self,
        policies: tuple[Mixture, Mixture],
        version: int,
        episodes: int,
        tell: Callable[[dict[str, Any]], None],
    ):
        self._policies, self._version, self._episodes = policies, version, episodes
        self._tell, self._stop, self._told = tell, threading.Event(), -1
        self._total = episodes * (2 if acts_alike(*policies) else 4)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to end; it does within a moment."""
        self._stop.set()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped("stopped")

    def _done(self, count: int) -> None:
        if count != self._told:
            self._told = count
            self._tell({"type": "try", "state": "running", "done": count, "total": self._total})

    def _run(self) -> None:
        try:
            # A core is left to the page's simulator.
            workers = max(1, n_cores() - 1)
            self._done(0)
            price = measure(*self._policies, self._episodes, SEED, workers, self._check, self._done)
        except Stopped:
            self._tell({"type": "try", "state": "stopped"})
        except MoieError as error:
            self._tell({"type": "try", "state": "failed", "text": str(error)})
        except Exception as error:  # the user's own code may raise anything
            self._tell(
                {"type": "try", "state": "failed", "text": f"{type(error).__name__}: {error}"}
            )
        else:
            self._tell(
                {
                    "type": "try",
                    "state": "done",
                    "version": self._version,
                    "episodes": self._episodes,
                    "seed": SEED,
                    "text": str(price),
                    "sampled": _told(price.sampled),
                    "mean": _told(price.mean),
                }
            )


def _told(change: Change) -> dict[str, Any]:
    return {
        "before": change.before.mean,
        "after": change.after.mean,
        "difference": change.difference,
        "error": change.standard_error,
    }
