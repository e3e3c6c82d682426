"""Formatting of the value and gradient of a node, in the final state or at a moment."""

from __future__ import annotations

import math
from collections.abc import Callable

from minigrad_viz.trace import Trace
from minigrad_viz.trace.arrays import line, summary
from minigrad_viz.trace.captions import scalar_of
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import brief

__all__ = ["SIGNS", "gradient", "pictured", "shape_text", "value"]

SIGNS = {"none": "—", "blocked": "blocked"}


def pictured(trace: Trace, index: int) -> bool:
    """Return whether a node is shown as heatmaps, which single-element tensors are not."""
    tensor = trace.tensors.get(index)
    return tensor is not None and math.prod(tensor.shape) != 1


def value(trace: Trace, index: int, show: Callable[[float], str] = brief, now: Moment | None = None) -> str:
    """Format the value of a node: a scalar, or a one-line summary of a tensor; at a moment, "" before it is
    computed."""
    if now is not None and not now.is_computed(index):
        return ""
    if trace.kinds[index] == "x":
        return "raised"
    tensor = trace.tensors.get(index)
    if tensor is None:
        return trace.amount(index, show)
    if tensor.array is None:
        return "not kept"
    return line(summary(tensor.array)) if pictured(trace, index) else trace.amount(index, show)


def gradient(trace: Trace, index: int, show: Callable[[float], str] = brief, now: Moment | None = None) -> str:
    """Format the gradient of a node, or why it has none; at a moment, the gradient accumulated so far."""
    if trace.kinds[index] == "x":
        return "—"
    if now is not None:
        so_far = now.gradient(index)
        if so_far.value is None:
            return SIGNS[so_far.state]
        one = scalar_of(so_far.value)
        text = show(one) if isinstance(one, float) else line(summary(one))
        return f"{text} (Σ {so_far.met} of {so_far.of})" if so_far.state == "partial" else text
    if index in trace.grads and pictured(trace, index):
        return line(summary(trace.grads[index]))
    return trace.gradient(index, show)


def shape_text(shape: tuple[int, ...], dtype: str = "") -> str:
    """Format a shape, and optionally a dtype.

    >>> shape_text((2, 3), "float32"), shape_text(())
    ('2×3 float32', 'scalar')
    """
    return f"{'×'.join(map(str, shape)) or 'scalar'} {dtype}".strip()
