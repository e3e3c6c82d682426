"""Schedule tests on worker processes: modules stay together, slow ones run first, and the largest are split.

Tests of a module share what their fixtures create and the kernels they compile, so a module stays in one process. Slow
modules start first, so that only short ones remain at the end and both workers finish at about the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = ["ByModule", "long_modules_first"]

# Folders whose tests share something slow to create: the built book, Ray's processes, a browser with its pages.
BY_FOLDER = ("tests/book/", "tests/distributed/", "tests/viz/browser/")
# Modules whose tests share nothing: each function is scheduled separately, or each test if one takes long.
BY_FUNCTION = ("tests/ops/test_ops.py", "tests/compiler/jit/test_jit.py")
BY_TEST = (
    "tests/whole/test_devices.py",
    "tests/whole/test_on_gpu.py",
    "tests/whole/test_examples.py",
    "tests/whole/test_torture.py",
)


class ByModule(LoadScopeScheduling):
    """Schedules one module at a time, in collection order."""

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
    """Return the tests grouped by module, the modules with most tests marked ``slow`` first."""
    modules = [(list(tests), path) for path, tests in groupby(items, key=lambda item: item.path)]
    slow = {path: sum(item.get_closest_marker("slow") is not None for item in tests) for tests, path in modules}
    return [item for tests, _ in sorted(modules, key=lambda module: -slow[module[1]]) for item in tests]
