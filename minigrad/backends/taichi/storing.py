"""The folder in which Taichi stores what it compiled, for the next process."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["clear", "stored"]

_passing: list[tempfile.TemporaryDirectory[str]] = []  # folders that stand in for one that cannot be written to


@contextlib.contextmanager
def stored(ti: Any) -> Iterator[None]:
    """A block in which Taichi starts with a folder for what it compiles. Where that cannot be written to, one that is
    gone at the end stands in for it: Taichi makes the folder at its end in any case, and crashes where it cannot."""
    name = "TI_OFFLINE_CACHE_FILE_PATH"
    given = os.environ.get(name)
    folder = str(given or ti.lang.impl.default_cfg().offline_cache_file_path)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        warnings.warn(
            f"What is compiled cannot be stored in {folder} ({error.strerror}), so each process compiles it anew.\n"
            f"  Set {name} to a folder that can be written to.",
            stacklevel=2,
        )
        passing = tempfile.TemporaryDirectory()
        _passing.append(passing)
        os.environ[name] = passing.name
    try:
        yield
    finally:
        if given is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = given


def clear() -> None:
    """Remove what stood in for the folder, when Taichi has ended."""
    while _passing:
        _passing.pop().cleanup()
