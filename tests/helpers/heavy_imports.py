"""A pytest plugin that records which collected file first imports a package that takes seconds to import."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["PACKAGES", "HeavyImports"]

PACKAGES = ("matplotlib", "ray", "taichi", "torch")


class HeavyImports:
    """Records, for each of these packages, the node of the file that imported it. `find_spec` alone imports nothing."""

    def __init__(self) -> None:
        self.importers: dict[str, str] = {}

    def record(self, node_id: str) -> None:
        for name in PACKAGES:
            if name in sys.modules:
                self.importers.setdefault(name, node_id)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[Any]:
        self.record("tests/conftest.py or a plugin")
        report = yield
        self.record(collector.nodeid)
        return report
