"""Join the ATen operations of one PyTorch function into one node, where they are one operation with changes of layout.

``linear(x, weight, bias)`` runs ``t`` and ``addmm``; it is drawn as one node with three operands. A function that does
more, such as attention, becomes a block of several nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from minigrad_viz.trace.torch.graph import Graph, NodeRef, StepOperand, TorchStep
from minigrad_viz.trace.torch.operations import FUNCTIONS, Counterpart, counterpart
from minigrad_viz.trace.torch.rows import FunctionCall, TensorArgument

__all__ = ["TraceStep", "join_steps"]

LAYOUT_OPERATIONS = frozenset(
    [
        "_reshape_alias",
        "_reshape_copy",
        "_to_copy",
        "_unsafe_view",
        "alias",
        "clone",
        "contiguous",
        "copy",
        "detach",
        "expand",
        "lift_fresh",
        "permute",
        "reshape",
        "select",
        "slice",
        "squeeze",
        "t",
        "transpose",
        "unsqueeze",
        "view",
    ]
)


@dataclass(slots=True, eq=False)
class TraceStep:
    """One node of the trace: the steps that it stands for, the last of which computes its value."""

    steps: list[TorchStep]
    name: str
    operands: list[StepOperand]
    """Its operands in the order of its arguments."""
    edges: list[list[tuple[int, int]]]
    """For each operand the autograd edges over which its gradient flows: the number of a node, and an index of its
    ``next_functions``. There is one, or none if no gradient flows."""
    function: FunctionCall | None
    block: Any = None
    """The function call that is drawn as a block around this node, or None."""
    used_outputs: list[int] = field(default_factory=list)

    @property
    def final(self) -> TorchStep:
        """The step that computes the node's value."""
        return self.steps[-1]

    @property
    def core(self) -> TorchStep:
        """The step that computes, rather than changes the layout; the last one if there is none."""
        return next((step for step in self.steps if step.name not in LAYOUT_OPERATIONS), self.final)

    def counterpart(self) -> Counterpart | None:
        """Return the operation of minigrad that computes the same, with operands in terms of this node's, or None."""
        core = self.core
        if self.function is not None and len(self.steps) > 1:
            convert = FUNCTIONS.get(self.function.name)
            return None if convert is None else convert(self)
        if core.call is None or core.recording is None:
            return None
        return counterpart(core.call, core.recording.values)

    def operand_of(self, argument: TensorArgument, operands: list[StepOperand]) -> int | None:
        """Return the index of the operand that has this value among some of the operands, or None."""
        for k, operand in enumerate(operands):
            if operand.value is not None and operand.value.index == argument.value:
                return k
        return None


def join_steps(graph: Graph) -> list[TraceStep]:
    """Return the nodes of a graph in the order of execution."""
    results = _results(graph)
    functions: dict[Any, list[TorchStep]] = {}
    for step in graph.steps.values():
        functions.setdefault(_function_key(step), []).append(step)
    trace_steps: dict[Any, TraceStep] = {}
    for key, steps in functions.items():
        if key is not None and len(steps) > 1 and (joined := _join(steps, results, graph.roots)) is not None:
            trace_steps[joined.final.key] = joined
            continue
        for step in steps:
            trace_steps[step.key] = single = _single(step)
            single.block = step.function if key is not None and len(steps) > 1 else None
    used = _used_outputs(trace_steps.values(), graph.roots)
    for key, trace_step in trace_steps.items():
        trace_step.used_outputs = sorted(used.get(key, {0}))
    return [trace_steps[key] for key in graph.steps if key in trace_steps]


def _function_key(step: TorchStep) -> Any:
    if step.function is None or step.call is None:
        return None
    return id(step.recording), step.call.function


def _results(graph: Graph) -> dict[Any, list[Any]]:
    """Return by the key of a step the keys of the steps that use it."""
    results: dict[Any, list[Any]] = {}
    for step in graph.steps.values():
        for operand in step.operands:
            results.setdefault(operand.source.key, []).append(step.key)
    return results


def _used_outputs(steps: Iterable[TraceStep], roots: Iterable[NodeRef]) -> dict[Any, set[int]]:
    used: dict[Any, set[int]] = {}
    sources = [operand.source for step in steps for operand in step.operands]
    for source in (*sources, *roots):
        used.setdefault(source.key, set()).add(source.output)
    return used


def _single(step: TorchStep) -> TraceStep:
    edges = [[] if operand.edge is None else [(step.key[1], operand.edge)] for operand in step.operands]
    name = step.name
    if step.function is not None and step.call is not None and not step.function.name.startswith("__"):
        is_alone = step.recording is not None and _call_count(step) == 1
        name = step.function.name if is_alone else name
    return TraceStep([step], name.strip("_") or name, step.operands, edges, step.function)


def _call_count(step: TorchStep) -> int:
    """Return the number of operations in the function call of a step, without the copies that autograd saves."""
    assert step.call is not None
    assert step.recording is not None
    calls, index, count = step.recording.calls, step.call.index, 1
    for direction in (-1, 1):
        at = index + direction
        while 0 <= at < len(calls) and calls[at].function == step.call.function:
            count += calls[at].name not in ("detach", "lift_fresh")
            at += direction
    return count


def _join(steps: list[TorchStep], results: Mapping[Any, list[Any]], roots: list[NodeRef]) -> TraceStep | None:
    """Return the node for the steps of one function, or None if they must be drawn separately."""
    keys, root_keys = {step.key for step in steps}, {root.key for root in roots}
    final = steps[-1]
    used_outside = [s for s in steps if s.key in root_keys or not keys.issuperset(results.get(s.key, ()))]
    if used_outside != [final]:
        return None
    function = steps[0].function
    assert function is not None
    cores = [step for step in steps if step.node is not None and step.name not in LAYOUT_OPERATIONS]
    if len(cores) > 1 and function.name not in FUNCTIONS:
        return None
    if final.node is None and any(step.node is not None for step in steps):
        return None
    operands: list[StepOperand] = []
    edges: list[list[tuple[int, int]]] = []
    for step in steps:
        for operand in step.operands:
            if operand.source.key in keys:
                continue
            edge = [] if operand.edge is None else [(step.key[1], operand.edge)]
            is_repeated = not edge and any(operand.source == other.source for other in operands)
            if is_repeated or _is_made_by(function, step, operand):
                continue
            operands.append(operand)
            edges.append(edge)
    order = _argument_order(function, operands)
    name = function.name if not function.name.startswith("__") else next((c.name for c in cores), final.name)
    return TraceStep(steps, name.strip("_"), [operands[k] for k in order], [edges[k] for k in order], function)


def _is_made_by(function: FunctionCall, step: TorchStep, operand: StepOperand) -> bool:
    """Whether an operand is a constant that the function itself created, such as the mask of a dropout."""
    call = None if operand.value is None else operand.value.call
    if call is None or step.call is None or operand.edge is not None:
        return False
    return call.function == step.call.function and operand.value.index not in function.arguments  # type: ignore[union-attr]


def _argument_order(function: FunctionCall, operands: list[StepOperand]) -> list[int]:
    """Return the indices of operands in the order of the function's arguments; others follow."""
    waiting = list(range(len(operands)))
    order = []
    for index in function.arguments:
        match = next((k for k in waiting if (value := operands[k].value) is not None and value.index == index), None)
        if match is not None:
            waiting.remove(match)
            order.append(match)
    return order + waiting
