"""Interoperability with Python, NumPy and DLPack: PyTorch's conversion, copy and pickle methods.

Autograd does not track external writes to shared memory (`numpy`, DLPack, `from_numpy`): write through the tensor if a
gradient is needed.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any, cast, overload

import numpy as np

from minigrad import ops
from minigrad.core.dtypes import ALIASES, DType, as_dtype, bool, uint8
from minigrad.core.errors import DTypeError, GraphError, ShapeError
from minigrad.core.grad_mode import no_grad
from minigrad.core.registry import METHODS, add_function, register, register_method, register_property
from minigrad.core.shapes import Shape, normalize_dim
from minigrad.core.storage import check_device, device, get_allocator, get_default_device, is_available, to_numpy
from minigrad.core.tensor import Tensor, wrap
from minigrad.functional.creation import from_numpy


@register
def is_tensor(obj: Any) -> builtins.bool:
    """Return whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


@register
def clone(input: Tensor) -> Tensor:
    """Return a differentiable copy of `input`."""
    return input.clone()


@register
def detach(input: Tensor) -> Tensor:
    """Return a view of `input` that is detached from the graph."""
    return input.detach()


@register(method=True)
@register_method("nelement")
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return int(input._array.size)


@register(method=True)
def is_floating_point(input: Tensor) -> builtins.bool:
    """Return whether the dtype is floating point."""
    return input.dtype.is_floating_point


@overload
def _size(self: Tensor, dim: None = None) -> Shape: ...
@overload
def _size(self: Tensor, dim: int) -> int: ...
@register_method("size")
def _size(self: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the size of dimension `dim`. Raises ShapeError if `dim` is out of range."""
    if dim is None:
        return self.shape
    if not self.ndim:
        raise ShapeError(f"size: dimension specified as {dim}, but the tensor has no dimensions.")
    return self.shape[normalize_dim(dim, self.ndim, "size")]


@register_method("dim", "ndimension")
def _dim(self: Tensor) -> int:
    """Return the number of dimensions."""
    return self.ndim


@register_method("element_size")
@register_property("itemsize")
def _element_size(self: Tensor) -> int:
    """The size of one element in bytes."""
    return self.dtype.itemsize


@register_property("nbytes")
def _nbytes(self: Tensor) -> int:
    """The size of all elements in bytes; elements that share memory, as after `expand`, are counted repeatedly."""
    return numel(self) * self.dtype.itemsize


# --- to Python ---


@register_method("item")
def _item(self: Tensor) -> float | int:
    """Return the only element as a Python scalar. Raises ShapeError unless there is exactly one."""
    if self._array.size != 1:
        raise ShapeError(f"item: a tensor with {numel(self)} elements cannot be converted to a scalar; see tolist().")
    return cast(float, to_numpy(self._array).item())


@register_method("tolist")
def _tolist(self: Tensor) -> Any:
    """Return the elements as nested lists of Python scalars, or one scalar for a 0-d tensor."""
    return to_numpy(self._array).tolist()


@register_method("__bool__")
def _bool(self: Tensor) -> builtins.bool:
    if self._array.size != 1:
        raise ShapeError(
            f"bool: boolean value of a tensor with {numel(self)} elements is ambiguous.\n  Write x.any() or x.all()."
        )
    return builtins.bool(to_numpy(self._array).item())


@register_method("__float__")
def _float(self: Tensor) -> float:
    return float(_item(self))


@register_method("__int__")
def _int(self: Tensor) -> int:
    return int(_item(self))


@register_method("__index__")
def _index(self: Tensor) -> int:
    if self._array.size != 1 or is_floating_point(self):
        raise DTypeError(
            "index: only integer tensors of a single element can be converted to an index, but got "
            f"{self.dtype.name} {self.shape}."
        )
    return int(to_numpy(self._array).item())


@register_method("__len__")
def _len(self: Tensor) -> int:
    return _first_dim_size(self, "len")


@register_method("__iter__")
def _iter(self: Tensor) -> Iterator[Tensor]:
    return (self[k] for k in range(_first_dim_size(self, "iter")))


def _first_dim_size(x: Tensor, name: str) -> int:
    if not x.ndim:
        raise DTypeError(f"{name}: not supported for a 0-d tensor; item() returns its value.")
    return x.shape[0]


@register_method("__contains__")
def _contains(self: Tensor, element: Any) -> builtins.bool:
    return builtins.bool(to_numpy(ops.eq(self.detach(), element)._array).any())


# --- to NumPy and other array libraries ---


@register_method("numpy")
def _numpy(self: Tensor, *, force: builtins.bool = False) -> Any:
    """Return a NumPy array that shares memory with this tensor.

    Raises GraphError if the tensor requires grad, unless `force`, which is equivalent to ``detach().numpy()``.
    """
    if not force:
        _check_no_grad(self, "numpy", "NumPy", "x.detach().numpy()")
    return to_numpy(self._array)


@register_method("__array__")
def _array(self: Tensor, dtype: Any = None, copy: builtins.bool | None = None) -> Any:
    _check_no_grad(self, "numpy", "NumPy", "x.detach().numpy()")
    if copy is False and dtype is not None and np.dtype(dtype) != self._array.dtype:
        raise ValueError(
            f"A tensor of dtype {self.dtype.name} cannot become an array of {np.dtype(dtype)} without a copy."
        )
    return np.array(to_numpy(self._array), dtype) if copy else np.asarray(to_numpy(self._array), dtype)


@register_method("__dlpack__")
def _dlpack(self: Tensor, **options: Any) -> Any:
    _check_no_grad(self, "__dlpack__", "the other library", "x.detach()")
    return to_numpy(self._array).__dlpack__(**options)


@register_method("__dlpack_device__")
def _dlpack_device(self: Tensor) -> tuple[int, int]:
    return cast(tuple[int, int], to_numpy(self._array).__dlpack_device__())


@register
def from_dlpack(ext_tensor: Any) -> Tensor:
    """Create a tensor that shares memory with a tensor of any library that supports DLPack: CuPy, JAX, PyTorch, ….

    In-place operations raise if the exporter marks it read-only. Raises DTypeError for objects without DLPack support,
    or with a dtype or device that is not supported.
    """
    try:
        array = np.from_dlpack(ext_tensor)
    except (AttributeError, BufferError, RuntimeError, TypeError) as error:
        if isinstance(error, GraphError):
            raise
        raise DTypeError(f"from_dlpack: {type(ext_tensor).__name__} cannot be shared: {error}") from None
    return from_numpy(array)


def _check_no_grad(x: Tensor, name: str, consumer: str, alternative: str) -> None:
    if x.requires_grad:
        raise GraphError(
            f"{name}: can't be called on a tensor that requires grad; {consumer} would lose the gradient.\n"
            f"  Use {alternative}."
        )


# --- copies ---


@register_method("__copy__")
def _copy(self: Tensor) -> Tensor:
    """Return a leaf that shares the memory of this tensor, for ``copy.copy``."""
    _check_leaf(self, "copy")
    out = self.detach()
    out._requires_grad = self.requires_grad
    return out


@register_method("__deepcopy__")
def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Return a leaf with copies of data and gradient, for ``copy.deepcopy``. Copied views are independent."""
    _check_leaf(self, "deepcopy")
    if id(self) not in memo:
        memo[id(self)] = out = _build_leaf(self._array.copy(), self.requires_grad)
        out.grad = None if self.grad is None else _deepcopy(self.grad, memo)
    return cast(Tensor, memo[id(self)])


@register_method("__reduce_ex__")
def _reduce_ex(self: Tensor, protocol: int) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """Support ``pickle``, storing elements, device and `requires_grad`. Each view stores a copy of its elements."""
    _check_leaf(self, "pickle")
    array = np.ascontiguousarray(to_numpy(self._array)).reshape(self.shape)
    return _unpickled, (array, str(self.device), self.requires_grad)


def _unpickled(array: Any, device_name: str, requires_grad: builtins.bool) -> Tensor:
    """Rebuild a pickled tensor on its device, or on the default device if its device is not available."""
    target = device(device_name) if is_available(device(device_name)) else get_default_device()
    native = array.view(array.dtype.name)  # kernels compare dtypes by identity, and unpickled dtypes are new objects
    return _build_leaf(get_allocator(target).copy(native), requires_grad)


def _build_leaf(array: Any, requires_grad: builtins.bool) -> Tensor:
    out = wrap(array)
    out._requires_grad = requires_grad
    return out


def _check_leaf(x: Tensor, name: str) -> None:
    if not x.is_leaf:
        raise GraphError(
            f"{name}: only graph leaves are supported, but this tensor was computed by {x.grad_fn!r}.\n"
            f"  Write x.detach() for its values alone."
        )


# --- conversion ---


@register_method("type_as")
def _type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert this tensor to the dtype of `other`."""
    return self.to(other.dtype)


@register_method("type")
def _type(self: Tensor, dtype: Any = None) -> Any:
    """Convert this tensor to `dtype`. If None, return the name of the current dtype, such as "minigrad.float32"."""
    return repr(self.dtype) if dtype is None else self.to(dtype=dtype)


@register_method("cpu")
def _cpu(self: Tensor) -> Tensor:
    """Move this tensor to the device "cpu", unless it is on "numpy"."""
    return self if self.device == "numpy" else self.to("cpu")


@register_method("cuda")
def _cuda(self: Tensor, device: Any = None) -> Tensor:
    """Move this tensor to the device "cuda". Raises DeviceError if it is not available."""
    return self.to("cuda" if device is None else device)


@register_property("is_cuda")
def _is_cuda(self: Tensor) -> builtins.bool:
    """Whether this tensor is on a CUDA device."""
    return self.device.type == "cuda"


def _make_conversion(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor) -> Tensor:
        return self.to(dtype)

    convert.__name__, convert.__doc__ = (
        name,
        f"Convert this tensor to {dtype.name}; returns itself if it has that dtype.",
    )
    return convert


def _make_refusal(name: str) -> Callable[[Tensor], Tensor]:
    """Return a method `name` that raises an error explaining why the dtype is not supported."""

    def raise_unsupported(self: Tensor) -> Tensor:
        raise DTypeError(
            f"{name}: not supported; float32 is the smallest floating-point dtype and works on every device.\n"
            f"  Omit .{name}(), or write .float()."
        )

    raise_unsupported.__name__, raise_unsupported.__doc__ = (
        name,
        "Raise DTypeError: float32 is the smallest floating-point dtype.",
    )
    return raise_unsupported


# --- .data ---


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor) or (value.shape, value.dtype) != (self.shape, self.dtype):
        got = f"{value.dtype.name} {value.shape}" if isinstance(value, Tensor) else type(value).__name__
        raise ShapeError(f"data: expected a tensor of dtype {self.dtype.name} and shape {self.shape}, but got {got}.")
    with no_grad():
        self.copy_(value)


@register_property("data", _set_data)
def _data(self: Tensor) -> Tensor:
    """The values of this tensor, detached from the graph. Assigning to `data`, or to a part of it, overwrites them.

    Unlike in PyTorch, ``x.data = y`` copies the values of y, of the same shape and dtype, and every write through
    `data`, such as ``x.data[0] = 1.0`` or ``x.data.mul_(2)``, increments the version counter: a backward pass that
    needs the old values raises GraphError. PyTorch ignores such writes and computes a different gradient from the new
    values. Writes after the backward pass, as by an optimizer, behave the same in both.

    >>> from minigrad.functional.creation import tensor
    >>> w = tensor([1.0, 2.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> w.data[0] = 5.0
    >>> w
    tensor([5., 2.], requires_grad=True)
    """
    return self.detach()


@register_method("to")
def _to(
    self: Tensor,
    *args: Any,
    dtype: DType | None = None,
    device: str | None = None,
    copy: builtins.bool = False,
    non_blocking: builtins.bool = False,
) -> Tensor:
    """Convert to a dtype, a device, or those of another tensor. Returns the tensor itself if unchanged, unless `copy`.

    `non_blocking` is ignored. Raises DeviceError if the device is not available.
    """
    for arg in args:
        if isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, str):
            device = arg
        elif arg is not None:
            dtype = arg
    target = check_device(device, "to")
    if device is not None and target != self.device:
        self = cast(Tensor, ops.move(self, device=target, source=self.device))
    if dtype is None or as_dtype(dtype) is self.dtype:
        return self.clone() if copy else self
    out_dtype = as_dtype(dtype)
    return cast(Tensor, ops.to(self if out_dtype.is_floating_point else self.detach(), dtype=out_dtype))


METHODS["__array_ufunc__"] = None  # makes NumPy defer array + tensor to the tensor, which raises a clear error
for _name, _dtype in {"bool": bool, "byte": uint8, **ALIASES}.items():
    add_function(__name__, _name, method=_make_conversion(_name, _dtype))
for _name in ("bfloat16", "half"):
    add_function(__name__, _name, method=_make_refusal(_name))
