"""The user's source line that calls a PyTorch function."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from linecache import getline

import torch

from minigrad_viz.trace.names import PACKAGE_FOLDER

__all__ = ["caller_line"]

_LIBRARY_FOLDERS = (os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), ""), PACKAGE_FOLDER)


def caller_line() -> str | None:
    """Return "file:number: source" of the innermost frame outside of PyTorch and this package; None without one."""
    frame = sys._getframe(1)
    while _is_library_file(frame.f_code.co_filename):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return _format_line(frame.f_code.co_filename, frame.f_lineno)


@lru_cache(maxsize=4096)
def _is_library_file(path: str) -> bool:
    return path.startswith(_LIBRARY_FOLDERS)


@lru_cache(maxsize=4096)
def _format_line(path: str, number: int) -> str:
    return f"{os.path.basename(path)}:{number}: {getline(path, number).strip()}"
