"""Strokes of edges: width and opacity encode the magnitude of the gradient that flowed back, hue encodes its sign.

The player draws the same strokes: `strokesOf` in `frontend/src/drawing/looks.js`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from minigrad_viz.trace import Pass
from minigrad_viz.trace.arrays import summary
from minigrad_viz.trace.columns import finite

__all__ = ["COLOURS", "Stroke", "Strokes"]

_WILD = 2
_HUES = (
    f".mg .edge.{way}{{{{stroke:{{{way}}}}}}}.mg .tip.{way}{{{{fill:{{{way}}};stroke:none}}}}"
    for way in ("positive", "negative", "mixed")
)
COLOURS = (
    f"{''.join(_HUES)}.mg .edge.zero{{{{stroke-dasharray:2 5}}}}.mg .edge.wild{{{{stroke:{{alarm}}}}}}"
    ".mg .grad{{fill:{backward}}}.mg .grad.less{{fill:{negative}}}.mg .grad.dim{{fill:{muted}}}"
)


class Stroke(NamedTuple):
    """The stroke of an edge; `share`, in [0, 1], is the square root of its magnitude relative to the largest."""

    share: float
    sign: Literal["positive", "negative", "mixed", "zero", "wild"]
    """ "wild" if it is not finite."""

    @property
    def width(self) -> float:
        """The width in pixels."""
        return 1 + 4 * self.share

    @property
    def opacity(self) -> float:
        """The opacity, with a minimum at which an edge is still visible."""
        return 0.55 + 0.45 * self.share

    def attributes(self) -> str:
        """Return the SVG attributes."""
        return f' style="stroke-width:{self.width:.3g};opacity:{self.opacity:.3g}"'


class Strokes:
    """The strokes of the edges of a backward pass.

    >>> import minigrad as mg
    >>> from minigrad_viz import to_trace
    >>> a, b = mg.Value(2.0, "a"), mg.Value(-8.0, "b")
    >>> strokes = Strokes(to_trace(a * b).passes[0])
    >>> strokes.most, strokes.of([0]), strokes.of([1])
    (8.0, Stroke(share=1.0, sign='negative'), Stroke(share=0.5, sign='positive'))
    """

    def __init__(self, run: Pass | None) -> None:
        self._run = run

    @cached_property
    def _passed(self) -> dict[int, tuple[float, int]]:
        run = self._run
        return {} if run is None else {e: _magnitude(x) for e, x in zip(run.edge, run.contribution, strict=True)}

    @cached_property
    def most(self) -> float:
        """The largest magnitude of a contribution."""
        return max((size for size, _ in self._passed.values()), default=0.0)

    def of(self, edges: Sequence[int]) -> Stroke | None:
        """Return the stroke of edges that are drawn as one; None if no gradient flowed over any."""
        found = [self._passed[edge] for edge in edges if edge in self._passed]
        if not found:
            return None
        size, signs = max(size for size, _ in found), {sign for _, sign in found}
        if _WILD in signs:
            return Stroke(1.0, "wild")
        sign = "zero" if size == 0 else "positive" if signs == {1} else "negative" if signs == {-1} else "mixed"
        return Stroke(math.sqrt(size / self.most) if self.most else 0.0, sign)  # type: ignore[arg-type]


def _magnitude(x: Any) -> tuple[float, int]:
    """Return the largest magnitude of a scalar or array, and its sign; 0 if signs are mixed or all values are 0."""
    if not finite(x):
        return 0.0, _WILD
    low, high = (x, x) if isinstance(x, float) else (summary(x)["min"] or 0.0, summary(x)["max"] or 0.0)
    return max(abs(low), abs(high)), (0 if low < 0 < high or low == high == 0 else 1 if low >= 0 else -1)
