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

__all__ = ["CiLegs"]

_LOOKUP_FAILED = "lookup failed"
_PROGRAM = "a child process"
_FILE, _FUNCTION = "file", "function"


class CiLegs:
    """Records the failed lookups of tests in each process; the main process collects and writes the results."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        # Removed from the environment, so that no program started by a test inherits it.
        self.passed: str | None = os.environ.pop("CI_PASSED", None) or getattr(config, "workerinput", {}).get("passed")
        passed_file: str | None = config.getoption("leave")
        self.passed_before: dict[str, list[str]] = (
            json.loads(Path(passed_file).read_text(encoding="utf-8")) if passed_file else {}
        )
        self.tests: defaultdict[str, set[str]] = defaultdict(set)
        self.excluded: set[str] = set()  # files and functions
        self.deselected: list[str] = []  # tests
        if self.passed:
            sys.meta_path.append(_MissingFinder())  # type: ignore[arg-type]
            _record_programs()

    def split(self, items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
        """Return the tests to run, and those that passed in the first leg."""
        cases = defaultdict(list)
        for item in items:
            cases[_function_id(item.nodeid)].append(item.nodeid)
        repeated = {function for function, tests in cases.items() if self.passed_before.get(function) == sorted(tests)}
        deselected = [item for item in items if _function_id(item.nodeid) in repeated]
        self.deselected = [item.nodeid for item in deselected]
        return [item for item in items if _function_id(item.nodeid) not in repeated], deselected

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[Any]:
        needs.missing_lookups.clear()
        report = yield
        if needs.missing_lookups:
            self.excluded.add(_file_id(collector.nodeid))
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[Any]:
        report = yield
        if item.path.suffix == ".ipynb":
            needs.missing_lookups.discard(_PROGRAM)
        in_fixture = needs.missing_lookups and report.when == "setup" and report.passed
        if in_fixture or _file_id(item.nodeid) in self.excluded:
            report.user_properties.append((_LOOKUP_FAILED, _FILE))
        elif needs.missing_lookups:
            report.user_properties.append((_LOOKUP_FAILED, _FUNCTION))
        needs.missing_lookups.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = _function_id(report.nodeid)
        self.tests[function].add(report.nodeid)
        scope = dict(report.user_properties).get(_LOOKUP_FAILED)
        if scope == _FILE:
            self.excluded.add(_file_id(report.nodeid))
        elif scope or report.outcome != "passed":
            self.excluded.add(function)

    def pytest_sessionfinish(self) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["left"] = self.deselected
        elif self.passed:
            tests = {
                name: sorted(cases) for name, cases in self.tests.items() if not {name, _file_id(name)} & self.excluded
            }
            Path(self.passed).write_text(json.dumps(tests, indent=0), encoding="utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["passed"] = self.passed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if (deselected := getattr(node, "workeroutput", {}).get("left")) and not self.deselected:
            self.deselected = deselected
            self.config.hook.pytest_deselected(items=[SimpleNamespace(nodeid=test) for test in deselected])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.deselected:
            terminalreporter.write_line(
                f"{len(self.deselected):,} tests were deselected: they passed in the first leg."
            )


class _MissingFinder:
    """The last finder of modules and of installed packages: a lookup that reaches it has failed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if path is None:
            _record_missing(name)
        return None

    def find_distributions(self, context: Any) -> tuple[()]:
        _record_missing(context.name)
        return ()


def _record_programs() -> None:
    original = subprocess.Popen.__init__

    @wraps(original)
    def recording(*arguments: Any, **options: Any) -> None:
        needs.missing_lookups.add(_PROGRAM)
        original(*arguments, **options)

    subprocess.Popen.__init__ = recording  # type: ignore[method-assign]


def _file_id(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _function_id(nodeid: str) -> str:
    file = _file_id(nodeid)
    return file if file.endswith(".ipynb") else nodeid.partition("[")[0]  # cells follow from those before


def _record_missing(name: str | None) -> None:
    if name in needs.NEEDS:
        needs.missing_lookups.add(name)
