"""Stable sorting. NaN is ordered after all other values.

A 32-bit key and its index are packed into a unique 64-bit int, a *pair*, which sorts by key. Short lines are merge
sorted. Long lines are radix sorted in chunks, by the base-256 digits of their keys, and adjacent chunks are then
merged. The output of a merge is split into independent pieces, whose start in both inputs is found by binary search
(merge path). 64-bit keys are sorted by their low halves and then, stably, by their high halves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import array_argument, evaluate
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import get_kernels, kernel

__all__ = ["argsort_lines", "gather_lines"]

RUN_LENGTH = 8  # number of pairs per run of the insertion sort
MIN_RADIX_LENGTH = 512  # minimum length of a line for the radix sort
CHUNK_LENGTH = 32768  # number of pairs per radix sort chunk, which fits in the cache
MERGE_LENGTH = 8192  # number of pairs per merge task
GPU_MERGE_LENGTH = 64  # number of pairs that one GPU thread merges
_MAX_PAIR, _INDEX_MASK = "ti.i64(9223372036854775807)", "ti.i64(4294967295)"


def _float_key(bits: int, max_int: str, zero: str) -> str:
    """Return an expression that maps floats to ints of the same order. It maps -0 to 0, and NaN to the largest int."""
    plain = f"ti.bit_cast(a, ti.i{bits})"
    # Flip all bits of negative floats except the sign. CUDA compilers miscompile `^` here, so arithmetic is used.
    ordered = f"ti.select({plain} < 0, ti.i{bits}(-2) - {max_int} - {plain}, {plain})"
    return f"ti.select((a == a) == 0, {max_int}, ti.select({ordered} == -1, {zero}, {ordered}))"


_KEYS = {"float32": _float_key(32, "2147483647", "0"), "float64": _float_key(64, _MAX_PAIR, "ti.i64(0)")}
_HALVES = {  # the halves of a 64-bit key, each as a signed int
    "low": f"((a & {_INDEX_MASK}) - ti.i64(2147483648))",
    "high": "(a >> ti.i64(32))",
}


def argsort_lines(a: Any, descending: bool = False) -> Any:
    """Return the int64 indices that sort each line of an array of shape (lines, elements), in the same shape."""
    a = as_contiguous(a)
    key = _KEYS.get(a.dtype.name, "a")
    if a.itemsize < 8:
        return _pair_indices(_sort_pairs(_make_pairs(a, f"ti.i64({key})", descending)))
    if a.dtype.kind == "f":
        a = evaluate("float_sort_keys", key, (a,), np.int64)
    first = _pair_indices(_sort_pairs(_make_pairs(a, _HALVES["low"], descending)))
    second = _pair_indices(_sort_pairs(_make_pairs(gather_lines(a, first), _HALVES["high"], descending)))
    return gather_lines(first, second)


def gather_lines(lines: Any, indices: Any) -> Any:
    """Gather elements from each line at `indices`. The kernel is looked up in the registry, since the indexing module
    itself sorts on a GPU."""
    return get_kernels("gather")[TAICHI](lines, indices, dim=1)


def _make_pairs(a: Any, key: str, descending: bool) -> Any:
    """Return the key and index of each element, packed into one int64."""
    key = f"(ti.i64(-1) - {key})" if descending else key
    return evaluate(
        "pack_sort_pairs", f"({key} << ti.i64(32)) | (i % size)", (a,), np.int64, None, {"size": a.shape[1]}
    )


def _pair_indices(pairs: Any) -> Any:
    return evaluate("pair_indices", f"a & {_INDEX_MASK}", (pairs,), np.int64)


def _sort_pairs(pairs: Any) -> Any:
    """Return the sorted lines of `pairs`. The contents of `pairs` are overwritten."""
    lines, count = pairs.shape
    if count < 2:
        return pairs
    serial = pairs.size <= source.SERIAL_LIMIT
    workspace = empty(pairs.shape, pairs.dtype)
    if not source.VECTORIZED:
        _run_sort_kernel()(array_argument(pairs), lines, -(-count // RUN_LENGTH), count)
        return _merge_runs(pairs, workspace, RUN_LENGTH, False)
    if count < MIN_RADIX_LENGTH:
        _merge_sort_kernel(serial)(array_argument(pairs), array_argument(workspace), lines, count)
        return workspace if (-(-count // RUN_LENGTH) - 1).bit_length() % 2 else pairs
    chunks = -(-count // CHUNK_LENGTH)
    counts = empty((lines * chunks, 4, 256), np.int32)
    _radix_sort_kernel(serial)(
        array_argument(pairs), array_argument(workspace), array_argument(counts), lines, chunks, count
    )
    return _merge_runs(pairs, workspace, CHUNK_LENGTH, serial)


def _merge_runs(pairs: Any, workspace: Any, run: int, serial: bool) -> Any:
    """Merge the sorted runs of each line, which have `run` pairs each. `workspace` has the same shape as `pairs`."""
    lines, count = pairs.shape
    while run < count:
        piece = min(MERGE_LENGTH if source.VECTORIZED else GPU_MERGE_LENGTH, 2 * run)
        _merge_kernel(serial)(
            array_argument(workspace), array_argument(pairs), lines, -(-count // piece), count, run, piece
        )
        pairs, workspace, run = workspace, pairs, run * 2
    return pairs


# Insert element k into the sorted elements from `start` on.
_INSERT = """            pair = x_[k]
            j = k
            while (j > start) & (x_[ti.max(j - 1, 0)] > pair):
                x_[j] = x_[j - 1]
                j -= 1
            x_[j] = pair
"""


@arch_cache()
def _run_sort_kernel() -> Any:
    """Return the kernel that sorts runs by insertion, with one GPU thread per run."""
    code = f"""@ti.kernel
def sort_runs_kernel(x_: {_PAIRS}, lines: ti.i32, runs: ti.i32, count: ti.i32):
    for i in range(lines * runs):
        start = i // runs * count + i % runs * {RUN_LENGTH}
        for k in range(start + 1, ti.min(start + {RUN_LENGTH}, i // runs * count + count)):
{_INSERT}"""
    return get_kernel("sort_runs", code, "aiii")


# Merge the ranges [i_first, i_end) and [j_first, j_end) of x into [first, end) of y.
_MERGE = f"""@ti.func
def merge(y: ti.template(), x: ti.template(), first, end, i_first, i_end, j_first, j_end):
    i = i_first
    j = j_first
    for k in range(first, end):
        left = ti.select(i < i_end, x[ti.min(i, i_end - 1)], {_MAX_PAIR})
        right = ti.select(j < j_end, x[ti.min(j, j_end - 1)], {_MAX_PAIR})
        y[k] = ti.min(left, right)
        from_left = ti.cast(left < right, ti.i32)
        i += from_left
        j += 1 - from_left


"""
_PAIRS = source.array_annotation("int64")


@arch_cache()
def _merge_sort_kernel(serial: bool) -> Any:
    """Return the merge sort kernel for short lines. Runs are sorted by insertion, then merged back and forth between x
    and y. After an odd number of rounds the result is in y."""
    code = f"""{_MERGE}@ti.kernel
def merge_sort_kernel(x_: {_PAIRS}, y_: {_PAIRS}, lines: ti.i32, count: ti.i32):
{source.SERIALIZE * serial}    for i in range(lines):
        low = i * count
        high = low + count
        for k in range(low, high):
            start = low + (k - low) // {RUN_LENGTH} * {RUN_LENGTH}
{_INSERT}        run = {RUN_LENGTH}
        buffer = 0
        while run < high - low:
            for r in range((high - low + 2 * run - 1) // (2 * run)):
                first = low + r * 2 * run
                middle, end = ti.min(first + run, high), ti.min(first + 2 * run, high)
                if buffer == 0:
                    merge(y_, x_, first, end, first, middle, middle, end)
                else:
                    merge(x_, y_, first, end, first, middle, middle, end)
            run *= 2
            buffer = 1 - buffer
"""
    return get_kernel("merge_sort", code, "aaii")


# Scatter pairs by digit; `counts` contains the next position for each digit.
_SCATTER_DIGITS = """@ti.func
def scatter_digits(y: ti.template(), x: ti.template(), counts: ti.template(), low, high, bucket_start, shift, flip):
    for k in range(low, high):
        pair = x[k]
        digit = bucket_start + (ti.cast((pair >> shift) & ti.i64(255), ti.i32) ^ flip)
        index = counts[digit]
        counts[digit] = index + 1
        y[index] = pair


"""


@arch_cache()
def _radix_sort_kernel(serial: bool) -> Any:
    """Return the kernel that sorts each chunk of a line by LSD radix sort, over the four digits of the keys. Digits
    that are equal in all keys are skipped."""
    code = f"""{_SCATTER_DIGITS}@ti.kernel
def radix_sort_kernel(
    x_: {_PAIRS}, y_: {_PAIRS}, counts_: {source.array_annotation("int32")}, lines: ti.i32, chunks: ti.i32,
    count: ti.i32
):
{source.SERIALIZE * serial}    for i in range(lines * chunks):
        low = i // chunks * count + i % chunks * {CHUNK_LENGTH}
        high = ti.min(low + {CHUNK_LENGTH}, i // chunks * count + count)
        for k in range(i * 1024, i * 1024 + 1024):
            counts_[k] = 0
        for k in range(low, high):
            key = x_[k] >> ti.i64(32)
            for d in ti.static(range(4)):
                index = i * 1024 + d * 256 + (ti.cast((key >> ti.i64(8 * d)) & ti.i64(255), ti.i32) ^ (d // 3 * 128))
                counts_[index] = counts_[index] + 1
        buffer = 0
        for d in range(4):
            bucket_start, shift, flip = i * 1024 + d * 256, ti.cast(32 + 8 * d, ti.i64), d // 3 * 128
            digit = ti.cast((x_[low] >> shift) & ti.i64(255), ti.i32) ^ flip
            if counts_[bucket_start + digit] != high - low:
                total = low
                for k in range(bucket_start, bucket_start + 256):
                    digit_count = counts_[k]
                    counts_[k] = total
                    total += digit_count
                if buffer == 0:
                    scatter_digits(y_, x_, counts_, low, high, bucket_start, shift, flip)
                else:
                    scatter_digits(x_, y_, counts_, low, high, bucket_start, shift, flip)
                buffer = 1 - buffer
        if buffer == 1:
            for k in range(low, high):
                x_[k] = y_[k]
"""
    return get_kernel("radix_sort", code, "aaaiii")


@arch_cache()
def _merge_kernel(serial: bool) -> Any:
    """Return the kernel that merges adjacent sorted runs of `run` pairs from x into y. Each piece is within one pair of
    runs."""
    code = f"""{_MERGE}@ti.kernel
def merge_runs_kernel(
    y_: {_PAIRS}, x_: {_PAIRS}, lines: ti.i32, pieces: ti.i32, count: ti.i32, run: ti.i32, piece: ti.i32
):
{source.SERIALIZE * serial}    for i in range(lines * pieces):
        line = i // pieces * count
        begin = i % pieces * piece
        first = line + begin // (2 * run) * (2 * run)
        middle, end = ti.min(first + run, line + count), ti.min(first + 2 * run, line + count)
        diagonal = line + begin - first
        low, high = ti.max(0, diagonal - (end - middle)), ti.min(diagonal, middle - first)
        while low < high:
            probe = (low + high) // 2
            if x_[first + probe] < x_[middle + diagonal - probe - 1]:
                low = probe + 1
            else:
                high = probe
        stop = ti.min(line + begin + piece, end)
        merge(y_, x_, line + begin, stop, first + low, middle, middle + diagonal - low, end)
"""
    return get_kernel("merge_runs", code, "aaiiiii")


def _to_lines(a: Any, dim: int) -> Any:
    """Return the lines of `a` along `dim` as rows."""
    a = as_contiguous(np.moveaxis(a, dim, -1))
    return a.reshape(-1 if a.size else 0, a.shape[-1])


def _from_lines(lines: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return an array of `shape` whose lines along `dim` are these rows."""
    rest = [n for k, n in enumerate(shape) if k != dim]
    out = np.moveaxis(lines.reshape(*rest, shape[dim]), -1, dim)
    return as_contiguous(out)


@kernel("sort", TAICHI)
def sort(a: Any, *, dim: int, descending: bool) -> tuple[Any, Any]:
    values, indices = topk(a, k=a.shape[dim], dim=dim, largest=descending)
    return values, indices


@kernel("topk", TAICHI)
def topk(a: Any, *, k: int, dim: int, largest: bool) -> tuple[Any, Any]:
    shape = (*a.shape[:dim], k, *a.shape[dim + 1 :])
    if 0 in shape:
        return empty(shape, a.dtype), empty(shape, np.int64)
    lines = _to_lines(a, dim)
    indices = as_contiguous(argsort_lines(lines, largest)[:, :k])
    return _from_lines(gather_lines(lines, indices), shape, dim), _from_lines(indices, shape, dim)
