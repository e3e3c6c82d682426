"""Scripts that pages load in addition to the theme: the player if there is a graph, and MathJax from npm.

The theme's source maps are removed.
"""

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
SOURCE_MAP = re.compile(r"(?://|/\*)# sourceMappingURL=\S+(?: ?\*/)?\s*$")
FIGURE_START = '<figure class="minigrad'
FIGURE_TAG = re.compile(rf"({FIGURE_START}[^>]*)>")
FIGURE_WITH_TRACE = re.compile(
    rf'({FIGURE_START}")((?:(?!data-minigrad|</figure>).)*class="minigrad-trace"[^>]*>)(.*?)(?=</script>)', re.DOTALL
)


def copy_scripts(app: Sphinx, config: Any) -> None:
    if not MATHJAX.is_file():
        advice = "Run `make tools`, which needs npm and a network."
        raise ExtensionError(f"MathJax is not installed.\n  {advice}")
    (VENDOR / "ui").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(MATHJAX, VENDOR / MATHJAX.name)
    shutil.copyfile(MATHJAX.parent / "ui" / "lazy.js", VENDOR / "ui" / "lazy.js")  # for pages with many formulas
    # A classic script, since Chromium loads no modules from file: URLs.
    (VENDOR / "player.js").write_text(frontend.script(), encoding="utf-8")


def start_at_end(figure: re.Match[str]) -> str:
    """If a drawing shows gradients, start its player at the last step, where the player shows them, too."""
    trace = json.loads(figure[3])
    if "f" not in trace["nodes"]["state"] or not trace["passes"]:
        return figure[0]
    last = trace["nodes"]["kind"].count("o") + 1 + len(trace["passes"][0]["edge"])
    return f"{figure[1]} data-minigrad='{json.dumps({'position': last})}'{figure[2]}{figure[3]}"


def add_player(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the player only on pages with a graph, and make wide drawings scrollable by keyboard."""
    if FIGURE_START in context.get("body", ""):
        context["body"] = FIGURE_TAG.sub(r'\1 tabindex="0">', FIGURE_WITH_TRACE.sub(start_at_end, context["body"]))
        app.add_js_file("vendor/player.js", loading_method="defer")


def remove_source_maps(app: Sphinx, error: Exception | None) -> None:
    """Remove the theme's source maps, three megabytes that only its authors need, and the references to them."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir, "_static").rglob("*.map"):
        path.unlink()
        script = path.with_suffix("")
        if script.is_file():
            text = script.read_text(encoding="utf-8")
            script.write_text(SOURCE_MAP.sub("", text), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", copy_scripts)
    app.connect("html-page-context", add_player)
    app.connect("build-finished", remove_source_maps)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
