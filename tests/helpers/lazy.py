"""Find packages while tests are collected, and import them when a test first uses one of their names.

Each process of pytest-xdist collects every test module. Taichi, PyTorch and nbgrader take seconds to import, and most
processes that collect them run few of their tests.
"""

from importlib import import_module
from typing import Any

from needs import needs


class LazyModule:
    """A module that is imported when one of its attributes is first read or set.

    Only public attributes import it: pytest asks the objects in a test module for special and private ones.
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
    """Return a package that is imported when a test first reads one of its names; skip the module where it is missing.

    Raises what the import raises when a test first uses a package that is installed and broken.
    """
    needs(name)
    return LazyModule(name)
