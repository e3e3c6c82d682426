"""Caches for an architecture are cleared when it changes, whichever file defines them."""

import re
from pathlib import Path

from minigrad.backends import taichi
from minigrad.backends.taichi.codegen.tiles import packing
from minigrad.backends.taichi.kernels.elementwise import computed
from minigrad.backends.taichi.runtime import caches, driver
from minigrad.backends.taichi.runtime.caches import Remembered, cached


def test_what_was_remembered_is_made_again_once_it_was_forgotten(monkeypatch):
    monkeypatch.setattr(caches, "_caches", [])
    made, plans = [], Remembered()

    @cached()
    def kernel(name):
        made.append(name)
        return name.upper()

    @cached(1)
    def last(name):
        return name

    plans["sum"] = "in one step"
    assert (kernel("a"), kernel("a"), last("b"), made) == ("A", "A", "b", ["a"])
    caches.forget()
    assert plans == {}
    assert last.cache_info().currsize == 0
    assert (kernel("a"), made) == ("A", ["a", "a"])


def test_caches_are_emptied_when_the_architecture_changes():
    assert caches.forget in driver._changes
    emptied = [getattr(empty, "__self__", None) for empty in caches._caches]
    assert any(x is computed.__globals__["_families"] for x in emptied)
    assert packing.cache_clear in caches._caches


def test_what_writes_and_plans_kernels_has_no_cache_but_these():
    """Caches in `runtime` do not depend on the architecture, such as the one for loading Taichi."""
    folder = Path(taichi.__file__).parent
    files = [*(folder / "codegen").glob("*.py"), *(folder / "kernels").glob("*.py")]
    own = re.compile(r"\blru_cache\b|\bimport .*\bcache\b|functools\.cache")
    assert [path.name for path in files if own.search(path.read_text(encoding="utf-8"))] == []
