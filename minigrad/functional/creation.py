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
from minigrad.backends.limits import check_count, number
from minigrad.core.dtypes import DType, as_dtype, get_default_dtype, int64, of_number
from minigrad.core.errors import ArgumentError, DTypeError, a_kind
from minigrad.core.registry import add
from minigrad.core.shapes import size_of
from minigrad.core.storage import check_device, get_default_device, host, memory, set_default_device
from minigrad.core.symbolic import Traced
from minigrad.core.tensor import Tensor, wrap
from minigrad.functional.from_data import array_of, dtype_name, memory_for, plain_number

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
    if type(data) is Traced:
        return full((), data, dtype=dtype, device=device, requires_grad=requires_grad)
    array = np.asarray(array_of(data, dtype, "tensor"), order="C")
    place = data.device if device is None and isinstance(data, Tensor) else device
    return _finished(array, place, requires_grad, "tensor")


def as_tensor(data: Any, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """Convert `data` to a tensor without a copy if possible: return a tensor itself, share the memory of an array.

    Raises as `tensor`.
    """
    place = check_device(device, "as_tensor")
    if isinstance(data, Tensor):
        return data.to(data.dtype if dtype is None else as_dtype(dtype), device=device)
    return wrap(memory(place).shared(array_of(data, dtype, "as_tensor")))


def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Convert `obj` to a detached tensor. `copy` True always copies, False never does, None copies only if needed.

    Raises DTypeError if a copy is needed and `copy` is False, and as `tensor`.
    """
    out = as_tensor(obj.detach() if isinstance(obj, Tensor) else obj, dtype, device)
    shared = isinstance(obj, Tensor | np.ndarray) and np.may_share_memory(
        host(out._array), host(obj._array) if isinstance(obj, Tensor) else obj
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
        raise DTypeError(f"from_numpy: expected a NumPy array, but got {a_kind(array)}: {array!r:.200}; see mg.tensor.")
    if not array.dtype.isnative:
        raise DTypeError(
            f"from_numpy: an array with non-native byte order ({array.dtype}) cannot be shared.\n"
            "  Copy it: mg.tensor(array)."
        )
    if any(by % array.itemsize for by in array.strides):  # a field of a structured array
        raise DTypeError(
            f"from_numpy: strides {array.strides} are not a multiple of the element byte size {array.itemsize}.\n"
            "  Copy it: mg.tensor(array)."
        )
    return wrap(memory(get_default_device()).shared(array.view(as_dtype(array.dtype).name)))


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
    """Create a tensor of shape `size` filled with `fill_value`, whose dtype is the default.

    Raises DTypeError if `dtype` cannot represent the value.

    >>> full((2,), 7).dtype, full((2,), 0.5).dtype
    (minigrad.int64, minigrad.float32)
    """
    value = plain_number(fill_value, "full")
    kind = of_number(value) if dtype is None else as_dtype(dtype)
    value = number("full", value, kind)
    return _filled(_sizes("full", device, (size,)), kind.name, value, device, requires_grad, "full")


def zeros(
    *sizes: Any,
    size: Any = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor of zeros, as in ``zeros(2, 3)``."""
    return _filled(_sizes("zeros", device, sizes, size), dtype_name(dtype), 0, device, requires_grad, "zeros")


def ones(
    *sizes: Any,
    size: Any = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor of ones, as in ``ones(2, 3)``."""
    return _filled(_sizes("ones", device, sizes, size), dtype_name(dtype), 1, device, requires_grad, "ones")


def empty(
    *sizes: Any,
    size: Any = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor with uninitialised memory."""
    place = memory(check_device(device, "empty"))
    with memory_for("empty"):
        out = wrap(place.empty(_sizes("empty", device, sizes, size), np.dtype(dtype_name(dtype))))
    return out.requires_grad_() if requires_grad else out


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create an (n, m) matrix, square without `m`, with ones on the diagonal and zeros elsewhere."""
    rows, columns = _sizes("eye", device, (n, n if m is None else m))
    with memory_for("eye"):
        return _finished(np.eye(rows, columns, dtype=dtype_name(dtype)), device, requires_grad, "eye")


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

    ``arange(end)`` starts at 0. The dtype is int64 if all arguments are ints. For an integer `dtype` start and step are
    truncated to integers first, for int64 the end too, as in PyTorch. Raises ArgumentError if `step` is 0 or has the
    wrong sign, or the range is infinite, and DTypeError for bools.

    >>> arange(5).tolist(), arange(1, 2, 0.5).tolist()
    ([0, 1, 2, 3, 4], [1.0, 1.5])
    """
    first, last, by = (plain_number(x, "arange") for x in ((0, start, step) if end is None else (start, end, step)))
    if by == 0 or not isfinite((last - first) / by) or (last - first) / by < 0:
        raise ArgumentError(f"arange: bounds {first} and {last} are infinite or inconsistent with step {by}.")
    whole = all(isinstance(x, int) for x in (first, last, by))
    kind = _ranged(int64 if whole and dtype is None else dtype, "arange")
    if kind is int64 and not whole:
        return arange(int(first), int(last), int(by), device=device, requires_grad=requires_grad)
    count = -((first - last) // by) if whole else ceil((last - first) / by)
    if kind.kind == 1 and not whole:
        first, by = int(first), int(by)
    _sizes("arange", device, (count,))
    with memory_for("arange"):
        numbers = np.arange(count) * by + first
        return _finished(numbers.astype(kind.name), device, requires_grad, "arange")


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
    kind = _ranged(dtype, "linspace")
    return _finished(
        _spaced(start, end, steps, kind, "linspace", device).astype(kind.name), device, requires_grad, "linspace"
    )


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
    kind = _ranged(dtype, "logspace")
    powers = np.power(float(base), _spaced(start, end, steps, kind, "logspace", device))
    return _finished(powers.astype(kind.name), device, requires_grad, "logspace")


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DType = int64, device: str | None = None) -> Tensor:
    """Return the row and column indices, (2, count), on and below diagonal `offset` of a (row, col) matrix."""
    rows, columns = _sizes("tril_indices", device, (row, col))
    return _places(np.tri(rows, columns, offset), dtype, device, "tril_indices")


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DType = int64, device: str | None = None) -> Tensor:
    """Return the row and column indices, (2, count), on and above diagonal `offset` of a (row, col) matrix."""
    rows, columns = _sizes("triu_indices", device, (row, col))
    return _places(np.tri(rows, columns, offset - 1) == 0, dtype, device, "triu_indices")


def _places(chosen: Any, dtype: DType, device: str | None, asked: str) -> Tensor:
    return _finished(np.stack(np.nonzero(chosen)).astype(dtype_name(dtype)), device, False, asked)


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
    like = _pattern(input, "full_like")
    kind, place = like.dtype if dtype is None else dtype, like.device if device is None else device
    return full(input.shape, fill_value, dtype=kind, device=place, requires_grad=requires_grad)


def _pattern(x: Any, asked: str) -> Tensor:
    if isinstance(x, Tensor):
        return x
    raise DTypeError(f"{asked}: input must be a tensor, not {a_kind(x)}.\n  Convert it first: mg.tensor(x).")


def _like(make: Callable[..., Tensor], what: str) -> Callable[..., Tensor]:
    def like(
        input: Tensor, *, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False
    ) -> Tensor:
        _pattern(input, like.__name__)
        kind, place = input.dtype if dtype is None else dtype, input.device if device is None else device
        return make(input.shape, dtype=kind, device=place, requires_grad=requires_grad)

    like.__name__ = f"{make.__name__}_like"
    like.__doc__ = f"Create a tensor of {what} with the shape, dtype and device of `input`."
    return like


zeros_like = _like(zeros, "zeros")
ones_like = _like(ones, "ones")
empty_like = _like(empty, "uninitialised memory")


def _new(make: Callable[..., Tensor], what: str) -> Callable[..., Tensor]:
    def new(
        self: Tensor, *args: Any, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False
    ) -> Tensor:
        kind, place = self.dtype if dtype is None else dtype, self.device if device is None else device
        return make(*args, dtype=kind, device=place, requires_grad=requires_grad)

    new.__name__ = f"new_{make.__name__}"
    new.__doc__ = f"Return `{make.__name__}({what})` with the dtype and device of this tensor."
    return new


# --- helpers ---


def _finished(array: Any, device: str | None, requires_grad: bool, asked: str) -> Tensor:
    """Copy `array` to a tensor on `device`."""
    out = wrap(memory(check_device(device, asked)).copied(array))
    return out.requires_grad_() if requires_grad else out


def _sizes(asked: str, device: str | None, sizes: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """Return the shape parsed by `size_of`. Raises ShapeError if `device` cannot address so many elements."""
    shape = size_of(sizes, asked, size)
    check_count(shape, check_device(device, asked), asked)
    return shape


def _filled(
    shape: tuple[int, ...], dtype: str, value: Any, device: str | None, requires_grad: bool, asked: str
) -> Tensor:
    """Create a tensor filled with `value` directly on `device`."""
    with memory_for(asked):
        out = wrap(memory(check_device(device, asked)).full(shape, np.dtype(dtype), value))
    return out.requires_grad_() if requires_grad else out


def _ranged(dtype: DType | None, asked: str) -> DType:
    """Return the dtype of a range. Raises DTypeError for bool."""
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not kind.kind:
        raise DTypeError(f"{asked}: not implemented for bool.\n  Compare a range with 0: mg.{asked}(…) != 0.")
    return kind


def _spaced(start: float, end: float, steps: int, kind: DType, asked: str, device: str | None) -> Any:
    """Return `steps` float64 values from `start` to `end`; an integer `kind` truncates the bounds first."""
    ends = [plain_number(x, asked) for x in (start, end)]
    first, last = [number(asked, x, kind) for x in ends] if kind.kind == 1 else ends
    (count,) = _sizes(asked, device, (steps,))
    with memory_for(asked):
        return np.linspace(first, last, count)


for _make, _what in ((empty, "*size"), (full, "size, fill_value"), (ones, "*size"), (tensor, "data"), (zeros, "*size")):
    add(__name__, f"new_{_make.__name__}", method=_new(_make, _what))
