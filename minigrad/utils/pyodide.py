"""Import hook for web pages: Pyodide's packages are loaded on first import, also from within a function.

A notebook in a page (JupyterLite) loads the packages that a cell imports before it runs the cell. minigrad imports
NumPy later, when the first tensor is created, so that pages that only use `Value` do not download it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType

__all__ = ["PyodideFinder", "install"]


class PyodideFinder:
    """Finder for top-level modules that no other finder has found, in the packages of Pyodide's lock file.

    Loading is asynchronous, and an import is not. Pyodide can wait for it in browsers with JavaScript Promise
    Integration; in others the module stays missing.
    """

    def __init__(self) -> None:
        self._ffi, self._pyodide = import_module("pyodide.ffi"), import_module("pyodide_js")

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Load the package that has a module, if there is one, and return the module's spec."""
        if path is not None or not self._ffi.can_run_sync():
            return None
        self._ffi.run_sync(self._pyodide.loadPackagesFromImports(f"import {name}"))
        invalidate_caches()
        return PathFinder.find_spec(name)


def install() -> None:
    """Append the finder to `sys.meta_path`, and let tqdm start no thread and display its bars as widgets in notebooks.

    A page has no threads, and tqdm recognises a notebook by a setting that the kernel of a page does not have.
    """
    if find_spec("pyodide_js") is not None:
        sys.meta_path.append(PyodideFinder())
    import_module("tqdm").tqdm.monitor_interval = 0
    if (shell := import_module("IPython").get_ipython() if "IPython" in sys.modules else None) is not None:
        shell.config.setdefault("IPKernelApp", {})
