"""Import of Taichi, without what it prints and in half the time."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import warnings
from collections.abc import Iterator
from typing import Any

from minigrad.backends.taichi.runtime.disk_cache import ensure_cache_home
from minigrad.core.packages import import_package
from minigrad.core.specialise import compile_function

__all__ = ["import_taichi"]


def import_taichi() -> Any:
    """Import Taichi without its banner, and without warnings about its sources on newer versions of Python."""
    os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
    os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")  # otherwise Taichi contacts a server once a day
    ensure_cache_home()
    os.environ.setdefault("TI_ENABLE_PYBUF", "0")  # otherwise Taichi prints a notice in notebooks
    _add_modules_of_callers()
    with warnings.catch_warnings(), _pause_garbage_collection():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # the warnings have this category in Python 3.11
        return import_package("taichi", "kernels of Taichi")


def _add_modules_of_callers() -> None:
    """Add the files of two modules to the cache of `inspect`, which therefore finds the modules at once.

    Each decorator of Taichi inspects the frame that executes the decorated module, to find out whether the function is
    a method. That frame belongs to the import system, or to `compile_function` for minigrad's kernels. `inspect` does
    not find the import system by its file and then compares the files of all imported modules, 279 times while Taichi
    is imported: half of the import time in a script, and more in a notebook, which has imported more modules.
    """
    modules: dict[str, str] = getattr(inspect, "modulesbyfile", {})
    modules.setdefault("<frozen importlib._bootstrap>", "importlib._bootstrap")
    modules.setdefault(compile_function.__code__.co_filename, compile_function.__module__)


@contextlib.contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Return a context without garbage collection, which finds nothing in modules that are being imported."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
