"""Accumulation: how `backward` on tensors adds the computed gradients to ``grad``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minigrad.core import views
from minigrad.core.dispatch import dispatch
from minigrad.core.errors import GraphError
from minigrad.core.grad_mode import enable_grad
from minigrad.core.graph import Node, copy_to_host, global_grad_listeners, grad_lock, propagate, raw_value
from minigrad.core.modes import modes
from minigrad.core.step import Step
from minigrad.core.storage import copy_array, device_of, owns_memory

__all__ = ["accumulate"]


def accumulate(seeds: Mapping[Any, Any], retain_graph: bool | None, create_graph: bool, inputs: Any) -> None:
    """Run a backward pass from `seeds`, and accumulate into the `grad` of the leaves, or of `inputs`."""
    selected = None if inputs is None else _map_by_node(inputs)
    totals = propagate(
        seeds,
        create_graph=create_graph,
        targets=selected,
        retain_graph=create_graph or bool(modes.gradient_passed) if retain_graph is None else retain_graph,
    )
    candidates = [(node.retainer if isinstance(node, Step) else node, total) for node, total in totals.items()]
    if selected is not None:
        candidates = [(x, totals[edge]) for edge, x in selected.items() if edge in totals]
    targets: list[tuple[Any, Any]] = [(target, total) for target, total in candidates if target is not None]
    with grad_lock:
        for target, _ in targets:  # validate and notify before any gradient changes
            for listener in modes.grad_changed:
                listener.grad_changed(target, True)
            for listener in global_grad_listeners:
                listener.grad_changed(target, True)
            if target._grad is not None and not (create_graph or target._grad._array.flags.carray):
                views.check_memory(target._grad, "backward: adding to grad")
        owned_ids = {id(seed._array) for seed in seeds.values()}
        for target, total in targets:
            grad = target._grad
            new_grad = (
                _add_differentiably(grad, total)
                if create_graph
                else _add_inplace(target, grad, raw_value(total), owned_ids)
            )
            if target._grad is grad:  # otherwise keep the gradient that another thread has assigned
                target._grad = new_grad
        if modes.gradient_passed:
            _record_gradients(totals)


@enable_grad
def _add_differentiably(grad: Any, total: Any) -> Any:
    """Return `grad + total` as a new differentiable tensor."""
    return total.clone() if grad is None else grad + total


def _add_inplace(target: Any, grad: Any, total: Any, owned_ids: set[int]) -> Any:
    """Add the array `total` to `grad` in-place, as PyTorch does; allocate a new gradient if `grad` is None."""
    if grad is not None:
        dispatch("add", device_of(grad._array), (grad._array, total), out=grad._array)
        grad.storage.mark_written("backward")
        return grad
    array = np.asanyarray(total)
    if id(array) in owned_ids or not owns_memory(array) or not array.flags.c_contiguous:
        array = copy_array(array)  # a rule may return the same gradient, or a view of it, for two operands
    owned_ids.add(id(array))
    return target._export_gradient(array, False)


def _map_by_node(inputs: Any) -> dict[Any, Any]:
    """Map the graph node of each of `inputs` to the input. Raises GraphError unless all inputs require grad."""
    by_node: dict[Any, Any] = {x._edge(): x for x in ((inputs,) if isinstance(inputs, Node) else inputs)}
    if not by_node or None in by_node:
        problem = (
            "is empty" if not by_node else f"contains one of shape {by_node[None].shape} that does not require grad"
        )
        raise GraphError(
            f"backward: inputs must be tensors that require grad, but it {problem}.\n"
            "  Pass tensors that this one was computed from, or omit inputs to use all leaves."
        )
    return by_node


def _record_gradients(totals: Mapping[Node, Any]) -> None:
    """Accumulate gradients, as arrays, into the `grad` of each `Step` inside ``mg.record()``."""
    for node, total in totals.items():
        # the elements of a tuple are recorded at the nodes that select them
        if isinstance(node, Step) and not isinstance(total, tuple):
            array = copy_to_host(total)
            node.grad = array if node.grad is None else node.grad + array
