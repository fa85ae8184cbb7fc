"""A task on its way to another process: all that it takes to make its environment, as bytes.

An environment may be a class of the user's script or notebook, which no other process can import:
cloudpickle sends its code along. The bytes go between our own live processes only; nothing that was
read from a file is ever unpacked.
"""

import contextlib
import dataclasses
import linecache
import os
import pickle
import sys
from typing import Any

import cloudpickle
import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from moie.environments import tasks
from moie.environments.faults import said
from moie.errors import InputError

_EVERYWHERE = ("gymnasium.", "pybullet_envs_gymnasium")
"""Beginnings of the entry points that other processes know by themselves."""


def pack(env_id: str) -> bytes:
    """Bytes for `unpack` in a process that has not run the user's `gymnasium.register`: the task's
    specification, the user's others (an environment may make another by its id), and the lines of
    notebook cells, for tracebacks."""
    spec = tasks.spec_of(env_id)
    try:
        own = cloudpickle.dumps(_portable(spec))
    except Exception as error:  # the user's own objects may raise anything
        raise InputError(
            f"{spec.id} cannot be sent to the processes that simulate: {said(error)}; an "
            "environment should make such a thing itself, not be given it when it is registered"
        ) from error
    return pickle.dumps((own, _others(spec), _sources()))


def unpack(packed: bytes) -> EnvSpec:
    """The task's specification; it is registered here too."""
    own, others, sources = pickle.loads(packed)
    linecache.cache.update(sources)
    for other in others:
        with contextlib.suppress(Exception):  # it may never be needed
            theirs = pickle.loads(other)
            gym.registry.setdefault(theirs.id, theirs)
    spec = pickle.loads(own)
    gym.registry[spec.id] = spec
    return spec


def _portable(spec: EnvSpec) -> EnvSpec:
    """Classes of modules by their name, so that nothing is imported before it is needed; what
    another process could not import, because it is in the user's script, as itself."""
    entry: Any = spec.entry_point
    if isinstance(entry, str):
        home, _, path = entry.partition(":")
        own = getattr(sys.modules[home], path, None) if home == "__main__" else None
        return spec if own is None else dataclasses.replace(spec, entry_point=own)
    home, path = getattr(entry, "__module__", ""), getattr(entry, "__qualname__", "")
    if home != "__main__" and path and getattr(sys.modules.get(home), path, None) is entry:
        return dataclasses.replace(spec, entry_point=f"{home}:{path}")
    return spec


def _others(spec: EnvSpec) -> list[bytes]:
    """The user's other specifications, where they can be sent."""
    packed = []
    for other in gym.registry.values():
        if other.id != spec.id and not str(other.entry_point).startswith(_EVERYWHERE):
            with contextlib.suppress(Exception):  # it may never be needed
                packed.append(cloudpickle.dumps(_portable(other)))
    return packed


def _sources() -> dict[str, Any]:
    """Lines of code that are in no file."""
    return {name: kept for name, kept in linecache.cache.items() if not os.path.exists(name)}
