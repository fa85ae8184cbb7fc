"""The studio's server: on this machine only, for whoever has its address, and for no other page.

The address holds a token. A request is refused unless it has the token, is addressed to this
machine by name (a foreign name in `Host` is how a page elsewhere reaches a local server), and comes
from the studio's own page, if it comes from a page. What is served is a fixed list of files.
"""

import asyncio
import contextlib
import secrets
import signal
import socket
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from moie import system
from moie.present.html import STYLE_SHEET
from moie.workshop.messages import LONGEST
from moie.workshop.opened import Opened
from moie.workshop.portraits import Portraits
from moie.workshop.session import Session

HOST = "127.0.0.1"
MOST_PAGES = 8
"""Pages that are open at a time; each has a simulator of its own."""
STATIC = files("moie.workshop") / "static"
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
REFUSED = "refused: open the address that moie studio printed"


def _contents() -> dict[str, tuple[bytes, str]]:
    """All that can be fetched, and what it is."""
    found = {one.name: one.read_bytes() for one in STATIC.iterdir()}
    found["report.css"] = STYLE_SHEET.read_bytes()
    return {
        name: (content, KINDS[name.rpartition(".")[2]])
        for name, content in found.items()
        if name.rpartition(".")[2] in KINDS
    }


class Guard:
    """Lets through what comes from the studio's own page on this machine."""

    def __init__(self, app: ASGIApp, token: str, port: int):
        self.app, self._token = app, token
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_ours(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close(1008)
        else:
            await PlainTextResponse(REFUSED, 403)(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        headers = HTTPConnection(scope).headers
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return False
        if scope["type"] == "websocket" and not origins:
            return False
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            return False
        given = scope["path"].split("/")[1]
        return secrets.compare_digest(given.encode(), self._token.encode())


def _headers(port: int) -> dict[str, str]:
    sockets = " ".join(f"ws://{name}:{port}" for name in (HOST, "localhost"))
    parts = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src blob: data:"]
    parts += [f"connect-src 'self' {sockets}", "base-uri 'none'", "form-action 'none'"]
    return {
        "Content-Security-Policy": "; ".join([*parts, "frame-ancestors 'none'"]),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


class Studio:
    """The server of one policy."""

    def __init__(self, opened: Opened, port: int = 0):
        system.check_posix()
        self.opened = opened
        self.token = secrets.token_urlsafe(18)
        self._listening = socket.create_server((HOST, port))
        self.port: int = self._listening.getsockname()[1]
        self._pages: set[Session] = set()

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def app(self) -> ASGIApp:
        """The application: a page, its files, its socket."""
        contents, headers = _contents(), _headers(self.port)

        async def fetch(request: Request) -> Response:
            name = request.path_params.get("name", "index.html")
            if name not in contents:
                return PlainTextResponse("there is no such file", 404, headers)
            content, kind = contents[name]
            return Response(content, headers=headers, media_type=kind)

        async def live(websocket: WebSocket) -> None:
            await websocket.accept()
            if len(self._pages) >= MOST_PAGES:
                text = f"{MOST_PAGES} pages are open already; close one and load this one again"
                await websocket.send_json({"type": "simulator", "state": "failed", "text": text})
                await websocket.close()
                return
            session = Session(self.opened, websocket)
            self._pages.add(session)
            try:
                await session.run()
            finally:
                self._pages.discard(session)

        routes = [
            Route("/{token}/", fetch),
            WebSocketRoute("/{token}/live", live),
            Route("/{token}/{name}", fetch),
        ]
        return Guard(Starlette(routes=routes), self.token, self.port)

    def serve(self) -> None:
        """Serve until Ctrl-C."""
        self.opened.portraits = Portraits(self.opened.spec, self.opened.policy)
        try:
            asyncio.run(_Server(self._config()).serve([self._listening]))
        finally:
            self.opened.portraits.close()

    def _config(self) -> uvicorn.Config:
        options: dict[str, Any] = {"log_config": None, "log_level": "critical", "lifespan": "off"}
        options |= {"ws": "websockets-sansio", "http": "h11", "loop": "asyncio"}
        options |= {"ws_max_size": LONGEST, "ws_per_message_deflate": False}
        options |= {"access_log": False, "server_header": False, "proxy_headers": False}
        return uvicorn.Config(self.app(), timeout_graceful_shutdown=5, **options)


class _Server(uvicorn.Server):
    """Ctrl-C is how it is meant to end: nobody else hears of it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
