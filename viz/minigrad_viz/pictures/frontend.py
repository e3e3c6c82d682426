"""The player's JavaScript, as one text, which `make frontend` makes of its sources and which is committed.

`module` is for a notebook; `script` for pages, whose scripts may be no modules when they are opened from disk.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

__all__ = ["BUILT", "module", "script"]

BUILT = Path(__file__).parents[1] / "static" / "player.js"
_EXPORTS = re.compile(r"export\{([^{}]*)\};\s*\Z")


@functools.cache
def module() -> str:
    """An ES module: ``mount`` puts a player into an element, ``startAll`` one into each figure with a trace."""
    return BUILT.read_text(encoding="utf-8")


@functools.cache
def script() -> str:
    """The same as a classic script, which starts the players of its page by itself and leaves one name, ``minigrad``.

    >>> script().startswith('(()=>{"use strict";')
    True
    """
    text = module()
    exports = _EXPORTS.search(text)
    assert exports is not None, "the built module ends in its exports"
    names = re.sub(r"([\w$]+) as ([\w$]+)", r"\2:\1", exports[1])
    start = f"globalThis.minigrad={{{names}}};minigrad.startAll(document)"
    return f'(()=>{{"use strict";{text[: exports.start()]}{start}}})();\n'
