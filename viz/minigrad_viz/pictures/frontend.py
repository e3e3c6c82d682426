"""The JavaScript bundle of the player, which `make frontend` builds and which is in the repository.

`module` is for notebooks, and `script` for pages, since browsers do not load modules from ``file://``.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

__all__ = ["BUNDLE", "module", "script"]

BUNDLE = Path(__file__).parents[1] / "static" / "player.js"
_EXPORTS = re.compile(r"export\{([^{}]*)\};\s*\Z")


@functools.cache
def module() -> str:
    """Return the ES module. ``mount`` mounts a player in an element, ``startAll`` one in each figure with a trace."""
    return BUNDLE.read_text(encoding="utf-8")


@functools.cache
def script() -> str:
    """Return the bundle as a classic script that starts the players of its page and defines one global, ``minigrad``.

    >>> script().startswith('(()=>{"use strict";')
    True
    """
    source = module()
    exports = _EXPORTS.search(source)
    assert exports is not None, "the built module ends in its exports"
    names = re.sub(r"([\w$]+) as ([\w$]+)", r"\2:\1", exports[1])
    start_code = f"globalThis.minigrad={{{names}}};minigrad.startAll(document)"
    return f'(()=>{{"use strict";{source[: exports.start()]}{start_code}}})();\n'
