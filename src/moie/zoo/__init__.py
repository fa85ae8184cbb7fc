"""Trained policies that come with the package. `moie.load("zoo:hopper")` loads one; `entries` has
what is known of each."""

from moie.zoo.catalogue import Entry, entries

__all__ = ["Entry", "entries"]
