"""A pytest plugin for the two legs of `.ci/run`: the second deselects the tests that it would only repeat.

``CI_PASSED=FILE`` writes to FILE each test function or lesson of which all cases passed, unless one looked up something
that is missing (a package, or an entry of the table in `needs.py`) or started a program, since the lookups of a child
process cannot be observed. The kernel of a lesson looks up what its cells import. A file is omitted entirely if the
lookup failed on import or in a fixture, which other tests may use too. ``--leave FILE`` deselects the functions in
FILE, provided their cases are unchanged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import wraps
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import needs

__all__ = ["Legs"]

_APART = "lookup failed"
_PROGRAM = "a child process"
_FILE, _FUNCTION = "file", "function"


class Legs:
    """Records the failed lookups of tests in each process; the main process collects and writes the results."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        # Removed from the environment, so that no program started by a test inherits it.
        self.passed: str | None = os.environ.pop("CI_PASSED", None) or getattr(config, "workerinput", {}).get("passed")
        leave: str | None = config.getoption("leave")
        self.known: dict[str, list[str]] = json.loads(Path(leave).read_text(encoding="utf-8")) if leave else {}
        self.tests: defaultdict[str, set[str]] = defaultdict(set)
        self.apart: set[str] = set()  # files and functions
        self.left: list[str] = []  # tests
        if self.passed:
            sys.meta_path.append(_Last())  # type: ignore[arg-type]
            _note_programs()

    def leave(self, items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
        """Return the tests to run, and those that passed in the first leg."""
        cases = defaultdict(list)
        for item in items:
            cases[_function(item.nodeid)].append(item.nodeid)
        known = {function for function, tests in cases.items() if self.known.get(function) == sorted(tests)}
        left = [item for item in items if _function(item.nodeid) in known]
        self.left = [item.nodeid for item in left]
        return [item for item in items if _function(item.nodeid) not in known], left

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[Any]:
        needs.asked_in_vain.clear()
        report = yield
        if needs.asked_in_vain:
            self.apart.add(_file(collector.nodeid))
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[Any]:
        report = yield
        if item.path.suffix == ".ipynb":
            needs.asked_in_vain.discard(_PROGRAM)
        in_fixture = needs.asked_in_vain and report.when == "setup" and report.passed
        if in_fixture or _file(item.nodeid) in self.apart:
            report.user_properties.append((_APART, _FILE))
        elif needs.asked_in_vain:
            report.user_properties.append((_APART, _FUNCTION))
        needs.asked_in_vain.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = _function(report.nodeid)
        self.tests[function].add(report.nodeid)
        apart = dict(report.user_properties).get(_APART)
        if apart == _FILE:
            self.apart.add(_file(report.nodeid))
        elif apart or report.outcome != "passed":
            self.apart.add(function)

    def pytest_sessionfinish(self) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["left"] = self.left
        elif self.passed:
            tests = {name: sorted(cases) for name, cases in self.tests.items() if not {name, _file(name)} & self.apart}
            Path(self.passed).write_text(json.dumps(tests, indent=0), encoding="utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["passed"] = self.passed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if (left := getattr(node, "workeroutput", {}).get("left")) and not self.left:
            self.left = left
            self.config.hook.pytest_deselected(items=[SimpleNamespace(nodeid=test) for test in left])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.left:
            terminalreporter.write_line(f"{len(self.left):,} tests were deselected: they passed in the first leg.")


class _Last:
    """The last finder of modules and of installed packages: a lookup that reaches it has failed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if path is None:
            _note(name)
        return None

    def find_distributions(self, context: Any) -> tuple[()]:
        _note(context.name)
        return ()


def _note_programs() -> None:
    start = subprocess.Popen.__init__

    @wraps(start)
    def noting(*arguments: Any, **options: Any) -> None:
        needs.asked_in_vain.add(_PROGRAM)
        start(*arguments, **options)

    subprocess.Popen.__init__ = noting  # type: ignore[method-assign]


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _function(nodeid: str) -> str:
    file = _file(nodeid)
    return file if file.endswith(".ipynb") else nodeid.partition("[")[0]  # cells follow from those before


def _note(name: str | None) -> None:
    if name in needs.NEEDS:
        needs.asked_in_vain.add(name)
