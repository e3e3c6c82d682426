"""Accumulation: how `backward` on tensors adds the computed gradients to ``grad``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minigrad.core import views
from minigrad.core.dispatch import dispatch
from minigrad.core.errors import GraphError
from minigrad.core.grad_mode import enable_grad
from minigrad.core.graph import Node, copied, grad_listeners, grad_lock, number, propagate
from minigrad.core.modes import modes
from minigrad.core.step import Step
from minigrad.core.storage import copy_of, owns, place_of

__all__ = ["accumulate"]


def accumulate(seeds: Mapping[Any, Any], retain_graph: bool | None, create_graph: bool, inputs: Any) -> None:
    """Run a backward pass from `seeds`, and accumulate into the `grad` of the leaves, or of `inputs`."""
    chosen = None if inputs is None else _by_edge(inputs)
    totals = propagate(
        seeds,
        create_graph=create_graph,
        wanted=chosen,
        retain_graph=create_graph or bool(modes.gradient_passed) if retain_graph is None else retain_graph,
    )
    kept = [(node.retainer if isinstance(node, Step) else node, total) for node, total in totals.items()]
    if chosen is not None:
        kept = [(x, totals[edge]) for edge, x in chosen.items() if edge in totals]
    places: list[tuple[Any, Any]] = [(place, total) for place, total in kept if place is not None]
    with grad_lock:
        for place, _ in places:  # validate and notify before any gradient changes
            for listener in modes.grad_changed:
                listener.grad_changed(place, True)
            for listener in grad_listeners:
                listener.grad_changed(place, True)
            if place._grad is not None and not (create_graph or place._grad._array.flags.carray):
                views.check_memory(place._grad, "backward: adding to grad")
        taken = {id(seed._array) for seed in seeds.values()}
        for place, total in places:
            grad = place._grad
            new = _summed(grad, total) if create_graph else _added(place, grad, number(total), taken)
            if place._grad is grad:  # otherwise keep what another thread has assigned meanwhile
                place._grad = new
        if modes.gradient_passed:
            _keep_gradients(totals)


@enable_grad
def _summed(grad: Any, total: Any) -> Any:
    """Return the sum as a new differentiable tensor."""
    return total.clone() if grad is None else grad + total


def _added(place: Any, grad: Any, total: Any, taken: set[int]) -> Any:
    """Add the array `total` to `grad` in-place, as PyTorch does; allocate a new gradient if `grad` is None."""
    if grad is not None:
        dispatch("add", place_of(grad._array), (grad._array, total), out=grad._array)
        grad.storage.written("backward")
        return grad
    array = np.asanyarray(total)
    if id(array) in taken or not owns(array) or not array.flags.c_contiguous:
        array = copy_of(array)  # a rule may return the same gradient, or a view of it, for two operands
    taken.add(id(array))
    return place._handed(array, False)


def _by_edge(inputs: Any) -> dict[Any, Any]:
    """Return `inputs` keyed by their graph nodes."""
    found: dict[Any, Any] = {x._edge(): x for x in ((inputs,) if isinstance(inputs, Node) else inputs)}
    if not found or None in found:
        what = "is empty" if not found else f"contains one of shape {found[None].shape} that does not require grad"
        raise GraphError(
            f"backward: inputs must be tensors that require grad, but it {what}.\n"
            "  Pass tensors that this one was computed from, or omit inputs to use all leaves."
        )
    return found


def _keep_gradients(totals: Mapping[Node, Any]) -> None:
    """Accumulate gradients, as arrays, into the `grad` of each `Step` inside ``mg.record()``."""
    for node, total in totals.items():
        if isinstance(node, Step) and not isinstance(total, tuple):  # a tuple's elements belong to its pick nodes
            array = copied(total)
            node.grad = array if node.grad is None else node.grad + array
