"""The function that opens the studio."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from moie.api.policies import find_task, load
from moie.errors import InputError, require
from moie.terminal import printable, say

if TYPE_CHECKING:
    from moie.workshop.opened import Opened


def studio(
    path: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    port: int = 0,
    browser: bool = True,
    seed: int = 0,
    episodes: int = 20,
    timeout: float = 10.0,
    task: str | None = None,
    trust_task: bool = False,
) -> None:
    """Open a page where a policy acts live and can be changed by hand. Returns after Ctrl-C.

    Args:
        path: a run directory, a policy file or a name such as "zoo:hopper".
        out: the policy file that "Save" proposes; default: RUN/edited.safetensors, for a policy of
            the zoo NAME-edited.safetensors in the current folder. Nothing is written before that.
        port: the port to listen on; default: one that is free.
        browser: open the page in a browser.
        seed: seed of the first episode.
        episodes: episodes of each kind, before and after, of "Try".
        timeout: seconds after which a simulator that does not respond is replaced.
        task, trust_task: see `moie.evaluate`.
    """
    from moie.environments import specs
    from moie.extras import need
    from moie.runs.config import whole
    from moie.runs.disk.directory import target_beside
    from moie.surgery.to_toml import mixture

    need("starlette", "uvicorn", "websockets", what="the studio needs", extra="studio")
    port, seed = whole("port", port, 0), whole("seed", seed, 0)
    require(port < 2**16, "port", port, "a number below 65536")
    require(seed < 2**31, "seed", seed, "a number below 2147483648")
    require(timeout > 0, "timeout", timeout, "a positive number of seconds")
    policy = mixture(load(path))
    find_task(policy.task, task, trust_task, path)
    target = target_beside(Path(path), "edited.safetensors", None if out is None else Path(out))
    from moie.workshop.opened import Opened

    opened = Opened(
        title=printable(str(path)),
        policy=policy,
        spec=specs.pack(policy.task),
        out=target,
        seed=seed,
        episodes=whole("episodes", episodes),
        silence=timeout,
    )
    _serve(opened, port, browser)


def _serve(opened: Opened, port: int, browser: bool) -> None:
    """Serve the pages until Ctrl-C."""
    from moie.workshop.server import Studio

    try:
        server = Studio(opened, port)
    except OSError as error:
        raise InputError(f"cannot listen on port {port}: {error.strerror or error}") from error
    say(f"studio: {server.address}")
    say("Ctrl-C ends it; nothing is written before you press Save")
    if browser:
        import webbrowser  # starts processes: policies can be loaded where that is impossible

        webbrowser.open(server.address)
    server.serve()
    say("studio closed")
