"""Gradients as a function: `grad` returns what ``backward`` would add, and writes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, cast

from minigrad.core.dispatch import untapped
from minigrad.core.errors import DTypeError, GraphError, a_kind
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
    """The derivatives of the sum of ``grad_outputs * outputs`` by each of `inputs`, in their order. PyTorch's function.

    Outputs and inputs are tensors or Values, one or several, as ``model.parameters()`` gives them. `grad_outputs` are 1
    unless given, and need to be given for a tensor of several numbers, in its shape. The results are tensors; of Values
    floats, and with `create_graph` Values. Those with `create_graph` can be differentiated in turn, to any order. Only
    what leads to `inputs` is computed, and no ``.grad`` is touched. Tensors' graphs are freed on the way unless
    `retain_graph`, by default `create_graph` or being inside ``mg.record()``; Values always keep theirs.

    Raises GraphError if an output or an input needs no gradient, or if no output was computed from one of `inputs`;
    with `allow_unused` an input that has no part has None for its derivative instead. `only_inputs` is PyTorch's, and
    can only be True.

    >>> from minigrad import Value
    >>> x = Value(3.0)
    >>> slope, = grad(x ** 3, x, create_graph=True)      # 3 x^2
    >>> curvature, = grad(slope, x)                      # 6 x
    >>> slope.data, curvature
    (27.0, 18.0)
    """
    if not only_inputs:
        raise DTypeError("grad: only_inputs=False would write .grad, which grad never does.\n  Write backward().")
    wanted = _nodes(inputs, "grad")
    seeds = _seeds(
        _nodes(outputs, "grad"), grad_outputs, create_graph, "grad: {} grad_outputs were given for {} outputs."
    )
    edges = [x._edge() for x in wanted]
    for position, (x, edge) in enumerate(zip(wanted, edges, strict=True)):
        if edge is None:
            raise GraphError(_unused("grad", position, x))
    totals = propagate(
        seeds,
        create_graph=create_graph,
        wanted=set(edges),
        retain_graph=create_graph or bool(modes.gradient_passed) if retain_graph is None else retain_graph,
    )
    if not allow_unused:
        for position, (x, edge) in enumerate(zip(wanted, edges, strict=True)):
            if edge not in totals:
                raise GraphError(_unused("grad", position, x))
    found = [totals.get(cast(Node, edge)) for edge in edges]
    return tuple([None if g is None else x._handed(g, create_graph) for x, g in zip(wanted, found, strict=True)])


def backward(
    tensors: Node | Iterable[Node],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Node | Iterable[Node] | None = None,
) -> None:
    """Add the derivatives of the sum of ``grad_tensors * tensors`` to ``.grad``. PyTorch's function.

    As ``x.backward(gradient)`` of each, but in one pass, where what they share is passed once and freed once. All are
    tensors or all are Values; `grad_tensors` are 1 unless given, and need to be given for a tensor of several numbers.
    With `inputs` it is added to theirs alone. `retain_graph` is by default `create_graph`, or being inside
    ``mg.record()``; Values always keep theirs.

    Raises GraphError if one of `tensors` or `inputs` needs no gradient, DTypeError for other things than tensors, and
    where there are as many gradients as there are not tensors. Then no ``.grad`` has changed.

    >>> from minigrad import Value
    >>> x = Value(3.0)
    >>> backward([x * x, 2 * x])
    >>> x.grad
    8.0
    """
    roots = _nodes(tensors, "backward")
    chosen = None if inputs is None else _nodes(inputs, "backward")
    for position, x in enumerate(chosen or ()):
        if not x.requires_grad:
            raise GraphError(_unused("backward", position, x))
    if len({hasattr(x, "shape") for x in (*roots, *(chosen or ()))}) > 1:
        raise DTypeError("backward: some of these are tensors and some are Values, whose graphs are apart.")
    seeds = _seeds(roots, grad_tensors, create_graph, "backward: {} grad_tensors were given for {} tensors.")
    roots[0]._accumulate(seeds, retain_graph, create_graph, chosen)


def _seeds(roots: Sequence[Node], weights: Any, create_graph: bool, unequal: str) -> dict[Any, Any]:
    """What a pass begins with: a gradient for each place in the graph."""
    given = list(weights) if isinstance(weights, Sequence | Iterator) else [weights] * len(roots)
    if len(given) != len(roots):
        raise DTypeError(unequal.format(len(given), len(roots)))
    seeds: dict[Any, Any] = {}
    for root, weight in zip(roots, given, strict=True):
        seed, edge = root._seed(weight, create_graph), root._edge()
        seeds[edge] = root._sum(seeds[edge], seed) if edge in seeds else seed
    return seeds


def events(output: Node, gradient: Any = None) -> list[Event]:
    """The events of a backward pass from `output`, run only to be looked at.

    Nothing is written, recorded, tapped or freed, no hook is called, and the random state stays as it is.

    >>> from minigrad import Value
    >>> a = Value(3.0, "a")
    >>> [(event.slot, event.upstream, event.local, event.contribution) for event in events(a * a)]
    [(0, 1.0, 3.0, 3.0), (1, 1.0, 3.0, 3.0)]
    >>> a.grad is None
    True
    """
    seen = Recording()
    (output,) = _nodes((output,), "events")
    edge = output._edge()
    if edge is not None and edge._requires_grad:
        random = sys.modules.get("minigrad.random")  # a rule may draw numbers
        with untapped(), nullcontext() if random is None else random.fork_rng():
            propagate({edge: output._seed(gradient, False)}, listeners=[seen], hooks=False)
    return seen.events


_ASKED = {"grad": "grad(output, [input, …])", "backward": "autograd.backward([output, …])"}


def _nodes(given: Node | Iterable[Node], asked: str) -> tuple[Any, ...]:
    nodes: tuple[Any, ...] = (given,) if isinstance(given, Node) or not isinstance(given, Iterable) else tuple(given)
    if not nodes:
        raise GraphError(
            f"{asked}: there is nothing to differentiate, or nothing to differentiate by: a list is empty."
        )
    for x in nodes:
        if not isinstance(x, Node):
            call = _ASKED.get(asked, f"autograd.{asked}(output)")
            raise DTypeError(f"{asked}: {x!r} is {a_kind(x)}, neither a tensor nor a Value.\n  Write mg.{call}.")
    return nodes


def _unused(asked: str, position: int, x: Any) -> str:
    if not x.requires_grad:
        return (
            f"{asked}: input {position}, {x!r}, needs no gradient: it was made by detach() or inside no_grad().\n"
            f"  Ask for the {type(x).__name__} that it was made from, or set requires_grad = True before "
            "computing with it."
        )
    return (
        f"{asked}: input {position}, {x!r}, has no part in the output: no path of operations leads there.\n"
        "  Leave it out, or pass allow_unused=True to get None for it."
    )
