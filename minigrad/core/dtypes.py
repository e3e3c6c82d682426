"""Dtypes and type promotion. The types, defaults and promotion rules are PyTorch's.

PyTorch ranks operands: tensors with dimensions first, then 0-d tensors, then Python scalars. The result has the highest
kind (bool < int < float) among all operands, with the width of the highest-ranked operands of that kind. So a float32
tensor times 2.0 is float32, and an int64 tensor times 2.0 has the default float dtype, float32.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad.core.errors import DTypeError

__all__ = [
    "ALIASES",
    "DTYPES",
    "DType",
    "FloatInfo",
    "IntInfo",
    "as_dtype",
    "bool",
    "dtype",
    "dtype_of_scalar",
    "finfo",
    "float32",
    "float64",
    "get_default_dtype",
    "iinfo",
    "int32",
    "int64",
    "promote_types",
    "result_type",
    "set_default_dtype",
    "uint8",
]

_BOOL, _INT, _FLOAT = range(3)


class DType(NamedTuple):
    """Element type of a tensor, with its NumPy name, its size in bytes, and its kind (0 bool, 1 int, 2 float)."""

    name: str
    itemsize: int
    kind: int

    @property
    def is_floating_point(self) -> bool_:
        """Whether this is a floating-point dtype, whose tensors can require gradients."""
        return self.kind == _FLOAT

    def __repr__(self) -> str:
        return f"minigrad.{self.name}"


bool_ = bool  # Python's bool, which is shadowed below

float64 = DType("float64", 8, _FLOAT)
float32 = DType("float32", 4, _FLOAT)
int64 = DType("int64", 8, _INT)
int32 = DType("int32", 4, _INT)
uint8 = DType("uint8", 1, _INT)
bool = DType("bool", 1, _BOOL)

DTYPES: dict[str, DType] = {t.name: t for t in (float64, float32, int64, int32, uint8, bool)}

ALIASES = {"double": float64, "float": float32, "int": int32, "long": int64}
"""PyTorch's aliases, such as ``mg.float``. `__getattr__` returns them, since they would shadow Python's names here."""

__all__ += ALIASES  # noqa: PLE0605 -- iterates over its keys

dtype = DType
"""PyTorch's name for the class, as in ``isinstance(x.dtype, mg.dtype)``."""

_default = float32


class FloatInfo(NamedTuple):
    """The limits of a floating-point dtype: `eps` is the spacing at 1, `tiny` the smallest positive normal number."""

    dtype: str
    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float


class IntInfo(NamedTuple):
    """The limits of an integer dtype."""

    dtype: str
    bits: int
    max: int
    min: int


def finfo(type: DType | None = None) -> FloatInfo:
    """Return the limits of a floating-point dtype (IEEE 754), by default the default dtype.

    Raises DTypeError for other dtypes.

    >>> finfo(float32).eps == 2.0**-23, finfo(float64).max
    (True, 1.7976931348623157e+308)
    """
    kind = _default if type is None else as_dtype(type)
    if not kind.is_floating_point:
        raise DTypeError(f"finfo: requires a floating-point dtype, but got {kind.name}.\n  Write mg.iinfo({kind!r}).")
    digits, exponent, resolution = (53, 1023, 1e-15) if kind is float64 else (24, 127, 1e-6)
    eps, tiny = 2.0 ** (1 - digits), 2.0 ** (1 - exponent)
    largest = (2 - eps) * 2.0**exponent
    return FloatInfo(kind.name, 8 * kind.itemsize, eps, largest, -largest, tiny, tiny, resolution)


def iinfo(type: DType) -> IntInfo:
    """Return the limits of an integer dtype. Raises DTypeError for other dtypes.

    >>> iinfo(uint8).max, iinfo(int32).min
    (255, -2147483648)
    """
    kind = as_dtype(type)
    if kind.kind != _INT:
        raise DTypeError(f"iinfo: requires an integer dtype, but got {kind.name}.\n  Write mg.finfo({kind!r}).")
    bits = 8 * kind.itemsize
    return IntInfo(kind.name, bits, *((255, 0) if kind is uint8 else (2 ** (bits - 1) - 1, -(2 ** (bits - 1)))))


def get_default_dtype() -> DType:
    """Return the default floating-point dtype, initially float32."""
    return _default


def set_default_dtype(dtype: DType) -> None:
    """Set the default floating-point dtype to float32 or float64. Raises DTypeError for other dtypes."""
    global _default
    if dtype not in (float32, float64):
        raise DTypeError(f"set_default_dtype: only floating-point types are supported as the default, but got {dtype}.")
    _default = dtype


def as_dtype(x: Any) -> DType:
    """Convert a Python type (float, int, bool), a name or a NumPy dtype to a DType. Raises DTypeError for others."""
    if isinstance(x, DType):
        return x
    if isinstance(x, type) and x in (float, int, bool_):
        return _default if x is float else int64 if x is int else bool
    name = x if isinstance(x, str) else getattr(x, "name", None)
    if name in DTYPES:
        return DTYPES[name]
    raise DTypeError(f"dtype: expected one of {', '.join(DTYPES)}, but got {x!r}.\n  Write mg.float32, for example.")


def dtype_of_scalar(x: float) -> DType:
    """Return the dtype of a tensor created from a Python scalar: bool, int64 or the default float dtype."""
    return bool if isinstance(x, bool_) else int64 if isinstance(x, int) else _default


_PAIRS = {  # pairs of int types; other pairs are promoted according to kind and width
    frozenset({uint8, int32}): int32,
    frozenset({uint8, int64}): int64,
    frozenset({int32, int64}): int64,
}


def promote_types(a: DType, b: DType) -> DType:
    """Return the smallest dtype to which both can be promoted.

    >>> promote_types(uint8, int32), promote_types(int64, float32), promote_types(bool, uint8)
    (minigrad.int32, minigrad.float32, minigrad.uint8)
    """
    if a == b:
        return a
    if a.kind != b.kind:
        return a if a.kind > b.kind else b
    return float64 if a.kind == _FLOAT else _PAIRS[frozenset({a, b})]


def result_type(tensors: Iterable[DType], scalars: Iterable[DType] = (), numbers: Iterable[DType] = ()) -> DType:
    """Return the promoted dtype of tensors with dimensions, 0-d tensors and Python scalars, in this order of rank.

    >>> result_type([float32], numbers=[float64]), result_type([int64], numbers=[float32])
    (minigrad.float32, minigrad.float32)
    >>> result_type([float32], scalars=[float64]), result_type([], scalars=[float64, float32])
    (minigrad.float32, minigrad.float64)
    """
    result: DType | None = None
    for rank in (tensors, scalars, numbers):
        promoted: DType | None = None
        for dtype in rank:
            promoted = dtype if promoted is None else promote_types(promoted, dtype)
        if promoted is not None and (result is None or promoted.kind > result.kind):
            result = promoted
    if result is None:
        raise DTypeError("result_type: at least one dtype is required.")
    return result


if not TYPE_CHECKING:

    def __getattr__(name: str) -> DType:
        if name in ALIASES:
            return ALIASES[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
