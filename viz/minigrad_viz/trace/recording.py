"""`record`: save what is needed to draw and play the graphs that a piece of code builds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import minigrad as mg
from minigrad_viz.trace.names import Namespaces, is_torch
from minigrad_viz.trace.trace import Trace

__all__ = ["is_recorded", "largest_result", "record", "recorded_failure"]


@contextmanager
def record() -> Iterator[None]:
    """Context manager that records values, source lines, modules and backward passes, of minigrad and of PyTorch.

    Any graph can be drawn without it. Recorded, a graph keeps every intermediate value, even after ``backward()``,
    which may be called within the block or later. For PyTorch, calls of functions and modules are observed from
    outside: the model is not changed, and it computes the same values. Values of more than 10,000 elements are
    summarised where they are, on the CPU or the GPU. PyTorch is recorded if it was imported before.

    >>> import minigrad as mg
    >>> from minigrad_viz import draw, record
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> with record():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> [node.array.tolist() for node in draw(y).trace.nodes]
    [[1.0, 2.0], [1.0, 4.0], 5.0]
    """
    with ExitStack() as contexts:
        contexts.enter_context(mg.record(lines=True))
        if "torch" in sys.modules:
            from minigrad_viz.trace.torch import Recorder

            contexts.enter_context(Recorder())
        yield


def recorded_failure(error: BaseException, namespaces: Namespaces) -> Trace | None:
    """Return the graph of a recorded PyTorch function that raised `error`, with the call; None if there is none."""
    if "torch" not in sys.modules:
        return None
    from minigrad_viz.trace.torch import trace_torch_failure

    return trace_torch_failure(error, namespaces)


def is_recorded(x: Any) -> bool:
    """Whether `x` is a PyTorch tensor that was computed, with a gradient or within `record`."""
    if not is_torch(x):
        return False
    from minigrad_viz.trace.torch import is_computed

    return all(map(is_computed, x if isinstance(x, list | tuple) else [x]))


def largest_result(x: Any, candidates: Iterable[Any]) -> Any:
    """Return the PyTorch tensor among `candidates` with the largest graph that contains `x`; None if there is none."""
    from minigrad_viz.trace.torch import operations_since

    sizes = [(operations_since(result, x), result) for result in candidates if result is not x and is_recorded(result)]
    size, result = max(sizes, key=lambda pair: pair[0], default=(0, None))
    return result if size else None
