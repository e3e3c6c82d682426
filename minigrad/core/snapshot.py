"""Plain records of the nodes of a graph: the public interface through which the viewer reads it.

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
"""Placeholder for a constant operand that has been deleted."""
_NO_NOTES: Mapping[Any, Any] = {}


class NodeRecord(NamedTuple):
    """One node of a graph: a leaf, which has no `op`, or the result of an operation.

    `node` is the Value, tensor or `Step` itself, as an identity and lookup key.
    """

    node: Any
    op: Op | None
    operands: tuple[Any, ...]
    """The node of each operand; a float for a constant operand of a Value, None for one in `constants`."""
    constants: tuple[Any, ...]
    """For a `Step`, each operand that does not require grad (tensor, array, number or argument), or FREED; else None.
    An argument that a Function does not save is an Ellipsis."""
    attrs: Mapping[str, Any]
    """The keyword arguments of the rules: attributes and, until freed, auxiliary results."""
    value: Any
    """The float of a Value, the output that a `Step` stored inside ``mg.record()`` or None, or the leaf tensor."""
    gradient: Any
    """``.grad``, or None; of a `Step` the gradient stored inside ``mg.record()``, or its tensor's."""
    requires_grad: bool
    shape: tuple[int, ...]
    dtype: str
    label: str | None = None
    scope: Any = ""
    """The `Scope` in which it was computed, or ""."""
    line: str | None = None
    calls: tuple[tuple[Any, Any], ...] = ()
    """The module calls that returned it, innermost first: pairs of a module and its arguments."""
    saved: tuple[Any, ...] | None = ()
    """What a `Step` saves for its rules, (output, *operands); None if freed."""
    stale: tuple[int, ...] = ()
    """The slots of leaves and constants that were modified after this was computed."""
    overwritten: bool = False
    """Whether the saved output of a `Step` was modified since."""
    function: Any = None
    """The Function of a `Step`, or None."""
    hooked: bool = False
    """Whether hooks are registered."""


def snapshot(outputs: Iterable[Any]) -> list[NodeRecord]:
    """Return a record of each node in the graph of `outputs`, Values or tensors, in topological order.

    The graph is not changed. A record keeps the tensors that it refers to alive.
    """
    with untapped():  # constant views are recomputed
        return list(map(record_of, topological(map(node_of, outputs))))


def node_of(x: Node) -> Node:
    """Return the graph node of a Value or tensor: the `Step` of a computed tensor, else `x` itself."""
    edge = x._edge()
    return x if edge is None else edge


def record_of(node: Node) -> NodeRecord:
    """Return the record of a node."""
    return _of_value(node) if isinstance(node, Value) else _of_step(node) if isinstance(node, Step) else _of_leaf(node)


def _of_value(x: Value) -> NodeRecord:
    operands, notes = x._inputs, getattr(x, "_more", _NO_NOTES)
    late = () if x._made == Node.writes else x.stale
    if not notes and not late:  # the common case, kept fast
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
    """Return the rare fields of a `NodeRecord`."""
    return {
        "label": notes.get("label"),
        "scope": notes.get("scope", ""),
        "line": notes.get("line"),
        "calls": tuple([(key, given) for key, given in notes.items() if not isinstance(key, str)]),
        "hooked": bool(notes.get("hooks")),
    }


def _is_late(operand: tuple[Any, ...], made: int) -> bool:
    """Return whether an operand, a node or a constant, is a tensor modified after write count `made`."""
    return written_since(tuple([x for x in operand if isinstance(x, Node) and not isinstance(x, Step)]), made)
