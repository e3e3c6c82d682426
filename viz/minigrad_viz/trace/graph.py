"""The trace of a graph of Values or of tensors, given by its output nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import minigrad as mg
from minigrad.core import graph
from minigrad.core.errors import DTypeError
from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.notation import sanitize, shorten
from minigrad_viz.trace.trace import Trace
from minigrad_viz.trace.values import trace_values

__all__ = ["trace_graph"]


def trace_graph(values: Iterable[Any], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of the graph that computes `values`, and the index of each graph node in the trace.

    Raises DTypeError if a value is neither a Value nor a tensor.
    """
    roots = _check_roots(values)
    if isinstance(roots[0], mg.Value):
        return trace_values(roots, namespaces)
    from minigrad_viz.trace.tensors import trace_tensors  # imports NumPy

    return trace_tensors(roots, namespaces)


def _check_roots(values: Iterable[Any]) -> list[Any]:
    roots = list(values)
    for value in roots:
        if not (isinstance(value, mg.Value) or (isinstance(value, graph.Node) and hasattr(value, "grad_fn"))):
            kind = type(value).__name__
            article = "an" if kind[0].lower() in "aeiou" else "a"
            raise DTypeError(
                f"draw: {shorten(sanitize(repr(value)), 60)} is {article} {kind}, not a Value or a tensor.\n"
                "  Draw the result of a computation with mg.Value(…) or mg.tensor(…), or a list of such results."
            )
    if not roots:
        raise DTypeError("draw: the list is empty.\n  Pass a Value or a tensor, or a list of them.")
    if len({isinstance(value, mg.Value) for value in roots}) > 1:
        raise DTypeError("draw: the list mixes Values and tensors, which share no graph.\n  Draw them separately.")
    return list(dict.fromkeys(roots))
