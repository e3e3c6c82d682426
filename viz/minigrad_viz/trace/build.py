"""Build the trace of a user's object: Values or tensors, a model with its inputs, or a step of `mg.jit`."""

from __future__ import annotations

from typing import Any

from minigrad_viz.trace.graph import trace_graph
from minigrad_viz.trace.models import trace_model
from minigrad_viz.trace.names import Namespaces, caller_namespaces, is_torch
from minigrad_viz.trace.trace import Trace

__all__ = ["to_trace", "trace_with_indices"]


def to_trace(x: Any, *inputs: Any, namespaces: Namespaces | None = None) -> Trace:
    """Return the trace of the graph that computes `x`, a Value, a tensor or a list of either. A Trace is returned
    unchanged.

    If `x` is a model, trace its call with `inputs`; see `minigrad_viz.trace.models`. Names are labels or, for nodes
    without a label, variables in `namespaces` (default: those of the caller). The graph is not modified. Raises
    DTypeError if `x` is neither a Value nor a tensor.
    """
    return trace_with_indices(x, *inputs, namespaces=namespaces)[0]


def trace_with_indices(x: Any, *inputs: Any, namespaces: Namespaces | None = None) -> tuple[Trace, dict[Any, int]]:
    """Return the result of `to_trace` and the index of each graph node in it; no indices if `x` was already traced."""
    if is_torch(x):
        from minigrad_viz.trace.torch import trace_torch_object  # imports PyTorch, which the user has imported

        return trace_torch_object(x, inputs, caller_namespaces() if namespaces is None else namespaces)
    if hasattr(x, "named_modules"):  # a model and its inputs
        return trace_model(x, inputs, caller_namespaces() if namespaces is None else namespaces)
    if hasattr(x, "captures"):  # a step of `mg.jit`
        from minigrad_viz.trace.jit_step import trace_step  # imports NumPy

        return trace_step(x, caller_namespaces() if namespaces is None else namespaces), {}
    existing_trace = x if isinstance(x, Trace) else getattr(x, "trace", None)
    if isinstance(existing_trace, Trace) and not inputs:
        return existing_trace, {}
    roots = [*x, *inputs] if isinstance(x, list | tuple) else [x, *inputs]
    return trace_graph(roots, caller_namespaces() if namespaces is None else namespaces)
