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
    blocks    a tree: name, outer, kind, count of a fold; block 0 is the whole graph, each comes after its outer one
    ops       name, formula; js, rules: how to compute it again in the browser, or why that cannot be
    arrays    summaries of tensors
    notes     what a reader should be told
    tours     absent, or the stops of a tour: at which position, and what is said there
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import minigrad as mg
from minigrad_viz.notation import formula_of, rounded

if TYPE_CHECKING:
    from minigrad_viz.blocks import Block
    from minigrad_viz.trace import Trace

__all__ = ["VERSION", "data", "text"]

VERSION = 2
_KINDS = {"leaf": "l", "op": "o", "constant": "c", "broken": "x"}
_STATES = {"none": "n", "final": "f", "blocked": "b", "freed": "p"}

Show = Callable[[float | None], Any]


def data(trace: Trace, full: bool) -> dict[str, Any]:
    """`trace` as plain lists and dicts."""
    show = _whole if full else rounded
    ops = list({node.op.name: node.op for node in trace.nodes if node.op is not None}.values())
    places = {op.name: place for place, op in enumerate(ops)}
    return {
        "version": VERSION,
        "sentence": trace.sentence(),
        "outputs": trace.outputs,
        "nodes": _nodes(trace, places, show),
        "edges": _edges(trace, show),
        "passes": [_pass(run, show) for run in trace.passes],
        "blocks": [_block(block) for block in trace.blocks],
        "ops": [_op(op) for op in ops],
        "formulas": [],
        "arrays": [],
        "notes": [_note(note) for note in trace.notes],
        **({"tours": [stop._asdict() for stop in trace.tours]} if trace.tours else {}),
    }


def text(trace: Trace, full: bool) -> str:
    """`data` as one line of JSON."""
    return json.dumps(data(trace, full), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _nodes(trace: Trace, places: Mapping[str, int], show: Show) -> dict[str, Any]:
    nodes = trace.nodes
    return {
        "kind": "".join([_KINDS[node.kind] for node in nodes]),
        "op": [-1 if node.op is None else places[node.op.name] for node in nodes],
        "name": _sparse(node.name for node in nodes),
        "value": [show(node.value) for node in nodes],
        "state": "".join([_STATES[node.state] for node in nodes]),
        "grad": {str(index): show(node.grad) for index, node in enumerate(nodes) if node.grad is not None},
        "block": [node.block for node in nodes],
        "line": _sparse(node.line for node in nodes),
        "stale": [index for index, node in enumerate(nodes) if node.stale],
        "tensor": {},
        "formula": [-1] * len(nodes),
        "attrs": _sparse(node.attrs for node in nodes),
    }


def _edges(trace: Trace, show: Show) -> dict[str, Any]:
    return {
        "operand": [edge.operand for edge in trace.edges],
        "result": [edge.result for edge in trace.edges],
        "slot": [edge.slot for edge in trace.edges],
        "flows": "".join(["1" if edge.flows else "0" for edge in trace.edges]),
        "local": [show(edge.local) for edge in trace.edges],
        "formula": [-1] * len(trace.edges),
    }


def _pass(run: Any, show: Show) -> dict[str, Any]:
    return {
        "root": run.root,
        "edge": [step.edge for step in run.steps],
        "upstream": [show(step.upstream) for step in run.steps],
        "contribution": [show(step.contribution) for step in run.steps],
        "total": [show(step.total) for step in run.steps],
    }


def _block(block: Block) -> dict[str, Any]:
    details = {"count": block.count, "line": block.line}
    has = {"name": block.name, "outer": block.outer, "kind": block.kind}
    return has | {key: detail for key, detail in details.items() if detail is not None}


def _op(op: mg.Op) -> dict[str, Any]:
    formula = formula_of(op, op.inputs)
    return {
        "name": op.name,
        "formula": formula if isinstance(formula, str) else formula.latex(),
        "js": None,
        "rules": [None] * len(op.inputs),
        "why": f"the player has no JavaScript for {op.name}",
    }


def _note(note: Any) -> dict[str, Any]:
    return {"kind": note.kind, "node": note.node, "text": note.text}


def _sparse(items: Iterable[Any]) -> dict[str, Any]:
    return {str(index): item for index, item in enumerate(items) if item}


def _whole(x: float | None) -> Any:
    """As `rounded`, with all digits."""
    if x is None or math.isfinite(x):
        return x
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
