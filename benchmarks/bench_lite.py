"""Claim: from a click on "Run live" to the first step in lesson 1 it takes 25 s at first, and 8 s at the next visit.

The site is served from this machine, compressed, to headless Chromium without a GPU. A cold visit has an empty browser
profile; a warm one is the next visit with the same profile, in a new browser. All cells are run as soon as the lesson
is visible; the first step is a click on "Step forward" once the player is there. The table shows the median of several
rounds. The exit code is 1 if a visit takes longer, or if the first visit downloads more than 22 MB.

    make lite && python benchmarks/bench_lite.py [ROUNDS]
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from browser import FLAGS  # noqa: E402
from lab import RUN_ALL_CELLS  # noqa: E402
from lite import NOTEBOOK_IS_READY, Site  # noqa: E402
from needs import chromium  # noqa: E402

LESSON = "01_one_neuron"
PARTS = ("the lesson is visible", "its first cell has run", "the player is visible", "its first step is done")
LIMITS = {"cold": 25.0, "warm": 8.0}  # seconds
MAX_DOWNLOAD = 22e6  # bytes
FIRST_CELL_HAS_RUN = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    return cells.find((cell) => cell.model.type === 'code').model.executionCount === 1;
}"""


def visit(playwright: Any, profile: str, site: Site) -> tuple[list[float], int]:
    """Return the seconds from the click to the end of each part, and the number of bytes downloaded."""
    context = playwright.chromium.launch_persistent_context(profile, executable_path=chromium(), args=FLAGS)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.set_content(f'<a href="{site.lesson(LESSON)}">Run live</a>')
    site.sent.clear()
    start, times = time.perf_counter(), []
    page.get_by_text("Run live").click()
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.content?.widgets?.length > 0")
    page.locator(".jp-CodeCell").first.wait_for()
    times.append(time.perf_counter() - start)
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    page.evaluate(RUN_ALL_CELLS)
    page.wait_for_function(FIRST_CELL_HAS_RUN)
    times.append(time.perf_counter() - start)
    button = page.get_by_role("button", name="Step forward").first
    button.wait_for()
    times.append(time.perf_counter() - start)
    count = page.locator(".count").first
    before = count.inner_text()
    button.click()
    while count.inner_text() == before:
        pass
    times.append(time.perf_counter() - start)
    context.close()
    return times, sum(size for _, size in site.sent)


def lesson_seconds(playwright: Any, site: Site) -> dict[str, float]:
    """Return the seconds that all cells of a lesson take once Python has started, for the lessons without NumPy."""
    browser, seconds = playwright.chromium.launch(executable_path=chromium(), args=FLAGS), {}
    for path in sorted((ROOT / "notebooks").glob("0[1-5]_*.ipynb")):
        page = browser.new_page()
        page.goto(site.lesson(path.stem))
        page.wait_for_function(NOTEBOOK_IS_READY, timeout=120_000)
        start = time.perf_counter()
        page.evaluate(RUN_ALL_CELLS)
        page.wait_for_function("() => window.ended !== null", timeout=120_000)
        seconds[path.stem] = time.perf_counter() - start
        page.close()
    browser.close()
    return seconds


def main() -> int:
    from playwright.sync_api import sync_playwright

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    times: dict[str, list[list[float]]] = {"cold": [], "warm": []}
    downloads: dict[str, list[int]] = {"cold": [], "warm": []}
    with sync_playwright() as playwright, Site(ROOT / "book" / "_build" / "lite") as site:
        for _ in range(rounds):
            with TemporaryDirectory() as profile:
                for name in ("cold", "warm"):
                    seconds, size = visit(playwright, profile, site)
                    times[name].append(seconds)
                    downloads[name].append(size)
        lessons = lesson_seconds(playwright, site)
    medians = {name: [statistics.median(part) for part in zip(*rounds, strict=True)] for name, rounds in times.items()}
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {rounds} rounds\n")
    print("| seconds from the click until | first visit | next visit |\n| --- | ---: | ---: |")
    for part, cold, warm in zip(PARTS, *medians.values(), strict=True):
        print(f"| {part} | {cold:.1f} | {warm:.1f} |")
    print(f"| MB downloaded | {max(downloads['cold']) / 1e6:.1f} | {max(downloads['warm']) / 1e6:.1f} |")
    print("\n| all cells of the lesson | seconds |\n| --- | ---: |")
    for name, seconds in lessons.items():
        print(f"| {name} | {seconds:.1f} |")
    is_slow = any(medians[name][-1] > limit for name, limit in LIMITS.items())
    return int(is_slow or max(downloads["cold"]) > MAX_DOWNLOAD)


if __name__ == "__main__":
    sys.exit(main())
