"""Who may reach the studio, and what it takes from whom."""

import contextlib
import http.client
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from websockets.exceptions import InvalidStatus

import moie
from moie.errors import InputError
from moie.workshop.messages import FIELDS, LONGEST, PARTS, parsed
from moie.workshop.server import MOST_PAGES
from tests.fuzzing import NASTY, TOKENS, mutated, mutated_json
from tests.workshop.serving import Served, connected, eventually

MESSAGES = 1000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("studio"), "zoo:pendulum") as one:
        yield one


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    content: bytes


def answer(served: Served, path: str, method: str = "GET", **headers: str) -> Answer:
    """What the server answers to a request, in which nothing is put right on the way."""
    connection = http.client.HTTPConnection(served.host, served.port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    for name, value in ({"Host": f"{served.host}:{served.port}"} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    with contextlib.closing(connection), connection.getresponse() as given:
        return Answer(given.status, given.headers, given.read())


def check_alive(served: Served) -> None:
    with served.page() as page:
        assert page.until("frame")["state"]
    assert served.process.poll() is None


def test_the_page_and_its_files_are_sealed(served: Served) -> None:
    for name in ("", "main.js", "studio.css", "report.css"):
        given = answer(served, f"/{served.token}/{name}")
        assert given.status == 200
        policy = given.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert given.headers["X-Content-Type-Options"] == "nosniff"
        assert given.headers["Referrer-Policy"] == "no-referrer"


STRANGE_HOSTS = ("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "")
STRANGE_ORIGINS = ("http://evil.example", "null", "", "https://{host}:{port}", "http://{host}")


def test_requests_without_the_token_or_from_elsewhere_are_refused(served: Served) -> None:
    own = {"host": served.host, "port": served.port}
    paths = ["/", "//", "/wrong/", f"/{served.token[:-1]}/", f"/{served.token}x/", "/main.js"]
    refused = [answer(served, path) for path in [*paths, "/wrong/live", f"/?token={served.token}"]]
    page = f"/{served.token}/"
    refused += [answer(served, page, Host=host.format(**own)) for host in STRANGE_HOSTS]
    refused += [answer(served, page, Origin=origin.format(**own)) for origin in STRANGE_ORIGINS]
    for one in refused:
        assert one.status in (400, 403)
        assert served.token.encode() not in one.content
    assert answer(served, page, Host=f"localhost:{served.port}").status == 200
    assert answer(served, page, Origin=served.origin).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "server.py",
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/%2e%2e/server.py",
        "..\\server.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "static/main.js",
        "main.js%00.html",
        "live",
        "x" * 5000,
    ],
)
def test_nothing_else_is_served(served: Served, path: str) -> None:
    given = answer(served, f"/{served.token}/{path}")
    assert given.status in (400, 403, 404)
    assert len(given.content) < 100


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_is_changed_by_requests(served: Served, method: str) -> None:
    assert answer(served, f"/{served.token}/", method).status == 405


def test_sockets_without_the_token_or_from_elsewhere_are_refused(served: Served) -> None:
    at = f"ws://{served.host}:{served.port}"
    tried: list[tuple[str, str | None]] = [
        (f"{at}/live", served.origin),
        (f"{at}/wrong/live", served.origin),
        (f"{at}/{served.token}/live", None),
        (f"{at}/{served.token}/live", "http://evil.example"),
        (f"{at}/{served.token}/live", f"http://localhost:{served.port}"),  # not where it is asked
        (f"{at}/{served.token}/other", served.origin),
    ]
    for address, origin in tried:
        with pytest.raises(InvalidStatus) as refused, connected(address, origin):
            pass
        assert refused.value.response.status_code == 403
    check_alive(served)


VALUES: dict[str, Any] = {"expert": 0, "index": 0, "value": 0.5, "final": True, "on": True}
VALUES |= {"seed": 1, "kind": "mean", "frame": 1, "direction": "up", "strength": 1.0, "x": 0}
VALUES |= {"state": [1.0, 0.0, 0.0], "number": 1, "y": 1, "name": "mine"}


def right_messages() -> list[dict[str, Any]]:
    """One of each kind."""
    kinds = [{"type": kind, **{name: VALUES[name] for name in FIELDS[kind]}} for kind in FIELDS]
    for part, names in PARTS.items():
        values = {name: VALUES[name] for name in names} | {"type": "set", "part": part}
        kinds.append(values | ({"value": "push off"} if part == "label" else {}))
    return kinds


def is_taken(text: str) -> bool:
    try:
        parsed(text)
    except InputError:
        return False
    return True


def wrong_messages(count: int) -> Iterator[str]:
    """Damaged messages, those that mean something all the same left out."""
    rng, right = random.Random(0), right_messages()
    made = 0
    for seed in range(100 * count):
        content = json.dumps(rng.choice(right)).encode()
        damaged = [mutated, mutated_json][seed % 2](content, seed)
        if seed % 5 == 0:
            damaged = json.dumps(rng.choice(NASTY)).encode()
        if seed % 7 == 0:
            damaged = b"".join(rng.choice(TOKENS) for _ in range(20))
        text = damaged.decode(errors="replace")
        if len(text.encode()) < LONGEST and not is_taken(text):
            made += 1
            yield text
        if made == count:
            return


def test_right_messages_are_right() -> None:
    assert all(is_taken(json.dumps(message)) for message in right_messages())


def test_messages_that_mean_nothing_are_refused_and_change_nothing(served: Served) -> None:
    texts = list(wrong_messages(MESSAGES))
    assert len(texts) == MESSAGES
    assert len(set(texts)) > MESSAGES / 2
    with served.page() as page:
        page.until("frame")
        for text in texts:
            page.socket.send(text)
            said = page.until("refused")["text"]
            assert said
            assert "\n" not in said
            assert len(said) < 500
        page.say("pause")
        page.say("what-if", state=[1.0, 0.0, 0.0], number=7)
        told = page.until("what-if")
        policy = moie.load("zoo:pendulum")
        why = policy.explain([1.0, 0.0, 0.0])
        assert told["action"] == pytest.approx(why.action.tolist())
    assert list(served.folder.iterdir()) == []
    check_alive(served)


OUT_OF_PLACE: list[dict[str, Any]] = [
    {"type": "delete", "expert": 99},
    {"type": "mute", "expert": 99, "on": True},
    {"type": "set", "part": "action", "expert": 0, "index": 9, "value": 0.0, "final": True},
    {"type": "set", "part": "action", "expert": 0, "index": 0, "value": 99.0, "final": True},
    {"type": "set", "part": "weight", "expert": 0, "value": -1.0, "final": True},
    {"type": "set", "part": "temperature", "value": 0.0, "final": True},
    {"type": "set", "part": "label", "expert": 0, "value": "x" * 81, "final": True},
    {"type": "what-if", "state": [1.0], "number": 1},
    {"type": "map", "x": 0, "y": 0, "state": [1.0, 0.0, 0.0], "number": 1},
    {"type": "undo"},
    {"type": "redo"},
    {"type": "save", "name": "../elsewhere"},
    {"type": "save", "name": ".hidden"},
    {"type": "save", "name": "/tmp/elsewhere"},
]


@pytest.mark.parametrize("message", OUT_OF_PLACE, ids=str)
def test_what_this_policy_cannot_be_is_refused(served: Served, message: dict[str, Any]) -> None:
    with served.page() as page:
        page.until("frame")
        page.socket.send(json.dumps(message))
        assert page.until("refused")["text"]
        page.say("mute", expert=0, on=False)  # has the page told the policy once more
        told = page.until("policy")
        assert (told["changes"], told["unsaved"], told["undo"]) == ([], False, None)
    assert list(served.folder.iterdir()) == []


def test_bytes_and_endless_messages_end_the_page_only(served: Served) -> None:
    for content in (b"\x00\xff", "x" * (LONGEST + 1)):
        with served.page() as page:
            page.until("frame")
            page.socket.send(content)
            assert page.is_closed()
    eventually(lambda: served.simulators() == [])
    check_alive(served)


def test_too_many_pages_are_told_so(tmp_path: Path) -> None:
    with Served(tmp_path, "zoo:pendulum") as served, contextlib.ExitStack() as opened:
        for _ in range(MOST_PAGES):
            opened.enter_context(served.page()).until("policy")
        told = opened.enter_context(served.page()).until("simulator")
        assert told["state"] == "failed"
        assert "8 pages are open" in told["text"]
