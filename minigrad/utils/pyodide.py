"""Import hook for web pages: Pyodide's packages are loaded on first import, also from within a function.

A notebook in a page (JupyterLite) loads the packages that a cell imports before it runs the cell. minigrad imports
NumPy later, when the first tensor is created, so that pages that only use `Value` do not download it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["PyodideFinder", "install"]


class PyodideFinder:
    """Finder for top-level modules that no other finder has found, in the packages of Pyodide's lock file.

    Loading is asynchronous, and an import is not. Pyodide can wait for it in browsers with JavaScript Promise
    Integration; in others the module stays missing.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Load the package that has a module, if there is one, and return the module's spec."""
        ffi = import_module("pyodide.ffi")
        if path is not None or not ffi.can_run_sync():
            return None
        ffi.run_sync(import_module("pyodide_js").loadPackagesFromImports(f"import {name}"))
        invalidate_caches()
        return PathFinder.find_spec(name)


def install() -> None:
    """Append the finder to `sys.meta_path`, once."""
    if PyodideFinder not in sys.meta_path:
        sys.meta_path.append(PyodideFinder)
