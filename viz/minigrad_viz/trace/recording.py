"""`record`: save what is needed to draw and play the graphs that a piece of code builds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import minigrad as mg

__all__ = ["record"]


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
