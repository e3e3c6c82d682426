"""Formatting of the value and gradient of a node, in the final state or at a moment."""

from __future__ import annotations

import math
from collections.abc import Callable

from minigrad_viz.trace import Trace
from minigrad_viz.trace.arrays import format_summary, summary
from minigrad_viz.trace.captions import scalar_of
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import format_brief

__all__ = ["STATE_SIGNS", "format_gradient", "format_shape", "format_value", "has_heatmap"]

STATE_SIGNS = {"none": "—", "blocked": "blocked"}


def has_heatmap(trace: Trace, index: int) -> bool:
    """Return whether a node is shown as heatmaps, as are all tensors except those with a single element."""
    tensor = trace.tensors.get(index)
    return tensor is not None and math.prod(tensor.shape) != 1


def format_value(
    trace: Trace, index: int, formatter: Callable[[float], str] = format_brief, moment: Moment | None = None
) -> str:
    """Format the value of a node, or a one-line summary of a tensor. Return "" for a moment before it is computed."""
    if moment is not None and not moment.is_computed(index):
        return ""
    if trace.kinds[index] == "x":
        return "raised"
    tensor = trace.tensors.get(index)
    if tensor is None:
        return trace.value_text(index, formatter)
    if tensor.array is None:
        return "not kept"
    return format_summary(summary(tensor.array)) if has_heatmap(trace, index) else trace.value_text(index, formatter)


def format_gradient(
    trace: Trace, index: int, formatter: Callable[[float], str] = format_brief, moment: Moment | None = None
) -> str:
    """Format the gradient of a node, or the gradient accumulated at a moment, or the reason why there is none."""
    if trace.kinds[index] == "x":
        return "—"
    if moment is not None:
        partial = moment.gradient(index)
        if partial.value is None:
            return STATE_SIGNS[partial.state]
        scalar = scalar_of(partial.value)
        text = formatter(scalar) if isinstance(scalar, float) else format_summary(summary(scalar))
        return f"{text} (Σ {partial.met} of {partial.of})" if partial.state == "partial" else text
    if index in trace.grads and has_heatmap(trace, index):
        return format_summary(summary(trace.grads[index]))
    return trace.gradient_text(index, formatter)


def format_shape(shape: tuple[int, ...], dtype: str = "") -> str:
    """Format a shape, and optionally a dtype.

    >>> format_shape((2, 3), "float32"), format_shape(())
    ('2×3 float32', 'scalar')
    """
    return f"{'×'.join(map(str, shape)) or 'scalar'} {dtype}".strip()
