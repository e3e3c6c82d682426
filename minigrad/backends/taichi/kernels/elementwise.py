"""Elementwise kernels: one snippet per operation, and the mapping of arbitrarily strided operands to a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign, gcd, inf
from typing import Any

import numpy as np

from minigrad.backends.numpy import quiet_context
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.copy import copy_kernel, copy_unit
from minigrad.backends.taichi.codegen.snippets import PREDICATES, SNIPPETS
from minigrad.backends.taichi.codegen.strided_walk import StridedWalk, compute_walk
from minigrad.backends.taichi.runtime.array import (
    CACHE_LINE,
    TAICHI,
    CpuArray,
    TaichiArray,
    array_argument,
    empty,
    owned_bytes,
)
from minigrad.backends.taichi.runtime.caches import ArchDict
from minigrad.backends.taichi.runtime.kernel import get_kernel, is_observed
from minigrad.backends.taichi.runtime.launch_plans import allow_plans, call_planned
from minigrad.backends.taichi.runtime.transforms import EXACT_DIVISION_KERNELS
from minigrad.core.dispatch import Kernel, kernel
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.symbolic import apply

__all__ = [
    "arange",
    "array_argument",
    "cast_scalar",
    "copy_into",
    "empty_with_layout_of",
    "evaluate",
    "full",
    "param_of",
    "result_dtype",
    "self_planned",
]

_NO_ATTRS: Mapping[str, Any] = {}


def evaluate(
    name: str, snippet: str, inputs: Sequence[Any], dtype: Any, out: Any = None, attrs: Mapping[str, Any] = _NO_ATTRS
) -> Any:
    """Evaluate a snippet on broadcastable arrays and Python scalars; write to `out`, or to a new array of `dtype`."""
    shape: Any = None
    if out is None:
        dtype, is_dense = np.dtype(dtype), True
    else:
        dtype, shape, is_dense = out.dtype, out.shape, out.address or out.flags.c_contiguous
        inputs = [_copy_if_overlapping(x, out) for x in inputs]
    operands: list[Any] = []
    arrays: list[Any] = []
    types: list[Any] = [dtype]
    for x in inputs:
        if isinstance(x, TaichiArray):
            if x.shape != shape:
                is_dense = is_dense and shape is None
                shape = x.shape
            if not x.address:
                is_dense = is_dense and x.flags.c_contiguous
            arrays.append(x)
            types.append(x.dtype)
        else:
            x = cast_scalar(x, dtype)
            types.append(x.__class__)
        operands.append(x)
    if attrs:
        types += [*attrs, *[x.__class__ for x in attrs.values()]]
    family = _families.get((name, snippet, *types))
    if family is None:
        family = _families[(name, snippet, *types)] = SnippetKernels(name, snippet, operands, dtype, attrs)
    if not is_dense:
        shape = broadcast_shapes(*[x.shape for x in arrays], op=name)
    if out is None:
        out = empty(shape, dtype) if is_dense else empty_with_layout_of(arrays, shape, dtype)
    if not out.size:
        return out
    if is_dense:
        _run_dense(family, operands, out, attrs)
    else:
        walk = compute_walk(out.shape, *[(x.shape, x.strides, x.itemsize) for x in (out, *arrays)])
        if walk.is_flat:
            _run_dense(family, operands, out, attrs)
        else:
            _run_strided(family, walk, operands, out, attrs)
    return out


def _copy_if_overlapping(x: Any, out: Any) -> Any:
    """Return `x`, or a copy of it if writing to `out` would overwrite elements of `x` before they are read."""
    if x is out or not isinstance(x, TaichiArray) or not np.may_share_memory(x, out):
        return x
    same_layout = x.shape == out.shape and x.strides == out.strides and array_argument(x)[0] == array_argument(out)[0]
    return x if same_layout else evaluate("contiguous", "a", (x,), x.dtype, empty(x.shape, x.dtype))


def _run_dense(family: SnippetKernels, operands: Sequence[Any], out: Any, attrs: Mapping[str, Any]) -> None:
    """Compute `out` in memory order. The result and the operands are dense and have the same layout."""
    size = out.size
    out_pointer = array_argument(out)
    args, addresses = [out_pointer], out_pointer[0]
    fills_vectors = size % source.VECTOR_SIZE == 0
    # A vectorised kernel may not write past the end of the block.
    vectorised = family.vectorisable and (fills_vectors or out.address or owned_bytes(out) == out.nbytes)
    for x in operands:
        if isinstance(x, TaichiArray):
            vectorised = vectorised and (fills_vectors or x.address or owned_bytes(x))
            x = array_argument(x)
            addresses |= x[0]
        args.append(x)
    if vectorised and addresses % CACHE_LINE == 0:
        is_inplace = any(x.__class__ is tuple and x[0] == out_pointer[0] for x in args[1:])
        compiled_kernel, size = family.vector_kernel(size, is_inplace)
    else:
        compiled_kernel = family.kernel(0, size <= source.SERIAL_LIMIT)
    compiled_kernel.launch(*args, *attrs.values(), size)


def _run_strided(
    family: SnippetKernels, walk: StridedWalk, operands: Sequence[Any], out: Any, attrs: Mapping[str, Any]
) -> None:
    """Compute `out` from arbitrarily strided operands."""
    if family.is_copy and source.VECTORIZED and _copy_units(walk, operands[0], out):
        return
    args = [array_argument(out)]
    addresses, k = args[0][0], 0
    for x in operands:
        if isinstance(x, TaichiArray):
            x, k = array_argument(x), k + 1
            if walk.vector_strides and walk.vector_strides[k + 1]:
                addresses |= x[0]
        args.append(x)
    width = walk.vector_strides[0] if walk.vector_strides else 0
    vectorisable = family.vectorisable if width == source.VECTOR_SIZE else family.any_width
    if width and vectorisable and addresses % (4 * width) == 0:
        compiled_kernel = family.kernel(walk.vector_strides, out.size <= source.MAX_SERIAL_VECTOR_ELEMENTS)
        sizes = walk.vectors
    else:
        compiled_kernel = family.kernel(walk.dims, out.size <= source.SERIAL_LIMIT)
        sizes = walk.numbers
    compiled_kernel.launch(*args, *attrs.values(), *sizes)


def _copy_units(walk: StridedWalk, x: Any, out: Any) -> bool:
    """Copy to `out` in units of several elements, regardless of dtype. Return False if the strides do not allow it."""
    pointers = array_argument(out), array_argument(x)
    unit = copy_unit(walk.dims, walk.numbers, out.itemsize, gcd(CACHE_LINE, pointers[0][0], pointers[1][0]))
    if unit is None:
        return False
    copy_kernel(walk.dims, unit[0], out.nbytes <= 4 * source.MAX_SERIAL_VECTOR_ELEMENTS).launch(*pointers, *unit[1])
    return True


VECTORISED = -1  # form of a vectorised kernel; a positive form is the number of strided dimensions
NON_TEMPORAL = -2  # vectorised, with non-temporal stores, which bypass the cache


MAX_NUMPY_ELEMENTS = 4096  # up to this number, NumPy's function takes less time than the launch of a kernel
_EXACT_FUNCTIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "sqrt": np.sqrt, "abs": np.abs,
    "neg": np.negative, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip
"""NumPy functions with the same results as the kernels, bit for bit, since IEEE 754 defines them. For small arrays they
replace a launch while nobody observes launches."""


class SnippetKernels:
    """The kernels of a snippet for given operand types, each specialised for a memory layout."""

    __slots__ = (
        "_compute_dtype",
        "_dtype",
        "_kernels",
        "_name",
        "_params",
        "_snippet",
        "any_width",
        "exact",
        "is_copy",
        "out_dtype",
        "vectorisable",
    )

    def __init__(self, name: str, snippet: str, operands: Sequence[Any], dtype: Any, attrs: Mapping[str, Any]) -> None:
        self._name, self._snippet, self._dtype, self.out_dtype = name, snippet, dtype.name, dtype
        floats = [x.dtype.name for x in operands[::-1] if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        self._compute_dtype = floats[0] if floats else "float64"
        params = [param_of(letter, x, self._compute_dtype) for letter, x in zip(source.LETTERS, operands, strict=False)]
        self._params = (*params, *[param_of(letter, x, self._compute_dtype) for letter, x in attrs.items()])
        self._kernels: dict[tuple[Any, bool], Any] = {}
        self.exact = _EXACT_FUNCTIONS.get(name)
        self.is_copy = snippet == "a" and self._params[0][::2] == ("a", self._dtype)
        self.vectorisable = source.can_vectorize(snippet, self._params, self._dtype)
        self.any_width = self.vectorisable and source.is_width_independent(snippet)

    def kernel(self, form: Any, serial: bool) -> Any:
        """Return the kernel for `form`: 0, `VECTORISED` or `NON_TEMPORAL` for contiguous arrays; the number of
        dimensions for strided ones; or the `vector_strides` of a `StridedWalk`, to vectorise along rows."""
        compiled_kernel = self._kernels.get((form, serial))
        if compiled_kernel is None:
            compiled_kernel = self._kernels[form, serial] = get_kernel(self._name, *self.generate_source(form, serial))
            is_row_form = isinstance(form, tuple)
            is_vectorised = form in (VECTORISED, NON_TEMPORAL) or (is_row_form and form[0] == source.VECTOR_SIZE)
            if is_vectorised or (form == 0 and self._fusable_on_gpu):
                compiled_kernel.work = source.Computation(self._snippet, self._params, form[1:] if is_row_form else ())
        return compiled_kernel

    def vector_kernel(self, size: int, is_inplace: bool) -> tuple[Any, int]:
        """Return the vectorised kernel for `size` elements and its number of iterations."""
        form = NON_TEMPORAL if size >= source.CACHE_BYPASS_ELEMENTS and not is_inplace else VECTORISED
        serial = size <= source.MAX_SERIAL_VECTOR_ELEMENTS
        return self._kernels.get((form, serial)) or self.kernel(form, serial), -(-size // source.VECTOR_SIZE)

    @property
    def _fusable_on_gpu(self) -> bool:
        """Whether the kernel targets a GPU and can be fused, since it computes in float32 without exact division."""
        floats = all(x.dtype == "float32" for x in self._params) and self._dtype == self._compute_dtype == "float32"
        return floats and not source.VECTORIZED and f"{self._name}_kernel" not in EXACT_DIVISION_KERNELS

    def generate_source(self, form: Any, serial: bool) -> tuple[str, str]:
        """Return the kernel source and the kinds of its arguments."""
        args = self._name, self._snippet, self._params
        if form in (VECTORISED, NON_TEMPORAL):
            return source.vector_kernel(*args, serial, form == NON_TEMPORAL)
        if isinstance(form, tuple):
            return source.strided_kernel(*args, self._dtype, self._compute_dtype, form[1], serial, form[2:], form[0])
        if form:
            return source.strided_kernel(*args, self._dtype, self._compute_dtype, form, serial)
        return source.flat_kernel(*args, self._dtype, self._compute_dtype, serial)


_families: dict[Any, SnippetKernels] = ArchDict()


def empty_with_layout_of(arrays: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """Allocate an array whose dimensions have the same order in memory as the dimensions of `arrays`, if they agree, as
    in PyTorch."""
    orders = {tuple(sorted(range(x.ndim), key=lambda k, x=x: -x.strides[k])) for x in arrays if x.shape == shape}  # type: ignore[misc]
    if len(orders) != 1:
        return empty(shape, dtype)
    (order,) = orders
    if order == tuple(range(len(shape))):
        return empty(shape, dtype)
    out = empty(tuple([shape[k] for k in order]), dtype)
    return out.transpose([order.index(k) for k in range(len(shape))])


def result_dtype(inputs: Sequence[Any]) -> Any:
    """Return the dtype of the arrays, or their promoted dtype if they differ."""
    dtype = None
    for x in inputs:
        if isinstance(x, np.ndarray) and x.dtype is not dtype:
            if dtype is not None:
                return np.result_type(*[x.dtype for x in inputs if isinstance(x, np.ndarray)])
            dtype = x.dtype
    return dtype


def cast_scalar(x: Any, dtype: Any) -> Any:
    """Convert a Python scalar to the dtype of the other operands. Raises OverflowError if it is out of range."""
    if dtype.kind in "bf":  # operands of a comparison may be out of range
        return x if dtype.kind == "b" or type(x) is float else apply(float, x)
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
        raise OverflowError(f"Python integer {x} out of bounds for {dtype.name}")
    return x


def full(shape: Sequence[int], dtype: Any, value: float = 0) -> Any:
    """Allocate an array filled with `value`."""
    out = empty(tuple(shape), dtype)
    value = cast_scalar(value if out.dtype.kind == "f" else int(value), out.dtype)
    return evaluate("fill", "value", (), out.dtype, out, {"value": value})


def copy_into(target: Any, x: Any) -> None:
    """Broadcast `x` and copy it to an array, which is usually a view."""
    evaluate("copy", "a", (x,), target.dtype, target)


def arange(count: int) -> Any:
    """Return 0, 1, …, count - 1 as int64."""
    return evaluate("arange", "i", (), np.int64, empty((count,), np.int64))


def param_of(name: str, x: Any, compute_dtype: str) -> source.KernelArgument:
    if isinstance(x, np.ndarray):
        return source.KernelArgument("a", name, x.dtype.name)
    if isinstance(x, float):
        return source.KernelArgument("f", name, compute_dtype)
    return source.KernelArgument("i", name, "int64")


def _comparable_scalar(x: Any, inputs: Sequence[Any]) -> Any:
    """Convert an int that overflows int64 to a float that compares equally with all elements of the inputs."""
    if x.__class__ is not int or -(2**63) <= x < 2**63:
        return x
    return float(x) if result_dtype(inputs).kind == "f" else copysign(inf, x)


def _register(name: str, snippet: str, returns_bool: bool) -> None:
    def run(*inputs: Any, out: Any = None, **attrs: Any) -> Any:
        if out is not None:
            return compute(*inputs, out=out, **attrs)
        if not attrs and (result := _evaluate_dense(name, inputs)) is not None:
            return result
        return call_planned(compute, inputs, attrs)

    def compute(*inputs: Any, out: Any = None, **attrs: Any) -> Any:
        dtype = np.bool_ if returns_bool else result_dtype(inputs)
        inputs = tuple([_comparable_scalar(x, inputs) for x in inputs]) if returns_bool else inputs
        result = evaluate(name, snippet, inputs, dtype, out, attrs)
        if not attrs and not any(x.__class__ is not float and x.__class__ is not CpuArray for x in inputs):
            types = [x.dtype if x.__class__ is CpuArray else float for x in inputs]
            family = _families[name, snippet, result.dtype, *types]
            if family.vectorisable:
                _dense_families[name, result_dtype(inputs), *map(type, inputs)] = family
        return result

    allow_plans((compute,))
    self_planned.add(run)
    kernel(name, TAICHI)(run)


self_planned: set[Kernel] = set()  # kernels that decide themselves whether a call is planned
_dense_families: dict[Any, SnippetKernels] = ArchDict()  # by name, dtype and types of the operands


def _evaluate_dense(name: str, inputs: tuple[Any, ...]) -> Any:
    """Evaluate an operation with less overhead, if it has a vectorised kernel, and its operands are floats and arrays
    of one shape and dtype that `empty` allocated. Return None otherwise."""
    first: Any = None
    for x in inputs:
        if x.__class__ is CpuArray:
            if first is None:
                first, dtype, shape = x, x.dtype, x.shape
            elif x.dtype is not dtype or x.shape != shape:
                return None
            if not x.address:
                return None
    family = None if first is None else _dense_families.get((name, dtype, *map(type, inputs)))
    if family is None or not (size := first.size):
        return None
    out = empty(shape, family.out_dtype)
    if family.exact is not None and size <= MAX_NUMPY_ELEMENTS and not is_observed():
        operands = [x.view(np.ndarray) if x.__class__ is CpuArray else x for x in inputs]
        quiet_context.run(family.exact, *operands, out.view(np.ndarray))
        return out
    nbytes = first.nbytes
    args = [(x.address, size, nbytes) if x.__class__ is CpuArray else x for x in inputs]
    compiled_kernel, count = family.vector_kernel(size, False)
    compiled_kernel.launch((out.address, size, size * family.out_dtype.itemsize), *args, count)
    return out


for _name, _snippet in SNIPPETS.items():
    _register(_name, _snippet, False)
for _name, _snippet in PREDICATES.items():
    _register(_name, _snippet, True)
