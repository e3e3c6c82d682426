"""Elementwise kernels: one snippet per operation, and the mapping of arbitrarily strided operands to a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign, gcd, inf
from typing import Any

import numpy as np

from minigrad.backends.numpy.elementwise import is_large_odd
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.moves import moving, unit_of
from minigrad.backends.taichi.codegen.snippets import SNIPPETS, TRUTHS, clamped
from minigrad.backends.taichi.codegen.walks import Walk, walk_of
from minigrad.backends.taichi.runtime.array import DEVICE, LINE, TaichiArray, current, empty, pointer, room_of
from minigrad.backends.taichi.runtime.caches import Remembered
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.backends.taichi.runtime.offsets import EXACT
from minigrad.core.dispatch import kernel
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.symbolic import apply

__all__ = [
    "arange",
    "common_type",
    "computed",
    "filled",
    "fitting",
    "laid_out_like",
    "pointer",
    "put",
    "taken",
]

_NOTHING: Mapping[str, Any] = {}


def computed(
    name: str, snippet: str, inputs: Sequence[Any], dtype: Any, out: Any = None, attrs: Mapping[str, Any] = _NOTHING
) -> Any:
    """Evaluate a snippet on broadcastable arrays and Python scalars; write to `out`, or to a new array of `dtype`."""
    shape: Any = None
    if out is None:
        dtype, plain = np.dtype(dtype), True
    else:
        dtype, shape, plain = out.dtype, out.shape, out.address or out.flags.c_contiguous
        inputs = [_apart(x, out) for x in inputs]
    given: list[Any] = []
    arrays: list[Any] = []
    types: list[Any] = [dtype]
    for x in inputs:
        if isinstance(x, TaichiArray):
            if x.shape != shape:
                plain = plain and shape is None
                shape = x.shape
            if not x.address:
                plain = plain and x.flags.c_contiguous
            arrays.append(x)
            types.append(x.dtype)
        else:
            x = fitting(x, dtype)
            types.append(x.__class__)
        given.append(x)
    if attrs:
        types += [*attrs, *[x.__class__ for x in attrs.values()]]
    family = _families.get((name, snippet, *types))
    if family is None:
        family = _families[(name, snippet, *types)] = Family(name, snippet, given, dtype, attrs)
    if not plain:
        shape = broadcast_shapes(*[x.shape for x in arrays], op=name)
    if out is None:
        out = empty(shape, dtype) if plain else laid_out_like(arrays, shape, dtype)
    if not out.size:
        return out
    if plain:
        _flat(family, given, out, attrs)
    else:
        walk = walk_of(out.shape, *[(x.shape, x.strides, x.itemsize) for x in (out, *arrays)])
        if walk.flat:
            _flat(family, given, out, attrs)
        else:
            _walked(family, walk, given, out, attrs)
    return out


def _apart(x: Any, out: Any) -> Any:
    """Return `x`, or a copy if it overlaps `out` so that writing would clobber elements still to be read."""
    if x is out or not isinstance(x, TaichiArray) or not np.may_share_memory(x, out):
        return x
    alike = x.shape == out.shape and x.strides == out.strides and pointer(x)[0] == pointer(out)[0]
    return x if alike else computed("contiguous", "a", (x,), x.dtype, empty(x.shape, x.dtype))


def _flat(family: Family, given: Sequence[Any], out: Any, attrs: Mapping[str, Any]) -> None:
    """Compute `out` in memory order: it and the operands are dense and have the same layout."""
    size = out.size
    at = pointer(out)
    args, places = [at], at[0]
    whole = size % source.WIDE == 0
    wide = family.wide and (
        whole or out.address or room_of(out) == out.nbytes
    )  # may not write past the end of the block
    for x in given:
        if isinstance(x, TaichiArray):
            wide = wide and (whole or x.address or room_of(x))
            x = pointer(x)
            places |= x[0]
        args.append(x)
    if wide and places % LINE == 0:
        past = size >= source.PAST and all(x.__class__ is not tuple or x[0] != at[0] for x in args[1:])
        made = family.kernel(PAST if past else VECTORS, size <= source.SERIAL_WIDE)
        size = -(-size // source.WIDE)
    else:
        made = family.kernel(0, size <= source.SERIAL)
    made.launch(*args, *attrs.values(), size)


def _walked(family: Family, walk: Walk, given: Sequence[Any], out: Any, attrs: Mapping[str, Any]) -> None:
    """Compute `out` from arbitrarily strided operands."""
    if family.moves and source.VECTORIZED and _moved(walk, given[0], out):
        return
    args = [pointer(out)]
    places, k = args[0][0], 0
    for x in given:
        if isinstance(x, TaichiArray):
            x, k = pointer(x), k + 1
            if walk.along and walk.along[k + 1]:
                places |= x[0]
        args.append(x)
    width = walk.along[0] if walk.along else 0
    if width and places % (4 * width) == 0 and (family.wide if width == source.WIDE else family.narrow):
        made, numbers = family.kernel(walk.along, out.size <= source.SERIAL_WIDE), walk.vectors
    else:
        made, numbers = family.kernel(walk.dims, out.size <= source.SERIAL), walk.numbers
    made.launch(*args, *attrs.values(), *numbers)


def _moved(walk: Walk, x: Any, out: Any) -> bool:
    """Copy to `out` by multi-element units if the strides allow it, regardless of dtype. Return whether they do."""
    at = pointer(out), pointer(x)
    unit = unit_of(walk.dims, walk.numbers, out.itemsize, gcd(LINE, at[0][0], at[1][0]))
    if unit is None:
        return False
    moving(walk.dims, unit[0], out.nbytes <= 4 * source.SERIAL_WIDE).launch(*at, *unit[1])
    return True


VECTORS = -1  # form of a kernel vectorised by 16; a positive form is the number of dimensions
PAST = -2  # vectorised, with non-temporal stores, which bypass the cache


class Family:
    """The specialisations of a snippet for given operand types, by memory layout."""

    __slots__ = ("_dtype", "_made", "_name", "_snippet", "_takes", "_work", "moves", "narrow", "wide")

    def __init__(self, name: str, snippet: str, given: Sequence[Any], dtype: Any, attrs: Mapping[str, Any]) -> None:
        self._name, self._snippet, self._dtype = name, snippet, dtype.name
        floats = [x.dtype.name for x in given[::-1] if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        self._work = floats[0] if floats else "float64"
        takes = [taken(letter, x, self._work) for letter, x in zip(source.LETTERS, given, strict=False)]
        self._takes = (*takes, *[taken(letter, x, self._work) for letter, x in attrs.items()])
        self._made: dict[tuple[Any, bool], Any] = {}
        self.moves = snippet == "a" and self._takes[0][::2] == ("a", self._dtype)
        self.wide = source.in_vectors(snippet, self._takes, self._dtype)
        self.narrow = self.wide and source.of_any_width(snippet)

    def kernel(self, form: Any, serial: bool) -> Any:
        """Return the kernel of a form: contiguous if it is 0, `VECTORS` or `PAST`; strided in that many dimensions; or
        vectorised along rows, if it is the `along` of a `Walk`."""
        made = self._made.get((form, serial))
        if made is None:
            made = self._made[form, serial] = compiled(self._name, *self.text(form, serial))
            in_rows = isinstance(form, tuple)
            if form in (VECTORS, PAST) or (in_rows and form[0] == source.WIDE) or (form == 0 and self._fusable_on_gpu):
                made.work = source.Work(self._snippet, self._takes, form[1:] if in_rows else ())
        return made

    @property
    def _fusable_on_gpu(self) -> bool:
        """Whether the kernel targets a GPU and computes as a fused loop does: in float32, with no exact quotient."""
        floats = all(x.dtype == "float32" for x in self._takes) and self._dtype == self._work == "float32"
        return floats and not source.VECTORIZED and f"{self._name}_kernel" not in EXACT

    def text(self, form: Any, serial: bool) -> tuple[str, str]:
        """Return the kernel source and the kinds of its arguments."""
        what = self._name, self._snippet, self._takes
        if form in (VECTORS, PAST):
            return source.vectors(*what, serial, form == PAST)
        if isinstance(form, tuple):
            return source.strided(*what, self._dtype, self._work, form[1], serial, form[2:], form[0])
        if form:
            return source.strided(*what, self._dtype, self._work, form, serial)
        return source.flat(*what, self._dtype, self._work, serial)


_families: dict[Any, Family] = Remembered()


def laid_out_like(arrays: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """Allocate an array with the dimension order in memory of the arrays if they agree, as in PyTorch."""
    orders = {tuple(sorted(range(x.ndim), key=lambda k, x=x: -x.strides[k])) for x in arrays if x.shape == shape}  # type: ignore[misc]
    if len(orders) != 1:
        return empty(shape, dtype)
    (order,) = orders
    out = empty(tuple([shape[k] for k in order]), dtype)
    return out.transpose([order.index(k) for k in range(len(shape))])


def common_type(inputs: Sequence[Any]) -> Any:
    """Return the dtype of the arrays, promoted if a rule mixes dtypes."""
    found = None
    for x in inputs:
        if isinstance(x, np.ndarray) and x.dtype is not found:
            if found is not None:
                return np.result_type(*[x.dtype for x in inputs if isinstance(x, np.ndarray)])
            found = x.dtype
    return found


def fitting(x: Any, dtype: Any) -> Any:
    """Convert a Python scalar to the dtype of the other operands. Raises OverflowError if it is out of range."""
    if dtype.kind in "bf":  # operands of a comparison may be out of range
        return x if dtype.kind == "b" or type(x) is float else apply(float, x)
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
        raise OverflowError(f"Python integer {x} out of bounds for {dtype.name}")
    return x


def filled(shape: Sequence[int], dtype: Any, value: float = 0) -> Any:
    """Allocate an array filled with `value`."""
    out = empty(tuple(shape), dtype)
    value = fitting(value if out.dtype.kind == "f" else int(value), out.dtype)
    return computed("fill", "value", (), out.dtype, out, {"value": value})


def put(into: Any, x: Any) -> None:
    """Copy `x`, broadcast, to an array, usually a view."""
    computed("put", "a", (x,), into.dtype, into)


def arange(count: int) -> Any:
    """Return 0, 1, …, count - 1 as int64."""
    return computed("arange", "i", (), np.int64, empty((count,), np.int64))


def taken(name: str, x: Any, work: str) -> source.Taken:
    if isinstance(x, np.ndarray):
        return source.Taken("a", name, x.dtype.name)
    return source.Taken("f", name, work) if isinstance(x, float) else source.Taken("i", name, "int64")


def _comparable(x: Any, inputs: Sequence[Any]) -> Any:
    """Convert an int that overflows int64 to a float that compares equally with all elements of the inputs."""
    if x.__class__ is not int or -(2**63) <= x < 2**63:
        return x
    return float(x) if common_type(inputs).kind == "f" else copysign(inf, x)


def _register(name: str, snippet: str, truth: bool) -> None:
    def run(*inputs: Any, out: Any = None, **attrs: Any) -> Any:
        dtype = np.bool_ if truth else common_type(inputs)
        inputs = tuple([_comparable(x, inputs) for x in inputs]) if truth else inputs
        return computed(name, snippet, inputs, dtype, out, attrs)

    kernel(name, DEVICE)(run)


for _name, _snippet in SNIPPETS.items():
    _register(_name, _snippet, False)
for _name, _snippet in TRUTHS.items():
    _register(_name, _snippet, True)


@kernel("sign", DEVICE)
def sign(a: Any) -> Any:
    if a.dtype.kind in "bu":
        return computed("sign", "(a == 0) == 0", (a,), a.dtype)
    return computed(
        "sign", "ti.cast(a > 0, ti.i32) - ti.cast(a < 0, ti.i32)", (a,), a.dtype
    )  # 0 for nan, as in PyTorch


@kernel("where", DEVICE)
def where(a: Any, b: Any, c: Any, *, out: Any = None) -> Any:
    arrays = [x for x in (b, c) if isinstance(x, np.ndarray)]
    dtype = common_type(arrays) if arrays else np.result_type(type(b), type(c))
    b, c = (x if isinstance(x, np.ndarray) else fitting(x, np.dtype(dtype)) for x in (b, c))
    if not isinstance(a, np.ndarray):
        return computed("chosen", "b" if a else "c", (a, b, c), dtype, out)
    return computed("where", "ti.select(a != 0, b, c)", (a, b, c), dtype, out)


for _name, _snippet in {
    "ceil": "ti.ceil(a)",
    "floor": "ti.floor(a)",
    "trunc": "truncated(a)",
    "round": "rounded(a)",
}.items():

    def _rounded(a: Any, *, out: Any = None, name: str = _name, snippet: str = _snippet) -> Any:
        return computed(name, snippet if a.dtype.kind == "f" else "a", (a,), a.dtype, out)

    kernel(_name, DEVICE)(_rounded)


@kernel("kl_div", DEVICE)
def kl_div(a: Any, b: Any, *, log_target: bool) -> Any:
    if log_target:
        return computed("kl_div_of_logs", "ti.exp(b) * (b - a)", (a, b), common_type((a, b)))
    return computed("kl_div", "ti.select(b == 0, 0, b * ti.log(b)) - b * a", (a, b), common_type((a, b)))


@kernel("pow", DEVICE)
def pow(a: Any, b: Any, *, out: Any = None) -> Any:
    dtype = common_type((a, b))
    if isinstance(b, float) or isinstance(a, float) or dtype.kind == "f":
        snippet = "power(a, b)" if current().narrow else "ti.pow(a, b)"
        if is_large_odd(b):
            sign, b = ("*", b - 1.0) if b > 0 else ("/", b + 1.0)
            return computed("pow_of_large_odd", f"{snippet} {sign} a", (a, b), dtype, out)
        return computed("pow", snippet, (a, b), dtype, out)
    return computed("power_of_ints", "power_of_ints(a, b)", (a, b), dtype, out)


@kernel("clamp", DEVICE)
def clamp(a: Any, *, min: float | None, max: float | None, out: Any = None) -> Any:
    given = {name: bound for name, bound in (("low", min), ("high", max)) if bound is not None}
    snippet = clamped("low" if "low" in given else None, "high" if "high" in given else None)
    whole = a.dtype.kind != "f" and all(isinstance(x, int) for x in given.values())
    dtype = a.dtype if a.dtype.kind == "f" or whole else np.result_type(a.dtype, np.float64)
    return computed("clamp", snippet, (a,), dtype, out, {k: x if whole else float(x) for k, x in given.items()})


# Dividing the minimum of an integer dtype by -1 overflows, which traps on the CPU and kills the process.
_DIVISOR = "ti.select((b == 0) | (b == -1), b * 0 + 1, b)"


@kernel("floor_divide", DEVICE)
def floor_divide(a: Any, b: Any, *, out: Any = None) -> Any:
    dtype = common_type((a, b))
    if dtype.kind == "f":
        return computed("floor_divide", "quotient(a, b)", (a, b), dtype, out)
    return computed("floor_divide", f"ti.select(b == -1, a * -1, a // {_DIVISOR})", (a, b), dtype, out)


@kernel("remainder", DEVICE)
def remainder(a: Any, b: Any, *, out: Any = None) -> Any:
    dtype = common_type((a, b))
    return computed("remainder", "modulo(a, b)" if dtype.kind == "f" else f"a % {_DIVISOR}", (a, b), dtype, out)


for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):

    def _bits(a: Any, b: Any, *, out: Any = None, name: str = f"bitwise_{_name}", sign: str = _sign) -> Any:
        return computed(name, f"a {sign} b", (a, b), common_type((a, b)), out)

    kernel(f"bitwise_{_name}", DEVICE)(_bits)


@kernel("signbit", DEVICE)
def signbit(a: Any) -> Any:
    snippet = f"ti.bit_cast(a, ti.i{8 * a.itemsize}) < 0" if a.dtype.kind == "f" else "a < 0"
    return computed("signbit", snippet, (a,), np.bool_)


@kernel("bitwise_not", DEVICE)
def bitwise_not(a: Any) -> Any:
    return computed("bitwise_not", "a == 0" if a.dtype.kind == "b" else "~a", (a,), a.dtype)
