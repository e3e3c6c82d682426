"""The wire format: a trace as JSON, version 2, which the player reads.

Columns instead of rows, because JSON of 100,000 rows is slow on both sides. Where most nodes have nothing, a column is
*sparse*, {index: item}. Numbers are rounded to 6 significant digits where a notebook keeps the trace, and whole with
`full`; NaN and infinities are strings, since JSON has no numbers for them; what is missing is null.

    nodes     kind: a letter a node: l leaf, o operation, c constant, x the operation that raised
              op: which of `ops`, or -1; name: sparse; value: null for a tensor; block: which of `blocks`
              state: a letter a node: n gradient not computed yet, f final, b blocked, p freed or unknown
              grad: sparse, what .grad held; line: sparse, "file:number: text"; stale: those older than their operands
              tensor: sparse {shape, dtype, value, grad}, the last two numbers of `arrays` or null
              attrs: sparse {name: text}
    edges     operand, result, slot; flows: "1" where a gradient goes back; local: its scalar derivative
              all edges into a node are neighbours, in slot order
    passes    for each output the events of its backward pass, by column
    blocks    the tree of scopes: name, outer, kind; block 0 is the whole graph, and each comes after its outer one
    ops       name, formula; js, rules: how to compute it again in the browser, or why that cannot be
    arrays    summaries of tensors
    notes     what a reader should be told
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import minigrad as mg
from minigrad_viz.notation import formula_of, rounded

if TYPE_CHECKING:
    from minigrad_viz.columns import Note, Pass, Trace

__all__ = ["VERSION", "data", "text"]

VERSION = 2

Show = Callable[[Any], Any]


def data(trace: Trace, full: bool) -> dict[str, Any]:
    """`trace` as plain lists and dicts."""
    show = _whole if full else rounded
    arrays = _Arrays(show)
    return {
        "version": VERSION,
        "sentence": trace.sentence(),
        "outputs": trace.outputs,
        "nodes": _nodes(trace, show, arrays),
        "edges": _edges(trace, show),
        "passes": [_pass(run, show, arrays) for run in trace.passes],
        "blocks": [_block(block) for block in trace.blocks],
        "ops": [_op(op) for op in trace.ops],
        "formulas": [],
        "arrays": arrays.found,
        "notes": [_note(note) for note in trace.notes],
    }


def text(trace: Trace, full: bool) -> str:
    """`data` as one line of JSON."""
    return json.dumps(data(trace, full), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class _Arrays:
    """The summaries of arrays, each once: what comes into a node often goes out of it unchanged."""

    def __init__(self, show: Show) -> None:
        self.found: list[dict[str, Any]] = []
        self._show = show
        self._places: dict[Any, int] = {}

    def place(self, array: Any) -> int | None:
        """Where the summary of `array` is."""
        if array is None:
            return None
        key = (array.shape, array.dtype.str, array.tobytes())
        if key not in self._places:
            from minigrad_viz.arrays import summary

            short, show = summary(array), self._show
            numbers = {name: show(short[name]) for name in ("min", "max", "mean", "std")}
            self._places[key] = len(self.found)
            self.found.append({**short, **numbers, "cells": [show(x) for x in short["cells"]]})
        return self._places[key]


def _nodes(trace: Trace, show: Show, arrays: _Arrays) -> dict[str, Any]:
    tensors = {}
    for index, (shape, dtype, array) in trace.tensors.items():
        grad = trace.grads.get(index)
        places = {"value": arrays.place(array), "grad": arrays.place(grad)}
        tensors[str(index)] = {"shape": list(shape), "dtype": dtype, **places}
    return {
        "kind": "".join(trace.kinds),
        "op": trace.op,
        "name": {str(index): name for index, name in enumerate(trace.names) if name is not None},
        "value": _column(trace.values, show),
        "state": "".join(trace.states),
        "grad": {str(index): show(grad) for index, grad in trace.grads.items() if index not in trace.tensors},
        "block": trace.block,
        "line": {str(index): line for index, line in trace.lines.items()},
        "stale": sorted(trace.late),
        "tensor": tensors,
        "formula": [-1] * len(trace.kinds),
        "attrs": {str(index): attrs for index, attrs in trace.attrs.items()},
    }


def _edges(trace: Trace, show: Show) -> dict[str, Any]:
    return {
        "operand": trace.operand,
        "result": trace.result,
        "slot": trace.slot,
        "flows": "".join(["1" if flows else "0" for flows in trace.flows]),
        "local": _column(trace.local, show),
        "formula": [-1] * len(trace.operand),
    }


def _pass(run: Pass, show: Show, arrays: _Arrays) -> dict[str, Any]:
    def column(items: list[Any]) -> list[Any]:
        if run.root not in run.trace.tensors:
            return _column(items, show)
        return [None if x is None else {"array": arrays.place(x)} for x in items]

    columns = (run.upstream, run.contribution, run.total)
    upstream, contribution, total = map(column, columns)
    return {"root": run.root, "edge": run.edge, "upstream": upstream, "contribution": contribution, "total": total}


def _block(block: Any) -> dict[str, Any]:
    data = {"name": block.name, "outer": block.outer, "kind": block.kind}
    return data | ({"count": block.copies} if block.copies else {}) | ({"line": block.line} if block.line else {})


def _op(op: mg.Op) -> dict[str, Any]:
    formula = formula_of(op, op.inputs)
    return {
        "name": op.name,
        "formula": formula if isinstance(formula, str) else formula.latex(),
        "js": None,
        "rules": [None] * len(op.inputs),
        "why": f"the player has no JavaScript for {op.name}",
    }


def _note(note: Note) -> dict[str, Any]:
    data = {"kind": note.kind, "node": note.node, "text": note.text}
    more = {"nodes": list(note.nodes), "edges": list(note.edges)}
    return data | {key: places for key, places in more.items() if places}


def _column(numbers: Iterable[Any], show: Show) -> list[Any]:
    """Numbers, most of which are finite and there."""
    return [show(x) for x in numbers]


def _whole(x: float | None) -> Any:
    """As `rounded`, with all digits."""
    if x is None or math.isfinite(x):
        return x
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
