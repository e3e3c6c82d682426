"""Step: what the graph keeps of one operation on tensors. PyTorch calls it ``grad_fn``.

A Value is its own record of how it came about. A tensor cannot be: it can be overwritten. So its record is a Step: the
op, the nodes its operands came from, and, of their numbers, those that the rules will read, each with its version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from minigrad.dtypes import as_dtype
from minigrad.errors import DTypeError, GraphError, ShapeError, a_kind, caller_line
from minigrad.graph import Node, copied, modes, number
from minigrad.kernels import detour
from minigrad.layout import Shape, broadcast_shapes
from minigrad.op import OPS, Op
from minigrad.storage import common_place

__all__ = ["Step", "by_edge", "check_gradient", "fitted", "keep_gradients"]


class Step(Node):
    """One recorded operation on tensors: a node of the graph that is not a leaf."""

    # _left: the nodes of the operands, () for a constant. _saved: for (y, *operands) the tensor or number that a rule
    # will read, else None (a plain number is there in any case); _versions: theirs then, None where all were new.
    __slots__ = ("__weakref__", "_dtype", "_kept", "_saved", "_shape", "_versions")

    _saved: tuple[Any, ...] | None
    _versions: tuple[int, ...] | None
    _kept: Mapping[str, Any]
    _dtype: Any
    _shape: Shape

    def __init__(self, op: Op, operands: tuple[Any, ...], static: Mapping[str, Any], shape: Shape, dtype: Any) -> None:
        self._op = op
        self._left = operands
        self._right = None
        self._kept = static
        self._requires_grad = True
        self.grad = None
        self._shape = shape
        self._dtype = dtype
        if detour.reasons:
            if modes.scope:
                self._remember("scope", modes.scope)
            if modes.lines:
                self._remember("line", caller_line())

    @property
    def _inputs(self) -> tuple[Any, ...]:
        inputs: tuple[Any, ...] = self._left
        return inputs

    @property
    def name(self) -> str:
        """The op's name as PyTorch prints it, such as ``MulBackward``."""
        op = cast(Op, self._op)
        return "".join(part[:1].upper() + part[1:] for part in op.name.split("_")) + "Backward"

    @property
    def scope(self) -> str:
        """The `mg.scope` it was recorded in, such as ``"layer1/attention"``; empty outside of any."""
        return cast(str, self._note("scope", ""))

    @property
    def line(self) -> str | None:
        """The source line that made it, as ``file:number: text``, where ``mg.record(lines=True)`` was on; else None."""
        return cast(str | None, self._note("line"))

    @property
    def output(self) -> Any:
        """The numbers it gave, an array, as they were then; None unless it was made inside ``mg.record()``.

        Of an operation with several outputs those of the first.
        """
        return self._note("output")

    @property
    def constants(self) -> tuple[Any, ...]:
        """By operand: a tensor that no operation made, with its version then, or a number; else None.

        Empty unless it was made inside ``mg.record()``.
        """
        return cast(tuple[Any, ...], self._note("constants", ()))

    def observe(self, inputs: Sequence[Any], output: Any) -> None:
        """Inside ``mg.record()`` keep a copy of the `output`, and what it was made from that has no record itself."""
        if modes.recordings:
            self._remember("output", copied(output))
            kept = [x if not hasattr(x, "_step") else (x, _version(x)) if x._step is None else None for x in inputs]
            if inputs:
                self._remember("constants", tuple(kept))

    @property
    def next_functions(self) -> tuple[Node | None, ...]:
        """The nodes that receive a contribution from this one, by operand; None where none is needed."""
        return tuple(node if isinstance(node, Node) else None for node in self._left)

    def keep(self, saved: tuple[Any, ...]) -> None:
        """Save (y, *operands), of which those that no rule reads are None."""
        self._saved = saved
        self._versions = tuple([_version(x) for x in saved]) if _any_written(saved) else None  # None: they all were 0

    def replace_saved(self, tensor: Any, copy: Callable[[], Any]) -> None:
        """`tensor` is about to be overwritten with the result: if a rule will read it, keep a copy instead."""
        if self._saved is not None and any(x is tensor for x in self._saved):
            kept = copy()
            self._saved = tuple([kept if x is tensor else x for x in self._saved])
            self._versions = None if self._versions is None else tuple([_version(x) for x in self._saved])
        if any(x.__class__ is tuple and x[0] is tensor for x in self.constants):
            before = (copy(), 0)
            kept = [before if x.__class__ is tuple and x[0] is tensor else x for x in self.constants]
            self._remember("constants", tuple(kept))

    def output_written(self) -> None:
        """The output was written in place just now: what was saved of it is right as it is from here on."""
        if self._saved is not None and self._saved[0] is not None:
            versions = self._versions or (0,) * len(self._saved)
            self._versions = (_version(self._saved[0]), *versions[1:])

    def free(self) -> None:
        """Forget the saved numbers; the structure of the graph stays."""
        self._saved = None
        op = cast(Op, self._op)
        if op.aux:
            self._kept = {name: kept for name, kept in self._kept.items() if name not in op.aux}

    def _static(self, as_nodes: bool) -> Mapping[str, Any]:
        if as_nodes or not cast(Op, self._op).aux:
            return self._kept
        return {name: number(kept) for name, kept in self._kept.items()}

    def _operands(self, as_nodes: bool, slots: Sequence[int]) -> tuple[Any, ...]:
        op = cast(Op, self._op)
        if self._saved is None:
            raise GraphError(
                f"backward: the graph behind {op.name} was freed by an earlier backward, to give its memory back.\n"
                "  Write backward(retain_graph=True) the first time, or compute the expression again."
            )
        saved = self._saved
        if self._versions is not None or _any_written(saved):
            self._refuse_overwritten(op, slots)
        if not as_nodes:
            return tuple([_array(x) for x in saved])
        output = saved[0]
        if output is None:
            return saved
        if isinstance(output, tuple):
            return (self.relinked(output), *saved[1:])
        return (output._linked(self), *saved[1:])

    def relinked(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The `outputs` of this step, None for one that was not saved, as tensors whose gradients come here."""
        if len(outputs) == 1:
            return (outputs[0]._linked(self),)
        picks = [None if x is None else self.pick(x, k, len(outputs)) for k, x in enumerate(outputs)]
        return tuple([x if p is None else x._linked(p) for x, p in zip(outputs, picks, strict=True)])

    def pick(self, output: Any, index: int, count: int) -> Step | None:
        """The step of output number `index` of `count`, which passes its gradient here; None if it is of integers."""
        if not output.dtype.is_floating_point:
            return None
        pick = Step(OPS["pick"], (self,), {"index": index, "count": count}, output.shape, output._array.dtype)
        pick.keep((None, None))
        if detour.reasons:
            pick.observe((), output)
        return pick

    def _refuse_overwritten(self, op: Op, slots: Sequence[int]) -> None:
        saved = cast(tuple[Any, ...], self._saved)
        versions = self._versions or (0,) * len(saved)
        for name, tensor, version in zip(("y", *op.inputs), saved, versions, strict=True):
            asked = (name, *op.parts) if name == "y" else (name,)
            if _version(tensor) != version and any(not op.reads[slot].isdisjoint(asked) for slot in slots):
                what = "its result" if name == "y" else f"its operand {name}"
                if isinstance(tensor, tuple):
                    tensor = max(tensor, key=_version)
                raise GraphError(
                    f"backward: {op.name} needs {what}, of shape {tensor.shape}, as it was at version {version}, but "
                    f"it is at version {tensor._version} now: overwritten by {tensor._storage.last_write}\n"
                    f"  Write out of place there (x = x + 1, not x += 1), or give {op.name} a clone()."
                )

    def _fitted(self, gradient: Any) -> Any:
        return gradient if isinstance(gradient, tuple) else fitted(gradient, self._shape, self._dtype)

    def _sum(self, total: Any, contribution: Any) -> Any:
        if not isinstance(total, tuple):
            return total + contribution
        pairs = zip(total, contribution, strict=True)  # by output of an op that has several
        return tuple([b if a is None else a if b is None else a + b for a, b in pairs])

    @property
    def _keeps(self) -> bool:
        return bool(modes.recordings) or (getattr(self, "_more", None) is not None and self.retainer is not None)

    @property
    def retainer(self) -> Any:
        """The tensor that asked to keep its gradient, if it still lives."""
        return self._note("retains", lambda: None)()

    def _local(self, slot: int) -> float | None:
        return None

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _version(x: Any) -> int:
    """How often the memory of a saved tensor was written, of several all together; 0 of a number."""
    return sum([_version(one) for one in x]) if isinstance(x, tuple) else getattr(x, "_version", 0)


def _any_written(saved: tuple[Any, ...]) -> bool:
    """Whether any version is not 0; `_version`, as fast as it can be asked."""
    for x in saved:
        if isinstance(x, Node):
            if x._storage is not None and x._storage.version:  # type: ignore[attr-defined]
                return True
        elif x.__class__ is tuple and _any_written(x):
            return True
    return False


def _array(x: Any) -> Any:
    """The bare numbers in what was saved: a tensor, several, a number, or nothing."""
    return x._raw() if isinstance(x, Node) else tuple(map(_array, x)) if x.__class__ is tuple else x


def fitted(gradient: Any, shape: Shape, dtype: Any) -> Any:
    """`gradient` summed over what broadcasting had stretched, so that it has `shape`, and as `dtype`."""
    array = gradient._raw() if isinstance(gradient, Node) else gradient
    if array.shape == shape and array.dtype is dtype:
        return gradient
    if array.shape != shape:
        if broadcast_shapes(shape, array.shape, op="backward") != array.shape:
            raise ShapeError(
                f"backward: a rule gave an operand of shape {shape} a gradient of shape {array.shape}.\n"
                "  It must have the operand's shape, or one that the operand was broadcast to."
            )
        gradient = OPS["sum_to"](gradient, shape=shape)
    return gradient if array.dtype is dtype else OPS["to"](gradient, dtype=as_dtype(dtype))


def keep_gradients(totals: Mapping[Node, Any]) -> None:
    """Add to the `grad` of each step what a pass inside ``mg.record()`` found there, as an array."""
    for node, total in totals.items():
        if isinstance(node, Step) and not isinstance(total, tuple):  # else its parts are those of its picks
            array = copied(total)
            node.grad = array if node.grad is None else node.grad + array


def check_gradient(x: Any, like: Any, what: str, whose: str, of_type: bool = True) -> None:
    """Raise unless `x` is a tensor of the shape, and with `of_type` of the type, of the array `like`."""
    if not hasattr(x, "_array"):
        raise DTypeError(f"{what} is {a_kind(x)}, not a tensor.\n  Make it one: mg.tensor(x).")
    if x._array.shape != like.shape:
        raise ShapeError(
            f"{what} has shape {x.shape}, but {whose} has {like.shape}.\n  Both must be equal: reshape it, or expand."
        )
    common_place((like, x._array), what)
    if of_type and x._array.dtype is not like.dtype:
        raise DTypeError(
            f"{what} is of {x.dtype.name}, but {whose} of {like.dtype}.\n  Convert it: x.to(mg.{like.dtype})."
        )


def by_edge(inputs: Any) -> dict[Any, Any]:
    """The tensors that a backward pass is to write to, by their places in the graph."""
    found: dict[Any, Any] = {x._edge(): x for x in ((inputs,) if isinstance(inputs, Node) else inputs)}
    if not found or None in found:
        what = "there is none" if not found else f"the one of shape {found[None].shape} needs no gradient"
        raise GraphError(
            f"backward: inputs are the tensors whose grad is added to, and {what}.\n"
            "  Give tensors that it was computed from, or leave inputs out for all leaves."
        )
    return found
