"""The trace of a model's call, with its modules as blocks. If the call raises, the part computed before is shown."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad_viz.trace.calls import instances_in
from minigrad_viz.trace.failed_call import trace_failure
from minigrad_viz.trace.graph import trace_graph
from minigrad_viz.trace.modules import initially_open_blocks
from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.trace import Trace

__all__ = ["initial_blocks", "initial_state", "trace_model", "without_loss_alarms"]

LOSS_ALARMS = ("vanishing", "exploding")  # alarms that are only meaningful for a loss
MAX_VISIBLE_ITEMS = 40  # maximum number of items visible at the start


def initial_blocks(trace: Trace, expand: bool | Collection[str] | None = None) -> list[int] | None:
    """Return the blocks of a model that start open: all, only the model, or those named in `expand`, as "blocks.0" or
    "head".

    By default, as many blocks start open as remain legible; for a captured step, all blocks except its kernels. Return
    None for other graphs. Raises ArgumentError for an unknown name.
    """
    blocks = trace.blocks
    if expand is None:
        return sorted(initially_open_blocks(trace, MAX_VISIBLE_ITEMS)) if trace.modules or trace.execution else None
    if isinstance(expand, bool):
        return list(range(len(blocks))) if expand else [0, *(k for k in range(1, len(blocks)) if not blocks[k].outer)]
    open_blocks = {0}
    for name in [expand] if isinstance(expand, str) else expand:
        paths = (f".{path.replace('/', '.')}" for path in trace.scopes)
        matching_blocks = [k for k, path in enumerate(paths) if k and path.endswith(f".{name}")]
        if not matching_blocks:
            block_names = ", ".join(dict.fromkeys(block.name for block in blocks[1:])) or "none"
            raise ArgumentError(f"draw: there is no block {name!r} to expand.\n  The blocks are {block_names}.")
        for k in matching_blocks:
            while k > 0:
                open_blocks.add(k)
                k = blocks[k].outer
    return sorted(open_blocks)


def initial_state(trace: Trace, expand: bool | Collection[str] | None = None) -> dict[str, Any] | None:
    """Return the initial state of a player of a model or a captured step; None for the player's default state. `expand`
    is that of `initial_blocks`.
    """
    blocks = initial_blocks(trace, expand)
    if blocks is None:
        return None
    return {"expanded": blocks, "position": 0} if trace.execution else {"expanded": blocks}


def trace_model(model: Any, inputs: tuple[Any, ...], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of ``model(*inputs)``, and the indices of its nodes. The model is called in its current train or
    eval mode; afterwards, its buffers and the random state are restored.

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
    namespaces_with_inputs = (*namespaces, _input_names(model, inputs))
    outputs_so_far: list[Any] = []
    handles = [
        part.register_forward_hook(lambda _, args, output: outputs_so_far.append(output)) for part in model.modules()
    ]
    try:
        with mg.enable_grad(), mg.record(lines=True):
            try:
                outputs = list(instances_in(model(*inputs), mg.Tensor))
            except Exception as error:
                computed = [x for x in instances_in(outputs_so_far, mg.Tensor) if x.grad_fn is not None]
                broken = trace_failure(error, namespaces_with_inputs, computed[-1:])
                if broken is None:
                    raise
                return without_loss_alarms(broken), {}
        if not outputs:
            raise ArgumentError(f"draw: {name} returned no tensor, so there is nothing to draw.")
        names = ["output"] if len(outputs) == 1 else [f"output[{k}]" for k in range(len(outputs))]
        trace, indices = trace_graph(outputs, (*namespaces_with_inputs, dict(zip(names, outputs, strict=True))))
        return without_loss_alarms(trace), indices
    finally:
        for handle in handles:
            handle.remove()
        with mg.no_grad():
            for buffer, saved in buffers:
                buffer.copy_(saved)
        mg.set_rng_state(state)


def without_loss_alarms(trace: Trace) -> Trace:
    trace.notes = [note for note in trace.notes if note.kind not in LOSS_ALARMS]
    return trace


def _input_names(model: Any, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Return the inputs by the names of `forward`'s parameters, which name inputs that are not in a user variable."""
    try:
        return dict(inspect.signature(model.forward).bind(*inputs).arguments)
    except (TypeError, ValueError):  # `forward` raises the error itself
        return {}
