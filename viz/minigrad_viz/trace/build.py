"""From what a user gives to its trace: a Value or a tensor, a model and its inputs, a step of `mg.jit`."""

from __future__ import annotations

from typing import Any

from minigrad_viz.trace.graph import of_graph
from minigrad_viz.trace.models import of_model
from minigrad_viz.trace.names import Namespaces, callers
from minigrad_viz.trace.trace import Trace

__all__ = ["placed", "to_trace"]


def to_trace(x: Any, *more: Any, namespaces: Namespaces | None = None) -> Trace:
    """The trace of the graph that ends in `x`, a Value or a tensor or several of one kind; a Trace is its own trace.

    If `x` is a model, of what it computes when it is called with `more`; see `minigrad_viz.trace.models`.
    Names come from labels, or else from `namespaces`, the variables of the caller if None. Nothing in the graph is
    changed. Raises DTypeError for what is neither a Value nor a tensor.
    """
    return placed(x, *more, namespaces=namespaces)[0]


def placed(x: Any, *more: Any, namespaces: Namespaces | None = None) -> tuple[Trace, dict[Any, int]]:
    """`to_trace`, and for each node of the graph its place in the trace; no places where `x` was a trace before."""
    if hasattr(x, "named_modules"):  # a model, and what it is called with
        return of_model(x, more, callers() if namespaces is None else namespaces)
    if hasattr(x, "captures"):  # a step of `mg.jit`
        from minigrad_viz.trace.recorded import of_step  # which needs NumPy

        return of_step(x, callers() if namespaces is None else namespaces), {}
    made = x if isinstance(x, Trace) else getattr(x, "trace", None)
    if isinstance(made, Trace) and not more:
        return made, {}
    roots = [*x, *more] if isinstance(x, list | tuple) else [x, *more]
    return of_graph(roots, callers() if namespaces is None else namespaces)
