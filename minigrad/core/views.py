"""Views: how gradients flow through in-place writes to views.

A view shares its base's memory and stores the chain of view operations that leads from the base to it. A write to the
view also changes the base: the graph records it as an ordinary op, `overwrite`, whose result becomes the base. Other
views of that base then recompute their graph node from the new base, along their own chains. The graph is therefore
purely functional, and a compiler never sees a mutation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minigrad.core.errors import DTypeError, GraphError, ShapeError
from minigrad.core.grad_mode import enable_grad
from minigrad.core.modes import modes
from minigrad.core.op import Op, forward_declared
from minigrad.core.shapes import has_overlap
from minigrad.core.step import Step, constant
from minigrad.core.storage import owns_memory

__all__ = [
    "check_memory",
    "check_writable",
    "element_strides",
    "rebase",
    "refresh",
    "register_view",
    "replay",
    "write_into",
]


_overwrite = forward_declared("overwrite")


def replay(x: Any, chain: tuple[tuple[Op, Mapping[str, Any]], ...]) -> Any:
    """Apply a chain of view operations to `x`."""
    for op, attrs in chain:
        x = op(x, **attrs)
    return x


def register_view(view: Any, source: Any, op: Op, attrs: Mapping[str, Any]) -> None:
    """Register `view` as a view of `source`, unless it owns its memory."""
    if owns_memory(view._array):  # the result of a reshape that copied the elements
        return
    if source._base is None:
        view._base, view._view_chain = source, ((op, attrs),)
    else:
        view._base, view._view_chain = source._base, (*source._view_chain, (op, attrs))
    view._storage = source.storage
    view._rebase_count = view._storage.rebase_count


def _resolve_base(view: Any) -> Any:
    """Return the base of `view`, even if the base has become a view itself, for example by ``x.unsqueeze_()``."""
    if view._base is not None and view._base._base is not None:
        view._base = view._base._base
    return view._base


def refresh(view: Any) -> None:
    """Recompute the graph node of a view if its base has been rebased."""
    base = _resolve_base(view)
    if base is not None and view._rebase_count != view._storage.rebase_count:
        with enable_grad():
            replayed = replay(base, view._view_chain)
        view._step, view._requires_grad = replayed._step, replayed._requires_grad
        view._rebase_count = view._storage.rebase_count
        view._move_retained_grad()


def check_writable(target: Any, shape: tuple[int, ...], dtype_kind: int, name: str) -> None:
    """Raise unless a result of `shape` and kind `dtype_kind` can be written into `target` in-place.

    Raises GraphError for a leaf that requires grad, or a view of one, in grad mode, and for read-only memory;
    ShapeError if the shapes differ or elements of the target share a memory location; DTypeError if the result cannot
    be cast without loss of kind, such as float to int.
    """
    base = target if target._base is None else target._base
    if modes.grad and base._requires_grad and base._step is None:
        description = "a leaf" if base is target else "a view of a leaf"
        raise GraphError(
            f"{name}: {description} that requires grad is being used in an in-place operation.\n"
            "  Write inside mg.no_grad() to update it, or out-of-place: y = x + 1."
        )
    if shape != target.shape:
        raise ShapeError(f"{name}: output with shape {target.shape} doesn't match the broadcast shape {shape}.")
    check_memory(target, name)
    if dtype_kind > target.dtype.kind:
        raise DTypeError(
            f"{name}: the result type can't be cast to the desired output type {target.dtype.name}.\n"
            "  Use an out-of-place operation, or convert it."
        )


def check_memory(target: Any, name: str) -> None:
    """Raise ShapeError if elements of `target` share a memory location, and GraphError if its memory is read-only."""
    if not target._array.flags.c_contiguous and has_overlap(target.shape, target._array.strides):
        raise ShapeError(
            f"{name}: unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location.\n"
            "  clone() it first."
        )
    if not target._array.flags.writeable:
        raise GraphError(f"{name}: the tensor shares memory with a read-only array.\n  clone() it first.")


def element_strides(x: Any) -> tuple[int, ...]:
    """Return the strides of `x` in elements."""
    return tuple([stride // x._array.itemsize for stride in x._array.strides])


def rebase(target: Any, step: Step | None) -> None:
    """Update the graph after a write to `target`. `step` is its new node, or None if it does not require grad."""
    base, storage = _resolve_base(target), target.storage
    if base is None:
        target._step, target._requires_grad = step, step is not None
    else:
        edge = base._edge()
        if edge is None and step is None:
            return
        attrs = {"chain": target._view_chain, "stride": element_strides(base)}
        operands = [constant(x._snapshot()) if e is None else e for x, e in ((base, edge), (target, step))]
        node = Step(_overwrite, tuple(operands), attrs, base._array, (None, None, None))
        node.observe(base)
        base._step, base._requires_grad = node, True
        base._move_retained_grad()
    for listener in modes.graph_rebased:
        listener.graph_rebased(target if base is None else base)
    storage.rebase_count += 1
    refresh(target)


def write_into(target: Any, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    """Write `op(inputs)` to the tensor `target` in-place, and return it. Raises the errors of `check_writable`."""
    return target._write_inplace(op, inputs, attrs)
