"""Tensor creation, with PyTorch's functions.

Common arguments: `sizes` are ints, as in ``zeros(2, 3)``, or one tuple, which may also be passed as `size`. `dtype` is
by default the default floating-point dtype unless documented otherwise; a `device` of None is the default device. With
`requires_grad` the tensor is a leaf that accumulates a gradient. The functions raise ShapeError for negative sizes,
DTypeError for invalid values or dtypes, and DeviceError for a device that is not available.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, isfinite
from typing import Any

import numpy as np

import minigrad.backends.arrays  # noqa: F401 -- registers the kernels of arrays
from minigrad.backends.limits import check_count, convert_scalar
from minigrad.core.dtypes import DType, as_dtype, dtype_of_scalar, get_default_dtype, int64
from minigrad.core.errors import ArgumentError, DTypeError, describe_type
from minigrad.core.registry import add_function
from minigrad.core.shapes import parse_size
from minigrad.core.storage import check_device, get_allocator, get_default_device, set_default_device, to_numpy
from minigrad.core.symbolic import SymbolicScalar
from minigrad.core.tensor import Tensor, wrap
from minigrad.functional.from_data import array_from_data, convert_memory_errors, dtype_name, to_python_scalar

__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "get_default_device",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "set_default_device",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]


# --- from data ---


def tensor(data: Any, *, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor with a copy of `data`: a Python scalar, nested sequences of scalars, a NumPy array or a tensor.

    Without `dtype`, Python floats become the default float, ints int64 and bools bool; arrays keep their dtype. Raises
    ShapeError for rows of different lengths.

    >>> tensor([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    if type(data) is SymbolicScalar:
        return full((), data, dtype=dtype, device=device, requires_grad=requires_grad)
    array = np.asarray(array_from_data(data, dtype, "tensor"), order="C")
    target_device = data.device if device is None and isinstance(data, Tensor) else device
    return _tensor_from_array(array, target_device, requires_grad, "tensor")


def as_tensor(data: Any, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """Convert `data` to a tensor without a copy if possible: return a tensor as is, and share an array's memory.

    Raises the same errors as `tensor`.
    """
    target_device = check_device(device, "as_tensor")
    if isinstance(data, Tensor):
        return data.to(data.dtype if dtype is None else as_dtype(dtype), device=device)
    return wrap(get_allocator(target_device).share(array_from_data(data, dtype, "as_tensor")))


def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Convert `obj` to a detached tensor. `copy` True always copies, False never does, None copies only if needed.

    Raises DTypeError if a copy is needed and `copy` is False, and the same errors as `tensor`.
    """
    out = as_tensor(obj.detach() if isinstance(obj, Tensor) else obj, dtype, device)
    shared = isinstance(obj, Tensor | np.ndarray) and np.may_share_memory(
        to_numpy(out._array), to_numpy(obj._array) if isinstance(obj, Tensor) else obj
    )
    if copy is False and not shared:
        raise DTypeError(
            f"asarray: can't alias {type(obj).__name__} into a tensor{f' of {dtype.name}' if dtype else ''} without a "
            "copy, but copy=False.\n  Omit copy."
        )
    out = tensor(out) if copy and shared else out
    return out.requires_grad_() if requires_grad else out


def from_numpy(array: Any) -> Tensor:
    """Create a tensor that shares the memory of a NumPy array: writes to one are visible in the other."""
    if not isinstance(array, np.ndarray):
        raise DTypeError(
            f"from_numpy: expected a NumPy array, but got {describe_type(array)}: {array!r:.200}; see mg.tensor."
        )
    if not array.dtype.isnative:
        raise DTypeError(
            f"from_numpy: an array with non-native byte order ({array.dtype}) cannot be shared.\n"
            "  Copy it: mg.tensor(array)."
        )
    if any(stride % array.itemsize for stride in array.strides):  # for example a field of a structured array
        raise DTypeError(
            f"from_numpy: strides {array.strides} are not a multiple of the element byte size {array.itemsize}.\n"
            "  Copy it: mg.tensor(array)."
        )
    return wrap(get_allocator(get_default_device()).share(array.view(as_dtype(array.dtype).name)))


def scalar_tensor(
    s: float, *, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return a 0-d tensor with the value `s`, by default of the default floating-point dtype."""
    return full((), s, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad)


# --- filled ---


def full(
    size: int | Sequence[int],
    fill_value: Any,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor of shape `size` filled with `fill_value`; `dtype` defaults to the dtype of this value.

    Raises DTypeError if `dtype` cannot represent the value.

    >>> full((2,), 7).dtype, full((2,), 0.5).dtype
    (minigrad.int64, minigrad.float32)
    """
    value = to_python_scalar(fill_value, "full")
    out_dtype = dtype_of_scalar(value) if dtype is None else as_dtype(dtype)
    value = convert_scalar("full", value, out_dtype)
    return _make_filled(_check_size("full", device, (size,)), out_dtype.name, value, device, requires_grad, "full")


def zeros(
    *sizes: Any,
    size: Any = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor of zeros, as in ``zeros(2, 3)``."""
    return _make_filled(_check_size("zeros", device, sizes, size), dtype_name(dtype), 0, device, requires_grad, "zeros")


def ones(
    *sizes: Any,
    size: Any = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor of ones, as in ``ones(2, 3)``."""
    return _make_filled(_check_size("ones", device, sizes, size), dtype_name(dtype), 1, device, requires_grad, "ones")


def empty(
    *sizes: Any,
    size: Any = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor with uninitialised memory."""
    allocator = get_allocator(check_device(device, "empty"))
    with convert_memory_errors("empty"):
        out = wrap(allocator.empty(_check_size("empty", device, sizes, size), np.dtype(dtype_name(dtype))))
    return out.requires_grad_() if requires_grad else out


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create an (n, m) matrix with ones on the diagonal and zeros elsewhere; `m` defaults to `n`."""
    rows, columns = _check_size("eye", device, (n, n if m is None else m))
    with convert_memory_errors("eye"):
        return _tensor_from_array(np.eye(rows, columns, dtype=dtype_name(dtype)), device, requires_grad, "eye")


# --- ranges ---


def arange(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a 1-d tensor of ``ceil((end - start) / step)`` values from `start` to `end`, exclusive, by `step`.

    ``arange(end)`` starts at 0. The dtype is int64 if all arguments are ints. For an integer `dtype`, start and step
    are first truncated to integers, and for int64 so is the end, as in PyTorch. Raises ArgumentError if `step` is 0 or
    has the wrong sign, or the range is infinite, and DTypeError for bools.

    >>> arange(5).tolist(), arange(1, 2, 0.5).tolist()
    ([0, 1, 2, 3, 4], [1.0, 1.5])
    """
    first, last, by = (to_python_scalar(x, "arange") for x in ((0, start, step) if end is None else (start, end, step)))
    if by == 0 or not isfinite((last - first) / by) or (last - first) / by < 0:
        raise ArgumentError(f"arange: bounds {first} and {last} are infinite or inconsistent with step {by}.")
    all_ints = all(isinstance(x, int) for x in (first, last, by))
    out_dtype = _range_dtype(int64 if all_ints and dtype is None else dtype, "arange")
    if out_dtype is int64 and not all_ints:
        return arange(int(first), int(last), int(by), device=device, requires_grad=requires_grad)
    count = -((first - last) // by) if all_ints else ceil((last - first) / by)
    if out_dtype.kind == 1 and not all_ints:
        first, by = int(first), int(by)
    _check_size("arange", device, (count,))
    with convert_memory_errors("arange"):
        values = np.arange(count, dtype=np.int64) * by + first
        return _tensor_from_array(values.astype(out_dtype.name), device, requires_grad, "arange")


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create `steps` evenly spaced values from `start` to `end`, inclusive, truncated for an integer `dtype`.

    Raises DTypeError for bools, and for bounds that an integer `dtype` cannot represent.
    """
    out_dtype = _range_dtype(dtype, "linspace")
    values = _linspace_values(start, end, steps, out_dtype, "linspace", device)
    return _tensor_from_array(values.astype(out_dtype.name), device, requires_grad, "linspace")


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create ``base ** x`` for `steps` evenly spaced values x from `start` to `end`: see `linspace`."""
    out_dtype = _range_dtype(dtype, "logspace")
    powers = np.power(float(base), _linspace_values(start, end, steps, out_dtype, "logspace", device))
    return _tensor_from_array(powers.astype(out_dtype.name), device, requires_grad, "logspace")


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DType = int64, device: str | None = None) -> Tensor:
    """Return the row and column indices, (2, count), on and below diagonal `offset` of a (row, col) matrix."""
    rows, columns = _check_size("tril_indices", device, (row, col))
    return _triangle_indices(np.tri(rows, columns, offset), dtype, device, "tril_indices")


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DType = int64, device: str | None = None) -> Tensor:
    """Return the row and column indices, (2, count), on and above diagonal `offset` of a (row, col) matrix."""
    rows, columns = _check_size("triu_indices", device, (row, col))
    return _triangle_indices(np.tri(rows, columns, offset - 1) == 0, dtype, device, "triu_indices")


def _triangle_indices(mask: Any, dtype: DType, device: str | None, func_name: str) -> Tensor:
    return _tensor_from_array(np.stack(np.nonzero(mask)).astype(dtype_name(dtype)), device, False, func_name)


# --- like another tensor ---


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor filled with `fill_value`, with the shape, dtype and device of `input`."""
    x = _check_like_input(input, "full_like")
    out_dtype, target_device = x.dtype if dtype is None else dtype, x.device if device is None else device
    return full(x.shape, fill_value, dtype=out_dtype, device=target_device, requires_grad=requires_grad)


def _check_like_input(x: Any, func_name: str) -> Tensor:
    if isinstance(x, Tensor):
        return x
    raise DTypeError(f"{func_name}: input must be a tensor, not {describe_type(x)}.\n  Convert it first: mg.tensor(x).")


def _make_like(factory: Callable[..., Tensor], description: str) -> Callable[..., Tensor]:
    def create_like(
        input: Tensor, *, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False
    ) -> Tensor:
        _check_like_input(input, create_like.__name__)
        out_dtype, target_device = input.dtype if dtype is None else dtype, input.device if device is None else device
        return factory(input.shape, dtype=out_dtype, device=target_device, requires_grad=requires_grad)

    create_like.__name__ = f"{factory.__name__}_like"
    create_like.__doc__ = f"Create a tensor of {description} with the shape, dtype and device of `input`."
    return create_like


zeros_like = _make_like(zeros, "zeros")
ones_like = _make_like(ones, "ones")
empty_like = _make_like(empty, "uninitialised memory")


def _make_new_method(factory: Callable[..., Tensor], signature: str) -> Callable[..., Tensor]:
    def create_new(
        self: Tensor, *args: Any, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False
    ) -> Tensor:
        out_dtype, target_device = self.dtype if dtype is None else dtype, self.device if device is None else device
        return factory(*args, dtype=out_dtype, device=target_device, requires_grad=requires_grad)

    create_new.__name__ = f"new_{factory.__name__}"
    create_new.__doc__ = f"Return `{factory.__name__}({signature})` with the dtype and device of this tensor."
    return create_new


# --- helpers ---


def _tensor_from_array(array: Any, device: str | None, requires_grad: bool, func_name: str) -> Tensor:
    """Copy `array` to a tensor on `device`."""
    out = wrap(get_allocator(check_device(device, func_name)).copy(array))
    return out.requires_grad_() if requires_grad else out


def _check_size(func_name: str, device: str | None, sizes: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """Return the shape parsed by `parse_size`. Raises ShapeError if `device` cannot address that many elements."""
    shape = parse_size(sizes, func_name, size)
    check_count(shape, check_device(device, func_name), func_name)
    return shape


def _make_filled(
    shape: tuple[int, ...], dtype: str, value: Any, device: str | None, requires_grad: bool, func_name: str
) -> Tensor:
    with convert_memory_errors(func_name):
        out = wrap(get_allocator(check_device(device, func_name)).full(shape, np.dtype(dtype), value))
    return out.requires_grad_() if requires_grad else out


def _range_dtype(dtype: DType | None, func_name: str) -> DType:
    """Return `dtype`, or the default floating-point dtype if None. Raises DTypeError for bool."""
    out_dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not out_dtype.kind:
        raise DTypeError(f"{func_name}: not implemented for bool.\n  Compare a range with 0: mg.{func_name}(…) != 0.")
    return out_dtype


def _linspace_values(start: float, end: float, steps: int, out_dtype: DType, func_name: str, device: str | None) -> Any:
    """Return `steps` evenly spaced float64 values. For an integer `out_dtype`, the bounds are truncated first."""
    bounds = [to_python_scalar(x, func_name) for x in (start, end)]
    first, last = [convert_scalar(func_name, x, out_dtype) for x in bounds] if out_dtype.kind == 1 else bounds
    (count,) = _check_size(func_name, device, (steps,))
    with convert_memory_errors(func_name):
        return np.linspace(first, last, count)


for _factory, _signature in (
    (empty, "*size"),
    (full, "size, fill_value"),
    (ones, "*size"),
    (tensor, "data"),
    (zeros, "*size"),
):
    add_function(__name__, f"new_{_factory.__name__}", method=_make_new_method(_factory, _signature))
