"""Callbacks of the user's: they hear of every row of the metrics, and may stop the run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moie.errors import Stopped, StoppedByCallback
from moie.learn.config import require

Callback = Callable[[Mapping[str, Any]], bool | None]
"""Called with each row of `metrics.jsonl`; False stops the run."""


def check_callbacks(callbacks: Sequence[Callback]) -> None:
    """InputError unless they are functions in a list."""
    is_list = isinstance(callbacks, Sequence)
    good = is_list and all(callable(one) for one in callbacks)
    require(good, "callbacks", callbacks, "a list of functions")


class Listeners:
    """The callbacks of a run."""

    def __init__(self, callbacks: Sequence[Callback] = ()):
        self._callbacks = tuple(callbacks)

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def tell(self, row: Mapping[str, Any]) -> None:
        """Every callback hears of the row; then the run stops if one of them wants it to."""
        wishes: list[Stopped] = []
        for callback in self._callbacks:
            try:
                if callback(dict(row)) is False:
                    wishes.append(StoppedByCallback("stopped by a callback"))
            except Stopped as wish:
                wishes.append(wish)
        if wishes:
            raise wishes[0]
