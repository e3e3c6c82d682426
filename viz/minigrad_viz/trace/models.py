"""The trace of a model called with inputs, its modules as blocks; if it raises, of the part computed before."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad_viz.trace.broken import to_broken_trace
from minigrad_viz.trace.calls import instances_in
from minigrad_viz.trace.graph import of_graph
from minigrad_viz.trace.modules import begin_open
from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.trace import Trace

__all__ = ["beginning", "of_model", "opened"]

_OF_A_LOSS = ("vanishing", "exploding")  # alarms that are meaningless for outputs: their sum is no loss
_ITEMS = 40  # items visible at first


def opened(trace: Trace, expand: bool | Collection[str] | None = None) -> list[int] | None:
    """Return the blocks of a model that start open: all, only the model, or those named in `expand`, as "blocks.0" or
    "head".

    If `expand` is None, as many as remain legible; for a captured step all but its kernels; None for other graphs.
    Raises ArgumentError for an unknown name.
    """
    blocks = trace.blocks
    if expand is None:
        return sorted(begin_open(trace, _ITEMS)) if trace.modules or trace.how else None
    if isinstance(expand, bool):
        return list(range(len(blocks))) if expand else [0, *(k for k in range(1, len(blocks)) if not blocks[k].outer)]
    found = {0}
    for name in [expand] if isinstance(expand, str) else expand:
        paths = (f".{path.replace('/', '.')}" for path in trace.scopes)
        wanted = [k for k, path in enumerate(paths) if k and path.endswith(f".{name}")]
        if not wanted:
            known = ", ".join(dict.fromkeys(block.name for block in blocks[1:])) or "none"
            raise ArgumentError(f"draw: there is no block {name!r} to expand.\n  The blocks are {known}.")
        for k in wanted:
            while k > 0:
                found.add(k)
                k = blocks[k].outer
    return sorted(found)


def beginning(trace: Trace, expand: bool | Collection[str] | None = None) -> dict[str, Any] | None:
    """Return the initial state of a player of a model or a captured step; None to use the player's default. `expand` is
    as in `opened`.
    """
    blocks = opened(trace, expand)
    if blocks is None:
        return None
    return {"expanded": blocks, "position": 0} if trace.how else {"expanded": blocks}


def of_model(model: Any, inputs: tuple[Any, ...], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of ``model(*inputs)``, and the indices of its nodes. The model is called in its current train or
    eval mode; its buffers and the random state are restored.

    If the model raises, the trace shows the graph built so far, with the failed call as its last node. Raises
    ArgumentError without an input, and the model's own error if nothing can be drawn.
    """
    name = type(model).__name__
    if not inputs:
        raise ArgumentError(
            f"draw: {name} is a model, whose graph depends on its input.\n"
            "  Pass an input as well, as in draw(model, mg.zeros(1, 3, 32, 32))."
        )
    buffers, state = [(x, x.detach().clone()) for x in model.buffers()], mg.get_rng_state()
    spaces = (*namespaces, _arguments(model, inputs))
    made: list[Any] = []
    handles = [part.register_forward_hook(lambda _, args, output: made.append(output)) for part in model.modules()]
    try:
        with mg.enable_grad(), mg.record(lines=True):
            try:
                outputs = list(instances_in(model(*inputs), mg.Tensor))
            except Exception as error:
                built = [x for x in instances_in(made, mg.Tensor) if x.grad_fn is not None]
                broken = to_broken_trace(error, spaces, built[-1:])
                if broken is None:
                    raise
                return _without_loss(broken), {}
        if not outputs:
            raise ArgumentError(f"draw: {name} returned no tensor, so there is nothing to draw.")
        names = ["output"] if len(outputs) == 1 else [f"output[{k}]" for k in range(len(outputs))]
        trace, places = of_graph(outputs, (*spaces, dict(zip(names, outputs, strict=True))))
        return _without_loss(trace), places
    finally:
        for handle in handles:
            handle.remove()
        with mg.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
        mg.set_rng_state(state)


def _without_loss(trace: Trace) -> Trace:
    trace.notes = [note for note in trace.notes if note.kind not in _OF_A_LOSS]
    return trace


def _arguments(model: Any, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Return the inputs by `forward`'s parameter names, for those that no variable of the user names."""
    try:
        return dict(inspect.signature(model.forward).bind(*inputs).arguments)
    except (TypeError, ValueError):  # `forward` raises the error itself
        return {}
