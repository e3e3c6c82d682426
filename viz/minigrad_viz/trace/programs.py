"""Programs that recompute the tensors of a trace: the loops of their operations, deduplicated."""

from __future__ import annotations

import json
import math
from typing import Any

import minigrad as mg
from minigrad_viz.trace.arrays import MOST
from minigrad_viz.trace.columns import Columns
from minigrad_viz.trace.notation import UNWRITABLE

__all__ = ["Programs"]


class Programs:
    """The programs of a trace, `found`, and for each tensor node the indices of its own, or the reason why it has none.

    A program depends on the op, the shapes and the attributes: most graphs have few.
    """

    def __init__(self, trace: Columns) -> None:
        self.found: list[dict[str, Any]] = []
        self.of_node: dict[int, Any] = {}
        self._trace = trace
        self._places: dict[str, int] = {}
        known: dict[Any, Any] = {}
        for node, at in enumerate(trace.op):
            if node not in trace.tensors or at < 0:
                continue
            shapes, attrs = self._shapes(node, trace.ops[at]), trace.attrs.get(node, {})
            key = (at, trace.tensors[node].shape, tuple(shapes), repr(attrs))
            if key not in known:
                known[key] = self._programs(trace.ops[at], tuple(trace.tensors[node].shape), shapes, attrs)
            self.of_node[node] = known[key]

    def _shapes(self, node: int, op: mg.Op) -> list[tuple[int, ...] | None]:
        trace = self._trace
        into = range(trace.start[node], trace.start[node + 1])
        tensors = {trace.slot[edge]: trace.tensors.get(trace.operand[edge]) for edge in into}
        own = {slot: () if tensor is None else tuple(tensor.shape) for slot, tensor in tensors.items()}
        return [own.get(slot) for slot in range(len(own) if op.variadic else len(op.inputs))]

    def _programs(self, op: mg.Op, output: Any, shapes: list[Any], attrs: Any) -> list[int | None] | str:
        """Return the indices of the programs of a node and of its operands' VJPs, or why there are none."""
        from minigrad.backends.loops import Unwritable, forward, product

        sizes = [math.prod(shape) for shape in (output, *shapes) if shape is not None]
        if max(sizes) > MOST:
            return f"It has {max(sizes):,} elements, more than a trace stores."
        if min(sizes) == 0:
            return "It is empty."
        try:
            products = [product(op, slot, output, shapes, attrs) for slot in range(len(shapes))]
            made = [forward(op, shapes, attrs), *products]
        except (Unwritable, *UNWRITABLE) as error:
            own = isinstance(error, Unwritable)
            return str(error) if own else f"The rules of {op.name} do more than call operations."
        return [None if one is None else self._place(one) for one in made]

    def _place(self, program: dict[str, Any]) -> int:
        key = json.dumps(program)
        if key not in self._places:
            self._places[key] = len(self.found)
            self.found.append(program)
        return self._places[key]
