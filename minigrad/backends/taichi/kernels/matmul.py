"""Matrix products by register blocking: tiles of several rows and SIMD vectors of columns, accumulated in registers.

For each k, a tile loads vectors of columns of the right operand and broadcasts one element per row of the left operand.
An operand is read in place if its layout allows it. Otherwise the operand is first packed into panels, in access order:
the left operand by the rows of a tile, the right operand by vectors of columns. The k loop is blocked, so that the
columns of a block stay in L1 for all rows of a chunk, and the chunk stays in L2 for all columns. Small products gather
elements by their strides instead, since one launch is faster than three. If both operands are contiguous along k, as in
``x @ w.T``, and packing is too expensive for the work, tiles accumulate vectors along k and reduce their lanes at the
end. Tiny or non-float products are computed by a single reduction.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.strided_walk import collapse_dimensions
from minigrad.backends.taichi.codegen.tiles import (
    BLOCK,
    DOT_TILE,
    LANES,
    MAX_SERIAL_PRODUCTS,
    TiledProduct,
    dot_kernel,
    left_operand,
    tiled_kernel,
    vector_unit,
)
from minigrad.backends.taichi.kernels import cuda_matmul
from minigrad.backends.taichi.kernels.elementwise import evaluate, full
from minigrad.backends.taichi.kernels.packing import K_STEP, NO_BATCH, BatchStrides, Panels, pack
from minigrad.backends.taichi.kernels.reduction import reduce_snippet
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import (
    CACHE_LINE,
    TAICHI,
    address_argument,
    empty,
    register_constant,
    reshape_owned,
)
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel
from minigrad.backends.taichi.runtime.muladd import FUSED
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.core.dispatch import get_kernels, kernel
from minigrad.core.shapes import broadcast_shapes

__all__ = ["linear", "matmul", "tiled_matmul"]

TILE_COSTS = {(8, 1): 1.0, (8, 2): 1.74, (8, 3): 2.36} if source.HAS_AVX512 else {(6, 1): 1.0, (4, 1): 0.8}
"""Maps the size of a tile, (rows, vectors), to its cost relative to the first. The accumulators have to fit in
registers."""
MAX_PLAIN = 4096  # maximum number of multiplications for which a single reduction launch is faster
MAX_GATHERED = 2**16  # maximum number of multiplications for which gathering is faster than packing
MAX_UNPACKED_ROWS = 64  # maximum number of rows for which packing columns is not worthwhile
MAX_UNPACKED_COLUMNS = 512  # maximum number of columns for which packing rows is not worthwhile
CACHE_BYTES = 2**22  # number of bytes that stay in the last cache regardless of their layout
CHUNK_BYTES = 2**18  # number of bytes of the left operand that stay in L2 while they are read for all columns
MAX_INNER = 1 << 14  # inner size of partial products, accumulated in float64; only for a depth of at least twice this


@arch_cache(2)
def _zeros(dtype: Any) -> Any:
    return register_constant(full((LANES[dtype],), dtype))


class ProductPlan(NamedTuple):
    """The plan of a product: the panels of each operand to pack, and the launch."""

    left: Panels | None
    right: Panels | None
    kernel: Kernel
    scalars: np.ndarray[Any, Any]
    scalars_pointer: tuple[int, int, int]  # the address of `scalars`
    tiles: int


def _make_plan(
    compiled_kernel: Kernel, scalars: tuple[int, ...], tiles: int, left: Any = None, right: Any = None
) -> ProductPlan:
    scalar_array = register_constant(np.array(scalars, np.int32))
    return ProductPlan(
        left, right, compiled_kernel, scalar_array, (scalar_array.ctypes.data, len(scalar_array), 4), tiles
    )


def _last_wide(tile: tuple[int, int], right: int) -> int:
    """Return the width of the last tile of a row of tiles over `right` vectors of columns, of 1 to the full width."""
    return (right - 1) % tile[1] + 1


def _tile(m: int, right: int) -> tuple[int, int]:
    """Return the fastest tile for `m` rows and `right` vectors of columns."""

    def cost(tile: tuple[int, int]) -> float:
        rows, wide = tile
        row_cost = (right - 1) // wide * TILE_COSTS[tile] + TILE_COSTS[rows, _last_wide(tile, right)]
        return -(-m // rows) * row_cost

    return min(TILE_COSTS, key=cost)


def _is_misaligned(batch: BatchStrides, unit: int) -> bool:
    """Return whether a stride of a batch is not a multiple of `unit`, a number of elements."""
    return bool(batch.outer % unit or batch.inner % unit)


def _left_layout(
    m: int, n: int, depth: int, misalignment: int, batch: BatchStrides, row: int, col: int, tile_rows: int
) -> str:
    """Return the layout in which tiles can read the left operand in place, or "panels"."""
    unit = vector_unit(tile_rows)
    if row == 1 and not (misalignment or m % tile_rows or col % unit or _is_misaligned(batch, unit) or depth % 4):
        return "columns"
    rows_fit = source.HAS_AVX512 and not (misalignment or depth % 8 or row % 8 or _is_misaligned(batch, 8))
    return "rows" if col == 1 and rows_fit and n <= MAX_UNPACKED_COLUMNS else "panels"


@arch_cache(4096)
def _plan(
    dtype: Any, m: int, n: int, depth: int, count: int, misalignment_a: int, misalignment_b: int,
    batch_a: BatchStrides, row_a: int, col_a: int, batch_b: BatchStrides, row_b: int, col_b: int, biased: bool,
) -> ProductPlan:  # fmt: skip
    """Plan `count` products (m, depth) @ (depth, n). Misalignments are the addresses modulo `CACHE_LINE`."""
    lanes, itemsize, work = LANES[dtype], dtype.itemsize, count * m * n * depth
    serial = work <= MAX_SERIAL_PRODUCTS
    k_strides = (*batch_a[1:], row_a, *batch_b[1:], col_b)
    k_contiguous = col_a == row_b == 1 and not (
        misalignment_a or misalignment_b or depth % lanes or any(step % lanes for step in k_strides)
    )
    if k_contiguous and m * n * 8 < depth * (m + n):
        row_tiles, column_tiles = -(-m // DOT_TILE[0]), -(-n // DOT_TILE[1])
        reads = (*(batch_a // lanes), row_a // lanes, *(batch_b // lanes), col_b // lanes)
        scalars: tuple[int, ...] = (row_tiles, column_tiles, m, n, depth // lanes, *reads, int(biased), 1)
        return _make_plan(dot_kernel(dtype, serial), scalars, count * row_tiles * column_tiles)
    tile, left_mode = _tile(m, -(-n // lanes)), "panels"
    tile_rows = tile[0]
    if m * depth * itemsize <= CACHE_BYTES:
        left_mode = _left_layout(m, n, depth, misalignment_a, batch_a, row_a, col_a, tile_rows)
    aligned = col_b == 1 and not (n % lanes or row_b % lanes or _is_misaligned(batch_b, lanes) or misalignment_b)
    right_mode = "vectors" if aligned else "masked" if col_b == 1 and FUSED else "gathered"
    direct_right = (
        right_mode != "gathered"
        and (left_mode != "panels" or depth % K_STEP == 0)
        and (m <= MAX_UNPACKED_ROWS or depth * n * itemsize <= CACHE_BYTES)
    )
    if work <= MAX_GATHERED and (left_mode == "panels" or not direct_right):
        left_mode = "strided"
    elif not direct_right:
        right_mode = "vectors"
    if left_mode in ("rows", "strided"):
        tile_rows, tile = tile[0], (tile[0], 1)
    pack_a = pack_b = None
    if left_mode == "panels":
        batches = 1 if batch_a.is_broadcast else count
        pack_a = Panels(batches, tile_rows, m, depth, batch_a, row_a, col_a, True)
    if not direct_right and left_mode != "strided":
        batches = 1 if batch_b.is_broadcast else count
        pack_b = Panels(batches, lanes, n, depth, batch_b, col_b, row_b, False)
    rows, column_vectors, padded_depth = -(-m // tile_rows), -(-n // lanes), -(-depth // K_STEP) * K_STEP
    steps, load_width = left_operand(left_mode, tile_rows)[:2]
    reads_a = (*(batch_a // load_width), row_a // load_width, col_a // load_width)
    if pack_a:
        reads_a = (1, rows * padded_depth * (not batch_a.is_broadcast), 0, 0, 0)
    if pack_b:
        reads_b = (1, column_vectors * padded_depth * (not batch_b.is_broadcast), 0, 1, padded_depth, 0)
    else:
        unit = lanes if right_mode == "vectors" else 1
        reads_b = (*(batch_b // unit), row_b // unit, *((0, col_b) if right_mode == "gathered" else (lanes // unit, 0)))
    chunks, last_wide = -(-m * depth * itemsize // CHUNK_BYTES), _last_wide(tile, column_vectors)
    if last_wide < tile[1] and not serial:  # divide rows between cores, since tiles of a row of tiles differ in cost
        chunks = min(-(-chunks // source.CORES) * source.CORES, rows)
    row_tiles, column_tiles = -(-rows // chunks), -(-column_vectors // tile[1])
    rounds = padded_depth if left_mode == "panels" else -(-depth // steps)
    compiled_kernel = tiled_kernel(
        TiledProduct(dtype, left_mode, right_mode, tile, last_wide, n % lanes == 0, rounds * steps <= BLOCK, serial)
    )
    scalars = (row_tiles, chunks, rows, column_vectors, column_tiles, m, n, rounds, *reads_a, *reads_b, int(biased), 1)
    return _make_plan(compiled_kernel, scalars, count * chunks * column_tiles * row_tiles, pack_a, pack_b)


def _batch_strides(x: Any, batch: tuple[int, ...], dims: int) -> tuple[Any, BatchStrides]:
    """Broadcast the leading dimensions of `x` to `batch`, copying unless they can be merged into `dims` dimensions.

    Return `x` and the strides of the merged dimensions, in elements.
    """
    if x.ndim == 2:
        return x, NO_BATCH
    broadcasted = np.broadcast_to(x, (*batch, *x.shape[-2:]), subok=True)
    sizes, (steps,) = collapse_dimensions(batch, [[by // x.itemsize for by in broadcasted.strides[:-2]]])
    if len(steps) > dims:
        return as_contiguous(broadcasted.view(x.__class__)), BatchStrides(1, x.shape[-2] * x.shape[-1], 0)
    return x, BatchStrides(sizes[1], steps[0], steps[1]) if len(steps) > 1 else BatchStrides(1, steps[0], 0)


def tiled_matmul(a: Any, b: Any, bias: Any = None) -> Any:
    """Return a @ b + bias for floats, by tiles."""
    (m, depth), n, itemsize = a.shape[-2:], b.shape[-1], a.itemsize
    batch: tuple[int, ...] = ()
    batch_a = batch_b = NO_BATCH
    if a.ndim > 2 or b.ndim > 2:
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], op="matmul")
        (a, batch_a), (b, batch_b) = _batch_strides(a, batch, 2), _batch_strides(b, batch, 2)
    fuses_bias = (
        bias is not None
        and bias.shape == (n,)
        and bias.dtype == a.dtype
        and bias.flags.c_contiguous
        and not (address_argument(bias)[0] % CACHE_LINE if n % LANES[a.dtype] == 0 else not FUSED)
    )
    (down_a, right_a), (down_b, right_b) = a.strides[-2:], b.strides[-2:]
    count, misalignments = prod(batch), (address_argument(a)[0] % CACHE_LINE, address_argument(b)[0] % CACHE_LINE)
    steps = (
        batch_a,
        down_a // itemsize,
        right_a // itemsize,
        batch_b,
        down_b // itemsize,
        right_b // itemsize,
    )
    plan = _plan(a.dtype, m, n, depth, count, *misalignments, *steps, fuses_bias)
    left = pack(a, plan.left) if plan.left else a
    right = pack(b, plan.right) if plan.right else b
    out = empty((*batch, m, n), a.dtype)
    start = bias if fuses_bias else _zeros(a.dtype)
    plan.kernel.launch(
        address_argument(out),
        address_argument(left),
        address_argument(right),
        address_argument(start),
        plan.scalars_pointer,
        plan.tiles,
    )
    if bias is not None and not fuses_bias:
        out = evaluate("add", "a + b", (out, bias), out.dtype, out)
    return out


def _batch_size(a: Any, b: Any) -> int:
    return int(max(prod(a.shape[:-2]), prod(b.shape[:-2])))


def _cuda_matmul(a: Any, b: Any, bias: Any) -> Any:
    """Return a @ b + bias on CUDA."""
    batch = () if a.ndim == b.ndim == 2 else broadcast_shapes(a.shape[:-2], b.shape[:-2], op="matmul")
    splits = 1 if batch else cuda_matmul.split_k(len(a), b.shape[1], len(b))
    if splits > 1:
        split_depth = len(b) // splits
        batch_stride_a, batch_stride_b = (
            split_depth * a.strides[1] // a.itemsize,
            split_depth * b.strides[0] // b.itemsize,
        )
        products = [
            *cuda_matmul.block_matmul(a[:, :split_depth], b[:split_depth], (splits,), batch_stride_a, batch_stride_b),
            *([] if bias is None else [bias]),
        ]
        return evaluate("matmul_split_k_sum", " + ".join(source.LETTERS[: len(products)]), products, a.dtype)
    (a, (_, batch_stride_a, _)), (b, (_, batch_stride_b, _)) = (_batch_strides(x, batch, 1) for x in (a, b))
    fused_bias = bias if bias is not None and bias.shape == b.shape[-1:] and bias.flags.c_contiguous else None
    out = cuda_matmul.block_matmul(a, b, batch, batch_stride_a, batch_stride_b, fused_bias)
    return out if bias is fused_bias else evaluate("add", "a + b", (out, bias), out.dtype, out)


def _matmul(a: Any, b: Any, bias: Any = None) -> Any:
    (m, depth), n = a.shape[-2:], b.shape[-1]
    use_tiles = source.VECTORIZED and a.dtype == b.dtype and a.dtype in LANES and min(m, n) > 1
    if use_tiles and _batch_size(a, b) * m * depth * n > MAX_PLAIN:
        return tiled_matmul(a, b, bias)
    if a.dtype == b.dtype == FLOAT and cuda_matmul.can_use_tiles(m, n, depth, _batch_size(a, b)):
        return _cuda_matmul(a, b, bias)
    dtype = np.result_type(a.dtype, b.dtype)
    epilogue = "(s == 0) == 0" if dtype.kind == "b" else "s"
    dim = max(a.ndim, b.ndim) - 1
    out = reduce_snippet("matmul", "sum", "a * b", (a[..., None], b[..., None, :, :]), (dim,), False, dtype, epilogue)
    return out if bias is None else evaluate("add", "a + b", (out, bias), out.dtype, out)


@kernel("matmul", TAICHI)
def matmul(a: Any, b: Any) -> Any:
    """Multiply matrices; all dimensions but the last two are batch dimensions, which broadcast."""
    split_depth = a.shape[-1] // MAX_INNER * MAX_INNER
    if split_depth <= MAX_INNER or not source.VECTORIZED:
        return _matmul(a, b)
    left = a[..., :split_depth].reshape(*a.shape[:-1], -1, MAX_INNER).swapaxes(-2, -3)
    partials = _matmul(left, b[..., :split_depth, :].reshape(*b.shape[:-2], -1, MAX_INNER, b.shape[-1]))
    y = reduce_snippet("sum", "sum", "a", (partials,), (partials.ndim - 3,), False, partials.dtype)
    return (
        y
        if split_depth == a.shape[-1]
        else get_kernels("add")[TAICHI](y, _matmul(a[..., split_depth:], b[..., split_depth:, :]))
    )


@kernel("linear", TAICHI)
def linear(a: Any, b: Any, c: Any) -> Any:
    rows = a if a.ndim == 2 else get_kernels("reshape")[TAICHI](a, shape=(prod(a.shape[:-1]), a.shape[-1]))
    out = _matmul(rows, b.T, c)
    return out if a.ndim == 2 else reshape_owned(out, (*a.shape[:-1], len(b)))


@kernel("contract", TAICHI)
def contract(a: Any, b: Any, *, left: str, right: str, result: str) -> Any:
    """Contract by a batched matmul, with dimensions (in both, only in a, summed) and (in both, summed, only in b)."""
    batch_labels, contracted = [k for k in result if k in left and k in right], [k for k in left if k not in result]
    left_only, right_only = [k for k in result if k not in right], [k for k in result if k not in left]
    if batch_labels + right_only + left_only == list(result):  # in this order, the result is contiguous
        a, b, left, right, left_only, right_only = b, a, right, left, right_only, left_only
    a = a.transpose([left.index(k) for k in batch_labels + left_only + contracted])
    b = b.transpose([right.index(k) for k in batch_labels + contracted + right_only])
    n, m = len(batch_labels), len(left_only)
    batch, rows, inner, columns = a.shape[:n], a.shape[n : n + m], a.shape[n + m :], b.shape[n + len(contracted) :]
    reshape = get_kernels("reshape")[TAICHI]
    a = reshape(a, shape=(*batch, prod(rows), prod(inner)))
    b = reshape(b, shape=(*batch, prod(inner), prod(columns)))
    y = matmul(a, b) if contracted else get_kernels("mul")[TAICHI](a, b)
    labels, shape = batch_labels + left_only + right_only, batch + rows + columns
    y = y if y.shape == shape else reshape_owned(y, shape)
    return y if labels == list(result) else y.transpose([labels.index(k) for k in result])
