"""The process that simulates for one page: `python -m moie.workshop.simulator FD`.

It steps in real time, where the machine can, and draws as often as the page takes pictures: two are
on their way at most. It ends when the server hangs up, whatever it is doing.
"""

import contextlib
import json
import os
import signal
import struct
import sys
import threading
import time
from collections import deque
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any

from gymnasium.envs.registration import EnvSpec

from moie.environments import specs
from moie.environments.faults import place, said
from moie.errors import InputError
from moie.explanation.scenes import Lost
from moie.files import finite
from moie.rollout.worker import read_messages
from moie.workshop.live import Acting, Live, LiveStage, jpeg

INTERVAL = 1 / 25
"""Seconds between two pictures, at the least."""
HEARTBEAT = 0.5
"""Seconds between two signs of life, at the most."""
CREDIT = 2
"""Pictures that may be on their way."""
AT_THE_END = 1.0
"""Seconds for which the end of an episode is shown."""
SETTLED = 0.5
"""Seconds of playing before its pace is told."""
LATE = 0.2
"""Seconds by which steps may be late before the clock is set anew: slower than real time."""


def packed(header: dict[str, Any], picture: bytes = b"") -> bytes:
    """A message for the page: the header's length, the header, the picture."""
    text = json.dumps(finite(header), allow_nan=False).encode()
    return struct.pack(">I", len(text)) + text + picture


class Simulator:
    """Plays one episode after the other, as it is told."""

    def __init__(self, connection: Connection, inbox: SimpleQueue, task: EnvSpec, acting: Acting):
        self.connection, self.inbox, self.task = connection, inbox, task
        self.playing = self.loop = False
        self.speed, self.credit, self.frame = 1.0, CREDIT, 0
        self.last_sign = self.last_frame = self.clock = time.monotonic()
        self.drawing = 0.0
        self.recent: deque[float] = deque(maxlen=100)
        self.stale = self.moved = True
        self.live = Live(LiveStage(task), acting)
        self.ready("ready", "")

    def say(self, header: dict[str, Any], picture: bytes = b"") -> None:
        """Send a message to the page."""
        self.connection.send_bytes(packed(header, picture))
        self.last_sign = time.monotonic()

    def ready(self, state: str, text: str) -> None:
        """Say that there is an episode to look at."""
        self.live.stage.picture()  # compiles and opens what drawing needs
        stage = self.live.stage
        facts = {"picture": stage.problem, "pushes": self.live.directions, "fps": stage.fps}
        self.say({"type": "simulator", "state": state, "text": text, **facts})

    # --- what is asked for ---------------------------------------------------------------------

    def take(self, kind: str, *content: Any) -> None:
        """Take in one message."""
        live = self.live
        self.stale |= kind != "seen"  # that a picture was seen is no news
        if kind == "policy":
            (live.acting,) = content
            self.last_frame = 0.0  # the next picture shows it, without delay
        elif kind == "play":
            self.playing, self.clock = True, time.monotonic()
            if live.over:
                self.begin(live.seed + 1 if self.loop else live.seed)
        elif kind == "pause":
            self.playing = False
        elif kind == "step":
            self.playing = False
            if live.over is None:
                self.advance()
        elif kind == "restart":
            self.begin(*content)
        elif kind == "speed":
            (self.speed,) = content
            self.clock = time.monotonic()
            self.recent.clear()
        elif kind == "sampled":
            (live.sampled,) = content
        elif kind == "loop":
            (self.loop,) = content
        elif kind == "push":
            live.push(*content)
        elif kind == "seen":
            self.credit = min(CREDIT, self.credit + 1)

    def begin(self, seed: int) -> None:
        self.live.begin(seed)
        self.clock = time.monotonic()
        self.recent.clear()
        self.moved = self.stale = True

    def advance(self) -> None:
        self.live.advance()
        self.moved = self.stale = True

    # --- what is done --------------------------------------------------------------------------

    def serve(self) -> None:
        """Step, draw, and listen in between."""
        while True:
            try:
                self.listen()
                self.play()
                self.show()
            except (Lost, InputError) as fault:
                self.start_again(str(fault))
            if time.monotonic() - self.last_sign > HEARTBEAT:
                self.connection.send_bytes(b"")
                self.last_sign = time.monotonic()

    @property
    def interval(self) -> float:
        """Seconds between two pictures: half of the time is left to others."""
        return max(INTERVAL, 2.0 * self.drawing)

    def listen(self) -> None:
        """Wait until something is due, and take in all messages that have arrived."""
        now, wait = time.monotonic(), HEARTBEAT / 2
        if self.playing and (self.live.over is None or self.loop):
            wait = min(wait, self.clock - now)
        if self.has_news and self.credit > 0:
            wait = min(wait, self.last_frame + self.interval - now)
        with contextlib.suppress(Empty):
            self.take(*self.inbox.get(timeout=max(1e-4, wait)))
            while True:
                self.take(*self.inbox.get_nowait())

    @property
    def has_news(self) -> bool:
        return self.stale or self.moved

    def play(self) -> None:
        """Take the steps that are due."""
        if not self.playing:
            return
        live, step = self.live, 1.0 / (self.live.stage.fps * self.speed)
        began = time.monotonic()
        if began - self.clock > LATE:
            self.clock = began
        while live.over is None and self.clock <= time.monotonic() < began + INTERVAL:
            self.advance()
            self.clock += step
            self.recent.append(time.monotonic())
            if live.over is not None:
                self.clock = time.monotonic() + AT_THE_END
        if live.over is not None and self.loop and time.monotonic() >= self.clock:
            self.begin(live.seed + 1)

    @property
    def pace(self) -> float | None:
        """Simulated seconds in a second; None while nothing moves."""
        if not self.playing or not self.recent or self.recent[-1] - self.recent[0] < SETTLED:
            return None
        seconds = self.recent[-1] - self.recent[0]
        return (len(self.recent) - 1) / self.live.stage.fps / seconds

    def show(self) -> None:
        """Send a picture, if it is time and the page takes one."""
        now = time.monotonic()
        if not self.has_news or self.credit < 1 or now < self.last_frame + self.interval:
            return
        picture, same = b"", not self.moved
        if self.moved:
            frames = self.live.stage.picture()
            picture = jpeg(frames[0]) if frames else b""
            self.drawing = time.monotonic() - now
        self.frame += 1
        self.credit -= 1
        facts: dict[str, Any] = {"frame": self.frame, "same": same, "playing": self.playing}
        facts |= {"pace": self.pace, "trail": self.live.trail}
        self.say(self.live.header() | facts, picture)
        self.last_frame, self.stale, self.moved = now, False, False
        self.live.trail = []

    def start_again(self, text: str) -> None:
        """A new environment in place of one that failed: it may have been left in any state."""
        before, self.playing = self.live, False
        with before.stage:
            pass
        self.live = Live(LiveStage(self.task), before.acting, before.sampled, before.seed)
        self.moved = self.stale = True
        self.ready("restarted", f"{text}; a new episode was started")


def main() -> None:
    """Entry point; the argument is the file descriptor of the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(int(sys.argv[1]))
    try:
        spec, path, acting = connection.recv()
    except (EOFError, OSError):  # the server is gone
        return
    sys.path[:] = path
    sys.setswitchinterval(2e-4)
    inbox: SimpleQueue = SimpleQueue()
    threading.Thread(target=read_messages, args=(connection, inbox), daemon=True).start()
    try:
        Simulator(connection, inbox, specs.unpack(spec), acting).serve()
    except OSError:  # the server is gone
        os._exit(0)
    except Exception as error:  # the user's own code may raise anything
        is_told = isinstance(error, InputError | Lost)
        text = str(error) if is_told else said(error) + place(error)
        with contextlib.suppress(OSError):
            connection.send_bytes(packed({"type": "simulator", "state": "failed", "text": text}))


if __name__ == "__main__":
    main()
