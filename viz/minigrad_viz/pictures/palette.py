"""The light and dark colour palettes. Each colour has one meaning, and no information is conveyed by colour alone.

The forward pass is blue. Gradients are orange if positive and purple if negative; heatmap cells are green and magenta,
and alarms are red. Magnitudes of gradients are shown on a scale from yellow to teal. The colours of each of these pairs
are distinguishable under every kind of colour blindness. Text has a contrast ratio of at least 4.5:1 with its
background; a test computes it from the tables below.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

__all__ = [
    "CONTRAST_PAIRS",
    "DARK",
    "FLOW",
    "FONT",
    "LIGHT",
    "SERIES",
    "THEMES",
    "Theme",
    "javascript",
    "stylesheet",
]

Theme = Literal["light", "dark"]

FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif"

LIGHT = {
    "page": "#fbfcfd",
    "rim": "#d5dbe4",
    "card": "#ffffff",
    "ink": "#17212c",
    "muted": "#556274",
    "line": "#7a8798",
    "forward": "#0a58a6",
    "backward": "#9a4600",
    "wash": "#fdf1e3",
    "leaf": "#44546a",
    "on-leaf": "#ffffff",
    "op": "#e8edf3",
    "on-op": "#17212c",
    "output": "#1c2937",
    "on-output": "#ffffff",
    "alarm": "#b3003c",
    "on-alarm": "#ffffff",
    "halo": "#8dbdec",
    "hot": "#c25700",
    "heat": "#f0a95e",
    "positive": "#b35000",
    "negative": "#6a1b5a",
    "mixed": "#7d6449",
    "zero": "#ffffff",
    "plus": "#1b7837",
    "minus": "#b3287e",
}
DARK = {
    "page": "#11161c",
    "rim": "#313c49",
    "card": "#1a212a",
    "ink": "#e9eef4",
    "muted": "#a5b1c1",
    "line": "#8b98a9",
    "forward": "#82bdf4",
    "backward": "#f5b273",
    "wash": "#33281b",
    "leaf": "#55667d",
    "on-leaf": "#ffffff",
    "op": "#2b3542",
    "on-op": "#e9eef4",
    "output": "#e9eef4",
    "on-output": "#11161c",
    "alarm": "#ff6f98",
    "on-alarm": "#11161c",
    "halo": "#2f6fae",
    "hot": "#ff9d3c",
    "heat": "#a8611d",
    "positive": "#f5a858",
    "negative": "#c266ff",
    "mixed": "#c9b08a",
    "zero": "#1a212a",
    "plus": "#62c481",
    "minus": "#f08cc8",
}
THEMES: dict[Theme, dict[str, str]] = {"light": LIGHT, "dark": DARK}
FLOW: dict[Theme, list[str]] = {
    "light": ["#ece6a6", "#c9ddac", "#a5d0b0", "#76b8a9", "#3f9c9c", "#2e7d8a", "#1b5f78", "#14425b", "#0c2740"],
    "dark": ["#16323f", "#1b4857", "#1f6070", "#2f7d83", "#3f9c97", "#76b7a0", "#a3d3a8", "#d0e5b7", "#fbf6c6"],
}
"""Colour scale from small to large values. Contrast with the page increases monotonically, even without hue."""
SERIES: dict[Theme, list[str]] = {
    "light": ["#0072b2", "#e69f00", "#009e73", "#555555"],
    "dark": ["#4aa3df", "#e69f00", "#2ecc71", "#b8bec6"],
}
"""Colours of the series of a plot, "C0" to "C3": blue, orange, green and grey, as in ``notebooks/lessons.mplstyle``."""
CONTRAST_PAIRS = [
    ("ink", "page"),
    ("ink", "card"),
    ("ink", "wash"),
    ("muted", "page"),
    ("muted", "card"),
    ("forward", "card"),
    ("backward", "wash"),
    ("backward", "page"),
    ("on-leaf", "leaf"),
    ("on-op", "op"),
    ("on-output", "output"),
    ("on-alarm", "alarm"),
    ("alarm", "page"),
    ("alarm", "card"),
    ("alarm", "wash"),
    ("muted", "op"),
    ("alarm", "op"),
    ("muted", "wash"),
    ("page", "backward"),
    ("page", "forward"),
    ("positive", "wash"),
    ("negative", "wash"),
    ("zero", "plus"),
    ("zero", "minus"),
]
"""Pairs of text and background colours whose contrast is tested."""

_SHAPES = """
.mg{{font-family:{FONT};font-size:12.5px;font-variant-numeric:tabular-nums}}
.mg text{{white-space:pre}}
.mg .name{{font-size:13px;font-weight:700}}
.mg .rule{{font-size:13px}}
.mg .cap{{font-size:11px}}
.mg .sum{{font-size:11px;font-weight:700}}
.mg .num{{text-anchor:end}}
.mg .edge{{fill:none;stroke-width:1.5}}
.mg .none{{stroke-dasharray:2 4}}
.mg .d{{font-size:11px;text-anchor:end}}
.mg .box{{stroke-width:1.25}}
.mg .still .box{{stroke-dasharray:4 3}}
.mg .ring{{fill:none;stroke-width:1.25}}
.mg .key{{font-size:11.5px}}
.mg .said{{font-size:12px}}
.mg .dots{{fill:none;stroke-width:8}}
"""

_COLOURS = """
.mg .page{{fill:{page};stroke:{rim}}}
.mg text{{fill:{ink}}}
.mg .box{{fill:{card};stroke:{line}}}
.mg .leaf .box{{stroke:{leaf}}}
.mg .output .box,.mg .ring{{stroke:{output}}}
.mg .head{{fill:{op}}}
.mg .op .head+text{{fill:{on-op}}}
.mg .leaf .head{{fill:{leaf}}}
.mg .leaf .head+text{{fill:{on-leaf}}}
.mg .output .head{{fill:{output}}}
.mg .output .head+text{{fill:{on-output}}}
.mg .wash{{fill:{wash}}}
.mg .fw{{fill:{forward}}}
.mg .bw,.mg .d{{fill:{backward}}}
.mg .dim,.mg .key{{fill:{muted}}}
.mg .edge{{stroke:{line}}}
.mg .tip{{fill:{line}}}
.mg .ground{{fill:{page}}}
.mg .alarm{{fill:{alarm}}}
.mg .alarm+text{{fill:{on-alarm}}}
.mg .bad .box{{stroke:{alarm};stroke-width:2.5}}
.mg .dots{{stroke:{muted}}}
.mg .dots.leaf{{stroke:{forward}}}
.mg .dots.bad{{stroke:{alarm}}}
"""


def _colours(theme: Theme) -> dict[str, str]:
    scales = {"flow": FLOW, "series": SERIES}
    return THEMES[theme] | {f"{name}{k}": c for name, scale in scales.items() for k, c in enumerate(scale[theme])}


def _format_rules(template: str, colours: Mapping[str, str]) -> str:
    return template.format_map({"FONT": FONT, **colours}).replace("\n", "")


def stylesheet(shapes: str = "", colours: str = "", theme: Theme | None = None) -> str:
    """Return the CSS of a drawing. If `theme` is None, a media query follows the user's light or dark theme, which also
    works inside an image.

    `shapes` and `colours` are templates of additional rules, with doubled braces and colour names as placeholders.
    """
    if theme is not None:
        return f"{_format_rules(_SHAPES + shapes, {})}{_format_rules(_COLOURS + colours, _colours(theme))}"
    light, dark = (_format_rules(_COLOURS + colours, _colours(one)) for one in THEMES)
    return f"{_format_rules(_SHAPES + shapes, {})}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def javascript() -> str:
    """Return the palettes as a JavaScript module, which `make stubs` writes to ``frontend/src/drawing/palette.js``."""
    tables = json.dumps({"light": LIGHT, "dark": DARK}, indent=2)
    return (
        "/** Written by `make stubs` from minigrad_viz/pictures/palette.py: change that. A colour is `--mg-…`. */\n\n"
        f"export const FONT = {json.dumps(FONT)};\n\n"
        f'/** @type {{Record<"light" | "dark", Record<string, string>>}} */\nexport const PALETTE = {tables};\n'
    )
