"""A pytest plugin that reports the time that each part of the suite takes.

``make minutes`` writes its table to `tests/minutes.txt`. Each row is a part of the suite with its tests, the seconds
that worker processes spent on them, and their fraction of the total. With two workers, a run takes about half the sum.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

__all__ = ["TimeReport", "part_of"]

# The first pattern that matches the start of a test's name determines its part.
PARTS = {
    "lessons": r"notebooks/|tests/lessons/|tests/cli/test_lessons",
    "Ray": r"tests/distributed/|tests/viz/pictures/test_parallel",
    "viewer in a browser": r"tests/viz/browser/",
    "viewer": r"tests/viz/|viz/",
    "book": r"tests/book/|tests/project/test_readme",
    "jit and tape": r"(tests|minigrad)/compiler/|tests/backends/taichi/codegen/test_(fusing|source)",
    "operations": r"tests/ops/",
    "kernels": r"tests/backends/",
    "devices": r"tests/whole/test_(devices|on_gpu)",
    "programs of PyTorch": r"tests/pytorch/",
    "docstrings": r"minigrad/",
    "training and data": r"tests/(nn|optim|data|utils|training|io|whole/test_examples)",
    "tried to break it": r"tests/(torture|whole)/",
    "engine and functions": r"",
}


def part_of(nodeid: str) -> str:
    """Return the part of the suite that a test belongs to."""
    return next(part for part, pattern in PARTS.items() if re.match(pattern, nodeid))


class TimeReport:
    """Sums the durations that worker processes report, and prints them at the end of a run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.path: str | None = config.getoption("--minutes")
        self.seconds: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self.start = time.monotonic()
        self.collected = 0.0  # seconds until this process finished collection

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        self.collected = time.monotonic() - self.start

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["minutes"] = {"collect": self.collected, "compile": compile_seconds()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.seconds.update(getattr(node, "workeroutput", {}).get("minutes", {}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = part_of(report.nodeid)
        self.seconds[part] += report.duration
        self.tests[part] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.path:
            return
        terminalreporter.section("time by part of the suite")
        terminalreporter.write_line(self.table())
        Path(self.path).write_text(self.table() + "\n", encoding="utf-8")

    def table(self) -> str:
        """Return the table, sorted by time in descending order."""
        machine = f"{os.cpu_count()} cores, {platform.machine()}, CPython {platform.python_version()}"
        wall, compiling = time.monotonic() - self.start, self.seconds["compile"]
        total = sum(self.seconds.values()) - compiling
        rows = [f"# {datetime.date.today()}, {machine}: {wall:,.0f} s of {sum(self.tests.values()):,} tests"]
        rows += ["part | tests | seconds of workers | share"]
        for part, seconds in self.seconds.most_common():
            if part != "compile":
                rows.append(f"{part} | {self.tests[part]:,} | {seconds:,.0f} | {seconds / total:.0%}")
        rows.append(f"compiling kernels, within these | 0 | {compiling:,.0f} | {compiling / total:.0%}")
        return "\n".join(rows)


def compile_seconds() -> float:
    """Return the seconds that Taichi spent compiling in this process."""
    if "taichi" not in sys.modules:
        return 0.0
    program = sys.modules["taichi"].lang.impl.get_runtime().prog
    return 0.0 if program is None else program.get_total_compilation_time()
