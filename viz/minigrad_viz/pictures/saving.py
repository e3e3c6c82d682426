"""Saving to files, in the format of the path's suffix."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, DTypeError, MissingFileError, a_kind
from minigrad_viz.pictures.palette import Theme

__all__ = ["FileWriter", "is_whole", "number_of", "save", "save_shown", "theme_of"]


class FileWriter(NamedTuple):
    """The writer of a file format: `write` returns the file's content and accepts the keyword arguments `options`."""

    write: Callable[..., str | bytes]
    options: tuple[str, ...] = ()


def save(path: Any, writers: Mapping[str, FileWriter], example: str, **options: Any) -> None:
    """Write `path` with the writer of its suffix. Options that are None are not passed to the writer.

    Raises ArgumentError for a suffix that is not in `writers` and for an option that its writer does not accept,
    DTypeError if `path` is not a path, MissingFileError if its directory does not exist. `example` is a valid call,
    for the message.
    """
    if not isinstance(path, str | os.PathLike):
        raise DTypeError(f"save: {path!r} is {a_kind(path)}, not a path.\n  Write {example}.")
    file = Path(os.fspath(path))
    suffix = file.suffix.lower()
    if suffix not in writers:
        raise ArgumentError(f"save: {str(file)!r} has no supported suffix.\n  Use one of {', '.join(writers)}.")
    given = {name: x for name, x in options.items() if x is not None}
    for name in given:
        if name not in writers[suffix].options:
            taking = [end for end, writer in writers.items() if name in writer.options]
            instead = f"It applies to {', '.join(taking)}." if taking else "Omit it."
            raise ArgumentError(f"save: {suffix} files have no option {name!r}.\n  {instead}")
    if not file.parent.is_dir():
        raise MissingFileError(
            f"save: directory {str(file.parent)!r} of {file.name!r} does not exist.\n"
            f"  Create it first: os.makedirs({str(file.parent)!r})."
        )
    content = writers[suffix].write(**given)
    file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def theme_of(theme: Any) -> Theme | None:
    """Return `theme` if it is "light", "dark" or None. Raises ArgumentError otherwise."""
    if theme not in ("light", "dark", None):
        raise ArgumentError(f'save: theme must be "light" or "dark", but got {theme!r}.\n  Omit it to use the default.')
    found: Theme | None = theme
    return found


def is_whole(x: Any) -> bool:
    """Return whether `x` is a positive integer."""
    return isinstance(x, int) and not isinstance(x, bool) and x > 0


def number_of(x: Any, name: str) -> float:
    """Return `x` as a float if it is a positive, finite int or float. Raises ArgumentError otherwise."""
    if not isinstance(x, int | float) or isinstance(x, bool) or not 0 < x < math.inf:
        raise ArgumentError(f"save: {name} must be a positive number, but got {x!r}.\n  Omit it to use the default.")
    return float(x)


def save_shown(shown: Any, path: Any, example: str, theme: Theme | None) -> None:
    """Save an object with methods ``svg``, ``html`` and ``text`` to `path`, as `save` does."""
    writers = {
        ".svg": FileWriter(shown.svg, ("theme",)),
        ".html": FileWriter(shown.html, ("theme",)),
        ".txt": FileWriter(shown.text),
    }
    save(path, writers, example, theme=theme)
