"""Records of the nodes of a graph, the public interface through which the viewer reads graphs.

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

from minigrad.core.deprecation import deprecated_names
from minigrad.core.dispatch import disable_taps
from minigrad.core.graph import Node, leaf_writes, topological
from minigrad.core.op import Op
from minigrad.core.step import Constant, Step, is_modified_since
from minigrad.core.value import Value

__all__ = ["FREED", "NodeRecord", "get_node", "make_record", "snapshot"]

__getattr__ = deprecated_names(__name__, {"node_of": "get_node", "record_of": "make_record"})

FREED: Any = type("Freed", (), {"__repr__": lambda _: "FREED", "__slots__": ()})()
"""Placeholder for a constant operand that has been deleted."""
_NO_EXTRAS: Mapping[Any, Any] = {}


class NodeRecord(NamedTuple):
    """One node of a graph: a leaf, which has no `op`, or the result of an operation.

    `node` is the Value, tensor or `Step` itself, for comparisons by identity and as a key of dicts.
    """

    node: Any
    op: Op | None
    operands: tuple[Any, ...]
    """The node of each operand; a float for a constant operand of a Value, None for an operand in `constants`."""
    constants: tuple[Any, ...]
    """For a `Step`, the tensor, array, number or argument of each operand that does not require grad, else None.
    A deleted operand is FREED, and an argument that a Function does not save is an Ellipsis."""
    attrs: Mapping[str, Any]
    """The keyword arguments of the rules: attributes and, until freed, auxiliary results."""
    value: Any
    """The float of a Value, the leaf tensor, or the output that a `Step` stored inside ``mg.record()``, else None."""
    gradient: Any
    """``.grad``, or None. For a `Step`, the gradient stored inside ``mg.record()``, else that of its tensor."""
    requires_grad: bool
    shape: tuple[int, ...]
    dtype: str
    label: str | None = None
    scope: Any = ""
    """The `Scope` in which the node was computed, or ""."""
    line: str | None = None
    calls: tuple[tuple[Any, Any], ...] = ()
    """The module calls that returned the node, innermost first: pairs of a module and its arguments."""
    saved: tuple[Any, ...] | None = ()
    """The values that a `Step` saves for its rules, (output, *operands), or None if they were freed."""
    stale: tuple[int, ...] = ()
    """The slots of operands, leaves or constants, that were modified after the node was computed."""
    overwritten: bool = False
    """Whether the saved output of a `Step` was modified after the node was computed."""
    function: Any = None
    """The `Function` subclass that created a `Step`, or None."""
    hooked: bool = False
    """Whether gradient hooks are registered on the node."""


def snapshot(outputs: Iterable[Any]) -> list[NodeRecord]:
    """Return a record of each node in the graph of `outputs`, Values or tensors, in topological order.

    The graph is not changed. A record keeps the tensors that it refers to alive.
    """
    with disable_taps():  # reading a constant view recomputes it
        return list(map(make_record, topological(map(get_node, outputs))))


def get_node(x: Node) -> Node:
    """Return the graph node of a Value or tensor: the `Step` of a computed tensor, else `x` itself."""
    edge = x._edge()
    return x if edge is None else edge


def make_record(node: Node) -> NodeRecord:
    """Return the record of a node."""
    return (
        _value_record(node)
        if isinstance(node, Value)
        else _step_record(node)
        if isinstance(node, Step)
        else _leaf_record(node)
    )


def _value_record(x: Value) -> NodeRecord:
    operands, extras = x._inputs, getattr(x, "_extras", _NO_EXTRAS)
    stale_operands = () if x._write_count == leaf_writes.count else x.stale
    if not extras and not stale_operands:  # fast path for the common case
        return NodeRecord(x, x._op, operands, (), _NO_EXTRAS, x._data, x.grad, x.requires_grad, (), "float")
    attrs, stale = (
        extras.get("static", _NO_EXTRAS),
        tuple([slot for slot, y in enumerate(operands) if y in stale_operands]),
    )
    fields = (x, x._op, operands, (), attrs, x._data, x.grad, x.requires_grad, (), "float")
    return NodeRecord(*fields, stale=stale, **_extra_fields(extras))


def _step_record(x: Step) -> NodeRecord:
    # `_saved` is read once, since another thread may free it.
    extras, operands, saved = x._extras or _NO_EXTRAS, x.next_functions, x._saved
    pairs = zip(x._left, x.constants, strict=True)
    constants = tuple([FREED if y is None and operand.__class__ is Constant else y for operand, y in pairs])
    stale = [
        slot for slot, pair in enumerate(zip(operands, constants, strict=True)) if _is_modified(pair, x._write_count)
    ]
    gradient = x.grad if x.grad is not None or x.retainer is None else x.retainer.grad
    return NodeRecord(
        *(x, x._op, operands, constants, x._static_args, x.output, gradient, True, x._shape, str(x._dtype)),
        saved=saved,
        stale=tuple(stale),
        overwritten=is_modified_since((saved or ())[:1], extras.get("written", x._write_count)),
        function=extras.get("function"),
        **_extra_fields(extras),
    )


def _leaf_record(x: Any) -> NodeRecord:
    extra_fields = _extra_fields(getattr(x, "_extras", _NO_EXTRAS))
    return NodeRecord(x, None, (), (), _NO_EXTRAS, x, x.grad, x.requires_grad, x.shape, x.dtype.name, **extra_fields)


def _extra_fields(extras: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of a `NodeRecord` that a node stores in `_extras`."""
    return {
        "label": extras.get("label"),
        "scope": extras.get("scope", ""),
        "line": extras.get("line"),
        "calls": tuple([(key, arguments) for key, arguments in extras.items() if not isinstance(key, str)]),
        "hooked": bool(extras.get("hooks")),
    }


def _is_modified(operand: tuple[Any, ...], write_count: int) -> bool:
    """Return whether an operand, a pair (node, constant), is a tensor modified after write count `write_count`."""
    return is_modified_since(
        tuple([x for x in operand if isinstance(x, Node) and not isinstance(x, Step)]), write_count
    )
