"""A pytest plugin that records which collected file first imports a package that takes seconds to import."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["HEAVY", "HeavyImports"]

HEAVY = ("matplotlib", "ray", "taichi", "torch")


class HeavyImports:
    """Records, for each of these packages, the node of the file that imported it. `find_spec` alone imports nothing."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def note(self, who: str) -> None:
        for name in HEAVY:
            if name in sys.modules:
                self.found.setdefault(name, who)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[Any]:
        self.note("tests/conftest.py or a plugin")
        report = yield
        self.note(collector.nodeid)
        return report
