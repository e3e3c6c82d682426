"""Build the trace of a user's object: Values or tensors, a model with its inputs, or a step of `mg.jit`."""

from __future__ import annotations

from typing import Any

from minigrad_viz.trace.graph import of_graph
from minigrad_viz.trace.models import of_model
from minigrad_viz.trace.names import Namespaces, callers
from minigrad_viz.trace.trace import Trace

__all__ = ["placed", "to_trace"]


def to_trace(x: Any, *more: Any, namespaces: Namespaces | None = None) -> Trace:
    """Return the trace of the graph that computes `x`, a Value, a tensor or a list of either; a Trace is returned as
    is.

    If `x` is a model, trace its call with `more`; see `minigrad_viz.trace.models`. Names come from labels, else from
    `namespaces` (default: the caller's variables). The graph is not modified. Raises DTypeError if `x` is neither a
    Value nor a tensor.
    """
    return placed(x, *more, namespaces=namespaces)[0]


def placed(x: Any, *more: Any, namespaces: Namespaces | None = None) -> tuple[Trace, dict[Any, int]]:
    """Return `to_trace` and the index of each graph node in the trace; no indices if `x` was already traced."""
    if hasattr(x, "named_modules"):  # a model and its inputs
        return of_model(x, more, callers() if namespaces is None else namespaces)
    if hasattr(x, "captures"):  # a step of `mg.jit`
        from minigrad_viz.trace.recorded import of_step  # imports NumPy

        return of_step(x, callers() if namespaces is None else namespaces), {}
    made = x if isinstance(x, Trace) else getattr(x, "trace", None)
    if isinstance(made, Trace) and not more:
        return made, {}
    roots = [*x, *more] if isinstance(x, list | tuple) else [x, *more]
    return of_graph(roots, callers() if namespaces is None else namespaces)
