"""Saving to a file, in the format of its suffix."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, DTypeError, MissingFileError, describe_type
from minigrad_viz.pictures.palette import Theme

__all__ = ["FileWriter", "check_positive", "check_theme", "is_positive_int", "save", "save_view"]


class FileWriter(NamedTuple):
    """The writer of a file format. `write` returns the content of the file, and accepts the keywords in `options`."""

    write: Callable[..., str | bytes]
    options: tuple[str, ...] = ()


def save(path: Any, writers: Mapping[str, FileWriter], example: str, **options: Any) -> None:
    """Write the file `path` with the writer for its suffix. Options that are None are not passed to the writer.

    Raises ArgumentError for a suffix that is not in `writers` and for an option that its writer does not accept,
    DTypeError if `path` is not a path, MissingFileError if its directory does not exist. `example` is a valid call to
    quote in the error message.
    """
    if not isinstance(path, str | os.PathLike):
        raise DTypeError(f"save: {path!r} is {describe_type(path)}, not a path.\n  Write {example}.")
    file = Path(os.fspath(path))
    suffix = file.suffix.lower()
    if suffix not in writers:
        raise ArgumentError(f"save: {str(file)!r} has no supported suffix.\n  Use one of {', '.join(writers)}.")
    passed = {name: x for name, x in options.items() if x is not None}
    for name in passed:
        if name not in writers[suffix].options:
            supporting_suffixes = [end for end, writer in writers.items() if name in writer.options]
            advice = f"It applies to {', '.join(supporting_suffixes)}." if supporting_suffixes else "Omit it."
            raise ArgumentError(f"save: {suffix} files have no option {name!r}.\n  {advice}")
    if not file.parent.is_dir():
        raise MissingFileError(
            f"save: directory {str(file.parent)!r} of {file.name!r} does not exist.\n"
            f"  Create it first: os.makedirs({str(file.parent)!r})."
        )
    content = writers[suffix].write(**passed)
    file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def check_theme(theme: Any) -> Theme | None:
    """Return `theme` if it is "light", "dark" or None. Raises ArgumentError otherwise."""
    if theme not in ("light", "dark", None):
        raise ArgumentError(f'save: theme must be "light" or "dark", but got {theme!r}.\n  Omit it to use the default.')
    checked: Theme | None = theme
    return checked


def is_positive_int(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x > 0


def check_positive(x: Any, name: str) -> float:
    """Return `x` as a float if it is a positive, finite int or float. Raises ArgumentError otherwise."""
    if not isinstance(x, int | float) or isinstance(x, bool) or not 0 < x < math.inf:
        raise ArgumentError(f"save: {name} must be a positive number, but got {x!r}.\n  Omit it to use the default.")
    return float(x)


def save_view(view: Any, path: Any, example: str, theme: Theme | None) -> None:
    """Save a view, with methods ``svg``, ``html`` and ``text``, to `path`. Raises the same errors as `save`."""
    writers = {
        ".svg": FileWriter(view.svg, ("theme",)),
        ".html": FileWriter(view.html, ("theme",)),
        ".txt": FileWriter(view.text),
    }
    save(path, writers, example, theme=theme)
