"""Step: the graph node of one operation on tensors, PyTorch's ``grad_fn``.

A Value is its own graph node. A tensor cannot be, because it can be modified in-place. Its node is a `Step`: the op,
the nodes of its operands, and the saved tensors that the rules read, with their version counters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from weakref import ref

from minigrad.core.dtypes import as_dtype
from minigrad.core.errors import DTypeError, GraphError, ShapeError, describe_type, user_source_line
from minigrad.core.graph import Node, copy_to_host, raw_value
from minigrad.core.modes import modes, slow_path
from minigrad.core.op import OPS, Op
from minigrad.core.shapes import Shape, broadcast_shapes
from minigrad.core.storage import Storage, common_device

__all__ = ["Constant", "Step", "check_gradient", "constant", "is_modified_since", "reduce_gradient", "set_grad_fn"]

MAX_KEPT_SIZE = 4096  # the graph keeps constant tensors of up to this number of elements alive


class Constant:
    """A reference to a tensor operand that does not require grad. Call it to get the tensor.

    If the tensor has been deleted or reassigned, the call returns its array if that is small, else None. Only inside
    ``mg.record()`` is the tensor kept alive, because it may reference the graph that contains this `Constant`. For a
    view of a large tensor, the base and the view operations are stored.
    """

    __slots__ = ("_array", "_get_tensor", "_view_chain")

    def __init__(self, x: Any) -> None:
        base = x if x._base is None else x._base
        small = base._array.size <= MAX_KEPT_SIZE or modes.gradient_passed
        self._get_tensor: Any = (lambda: x) if modes.gradient_passed else ref(x if small else base)
        self._view_chain: Any = () if small or base is x else x._view_chain
        self._array = x._array if small else None

    def __call__(self) -> Any:
        tensor, array = self._get_tensor(), self._array
        if tensor is None or tensor._edge() is not None or (array is not None and tensor._array is not array):
            return array
        for op, attrs in self._view_chain:
            tensor = op(tensor, **attrs)
        return tensor


def constant(x: Any) -> Any:
    """Wrap `x`, an operand that does not require grad: a tensor in a `Constant`, a scalar unchanged."""
    return Constant(x) if isinstance(x, Node) else x


class Step(Node):
    """A node of the graph for one operation on tensors."""

    # `_left` contains the node of each operand, or the result of `constant` for operands that do not require grad.
    # `_write_count` is Storage.writes at creation. `_saved` contains, for (y, *operands), each tensor that a rule reads
    # and each scalar, else None. In `_extras`, "written" is Storage.writes after the result was modified in-place.
    __slots__ = ("__weakref__", "_dtype", "_saved", "_shape", "_static_args")

    def __init__(self, op: Op, operands: tuple[Any, ...], static: Mapping[str, Any], output: Any, saved: Any) -> None:
        self._op = op
        self._left = operands
        self._right = self.grad = None
        self._write_count = Storage.writes
        self._static_args = static
        self._requires_grad = True
        self._shape = output.shape
        self._dtype = output.dtype
        self._saved = saved
        self._extras = None
        if slow_path.reasons:
            if modes.scope:
                self._set_extra("scope", modes.scope)
            if modes.lines:
                self._set_extra("line", user_source_line())

    @property
    def _inputs(self) -> tuple[Any, ...]:
        return self._left  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The name in PyTorch's style, such as ``MulBackward``."""
        op = cast(Op, self._op)
        return "".join(word[:1].upper() + word[1:] for word in op.name.split("_")) + "Backward"

    @property
    def scope(self) -> str:
        """The `mg.scope` in which it was recorded, such as ``"layer1/attention"``; empty outside any scope."""
        return cast(str, self._get_extra("scope", ""))

    @property
    def line(self) -> str | None:
        """The source line of the operation, as ``file:line: code``, inside ``mg.record(lines=True)``; else None."""
        return cast(str | None, self._get_extra("line"))

    @property
    def output(self) -> Any:
        """A copy of the result as an array; None unless computed inside ``mg.record()``.

        For an operation with several outputs, it is a copy of the first output.
        """
        return self._get_extra("output")

    @property
    def constants(self) -> tuple[Any, ...]:
        """The tensor, array or scalar of each operand that does not require grad; None for a node, or if freed."""
        return tuple([x() if x.__class__ is Constant else None if isinstance(x, Node) else x for x in self._left])

    def observe(self, output: Any) -> None:
        """Store a copy of `output` inside ``mg.record()``."""
        if modes.gradient_passed:
            self._set_extra("output", copy_to_host(output))

    @property
    def next_functions(self) -> tuple[Node | None, ...]:
        """The node of each operand; None for operands that do not require grad."""
        return tuple(node if isinstance(node, Node) else None for node in self._left)

    def replace_operand(self, tensor: Any, inputs: tuple[Any, ...], copy: Callable[[], Any]) -> None:
        """Replace the operand `tensor` by a copy where it is saved, before the result overwrites it in-place."""
        saved, operands = self._saved, self._left
        constants = [x is tensor and not isinstance(edge, Node) for x, edge in zip(inputs, operands, strict=True)]
        if True in constants or any(x is tensor for x in saved):
            snapshot = copy()
            self._left = tuple(
                [constant(snapshot) if is_constant else x for x, is_constant in zip(operands, constants, strict=True)]
            )
            self._saved = tuple([snapshot if x is tensor else x for x in saved])

    def free(self) -> None:
        """Free the saved tensors; the structure of the graph remains."""
        self._saved = None
        op = cast(Op, self._op)
        if op.aux:
            self._static_args = {name: value for name, value in self._static_args.items() if name not in op.aux}

    def _static(self, as_nodes: bool) -> Mapping[str, Any]:
        if as_nodes or not cast(Op, self._op).aux:
            return self._static_args
        return {name: raw_value(value) for name, value in self._static_args.items()}

    def _operands(self, as_nodes: bool, slots: Sequence[int]) -> tuple[Any, ...]:
        op, saved = cast(Op, self._op), self._saved  # read once, since another thread may free it
        if saved is None:
            raise GraphError(
                f"backward: trying to backward through the graph a second time: {op.name} freed its saved tensors.\n"
                "  Write backward(retain_graph=True) the first time, or recompute the expression."
            )
        if is_modified_since(saved, self._write_count):
            self._check_not_modified(op, saved, slots)
        if not as_nodes:
            return tuple([_raw_arrays(x) for x in saved])
        y = saved[0]
        outputs = self.with_grad_fn(y) if isinstance(y, tuple) else y if y is None else y._with_grad_fn(self)
        return (outputs, *saved[1:])

    def _pass_gradient(self, gradient: Any, totals: dict[Node, Any], allocated: set[Node], retain_graph: bool) -> bool:
        op, extras = cast(Op, self._op), self._extras or ()
        static = self._static(False) if op.aux else self._static_args
        saved = self._saved  # read once and last, since another thread may free this node
        is_modified = saved and Storage.writes != self._write_count and is_modified_since(saved, self._write_count)
        if saved is None or is_modified or not op.has_single_output or "hooks" in extras or "retains" in extras:
            return False
        rules, operands = op.rules, [getattr(x, "_array", x) for x in saved]
        products = cast(Any, rules[0])(gradient, *operands, **static) if op.joint else ()
        for slot, target in enumerate(self._left):
            is_step, rule = target.__class__ is Step, rules[slot]
            if rule is None or not (is_step or (isinstance(target, Node) and target._requires_grad)):
                continue
            if (product := products[slot] if op.joint else rule(gradient, *operands, **static)) is None:
                continue
            if not is_step or product.shape != target._shape or product.dtype is not target._dtype:
                product = target._reduce_gradient(product)
            total = totals.get(target)
            if total is None:
                totals[target] = product
            elif target in allocated:
                totals[target] = cast(Any, operator.iadd)(total, product)  # in-place, but for NumPy scalars
            else:
                totals[target] = total + product
                allocated.add(target)
        del totals[self]
        if not retain_graph:
            self.free()
        return True

    def with_grad_fn(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `outputs` (None for an unsaved output) as tensors whose `grad_fn` is this step."""
        if len(outputs) == 1:
            return (outputs[0]._with_grad_fn(self),)
        picks = [None if x is None else self.select_output(x, k, len(outputs)) for k, x in enumerate(outputs)]
        return tuple([x if p is None else x._with_grad_fn(p) for x, p in zip(outputs, picks, strict=True)])

    def select_output(self, output: Any, index: int, count: int) -> Step | None:
        """Return the node that selects output `index` of `count`; None if that output has an integer dtype."""
        if not output.dtype.is_floating_point:
            return None
        node = Step(OPS["pick"], (self,), {"index": index, "count": count}, output._array, (None, None))
        node.observe(output)
        return node

    def _check_not_modified(self, op: Op, saved_values: tuple[Any, ...], slots: Sequence[int]) -> None:
        for name, saved in zip(("y", *op.inputs), saved_values, strict=True):
            names = (name, *op.output_names) if name == "y" else (name,)
            write_count = self._get_extra("written", self._write_count) if name == "y" else self._write_count
            tensors = saved if isinstance(saved, tuple) else (saved,)
            tensor = next((x for x in tensors if is_modified_since((x,), write_count)), None)
            if tensor is not None and any(not op.reads[slot].isdisjoint(names) for slot in slots):
                description = "result" if name == "y" else f"operand {name}"
                raise GraphError(
                    f"backward: {op.name} saved its {description} of shape {tensor.shape}, which has been modified "
                    f"by an inplace operation: {tensor._storage.last_write}\n"
                    f"  Use an out-of-place operation there (x = x + 1, not x += 1), or give {op.name} a clone()."
                )

    def _reduce_gradient(self, gradient: Any) -> Any:
        return gradient if isinstance(gradient, tuple) else reduce_gradient(gradient, self._shape, self._dtype)

    def _accumulate_gradient(self, total: Any, contribution: Any) -> Any:
        if not isinstance(total, tuple):
            return total + contribution
        pairs = zip(total, contribution, strict=True)  # one pair per output
        return tuple([b if a is None else a if b is None else a + b for a, b in pairs])

    @property
    def _keeps_gradient(self) -> bool:
        return bool(modes.gradient_passed) or (getattr(self, "_extras", None) is not None and self.retainer is not None)

    @property
    def retainer(self) -> Any:
        """The tensor on which `retain_grad` was called, if still alive."""
        return self._get_extra("retains", lambda: None)()

    def _local_derivative(self, slot: int) -> float | None:
        return None

    def __repr__(self) -> str:
        return f"<{self.name}>"


def is_modified_since(saved: tuple[Any, ...], write_count: int) -> bool:
    """Return whether the storage of any tensor in `saved` was written after write count `write_count`."""
    for x in saved:
        if isinstance(x, Node):
            if x._storage is not None and x._storage.last_write_count > write_count:  # type: ignore[attr-defined]
                return True
        elif x.__class__ is tuple and is_modified_since(x, write_count):
            return True
    return False


def _raw_arrays(x: Any) -> Any:
    """Convert a saved tensor or tuple of tensors to raw arrays. Scalars and None are returned unchanged."""
    return x._raw_value() if isinstance(x, Node) else tuple(map(_raw_arrays, x)) if x.__class__ is tuple else x


def reduce_gradient(gradient: Any, shape: Shape, dtype: Any) -> Any:
    """Sum `gradient` over the broadcast dimensions to `shape`, and cast it to `dtype`."""
    array = gradient._raw_value() if isinstance(gradient, Node) else gradient
    if array.shape == shape and array.dtype is dtype:
        return gradient
    if array.shape != shape:
        if broadcast_shapes(shape, array.shape, op="backward") != array.shape:
            raise ShapeError(
                f"backward: a rule returned an invalid gradient: got shape {array.shape} but expected one compatible "
                f"with {shape}.\n  It must have the operand's shape, or one that the operand can be broadcast to."
            )
        gradient = OPS["sum_to"](gradient, shape=shape)
    return gradient if array.dtype is dtype else OPS["to"](gradient, dtype=as_dtype(dtype))


def check_gradient(x: Any, reference: Any, name: str, reference_name: str, check_dtype: bool = True) -> None:
    """Raise unless `x` is a tensor with the shape, device and, if `check_dtype`, the dtype of the array `reference`."""
    if not hasattr(x, "_array"):
        raise DTypeError(f"{name} is {describe_type(x)}; expected a tensor.\n  Convert it: mg.tensor(x).")
    if x._array.shape != reference.shape:
        raise ShapeError(
            f"{name} has shape {x.shape}, but {reference_name} has {reference.shape}.\n"
            "  The shapes must match: reshape or expand it."
        )
    common_device((reference, x._array), name)
    if check_dtype and x._array.dtype is not reference.dtype:
        raise DTypeError(
            f"{name} has dtype {x.dtype.name}, but {reference_name} has {reference.dtype}.\n"
            f"  Convert it: x.to(mg.{reference.dtype})."
        )


def set_grad_fn(step: Step, outputs: tuple[Any, ...]) -> Step:
    """Set `step` as the `grad_fn` of `outputs`, and return it."""
    if len(outputs) == 1:
        outputs[0]._step, outputs[0]._requires_grad = step, True
        return step
    for index, output in enumerate(outputs):
        node = step.select_output(output, index, len(outputs))
        if node is not None:
            output._step, output._requires_grad = node, True
    return step
