"""The wire format: a trace as JSON, version 2, which the player reads.

The data is stored in columns, because JSON with 100,000 rows is slow on both sides. Columns with few entries are
*sparse*, {index: item}. Numbers are rounded to 6 significant digits when stored in a notebook, and exact with `full`;
NaN and infinities are strings, since JSON has no numbers for them; missing values are null.

    nodes     kind: a letter per node: l leaf, o operation, c constant, x the operation that raised
              op: index into `ops`, or -1; name: sparse; value: null for a tensor; block: index into `blocks`
              state: a letter per node: n gradient not computed yet, f final, b blocked, p unknown
              grad: sparse, the contents of .grad; line: sparse, "file:line: source"; stale: nodes older than an operand
              tensor: sparse {shape, dtype, value, grad}, the last two indices into `arrays` or null
              attrs: sparse {name: text}
              short: sparse, absent without modules: a parameter's name next to the title of its block
    edges     operand, result, slot; flows: "1" if a gradient flows back; local: its scalar derivative
              all edges into a node are adjacent, in slot order
    passes    for each output the events of its backward pass, by column
    blocks    the tree of scopes: name, outer, kind; block 0 is the entire graph, and each follows its outer one;
              about: a module's parameters and output shape; the compiled kernel of a captured step's block;
              the nodes of a run
    formulas  templates that the player fills with names and numbers: see templates.py; -1 if there is none
    ops       name, formula; js, rules: how to recompute it in the browser, or why that is impossible
    arrays    summaries of tensors
    programs  loops that recompute tensors: see minigrad/backends/loops.py. nodes.tensor's `loops` lists the
              program of a node and of each operand's product (null: none), or why there is none
    notes     warnings for the user
    tours     absent, or the stops of a tour: position and caption
    how       absent, or how a captured step is run: then nodes are calls in execution order, most have no values,
              and there is no backward pass
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import minigrad as mg
from minigrad_viz.trace.array_summary import ArraySummary
from minigrad_viz.trace.arrays import MAX_CELLS, dtype_name, summary
from minigrad_viz.trace.columns import Columns, Pass, format_attributes
from minigrad_viz.trace.notation import round_for_json
from minigrad_viz.trace.programs import Programs
from minigrad_viz.trace.rows import Note, TourStop
from minigrad_viz.trace.templates import Template, local_template, product_template, serialize_op, template

__all__ = ["VERSION", "to_data", "to_json"]

VERSION = 2
MAX_CONSTANT_TEMPLATES = 1000
# Maximum number of cells of all arrays, in a live player and in a stored trace.
MAX_LIVE_CELLS, MAX_STORED_CELLS = 300_000, 50_000
MIN_CELLS = 16  # minimum number of cells per array

Convert = Callable[[Any], Any]


def to_data(trace: Columns, full: bool) -> dict[str, Any]:
    """Return `trace` as plain lists and dicts."""
    convert = _exact_number if full else round_for_json
    arrays, formulas, programs = _ArrayPool(), _FormulaPool(trace), Programs(trace)
    ops = [serialize_op(op) for op in trace.ops]
    op = _op_indices(trace, ops)
    columns = {
        "version": VERSION,
        "sentence": trace.sentence(),
        "outputs": trace.outputs,
        "nodes": {**_node_columns(trace, convert, arrays, programs), "op": op, "formula": formulas.node_templates},
        "edges": {**_edge_columns(trace, convert), "formula": formulas.edge_templates},
        "passes": [_pass_columns(run, convert, arrays) for run in trace.passes],
        "blocks": _block_rows(trace),
        "ops": ops,
        "formulas": formulas.templates,
        "notes": [_note_row(note) for note in trace.notes],
        **({"tours": list(map(_stop_row, trace.tours))} if trace.tours else {}),
        **({"how": trace.execution} if trace.execution else {}),
    }
    if not trace.tensors:
        return {**columns, "arrays": []}
    cell_budget = MAX_LIVE_CELLS if full else MAX_STORED_CELLS
    return {**columns, "programs": programs.programs, "arrays": arrays.summaries(convert, cell_budget)}


def to_json(trace: Columns, full: bool) -> str:
    """Return `to_data` as one line of JSON."""
    return json.dumps(to_data(trace, full), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class _ArrayPool:
    """Summaries of arrays, deduplicated because gradients often pass through a node unchanged.

    The total number of cells is limited. With many arrays, each is therefore subsampled more.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._index_of: dict[Any, int] = {}

    def add(self, array: Any) -> int | None:
        """Return the index of the summary of `array`."""
        if array is None:
            return None
        key: Any = id(array)  # `_arrays` keeps it alive
        if not isinstance(array, ArraySummary):
            key = (array.shape, dtype_name(array.dtype), blake2b(array.tobytes()).digest())
        if key not in self._index_of:
            self._index_of[key] = len(self._arrays)
            self._arrays.append(array)
        return self._index_of[key]

    def summaries(self, convert: Convert, cell_budget: int) -> list[dict[str, Any]]:
        """Return the summaries, in order, with about `cell_budget` cells in total."""
        max_cells = _cells_per_array([array.size for array in self._arrays], cell_budget)
        rows = []
        for array in self._arrays:
            stored = summary(array, max_cells)
            statistics = {name: convert(stored[name]) for name in ("min", "max", "mean", "std")}
            rows.append({**stored, **statistics, "cells": _convert_column(stored["cells"], convert)})
        return rows


def _cells_per_array(sizes: Iterable[int], cell_budget: int = MAX_LIVE_CELLS) -> int:
    """Return the maximum number of cells per array such that the total is `cell_budget`. Cells that small arrays do not
    need are available to the others.

    >>> _cells_per_array([10, 20_000]), _cells_per_array([100_000] * 40), _cells_per_array([100] * 100 + [9_000] * 40)
    (10000, 7500, 7250)
    """
    sizes = sorted(min(size, MAX_CELLS) for size in sizes)
    for position, size in enumerate(sizes):
        remaining = len(sizes) - position
        if size * remaining > cell_budget:
            return max(MIN_CELLS, cell_budget // remaining)
        cell_budget -= size
    return MAX_CELLS


def _node_columns(trace: Columns, show: Convert, arrays: _ArrayPool, programs: Programs) -> dict[str, Any]:
    tensors = {}
    for index, (shape, dtype, array) in trace.tensors.items():
        grad = trace.grads.get(index)
        array_indices = {"value": arrays.add(array), "grad": arrays.add(grad)}
        tensors[str(index)] = {"shape": list(shape), "dtype": dtype, **array_indices}
        if index in programs.of_node:
            tensors[str(index)]["loops"] = programs.of_node[index]
    return {
        "kind": "".join(trace.kinds),
        "name": {str(index): name for index, name in enumerate(trace.names) if name is not None},
        "value": _convert_column(trace.values, show),
        "state": "".join(trace.states),
        "grad": {str(index): show(grad) for index, grad in trace.grads.items() if index not in trace.tensors},
        "block": trace.block,
        "line": {str(index): line for index, line in trace.lines.items()},
        "stale": sorted(trace.modified_operands),
        "tensor": tensors,
        "attrs": {str(index): format_attributes(attrs) for index, attrs in trace.attrs.items()},
        **({"short": {str(index): name for index, name in trace.short.items()}} if trace.short else {}),
    }


def _op_indices(trace: Columns, ops: list[dict[str, Any]]) -> list[int]:
    """Return the op index of each node. A call that raised has its own entry in `ops`."""
    op_indices = list(trace.op)
    for index, kind in enumerate(trace.kinds):
        if kind == "x":
            op_indices[index] = len(ops)
            ops.append({"name": trace.names[index] or "call", "formula": None, "js": None, "rules": []})
    return op_indices


def _edge_columns(trace: Columns, show: Convert) -> dict[str, Any]:
    return {
        "operand": trace.operand,
        "result": trace.result,
        "slot": trace.slot,
        "flows": "".join(["1" if flows else "0" for flows in trace.flows]),
        "local": _convert_column(trace.local, show),
    }


def _pass_columns(run: Pass, show: Convert, arrays: _ArrayPool) -> dict[str, Any]:
    def column(items: list[Any]) -> list[Any]:
        if run.root not in run.trace.tensors:
            return _convert_column(items, show)
        return [None if x is None else {"array": arrays.add(x)} for x in items]

    columns = (run.upstream, run.contribution, run.total)
    upstream, contribution, total = map(column, columns)
    return {"root": run.root, "edge": run.edge, "upstream": upstream, "contribution": contribution, "total": total}


def _block_rows(trace: Columns) -> list[dict[str, Any]]:
    rows = []
    output_shapes = _output_shapes(trace) if trace.modules else {}
    for k, block in enumerate(trace.blocks):
        data: dict[str, Any] = {"name": block.name, "outer": block.outer, "kind": block.kind}
        if block.copies:
            data["count"] = block.copies
        if block.note:
            data["about"] = block.note
        if (about := trace.modules.get(k)) is not None:
            data["name"] += f" · {about.kind}" if about.kind else ""
            count = f"{about.parameters:,} parameter{'' if about.parameters == 1 else 's'}"
            parts = [count if about.parameters else "", *about.shared[:1]]
            shape_phrase = f"→ {output_shapes[k]}" if k in output_shapes else ""
            data["about"] = " ".join(filter(None, [" · ".join(filter(None, parts)), shape_phrase]))
        rows.append(data)
    return rows


def _output_shapes(trace: Columns) -> dict[int, str]:
    """Return the output shape of each block with a single output tensor."""
    outputs_by_block: dict[int, dict[int, None]] = {}
    uses = [*zip(trace.operand, trace.result, strict=True), *((output, -1) for output in trace.outputs)]
    for operand, result in uses:
        enclosing = set()
        k = 0 if result < 0 else trace.block[result]
        while k > 0:
            enclosing.add(k)
            k = trace.blocks[k].outer
        k = trace.block[operand] if trace.op[operand] >= 0 else 0
        while k > 0 and k not in enclosing:
            outputs_by_block.setdefault(k, {})[operand] = None
            k = trace.blocks[k].outer
    shapes = {k: {trace.tensors[x].shape for x in nodes if x in trace.tensors} for k, nodes in outputs_by_block.items()}
    return {
        k: "×".join(map(str, shapes_of_block.pop())) or "scalar"
        for k, shapes_of_block in shapes.items()
        if len(shapes_of_block) == 1
    }


class _FormulaPool:
    """Deduplicated formula templates, and the template index of each node and edge, or -1.

    A template depends on the op, the constant operands, and the attributes, so most graphs have few. After the first
    `MAX_CONSTANT_TEMPLATES`, constants become placeholders like names, so that a data set passed as Python scalars does
    not create a template for each number.
    """

    def __init__(self, trace: Columns) -> None:
        self.templates: list[Template] = []
        self.node_templates = [-1] * len(trace.kinds)
        self.edge_templates = [-1] * len(trace.operand)
        self._trace = trace
        self._index_of: dict[int, int] = {}
        self._cache: dict[Any, list[int]] = {}
        kinds, values, operand, start, tensors = trace.kinds, trace.values, trace.operand, trace.start, trace.tensors
        for node, at in enumerate(trace.op):
            if at < 0:
                continue
            first, last = start[node], start[node + 1]
            constants = tuple([values[x] if kinds[x] == "c" else None for x in operand[first:last]])
            if len(self.templates) > MAX_CONSTANT_TEMPLATES:
                constants = (None,) * len(constants)
            attrs = trace.attrs.get(node, {})
            key = (at, constants, node in tensors, tuple([(name, str(x)) for name, x in attrs.items()]))
            template_indices = self._cache.get(key)
            if template_indices is None:
                slots = trace.slot[first:last]
                template_indices = self._cache[key] = self._templates(
                    trace.ops[at], slots, constants, attrs, node in tensors
                )
            self.node_templates[node] = template_indices[0]
            self.edge_templates[first:last] = template_indices[1:]

    def _templates(
        self, op: mg.Op, slots: list[int], constants: tuple[Any, ...], attrs: Mapping[str, Any], tensors: bool
    ) -> list[int]:
        """Return the template indices of a node and of its edges, which are derivatives or, for tensors, VJPs."""
        rule = product_template if tensors else local_template
        derivatives = [
            None if op.variadic or len(slots) != len(op.inputs) else rule(op, slot, constants, attrs) for slot in slots
        ]
        return [self._add(formula_template) for formula_template in (template(op, constants, attrs), *derivatives)]

    def _add(self, formula_template: Template | None) -> int:
        if formula_template is None:
            return -1
        if id(formula_template) not in self._index_of:
            self._index_of[id(formula_template)] = len(self.templates)
            self.templates.append(formula_template)
        return self._index_of[id(formula_template)]


def _stop_row(stop: TourStop) -> dict[str, Any]:
    data: dict[str, Any] = {"at": stop.at, "text": stop.text}
    return data if stop.look is None else data | {"select": stop.look}


def _note_row(note: Note) -> dict[str, Any]:
    data = {"kind": note.kind, "node": note.node, "text": note.text}
    details = {"nodes": list(note.nodes), "edges": list(note.edges)}
    return data | {key: indices for key, indices in details.items() if indices}


def _convert_column(values: Sequence[float | None], show: Convert) -> list[Any]:
    """Convert values for JSON. Rounding them all in one call is several times as fast."""
    present = [x for x in values if x is not None]
    if show is _exact_number:
        converted: Iterable[Any] = present if all(map(math.isfinite, present)) else map(show, present)
    else:
        text = ("%.6g " * len(present)) % tuple(present)
        # "nan" and "inf" contain an n; adding 0.0 removes the sign of a zero
        converted = map(show, present) if "n" in text else [x + 0.0 for x in map(float, text.split())]
    if len(present) == len(values):
        return list(converted)
    remaining = iter(converted)
    return [None if x is None else next(remaining) for x in values]


def _exact_number(x: float | None) -> Any:
    """Convert a number as `round_for_json` does, but without rounding."""
    if x is None or math.isfinite(x):
        return x
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
