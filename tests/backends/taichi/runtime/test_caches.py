"""Caches for an architecture are cleared when it changes, whichever file defines them."""

import re
from pathlib import Path

from minigrad.backends import taichi
from minigrad.backends.taichi.codegen.tiles import packing_kernel
from minigrad.backends.taichi.kernels.elementwise import evaluate
from minigrad.backends.taichi.runtime import caches, driver
from minigrad.backends.taichi.runtime.caches import ArchDict, arch_cache


def test_cleared_results_are_computed_again(monkeypatch):
    monkeypatch.setattr(caches, "_clear_functions", [])
    made, plans = [], ArchDict()

    @arch_cache()
    def kernel(name):
        made.append(name)
        return name.upper()

    @arch_cache(1)
    def last(name):
        return name

    plans["sum"] = "in one step"
    assert (kernel("a"), kernel("a"), last("b"), made) == ("A", "A", "b", ["a"])
    caches.clear_caches()
    assert plans == {}
    assert last.cache_info().currsize == 0
    assert (kernel("a"), made) == ("A", ["a", "a"])


def test_caches_are_cleared_when_the_architecture_changes():
    assert caches.clear_caches in driver._change_callbacks
    emptied = [getattr(empty, "__self__", None) for empty in caches._clear_functions]
    assert any(x is evaluate.__globals__["_families"] for x in emptied)
    assert packing_kernel.cache_clear in caches._clear_functions


def test_code_generators_use_only_these_caches():
    """Caches in `runtime` do not depend on the architecture, such as the one for loading Taichi."""
    folder = Path(taichi.__file__).parent
    files = [*(folder / "codegen").glob("*.py"), *(folder / "kernels").glob("*.py")]
    own = re.compile(r"\blru_cache\b|\bimport .*\bcache\b|functools\.cache")
    assert [path.name for path in files if own.search(path.read_text(encoding="utf-8"))] == []
