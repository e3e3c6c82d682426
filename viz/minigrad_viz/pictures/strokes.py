"""Strokes of edges: width and opacity encode the magnitude of the gradient that flowed back, hue encodes its sign.

The player draws the same strokes: `edgeStrokes` in `frontend/src/drawing/appearance.js`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from minigrad_viz.trace import Pass
from minigrad_viz.trace.arrays import summary
from minigrad_viz.trace.columns import is_finite

__all__ = ["COLOURS", "Stroke", "Strokes"]

_NON_FINITE = 2
_HUES = (
    f".mg .edge.{way}{{{{stroke:{{{way}}}}}}}.mg .tip.{way}{{{{fill:{{{way}}};stroke:none}}}}"
    for way in ("positive", "negative", "mixed")
)
COLOURS = (
    f"{''.join(_HUES)}.mg .edge.zero{{{{stroke-dasharray:2 5}}}}.mg .edge.wild{{{{stroke:{{alarm}}}}}}"
    ".mg .grad{{fill:{backward}}}.mg .grad.less{{fill:{negative}}}.mg .grad.dim{{fill:{muted}}}"
)


class Stroke(NamedTuple):
    """The stroke of an edge. `share` is the square root of the ratio of the edge's magnitude to the largest one."""

    share: float
    sign: Literal["positive", "negative", "mixed", "zero", "wild"]
    """ "wild" if the gradient is not finite."""

    @property
    def width(self) -> float:
        """The width in pixels."""
        return 1 + 4 * self.share

    @property
    def opacity(self) -> float:
        """The opacity, which is large enough for every edge to be visible."""
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
    >>> strokes.max_magnitude, strokes.of([0]), strokes.of([1])
    (8.0, Stroke(share=1.0, sign='negative'), Stroke(share=0.5, sign='positive'))
    """

    def __init__(self, backward_pass: Pass | None) -> None:
        self._backward_pass = backward_pass

    @cached_property
    def _magnitudes(self) -> dict[int, tuple[float, int]]:
        backward_pass = self._backward_pass
        return (
            {}
            if backward_pass is None
            else {e: _magnitude(x) for e, x in zip(backward_pass.edge, backward_pass.contribution, strict=True)}
        )

    @cached_property
    def max_magnitude(self) -> float:
        """The largest magnitude of a contribution."""
        return max((size for size, _ in self._magnitudes.values()), default=0.0)

    def of(self, edges: Sequence[int]) -> Stroke | None:
        """Return the stroke of `edges`, which are drawn as a single edge; None if no gradient flowed over them."""
        contributions = [self._magnitudes[edge] for edge in edges if edge in self._magnitudes]
        if not contributions:
            return None
        size, signs = max(size for size, _ in contributions), {sign for _, sign in contributions}
        if _NON_FINITE in signs:
            return Stroke(1.0, "wild")
        sign = "zero" if size == 0 else "positive" if signs == {1} else "negative" if signs == {-1} else "mixed"
        share = math.sqrt(size / self.max_magnitude) if self.max_magnitude else 0.0
        return Stroke(share, sign)  # type: ignore[arg-type]


def _magnitude(x: Any) -> tuple[float, int]:
    """Return the largest magnitude in a scalar or array, and the sign: 0 if signs are mixed or all values are 0."""
    if not is_finite(x):
        return 0.0, _NON_FINITE
    low, high = (x, x) if isinstance(x, float) else (summary(x)["min"] or 0.0, summary(x)["max"] or 0.0)
    return max(abs(low), abs(high)), (0 if low < 0 < high or low == high == 0 else 1 if low >= 0 else -1)
