"""What becomes of a page's simulator: closed, crashed, hanging, broken."""

import contextlib
import signal
from pathlib import Path

import pytest

import moie
from tests import probes, tiny
from tests.workshop.serving import Page, Served, eventually

PAGES, AT_ONCE = 20, 4


def saved(folder: Path, task: str) -> Path:
    """A policy file for a task."""
    file = folder / "policy.safetensors"
    tiny.policy(f"tests.probes:{task}").save(file)
    return file


def serve(folder: Path, task: str, *options: str, **variables: str) -> Served:
    return Served(folder, str(saved(folder, task)), "--trust-task", *options, **variables)


def restarted(page: Page) -> str:
    """What the page says when its simulator is a new one, and goes on."""
    said = page.until("simulator", lambda told: told["state"] == "restarted")["text"]
    page.until("simulator", lambda told: told["state"] == "ready")
    page.until("frame")
    return said


def test_pages_that_are_closed_leave_nothing(tmp_path: Path) -> None:
    with serve(tmp_path, "Drawn-v0") as served:
        held = []
        for _ in range(PAGES // AT_ONCE):
            with contextlib.ExitStack() as opened:
                for page in [opened.enter_context(served.page()) for _ in range(AT_ONCE)]:
                    page.until("frame", lambda told: told["step"] > 2)
                assert len(served.simulators()) == AT_ONCE
            eventually(lambda: served.simulators() == [])
            held.append(served.memory())
        # The first pages import modules and fill caches.
        assert held[-1] - held[1] < 4e6
        assert served.process.poll() is None


def test_a_simulator_that_is_killed_is_replaced_and_the_changes_stay(tmp_path: Path) -> None:
    with serve(tmp_path, "Long-v0") as served, served.page() as page:
        page.until("frame")
        page.say("set", part="action", expert=0, index=0, value=0.25, final=True)
        page.until("frame", lambda told: told["version"] == 2)
        served.simulators()[0].kill()
        assert "ended with exit code -9 and was started again" in restarted(page)
        assert page.until("frame")["version"] == 2
        page.say("undo")
        page.until("frame", lambda told: told["version"] == 3)


def test_a_simulator_that_hangs_is_replaced(tmp_path: Path) -> None:
    with serve(tmp_path, "Long-v0", "--timeout", "2") as served, served.page() as page:
        page.until("frame")
        served.simulators()[0].send_signal(signal.SIGSTOP)
        assert "did not respond and was started again" in restarted(page)


def test_a_simulator_that_ends_again_and_again_waits_to_be_asked(tmp_path: Path) -> None:
    trouble = {probes.TROUBLE: probes.trouble("die", "any", 3)}
    with serve(tmp_path, "LongTrouble-v0", **trouble) as served, served.page() as page:
        said = page.until("simulator", lambda told: told["state"] == "failed")["text"]
        assert said == "the simulator ended with exit code 7, 3 times in a row"
        eventually(lambda: served.simulators() == [])
        page.say("restart", seed=0)
        page.until("simulator", lambda told: told["state"] == "ready")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("raise", "the motor is on fire"),
        ("nan", "nan"),
        ("hang", "did not respond"),
    ],
)
def test_an_environment_that_fails_is_started_anew(tmp_path: Path, kind: str, said: str) -> None:
    marker = tmp_path / "happened"
    trouble = {probes.TROUBLE: probes.trouble(kind, "any", 3, marker)}
    options = ("--timeout", "2")
    with serve(tmp_path, "LongTrouble-v0", *options, **trouble) as served, served.page() as page:
        told = page.until("simulator", lambda told: told["state"] == "restarted")
        assert said in told["text"]
        assert "\n" not in told["text"]
        assert marker.exists()
        page.say("play")
        page.until("frame", lambda told: told["step"] > 5)


def test_a_module_that_a_file_names_is_imported_with_consent_only(tmp_path: Path) -> None:
    done = tiny.moie_process("studio", str(saved(tmp_path, "Walk-v0")), "--no-browser")
    assert done.returncode == 2
    assert "--trust-task" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_task_without_pictures_is_played(tmp_path: Path) -> None:
    with serve(tmp_path, "Walk-v0") as served, served.page() as page:
        ready = page.until("simulator", lambda told: told["state"] == "ready")
        assert ready["picture"]  # why there is none
        assert ready["pushes"] == []
        frame = page.until("frame", lambda told: told["step"] > 2)
        assert frame["picture"] == b""
        policy = moie.load(tmp_path / "policy.safetensors")
        why = policy.explain(frame["state"])
        assert frame["action"] == pytest.approx(why.action.tolist())
