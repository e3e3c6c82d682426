"""Stable sorting. nan sorts as the largest value.

A 32-bit key and its index form a unique 64-bit int, a *pair*, with the order of the keys. Short lines are merge sorted.
Long lines are radix sorted in chunks, by the base-256 digits of their keys, and adjacent chunks are then merged. The
output of a merge is split into independent pieces, whose start in both inputs is found by binary search (merge path).
64-bit keys are sorted by their low halves and then, stably, by their high halves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import computed, pointer
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import DEVICE, empty
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel, kernels_of

__all__ = ["order", "taken"]

RUN = 8  # pairs per run of the insertion sort
DEALT = 512  # minimum length of a line for the radix sort
STRETCH = 32768  # pairs per radix sort chunk: they fit in the cache
PIECE = 8192  # pairs per merge task
SHORT = 64  # the same per GPU thread
_LAST, _PLACE = "ti.i64(9223372036854775807)", "ti.i64(4294967295)"


def _key(bits: int, most: str, none: str) -> str:
    """Return an expression that maps floats to ints in the same order: -0, which would be -1, to 0, and nan last."""
    plain = f"ti.bit_cast(a, ti.i{bits})"
    # flip all bits of negative floats but the sign, arithmetically, since CUDA compilers miscompile `^` here
    ordered = f"ti.select({plain} < 0, ti.i{bits}(-2) - {most} - {plain}, {plain})"
    return f"ti.select((a == a) == 0, {most}, ti.select({ordered} == -1, {none}, {ordered}))"


_KEYS = {"float32": _key(32, "2147483647", "0"), "float64": _key(64, _LAST, "ti.i64(0)")}
_HALVES = {  # the halves of a 64-bit key, each as a signed int
    "low": f"((a & {_PLACE}) - ti.i64(2147483648))",
    "high": "(a >> ti.i64(32))",
}


def order(a: Any, descending: bool = False) -> Any:
    """Return the int64 indices that sort lines, (lines, elements), of the same shape."""
    a = in_rows(a)
    key = _KEYS.get(a.dtype.name, "a")
    if a.itemsize < 8:
        return _places(_sorted(_pairs(a, f"ti.i64({key})", descending)))
    if a.dtype.kind == "f":
        a = computed("ordered", key, (a,), np.int64)
    first = _places(_sorted(_pairs(a, _HALVES["low"], descending)))
    second = _places(_sorted(_pairs(taken(a, first), _HALVES["high"], descending)))
    return taken(first, second)


def taken(lines: Any, at: Any) -> Any:
    """Gather from each line at `at`. (Uses the registry, because indexing itself sorts on a GPU.)"""
    return kernels_of("gather")[DEVICE](lines, at, dim=1)


def _pairs(a: Any, key: str, descending: bool) -> Any:
    """Return the key and index of each element, packed into one int64."""
    key = f"(ti.i64(-1) - {key})" if descending else key
    return computed("pairs", f"({key} << ti.i64(32)) | (i % size)", (a,), np.int64, None, {"size": a.shape[1]})


def _places(pairs: Any) -> Any:
    return computed("places", f"a & {_PLACE}", (pairs,), np.int64)


def _sorted(pairs: Any) -> Any:
    """Sort the lines of `pairs`, which are overwritten."""
    lines, count = pairs.shape
    if count < 2:
        return pairs
    serial = pairs.size <= source.SERIAL
    other = empty(pairs.shape, pairs.dtype)
    if not source.VECTORIZED:
        _runs()(pointer(pairs), lines, -(-count // RUN), count)
        return _merged(pairs, other, RUN, False)
    if count < DEALT:
        _merging(serial)(pointer(pairs), pointer(other), lines, count)
        return other if (-(-count // RUN) - 1).bit_length() % 2 else pairs
    stretches = -(-count // STRETCH)
    counts = empty((lines * stretches, 4, 256), np.int32)
    _dealing(serial)(pointer(pairs), pointer(other), pointer(counts), lines, stretches, count)
    return _merged(pairs, other, STRETCH, serial)


def _merged(pairs: Any, other: Any, run: int, serial: bool) -> Any:
    """Merge the sorted runs, of `run` pairs, of each line; `other` is a workspace of the same shape."""
    lines, count = pairs.shape
    while run < count:
        piece = min(PIECE if source.VECTORIZED else SHORT, 2 * run)
        _pieces(serial)(pointer(other), pointer(pairs), lines, -(-count // piece), count, run, piece)
        pairs, other, run = other, pairs, run * 2
    return pairs


# Insert element k into the sorted elements from `start` on.
_INSERT = """            pair = x_[k]
            j = k
            while (j > start) & (x_[ti.max(j - 1, 0)] > pair):
                x_[j] = x_[j - 1]
                j -= 1
            x_[j] = pair
"""


@cached()
def _runs() -> Any:
    """Compile the insertion sort of runs, one GPU thread per run."""
    text = f"""@ti.kernel
def sort_runs_kernel(x_: {_PAIRS}, lines: ti.i32, runs: ti.i32, count: ti.i32):
    for i in range(lines * runs):
        start = i // runs * count + i % runs * {RUN}
        for k in range(start + 1, ti.min(start + {RUN}, i // runs * count + count)):
{_INSERT}"""
    return compiled("sort_runs", text, "aiii")


# Merge the ranges [i_first, i_end) and [j_first, j_end) of x into [first, end) of y.
_MERGE = f"""@ti.func
def merge(y: ti.template(), x: ti.template(), first, end, i_first, i_end, j_first, j_end):
    i = i_first
    j = j_first
    for k in range(first, end):
        left = ti.select(i < i_end, x[ti.min(i, i_end - 1)], {_LAST})
        right = ti.select(j < j_end, x[ti.min(j, j_end - 1)], {_LAST})
        y[k] = ti.min(left, right)
        from_left = ti.cast(left < right, ti.i32)
        i += from_left
        j += 1 - from_left


"""
_PAIRS = source.array_of("int64")


@cached()
def _merging(serial: bool) -> Any:
    """Compile the merge sort of short lines: insertion sort of runs, then merging, between x and y; after an odd number
    of rounds the result is in y."""
    text = f"""{_MERGE}@ti.kernel
def sort_short_kernel(x_: {_PAIRS}, y_: {_PAIRS}, lines: ti.i32, count: ti.i32):
{source.ONCE * serial}    for i in range(lines):
        low = i * count
        high = low + count
        for k in range(low, high):
            start = low + (k - low) // {RUN} * {RUN}
{_INSERT}        run = {RUN}
        turn = 0
        while run < high - low:
            for r in range((high - low + 2 * run - 1) // (2 * run)):
                first = low + r * 2 * run
                middle, end = ti.min(first + run, high), ti.min(first + 2 * run, high)
                if turn == 0:
                    merge(y_, x_, first, end, first, middle, middle, end)
                else:
                    merge(x_, y_, first, end, first, middle, middle, end)
            run *= 2
            turn = 1 - turn
"""
    return compiled("sort_short", text, "aaii")


# Scatter pairs by digit; `counts` holds the next position of each digit.
_DEAL = """@ti.func
def deal(y: ti.template(), x: ti.template(), counts: ti.template(), low, high, begins, shift, flip):
    for k in range(low, high):
        pair = x[k]
        digit = begins + (ti.cast((pair >> shift) & ti.i64(255), ti.i32) ^ flip)
        at = counts[digit]
        counts[digit] = at + 1
        y[at] = pair


"""


@cached()
def _dealing(serial: bool) -> Any:
    """Compile the LSD radix sort of the chunks of a line, by the four digits of the keys; it skips constant digits."""
    text = f"""{_DEAL}@ti.kernel
def sort_digits_kernel(
    x_: {_PAIRS}, y_: {_PAIRS}, counts_: {source.array_of("int32")}, lines: ti.i32, stretches: ti.i32, count: ti.i32
):
{source.ONCE * serial}    for i in range(lines * stretches):
        low = i // stretches * count + i % stretches * {STRETCH}
        high = ti.min(low + {STRETCH}, i // stretches * count + count)
        for k in range(i * 1024, i * 1024 + 1024):
            counts_[k] = 0
        for k in range(low, high):
            key = x_[k] >> ti.i64(32)
            for d in ti.static(range(4)):
                at = i * 1024 + d * 256 + (ti.cast((key >> ti.i64(8 * d)) & ti.i64(255), ti.i32) ^ (d // 3 * 128))
                counts_[at] = counts_[at] + 1
        turn = 0
        for d in range(4):
            begins, shift, flip = i * 1024 + d * 256, ti.cast(32 + 8 * d, ti.i64), d // 3 * 128
            digit = ti.cast((x_[low] >> shift) & ti.i64(255), ti.i32) ^ flip
            if counts_[begins + digit] != high - low:
                total = low
                for k in range(begins, begins + 256):
                    there = counts_[k]
                    counts_[k] = total
                    total += there
                if turn == 0:
                    deal(y_, x_, counts_, low, high, begins, shift, flip)
                else:
                    deal(x_, y_, counts_, low, high, begins, shift, flip)
                turn = 1 - turn
        if turn == 1:
            for k in range(low, high):
                x_[k] = y_[k]
"""
    return compiled("sort_digits", text, "aaaiii")


@cached()
def _pieces(serial: bool) -> Any:
    """Compile the merge of adjacent sorted runs, of `run` pairs, from x to y, in pieces within two runs."""
    text = f"""{_MERGE}@ti.kernel
def sort_pieces_kernel(
    y_: {_PAIRS}, x_: {_PAIRS}, lines: ti.i32, pieces: ti.i32, count: ti.i32, run: ti.i32, piece: ti.i32
):
{source.ONCE * serial}    for i in range(lines * pieces):
        line = i // pieces * count
        begin = i % pieces * piece
        first = line + begin // (2 * run) * (2 * run)
        middle, end = ti.min(first + run, line + count), ti.min(first + 2 * run, line + count)
        ahead = line + begin - first
        low, high = ti.max(0, ahead - (end - middle)), ti.min(ahead, middle - first)
        while low < high:
            half = (low + high) // 2
            if x_[first + half] < x_[middle + ahead - half - 1]:
                low = half + 1
            else:
                high = half
        stop = ti.min(line + begin + piece, end)
        merge(y_, x_, line + begin, stop, first + low, middle, middle + ahead - low, end)
"""
    return compiled("sort_pieces", text, "aaiiiii")


def _lines(a: Any, dim: int) -> Any:
    """Return the lines of `a` along `dim` as rows."""
    a = in_rows(np.moveaxis(a, dim, -1))
    return a.reshape(-1 if a.size else 0, a.shape[-1])


def _back(lines: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return rows as an array of `shape`, in which they are the lines along `dim`."""
    rest = [n for k, n in enumerate(shape) if k != dim]
    out = np.moveaxis(lines.reshape(*rest, shape[dim]), -1, dim)
    return in_rows(out)


@kernel("sort", DEVICE)
def sort(a: Any, *, dim: int, descending: bool) -> tuple[Any, Any]:
    values, at = topk(a, k=a.shape[dim], dim=dim, largest=descending)
    return values, at


@kernel("topk", DEVICE)
def topk(a: Any, *, k: int, dim: int, largest: bool) -> tuple[Any, Any]:
    shape = (*a.shape[:dim], k, *a.shape[dim + 1 :])
    if 0 in shape:
        return empty(shape, a.dtype), empty(shape, np.int64)
    lines = _lines(a, dim)
    at = in_rows(order(lines, largest)[:, :k])
    return _back(taken(lines, at), shape, dim), _back(at, shape, dim)
