"""What a graph holds, node by node, as plain records: the one public look at it, from which the viewer draws.

>>> import minigrad as mg
>>> a = mg.Value(3.0, "a")
>>> for record in snapshot([a * a]):
...     print(record.op, record.label, record.value, record.operands)
None a 3.0 ()
<Op mul(a, b)> None 9.0 (Value(3.0, label='a'), Value(3.0, label='a'))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from minigrad.core.dispatch import untapped
from minigrad.core.graph import Node, topological
from minigrad.core.op import Op
from minigrad.core.step import Constant, Step, written_since
from minigrad.core.value import Value

__all__ = ["FREED", "NodeRecord", "node_of", "record_of", "snapshot"]

FREED: Any = type("Freed", (), {"__repr__": lambda _: "FREED", "__slots__": ()})()
"""Stands for a tensor without a gradient that took part and is no more."""
_NO_NOTES: Mapping[Any, Any] = {}


class NodeRecord(NamedTuple):
    """One node of a graph: a leaf, which has no `op`, or the result of an operation.

    `node` itself, a Value, a tensor or a Step, is there to tell nodes apart and to look them up.
    """

    node: Any
    op: Op | None
    operands: tuple[Any, ...]
    """By slot the node of the operand; of a Value a float where that took part as a constant. None: see `constants`."""
    constants: tuple[Any, ...]
    """Of a Step, by slot the tensor, array, number or argument that took part without a gradient, or FREED; else None.
    An argument of a Function that is not kept is an Ellipsis."""
    attrs: Mapping[str, Any]
    """What the rules are given by name: attributes and, until they are freed, auxiliary results."""
    value: Any
    """The float; of a Step the array that it kept inside ``mg.record()``, or None; of a leaf tensor the tensor."""
    gradient: Any
    """What ``.grad`` holds, or None; of a Step what it kept inside ``mg.record()``, or its tensor's."""
    requires_grad: bool
    shape: tuple[int, ...]
    dtype: str
    label: str | None = None
    scope: Any = ""
    """The `Scope` that it was computed in, or ""."""
    line: str | None = None
    calls: tuple[tuple[Any, Any], ...] = ()
    """The calls that it is a result of, the inner one first: each a module and what it was called with."""
    saved: tuple[Any, ...] | None = ()
    """What a Step keeps for its rules, (output, *operands); None once it was freed."""
    stale: tuple[int, ...] = ()
    """The slots of leaves and constants that were written after this was computed from them."""
    overwritten: bool = False
    """Whether the saved output of a Step was written since."""
    function: Any = None
    """The Function whose call a Step is, or None."""
    hooked: bool = False
    """Whether a hook may change the gradient here."""


def snapshot(outputs: Iterable[Any]) -> list[NodeRecord]:
    """Return a record of each node of the graph that ends in `outputs`, Values or tensors, operands first.

    Nothing in the graph is changed. A record holds on to the tensors that it mentions.
    """
    with untapped():  # views that took part are computed again
        return list(map(record_of, topological(map(node_of, outputs))))


def node_of(x: Node) -> Node:
    """Return the node that a Value or a tensor is in the graph: of a computed tensor its Step, else `x` itself."""
    edge = x._edge()
    return x if edge is None else edge


def record_of(node: Node) -> NodeRecord:
    """Return the record of one node."""
    return _of_value(node) if isinstance(node, Value) else _of_step(node) if isinstance(node, Step) else _of_leaf(node)


def _of_value(x: Value) -> NodeRecord:
    operands, notes = x._inputs, getattr(x, "_more", _NO_NOTES)
    late = () if x._made == Node.writes else x.stale
    if not notes and not late:  # as of most, and quickly
        return NodeRecord(x, x._op, operands, (), _NO_NOTES, x._data, x.grad, x._requires_grad, (), "float")
    attrs, stale = notes.get("static", _NO_NOTES), tuple([slot for slot, y in enumerate(operands) if y in late])
    first = (x, x._op, operands, (), attrs, x._data, x.grad, x._requires_grad, (), "float")
    return NodeRecord(*first, stale=stale, **_notes_of(notes))


def _of_step(x: Step) -> NodeRecord:
    notes, operands, saved = getattr(x, "_more", _NO_NOTES), x.next_functions, x._saved  # another thread may free it
    kept = zip(x._left, x.constants, strict=True)
    constants = tuple([FREED if y is None and left.__class__ is Constant else y for left, y in kept])
    stale = [slot for slot, pair in enumerate(zip(operands, constants, strict=True)) if _is_late(pair, x._made)]
    gradient = x.grad if x.grad is not None or x.retainer is None else x.retainer.grad
    return NodeRecord(
        *(x, x._op, operands, constants, x._kept, x.output, gradient, True, x._shape, str(x._dtype)),
        saved=saved,
        stale=tuple(stale),
        overwritten=written_since((saved or ())[:1], notes.get("written", x._made)),
        function=notes.get("function"),
        **_notes_of(notes),
    )


def _of_leaf(x: Any) -> NodeRecord:
    rest = _notes_of(getattr(x, "_more", _NO_NOTES))
    return NodeRecord(x, None, (), (), _NO_NOTES, x, x.grad, x.requires_grad, x.shape, x.dtype.name, **rest)


def _notes_of(notes: Mapping[Any, Any]) -> dict[str, Any]:
    """What few nodes have, by the names of fields."""
    return {
        "label": notes.get("label"),
        "scope": notes.get("scope", ""),
        "line": notes.get("line"),
        "calls": tuple([(key, given) for key, given in notes.items() if not isinstance(key, str)]),
        "hooked": bool(notes.get("hooks")),
    }


def _is_late(operand: tuple[Any, ...], made: int) -> bool:
    """Whether an operand, a node or a constant, is a tensor that was written after write number `made`."""
    return written_since(tuple([x for x in operand if isinstance(x, Node) and not isinstance(x, Step)]), made)
