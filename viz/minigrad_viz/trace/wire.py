"""The wire format: a trace as JSON, version 2, which the player reads.

Columns instead of rows, because JSON of 100,000 rows is slow on both sides. Where most nodes have nothing, a column is
*sparse*, {index: item}. Numbers are rounded to 6 significant digits where a notebook keeps the trace, and whole with
`full`; NaN and infinities are strings, since JSON has no numbers for them; what is missing is null.

    nodes     kind: a letter a node: l leaf, o operation, c constant, x the operation that raised
              op: which of `ops`, or -1; name: sparse; value: null for a tensor; block: which of `blocks`
              state: a letter a node: n gradient not computed yet, f final, b blocked, p unknown
              grad: sparse, what .grad held; line: sparse, "file:number: text"; stale: those older than their operands
              tensor: sparse {shape, dtype, value, grad}, the last two numbers of `arrays` or null
              attrs: sparse {name: text}
              short: sparse, absent without modules: what a parameter is called beside the title of its block
    edges     operand, result, slot; flows: "1" where a gradient goes back; local: its scalar derivative
              all edges into a node are neighbours, in slot order
    passes    for each output the events of its backward pass, by column
    blocks    the tree of scopes: name, outer, kind; block 0 is the whole graph, and each comes after its outer one;
              about: of a module, its parameters and the shape of what it gives, in words; of a block of a recorded
              step, which compiled kernel it is; of a run, which nodes are in it
    formulas  templates that the player fills with names and numbers: see templates.py; -1 where there is none
    ops       name, formula; js, rules: how to compute it again in the browser, or why that cannot be
    arrays    summaries of tensors
    programs  loops that compute tensors again: see minigrad/backends/loops.py. nodes.tensor's `loops` says
              which computes a node, and for each operand which its product (null: none), or why none can
    notes     what a user should be told
    tours     absent, or the stops of a tour: at which position, and what is said there
    how       absent, or, of a recorded step, how it is run: then nodes are calls in the order in which they run, most
              have no numbers, and there is no way back
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
_MOST_CELLS, _STORED_CELLS = 300_000, 50_000  # of all arrays together, in a live player and in what is stored
_FEWEST = 16  # what each may have in any case

Show = Callable[[Any], Any]


def data(trace: Columns, full: bool) -> dict[str, Any]:
    """`trace` as plain lists and dicts."""
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
    """`data` as one line of JSON."""
    return json.dumps(data(trace, full), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class _Arrays:
    """The summaries of arrays, each once: what comes into a node often goes out of it unchanged.

    Together they have at most so many cells, or so: where they are many, each shows less of what it is of.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, array: Any) -> int | None:
        """Where the summary of `array` will be."""
        if array is None:
            return None
        key = (array.shape, array.dtype.str, blake2b(array.tobytes()).digest())
        if key not in self._places:
            self._places[key] = len(self._arrays)
            self._arrays.append(array)
        return self._places[key]

    def summaries(self, show: Show, room: int) -> list[dict[str, Any]]:
        """The summaries, in order, with `room` cells together."""
        most = _share([array.size for array in self._arrays], room)
        found = []
        for array in self._arrays:
            short = summary(array, most)
            numbers = {name: show(short[name]) for name in ("min", "max", "mean", "std")}
            found.append({**short, **numbers, "cells": _column(short["cells"], show)})
        return found


def _share(sizes: Iterable[int], room: int = _MOST_CELLS) -> int:
    """How many cells each array may have, so that together they have `room`; small ones leave theirs to others.

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
    """Which of `ops` each node has. A call that raised, which may be of none, gets one of its own there."""
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
    """The shape of what each block gives, where that is one tensor."""
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
    return {k: "×".join(map(str, one.pop())) or "a number" for k, one in shapes.items() if len(one) == 1}


class _Formulas:
    """The templates of formulas, each once, and which of them each node and each edge has, or -1.

    A template depends on the op, on which operands are constants, and on the attributes: in most graphs they are few.
    Constants beyond the first many are left out of it, as names are, so that a data set fed in as plain numbers does
    not make a template of each.
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
        """Where the template of the node is, and that of each edge to it: a derivative, of tensors a whole product."""
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
    """Numbers as JSON has them. All at once where they are to be rounded, which is several times as quick."""
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
    """As `rounded`, with all digits."""
    if x is None or math.isfinite(x):
        return x
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
