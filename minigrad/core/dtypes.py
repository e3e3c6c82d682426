"""Number types, and which type comes out where two meet. PyTorch's types, defaults and promotion.

PyTorch ranks operands: a tensor with dimensions counts before a 0-d tensor, and that before a Python number. The result
takes the highest kind (bool < int < float) of all, and its width from the highest rank that has that kind: so a float32
tensor times the number 2.0 stays float32, and an int64 tensor times 2.0 becomes the default float, float32.
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
    "finfo",
    "float32",
    "float64",
    "get_default_dtype",
    "iinfo",
    "int32",
    "int64",
    "of_number",
    "promote_types",
    "result_type",
    "set_default_dtype",
    "uint8",
]

_BOOL, _INT, _FLOAT = range(3)


class DType(NamedTuple):
    """A number type: its name, which is NumPy's too, its size in bytes, its kind (0 bool, 1 int, 2 float)."""

    name: str
    itemsize: int
    kind: int

    @property
    def is_floating_point(self) -> bool_:
        """Whether it holds fractions, and so can have a gradient."""
        return self.kind == _FLOAT

    def __repr__(self) -> str:
        return f"minigrad.{self.name}"


bool_ = bool  # Python's, which the name below hides

float64 = DType("float64", 8, _FLOAT)
float32 = DType("float32", 4, _FLOAT)
int64 = DType("int64", 8, _INT)
int32 = DType("int32", 4, _INT)
uint8 = DType("uint8", 1, _INT)
bool = DType("bool", 1, _BOOL)

DTYPES: dict[str, DType] = {t.name: t for t in (float64, float32, int64, int32, uint8, bool)}

ALIASES = {"double": float64, "float": float32, "int": int32, "long": int64}
"""PyTorch's other names, as in ``mg.float``; here they would hide Python's own, so `__getattr__` gives them."""

__all__ += ALIASES  # noqa: PLE0605 -- a dict gives its keys

dtype = DType
"""PyTorch's name of the class, as in ``isinstance(x.dtype, mg.dtype)``."""

_default = float32


class FloatInfo(NamedTuple):
    """The limits of a float type: `eps` is from 1 to the next number, `tiny` the least that has all its digits."""

    dtype: str
    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float


class IntInfo(NamedTuple):
    """The limits of a type of whole numbers."""

    dtype: str
    bits: int
    max: int
    min: int


def finfo(type: DType | None = None) -> FloatInfo:
    """The limits of float32 or float64 (IEEE 754), by default of the default type. Raises DTypeError for others.

    >>> finfo(float32).eps == 2.0**-23, finfo(float64).max
    (True, 1.7976931348623157e+308)
    """
    kind = _default if type is None else as_dtype(type)
    if not kind.is_floating_point:
        raise DTypeError(f"finfo: {kind.name} holds no fractions.\n  Write mg.iinfo({kind!r}).")
    digits, exponent, resolution = (53, 1023, 1e-15) if kind is float64 else (24, 127, 1e-6)
    eps, tiny = 2.0 ** (1 - digits), 2.0 ** (1 - exponent)
    largest = (2 - eps) * 2.0**exponent
    return FloatInfo(kind.name, 8 * kind.itemsize, eps, largest, -largest, tiny, tiny, resolution)


def iinfo(type: DType) -> IntInfo:
    """The limits of a type of whole numbers. Raises DTypeError for others.

    >>> iinfo(uint8).max, iinfo(int32).min
    (255, -2147483648)
    """
    kind = as_dtype(type)
    if kind.kind != _INT:
        raise DTypeError(f"iinfo: {kind.name} is not a type of whole numbers.\n  Write mg.finfo for one of floats.")
    bits = 8 * kind.itemsize
    return IntInfo(kind.name, bits, *((255, 0) if kind is uint8 else (2 ** (bits - 1) - 1, -(2 ** (bits - 1)))))


def get_default_dtype() -> DType:
    """The type that Python floats become: float32, unless `set_default_dtype` changed it."""
    return _default


def set_default_dtype(dtype: DType) -> None:
    """Make `dtype`, float32 or float64, the type that Python floats become. Raises DTypeError for any other."""
    global _default
    if dtype not in (float32, float64):
        raise DTypeError(f"set_default_dtype: {dtype!r} holds no fractions; give minigrad.float32 or minigrad.float64.")
    _default = dtype


def as_dtype(x: Any) -> DType:
    """A DType from a DType, a Python type (float, int, bool), a name, or a NumPy dtype. Raises DTypeError."""
    if isinstance(x, DType):
        return x
    if isinstance(x, type) and x in (float, int, bool_):
        return _default if x is float else int64 if x is int else bool
    name = x if isinstance(x, str) else getattr(x, "name", None)
    if name in DTYPES:
        return DTYPES[name]
    raise DTypeError(f"dtype: {x!r} is not one of {', '.join(DTYPES)}.\n  Write mg.float32, for example.")


def of_number(x: float) -> DType:
    """The type that a Python number becomes as a tensor: bool, int64 or the default float."""
    return bool if isinstance(x, bool_) else int64 if isinstance(x, int) else _default


_PAIRS = {  # int types of different widths; everything else follows from kind and width
    frozenset({uint8, int32}): int32,
    frozenset({uint8, int64}): int64,
    frozenset({int32, int64}): int64,
}


def promote_types(a: DType, b: DType) -> DType:
    """The type that holds both.

    >>> promote_types(uint8, int32), promote_types(int64, float32), promote_types(bool, uint8)
    (minigrad.int32, minigrad.float32, minigrad.uint8)
    """
    if a == b:
        return a
    if a.kind != b.kind:
        return a if a.kind > b.kind else b
    return float64 if a.kind == _FLOAT else _PAIRS[frozenset({a, b})]


def result_type(tensors: Iterable[DType], scalars: Iterable[DType] = (), numbers: Iterable[DType] = ()) -> DType:
    """The type of a result: from tensors with dimensions, 0-d tensors, and Python numbers, in falling rank.

    >>> result_type([float32], numbers=[float64]), result_type([int64], numbers=[float32])
    (minigrad.float32, minigrad.float32)
    >>> result_type([float32], scalars=[float64]), result_type([], scalars=[float64, float32])
    (minigrad.float32, minigrad.float64)
    """
    result: DType | None = None
    for rank in (tensors, scalars, numbers):
        here: DType | None = None
        for dtype in rank:
            here = dtype if here is None else promote_types(here, dtype)
        if here is not None and (result is None or here.kind > result.kind):
            result = here
    if result is None:
        raise DTypeError("result_type: there is nothing to take a type from.")
    return result


if not TYPE_CHECKING:

    def __getattr__(name: str) -> DType:
        if name in ALIASES:
            return ALIASES[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
