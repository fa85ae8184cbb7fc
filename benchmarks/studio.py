"""The studio in a real browser: how long a change takes to be seen, and what live pictures cost.

    python benchmarks/studio.py [zoo:hopper zoo:halfcheetah zoo:pendulum]

Latency: a slider of expert 0 is set and released in the page; the clock stops when the page shows
the first picture of a step with the changed policy. Cost: pictures a second at real time, and the
share of all cores that the simulator, the server and the browser take meanwhile.
"""

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
COUNT = 50  # changes
SECONDS = 10.0

# Milliseconds from the release of a slider to the first picture with the change.
LATENCY = """async () => {
    const slider = document.querySelector('[data-expert="0"] [data-part="action"][data-index="0"]');
    const [low, high] = [Number(slider.min), Number(slider.max)];
    const before = Number(document.body.dataset.version);
    slider.value = low + (high - low) * (0.3 + 0.4 * Math.random());
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const began = performance.now();
    slider.dispatchEvent(new Event("change", { bubbles: true }));
    while (window.studio.frame.version <= before || window.studio.frame.same)
        await new Promise((next) => setTimeout(next, 1));
    return performance.now() - began;
}"""


@contextlib.contextmanager
def studio(policy: str) -> Iterator[tuple[psutil.Process, str]]:
    """A studio of a policy, and its address."""
    words = [sys.executable, "-m", "moie", "studio", policy, "--no-browser"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    assert found is not None, "the studio did not start"
    try:
        yield psutil.Process(server.pid), found[0]
    finally:
        server.terminate()
        server.wait()


def seconds_of(processes: list[psutil.Process]) -> float:
    """Processor time that processes have taken."""
    total = 0.0
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
    return total


def groups(server: psutil.Process) -> dict[str, list[psutil.Process]]:
    """The processes of a studio, and those of the browser."""
    ours = server.children(recursive=True)
    others = psutil.Process().children(recursive=True)
    browsers = [one for one in others if one not in ours and one.pid != server.pid]
    return {"simulator": ours, "server": [server], "browser": browsers}


def measure(page: Any, server: psutil.Process, policy: str) -> None:
    # Playwright's own way of waiting evaluates texts in the page, which its policy forbids.
    while not page.evaluate("window.studio && window.studio.frame && studio.frame.frame > 20"):
        page.wait_for_timeout(50)
    page.wait_for_timeout(5000)  # the prototypes' pictures are made meanwhile
    frame = "[window.studio.frame.frame, window.studio.frame.pace]"
    before, began = groups(server), time.perf_counter()
    spent = {name: seconds_of(some) for name, some in before.items()}
    first, _ = page.evaluate(frame)
    page.wait_for_timeout(1000 * SECONDS)
    last, pace = page.evaluate(frame)
    wall = time.perf_counter() - began
    cores = os.cpu_count() or 1
    shares = {n: (seconds_of(s) - spent[n]) / wall / cores for n, s in before.items()}
    said = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    print(f"{policy}: {(last - first) / wall:.1f} pictures a second, {pace:.2f} of real time")
    print(f"  share of {cores} cores: {said}")
    times = []
    for _ in range(COUNT):
        times.append(page.evaluate(LATENCY))
        page.wait_for_timeout(100)
    quarter = statistics.quantiles(times, n=20)
    print(
        f"  release of a slider to the first picture with the change, {COUNT} times: median "
        f"{statistics.median(times):.0f} ms, 95% {quarter[-1]:.0f} ms (bar: 150 ms)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = ["zoo:hopper", "zoo:halfcheetah", "zoo:pendulum"]
    parser.add_argument("policies", nargs="*", default=default)
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        for policy in parser.parse_args().policies:
            with studio(policy) as (server, address):
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.goto(address)
                measure(page, server, policy)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
