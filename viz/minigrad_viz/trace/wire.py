"""The wire format: a trace as JSON, version 2, which the player reads.

Columns instead of rows, because JSON of 100,000 rows is slow on both sides. Columns with few entries are *sparse*,
{index: item}. Numbers are rounded to 6 significant digits when stored in a notebook, and exact with `full`; NaN and
infinities are strings, since JSON has no numbers for them; missing values are null.

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
from minigrad_viz.trace.arrays import MOST, summary
from minigrad_viz.trace.columns import Columns, Pass, attributes
from minigrad_viz.trace.notation import rounded
from minigrad_viz.trace.programs import Programs
from minigrad_viz.trace.rows import Note, TourStop
from minigrad_viz.trace.templates import Template, local_template, op_data, product_template, template

__all__ = ["VERSION", "data", "text"]

VERSION = 2
_MOST_TEMPLATES = 1000
_MOST_CELLS, _STORED_CELLS = 300_000, 50_000  # of all arrays, in a live player and in a stored trace
_FEWEST = 16  # cells guaranteed to each array

Show = Callable[[Any], Any]


def data(trace: Columns, full: bool) -> dict[str, Any]:
    """Return `trace` as plain lists and dicts."""
    show = _whole if full else rounded
    arrays, formulas, programs = _Arrays(), _Formulas(trace), Programs(trace)
    ops = [op_data(op) for op in trace.ops]
    op = _ops_of_nodes(trace, ops)
    columns = {
        "version": VERSION,
        "sentence": trace.sentence(),
        "outputs": trace.outputs,
        "nodes": {**_nodes(trace, show, arrays, programs), "op": op, "formula": formulas.of_node},
        "edges": {**_edges(trace, show), "formula": formulas.of_edge},
        "passes": [_pass(run, show, arrays) for run in trace.passes],
        "blocks": _blocks(trace),
        "ops": ops,
        "formulas": formulas.found,
        "notes": [_note(note) for note in trace.notes],
        **({"tours": list(map(_stop, trace.tours))} if trace.tours else {}),
        **({"how": trace.how} if trace.how else {}),
    }
    if not trace.tensors:
        return {**columns, "arrays": []}
    room = _MOST_CELLS if full else _STORED_CELLS
    return {**columns, "programs": programs.found, "arrays": arrays.summaries(show, room)}


def text(trace: Columns, full: bool) -> str:
    """Return `data` as one line of JSON."""
    return json.dumps(data(trace, full), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class _Arrays:
    """Deduplicated summaries of arrays: gradients often pass through a node unchanged.

    Their total number of cells is limited: with many arrays, each is subsampled more.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, array: Any) -> int | None:
        """Return the index of the summary of `array`."""
        if array is None:
            return None
        key = (array.shape, array.dtype.str, blake2b(array.tobytes()).digest())
        if key not in self._places:
            self._places[key] = len(self._arrays)
            self._arrays.append(array)
        return self._places[key]

    def summaries(self, show: Show, room: int) -> list[dict[str, Any]]:
        """Return the summaries, in order, with about `room` cells in total."""
        most = _share([array.size for array in self._arrays], room)
        found = []
        for array in self._arrays:
            short = summary(array, most)
            numbers = {name: show(short[name]) for name in ("min", "max", "mean", "std")}
            found.append({**short, **numbers, "cells": _column(short["cells"], show)})
        return found


def _share(sizes: Iterable[int], room: int = _MOST_CELLS) -> int:
    """Return the cells allowed per array so that the total is `room`; small arrays leave their remainder to others.

    >>> _share([10, 20_000]), _share([100_000] * 40), _share([100] * 100 + [9_000] * 40)
    (10000, 7500, 7250)
    """
    sizes = sorted(min(size, MOST) for size in sizes)
    for place, size in enumerate(sizes):
        left = len(sizes) - place
        if size * left > room:
            return max(_FEWEST, room // left)
        room -= size
    return MOST


def _nodes(trace: Columns, show: Show, arrays: _Arrays, programs: Programs) -> dict[str, Any]:
    tensors = {}
    for index, (shape, dtype, array) in trace.tensors.items():
        grad = trace.grads.get(index)
        places = {"value": arrays.place(array), "grad": arrays.place(grad)}
        tensors[str(index)] = {"shape": list(shape), "dtype": dtype, **places}
        if index in programs.of_node:
            tensors[str(index)]["loops"] = programs.of_node[index]
    return {
        "kind": "".join(trace.kinds),
        "name": {str(index): name for index, name in enumerate(trace.names) if name is not None},
        "value": _column(trace.values, show),
        "state": "".join(trace.states),
        "grad": {str(index): show(grad) for index, grad in trace.grads.items() if index not in trace.tensors},
        "block": trace.block,
        "line": {str(index): line for index, line in trace.lines.items()},
        "stale": sorted(trace.late),
        "tensor": tensors,
        "attrs": {str(index): attributes(attrs) for index, attrs in trace.attrs.items()},
        **({"short": {str(index): name for index, name in trace.short.items()}} if trace.short else {}),
    }


def _ops_of_nodes(trace: Columns, ops: list[dict[str, Any]]) -> list[int]:
    """Return the op index of each node. A call that raised gets an entry of its own in `ops`."""
    places = list(trace.op)
    for index, kind in enumerate(trace.kinds):
        if kind == "x":
            places[index] = len(ops)
            ops.append({"name": trace.names[index] or "call", "formula": None, "js": None, "rules": []})
    return places


def _edges(trace: Columns, show: Show) -> dict[str, Any]:
    return {
        "operand": trace.operand,
        "result": trace.result,
        "slot": trace.slot,
        "flows": "".join(["1" if flows else "0" for flows in trace.flows]),
        "local": _column(trace.local, show),
    }


def _pass(run: Pass, show: Show, arrays: _Arrays) -> dict[str, Any]:
    def column(items: list[Any]) -> list[Any]:
        if run.root not in run.trace.tensors:
            return _column(items, show)
        return [None if x is None else {"array": arrays.place(x)} for x in items]

    columns = (run.upstream, run.contribution, run.total)
    upstream, contribution, total = map(column, columns)
    return {"root": run.root, "edge": run.edge, "upstream": upstream, "contribution": contribution, "total": total}


def _blocks(trace: Columns) -> list[dict[str, Any]]:
    found = []
    leaves = _leaving(trace) if trace.modules else {}
    for k, block in enumerate(trace.blocks):
        data: dict[str, Any] = {"name": block.name, "outer": block.outer, "kind": block.kind}
        if block.copies:
            data["count"] = block.copies
        if block.note:
            data["about"] = block.note
        if (about := trace.modules.get(k)) is not None:
            data["name"] += f" · {about.kind}" if about.kind else ""
            count = f"{about.parameters:,} parameter{'' if about.parameters == 1 else 's'}"
            said = [count if about.parameters else "", *about.shared[:1]]
            given = f"→ {leaves[k]}" if k in leaves else ""
            data["about"] = " ".join(filter(None, [" · ".join(filter(None, said)), given]))
        found.append(data)
    return found


def _leaving(trace: Columns) -> dict[int, str]:
    """Return the output shape of each block with a single output tensor."""
    leaving: dict[int, dict[int, None]] = {}
    ends = [*zip(trace.operand, trace.result, strict=True), *((output, -1) for output in trace.outputs)]
    for operand, result in ends:
        around = set()
        k = 0 if result < 0 else trace.block[result]
        while k > 0:
            around.add(k)
            k = trace.blocks[k].outer
        k = trace.block[operand] if trace.op[operand] >= 0 else 0
        while k > 0 and k not in around:
            leaving.setdefault(k, {})[operand] = None
            k = trace.blocks[k].outer
    shapes = {k: {trace.tensors[x].shape for x in nodes if x in trace.tensors} for k, nodes in leaving.items()}
    return {k: "×".join(map(str, one.pop())) or "scalar" for k, one in shapes.items() if len(one) == 1}


class _Formulas:
    """Deduplicated formula templates, and their index for each node and edge, or -1.

    A template depends on the op, the constant operands, and the attributes: most graphs have few. After the first
    `_MOST_TEMPLATES`, constants become placeholders like names, so that a data set passed as Python scalars does not
    create a template for each.
    """

    def __init__(self, trace: Columns) -> None:
        self.found: list[Template] = []
        self.of_node = [-1] * len(trace.kinds)
        self.of_edge = [-1] * len(trace.operand)
        self._trace = trace
        self._places: dict[int, int] = {}
        self._known: dict[Any, list[int]] = {}
        kinds, values, operand, start, tensors = trace.kinds, trace.values, trace.operand, trace.start, trace.tensors
        for node, at in enumerate(trace.op):
            if at < 0:
                continue
            first, last = start[node], start[node + 1]
            constants = tuple([values[x] if kinds[x] == "c" else None for x in operand[first:last]])
            if len(self.found) > _MOST_TEMPLATES:
                constants = (None,) * len(constants)
            attrs = trace.attrs.get(node, {})
            key = (at, constants, node in tensors, tuple([(name, str(x)) for name, x in attrs.items()]))
            places = self._known.get(key)
            if places is None:
                slots = trace.slot[first:last]
                places = self._known[key] = self._templates(trace.ops[at], slots, constants, attrs, node in tensors)
            self.of_node[node] = places[0]
            self.of_edge[first:last] = places[1:]

    def _templates(
        self, op: mg.Op, slots: list[int], constants: tuple[Any, ...], attrs: Mapping[str, Any], tensors: bool
    ) -> list[int]:
        """Return the template indices of the node and of each of its edges: a derivative, for tensors a VJP."""
        rule = product_template if tensors else local_template
        derivatives = [
            None if op.variadic or len(slots) != len(op.inputs) else rule(op, slot, constants, attrs) for slot in slots
        ]
        return [self._place(one) for one in (template(op, constants, attrs), *derivatives)]

    def _place(self, one: Template | None) -> int:
        if one is None:
            return -1
        if id(one) not in self._places:
            self._places[id(one)] = len(self.found)
            self.found.append(one)
        return self._places[id(one)]


def _stop(stop: TourStop) -> dict[str, Any]:
    data: dict[str, Any] = {"at": stop.at, "text": stop.text}
    return data if stop.look is None else data | {"select": stop.look}


def _note(note: Note) -> dict[str, Any]:
    data = {"kind": note.kind, "node": note.node, "text": note.text}
    more = {"nodes": list(note.nodes), "edges": list(note.edges)}
    return data | {key: places for key, places in more.items() if places}


def _column(numbers: Sequence[float | None], show: Show) -> list[Any]:
    """Convert numbers for JSON. Rounding all at once is several times as fast."""
    there = [x for x in numbers if x is not None]
    if show is _whole:
        shown: Iterable[Any] = there if all(map(math.isfinite, there)) else map(show, there)
    else:
        text = ("%.6g " * len(there)) % tuple(there)
        # NaN and infinities have an n; adding 0.0 takes a zero's sign away
        shown = map(show, there) if "n" in text else [x + 0.0 for x in map(float, text.split())]
    if len(there) == len(numbers):
        return list(shown)
    each = iter(shown)
    return [None if x is None else next(each) for x in numbers]


def _whole(x: float | None) -> Any:
    """Convert as `rounded` does, with all digits."""
    if x is None or math.isfinite(x):
        return x
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
