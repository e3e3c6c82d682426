"""Run Python as a page does: `without_a_system` takes from CPython what Pyodide lacks.

What is missing was read from Pyodide 314 (CPython 3.14) under Node.js, with its own packages and no others: threads,
processes, file locks, some modules of the standard library, and the packages for which there is no wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["MISSING", "ROOT", "run_in_page", "without_a_system"]

ROOT = Path(__file__).parents[2]
MISSING = (
    *("_curses", "_dbm", "_gdbm", "_hashlib", "_interpchannels", "_interpqueues", "_interpreters", "_multiprocessing"),
    *("_posixshmem", "_tkinter", "curses", "dbm", "ensurepip", "fcntl", "grp", "msvcrt", "pwd", "readline", "resource"),
    *("syslog", "tkinter", "turtle", "venv"),
    *("av", "psutil", "ray", "safetensors", "taichi", "threadpoolctl", "torch", "typst", "zmq"),  # packages
)


def no_thread(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("can't start new thread")


def no_process(*_: Any, **__: Any) -> NoReturn:
    raise OSError(138, "emscripten does not support processes.")


def without_a_system(*more: str) -> None:
    """Remove threads, processes and `MISSING` from this process, and the modules `more`. It cannot be undone."""
    import _thread
    import sysconfig
    import threading

    sysconfig.get_config_vars()  # before it would look for those of another system

    for module, names in {
        _thread: ("start_new_thread", "start_new", "start_joinable_thread"),
        threading: ("_start_new_thread", "_start_joinable_thread"),
    }.items():
        for name in names:
            if hasattr(module, name):
                setattr(module, name, no_thread)
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "execv", "execve"):
        if hasattr(os, name):
            setattr(os, name, no_process)
    subprocess.Popen.__init__ = no_process
    if os.name == "posix":
        sys.modules["posix"]._emscripten_log = print  # which the standard library imports there
    os.cpu_count = lambda: 1
    if hasattr(os, "sched_getaffinity"):
        del os.sched_getaffinity
    sys.platform = "emscripten"
    sys.modules.update(dict.fromkeys((*MISSING, *more)))


def run_in_page(code: str, *missing: str, folder: Path = ROOT, timeout: float = 600) -> str:
    """Run `code` in a child process like a page, also without the packages `missing`, and return what it prints."""
    start = f"import page\npage.without_a_system(*{missing!r})\n"
    paths = [str(ROOT), str(ROOT / "viz"), str(Path(__file__).parent)]
    environ = {key: text for key, text in os.environ.items() if key != "MINIGRAD_DEVICE"}
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", start + code],
        capture_output=True, text=True, encoding="utf-8", timeout=timeout, cwd=folder, check=False,
        env={**environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return child.stdout
