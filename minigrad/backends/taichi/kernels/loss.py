"""Loss kernels. Class scores are along dimension 1; the other dimensions are positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.loss import REDUCTIONS
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels import wide_lines
from minigrad.backends.taichi.kernels.elementwise import computed, filled, pointer
from minigrad.backends.taichi.kernels.reduction import reduced
from minigrad.backends.taichi.kernels.rows import TOP, along, stretched_to, typed_as, without
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import DEVICE, empty, recorder
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.checks import doubt, look_at, refuse, settle
from minigrad.backends.taichi.runtime.driver import check_rounds
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel, kernels_of
from minigrad.core.errors import ShapeError

__all__: list[str] = []


FEW = 256  # maximum losses for one thread to sum
_TOTAL = """for k in range(n):
    s = s + ti.exp(a_[at + k * step] - top)
"""
# An out-of-bounds class sets the error flag and is read as class 0. Racing writes of the flag store the same value.
_SHARED = """found = b_[i]
counted = (found == ignore) == 0
if found == ignore:
    found = found * 0
if (found < 0) | (found >= n):
    wrong_[0] = 1
    found = found * 0
at_[i] = ti.cast(found, ti.i64)
share_[i] = ti.select(counted, {weight}, 0)
y_[i] = ti.select(counted, ti.cast(part + (base - a_[at + found * step]), {type}) * share_[i], 0)
"""


def _of_classes(
    name: str, formula: str, a: Any, b: Any, c: Any, ignore_index: int, reduction: str, more: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the reduced loss, and the class and weight of each position. Raises ShapeError for an invalid class."""
    divides = REDUCTIONS[reduction]
    y, share = empty(b.shape, a.dtype), empty(b.shape, a.dtype)
    at = empty(b.shape, np.int64)
    complaint = ShapeError, name.removesuffix("_of_total") + ": target is out of bounds"
    look_at(b, a.shape[1], *complaint, but=ignore_index)
    wrong = doubt(*complaint)
    others = {"share": share, "at": at, "wrong": wrong, **more, "a": a, "b": in_rows(b)}
    if c is not None:
        others["c"] = in_rows(c)
    body = formula + _SHARED.replace("{weight}", "1" if c is None else "c_[found]")
    along(name, typed_as(body, a.dtype), a.shape, 1, y, {**others, "ignore": ignore_index})
    settle(wrong, *complaint)
    loss = y if divides is None else _summed(y, share, others["b"], ignore_index, divides)
    return loss, at, share


def _told(shape: tuple[int, ...], dtype: Any, value: float) -> Any:
    """Create a small constant array for a kernel, written by the host if possible."""
    if not source.VECTORIZED or recorder():
        return filled(shape, dtype, value)
    out = empty(shape, dtype)
    out.view(np.ndarray).fill(value)
    return out


_SUMMED = """        s = ti.cast(0, ti.f64)
        whole = ti.cast(0, ti.f64)
        for k in range(n):
            s = s + a_[k]
            whole = whole + b_[k]
        y_[0] = ti.cast(s{share}, {type})
"""
_SHARES = """        for k in range(n):
            b_[k] = ti.cast(ti.select(c_[k] == ignore, 0, b_[k] / whole), {type})
"""


@cached()
def _text_of_sum(dtype: Any, target: str, mean: bool) -> tuple[str, str]:
    work = dtype.name
    takes = [source.Taken("a", "a", work), source.Taken("a", "b", work), source.Taken("a", "c", target)]
    body = typed_as(_SUMMED.replace("{share}", " / whole" if mean else "") + (_SHARES if mean else ""), dtype)
    takes.append(source.Taken("i", "ignore", "int64"))
    return source.wrapped("mean_of_losses" if mean else "sum_of_losses", takes, work, work, ["n"], "1", body, True)


def _summed(losses: Any, share: Any, classes: Any, ignore: int, mean: bool) -> Any:
    """Return the sum of the losses, or their mean, which also divides `share` by the total weight.

    If that is 0, the mean is nan, and so is `share` at positions that are not ignored. One sequential loop suffices for
    few losses; a GPU reduces many in parallel.
    """
    if not source.VECTORIZED and losses.size > FEW:
        total, whole = [reduced("losses", "sum", "a", (x,), None, False, np.float64) for x in (losses, share)]
        if not mean:
            return computed("sum_of_losses", "a", (total,), losses.dtype)
        snippet, attrs = "ti.select(c == ignore, 0, a / b)", {"ignore": ignore}
        computed("shares_of_losses", snippet, (share, whole, classes), share.dtype, share, attrs)
        return computed("mean_of_losses", "a / b", (total, whole), losses.dtype)
    y = empty((), losses.dtype)
    made = compiled("mean_of_losses" if mean else "sum_of_losses", *_text_of_sum(y.dtype, classes.dtype.name, mean))
    check_rounds("losses", losses.size)
    made(pointer(y), pointer(losses), pointer(share), pointer(classes), ignore, losses.size)
    return y


@kernel("cross_entropy", DEVICE)
def cross_entropy(a: Any, b: Any, c: Any, *, ignore_index: int, reduction: str) -> tuple[Any, ...]:
    a, kept = in_rows(a), without(a.shape, 1, True)
    more = {"top": empty(kept, a.dtype), "total": empty(kept, a.dtype)}
    name, formula = "cross_entropy", f"{TOP}{_TOTAL}top_[i] = top\ntotal_[i] = ti.cast(s, {{type}})\n"
    if wide_lines.in_rows_of(a, 1):
        wide_lines.top_and_total(a, **more)
        name, formula = "cross_entropy_of_total", "top = top_[i]\ns = ti.cast(total_[i], ti.f64)\n"
    formula += "part = ti.log(s)\nbase = top\n"
    made = _of_classes(name, formula, a, b, c, ignore_index, reduction, more)
    return (*made, more["top"], more["total"])


@kernel("nll_loss", DEVICE)
def nll_loss(a: Any, b: Any, c: Any, *, ignore_index: int, reduction: str) -> tuple[Any, ...]:
    return _of_classes("nll_loss", "part = {type}(0.0)\nbase = part\n", in_rows(a), b, c, ignore_index, reduction, {})


_BACKWARD = """top = top_[i]
scale = up_[i * ups] * share_[i * shares]
by = scale / total_[i]
for k in range(n):
    y_[at + k * step] = ti.cast(ti.exp(a_[at + k * step] - top) * by, {type})
y_[at + at_[i] * step] = ti.cast(y_[at + at_[i] * step] - scale, {type})
"""
_AT = """scale = up_[i * ups] * share_[i * shares]
y_[at + at_[i] * step] = ti.cast(y_[at + at_[i] * step] - scale, {type})
"""


@kernel("cross_entropy_backward", DEVICE)
def cross_entropy_backward(up: Any, a: Any, at: Any, share: Any, top: Any, total: Any) -> Any:
    up = up if isinstance(up, np.ndarray) else _told((), share.dtype, up)
    y = empty(a.shape, np.result_type(a.dtype, up.dtype, share.dtype))
    up, share = (in_rows(x) if x.size == 1 else stretched_to(x, at.shape) for x in (up, share))
    others = {"up": up, "share": share, "at": in_rows(at)}
    scores = {"a": in_rows(a), "top": in_rows(top), "total": in_rows(total)}
    name, body = "cross_entropy_backward", _BACKWARD
    if wide_lines.in_rows_of(scores["a"], 1) and all(map(wide_lines.aligned, (y, top, total))):
        by = computed("div", "a / b", (share.reshape(-1, 1), total.reshape(-1, 1)), y.dtype)
        by = computed("mul", "a * b", (up.reshape(-1, 1), by), y.dtype)
        ones = {"m": scores["top"], "b": by}
        wide_lines.rows(name, {"a": scores["a"]}, y, wide_lines.Line("exp16(a - m) * b"), ones)
        name, body, scores = f"{name}_at", _AT, {}
    steps = {"ups": int(up.size > 1), "shares": int(share.size > 1)}
    along(name, typed_as(body, y.dtype), a.shape, 1, y, {**others, **scores, **steps})
    return y


_SOFT = """s = ti.log(s)
loss = ti.cast(0, ti.f64)
for k in range(n):
    loss = loss + b_[at + k * step] * (s - (a_[at + k * step] - top))
y_[i] = ti.cast(loss, {type})
"""


@kernel("soft_cross_entropy", DEVICE)
def soft_cross_entropy(a: Any, b: Any) -> Any:
    y = empty(without(a.shape, 1), np.result_type(a, b))
    body = typed_as(TOP + _TOTAL + _SOFT, y.dtype)
    along("soft_cross_entropy", body, a.shape, 1, y, {"a": in_rows(a), "b": stretched_to(b, a.shape)})
    return y


@kernel("binary_cross_entropy", DEVICE)
def binary_cross_entropy(a: Any, b: Any) -> Any:
    outside = computed("outside", "((a >= 0) & (a <= 1)) == 0", (a,), np.bool_)
    complaint = ValueError, "binary_cross_entropy: all elements of input should be between 0 and 1"
    refuse(a, lambda numbers: ~((numbers >= 0) & (numbers <= 1)), *complaint)
    wrong = doubt(*complaint)
    found = kernels_of("any")[DEVICE](outside, dim=None, keepdim=False)
    computed("noted", "ti.max(a, b)", (wrong, found), wrong.dtype, wrong)
    settle(wrong, *complaint)
    snippet = "(b - 1) * ti.max(log1p(a * -1), -100.0) - b * ti.max(ti.log(a), -100.0)"
    return computed("binary_cross_entropy", snippet, (a, b), a.dtype)
