"""How tensors leave, and what Python and NumPy may do with them: PyTorch's methods.

Numbers that are shared (by `numpy`, DLPack, `from_numpy`) are written by either side without the graph being told:
write through the tensor where a gradient is to come.
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
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


@register
def clone(input: Tensor) -> Tensor:
    """A copy with memory of its own, through which the gradient flows."""
    return input.clone()


@register
def detach(input: Tensor) -> Tensor:
    """A view of the same numbers through which no gradient flows."""
    return input.detach()


@register(method=True)
@register_method("nelement")
def numel(input: Tensor) -> int:
    """How many numbers there are."""
    return int(input._array.size)


@register(method=True)
def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether its numbers are floats."""
    return input.dtype.is_floating_point


@overload
def _size(self: Tensor, dim: None = None) -> Shape: ...
@overload
def _size(self: Tensor, dim: int) -> int: ...
@register_method("size")
def _size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of dimension `dim`. Raises ShapeError if there is no such dimension."""
    if dim is None:
        return self.shape
    if not self.ndim:
        raise ShapeError(f"size: there is no dimension {dim}: this tensor is one number, without dimensions.")
    return self.shape[dim_of(dim, self.ndim, "size")]


@register_method("dim", "ndimension")
def _dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self.ndim


@register_method("element_size")
@register_property("itemsize")
def _element_size(self: Tensor) -> int:
    """The bytes of one number."""
    return self.dtype.itemsize


@register_property("nbytes")
def _nbytes(self: Tensor) -> int:
    """The bytes of its numbers, those that other dimensions share counted each time."""
    return numel(self) * self.dtype.itemsize


# --- to Python ---


@register_method("item")
def _item(self: Tensor) -> float | int:
    """The one number as Python's. Raises ShapeError if there is not exactly one."""
    if self._array.size != 1:
        raise ShapeError(f"item: there are {numel(self)} numbers in shape {self.shape}, not one; see tolist().")
    return cast(float, host(self._array).item())


@register_method("tolist")
def _tolist(self: Tensor) -> Any:
    """The numbers as nested lists of Python's; one number where there are no dimensions."""
    return host(self._array).tolist()


@register_method("__bool__")
def _truth(self: Tensor) -> builtins.bool:
    if self._array.size != 1:
        raise ShapeError(
            f"bool: the {numel(self)} numbers in shape {self.shape} are not true or false as one.\n"
            "  Write x.any() or x.all()."
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
        raise DTypeError(f"index: {numel(self)} numbers of type {self.dtype.name} are no index: that is one int.")
    return int(host(self._array).item())


@register_method("__len__")
def _len(self: Tensor) -> int:
    return _row(self, "len")


@register_method("__iter__")
def _iter(self: Tensor) -> Iterator[Tensor]:
    return (self[k] for k in range(_row(self, "iter")))


def _row(x: Tensor, name: str) -> int:
    if not x.ndim:
        raise DTypeError(f"{name}: a tensor without dimensions is one number, not a row of some; item() gives it.")
    return x.shape[0]


@register_method("__contains__")
def _contains(self: Tensor, element: Any) -> builtins.bool:
    return builtins.bool(host(ops.eq(self.detach(), element)._array).any())


# --- to NumPy, and whoever else knows arrays ---


@register_method("numpy")
def _numpy(self: Tensor, *, force: builtins.bool = False) -> Any:
    """The numbers as a NumPy array that shares their memory.

    Raises GraphError if this needs a gradient, unless `force`, which is short for ``detach().numpy()``.
    """
    if not force:
        _check_free(self, "numpy", "NumPy", "x.detach().numpy()")
    return host(self._array)


@register_method("__array__")
def _array(self: Tensor, dtype: Any = None, copy: builtins.bool | None = None) -> Any:
    _check_free(self, "numpy", "NumPy", "x.detach().numpy()")
    if copy is False and dtype is not None and np.dtype(dtype) != self._array.dtype:
        raise ValueError(f"A tensor of {self.dtype.name} is no array of {np.dtype(dtype)} without a copy.")
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
    """A tensor that shares the memory of another library's, which need only know DLPack: CuPy's, JAX's, PyTorch's, ….

    It cannot be written in place where the other says that its numbers are only to be read. Raises DTypeError for what
    does not know DLPack, or has numbers of a type, or in a memory, that is not here.
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
        raise GraphError(f"{name}: this tensor requires a gradient, which {who} would lose.\n  Write {instead}.")


# --- copies ---


@register_method("__copy__")
def _copied(self: Tensor) -> Tensor:
    """A leaf that shares these numbers, for ``copy.copy``."""
    _check_leaf(self, "copy")
    out = self.detach()
    out._requires_grad = self.requires_grad
    return out


@register_method("__deepcopy__")
def _deepcopied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with numbers, and a gradient, of its own, for ``copy.deepcopy``; views are no views of each other then."""
    _check_leaf(self, "deepcopy")
    if id(self) not in memo:
        memo[id(self)] = out = _rebuilt(self._array.copy(), self.requires_grad)
        out.grad = None if self.grad is None else _deepcopied(self.grad, memo)
    return cast(Tensor, memo[id(self)])


@register_method("__reduce_ex__")
def _reduced(self: Tensor, protocol: int) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """For ``pickle``: the numbers, where they are, if they need a gradient. What has views is stored once for each."""
    _check_leaf(self, "pickle")
    array = np.ascontiguousarray(host(self._array)).reshape(self.shape)
    return _unpickled, (array, str(self.device), self.requires_grad)


def _unpickled(array: Any, place: str, requires_grad: builtins.bool) -> Tensor:
    """A tensor on the device where it was pickled; where that is not there, on the default one."""
    there = device(place) if is_there(device(place)) else get_default_device()
    known = array.view(array.dtype.name)  # NumPy makes a type anew, and kernels know theirs by identity
    return _rebuilt(memory(there).copied(known), requires_grad)


def _rebuilt(array: Any, requires_grad: builtins.bool) -> Tensor:
    out = wrap(array)
    out._requires_grad = requires_grad
    return out


def _check_leaf(x: Tensor, name: str) -> None:
    if not x.is_leaf:
        raise GraphError(
            f"{name}: this tensor was computed ({x.grad_fn!r}), and its graph stays here.\n"
            f"  Write x.detach() for its numbers alone."
        )


# --- as another type ---


@register_method("type_as")
def _type_as(self: Tensor, other: Tensor) -> Tensor:
    """These numbers in the type of `other`."""
    return self.to(other.dtype)


@register_method("type")
def _type(self: Tensor, dtype: Any = None) -> Any:
    """These numbers as `dtype`; without one the name of their type, "minigrad.float32" for example."""
    return repr(self.dtype) if dtype is None else self.to(dtype=dtype)


@register_method("cpu")
def _cpu(self: Tensor) -> Tensor:
    """These numbers in the memory of the processor, on the device "cpu", or "numpy" where they are there."""
    return self if self.device == "numpy" else self.to("cpu")


@register_method("cuda")
def _cuda(self: Tensor, device: Any = None) -> Tensor:
    """These numbers on the device "cuda". Raises DeviceError if there is none."""
    return self.to("cuda" if device is None else device)


@register_property("is_cuda")
def _is_cuda(self: Tensor) -> builtins.bool:
    """Whether these numbers are in the memory of a CUDA device."""
    return self.device.type == "cuda"


def _conversion(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor) -> Tensor:
        return self.to(dtype)

    convert.__name__, convert.__doc__ = name, f"These numbers as {dtype.name}; itself if they are."
    return convert


def _refused(name: str) -> Callable[[Tensor], Tensor]:
    """The method of that name, which says why there is no such type."""

    def refuse(self: Tensor) -> Tensor:
        raise DTypeError(
            f"{name}: float32 is the smallest float here, and computes on every device.\n"
            f"  Leave .{name}() out, or write .float()."
        )

    refuse.__name__, refuse.__doc__ = name, "Raises DTypeError: float32 is the smallest float here."
    return refuse


# --- .data ---


def _set_data(self: Tensor, new: Any) -> None:
    if not isinstance(new, Tensor) or (new.shape, new.dtype) != (self.shape, self.dtype):
        asked = f"{new.dtype.name} {new.shape}" if isinstance(new, Tensor) else type(new).__name__
        raise ShapeError(
            f"data: {self.dtype.name} {self.shape} is overwritten by numbers of the same type and shape, not {asked}."
        )
    with no_grad():
        self.copy_(new)


@register_property("data", _set_data)
def _data(self: Tensor) -> Tensor:
    """The same values without a place in the graph, as `detach`. Assigning to it, or to a part of it, overwrites them.

    Unlike in PyTorch, ``x.data = y`` copies the values of y, of the same shape and type, and every write by way of
    `data`, as ``x.data[0] = 1.0`` or ``x.data.mul_(2)``, counts as one: a backward pass that needs the old values
    raises GraphError. PyTorch lets such writes pass, and computes another gradient from the new values. What is written
    after the backward pass, as an optimizer does, is the same in both.

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
    """These numbers as a type, on a device, or as another tensor's are; itself if so already, unless `copy`.

    `non_blocking` is PyTorch's, and has nothing to wait for here. Raises DeviceError if there is no such device.
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


METHODS["__array_ufunc__"] = None  # so that NumPy leaves array + tensor to the tensor, which says what is wrong
for _name, _dtype in {"bool": bool, "byte": uint8, **ALIASES}.items():
    add(__name__, _name, method=_conversion(_name, _dtype))
for _name in ("bfloat16", "half"):
    add(__name__, _name, method=_refused(_name))
