"""Claims: the book is built in under 5 minutes, takes less than 40 MB, and its first page can be stepped within 2 s.

The book is built in an empty folder. Each page is opened from disk in a new Chromium context without caches: the time
runs from the navigation until the page's player has stepped and painted. The playground is timed until its graph is
visible, and a lesson until its text and formulas are rendered.

    python benchmarks/bench_book.py

needs the extras 'dev' and 'book', Chromium and the packages of `make tools`.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from report import row

ROOT = Path(__file__).parent.parent
sys.path += [str(ROOT / "tests" / "helpers")]

FIND_PLAYER = "[...document.querySelectorAll('.minigrad-player')].map((one) => one.shadowRoot).find((one) => one)"
HAS_STEPPED = f"""() => {{
    const root = {FIND_PLAYER};
    const forward = [...root?.querySelectorAll("button") ?? []].find((one) =>
        (one.getAttribute("aria-label") ?? one.title).startsWith("Step forward"));
    if (!forward) return false;
    const before = root.querySelector(".count").textContent;
    forward.click();
    return root.querySelector(".count").textContent !== before;
}}"""
HAS_GRAPH = f"() => !!{FIND_PLAYER}?.querySelector('svg')"
HAS_FORMULAS = "() => document.readyState === 'complete' && window.MathJax?.startup?.promise?.then(() => true)"

PAGES = [  # page, condition, label, and limit in seconds
    ("index.html", HAS_STEPPED, "its first step", 2.0),
    ("playground.html", HAS_GRAPH, "its graph", None),
    ("lessons/02_the_chain_rule.html", HAS_FORMULAS, "its formulas", None),
]


def build_book(folder: Path) -> float:
    """Build the book; return the seconds taken."""
    command = [sys.executable, "-m", "sphinx", "-n", "-W", "-q", "-d", str(folder / "doctrees"), "-b", "html"]
    start = time.perf_counter()
    subprocess.run([*command, "book", str(folder / "html")], cwd=ROOT, check=True)
    return time.perf_counter() - start


def time_page(browser: Any, page: Path, until: str) -> float:
    """Open a page in a new context; return the seconds until the condition holds and is painted."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    window = context.new_page()
    start = time.perf_counter()
    window.goto(page.as_uri(), wait_until="commit")
    window.wait_for_function(until, polling="raf")
    window.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    seconds = time.perf_counter() - start
    context.close()
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    from browser import FLAGS
    from needs import chromium

    load = f"{os.getloadavg()[0]:.1f}"
    has_missed = False
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        print(f"{platform.machine()}, {os.cpu_count()} cores, load {load}, Chromium {browser.version}")
        has_missed |= row("building the book", f"{build_book(folder):.0f} s", "300")
        pages = folder / "html"
        size = sum(path.stat().st_size for path in pages.rglob("*") if path.is_file())
        has_missed |= row("its size", f"{size / 2**20:.1f} MB", "40")
        for page, condition, label, bar in PAGES:
            seconds = [time_page(browser, pages / page, condition) for _ in range(options.rounds)]
            limit = None if bar is None else f"{bar:.1f}"
            comment = f"{max(seconds):.2f} s in the worst of {len(seconds)} rounds"
            has_missed |= row(f"{page}, until {label}", f"{statistics.median(seconds):.2f} s", limit, comment=comment)
        browser.close()
    return 1 if has_missed else 0


if __name__ == "__main__":
    sys.exit(main())
