"""Normalisation and dropout. `norm` is a `Norm`: the shape of the input's view, and the reduced dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source, wide
from minigrad.backends.taichi.kernels import wide_lines
from minigrad.backends.taichi.kernels.elementwise import computed, filled, pointer, taken
from minigrad.backends.taichi.kernels.reduction import reduced
from minigrad.backends.taichi.kernels.rows import stretched_to
from minigrad.backends.taichi.kernels.shape import in_rows, reshape
from minigrad.backends.taichi.runtime.array import DEVICE, current, empty
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def _share(name: str, snippet: str, inputs: tuple[Any, ...], norm: Any, join: str = "sum", dtype: Any = None) -> Any:
    """Return the mean of a snippet, or of its squares, over the normalised dimensions, which are kept."""
    count = {"n": float(prod([norm.shape[k] for k in norm.dim]))}
    return _summed(name, snippet, inputs, norm.dim, norm, "s / n", count, join, dtype)


def _summed(
    name: str,
    snippet: str,
    inputs: tuple[Any, ...],
    dims: tuple[int, ...],
    norm: Any,
    end: str,
    numbers: Any,
    join: str = "sum",
    dtype: Any = None,
) -> Any:
    """Sum over dimensions, which are kept: first over the last one, if it is long, and then over the others.

    Each line of the first sum is then contiguous, with one element of each array broadcast along it.
    """
    dtype, last = dtype or _type(*inputs), len(norm.shape) - 1
    if len(dims) > 1 and last in dims and norm.shape[last] >= wide.LEAST:
        shape = (*norm.shape[:-1], 1)
        inputs = tuple([x if x.shape == norm.shape else stretched_to(x, shape) for x in inputs])
        inputs = (reduced(f"{name}_lines", join, snippet, inputs, (last,), True, np.float64),)
        snippet, join, dims = "a", "sum", tuple([k for k in dims if k != last])
    return reduced(name, join, snippet, inputs, dims, True, dtype, end, numbers)


def _type(*arrays: Any) -> Any:
    types = [x.dtype for x in arrays if x is not None]
    return types[0] if all(one is types[0] for one in types) else np.result_type(*types)


def _computed(name: str, snippet: str, inputs: list[Any], shape: tuple[int, ...]) -> Any:
    """Evaluate a snippet of arrays broadcast to `shape`."""
    y = empty(shape, _type(*inputs))
    return y if wide_lines.broadcast(name, snippet, inputs, y) else computed(name, snippet, inputs, y.dtype, y)


def _aligned(weight: Any, norm: Any) -> Any:
    return reshape(weight, shape=tuple(size if k in norm.along else 1 for k, size in enumerate(norm.shape)))


def _standardised(a: Any, weight: Any, bias: Any, norm: Any) -> tuple[Any, Any, Any, Any]:
    """Return the output, mean, variance and rstd; the last three keep their dimensions."""
    x = reshape(a, shape=norm.shape)
    mean = _share("average", "a", (x,), norm) if norm.centred else filled((), a.dtype)
    name, snippet, inputs = ("variance", "a - b", (x, mean)) if norm.centred else ("square", "a", (x,))
    var = _share(name, snippet, inputs, norm, "squares", a.dtype if current().narrow else np.float64)
    rstd = computed("rstd", "1.0 / ti.sqrt(a + eps)", (var,), a.dtype, attrs={"eps": float(norm.eps)})
    result, operands = "(a - b) * c", [x, mean, rstd]
    for given, sign in ((weight, "*"), (bias, "+")):
        if given is not None:
            result += f" {sign} {source.LETTERS[len(operands)]}"
            operands.append(_aligned(given, norm))
    return _computed("standardised", result, operands, norm.shape).reshape(a.shape), mean, var, rstd


# Rows of whole vectors in one launch: three passes over a row in the cache compute its mean, variance and output.
_ADDED = """        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])
        for k in range(n):
            x = {x}
            sums = sums + ti.Vector([{taken} for j in range(16)])
"""
_ONE = "ti.cast(x[j], ti.f64)"
_MEAN = _ADDED.format(x="a_[i * n + k]", taken=_ONE)
_MEAN += "        mean = ti.cast(sums.sum() / count, ti.f32)\n        mean_[i] = mean\n"
_ROW = """        rstd = ti.cast(1.0 / ti.sqrt(sums.sum() / count + eps), ti.f32)
        rstd_[i] = rstd
        for k in range(n):
            y_[i * n + k] = {result}
"""


@cached()
def _of_rows(centred: bool, given: tuple[str, ...], serial: bool) -> Any:
    x = "(a_[i * n + k] - mean)" if centred else "a_[i * n + k]"
    result = f"{x} * rstd" + " * weight_[k]" * ("weight" in given) + " + bias_[k]" * ("bias" in given)
    body = (_MEAN if centred else "") + _ADDED.format(x=x, taken=f"{_ONE} * {_ONE}") + _ROW.format(result=result)
    arguments = [("y_", wide.VECTOR), ("a_", wide.VECTOR), ("rstd_", wide.NUMBER)]
    arguments += [("mean_", wide.NUMBER)] if centred else []
    arguments += [(f"{x}_", wide.VECTOR) for x in given] + [("count", "ti.f64"), ("eps", "ti.f64")]
    text = wide.text_of("norm_of_rows", [*arguments, ("lines", "ti.i32"), ("n", "ti.i32")], "lines", body, serial)
    return compiled("norm_of_rows", *text)


def _rows_normed(a: Any, given: dict[str, Any], norm: Any) -> tuple[Any, Any, Any] | None:
    """Normalise rows of whole vectors; return the output, mean and rstd, or None if the layout does not match."""
    n, last = norm.shape[-1], len(norm.shape) - 1
    whole = norm.dim == norm.along == (last,) and a.size and n % 16 == 0
    if not whole or not all(wide_lines.aligned(x) and x.flags.c_contiguous for x in (a, *given.values())):
        return None
    y, shape = empty(a.shape, a.dtype), (*norm.shape[:-1], 1)
    rstd, mean = empty(shape, a.dtype), empty(shape, a.dtype) if norm.centred else filled((), a.dtype)
    arrays = (y, a, rstd, *([mean] if norm.centred else []), *given.values())
    made = _of_rows(norm.centred, tuple(given), a.size <= wide_lines.SERIAL_ROWS)
    made.launch(*map(pointer, arrays), float(n), norm.eps, a.size // n, n // 16)
    return y, mean, rstd


@kernel("layer_norm", DEVICE)
@kernel("group_norm", DEVICE)
@kernel("rms_norm", DEVICE)
def norm(a: Any, weight: Any, bias: Any = None, *, norm: Any) -> tuple[Any, Any, Any]:
    found = _rows_normed(a, {k: x for k, x in (("weight", weight), ("bias", bias)) if x is not None}, norm)
    if found is not None:
        return found
    y, mean, _, rstd = _standardised(a, weight, bias, norm)
    return y, mean, rstd


@kernel("batch_norm", DEVICE)
@kernel("instance_norm", DEVICE)
def norm_with_statistics(a: Any, weight: Any, bias: Any, *, norm: Any) -> tuple[Any, ...]:
    y, mean, var, rstd = _standardised(a, weight, bias, norm)
    return y, mean, computed("as_type", "a", (var,), a.dtype), mean, rstd


@kernel("norm_backward", DEVICE)
def norm_backward(u: Any, a: Any, weight: Any, mean: Any, rstd: Any, *, norm: Any) -> Any:
    x, h = reshape(a, shape=norm.shape), reshape(u, shape=norm.shape)
    if weight is not None:
        h = _computed("weighted", "a * b", [h, _aligned(weight, norm)], norm.shape)
    inputs = [h, x, mean, rstd, _share("norm_share", "a * ((b - c) * d)", (h, x, mean, rstd), norm)]
    snippet = "(a - (b - c) * d * e) * d"
    if norm.centred:
        inputs.append(_share("norm_mean", "a", (h,), norm))
        snippet = "(a - (b - c) * d * e - f) * d"
    return _computed("norm_backward", snippet, inputs, norm.shape).reshape(a.shape)


@kernel("norm_weight", DEVICE)
def norm_weight(u: Any, a: Any, mean: Any, rstd: Any, *, to: tuple[int, ...], norm: Any) -> Any:
    inputs = (reshape(u, shape=norm.shape), reshape(a, shape=norm.shape), mean, rstd)
    rest = tuple(k for k in range(len(norm.shape)) if k not in norm.along)
    return _summed("norm_weight", "a * ((b - c) * d)", inputs, rest, norm, "s", {}).reshape(to)


# Four elements share a block of random words: Philox4x32-10, as in `minigrad.backends.numpy.random`.
_ROUNDS = 10
_DROPOUT = f"""        w0, w1, w2, w3 = ti.u64(i), ti.u64(0), ti.u64(0), ti.u64(0)
        k0, k1 = ti.u64(low), ti.u64(high)
        for _ in ti.static(range({_ROUNDS})):
            p0 = w0 * ti.u64(0xD2511F53)
            p1 = w2 * ti.u64(0xCD9E8D57)
            w0, w1, w2, w3 = (p1 >> 32) ^ w1 ^ k0, p1 & mask, (p0 >> 32) ^ w3 ^ k1, p0 & mask
            k0, k1 = (k0 + ti.u64(0x9E3779B9)) & mask, (k1 + ti.u64(0xBB67AE85)) & mask
"""
_KEPT = """        if 4 * i + {k} < n:
            kept = ti.cast(w{k} >> 8, ti.f32) * ti.f32(5.9604644775390625e-08) >= ti.cast(p, ti.f32)
            y_[4 * i + {k}] = ti.select(kept, a_[4 * i + {k}] / (1 - p), 0)
"""


@kernel("dropout", DEVICE)
def dropout(a: Any, *, p: float, key: int) -> Any:
    y, work = empty(a.shape, a.dtype), a.dtype.name
    if not a.size:
        return y
    given = {"a": in_rows(a), "p": float(p), "low": key & 0xFFFFFFFF, "high": key >> 32}
    takes = [taken(name, x, work) for name, x in given.items()]
    body = "        mask = ti.u64(0xFFFFFFFF)\n" + _DROPOUT + "".join(_KEPT.replace("{k}", str(k)) for k in range(4))
    made = source.wrapped("dropout", takes, work, work, ["n"], "(n + 3) // 4", body, a.size <= source.SERIAL)
    compiled("dropout", *made)(pointer(y), pointer(given["a"]), p, given["low"], given["high"], a.size)
    return y
