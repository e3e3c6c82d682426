"""Which worker process runs which tests: modules stay whole, long ones first, and the largest are cut.

Tests of one module share what their fixtures make and the kernels they compile, so a module stays in one process. What
is long begins first: at the end short modules are left, and both workers stop at about the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = ["ByModule", "long_modules_first"]

# Folders whose tests share what takes long to make: the built book, Ray's processes, a browser with its pages.
BY_FOLDER = ("tests/book/", "tests/distributed/", "tests/viz/browser/")
# Modules whose tests share nothing: each test function is scheduled by itself, or each test where one takes long.
BY_FUNCTION = ("tests/ops/test_ops.py", "tests/compiler/jit/test_jit.py")
BY_TEST = (
    "tests/whole/test_devices.py",
    "tests/whole/test_on_gpu.py",
    "tests/whole/test_examples.py",
    "tests/whole/test_torture.py",
)


class ByModule(LoadScopeScheduling):
    """Schedules a module at a time, in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(BY_TEST):
            return nodeid
        if folder := next(filter(nodeid.startswith, BY_FOLDER), None):
            return folder
        return nodeid.split("[")[0] if nodeid.startswith(BY_FUNCTION) else super()._split_scope(nodeid)


def long_modules_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests ordered by module, the modules with most tests marked ``slow`` first."""
    modules = [(list(tests), path) for path, tests in groupby(items, key=lambda item: item.path)]
    slow = {path: sum(item.get_closest_marker("slow") is not None for item in tests) for tests, path in modules}
    return [item for tests, _ in sorted(modules, key=lambda module: -slow[module[1]]) for item in tests]
