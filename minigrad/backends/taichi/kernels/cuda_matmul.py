"""Matrix products on CUDA: one output tile per thread block.

A thread block copies tiles of the operands to shared memory once and reads them many times. Meanwhile, the
next tiles are prefetched into registers (double buffering).
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import array_argument, copy_to_device, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.backends.taichi.runtime.types import FLOAT

__all__ = ["ImageTable", "block_matmul", "can_use_tiles", "implicit_gemm", "make_table", "split_k"]


class Tile(NamedTuple):
    """Tile sizes: `rows` x `columns` for a thread block, `thread_rows` x `thread_columns` for a thread. All are
    multiples of 4, to load float4."""

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int
    depth: int
    """The size of a tile in shared memory along k."""

    @property
    def threads(self) -> int:
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)


LARGE_TILE = Tile(128, 128, 8, 16, 8)
NARROW_TILE = Tile(128, 64, 8, 8, 8)  # for few columns
MIN_TILES = 64  # minimum number of tiles for acceptable occupancy
FULL_TILES = 320  # tiles for full occupancy
MIN_SPLIT, MAX_SPLITS = 192, 6  # split-k: minimum size of a part along k, maximum number of parts
PAD = 4  # padding elements between rows of a tile in shared memory
SLIM_TILE = Tile(128, 32, 8, 4, 16)


def can_use_tiles(m: int, n: int, depth: int, batches: int) -> bool:
    """Return whether to use tiles. There must be enough tiles to keep the GPU busy, and none may be mostly empty."""
    enough = batches * m * n >= (1 << 14 if depth > 1024 else 1 << 12)
    return driver.arch() == "cuda" and min(m, n) >= 32 and depth >= 8 and enough


class ImageTable(NamedTuple):
    """Offset table of an implicit GEMM. For each row and each k, `offsets` contains an offset from the first element of
    an image. With padding ("padded"), it also contains a code for each row and each k. The sum of the two codes is
    65,536 * y + x, where (y, x) is the position in the padded image.
    """

    offsets: Any
    shape: tuple[int, int, int]
    """The shape of the result."""
    tiles: int
    source_args: tuple[Tile, tuple[bool, bool], bool, str, bool]
    """The arguments of `_product_source`, which determine the source."""


class OperandLoads(NamedTuple):
    """The elements of an operand that a thread loads, each given by its k index and its index in the tile.

    Adjacent threads load adjacent elements, along or across k, so that loads are coalesced.
    """

    side: str
    shared_array: str
    row: int
    indices: tuple[tuple[str, str], ...]


def _plan_loads(tile: Tile, k_contiguous: tuple[bool, bool]) -> list[OperandLoads]:
    loads = []
    for side, shared_array, size, along_k in (
        ("a", "shared_a", tile.rows, k_contiguous[0]),
        ("b", "shared_b", tile.columns, k_contiguous[1]),
    ):
        count, stride = size * tile.depth // tile.threads, tile.threads // tile.depth
        if along_k:
            indices = [(f"lane % {tile.depth}", f"lane // {tile.depth} + {j * stride}") for j in range(count)]
        elif tile.threads >= size:
            indices = [(f"lane // {size} + {j * (tile.threads // size)}", f"lane % {size}") for j in range(count)]
        else:
            parts = size // tile.threads
            indices = [(f"{j // parts}", f"lane + {j % parts * tile.threads}") for j in range(count)]
        loads.append(OperandLoads(side, shared_array, size + PAD, tuple(indices)))
    return loads


def _load_source(loads: list[OperandLoads], is_full: bool, table_mode: str, pad: str, start: str) -> str:
    """Generate loads of both operands into registers. If `is_full`, sizes are multiples of the tile size; otherwise
    elements beyond the last k are loaded as 0."""
    lines = []
    for operand in loads:
        for j, (k, _) in enumerate(operand.indices):
            name, at = f"{operand.side}{j}", f"{start} + {k}"
            k, inside = at if is_full else f"ti.min({at}, depth - 1)", [] if is_full else [f"({at} < depth)"]
            address = f"{name}_offset + ({k}) * {operand.side}_k"
            if table_mode and operand.side == "a":
                address = f"{name}_offset + table_[k_table + {k}]"
                if table_mode == "padded":
                    lines.append(f"code = {name}_code + table_[k_codes + {k}]")
                    inside.append("(ti.cast((code >> 16) - pad_top, ti.u32) < ti.cast(rows, ti.u32))")
                    inside.append("(ti.cast((code & 65535) - pad_left, ti.u32) < ti.cast(columns, ti.u32))")
                    lines.append(f"inside = {' & '.join(inside)}")
                    inside, address = ["inside"], f"ti.select(inside, {address}, 0)"
            element = f"{operand.side}_[{address}]"
            lines.append(f"{name} = " + (f"ti.select({' & '.join(inside)}, {element}, zero)" if inside else element))
    return "".join(f"{pad}{line}\n" for line in lines)


def _store_source(loads: list[OperandLoads], pad: str, buffer_offset: str) -> str:
    return "".join(
        f"{pad}{one.shared_array}[({buffer_offset} + {k}) * {one.row} + {place}] = {one.side}{j}\n"
        for one in loads
        for j, (k, place) in enumerate(one.indices)
    )


def _prologue_source(tile: Tile, loads: list[OperandLoads], is_full: bool, table_mode: str) -> str:
    """Generate the prologue, which finds the tile of the block and the start addresses of the loads, and zeroes the
    accumulators."""
    lines = [f"{name} = table_[{k}]" for k, name in enumerate(HEADER_FIELDS)] if table_mode else []
    if table_mode:
        lines += [
            f"row_table = {len(HEADER_FIELDS)}",
            "k_table = row_table + m",
            "row_codes = k_table + depth",
            "k_codes = row_codes + m",
        ]
    lines += [
        "ti.simt.block.sync()",
        f"lane = t % {tile.threads}",
        f"tile = t // {tile.threads}",
        "batch = tile // (row_tiles * column_tiles)",
        f"first_row = tile % (row_tiles * column_tiles) // column_tiles * {tile.rows}",
        f"first_column = tile % column_tiles * {tile.columns}",
        f"x = lane % {tile.columns // tile.thread_columns}",
        f"y = lane // {tile.columns // tile.thread_columns}",
        f"shared_a = ti.simt.block.SharedArray(({2 * tile.depth * (tile.rows + PAD)},), ti.f32)",
        f"shared_b = ti.simt.block.SharedArray(({2 * tile.depth * (tile.columns + PAD)},), ti.f32)",
        "zero = ti.f32(0.0)",
        "a_start, b_start = batch * a_batch, batch * b_batch",
    ]
    ends = {"a": ("first_row", "m", "a_start"), "b": ("first_column", "n", "b_start")}
    for operand in loads:
        begin, size, start = ends[operand.side]
        for j, (_, tile_index) in enumerate(operand.indices):
            tile_index = f"{begin} + {tile_index}" if is_full else f"ti.min({begin} + {tile_index}, {size} - 1)"
            by = (
                f"table_[row_table + {tile_index}]"
                if table_mode and operand.side == "a"
                else f"({tile_index}) * {operand.side}_{size}"
            )
            lines.append(f"{operand.side}{j}_offset = {start} + {by}")
            if table_mode == "padded" and operand.side == "a":
                lines.append(f"a{j}_code = table_[row_codes + {tile_index}]")
    for r in range(tile.thread_rows):
        lines += [f"c{r}_{c} = zero" for c in range(tile.thread_columns)]
    return "".join(f"        {line}\n" for line in lines)


@arch_cache()
def _product_source(
    tile: Tile, k_contiguous: tuple[bool, bool], is_full: bool, table_mode: str, few_blocks: bool, biased: bool
) -> tuple[str, str]:
    """Generate the kernel. `k_contiguous` states whether each operand is contiguous along k; if `is_full`, sizes are
    multiples of the tile size.

    With a `table_mode`, load a through a table, with padding if the mode is "padded", and store the result transposed.
    """
    y_stride, x_stride = tile.rows // tile.thread_rows, tile.columns // tile.thread_columns
    loads = _plan_loads(tile, k_contiguous)
    body = (
        _prologue_source(tile, loads, is_full, table_mode)
        + _load_source(loads, is_full, table_mode, " " * 8, "0")
        + _store_source(loads, " " * 8, "0")
    )
    body += f"        ti.simt.block.sync()\n        iterations = (depth + {tile.depth - 1}) // {tile.depth}\n"
    body += f"        for iteration in range(iterations):\n            buffer = (iteration & 1) * {tile.depth}\n"
    body += f"            next_k = ti.min(iteration + 1, iterations - 1) * {tile.depth}\n"
    body += _load_source(loads, is_full, table_mode, " " * 12, "next_k")
    body += f"            for d in ti.static(range({tile.depth})):\n"
    pad = " " * 16
    body += f"{pad}offset = (buffer + d) * {tile.rows + PAD} + y * 4\n"
    rows, columns = range(tile.thread_rows), range(tile.thread_columns)
    body += "".join(f"{pad}l{r} = shared_a[offset + {r // 4 * y_stride * 4 + r % 4}]\n" for r in rows)
    body += f"{pad}offset = (buffer + d) * {tile.columns + PAD} + x * 4\n"
    body += "".join(f"{pad}r{c} = shared_b[offset + {c // 4 * x_stride * 4 + c % 4}]\n" for c in columns)
    for r in range(tile.thread_rows):
        body += "".join(f"{pad}c{r}_{c} += l{r} * r{c}\n" for c in range(tile.thread_columns))
    body += (
        f"            buffer = {tile.depth} - buffer\n"
        f"{_store_source(loads, ' ' * 12, 'buffer')}            ti.simt.block.sync()\n"
    )
    for r in range(tile.thread_rows):
        body += f"        i = first_row + (y + {r // 4 * y_stride}) * 4 + {r % 4}\n"
        for c in range(tile.thread_columns):
            column = f"first_column + (x + {c // 4 * x_stride}) * 4 + {c % 4}"
            out_index = f"(batch * n + {column}) * m + i" if table_mode else f"(batch * m + i) * n + {column}"
            guard = "" if is_full else f"if (i < m) & ({column} < n):\n            "
            bias_code = f" + z_[{column if is_full else f'ti.min({column}, n - 1)'}]" if biased else ""
            body += f"        {guard}y_[{out_index}] = c{r}_{c}{bias_code}\n"
    size_names = ["batches", "row_tiles", "column_tiles", "m", "n", "depth"]
    size_names += ["a_batch", "a_m", "a_k", "b_batch", "b_k", "b_n"]
    params = [f"{x}_: {source.array_annotation('float32')}" for x in ("yabz" if biased else "yab")]
    tiles, name = "batches * row_tiles * column_tiles", "matmul_block_tiles"
    if table_mode:
        params, size_names = [*params, f"table_: {source.array_annotation('int32')}"], ["tiles"]
        tiles, name = "tiles", "implicit_gemm"
    code = (
        f"@ti.kernel\ndef {name}_kernel({', '.join(params)}, {', '.join(f'{x}: ti.i32' for x in size_names)}):\n"
        f"{source.block_loop(tiles, tile.threads, body, few_blocks)}"
    )
    return code, "a" * len(params) + "i" * len(size_names)


def _choose_tile(batches: int, m: int, n: int) -> Tile:
    """Return the largest tile size for which tiles are not mostly empty and keep a GPU busy, or the smallest tile size
    if there is none."""
    for tile in (LARGE_TILE, NARROW_TILE):
        if n > tile.columns // 2 and batches * -(-m // tile.rows) * -(-n // tile.columns) >= MIN_TILES:
            return tile
    return SLIM_TILE


def split_k(m: int, n: int, depth: int) -> int:
    """Return the split-k factor: the number of partial products to compute when there are too few tiles for all
    multiprocessors, as for weight gradients."""
    tiles = -(-m // LARGE_TILE.rows) * -(-n // LARGE_TILE.columns)
    for count in range(min(FULL_TILES // tiles, depth // MIN_SPLIT, MAX_SPLITS), 1, -1):
        if depth % (count * LARGE_TILE.depth) == 0:
            return count
    return 1


def block_matmul(
    a: Any, b: Any, batch: tuple[int, ...], batch_stride_a: int, batch_stride_b: int, bias: Any = None
) -> Any:
    """Return a @ b + bias for arbitrarily strided matrices. `batch_stride_a` and `batch_stride_b` are the strides
    between batches, in elements; `bias` has one element per column."""
    (m, depth), n = a.shape[-2:], b.shape[-1]
    out, tile = empty((*batch, m, n), FLOAT), _choose_tile(prod(batch), m, n)
    (a_m, a_k), (b_k, b_n) = [tuple(by // 4 for by in x.strides[-2:]) for x in (a, b)]
    is_full = m % tile.rows == n % tile.columns == depth % tile.depth == 0
    sizes = (prod(batch), -(-m // tile.rows), -(-n // tile.columns), m, n, depth)
    compiled_kernel = get_kernel(
        "matmul_block_tiles",
        *_product_source(
            tile,
            (a_k == 1, b_k == 1),
            is_full,
            "",
            prod(sizes[:3]) <= source.MAX_SINGLE_LAUNCH_BLOCKS,
            bias is not None,
        ),
    )
    bias_args = () if bias is None else (array_argument(bias),)
    compiled_kernel(
        array_argument(out),
        array_argument(a),
        array_argument(b),
        *bias_args,
        *sizes,
        batch_stride_a,
        a_m,
        a_k,
        batch_stride_b,
        b_k,
        b_n,
    )
    return out


# Arguments that a convolution kernel reads from memory, since each launch argument costs 0.6 µs.
HEADER_FIELDS = (
    "row_tiles", "column_tiles", "m", "n", "depth", "a_batch", "b_batch", "b_k", "b_n",
    "rows", "columns", "pad_top", "pad_left",
)  # fmt: skip


def make_table(
    row_offsets: Any, k_offsets: Any, codes: tuple[Any, Any] | None, image: tuple[int, ...], batches: int, n: int,
    steps: tuple[int, int, int],
) -> ImageTable:  # fmt: skip
    """Return the `ImageTable` of `batches` products with `n` columns.

    `image` contains the numbers of elements, rows and columns of an image, and its top and left padding. `steps` are
    the strides of b along the batch, k and the columns.
    """
    m, depth = len(row_offsets), len(k_offsets)
    tile = _choose_tile(batches, m, n)
    tiles_down, tiles_across = -(-m // tile.rows), -(-n // tile.columns)
    sizes = (tiles_down, tiles_across, m, n, depth, image[0], *steps, *image[1:])
    host_table = np.concatenate([sizes, row_offsets, k_offsets, *(codes or ())]).astype(np.int32)
    is_full = m % tile.rows == n % tile.columns == depth % tile.depth == 0
    tiles = batches * tiles_down * tiles_across
    source_args = (
        tile,
        (False, steps[1] == 1),
        is_full,
        "padded" if codes else "table",
        tiles <= source.MAX_SINGLE_LAUNCH_BLOCKS,
    )
    return ImageTable(copy_to_device(host_table), (batches, n, m), tiles, source_args)


def implicit_gemm(x: Any, b: Any, table: ImageTable, bias: Any = None) -> Any:
    """Compute an implicit GEMM: the sum over k of x[batch] at table[row, k] times b[batch, k, column], plus
    bias[column]. The result is transposed, of shape (batches, n, rows)."""
    out = empty(table.shape, FLOAT)
    compiled_kernel = get_kernel("implicit_gemm", *_product_source(*table.source_args, bias is not None))
    bias_args = () if bias is None else (array_argument(bias),)
    compiled_kernel(
        array_argument(out),
        array_argument(x),
        array_argument(b),
        *bias_args,
        array_argument(table.offsets),
        table.tiles,
    )
    return out
