"""Interoperability with Python, NumPy and DLPack: PyTorch's conversion, copy and pickle methods.

Autograd does not notice writes to shared memory (`numpy`, DLPack, `from_numpy`) from outside: write through the tensor
if a gradient is needed.
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
from minigrad.core.registry import METHODS, add, register, register_method, register_property
from minigrad.core.shapes import Shape, dim_of
from minigrad.core.storage import check_device, device, get_default_device, host, is_there, memory
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
    return self.shape[dim_of(dim, self.ndim, "size")]


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
    """The size of all elements in bytes; elements that share memory, as after `expand`, count repeatedly."""
    return numel(self) * self.dtype.itemsize


# --- to Python ---


@register_method("item")
def _item(self: Tensor) -> float | int:
    """Return the only element as a Python scalar. Raises ShapeError unless there is exactly one."""
    if self._array.size != 1:
        raise ShapeError(f"item: a tensor with {numel(self)} elements cannot be converted to a scalar; see tolist().")
    return cast(float, host(self._array).item())


@register_method("tolist")
def _tolist(self: Tensor) -> Any:
    """Return the elements as nested lists of Python scalars, or one scalar for a 0-d tensor."""
    return host(self._array).tolist()


@register_method("__bool__")
def _truth(self: Tensor) -> builtins.bool:
    if self._array.size != 1:
        raise ShapeError(
            f"bool: boolean value of a tensor with {numel(self)} elements is ambiguous.\n  Write x.any() or x.all()."
        )
    return builtins.bool(host(self._array).item())


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
    return int(host(self._array).item())


@register_method("__len__")
def _len(self: Tensor) -> int:
    return _row(self, "len")


@register_method("__iter__")
def _iter(self: Tensor) -> Iterator[Tensor]:
    return (self[k] for k in range(_row(self, "iter")))


def _row(x: Tensor, name: str) -> int:
    if not x.ndim:
        raise DTypeError(f"{name}: not supported for a 0-d tensor; item() returns its value.")
    return x.shape[0]


@register_method("__contains__")
def _contains(self: Tensor, element: Any) -> builtins.bool:
    return builtins.bool(host(ops.eq(self.detach(), element)._array).any())


# --- to NumPy and other array libraries ---


@register_method("numpy")
def _numpy(self: Tensor, *, force: builtins.bool = False) -> Any:
    """Return a NumPy array that shares memory with this tensor.

    Raises GraphError if the tensor requires grad, unless `force`, which is short for ``detach().numpy()``.
    """
    if not force:
        _check_free(self, "numpy", "NumPy", "x.detach().numpy()")
    return host(self._array)


@register_method("__array__")
def _array(self: Tensor, dtype: Any = None, copy: builtins.bool | None = None) -> Any:
    _check_free(self, "numpy", "NumPy", "x.detach().numpy()")
    if copy is False and dtype is not None and np.dtype(dtype) != self._array.dtype:
        raise ValueError(
            f"A tensor of dtype {self.dtype.name} cannot become an array of {np.dtype(dtype)} without a copy."
        )
    return np.array(host(self._array), dtype) if copy else np.asarray(host(self._array), dtype)


@register_method("__dlpack__")
def _dlpack(self: Tensor, **options: Any) -> Any:
    _check_free(self, "__dlpack__", "the other library", "x.detach()")
    return host(self._array).__dlpack__(**options)


@register_method("__dlpack_device__")
def _dlpack_device(self: Tensor) -> tuple[int, int]:
    return cast(tuple[int, int], host(self._array).__dlpack_device__())


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


def _check_free(x: Tensor, name: str, who: str, instead: str) -> None:
    if x.requires_grad:
        raise GraphError(
            f"{name}: can't be called on a tensor that requires grad; {who} would lose the gradient.\n  Use {instead}."
        )


# --- copies ---


@register_method("__copy__")
def _copied(self: Tensor) -> Tensor:
    """Return a leaf that shares memory, for ``copy.copy``."""
    _check_leaf(self, "copy")
    out = self.detach()
    out._requires_grad = self.requires_grad
    return out


@register_method("__deepcopy__")
def _deepcopied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Return a leaf with copies of data and gradient, for ``copy.deepcopy``; views become independent."""
    _check_leaf(self, "deepcopy")
    if id(self) not in memo:
        memo[id(self)] = out = _rebuilt(self._array.copy(), self.requires_grad)
        out.grad = None if self.grad is None else _deepcopied(self.grad, memo)
    return cast(Tensor, memo[id(self)])


@register_method("__reduce_ex__")
def _reduced(self: Tensor, protocol: int) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """Support ``pickle``: store elements, device and `requires_grad`. Each view stores its own copy."""
    _check_leaf(self, "pickle")
    array = np.ascontiguousarray(host(self._array)).reshape(self.shape)
    return _unpickled, (array, str(self.device), self.requires_grad)


def _unpickled(array: Any, place: str, requires_grad: builtins.bool) -> Tensor:
    """Rebuild a tensor on the device it was pickled on, or on the default device if that is not available."""
    there = device(place) if is_there(device(place)) else get_default_device()
    known = array.view(array.dtype.name)  # unpickled dtypes are new objects, and kernels compare by identity
    return _rebuilt(memory(there).copied(known), requires_grad)


def _rebuilt(array: Any, requires_grad: builtins.bool) -> Tensor:
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
    """Convert this tensor to `dtype`; without one, return the name of its dtype, such as "minigrad.float32"."""
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


def _conversion(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor) -> Tensor:
        return self.to(dtype)

    convert.__name__, convert.__doc__ = (
        name,
        f"Convert this tensor to {dtype.name}; returns itself if it has that dtype.",
    )
    return convert


def _refused(name: str) -> Callable[[Tensor], Tensor]:
    """Return a method `name` that raises and explains why the dtype does not exist."""

    def refuse(self: Tensor) -> Tensor:
        raise DTypeError(
            f"{name}: not supported; float32 is the smallest floating-point dtype and works on every device.\n"
            f"  Omit .{name}(), or write .float()."
        )

    refuse.__name__, refuse.__doc__ = name, "Raise DTypeError: float32 is the smallest floating-point dtype."
    return refuse


# --- .data ---


def _set_data(self: Tensor, new: Any) -> None:
    if not isinstance(new, Tensor) or (new.shape, new.dtype) != (self.shape, self.dtype):
        asked = f"{new.dtype.name} {new.shape}" if isinstance(new, Tensor) else type(new).__name__
        raise ShapeError(f"data: expected a tensor of dtype {self.dtype.name} and shape {self.shape}, but got {asked}.")
    with no_grad():
        self.copy_(new)


@register_property("data", _set_data)
def _data(self: Tensor) -> Tensor:
    """The values of this tensor, detached from the graph. Assigning to it, or to a part of it, overwrites them.

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
    *what: Any,
    dtype: DType | None = None,
    device: str | None = None,
    copy: builtins.bool = False,
    non_blocking: builtins.bool = False,
) -> Tensor:
    """Convert to a dtype, a device, or those of another tensor; returns itself if unchanged, unless `copy`.

    `non_blocking` is ignored. Raises DeviceError if the device is not available.
    """
    for one in what:
        if isinstance(one, Tensor):
            dtype, device = one.dtype, one.device
        elif isinstance(one, str):
            device = one
        elif one is not None:
            dtype = one
    place = check_device(device, "to")
    if device is not None and place != self.device:
        self = cast(Tensor, ops.move(self, device=place, source=self.device))
    if dtype is None or as_dtype(dtype) is self.dtype:
        return self.clone() if copy else self
    kind = as_dtype(dtype)
    return cast(Tensor, ops.to(self if kind.is_floating_point else self.detach(), dtype=kind))


METHODS["__array_ufunc__"] = None  # makes NumPy defer array + tensor to the tensor, which raises a clear error
for _name, _dtype in {"bool": bool, "byte": uint8, **ALIASES}.items():
    add(__name__, _name, method=_conversion(_name, _dtype))
for _name in ("bfloat16", "half"):
    add(__name__, _name, method=_refused(_name))
