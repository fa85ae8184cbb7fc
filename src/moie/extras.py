"""Packages that only some commands need."""

import importlib.util

from moie.errors import InputError


def need(*packages: str, what: str = "studies and comparisons need", extra: str = "study") -> None:
    """InputError if one of them is not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"{what} {', '.join(missing)}, not installed: pip install 'moie[{extra}]'")
