"""Packages that only studies need."""

import importlib.util

from moie.errors import InputError


def need(*packages: str) -> None:
    """InputError if one of them is not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"studies and comparisons need {', '.join(missing)}, not installed: "
            "pip install 'moie[study]'"
        )
