"""Files: what is written, the suffix of the path says."""

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
    """How files of a suffix are written: `write` makes their content, and takes arguments by the names in `options`."""

    write: Callable[..., str | bytes]
    options: tuple[str, ...] = ()


def save(path: Any, writers: Mapping[str, FileWriter], example: str, **options: Any) -> None:
    """Write to `path` what its suffix says; an option that is None is not given.

    Raises ArgumentError for a suffix that `writers` lack and for an option that is not one of its writer's, DTypeError
    for what is no path, MissingFileError where its folder does not exist. `example` is a call that works.
    """
    if not isinstance(path, str | os.PathLike):
        raise DTypeError(f"save: {path!r} is {a_kind(path)}, not a path.\n  Write {example}.")
    file = Path(os.fspath(path))
    suffix = file.suffix.lower()
    if suffix not in writers:
        raise ArgumentError(f"save: {str(file)!r} does not say what to write.\n  End it with {', '.join(writers)}.")
    given = {name: x for name, x in options.items() if x is not None}
    for name in given:
        if name not in writers[suffix].options:
            taking = [end for end, writer in writers.items() if name in writer.options]
            instead = f"It is one of {', '.join(taking)}." if taking else "Leave it out."
            raise ArgumentError(f"save: {name} is no option of {suffix} files.\n  {instead}")
    if not file.parent.is_dir():
        raise MissingFileError(
            f"save: there is no folder {str(file.parent)!r} for {file.name!r}.\n"
            f"  Make it first: os.makedirs({str(file.parent)!r})."
        )
    content = writers[suffix].write(**given)
    file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def theme_of(theme: Any) -> Theme | None:
    """`theme`, if it is "light", "dark" or None. Raises ArgumentError for anything else."""
    if theme not in ("light", "dark", None):
        raise ArgumentError(f'save: there is no theme {theme!r}.\n  There are "light" and "dark".')
    found: Theme | None = theme
    return found


def is_whole(x: Any) -> bool:
    """Whether `x` is an integer above 0."""
    return isinstance(x, int) and not isinstance(x, bool) and x > 0


def number_of(x: Any, name: str) -> float:
    """`x`, if it is a number above 0. Raises ArgumentError for anything else."""
    if not isinstance(x, int | float) or isinstance(x, bool) or not 0 < x < math.inf:
        raise ArgumentError(f"save: {name} = {x!r} is not a number above 0.\n  Give one, or leave it out.")
    return float(x)


def save_shown(shown: Any, path: Any, example: str, theme: Theme | None) -> None:
    """Write what has an ``svg``, a ``html`` and a ``text`` to `path`, as `save` does."""
    writers = {
        ".svg": FileWriter(shown.svg, ("theme",)),
        ".html": FileWriter(shown.html, ("theme",)),
        ".txt": FileWriter(shown.text),
    }
    save(path, writers, example, theme=theme)
