"""Scripts that pages load in addition to the theme: the player if there is a graph, and MathJax from npm."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from minigrad_viz.pictures import frontend

__all__ = ["setup"]

BOOK = Path(__file__).resolve().parent.parent
MATHJAX = BOOK.parent / "viz" / "frontend" / "node_modules" / "mathjax" / "es5" / "tex-mml-svg.js"
VENDOR = BOOK / "_static" / "vendor"
PICTURE = '<figure class="minigrad'
STILL = re.compile(rf"({PICTURE}[^>]*)>")
DRAWN = re.compile(
    rf'({PICTURE}")((?:(?!data-minigrad|</figure>).)*class="minigrad-trace"[^>]*>)(.*?)(?=</script>)', re.DOTALL
)


def fetch(app: Sphinx, config: Any) -> None:
    if not MATHJAX.is_file():
        advice = "Run `make tools`, which needs npm and a network."
        raise ExtensionError(f"MathJax is not installed.\n  {advice}")
    (VENDOR / "ui").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(MATHJAX, VENDOR / MATHJAX.name)
    shutil.copyfile(MATHJAX.parent / "ui" / "lazy.js", VENDOR / "ui" / "lazy.js")  # for pages with many formulas
    # A classic script, since Chromium loads no modules from file: URLs.
    (VENDOR / "player.js").write_text(frontend.script(), encoding="utf-8")


def as_drawn(figure: re.Match[str]) -> str:
    """Start the player of a drawing that shows gradients at its last step, where it shows them, too."""
    trace = json.loads(figure[3])
    if "f" not in trace["nodes"]["state"] or not trace["passes"]:
        return figure[0]
    last = trace["nodes"]["kind"].count("o") + 1 + len(trace["passes"][0]["edge"])
    return f"{figure[1]} data-minigrad='{json.dumps({'position': last})}'{figure[2]}{figure[3]}"


def start_players(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the player only on pages with a graph, and make wide drawings scrollable by keyboard."""
    if PICTURE in context.get("body", ""):
        context["body"] = STILL.sub(r'\1 tabindex="0">', DRAWN.sub(as_drawn, context["body"]))
        app.add_js_file("vendor/player.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", fetch)
    app.connect("html-page-context", start_players)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
