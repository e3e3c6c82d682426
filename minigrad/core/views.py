"""Views: how a write through a view gets its gradient.

A view shares its base's bytes and knows the chain of view operations that leads from the base to it. A write into the
view changes the base too; in the graph that is an ordinary operation, `overwrite`, whose result becomes the base.
Other views of that base then take their gradient from the new one, along their own chains. So the graph never sees a
mutation, and whoever compiles it need not either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minigrad.core.errors import DTypeError, GraphError, ShapeError
from minigrad.core.grad_mode import enable_grad
from minigrad.core.modes import modes
from minigrad.core.op import Op, forward
from minigrad.core.shapes import overlapping
from minigrad.core.step import Step, constant
from minigrad.core.storage import owns

__all__ = ["check_memory", "check_writable", "link", "rebase", "refresh", "replay", "stride_of", "write_into"]


_overwrite = forward("overwrite")


def replay(x: Any, chain: tuple[tuple[Op, Mapping[str, Any]], ...]) -> Any:
    """The view of `x` that a chain of view operations leads to."""
    for op, attrs in chain:
        x = op(x, **attrs)
    return x


def link(view: Any, source: Any, op: Op, attrs: Mapping[str, Any]) -> None:
    """Note that `view` was made from `source` by a view operation, and shares its memory, unless it has its own."""
    if owns(view._array):  # a reshape that had to copy
        return
    if source._base is None:
        view._base, view._chain = source, ((op, attrs),)
    else:
        view._base, view._chain = source._base, (*source._chain, (op, attrs))
    view._storage = source.storage
    view._rebased = view._storage.rebased


def _base_of(view: Any) -> Any:
    """What `view` was made from, or that which this has become a view of since, as ``x.unsqueeze_()`` makes x one."""
    if view._base is not None and view._base._base is not None:
        view._base = view._base._base
    return view._base


def refresh(view: Any) -> None:
    """See to it that a view takes its gradient from its base as that is now."""
    base = _base_of(view)
    if base is not None and view._rebased != view._storage.rebased:
        with enable_grad():
            again = replay(base, view._chain)
        view._step, view._requires_grad = again._step, again._requires_grad
        view._rebased = view._storage.rebased
        view._retain_again()


def check_writable(target: Any, shape: tuple[int, ...], kind: int, name: str) -> None:
    """Raise unless a result of `shape` and `kind` of number may be written into `target` now.

    GraphError for a leaf that needs a gradient, or a view of one, while operations are recorded, and for memory that
    can only be read; ShapeError where the result has another shape, or one number of the target stands in several
    places; DTypeError where it would lose its fractions, or its being more than True and False.
    """
    base = target if target._base is None else target._base
    if modes.grad and base._requires_grad and base._step is None:
        what = "a leaf" if base is target else "a view of a leaf"
        raise GraphError(
            f"{name}: {what} that requires a gradient cannot be written in place: its gradient would be that of a "
            "number which is gone.\n  Write inside mg.no_grad() to update it, or out of place: y = x + 1."
        )
    if shape != target.shape:
        raise ShapeError(f"{name}: the result has shape {shape}, which does not fit into {target.shape}.")
    check_memory(target, name)
    if kind > target.dtype.kind:
        raise DTypeError(
            f"{name}: the result does not fit into numbers of type {target.dtype.name}.\n"
            "  Write out of place, or convert it."
        )


def check_memory(target: Any, name: str) -> None:
    """Raise ShapeError where one number stands in several places, GraphError for memory that is only to be read."""
    if not target._array.flags.c_contiguous and overlapping(target.shape, target._array.strides):
        raise ShapeError(
            f"{name}: in this view, expanded or of windows, one number stands in several places, so it cannot be "
            "written.\n"
            "  clone() it first."
        )
    if not target._array.flags.writeable:
        raise GraphError(f"{name}: its memory is shared with an array that may only be read.\n  clone() it first.")


def stride_of(x: Any) -> tuple[int, ...]:
    """How many numbers apart neighbours along each dimension stand in memory."""
    return tuple([by // x._array.itemsize for by in x._array.strides])


def rebase(target: Any, step: Step | None) -> None:
    """Make the graph as if `target`, just written to, had been computed by `step`; None if that needs no gradient."""
    base, storage = _base_of(target), target.storage
    if base is None:
        target._step, target._requires_grad = step, step is not None
    else:
        edge = base._edge()
        if edge is None and step is None:
            return
        how = {"chain": target._chain, "stride": stride_of(base)}
        both = [constant(x._snapshot()) if e is None else e for x, e in ((base, edge), (target, step))]
        written = Step(_overwrite, tuple(both), how, base._array, (None, None, None))
        written.observe(base)
        base._step, base._requires_grad = written, True
        base._retain_again()
    for listener in modes.graph_rebased:
        listener.graph_rebased(target if base is None else base)
    storage.rebased += 1
    refresh(target)


def write_into(target: Any, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    """Compute `op` of `inputs` into the memory of the tensor `target`, and return it. Raises as `check_writable`."""
    return target._write(op, inputs, attrs)
