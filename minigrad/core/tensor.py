"""Tensor: an n-dimensional array that is part of the autograd graph, with PyTorch's methods."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from minigrad.core import views
from minigrad.core.accumulation import accumulate
from minigrad.core.dispatch import dispatch
from minigrad.core.dtypes import DTYPES, DType
from minigrad.core.errors import DTypeError, GraphError, ShapeError, check_callable, check_flag
from minigrad.core.graph import Node, global_grad_listeners, grad_lock, raw_value
from minigrad.core.hooks import RemovableHandle, apply_hook
from minigrad.core.modes import modes, slow_path
from minigrad.core.op import OPS, Op
from minigrad.core.promotion import as_operand, promote
from minigrad.core.shapes import Shape, broadcast_shapes, check_equal_shapes
from minigrad.core.step import Step, check_gradient, constant, reduce_gradient, set_grad_fn
from minigrad.core.storage import (
    Storage,
    common_device,
    copy_array,
    device,
    device_of,
    get_allocator,
    get_default_device,
)

__all__ = ["RemovableHandle", "Tensor", "promote", "record", "set_grad_fn", "wrap"]

_DTYPE_BY_NUMPY = {np.dtype(name): dtype for name, dtype in DTYPES.items()}
NO_ATTRS: Mapping[str, Any] = {}

if TYPE_CHECKING:  # stub, from `make stubs`, of the methods that `functional` adds at import
    from minigrad.functional._stubs import Methods
else:
    Methods = Node


class Tensor(Methods):
    """A multi-dimensional array of elements of one dtype on one device.

    Create tensors with `mg.tensor`, `mg.zeros`, …. A leaf with ``requires_grad=True`` accumulates its gradient in
    `grad`; the result of an operation has a `grad_fn`. Basic indexing, ``view`` and ``permute`` return views, which
    share memory; methods whose names end in an underscore work in-place.
    """

    # A leaf is itself a node of the graph; the node of a computed tensor is its Step, in _step. _storage is created on
    # first use. A view stores its _base and the chain of view operations that leads from the base to it.
    __slots__ = ("__weakref__", "_array", "_base", "_rebase_count", "_step", "_storage", "_view_chain", "label")

    _array: Any
    _storage: Storage | None
    _step: Step | None
    _base: Tensor | None
    _view_chain: tuple[tuple[Op, Mapping[str, Any]], ...]
    _rebase_count: int

    def __init__(self, *data: Any, **options: Any) -> None:
        raise DTypeError(
            "Tensor: the class cannot be called; factory functions create tensors.\n"
            "  Write mg.tensor(data) for data, mg.empty(2, 3) for a shape, dtype= for a dtype."
        )

    # --- attributes ---

    @property
    def shape(self) -> Shape:
        """The size of each dimension."""
        return self._array.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return _DTYPE_BY_NUMPY[self._array.dtype]

    @property
    def device(self) -> device:
        """The device that holds the elements."""
        return device(device_of(self._array))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim  # type: ignore[no-any-return]

    @property
    def storage(self) -> Storage:
        """The storage that this tensor shares with its views."""
        if self._storage is None:
            new_storage = Storage(self._array) if self._base is None else self._base.storage
            if self._storage is None:  # another thread may have set it above, but cannot from here on
                self._storage = new_storage
        return self._storage

    @property
    def _version(self) -> int:
        return 0 if self._storage is None else self._storage.version

    # --- autograd attributes ---

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor requires a gradient."""
        views.refresh(self)
        return bool(self._requires_grad)

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Set whether this leaf requires a gradient. Raises GraphError if computed, DTypeError for integer dtypes."""
        if self.grad_fn is not None and not flag:
            raise GraphError("requires_grad_: you can only disable requires_grad on leaf tensors; use detach().")
        check_flag(flag, "requires_grad_")
        if flag and not (dtype := self.dtype).is_floating_point:
            raise DTypeError(f"requires_grad_: only floating-point tensors can require gradients; got {dtype.name}.")
        if self._step is None:
            self._requires_grad = bool(flag)
            if flag and slow_path.reasons and modes.scope:
                self._set_extra("scope", modes.scope)
        return self

    _grad: Any = vars(Node)["grad"]  # the slot, without the validation of the `grad` setter

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, or None. An assigned gradient must have the tensor's shape and dtype."""
        for listener in modes.grad_read:
            listener.grad_read(self)
        return self._grad  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        if gradient is not None:
            check_gradient(gradient, self._array, "grad", "the tensor that it is assigned to")
            if gradient is self:
                raise GraphError("grad: a tensor cannot be assigned as its own grad.\n  Assign x.detach().clone().")
        for listener in modes.grad_changed:
            listener.grad_changed(self, False)
        for listener in global_grad_listeners:
            listener.grad_changed(self, False)
        self._grad = gradient

    @property
    def grad_fn(self) -> Step | None:
        """The graph node of the operation that computed this tensor; None for a leaf."""
        views.refresh(self)
        return self._step

    @property
    def scope(self) -> str:
        """The `mg.scope` in which the tensor was computed or, for a leaf, first required a gradient."""
        return cast(str, (self.grad_fn or self)._get_extra("scope", ""))

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor is a leaf, that is, has no `grad_fn`."""
        return self.grad_fn is None

    def clone(self) -> Tensor:
        """Return a differentiable copy with its own memory."""
        return cast(Tensor, OPS["copy"](self.detach(), self))

    def copy_(self, source: Tensor | float) -> Tensor:
        """Copy the elements of `source`, broadcast and cast as needed, into this tensor."""
        if isinstance(source, Tensor):
            if modes.strict:
                check_equal_shapes({"self": self.shape, "source": source.shape}, "copy_")
            broadcast_shapes(self.shape, source.shape, op="copy_")
            source = source.to(self.dtype).expand(*self.shape)
        else:
            source = as_operand(OPS["copy"], source)
        return self._write_inplace(OPS["copy"], (self, source))

    def detach(self) -> Tensor:
        """Return a tensor that shares this storage but is detached from the graph."""
        out = wrap(self._array)
        out._storage = self.storage
        return out

    def detach_(self) -> Tensor:
        """Detach this tensor from the graph in-place. Raises GraphError for a view; detach its base instead."""
        if self._base is not None:
            raise GraphError("detach_: can't detach views in-place; use detach() instead.\n  Write x = x.detach().")
        self._step, self._requires_grad = None, False
        return self

    def _edge(self) -> Any:
        """Return the node that receives this tensor's gradient; None if it does not require one."""
        if self._base is not None:
            views.refresh(self)
        if self._requires_grad:
            return self if self._step is None else self._step
        return None

    def _snapshot(self) -> Tensor:
        """Return a copy of the current elements that has the same graph node."""
        out = wrap(copy_array(self._array))
        out._step, out._requires_grad = self._step, self._requires_grad
        return out

    def _with_grad_fn(self, step: Step) -> Tensor:
        """Return an alias of this tensor whose `grad_fn` is `step`; a `Step` refers to its output by such an alias."""
        out = wrap(self._array)
        out._storage = self._storage
        out._step, out._requires_grad = step, True
        return out

    def _reduce_gradient(self, gradient: Any) -> Any:
        return reduce_gradient(gradient, self._array.shape, self._array.dtype)

    def _raw_value(self) -> Any:
        return self._array

    def _export_gradient(self, gradient: Any, create_graph: bool) -> Any:
        return gradient if create_graph else wrap(np.asanyarray(raw_value(gradient)))

    def _local_derivative(self, slot: int) -> float | None:
        return None

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Iterable[Tensor] | None = None,
    ) -> None:
        """Accumulate the derivative of ``(gradient * self).sum()`` into the `grad` of the leaves.

        `gradient` has this tensor's shape and may be omitted for a scalar. With `inputs`, only their gradients are
        computed and accumulated, leaves or not. Saved tensors are freed unless `retain_graph` is true (default:
        `create_graph`, or true inside ``mg.record()``). Raises GraphError if this tensor or one of `inputs` does not
        require grad, if the graph was freed, or if a saved tensor was modified; then no `grad` changes.
        """
        accumulate({self._edge(): self._initial_gradient(gradient, create_graph)}, retain_graph, create_graph, inputs)

    _accumulate: Any = staticmethod(accumulate)

    def retain_grad(self) -> None:
        """Store the gradient of this non-leaf tensor in `grad`. Raises GraphError if it does not require grad."""
        if (node := self._edge()) is None:
            raise GraphError("retain_grad: can't retain_grad on a tensor that does not require grad.")
        if node is not self:
            self._set_extra("retained", node)
            node._set_extra("retains", weakref.ref(self))

    def _move_retained_grad(self) -> None:
        """Retain the gradient of the new value, instead of the old value, after an in-place write."""
        if (old_node := self._get_extra("retained")) is not None and self._edge() is not None:
            old_node._extras.pop("retains", None)
            self.retain_grad()

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook` with this tensor's gradient in each backward pass, until ``remove()`` on the returned handle.

        A returned tensor replaces the gradient. Raises GraphError if this tensor does not require grad.
        """
        if (node := self._edge()) is None:
            raise GraphError("register_hook: cannot register a hook on a tensor that doesn't require gradient.")
        check_callable(hook, "register_hook")
        with grad_lock:
            hooks = node._get_extra("hooks", {})
            node._set_extra("hooks", hooks)
        return RemovableHandle(hooks, lambda gradient: apply_hook(hook, gradient, wrap))

    def _initial_gradient(self, gradient: Tensor | None, create_graph: bool) -> Tensor:
        if self._edge() is None:
            raise GraphError(
                "backward: this tensor does not require grad and does not have a grad_fn.\n"
                "  Set requires_grad=True on the leaves before computing it."
            )
        if gradient is None:
            if self._array.size != 1:
                raise ShapeError(
                    "backward: grad can be implicitly created only for scalar outputs, but this tensor has shape "
                    f"{self.shape}.\n  Sum it first, or give backward(gradient) of the same shape."
                )
            return wrap(get_allocator(device_of(self._array)).full(self.shape, self._array.dtype, 1))
        check_gradient(gradient, self._array, "backward: gradient", "the tensor", check_dtype=False)
        return gradient if gradient.dtype is self.dtype else cast(Tensor, OPS["to"](gradient, dtype=self.dtype))

    # --- applying operations ---

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        return op.fast_path(*inputs) if op.fast_path is not None else Tensor._compute_new(op, inputs, attrs)

    @staticmethod
    def _compute_new(op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        if op.promotes is not None:
            inputs = promote(op, inputs, partial(_to_device_of, inputs))
        arrays = tuple([x._array if isinstance(x, Tensor) else x for x in inputs])
        result = dispatch(op.name, common_device(arrays, op.name), arrays, attrs)
        if result.__class__ is tuple:
            outputs, aux = tuple([wrap(array) for array in result[: op.outputs]]), result[op.outputs :]
        else:
            outputs, aux = (wrap(result),), ()
        if op.view:
            views.register_view(outputs[0], inputs[0], op, attrs)
        if op.differentiable and modes.grad:
            record(op, inputs, attrs, outputs, aux)
        return outputs if op.outputs > 1 else outputs[0]

    def _can_write_directly(self, op: Op, inputs: tuple[Any, ...]) -> bool:
        """Return whether `op(inputs)` can be written to this tensor without checks, as in a parameter update."""
        array = self._array
        if op.simple_rules is None or not array.flags.carray or array.dtype.kind != "f" or inputs[0] is not self:
            return False
        for x in inputs[1:]:
            if not isinstance(x, Tensor) or x._array.dtype is not array.dtype or x._array.shape != array.shape:
                return False
        return True

    def _compute_into(self, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> None:
        """Run the kernel of `op`, writing its result to this tensor's memory."""
        arrays = [x._array if isinstance(x, Tensor) else x for x in inputs]
        device_name = common_device((self._array, *arrays), f"{op.name}_")
        if modes.keeps_operands:
            arrays = [x.copy() if x is self._array else x for x in arrays]
        dispatch(op.name, device_name, tuple(arrays), attrs, out=self._array)

    def _write_inplace(self, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any] = NO_ATTRS) -> Tensor:
        """Write `op(inputs)` to this tensor in-place. Invalid writes raise before anything is modified."""
        name = f"{op.name}_"
        if not modes.grad and self._can_write_directly(op, inputs):
            self.storage.mark_written(name)
            self._compute_into(op, inputs, attrs)
            return self
        inputs = promote(op, inputs, partial(_to_device_of, (self,))) if op.promotes is not None else inputs
        tensors = [self]  # for an op without promotion, the caller has already matched shape and dtype
        if op.promotes is not None:
            tensors = [x for x in inputs if isinstance(x, Tensor)]
        shape = broadcast_shapes(*[x.shape for x in tensors], op=name)
        views.check_writable(self, shape, max((x.dtype.kind for x in tensors), default=0), name)
        result = wrap(self._array)
        result._storage = self.storage
        step = record(op, inputs, attrs, (result,), ()) if modes.grad else None
        if step is not None:
            step.replace_operand(self, inputs, self._snapshot)
        self.storage.mark_written(name, modes.grad)  # before the kernel runs, since a tap may raise after the write
        self._compute_into(op, inputs, attrs)
        if step is not None:
            step._set_extra("written", Storage.writes)
            step.observe(self)
        if modes.grad:
            views.rebase(self, step)
            self._move_retained_grad()
        return self


_new_tensor = Tensor.__new__


def wrap(array: Any) -> Tensor:
    """Return a leaf tensor that wraps `array` and does not require grad."""
    out = _new_tensor(Tensor)
    out._array = array
    out._storage = out._step = out._base = out._grad = out._op = None
    out._requires_grad = False
    return out


def _to_device_of(inputs: tuple[Any, ...], array: Any) -> Tensor:
    """Copy a NumPy array to a tensor on the device of the first tensor in `inputs`, else on the default device."""
    device_name = next((device_of(x._array) for x in inputs if isinstance(x, Tensor)), get_default_device())
    return wrap(get_allocator(device_name).copy(array))


def record(
    op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any], outputs: tuple[Tensor, ...], aux: tuple[Any, ...]
) -> Step | None:
    """Create the `Step` of an operation, save the values that its rules read, and set it as `grad_fn` of `outputs`."""
    edges = tuple([x._edge() if isinstance(x, Tensor) else None for x in inputs])
    if (plan := op.plan_saves(edges)) is None:
        return None
    static = attrs
    if op.aux or op.shapes:
        static = {**attrs, **{name: wrap(x) if name in plan.aux else None for name, x in zip(op.aux, aux, strict=True)}}
        for name in op.shapes:
            static[name] = getattr(inputs[op.inputs.index(name[:-6])], "shape", None)
    saved_outputs: list[Any] = [None]
    if True in plan.outputs:
        saved_outputs = [x.detach() if is_saved else None for x, is_saved in zip(outputs, plan.outputs, strict=True)]
    saved_output = saved_outputs[0] if len(saved_outputs) == 1 else tuple(saved_outputs)
    saved = [
        x if is_saved or not isinstance(x, Node) else None for x, is_saved in zip(inputs, plan.operands, strict=True)
    ]
    operands = tuple([constant(x) if edge is None else edge for x, edge in zip(inputs, edges, strict=True)])
    step = Step(op, operands, static, outputs[0]._array, (saved_output, *saved))
    if slow_path.reasons:
        step.observe(outputs[0])
    return set_grad_fn(step, outputs)
