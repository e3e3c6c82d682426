"""Load the training function of a sweep from the user's file, on the driver and in workers, and check its signature."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Collection
from hashlib import sha256
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, DTypeError, MissingFileError, a_kind

__all__ = ["FunctionSource", "check_parameters", "source"]


class FunctionSource(NamedTuple):
    """A reference to a function in a file, so that each worker imports the file itself."""

    path: str
    name: str
    who: str
    """The configuration file, for error messages."""

    def load(self) -> Callable[..., Any]:
        """Import and return the function. Raises ArgumentError if it does not exist, or its file fails to run."""
        who, module = self.who, _module(self.who, Path(self.path))
        found = getattr(module, self.name, None)
        if found is None:
            there = [
                name for name, x in vars(module).items() if inspect.isfunction(x) and x.__module__ == module.__name__
            ]
            known = f"it defines {', '.join(there)}" if there else "it defines no functions"
            raise ArgumentError(f"{who}: {Path(self.path).name} has no {self.name!r}; {known}.")
        if not callable(found):
            raise DTypeError(f"{who}: {self.name!r} in {Path(self.path).name} is {a_kind(found)}, not a function.")
        train: Callable[..., Any] = found
        return train

    def __call__(self, **given: Any) -> Any:
        return self.load()(**given)

    def digest(self) -> str:
        """Return a hash of the file, to detect changes."""
        return sha256(Path(self.path).read_bytes()).hexdigest()


def source(who: str, given: Any, folder: Path) -> FunctionSource:
    """Parse ``"train.py:train"``, relative to `folder`. Raises ArgumentError for other forms, or MissingFileError."""
    file, colon, name = given.rpartition(":") if isinstance(given, str) else ("", "", "")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise ArgumentError(
            f'{who}: train={given!r} is not of the form "file.py:function".\n  Write train = "train.py:train", with a '
            "relative path."
        )
    path = (folder / file).resolve()
    if not path.is_file():
        raise MissingFileError(f"{who}: no such file: {path}, from train={given!r}.")
    return FunctionSource(str(path), name, who)


def _module(who: str, path: Path) -> ModuleType:
    """Import a file as a module, once per process, with its folder on ``sys.path``."""
    name = path.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return known
        raise ArgumentError(f"{who}: another module {name!r} is already imported.\n  Rename {path.name}.")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{who}: cannot import {path}.")
    module = sys.modules[name] = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ArgumentError(f"{who}: {_place(error, path)} raised {type(error).__name__}: {error}") from error
    return module


def _place(error: Exception, path: Path) -> str:
    """Return the line of an error in a file, for error messages."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"line {error.lineno} of {path.name}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"line {lines[-1]} of {path.name}" if lines else path.name


def check_parameters(who: str, function: Callable[..., Any], given: Collection[str]) -> tuple[str, ...]:
    """Return which of `report` and `folder` a function accepts. Raises ArgumentError if it does not accept the `given`
    parameters, or requires others.

    >>> def train(lr, report, width=16):
    ...     report(val_loss=lr * width)
    >>> check_parameters("sweep", train, ["lr"])
    ('report',)
    """
    name = getattr(function, "__name__", "train")
    parameters = inspect.signature(function).parameters
    kinds = {key: x.kind for key, x in parameters.items()}
    every = inspect.Parameter.VAR_KEYWORD in kinds.values()
    named = [key for key, kind in kinds.items() if kind in (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY)]
    form = f"def {name}({', '.join([*given, 'report'])})"
    for key in given:
        if key not in named and not every:
            raise ArgumentError(f"{who}: {name}() got an unexpected keyword argument {key!r}.\n  Write {form}.")
    if "report" not in named and not every:
        raise ArgumentError(
            f"{who}: {name}() has no parameter 'report' to report its metrics with.\n  Write {form}, and call "
            "fit(…, callbacks=[report]), or report(val_loss=…) after each epoch."
        )
    offered = [*given, "report", "folder"]
    for key in named:
        if parameters[key].default is inspect.Parameter.empty and key not in offered:
            raise ArgumentError(
                f"{who}: {name}() missing required argument {key!r}.\n  Write {key} = … under [grid], [random] or "
                f"[fixed], or add a default: {key}=…"
            )
    return ("report", "folder") if "folder" in named or every else ("report",)
