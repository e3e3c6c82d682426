"""Counter-based random numbers: Philox4x32-10, which generates the same values on every device.

Word j of stream s of a key is word j % 4 of ``philox((j // 4, s), key)``. Values do not depend on earlier ones, so any
part of a stream can be generated independently. Each distribution has its own stream, so sample k of one distribution
shares no words with sample k of another.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Shape, as_indices
from minigrad.core.dispatch import kernel

__all__: list[str] = []


UNIFORM, UNIFORM64, NORMAL, NORMAL64, BITS, KEYS = range(6)  # the streams
LOW_WORD = 0xFFFFFFFF
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
KEY_STEPS = 0x9E3779B9, 0xBB67AE85  # the key increments per round
BLOCKS_PER_CHUNK = 1 << 13  # number of blocks generated at a time, which fit in the cache


def philox(counter: Any, key: int) -> tuple[Any, Any, Any, Any]:
    """Return four random 32-bit words for a four-word `counter` and a 64-bit `key`, as ints or as uint64 arrays.

    Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3: Philox4x32, 10 rounds.
    """
    a, b, c, d = counter
    low, high = key & LOW_WORD, key >> 32
    for _ in range(10):
        p, q = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = (q >> 32) ^ b ^ low, q & LOW_WORD, (p >> 32) ^ d ^ high, p & LOW_WORD
        low, high = (low + KEY_STEPS[0]) & LOW_WORD, (high + KEY_STEPS[1]) & LOW_WORD
    return a, b, c, d


def words(key: int, stream: int, offset: int, count: int) -> Array:
    """Return the uint32 words `offset` to ``offset + count`` of a stream."""
    first, last = offset // 4, -(-(offset + count) // 4)
    out = np.empty((last - first, 4), np.uint32)
    for start in range(first, last, BLOCKS_PER_CHUNK):
        block = np.arange(start, min(start + BLOCKS_PER_CHUNK, last), dtype=np.uint64)
        counter = block & LOW_WORD, block >> 32, np.full_like(block, stream), np.zeros_like(block)
        out[start - first : start - first + len(block)] = np.stack(philox(counter, key), axis=1)
    return out.reshape(-1)[offset - 4 * first :][:count]


def bits(key: int, stream: int, offset: int, count: int) -> Array:
    """Return random uint64 values, each composed of two words, the low word first."""
    pairs = words(key, stream, 2 * offset, 2 * count).astype(np.uint64)
    return pairs[0::2] | pairs[1::2] << 32


def uniform(key: int, offset: int, count: int, dtype: Any = "float32", streams: Any = (UNIFORM, UNIFORM64)) -> Array:
    """Return samples `offset` to ``offset + count`` of U[0, 1): multiples of 2**-24 in float32, of 2**-53 in float64.

    `key` is a 64-bit int; the same key and offset give the same sample.
    """
    if np.dtype(dtype) == np.float32:
        return (words(key, streams[0], offset, count) >> 8).astype(np.float32) * np.float32(2**-24)
    return (bits(key, streams[1], offset, count) >> 11).astype(np.float64) * 2.0**-53


def normal(key: int, offset: int, count: int, dtype: Any = "float32") -> Array:
    """Return samples `offset` to ``offset + count`` of the standard normal distribution.

    Samples 2k and 2k + 1 are computed from two uniform samples (Box, Muller 1958, "A note on the generation of random
    normal deviates").
    """
    skipped = offset % 2
    uniforms = uniform(key, offset - skipped, count + skipped + (count + skipped) % 2, dtype, (NORMAL, NORMAL64))
    radius = np.sqrt(-2 * np.log(1 - uniforms[0::2]))  # the argument is in (0, 1], so the logarithm is finite
    angle = uniforms[1::2] * (2 * np.pi)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[skipped:][:count]


@kernel("random_uniform", DEVICE)
def random_uniform(*, key: int, offset: int, shape: Shape, dtype: Any) -> Array:
    return uniform(key, offset, prod(shape), dtype.name).reshape(shape)


@kernel("random_normal", DEVICE)
def random_normal(*, key: int, offset: int, shape: Shape, dtype: Any) -> Array:
    return normal(key, offset, prod(shape), dtype.name).reshape(shape)


@kernel("random_int", DEVICE)
def random_int(*, key: int, offset: int, shape: Shape, low: int, high: int, dtype: Any) -> Array:
    values = bits(key, BITS, offset, prod(shape))
    if high - low < 2**64:
        values %= np.uint64(high - low)
    return (values.astype(np.int64) + low).astype(dtype.name).reshape(shape)  # int64 addition wraps around correctly


@kernel("random_permutation", DEVICE)
def random_permutation(*, key: int, offset: int, count: int) -> Array:
    return as_indices(np.argsort(bits(key, BITS, offset, count), kind="stable"))


@kernel("random_choice", DEVICE)
def random_choice(a: Array, *, key: int, offset: int, count: int, replacement: bool) -> Array:
    """Sample indices into the last dimension, with probabilities proportional to `a`.

    Without replacement, return the indices of the `count` smallest exponential samples with rates `a` (Efraimidis,
    Spirakis 2006, "Weighted random sampling with a reservoir").
    """
    weights = a.astype(np.float64).reshape(-1, a.shape[-1])
    if replacement:
        draws = uniform(key, offset, len(weights) * count, "float64").reshape(-1, count)
        cumulative = np.cumsum(weights, axis=1)
        cumulative /= cumulative[:, -1:]  # the last element is exactly 1, above every draw
        rows = [
            np.searchsorted(row_cumulative, row, side="right")
            for row_cumulative, row in zip(cumulative, draws, strict=True)
        ]
        return np.array(rows, dtype=np.int64).reshape(*a.shape[:-1], count)
    times = -np.log1p(-uniform(key, offset, weights.size, "float64")).reshape(weights.shape) / weights
    order = as_indices(np.argsort(times, axis=1, kind="stable"))
    return order[:, :count].reshape(*a.shape[:-1], count)
