"""Accumulation: what `backward` on tensors does with the gradients that the chain rule found."""

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
    """Add to the `grad` of leaves, or of `inputs`, what a backward pass finds that starts with `seeds`."""
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
        for place, _ in places:  # before any gradient is changed
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
            if place._grad is grad:  # else another thread has assigned one since, which stays
                place._grad = new
        if modes.gradient_passed:
            _keep_gradients(totals)


@enable_grad
def _summed(grad: Any, total: Any) -> Any:
    """The two as one tensor, which has a graph, and memory of its own."""
    return total.clone() if grad is None else grad + total


def _added(place: Any, grad: Any, total: Any, taken: set[int]) -> Any:
    """`grad` with the array `total` added in place, as PyTorch does; a memory of its own where `place` had none."""
    if grad is not None:
        dispatch("add", place_of(grad._array), (grad._array, total), out=grad._array)
        grad.storage.written("backward")
        return grad
    array = np.asanyarray(total)
    if id(array) in taken or not owns(array) or not array.flags.c_contiguous:
        array = copy_of(array)  # a rule may pass the same gradient on to two operands, or a view of it
    taken.add(id(array))
    return place._handed(array, False)


def _by_edge(inputs: Any) -> dict[Any, Any]:
    """The tensors that a backward pass is to write to, by their places in the graph."""
    found: dict[Any, Any] = {x._edge(): x for x in ((inputs,) if isinstance(inputs, Node) else inputs)}
    if not found or None in found:
        what = "there is none" if not found else f"the one of shape {found[None].shape} needs no gradient"
        raise GraphError(
            f"backward: inputs are the tensors whose grad is added to, and {what}.\n"
            "  Give tensors that it was computed from, or leave inputs out for all leaves."
        )
    return found


def _keep_gradients(totals: Mapping[Node, Any]) -> None:
    """Add to the `grad` of each step what a pass inside ``mg.record()`` found there, as an array."""
    for node, total in totals.items():
        if isinstance(node, Step) and not isinstance(total, tuple):  # else its parts are those of its picks
            array = copied(total)
            node.grad = array if node.grad is None else node.grad + array
