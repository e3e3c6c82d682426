"""The events of a backward pass of PyTorch: each contribution to a gradient, in the order in which they are summed.

A pass is either observed, while the engine runs the user's ``backward()``, or run here, node by node. A pass run here
calls the same functions in the same order as the engine, and adds their results in the same order; so it computes the
same bits. It calls no hook, writes no ``.grad`` and frees nothing.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import torch

from minigrad_viz.trace.array_summary import ArraySummary
from minigrad_viz.trace.torch.internals import call_after_backward, gradient_metadata, graph_task_id, sequence_number
from minigrad_viz.trace.torch.summaries import HostValues, copy_to_host

__all__ = ["BackwardEvent", "BackwardObserver", "BackwardPass", "Target", "node_key", "run_backward", "targets_of"]

Target = tuple[int, int]  # the key of an autograd node, and the index of one of its outputs
REENTRANT_NODES = ("CheckpointFunctionBackward",)  # they call the engine, which would write to .grad


class BackwardEvent(NamedTuple):
    """The contribution of an autograd node to the gradient of one of its inputs.

    `upstream` are the gradients of the node's outputs, None for those that have none.
    """

    node: int
    slot: int
    target: Target
    upstream: tuple[HostValues, ...]
    contribution: HostValues
    total: HostValues


def node_key(node: Any) -> int:
    """Return a number that identifies an autograd node while its graph exists: its sequence number, which is unique in
    a thread, or for the accumulation into a leaf a negative number.
    """
    return ~id(node.variable) if hasattr(node, "variable") else sequence_number(node)


def targets_of(node: Any) -> list[Target | None]:
    """Return where the gradients of each input of `node` go; None for inputs that require none."""
    return [None if inner is None else (node_key(inner), output) for inner, output in node.next_functions]


class BackwardPass:
    """The events of a pass so far. `uses` counts the edges into each target, in the graph known so far."""

    def __init__(self, uses: Counter[Target], keeps_sums: bool = True) -> None:
        self.root: int | None = None
        """The key of the first node."""
        self.is_complete = False
        self.events: list[BackwardEvent] = []
        self._uses, self._keeps_sums = uses, keeps_sums
        self._last_event: dict[Target, int] = {}
        self._sums: dict[Target, torch.Tensor] = {}  # of targets with several contributions
        self._totals: dict[Target, tuple[int, HostValues]] = {}  # the address of a total, and its values

    def add(self, node: int, targets: Sequence[Target | None], grads: Sequence[Any], upstream: Sequence[Any]) -> None:
        """Add the events of a node that computed `grads` from `upstream`."""
        if self.root is None:
            self.root = node
        upstream_values = tuple([self._upstream_values((node, k), x) for k, x in enumerate(upstream)])
        for k, values in enumerate(upstream_values):
            self._sums.pop((node, k), None)
            if (node, k) in self._last_event and self._uses[node, k] > 1:
                at = self._last_event[node, k]
                self.events[at] = self.events[at]._replace(total=values)
        same_elements = {_address(x): y for x, y in zip(upstream, upstream_values, strict=True) if x is not None}
        for slot, (target, grad) in enumerate(zip(targets, grads, strict=False)):
            if target is None or grad is None:
                continue
            contribution = total = copy_to_host(grad, same_elements.get(_address(grad)))
            if self._uses[target] > 1:
                total = self._add_to_sum(target, grad.detach(), contribution)
            self._totals[target] = _address(grad), total
            self._last_event[target] = len(self.events)
            self.events.append(BackwardEvent(node, slot, target, upstream_values, contribution, total))

    def set_total(self, target: Target, grad: Any) -> None:
        """Set the complete gradient of a target, in the event of the last contribution to it."""
        if target in self._last_event and self._uses[target] > 1:
            at = self._last_event[target]
            self.events[at] = self.events[at]._replace(total=copy_to_host(grad))

    def _add_to_sum(self, target: Target, grad: Any, contribution: HostValues) -> HostValues:
        """Return the sum of the contributions so far. Without `keeps_sums`, that of a large array is the sum of the
        samples, until `set_total`, so that no gradient is kept.
        """
        if not self._keeps_sums and isinstance(contribution, ArraySummary):
            before = self._totals[target][1] if target in self._totals else None
            return contribution + before if isinstance(before, ArraySummary) else contribution
        before = self._sums.get(target)
        self._sums[target] = grad if before is None else _accumulate(before, grad)
        return contribution if before is None else copy_to_host(self._sums[target])

    def _upstream_values(self, output: Target, grad: Any) -> HostValues:
        if grad is None:
            return None
        address, values = self._totals.get(output, (0, None))
        if address and address == _address(grad) and self._uses[output] < 2:
            return values
        return copy_to_host(grad)


def _accumulate(before: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """Add gradients as the engine does: a dense one comes first, as PyTorch cannot add it to a sparse one."""
    return grad + before if before.is_sparse and not grad.is_sparse else before + grad


def _address(x: torch.Tensor) -> int:
    return x.data_ptr() if x.layout is torch.strided else 0


# --- the user's own pass ---------------------------------------------------------------------------------------------


class BackwardObserver:
    """Hooks on autograd nodes that record the passes that the engine runs through them.

    The hooks keep `owner` alive as long as the graph.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.passes: dict[int, BackwardPass] = {}
        """The passes, in order, by the id of the engine's task."""
        self.is_active = False
        self._targets: dict[int, list[Target | None]] = {}
        self._uses: Counter[Target] = Counter()

    def observe(self, node: Any) -> None:
        """Add a hook to `node`, and to the nodes before it, unless they have one."""
        stack = [node]
        while stack:
            node = stack.pop()
            key = node_key(node)
            if key < 0 or key in self._targets:
                continue
            self._targets[key] = targets = targets_of(node)
            self._uses.update(filter(None, targets))
            node.register_hook(partial(self._record, key, targets))
            for (inner, _), target in zip(node.next_functions, targets, strict=True):
                if target is not None and target[0] < 0 and self._uses[target] == 2:  # the second use of a leaf
                    inner.register_prehook(partial(self._record_leaf, target))
            stack += [inner for inner, _ in node.next_functions if inner is not None]

    def _record(self, key: int, targets: Sequence[Target | None], grads: Any, upstream: Any) -> None:
        self.is_active = True
        try:
            with torch.no_grad():
                self._current_pass(key).add(key, targets, grads, upstream)
        finally:
            self.is_active = False

    def _record_leaf(self, target: Target, grads: Any) -> None:
        run = self.passes.get(graph_task_id())
        if run is not None and grads[0] is not None:
            self.is_active = True
            try:
                run.set_total(target, grads[0])
            finally:
                self.is_active = False

    def _current_pass(self, key: int) -> BackwardPass:
        task = graph_task_id()
        if task not in self.passes:  # a second pass from the same root replaces the first
            self.passes = {old: run for old, run in self.passes.items() if run.root != key}
            run = self.passes[task] = BackwardPass(self._uses, keeps_sums=False)
            call_after_backward(partial(setattr, run, "is_complete", True))
        return self.passes[task]


# --- a pass of our own -----------------------------------------------------------------------------------------------


def run_backward(node: Any, output: int, seed: torch.Tensor) -> BackwardPass:
    """Run the backward pass from `output` of `node`, with the gradient `seed`.

    Nodes are run in the engine's order: among those that are ready, the one created last. Raises RuntimeError if the
    graph was freed, or if a saved tensor was modified in-place since.
    """
    _nodes, dependencies, uses = _dependencies(node)  # `_nodes` keeps them alive, and so their ids
    run = BackwardPass(uses)
    buffers: dict[int, list[Any]] = {id(node): [None] * len(gradient_metadata(node))}
    buffers[id(node)][output] = seed
    order = count()
    ready = [(-node_key(node), next(order), node)]
    while ready:
        node = heapq.heappop(ready)[2]
        upstream = buffers.pop(id(node))
        grads = _apply(node, upstream) if any(x is not None for x in upstream) else [None] * len(node.next_functions)
        run.add(node_key(node), targets_of(node), grads, upstream)
        for (inner, index), grad in zip(node.next_functions, grads, strict=True):
            if inner is None or hasattr(inner, "variable"):
                continue
            buffer = buffers.setdefault(id(inner), [None] * len(gradient_metadata(inner)))
            if grad is not None:
                buffer[index] = grad if buffer[index] is None else _accumulate(buffer[index], grad)
            dependencies[id(inner)] -= 1
            if not dependencies[id(inner)]:
                heapq.heappush(ready, (-node_key(inner), next(order), inner))
    return run


def _dependencies(root: Any) -> tuple[dict[int, Any], dict[int, int], Counter[Target]]:
    """Return the nodes of a graph by id, the number of edges into each, by its id, and into each of its outputs."""
    dependencies: dict[int, int] = {}
    uses: Counter[Target] = Counter()
    stack, visited = [root], {id(root): root}
    while stack:
        node = stack.pop()
        uses.update(filter(None, targets_of(node)))
        for inner, _ in node.next_functions:
            if inner is None:
                continue
            dependencies[id(inner)] = dependencies.get(id(inner), 0) + 1
            if id(inner) not in visited:
                visited[id(inner)] = inner
                stack.append(inner)
    return visited, dependencies, uses


def _apply(node: Any, upstream: list[Any]) -> list[Any]:
    """Return the gradients that `node` computes, as the engine would pass them on."""
    if node.name() in REENTRANT_NODES:
        raise RuntimeError(f"{node.name()} runs a backward pass of its own, which would write to .grad")
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        grads = _apply_function(node, upstream)
    else:
        result = node(*upstream)
        grads = list(result) if isinstance(result, tuple) else [result]
    return [
        None if grad is None or inner is None else _fit(grad, gradient_metadata(inner)[index])
        for grad, (inner, index) in zip(grads, node.next_functions, strict=True)
    ]


def _apply_function(node: Any, upstream: list[Any]) -> list[Any]:
    """Call the backward of a `torch.autograd.Function`, which returns a gradient for each argument of ``forward``."""
    if getattr(node, "materialize_grads", True):
        upstream = [
            torch.zeros(output.shape, dtype=output.dtype, device=output.device) if grad is None else grad
            for grad, output in zip(upstream, gradient_metadata(node), strict=True)
        ]
    result = node.apply(*upstream)
    grads = result if isinstance(result, tuple) else (result,)
    needed = iter([grad for grad, needs in zip(grads, node.needs_input_grad, strict=False) if needs])
    return [None if inner is None else next(needed) for inner, _ in node.next_functions]


def _fit(grad: torch.Tensor, metadata: Any) -> torch.Tensor:
    """Convert a gradient to the shape and the dtype of its input, as the engine does: sum over broadcast dimensions."""
    if grad.shape != metadata.shape and not metadata.is_nested_tensor:
        grad = grad.sum_to_size(metadata.shape)
    if grad.is_complex() and not metadata.dtype.is_complex:
        grad = torch.real(grad)
    return grad if grad.dtype == metadata.dtype else grad.to(metadata.dtype)
