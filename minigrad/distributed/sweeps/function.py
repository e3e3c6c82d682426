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

from minigrad.core.errors import ArgumentError, DTypeError, MissingFileError, describe_type

__all__ = ["FunctionSource", "check_parameters", "parse_source"]


class FunctionSource(NamedTuple):
    """A reference to a function in a file, so that each worker imports the file itself."""

    path: str
    name: str
    prefix: str
    """Prefix of error messages, such as the name of the configuration file."""

    def load(self) -> Callable[..., Any]:
        """Import and return the function. Raises ArgumentError if the file lacks it or raises an error."""
        prefix, module = self.prefix, _import_file(self.prefix, Path(self.path))
        value = getattr(module, self.name, None)
        if value is None:
            function_names = [
                name for name, x in vars(module).items() if inspect.isfunction(x) and x.__module__ == module.__name__
            ]
            definitions = f"it defines {', '.join(function_names)}" if function_names else "it defines no functions"
            raise ArgumentError(f"{prefix}: {Path(self.path).name} has no {self.name!r}; {definitions}.")
        if not callable(value):
            raise DTypeError(
                f"{prefix}: {self.name!r} in {Path(self.path).name} is {describe_type(value)}, not a function."
            )
        train: Callable[..., Any] = value
        return train

    def __call__(self, **kwargs: Any) -> Any:
        return self.load()(**kwargs)

    def digest(self) -> str:
        """Return a hash of the file, to detect changes."""
        return sha256(Path(self.path).read_bytes()).hexdigest()


def parse_source(prefix: str, value: Any, folder: Path) -> FunctionSource:
    """Parse a reference such as ``"train.py:train"``, relative to `folder`.

    Raises ArgumentError for other forms, and MissingFileError if the file does not exist.
    """
    file, colon, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise ArgumentError(
            f'{prefix}: train={value!r} is not of the form "file.py:function".\n'
            '  Write train = "train.py:train", with a '
            "relative path."
        )
    path = (folder / file).resolve()
    if not path.is_file():
        raise MissingFileError(f"{prefix}: no such file: {path}, from train={value!r}.")
    return FunctionSource(str(path), name, prefix)


def _import_file(prefix: str, path: Path) -> ModuleType:
    """Import a file as a module, once per process, with its folder on ``sys.path``."""
    name = path.stem
    loaded = sys.modules.get(name)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == str(path):
            return loaded
        raise ArgumentError(f"{prefix}: another module {name!r} is already imported.\n  Rename {path.name}.")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{prefix}: cannot import {path}.")
    module = sys.modules[name] = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ArgumentError(
            f"{prefix}: {_error_location(error, path)} raised {type(error).__name__}: {error}"
        ) from error
    return module


def _error_location(error: Exception, path: Path) -> str:
    """Return the line of the file at which `error` was raised, as text for error messages."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"line {error.lineno} of {path.name}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"line {lines[-1]} of {path.name}" if lines else path.name


def check_parameters(prefix: str, function: Callable[..., Any], names: Collection[str]) -> tuple[str, ...]:
    """Return which of `report` and `folder` a function accepts. Raises ArgumentError if it does not accept the
    parameters `names`, or requires others.

    >>> def train(lr, report, width=16):
    ...     report(val_loss=lr * width)
    >>> check_parameters("sweep", train, ["lr"])
    ('report',)
    """
    name = getattr(function, "__name__", "train")
    parameters = inspect.signature(function).parameters
    kinds = {key: x.kind for key, x in parameters.items()}
    has_kwargs = inspect.Parameter.VAR_KEYWORD in kinds.values()
    keyword_parameters = [key for key, kind in kinds.items() if kind in (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY)]
    signature = f"def {name}({', '.join([*names, 'report'])})"
    for key in names:
        if key not in keyword_parameters and not has_kwargs:
            raise ArgumentError(f"{prefix}: {name}() got an unexpected keyword argument {key!r}.\n  Write {signature}.")
    if "report" not in keyword_parameters and not has_kwargs:
        raise ArgumentError(
            f"{prefix}: {name}() has no parameter 'report' to report its metrics with.\n  Write {signature}, and call "
            "fit(…, callbacks=[report]), or report(val_loss=…) after each epoch."
        )
    available = [*names, "report", "folder"]
    for key in keyword_parameters:
        if parameters[key].default is inspect.Parameter.empty and key not in available:
            raise ArgumentError(
                f"{prefix}: {name}() missing required argument {key!r}.\n  Write {key} = … under [grid], [random] or "
                f"[fixed], or add a default: {key}=…"
            )
    return ("report", "folder") if "folder" in keyword_parameters or has_kwargs else ("report",)
