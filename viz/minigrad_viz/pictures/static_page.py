"""Self-contained documents for drawings: SVG, figures of notebooks, and HTML pages without a player.

They make no requests and follow the user's theme.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from minigrad_viz.pictures.palette import DARK, FONT, LIGHT, THEMES, Theme
from minigrad_viz.trace.notation import escape

__all__ = ["html_page", "image_tag", "svg_document", "zoomable"]


def svg_document(
    content: str,
    size: tuple[float, float],
    css: str,
    title: str,
    description: str,
    display_size: tuple[float, float] | None = None,
) -> str:
    """Return an SVG document with `content` and a view box of `size`, displayed at `display_size` if that is given.

    >>> svg_document("", (40.0, 30.0), "", "a < b", "two letters")[105:-70]
    '<title>a &lt; b</title><desc>two letters</desc><style></style>'
    """
    width, height = size
    shown_width, shown_height = display_size or size
    rules = css.replace("&", "&amp;").replace("<", "&lt;")  # quotes need no escaping in content
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg" role="img" width="{shown_width:g}" '
        f'height="{shown_height:g}" viewBox="0 0 {width:g} {height:g}"><title>{escape(title)}</title>'
        f"<desc>{escape(description)}</desc><style>{rules}</style>"
        f'<rect class="page" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>{content}</svg>'
    )


def image_tag(svg: str, alt: str, width: int, display_width: str) -> str:
    """Return an ``<img>`` with an SVG document of `width` pixels, shown at `display_width`, a CSS length."""
    encoded = base64.b64encode(svg.encode()).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{encoded}" alt="{escape(alt)}" width="{width}" '
        f'style="width:{display_width};max-width:none;height:auto">'
    )


def html_page(title: str, body: str, theme: Theme | None = None, css: str = "") -> str:
    """Return an HTML page with `body`, which may contain SVG, and the additional CSS rules `css`.

    >>> html_page("a < b", "<p>Hello</p>")[:15]
    '<!doctype html>'
    """
    if theme is None:
        scheme = "light dark"
        colours = (
            f":root{{{_css_variables(LIGHT)}}}@media (prefers-color-scheme:dark){{:root{{{_css_variables(DARK)}}}}}"
        )
    else:
        scheme, colours = theme, f":root{{{_css_variables(THEMES[theme])}}}"
    rules = f":root{{color-scheme:{scheme}}}{colours}{_PAGE.replace('FONT', FONT)}{css}".replace("\n", "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="{scheme}"><title>{escape(title)}</title><style>{rules}</style></head>\n'
        f"<body><main>{body}</main></body></html>\n"
    )


def zoomable(svg: str, width: int) -> str:
    """Return a drawing in a region that scrolls with the keyboard, with radio buttons for the zoom if the drawing is
    wide.

    >>> zoomable("<svg/>", 400)
    '<div class="picture" tabindex="0" role="region" aria-label="Picture; arrow keys scroll"><svg/></div>'
    """
    view = f'<div class="picture" tabindex="0" role="region" aria-label="Picture; arrow keys scroll">{svg}</div>'
    if width <= _MAX_UNZOOMED_WIDTH:
        return view
    buttons = "".join(
        f'<input type="radio" name="zoom" id="{key}"{" checked" if key == "fit" else ""}>'
        f'<label for="{key}">{label}</label>'
        for key, label, _ in _ZOOMS
    )
    sizes = "".join(f"#{key}:checked~.picture svg{{width:{round(width * share)}px}}" for key, _, share in _ZOOMS[1:])
    return f"<section class='zoom'><style>{sizes}</style><span>Zoom</span>{buttons}{view}</section>"


def _css_variables(colours: Mapping[str, str]) -> str:
    return ";".join(f"--{key}:{colour}" for key, colour in colours.items())


_MAX_UNZOOMED_WIDTH = 1000  # maximum width in pixels of a drawing without zoom buttons
_ZOOMS = (("fit", "Fit", 0.0), ("half", "50%", 0.5), ("full", "100%", 1.0))
_PAGE = """
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem clamp(1rem,3vw,2.5rem) 3rem;max-width:100rem;background:var(--page);
color:var(--ink);font:1rem/1.5 FONT;font-variant-numeric:tabular-nums}
h1{font-size:1.4rem;line-height:1.25;margin:0 0 .5rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2rem 0 .5rem}
p{margin:.25rem 0 .5rem;max-width:60rem}
.picture{overflow-x:auto;margin:1rem 0}
.picture svg{display:block;max-width:none;height:auto}
.zoom{margin-top:1rem;color:var(--muted);font-size:.9rem}
.zoom input{position:absolute;opacity:0}
.zoom label{display:inline-block;margin-left:.4rem;padding:.1rem .7rem;border:1px solid var(--rim);border-radius:1rem;
cursor:pointer}
.zoom input:checked+label{background:var(--output);color:var(--on-output);border-color:var(--output)}
.zoom input:focus-visible+label{outline:3px solid var(--forward);outline-offset:2px}
#fit:checked~.picture svg{width:100%}
details{margin-top:1rem}
summary{cursor:pointer;color:var(--forward)}
pre{overflow-x:auto;font-size:.85rem;line-height:1.35}
:focus-visible{outline:3px solid var(--forward);outline-offset:2px}
"""
