"""Programs that recompute the tensors of a trace. They are the loops of the operations, deduplicated."""

from __future__ import annotations

import json
import math
from typing import Any

import minigrad as mg
from minigrad_viz.trace.arrays import MAX_CELLS
from minigrad_viz.trace.columns import Columns
from minigrad_viz.trace.notation import FORMULA_ERRORS, is_function

__all__ = ["Programs"]


class Programs:
    """The `programs` of a trace, and the program indices of each tensor node or the reason why it has no programs.

    A program depends on the op, the shapes and the attributes, so most graphs have few programs.
    """

    def __init__(self, trace: Columns) -> None:
        self.programs: list[dict[str, Any]] = []
        self.of_node: dict[int, Any] = {}
        self._trace = trace
        self._index_of: dict[str, int] = {}
        cache: dict[Any, Any] = {}
        for node, op_index in enumerate(trace.op):
            if node not in trace.tensors or op_index < 0:
                continue
            shapes, attrs = self._operand_shapes(node, trace.ops[op_index]), trace.attrs.get(node, {})
            key = (op_index, trace.tensors[node].shape, tuple(shapes), repr(attrs))
            if key not in cache:
                cache[key] = self._compile(trace.ops[op_index], tuple(trace.tensors[node].shape), shapes, attrs)
            self.of_node[node] = cache[key]

    def _operand_shapes(self, node: int, op: mg.Op) -> list[tuple[int, ...] | None]:
        trace = self._trace
        incoming_edges = range(trace.start[node], trace.start[node + 1])
        tensors = {trace.slot[edge]: trace.tensors.get(trace.operand[edge]) for edge in incoming_edges}
        shape_by_slot = {slot: () if tensor is None else tuple(tensor.shape) for slot, tensor in tensors.items()}
        return [shape_by_slot.get(slot) for slot in range(len(shape_by_slot) if op.variadic else len(op.inputs))]

    def _compile(self, op: mg.Op, output: Any, shapes: list[Any], attrs: Any) -> list[int | None] | str:
        """Return the indices of the programs of a node and of its operands' VJPs, or the reason why there are none."""
        from minigrad.backends.loops import Unwritable, forward, vjp_loops

        if is_function(op):
            return f"{op.name} is a function that minigrad cannot recompute."
        sizes = [math.prod(shape) for shape in (output, *shapes) if shape is not None]
        if max(sizes) > MAX_CELLS:
            return f"It has {max(sizes):,} elements, more than a trace stores."
        if min(sizes) == 0:
            return "It is empty."
        try:
            products = [vjp_loops(op, slot, output, shapes, attrs) for slot in range(len(shapes))]
            programs = [forward(op, shapes, attrs), *products]
        except (Unwritable, *FORMULA_ERRORS) as error:
            is_unwritable = isinstance(error, Unwritable)
            return str(error) if is_unwritable else f"The rules of {op.name} do more than call operations."
        return [None if program is None else self._add_program(program) for program in programs]

    def _add_program(self, program: dict[str, Any]) -> int:
        key = json.dumps(program)
        if key not in self._index_of:
            self._index_of[key] = len(self.programs)
            self.programs.append(program)
        return self._index_of[key]
