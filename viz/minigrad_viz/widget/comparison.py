"""`compare`: a comparison of two runs of one graph, which are drawn side by side with the first difference."""

from __future__ import annotations

import os
from typing import Any

import minigrad as mg
from minigrad.core.errors import DTypeError, describe_type
from minigrad_viz.pictures.compare import figure, page, render_comparison, table
from minigrad_viz.pictures.file_writers import check_theme, save_view
from minigrad_viz.pictures.palette import Theme
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.differences import Differences, differences
from minigrad_viz.trace.notation import sanitize, shorten

__all__ = ["Comparison", "compare"]


class Comparison:
    """The result of `compare`: a picture in a notebook, text in a terminal. It can be saved as either, or as a page."""

    def __init__(self, comparison: Differences) -> None:
        self.differences = comparison

    @property
    def agrees(self) -> bool:
        """Whether all values and gradients that could be compared agree."""
        return not self.differences.nodes

    def svg(self, theme: Theme | None = None) -> str:
        """Return the picture as SVG; it follows the user's theme, light or dark, unless one is given."""
        return render_comparison(self.differences, check_theme(theme)).svg

    def text(self) -> str:
        """Return the text form."""
        return table(self.differences)

    def html(self, theme: Theme | None = None) -> str:
        """Return a self-contained page with the differences in words, the picture and all values."""
        return page(self.differences, check_theme(theme))

    def save(self, path: str | os.PathLike[str], *, theme: Theme | None = None) -> None:
        """Write the comparison to `path` in the format of its suffix: ``.svg``, ``.html`` or ``.txt``. `theme` is
        "light" or "dark".

        Raises ArgumentError for another suffix or theme, DTypeError if `path` is not a path, MissingFileError if its
        folder does not exist.
        """
        save_view(self, path, "comparison.save('runs.svg')", theme)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": figure(self.differences), "text/plain": self.text()}


def compare(a: Any, b: Any, *, rtol: float | None = None, atol: float | None = None) -> Comparison:
    """Compare two runs of the same graph: all values and gradients, and the origin of the first difference.

    `a` and `b` are Values, tensors, lists of these, traces, drawings or players. They are drawn as one graph in which
    each card has both values; differences are marked with the relative difference, and nodes that agree are pale. Three
    nodes are named: the first node in tape order whose value differs; the first operation whose value differs although
    its operands agree; and the first node in backward order whose gradient differs although everything it depends on
    agrees. The bug is in such an operation, or in its gradient rule. A custom op or a `Function` may replace another
    operation, so that a custom gradient rule can be compared with a reference.

    The gradients compared are ``.grad`` in both runs, or else those of a backward pass in both. Two elements differ if
    their distance exceeds ``atol + rtol · m``, where m is the larger of their magnitudes, or the median magnitude of
    their tensors if that is larger. By default rtol and atol are 1e-9 and 1e-12 for float64 and Values, 1e-5 and 1e-8
    for float32; integers must be equal. NaNs are equal. For tensors that were not built inside ``mg.record()`` some
    values may not have been saved: the result states how many could not be compared.

    Raises ArgumentError if the graphs differ, naming the first node whose operation, operands or shape differ;
    DTypeError for an argument without a graph.

    >>> import minigrad as mg
    >>> def run(w):
    ...     w, x = mg.Value(w, "w"), mg.Value(3.0, "x")
    ...     y = (w * x).relu()
    ...     y.backward()
    ...     return y
    >>> compare(run(2.0), run(2.0)).agrees
    True
    >>> print(compare(run(2.0), run(2.5)))
    4 of 4 nodes differ: 3 values and 1 gradient, beyond rtol 1e−9 and atol 1e−12.
    ! The first value that differs, in tape order, is an input: w: 2.0 | 2.5 (≠ 20%).
    ! Each gradient that differs follows from values or gradients before it that differ.
    #  name  made by   data, first  data, second         grad, first  grad, second
    0  w     leaf              2.0           2.5  ≠ 20%          3.0           3.0
    1  x     leaf              3.0           3.0                 2.0           2.5  ≠ 20%
    2  v₂    w · x             6.0           7.5  ≠ 20%          1.0           1.0
    3  v₃    relu(v₂)          6.0           7.5  ≠ 20%          1.0           1.0
    """
    first, second = (_trace(x) for x in (a, b))
    return Comparison(differences(first, second, rtol, atol))


def _trace(x: Any) -> Trace:
    for part in x if isinstance(x, list | tuple) else [x]:
        if not (
            isinstance(getattr(part, "trace", part), Trace) or isinstance(part, mg.Value) or hasattr(part, "grad_fn")
        ):
            raise DTypeError(
                f"compare: {shorten(sanitize(repr(part)), 60)} is {describe_type(part)}, which has no graph.\n"
                "  Pass two computed Values or tensors, or their drawings."
            )
    return to_trace(x)
