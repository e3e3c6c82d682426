"""Matrix products by register blocking: tiles of several rows and SIMD vectors of columns, accumulated in registers.

For each k, a tile loads vectors of columns of the right operand and broadcasts one element per row of the left one. It
reads an operand in place if the layout allows it. Otherwise the operand is first packed into panels, in access order:
the left one by the rows of a tile, the right one by vectors of columns. The k loop is blocked, so that the columns of a
block stay in L1 for all rows of a chunk, and the chunk stays in L2 for all columns. For little work a tile gathers
elements by their strides instead, since one launch is faster than three. If both operands are contiguous along k, as in
``x @ w.T``, and packing is too expensive for the work, tiles accumulate vectors along k and reduce their lanes at the
end. Tiny or non-float products are a plain reduction.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import (
    BLOCK,
    DOTS,
    LANES,
    SERIAL,
    Tiles,
    dotting,
    left_of,
    packing,
    tiling,
    unit_of,
)
from minigrad.backends.taichi.codegen.walks import collapsed
from minigrad.backends.taichi.kernels import cuda_products
from minigrad.backends.taichi.kernels.elementwise import computed, filled
from minigrad.backends.taichi.kernels.reduction import reduced
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import DEVICE, LINE, address_of, empty, lasting, shaped
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import Kernel
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.core.dispatch import kernel, kernels_of
from minigrad.core.shapes import broadcast_shapes

__all__ = ["matmul", "times"]

STEPS = 4
TILES = {(8, 1): 1.0, (8, 2): 1.74, (8, 3): 2.36} if source.ROOMY else {(6, 1): 1.0, (4, 1): 0.8}
"""The rows and vectors of a tile, and its cost relative to the first. Its accumulators have to fit in registers."""
PLAIN = 4096  # maximum multiplications for which a single reduction launch is faster
LITTLE = 2**16  # maximum multiplications for which gathering is faster than packing
FEW = 64  # maximum rows for which packing the columns does not pay off
NARROW = 256  # maximum columns for which packing the rows does not pay off
NEAR = 2**20  # bytes that stay in the cache regardless of their layout
CHUNK = 2**18  # bytes of the left operand that are read for all columns, and stay in L2
LONG = 1 << 14  # inner size of the partial products, accumulated in float64, of a product at least twice as deep


def _packed(x: Any, batches: int, width: int, size: int, depth: int, by: int, right: int, down: int) -> Any:
    """Pack elements x[n * by + l * right + k * down], l < `size` and k < `depth`, into panels."""
    made, count, numbers = _panels(x.dtype, address_of(x)[0] % LINE, batches, width, size, depth, by, right, down)
    out = empty((count,), x.dtype)
    made.launch(address_of(out), address_of(x), *numbers)
    return out


@cached(4096)
def _panels(
    dtype: Any, odd: int, batches: int, width: int, size: int, depth: int, by: int, right: int, down: int
) -> tuple[Kernel, int, tuple[int, ...]]:
    """Return the packing kernel, the size of its output and its scalar arguments; `odd` is the address modulo LINE."""
    panels, deep, length = -(-size // width), -(-depth // STEPS) * STEPS, dtype.itemsize
    count = batches * panels * deep * width
    how, unit = "any", 1
    if depth == deep:
        each = unit_of(width)
        if right == 1 and not (size % width or by % each or down % each or odd % (each * length)):
            how, unit = "beside", each
        elif down == 1 and not (by % 4 or right % 4 or odd % (4 * length)):
            how, unit = "along", 4
    made = packing(how, dtype, width, count <= 4 * source.SERIAL)
    return made, count, (batches, panels, size, depth, deep, by // unit, right // unit, down // unit)


@cached(2)
def _zeros(dtype: Any) -> Any:
    return lasting(filled((LANES[dtype],), dtype))


class ProductPlan(NamedTuple):
    """The plan of a product: the arguments of `_packed` for each operand to pack, and the launch."""

    left: tuple[int, ...] | None
    right: tuple[int, ...] | None
    kernel: Kernel
    numbers: np.ndarray[Any, Any]
    memory: tuple[int, int, int]  # the address of `numbers`
    tiles: int


def _planned(made: Kernel, numbers: tuple[int, ...], tiles: int, left: Any = None, right: Any = None) -> ProductPlan:
    kept = lasting(np.array(numbers, np.int32))
    return ProductPlan(left, right, made, kept, (kept.ctypes.data, len(kept), 4), tiles)


def _tile(m: int, right: int) -> tuple[int, int]:
    """Return the fastest tile for m rows and this many vectors of columns."""
    return min(TILES, key=lambda tile: -(-m // tile[0]) * -(-right // tile[1]) * TILES[tile])


@cached(4096)
def _plan(
    dtype: Any, m: int, n: int, depth: int, count: int, odd_a: int, odd: int, by_a: int, down_a: int, right_a: int,
    by_b: int, down_b: int, right_b: int, biased: bool,
) -> ProductPlan:  # fmt: skip
    """Plan `count` products (m, depth) @ (depth, n) with these strides; `odd` is the address of b modulo LINE."""
    lanes, length, work = LANES[dtype], dtype.itemsize, count * m * n * depth
    along = (by_a, down_a, by_b, right_b)
    lie_along = right_a == down_b == 1 and not (odd_a or odd or depth % lanes or any(step % lanes for step in along))
    if lie_along and m * n * 8 < depth * (m + n) and depth <= BLOCK * lanes:
        down, across = -(-m // DOTS[0]), -(-n // DOTS[1])
        numbers = (down, across, m, n, depth // lanes, *[step // lanes for step in along], int(biased), 1)
        return _planned(dotting(dtype, work <= SERIAL), numbers, count * down * across)
    near = m * depth * length <= NEAR
    left, gathered = "panels", False
    tile = _tile(m, -(-n // lanes))
    high, unit = tile[0], unit_of(tile[0])
    if near and down_a == 1 and not (odd_a or m % high or right_a % unit or by_a % unit or depth % 4):
        left = "columns"
    elif source.ROOMY and near and n <= NARROW and right_a == 1 and not (odd_a or depth % 8 or down_a % 8 or by_a % 8):
        left = "rows"
    aligned = right_b == 1 and not (n % lanes or down_b % lanes or by_b % lanes or odd)
    direct = aligned and (left != "panels" or depth % STEPS == 0) and (m <= FEW or depth * n * length <= NEAR)
    if work <= LITTLE and (left == "panels" or not direct):
        left, gathered = "any", not aligned
    if gathered or left in ("rows", "any"):
        high, tile = tile[0], (tile[0], 1)
    lay_a = (count if by_a else 1, high, m, depth, by_a, down_a, right_a) if left == "panels" else None
    lay_b = (count if by_b else 1, lanes, n, depth, by_b, right_b, down_b) if not direct and left != "any" else None
    rows, right, deep = -(-m // high), -(-n // lanes), -(-depth // STEPS) * STEPS
    steps, seen = left_of(left, high)[:2]
    reads_a = (by_a // seen, down_a // seen, right_a // seen)
    if lay_a:
        reads_a = (rows * deep * (by_a != 0), 0, 0)
    if lay_b:
        reads_b = (right * deep * (by_b != 0), 1, deep, 0)
    else:
        reads_b = (by_b, down_b, 0, right_b) if gathered else (by_b // lanes, down_b // lanes, 1, 0)
    chunks = -(-m * depth * length // CHUNK)
    down, across = -(-rows // chunks), -(-right // tile[1])
    rounds = deep if left == "panels" else -(-depth // steps)
    made = tiling(Tiles(dtype, left, gathered, tile, n % lanes == 0, rounds * steps <= BLOCK, work <= SERIAL))
    numbers = (down, chunks, rows, right, across, m, n, rounds, *reads_a, *reads_b, int(biased), 1)
    return _planned(made, numbers, count * chunks * across * down, lay_a, lay_b)


def _batched(x: Any, batch: tuple[int, ...]) -> tuple[Any, int]:
    """Broadcast the leading dimensions of `x` to `batch`, copying unless one stride steps through all of them.

    Return `x` and that stride, in elements.
    """
    if x.ndim == 2:
        return x, 0
    wide = np.broadcast_to(x, (*batch, *x.shape[-2:]), subok=True)
    _, (steps,) = collapsed(batch, [[by // x.itemsize for by in wide.strides[:-2]]])
    if len(steps) == 1:
        return x, steps[0]
    return in_rows(wide.view(x.__class__)), x.shape[-2] * x.shape[-1]


def times(a: Any, b: Any, bias: Any = None) -> Any:
    """Return a @ b + bias for floats, by tiles."""
    (m, depth), n, length = a.shape[-2:], b.shape[-1], a.itemsize
    batch: tuple[int, ...] = ()
    by_a = by_b = 0
    if a.ndim > 2 or b.ndim > 2:
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], op="matmul")
        (a, by_a), (b, by_b) = _batched(a, batch), _batched(b, batch)
    early = (
        bias is not None
        and bias.shape == (n,)
        and bias.flags.c_contiguous
        and not (n % LANES[a.dtype] or address_of(bias)[0] % LINE)
    )
    (down_a, right_a), (down_b, right_b) = a.strides[-2:], b.strides[-2:]
    count, odds = prod(batch), (address_of(a)[0] % LINE, address_of(b)[0] % LINE)
    steps = (by_a, down_a // length, right_a // length, by_b, down_b // length, right_b // length)
    plan = _plan(a.dtype, m, n, depth, count, *odds, *steps, early)
    left = _packed(a, *plan.left) if plan.left else a
    right = _packed(b, *plan.right) if plan.right else b
    out = empty((*batch, m, n), a.dtype)
    start = bias if early else _zeros(a.dtype)
    plan.kernel.launch(address_of(out), address_of(left), address_of(right), address_of(start), plan.memory, plan.tiles)
    if bias is not None and not early:
        out = computed("add", "a + b", (out, bias), out.dtype, out)
    return out


def _batches(a: Any, b: Any) -> int:
    return int(max(prod(a.shape[:-2]), prod(b.shape[:-2])))


def _by_blocks(a: Any, b: Any, bias: Any) -> Any:
    """Return a @ b + bias on CUDA."""
    batch = () if a.ndim == b.ndim == 2 else broadcast_shapes(a.shape[:-2], b.shape[:-2], op="matmul")
    parts = 1 if batch else cuda_products.parts(len(a), b.shape[1], len(b))
    if parts > 1:
        some = len(b) // parts
        by_a, by_b = some * a.strides[1] // a.itemsize, some * b.strides[0] // b.itemsize
        products = [
            *cuda_products.times(a[:, :some], b[:some], (parts,), by_a, by_b),
            *([] if bias is None else [bias]),
        ]
        return computed("matmul_parts", " + ".join(source.LETTERS[: len(products)]), products, a.dtype)
    (a, by_a), (b, by_b) = _batched(a, batch), _batched(b, batch)
    early = bias if bias is not None and bias.shape == b.shape[-1:] and bias.flags.c_contiguous else None
    out = cuda_products.times(a, b, batch, by_a, by_b, early)
    return out if bias is early else computed("add", "a + b", (out, bias), out.dtype, out)


def _product(a: Any, b: Any, bias: Any = None) -> Any:
    (m, depth), n = a.shape[-2:], b.shape[-1]
    tiled = source.VECTORIZED and a.dtype == b.dtype and a.dtype in LANES and min(m, n) > 1
    if tiled and _batches(a, b) * m * depth * n > PLAIN:
        return times(a, b, bias)
    if a.dtype == b.dtype == FLOAT and cuda_products.serves_product(m, n, depth, _batches(a, b)):
        return _by_blocks(a, b, bias)
    dtype = np.result_type(a.dtype, b.dtype)
    ends = "(s == 0) == 0" if dtype.kind == "b" else "s"
    dim = max(a.ndim, b.ndim) - 1
    out = reduced("matmul", "sum", "a * b", (a[..., None], b[..., None, :, :]), (dim,), False, dtype, ends)
    return out if bias is None else computed("add", "a + b", (out, bias), out.dtype, out)


@kernel("matmul", DEVICE)
def matmul(a: Any, b: Any) -> Any:
    """Multiply matrices; all dimensions but the last two are batch dimensions, which broadcast."""
    whole = a.shape[-1] // LONG * LONG
    if whole <= LONG or not source.VECTORIZED:
        return _product(a, b)
    left = a[..., :whole].reshape(*a.shape[:-1], -1, LONG).swapaxes(-2, -3)
    parts = _product(left, b[..., :whole, :].reshape(*b.shape[:-2], -1, LONG, b.shape[-1]))
    y = reduced("sum", "sum", "a", (parts,), (parts.ndim - 3,), False, parts.dtype)
    return y if whole == a.shape[-1] else kernels_of("add")[DEVICE](y, _product(a[..., whole:], b[..., whole:, :]))


@kernel("linear", DEVICE)
def linear(a: Any, b: Any, c: Any) -> Any:
    rows = a if a.ndim == 2 else kernels_of("reshape")[DEVICE](a, shape=(prod(a.shape[:-1]), a.shape[-1]))
    out = _product(rows, b.T, c)
    return out if a.ndim == 2 else shaped(out, (*a.shape[:-1], len(b)))


@kernel("contract", DEVICE)
def contract(a: Any, b: Any, *, left: str, right: str, result: str) -> Any:
    """Contract by one batched matmul, (both, only in a, summed) @ (both, summed, only in b)."""
    both, summed = [k for k in result if k in left and k in right], [k for k in left if k not in result]
    mine, its = [k for k in result if k not in right], [k for k in result if k not in left]
    if both + its + mine == list(result):  # in this order, the result is contiguous
        a, b, left, right, mine, its = b, a, right, left, its, mine
    a = a.transpose([left.index(k) for k in both + mine + summed])
    b = b.transpose([right.index(k) for k in both + summed + its])
    n, m = len(both), len(mine)
    batch, rows, inner, columns = a.shape[:n], a.shape[n : n + m], a.shape[n + m :], b.shape[n + len(summed) :]
    reshape = kernels_of("reshape")[DEVICE]
    a = reshape(a, shape=(*batch, prod(rows), prod(inner)))
    b = reshape(b, shape=(*batch, prod(inner), prod(columns)))
    y = matmul(a, b) if summed else kernels_of("mul")[DEVICE](a, b)
    found, shape = both + mine + its, batch + rows + columns
    y = y if y.shape == shape else shaped(y, shape)
    return y if found == list(result) else y.transpose([found.index(k) for k in result])
