"""One page: its socket, its workbench, its simulator."""

import asyncio
import contextlib
import json
import struct
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from starlette.websockets import WebSocket, WebSocketDisconnect

from moie.errors import InputError, MoieError
from moie.files import finite
from moie.policy.handwork import listed
from moie.surgery.changes import changes
from moie.surgery.edit import save_edited
from moie.workshop import questions
from moie.workshop.messages import parsed
from moie.workshop.opened import Message, Opened, Settings
from moie.workshop.simulation import Simulation, first_message
from moie.workshop.trial import Trial
from moie.workshop.workbench import Workbench

MOST_CRASHES, WITHIN = 3, 60.0
"""A simulator that ends so often within so many seconds is not started again by itself."""


@dataclass(eq=False)
class Session:
    """Everything about one page, from its connection to its end."""

    opened: Opened
    socket: WebSocket
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        self.bench = Workbench(self.opened.policy)
        self.visited = questions.Visited.of(self.opened.policy)
        self.seed = self.opened.seed
        self.state: np.ndarray | None = None
        self._picture = b""  # of that state
        self._crashes: deque[float] = deque(maxlen=MOST_CRASHES)
        self._outbox: asyncio.Queue[Message | bytes] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._simulation: Simulation | None = None
        self._trial: Trial | None = None
        self._is_over = False

    async def run(self) -> None:
        """Serve the page until it is closed."""
        sender = asyncio.create_task(self._send_all())
        listener = partial(self._from_thread, self.tell)
        try:
            self.tell(self.opened.hello())
            self.tell(self.bench.told())
            self.tell(self.settings.told())
            self.start()
            assert self.opened.portraits is not None
            self.opened.portraits.listen(listener)
            while True:
                await self._take(await self.socket.receive_text())
        except (WebSocketDisconnect, KeyError):  # KeyError: the page sent bytes
            pass
        finally:
            self._is_over = True
            if self.opened.portraits is not None:
                self.opened.portraits.leave(listener)
            sender.cancel()
            await asyncio.shield(asyncio.to_thread(self.close))

    def close(self) -> None:
        """End what runs for the page."""
        if self._trial is not None:
            self._trial.stop()
        if self._simulation is not None:
            self._simulation.close()
        if self._trial is not None:
            self._trial.join()

    # --- to the page ---------------------------------------------------------------------------

    def tell(self, message: Message | bytes) -> None:
        """Send something to the page, in order."""
        if not self._is_over:
            self._outbox.put_nowait(message)

    def _from_thread(self, function: Callable[..., None], *content: Any) -> None:
        """Call a function in the server's own thread."""
        with contextlib.suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(function, *content)

    async def _send_all(self) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            while True:
                message = await self._outbox.get()
                if isinstance(message, bytes):
                    await self.socket.send_bytes(message)
                else:
                    await self.socket.send_text(json.dumps(finite(message), allow_nan=False))

    # --- the simulator -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the simulator."""
        text = "the simulator is starting"
        self.tell({"type": "simulator", "state": "starting", "text": text})
        first = first_message(self.opened.spec, self.bench.acting)
        hear, gone = (partial(self._from_thread, f) for f in (self._hear, self._gone))
        silence = self.opened.silence
        self._simulation = Simulation("moie.workshop.simulator", first, hear, gone, silence)
        for message in (("restart", self.seed), ("speed", self.settings.speed)):
            self._simulation.tell(*message)
        self._simulation.tell("sampled", self.settings.actions == "sampled")
        self._simulation.tell("loop", self.settings.loop)
        if self.settings.playing:
            self._simulation.tell("play")

    def _hear(self, content: bytes) -> None:
        """Pass on what the simulator says; the state that it shows is kept."""
        (size,) = struct.unpack_from(">I", content)
        header = json.loads(content[4 : 4 + size])
        if header["type"] != "frame":
            if header["state"] != "ready" and self.settings.playing:
                self.settings.playing = False
                self.tell(self.settings.told())
            if header["state"] == "failed" and self._simulation is not None:
                self._simulation.close()
                self._simulation = None
            self.tell(header)
            return
        self.state, self.seed = np.array(header["state"], dtype=np.float64), header["seed"]
        self.visited.add(self.state)
        self._picture = content[4 + size :] or self._picture
        self.tell(content)

    def _gone(self, reason: str) -> None:
        """Start another simulator in place of one that has ended."""
        if self._is_over:
            return
        now, self._simulation = time.monotonic(), None
        self._crashes.append(now)
        if len(self._crashes) == MOST_CRASHES and now - self._crashes[0] < WITHIN:
            text = f"the simulator {reason}, {MOST_CRASHES} times in a row"
            self.tell({"type": "simulator", "state": "failed", "text": text})
            self._crashes.clear()
            return
        text = f"the simulator {reason} and was started again"
        self.start()
        self.tell({"type": "simulator", "state": "restarted", "text": text})

    def _ask(self, *message: Any) -> None:
        """Tell the simulator something; one that failed is started again."""
        if self._simulation is None:
            self.start()
        else:
            self._simulation.tell(*message)

    # --- from the page -------------------------------------------------------------------------

    async def _take(self, text: str) -> None:
        try:
            message = parsed(text)
            kind = message.pop("type")
            await getattr(self, f"_on_{kind.replace('-', '_')}")(**message)
        except MoieError as error:
            self.tell({"type": "refused", "text": str(error)})

    async def _on_play(self) -> None:
        self.settings.playing = True
        self._ask("play")
        self.tell(self.settings.told())

    async def _on_pause(self) -> None:
        self.settings.playing = False
        self._ask("pause")
        self.tell(self.settings.told())

    async def _on_step(self) -> None:
        self.settings.playing = False
        self._ask("step")
        self.tell(self.settings.told())

    async def _on_restart(self, seed: int) -> None:
        self.seed = seed
        self._ask("restart", seed)

    async def _on_speed(self, value: float) -> None:
        self.settings.speed = float(value)
        self._ask("speed", self.settings.speed)
        self.tell(self.settings.told())

    async def _on_actions(self, kind: str) -> None:
        self.settings.actions = kind
        self._ask("sampled", kind == "sampled")
        self.tell(self.settings.told())

    async def _on_loop(self, on: bool) -> None:
        self.settings.loop = on
        self._ask("loop", on)
        self.tell(self.settings.told())

    async def _on_seen(self, frame: int) -> None:
        if self._simulation is not None:
            self._simulation.tell("seen")

    async def _on_push(self, direction: str, strength: float) -> None:
        self._ask("push", direction, float(strength))

    def _changed(self) -> None:
        """The policy is another one from the next step on."""
        if self._simulation is not None:
            self._simulation.tell("policy", self.bench.acting)
        self.tell(self.bench.told())

    async def _on_set(
        self,
        part: str,
        value: Any,
        final: bool,
        expert: int | None = None,
        index: int | None = None,
    ) -> None:
        self.bench.set(part, value, expert, index, final)
        self._changed()

    async def _on_mute(self, expert: int, on: bool) -> None:
        self.bench.mute(expert, on)
        self._changed()

    async def _on_solo(self, expert: int, on: bool) -> None:
        self.bench.set_solo(expert, on)
        self._changed()

    async def _on_delete(self, expert: int) -> None:
        self.bench.delete(expert)
        self._changed()

    async def _on_add(self) -> None:
        if self.state is None:
            raise InputError("there is no state yet; wait for the simulator")
        k = self.bench.add(self.state)
        self._changed()
        image = f"data:image/jpeg;base64,{b64encode(self._picture).decode()}"
        portrait = {"type": "portrait", "id": k, "image": image, "problem": None}
        if not self._picture:
            portrait |= {"image": None, "problem": "made by hand at the present state"}
        self.tell(portrait)

    async def _on_undo(self) -> None:
        self.bench.undo()
        self._changed()

    async def _on_redo(self) -> None:
        self.bench.redo()
        self._changed()

    async def _on_original(self) -> None:
        self.bench.back_to_original()
        self._changed()

    async def _on_what_if(self, state: list[float], number: int) -> None:
        at = questions.checked_state(self.opened.policy, state)
        work = partial(questions.what_if, self.bench.acting, self.visited, at)
        self.tell({**await asyncio.to_thread(work), "number": number})

    async def _on_map(self, x: int, y: int, state: list[float], number: int) -> None:
        at = questions.checked_state(self.opened.policy, state)
        work = partial(questions.leader_map, self.bench.acting, self.visited, at, x, y)
        self.tell({**await asyncio.to_thread(work), "number": number})

    async def _on_try(self) -> None:
        if self._trial is not None and self._trial.runs:
            raise InputError("a trial is running already; stop it or wait for its end")
        policies = self.opened.policy, self.bench.policy
        tell = partial(self._from_thread, self.tell)
        self._trial = Trial(policies, self.bench.version, self.opened.episodes, tell)

    async def _on_stop_try(self) -> None:
        if self._trial is not None:
            self._trial.stop()

    async def _on_save(self, name: str) -> None:
        out, new = self.opened.out.with_name(f"{name}.safetensors"), self.bench.policy
        toml = await asyncio.to_thread(save_edited, new, out, "choose another name")
        self.bench.mark_saved()
        records = changes(self.bench.sounding, self.opened.policy)
        said = listed(records, new.labels)
        count = f"{len(records) or 'no'} change{'s' * (len(records) != 1)} by hand"
        facts = {"policy": str(out), "toml": str(toml), "text": count, "changes": said}
        self.tell({"type": "saved", **facts})
        self.tell(self.bench.told())
