"""Functional gradients: `grad` returns the gradients that ``backward`` would accumulate."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, cast

from minigrad.core.dispatch import disable_taps
from minigrad.core.errors import DTypeError, GraphError, describe_type
from minigrad.core.graph import Event, Node, Recording, propagate
from minigrad.core.modes import modes

__all__ = ["backward", "events", "grad"]


def grad(
    outputs: Node | Iterable[Node],
    inputs: Node | Iterable[Node],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of ``sum(grad_outputs * outputs)`` with respect to `inputs`, as in PyTorch.

    Outputs and inputs are one or several tensors or Values, such as ``model.parameters()``. `grad_outputs` default to 1
    and are required, in the output's shape, for tensors with several elements. The gradients of tensors are tensors;
    the gradients of Values are floats, or Values with `create_graph`. With `create_graph`, the gradients are
    differentiable to any order. Only the paths to `inputs` are computed, and ``.grad`` is not modified. The graphs of
    tensors are freed unless `retain_graph` is true (default: `create_graph`, or true inside ``mg.record()``); Values
    always retain their graphs.

    Raises GraphError if an output or input does not require grad, or if an input was not used in the graph; with
    `allow_unused` its gradient is None instead. `only_inputs` exists for PyTorch compatibility and must be True.

    >>> from minigrad import Value
    >>> x = Value(3.0)
    >>> slope, = grad(x ** 3, x, create_graph=True)      # 3 x^2
    >>> curvature, = grad(slope, x)                      # 6 x
    >>> slope.data, curvature
    (27.0, 18.0)
    """
    if not only_inputs:
        raise DTypeError("grad: only_inputs=False is not supported, since grad never writes .grad.\n  Use backward().")
    input_nodes = _as_nodes(inputs, "grad")
    seeds = _initial_gradients(
        _as_nodes(outputs, "grad"), grad_outputs, create_graph, "grad: got {} grad_outputs for {} outputs."
    )
    edges = [x._edge() for x in input_nodes]
    for position, (x, edge) in enumerate(zip(input_nodes, edges, strict=True)):
        if edge is None:
            raise GraphError(_unused_message("grad", position, x))
    totals = propagate(
        seeds,
        create_graph=create_graph,
        targets=set(edges),
        retain_graph=create_graph or bool(modes.gradient_passed) if retain_graph is None else retain_graph,
    )
    if not allow_unused:
        for position, (x, edge) in enumerate(zip(input_nodes, edges, strict=True)):
            if edge not in totals:
                raise GraphError(_unused_message("grad", position, x))
    gradients = [totals.get(cast(Node, edge)) for edge in edges]
    return tuple(
        [
            None if g is None else x._export_gradient(g, create_graph)
            for x, g in zip(input_nodes, gradients, strict=True)
        ]
    )


def backward(
    tensors: Node | Iterable[Node],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Node | Iterable[Node] | None = None,
) -> None:
    """Accumulate the gradients of ``sum(grad_tensors * tensors)`` into ``.grad``, as in PyTorch.

    Equivalent to ``x.backward(gradient)`` for each tensor, but in a single pass through the shared graph. `tensors` are
    all tensors or all Values. `grad_tensors` default to 1 and are required for tensors with several elements. With
    `inputs`, gradients accumulate into those only. `retain_graph` defaults to `create_graph`, or to true inside
    ``mg.record()``; Values always retain their graph.

    Raises GraphError if one of `tensors` or `inputs` does not require grad, DTypeError for other types or a mismatched
    number of gradients. No ``.grad`` changes when an error is raised.

    >>> from minigrad import Value
    >>> x = Value(3.0)
    >>> backward([x * x, 2 * x])
    >>> x.grad
    8.0
    """
    roots = _as_nodes(tensors, "backward")
    input_nodes = None if inputs is None else _as_nodes(inputs, "backward")
    for position, x in enumerate(input_nodes or ()):
        if not x.requires_grad:
            raise GraphError(_unused_message("backward", position, x))
    if len({hasattr(x, "shape") for x in (*roots, *(input_nodes or ()))}) > 1:
        raise DTypeError("backward: cannot mix tensors and Values, whose graphs are separate.")
    seeds = _initial_gradients(roots, grad_tensors, create_graph, "backward: got {} grad_tensors for {} tensors.")
    roots[0]._accumulate(seeds, retain_graph, create_graph, input_nodes)


def _initial_gradients(
    roots: Sequence[Node], weights: Any, create_graph: bool, mismatch_message: str
) -> dict[Any, Any]:
    """Return a dict that maps each root's node to its initial gradient in a backward pass."""
    gradients = list(weights) if isinstance(weights, Sequence | Iterator) else [weights] * len(roots)
    if len(gradients) != len(roots):
        raise DTypeError(mismatch_message.format(len(gradients), len(roots)))
    seeds: dict[Any, Any] = {}
    for root, weight in zip(roots, gradients, strict=True):
        seed, edge = root._initial_gradient(weight, create_graph), root._edge()
        seeds[edge] = root._accumulate_gradient(seeds[edge], seed) if edge in seeds else seed
    return seeds


def events(output: Node, gradient: Any = None) -> list[Event]:
    """Return the events of a backward pass from `output`, for inspection.

    The pass does not change gradients, record or free a graph, or call taps or hooks, and it restores the random state.

    >>> from minigrad import Value
    >>> a = Value(3.0, "a")
    >>> [(event.slot, event.upstream, event.local, event.contribution) for event in events(a * a)]
    [(0, 1.0, 3.0, 3.0), (1, 1.0, 3.0, 3.0)]
    >>> a.grad is None
    True
    """
    recording = Recording()
    (output,) = _as_nodes((output,), "events")
    edge = output._edge()
    if edge is not None and edge._requires_grad:
        random = sys.modules.get("minigrad.random")  # a rule may draw random numbers
        with disable_taps(), nullcontext() if random is None else random.fork_rng():
            propagate({edge: output._initial_gradient(gradient, False)}, listeners=[recording], hooks=False)
    return recording.events


_USAGE = {"grad": "grad(output, [input, …])", "backward": "autograd.backward([output, …])"}


def _as_nodes(x_or_xs: Node | Iterable[Node], func_name: str) -> tuple[Any, ...]:
    nodes: tuple[Any, ...] = (
        (x_or_xs,) if isinstance(x_or_xs, Node) or not isinstance(x_or_xs, Iterable) else tuple(x_or_xs)
    )
    if not nodes:
        raise GraphError(f"{func_name}: expected at least one output and one input, but got an empty sequence.")
    for x in nodes:
        if not isinstance(x, Node):
            call = _USAGE.get(func_name, f"autograd.{func_name}(output)")
            raise DTypeError(
                f"{func_name}: {x!r} is {describe_type(x)}; expected a tensor or a Value.\n  Write mg.{call}."
            )
    return nodes


def _unused_message(func_name: str, position: int, x: Any) -> str:
    if not x.requires_grad:
        return (
            f"{func_name}: input {position}, {x!r}, does not require grad: it was created by detach() or in "
            f"no_grad().\n  Pass the {type(x).__name__} that it was created from, or set requires_grad = True before "
            "computing with it."
        )
    return (
        f"{func_name}: input {position}, {x!r}, appears to not have been used in the graph.\n"
        "  Omit it, or set allow_unused=True to get None for it."
    )
