"""The player's JavaScript, as one text: the file that the wheel carries, or else made of the sources in a clone.

`module` is for a notebook and a page of its own; `script` for pages whose scripts may be no modules, as a book opened
from disk.
"""

from __future__ import annotations

import functools
from pathlib import Path

from minigrad_viz.bundle import PLAYER, bundle, classic

__all__ = ["BUILT", "SOURCES", "build", "module", "script"]

BUILT = Path(__file__).parent / "static" / "player.js"
SOURCES = Path(__file__).parents[1] / "frontend" / "src"  # in a clone, and so in an editable installation


def build() -> str:
    """The module made of the sources in a clone. Raises BundleError where they cannot be put together."""
    return bundle(SOURCES, *PLAYER)


def module() -> str:
    """An ES module: ``mount`` puts a player into an element, ``startAll`` one into each figure with a trace."""
    if BUILT.is_file():
        return _read(BUILT)
    files = sorted(SOURCES.glob("*.js"))
    return _built(tuple((path, path.stat().st_mtime_ns) for path in files))


def script() -> str:
    """The same as a classic script, which starts the players of its page by itself."""
    return classic(module(), "startAll(document);")


@functools.cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.lru_cache(1)
def _built(_state: tuple[tuple[Path, int], ...]) -> str:
    """The module, made again when one of its files has changed."""
    return build()
