"""Import packages lazily: find them during collection, and import them when a test first uses one of their names.

Each process of pytest-xdist collects every test module. Taichi, PyTorch and nbgrader take seconds to import, and most
processes that collect them run few of their tests.
"""

from importlib import import_module
from typing import Any

from needs import needs


class LazyModule:
    """A module that is imported when one of its attributes is first read or set.

    Only public attributes trigger the import: pytest probes the objects in a test module for special and private ones.
    """

    def __init__(self, name: str) -> None:
        vars(self)["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_", "pytest")):
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)

    def __setattr__(self, attribute: str, value: Any) -> None:
        setattr(import_module(self._name), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(import_module(self._name), attribute)


def import_lazily(name: str) -> Any:
    """Return a package that is imported when one of its names is first read; skip the module if it is not installed.

    Reading a name raises the import's error if the package is installed but broken.
    """
    needs(name)
    return LazyModule(name)
