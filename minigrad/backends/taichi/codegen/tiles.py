"""Source of matrix products: packing of panels, and computation of tiles.

A tile is a block of the result, several rows high and several vectors wide. Its accumulators stay in registers.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import muladd
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel, get_kernel

__all__ = [
    "BLOCK",
    "DOT_TILE",
    "LANES",
    "MAX_SERIAL_PRODUCTS",
    "TiledProduct",
    "dot_kernel",
    "left_operand",
    "packing_kernel",
    "tiled_kernel",
    "vector_annotation",
    "vector_unit",
]

LANES = {np.dtype("float32"): 16, np.dtype("float64"): 8}  # elements in a vector of 64 bytes
DOT_TILE = (8, 3) if source.HAS_AVX512 else (3, 2)  # rows and columns of a tile of dot products
MAX_SERIAL_PRODUCTS = source.serial_limit(1 << 18)  # maximum number of multiplications for one core
BLOCK = 256  # products per partial sum; blocked summation is more accurate than one long sum


def vector_annotation(dtype: str, count: int) -> str:
    return f"ti.types.ndarray(dtype=ti.types.vector({count}, ti.{source.TAICHI_NAMES[dtype]}), ndim=1)"


# The source that reads a panel of `width` elements at each of `depth` positions of the sum, for each memory layout.
_PACKING_READS = {
    # contiguous: copy vectors
    "contiguous": """        for k in range(depth):
            for u in range({units}):
                y_[(t * padded + k) * {units} + u] = a_[batch + k * depth_stride + j * {units} + u]
""",
    # contiguous rows of any size and alignment: load vectors that end with the row
    "masked": """        x = ti.Vector([zero for _ in range({width})])
        count = ti.min({width}, size - j * {width})
        for k in range(padded):
            address = a_ + ti.cast(batch + k * depth_stride + j * {width}, ti.i64) * {itemsize}
            elements = ti.select(k < depth, count, 0)
            muladd.{scalar}_load(x, address, elements)
            y_[t * padded + k] = x
""",
    # contiguous along the sum: transpose in blocks of four
    "transposed": """        for k in range(depth // 4):
{loads}{stores}""",
    "strided": """        for k in range(padded):
            for l in range({width}):
                x = a_[batch + ti.min(j * {width} + l, size - 1) * width_stride\
 + ti.min(k, depth - 1) * depth_stride]
                y_[(t * padded + k) * {width} + l] = ti.select(k < depth, x, zero)
""",
}


@arch_cache(64)
def packing_kernel(layout: str, type: Any, width: int, serial: bool) -> Kernel:
    dtype, rows = type.name, range(width)
    loads = [f"            x{r} = a_[batch + ti.min(j * {width} + {r}, size - 1) * width_stride + k]\n" for r in rows]
    unit = vector_unit(width)
    units = width // unit
    stores = [
        f"            y_[(t * padded + k * 4 + {s}) * {units} + {u}] = "
        f"ti.Vector([{', '.join(f'x{r}[{s}]' for r in rows[u * unit : (u + 1) * unit])}])\n"
        for s, u in product(range(4), range(units))
    ]
    scalar = source.TAICHI_NAMES[dtype]
    body = _PACKING_READS[layout].format(
        width=width, units=units, loads="".join(loads), stores="".join(stores), scalar=scalar, itemsize=type.itemsize
    )
    out = source.array_annotation(dtype) if layout == "strided" else vector_annotation(dtype, unit)
    input_annotation = {
        "contiguous": vector_annotation(dtype, unit),
        "masked": source.ADDRESS,
        "transposed": vector_annotation(dtype, 4),
    }.get(layout, source.array_annotation(dtype))
    body = (
        "        n = t // panels\n        j = t % panels\n"
        "        batch = n // heads * batch_stride + n % heads * head_stride\n"
        f"        zero = ti.cast(0, ti.{scalar})\n{body}"
    )
    numbers: tuple[str, ...] = (
        "batches",
        "panels",
        "size",
        "depth",
        "padded",
        "heads",
        "batch_stride",
        "head_stride",
        "width_stride",
    )
    numbers += ("depth_stride",)
    text = (
        f"@ti.kernel\ndef pack_{layout}_{width}_kernel(y_: {out}, a_: {input_annotation}, "
        f"{', '.join(f'{x}: ti.i32' for x in numbers)}):\n{source.parallel_loop('batches * panels', body, serial)}"
    )
    kinds = "ap" if layout == "masked" else "aa"
    return get_kernel(f"pack_{layout}_{width}", text, kinds + "i" * len(numbers))


class _LeftOperand(NamedTuple):
    """Code that reads the left operand of a tile: the number of positions per step of the sum, the number of elements
    per load, statements before the loop, and the expression for element r at position s of step k."""

    steps: int
    load_size: int
    before: str
    element: str


def vector_unit(rows: int) -> int:
    """Return the vector size for groups of `rows` contiguous elements: the largest power of two that divides `rows`."""
    return rows & -rows


def left_operand(layout: str, rows: int) -> _LeftOperand:
    unit = vector_unit(rows)
    row = f"r{{r}} = batch_a + ti.min(i * {rows} + {{r}}, m - 1) * row_stride_a"
    return {
        "panels": _LeftOperand(
            1,
            unit,
            f"first = (batch_a + i * depth) * {rows // unit}",
            f"a_[first + k * {rows // unit} + {{u}}][{{l}}]",
        ),
        "rows": _LeftOperand(8, 8, row, "a_[r{r} + k][{s}]"),
        "columns": _LeftOperand(
            1,
            unit,
            f"a_offset = batch_a + i * {rows // unit} + block * {BLOCK} * k_stride_a",
            "a_[a_offset + {u}][{l}]",
        ),
        "strided": _LeftOperand(1, 1, row, "a_[r{r} + k * k_stride_a]"),
    }[layout]


_TABLE_NAMES = (  # read from a table, since an argument costs 0.4 µs per launch
    "row_tiles", "chunks", "rows", "column_vectors", "column_tiles", "m", "size", "depth",
    "heads_a", "batch_stride_a", "head_stride_a", "row_stride_a", "k_stride_a",
    "heads_b", "batch_stride_b", "head_stride_b", "k_stride_b", "panel_stride_b", "column_stride_b",
    "bias_stride", "k_step",
)  # fmt: skip


# A batch may have two dimensions with strides of their own, such as sequences and the heads of an attention.
_BATCH_LINES = [f"batch_{x} = n // heads_{x} * batch_stride_{x} + n % heads_{x} * head_stride_{x}" for x in "ab"]


class TiledProduct(NamedTuple):
    """The parameters of the source of a product; see `tiled_kernel`. The kernel reads integers from the argument at
    index `table`."""

    type: Any
    left: str
    right: str
    tile: tuple[int, int]
    last_wide: int  # width of the tiles with the last vectors of columns
    has_full_vectors: bool
    is_single_block: bool
    serial: bool

    @property
    def table(self) -> int:
        """The index, among the arguments, of the array of integers."""
        return 4

    @property
    def lanes(self) -> int:
        """The number of elements in a vector of the result."""
        return LANES[self.type]

    def items(self, numbers: Any, tiles: int) -> int:
        """Compute the number of elements of the result from the kernel's integers and the number of tiles."""
        row_tiles, chunks, _, column_vectors, column_tiles, m = map(int, numbers[:6])
        return tiles // (row_tiles * chunks * column_tiles) * m * column_vectors * self.lanes

    def kernel(self, end: source.Epilogue | None = None) -> Kernel:
        """Return the kernel of the product, optionally with an epilogue."""
        return tiled_kernel(self, end or source.NO_EPILOGUE)


@arch_cache(256)
def tiled_kernel(tiles: TiledProduct, end: source.Epilogue = source.NO_EPILOGUE) -> Kernel:
    """Return a kernel that computes the product by tiles. `left` is the layout of the left operand. The right operand
    is loaded as aligned vectors ("vectors"), as vectors at any alignment without the columns past the end ("masked"),
    or element by element ("gathered"). `has_full_vectors` means that every vector of the result is stored entirely, and
    `is_single_block` that the sum is one block.

    Rows, vectors and columns beyond the end repeat the last ones. The step of the loop along the sum is read from
    memory, so that LLVM cannot unroll the loop, which would need too many registers.
    """
    dtype, lanes, wide, last_wide = tiles.type.name, tiles.lanes, tiles.tile[1], tiles.last_wide
    blocks = BLOCK // left_operand(tiles.left, tiles.tile[0]).steps
    arrays, lines = _array_annotations(tiles), [f"{x} = scalars_[{k}]" for k, x in enumerate(_TABLE_NAMES)]
    lines += [
        "for group in range(first_t // row_tiles, (last_t + row_tiles - 1) // row_tiles):"
    ]  # tiles with the same columns
    lines += [f"    {line}" for line in _column_lines(tiles)]
    lines += [
        "    n = group // column_tiles // chunks",
        *[f"    {line}" for line in _BATCH_LINES],
        "    begin = group // column_tiles % chunks * row_tiles",
        "    end = ti.min(begin + ti.min(last_t - group * row_tiles, row_tiles), rows)",
        f"    for block in range((depth + {blocks - 1}) // {blocks}):",
        "        for i in range(begin + ti.max(first_t - group * row_tiles, 0), end):",
    ]
    if last_wide == wide:
        lines += [f"            {line}" for line in _tile_lines(tiles, wide)]
    else:
        for condition, columns in (("if group % column_tiles < column_tiles - 1:", wide), ("else:", last_wide)):
            lines += [f"            {condition}", *[f"                {line}" for line in _tile_lines(tiles, columns)]]
    lines += [f"            {line}" for line in (_epilogue_lines(end, tiles.tile, blocks) if end.lines else [])]
    known = [f"    {source.broadcast_line(f'{x}_', x, lanes)}" for x in end.scalars]
    body = "".join(f"            {line}\n" for line in lines)
    loop = source.partitioned_loop("tiles", body, tiles.serial, "".join(known))
    right = "" if tiles.right == "vectors" else f"_{tiles.right}"
    name = f"matmul_{tiles.left}{right}{'_epilogue' * bool(end.lines)}"
    head = [f"{x}: {what}" for x, what in arrays.items()] + ["tiles: ti.i32"]
    head += [f"{x}_: {vector_annotation(dtype, lanes)}" for x in end.arrays]
    head += [f"{x}_: ti.{source.TAICHI_NAMES[dtype]}" for x in end.scalars]
    kinds = "".join("p" if x == source.ADDRESS else "a" for x in arrays.values()) + "i"
    kinds += "a" * len(end.arrays) + "f" * len(end.scalars)
    text = f"{end.functions}@ti.kernel\ndef {name}_kernel({', '.join(head)}):\n{loop}"
    made = get_kernel(name, text, kinds)
    if tiles.has_full_vectors and dtype == "float32":
        made.work = tiles
    return made


def _array_annotations(tiles: TiledProduct) -> dict[str, str]:
    """Return the array arguments of a product with their annotations: result, operands, bias and integers."""
    dtype, whole = tiles.type.name, tiles.has_full_vectors
    vector, number = vector_annotation(dtype, tiles.lanes), source.array_annotation(dtype)
    return {
        "y_": vector if whole else source.ADDRESS if muladd.FUSED else number,
        "a_": source.array_annotation(dtype, left_operand(tiles.left, tiles.tile[0]).load_size),
        "b_": {"vectors": vector, "masked": source.ADDRESS, "gathered": number}[tiles.right],
        "z_": vector if whole or not muladd.FUSED else source.ADDRESS,
        "scalars_": source.array_annotation("int32"),
    }


def _column_lines(tiles: TiledProduct) -> list[str]:
    """Return the statements that locate the vectors of columns of a group of tiles, and load their bias."""
    lanes, scalar, lines = tiles.lanes, source.TAICHI_NAMES[tiles.type.name], list[str]()
    for v in range(tiles.tile[1]):
        lines += [f"j{v} = ti.min(group % column_tiles * {tiles.tile[1]} + {v}, column_vectors - 1)"]
        lines += [f"count{v} = ti.min({lanes}, size - j{v} * {lanes})"]
        if tiles.right == "gathered":
            lines += [f"o{v}_{k} = ti.min(j{v} * {lanes} + {k}, size - 1)" for k in range(lanes)]
        if tiles.has_full_vectors or not muladd.FUSED:
            lines += [f"bias{v} = z_[j{v} * bias_stride]"]
        else:
            lines += [f"bias{v} = {_zero_vector(tiles)}"]
            lines += [f"address = z_ + ti.cast(j{v} * bias_stride, ti.i64) * {lanes * tiles.type.itemsize}"]
            lines += [f"muladd.{scalar}_load(bias{v}, address, count{v})"]
    return lines


def _zero_vector(tiles: TiledProduct) -> str:
    return f"ti.Vector([ti.{source.TAICHI_NAMES[tiles.type.name]}(0.0) for _ in range({tiles.lanes})])"


def _tile_lines(tiles: TiledProduct, wide: int) -> list[str]:
    """Return the statements that compute tile i of a group, `wide` vectors wide, or add one block of the sum to it."""
    rows, columns = range(tiles.tile[0]), range(wide)
    steps, _, before, number = left_operand(tiles.left, len(rows))
    cells, once = list(product(rows, columns)), tiles.is_single_block
    start = "bias{v}" if once else _zero_vector(tiles)
    lines = [before.format(r=r) for r in (rows if "{r}" in before else (0,))]
    lines += [f"b_offset{v} = batch_b + j{v} * panel_stride_b + block * {BLOCK} * k_stride_b" for v in columns]
    lines += [f"c{r}_{v} = {start.format(v=v)}" for r, v in cells]
    lines += [f"k = block * {BLOCK // steps}", f"last = ti.min(depth, k + {BLOCK // steps})", "while k < last:"]
    lines += [f"    {line}" for line in [*_product_lines(tiles, number, wide), "k += k_step"]]
    lines += [f"row{r} = n * m + ti.min(i * {len(rows)} + {r}, m - 1)" for r in rows]
    if not once:
        lines += [f"d{r}_{v} = bias{v}" for r, v in cells]
        lines += ["if block > 0:", *[f"    {line}" for line in _access_lines(tiles, cells, "d", stores=False)]]
        lines += [f"c{r}_{v} += d{r}_{v}" for r, v in cells]
    return lines + _access_lines(tiles, cells, "c", stores=True)


def _product_lines(tiles: TiledProduct, number: str, wide: int) -> list[str]:
    """Return the statements that add the products of one step to a tile that is `wide` vectors wide."""
    lanes, high, unit = tiles.lanes, tiles.tile[0], vector_unit(tiles.tile[0])
    lines = []
    for s in range(left_operand(tiles.left, high).steps):
        for v in range(wide):
            column = ", ".join(f"b_[b_offset{v} + o{v}_{k} * column_stride_b]" for k in range(lanes))
            if tiles.right == "masked":
                lines += [f"b{v} = {_zero_vector(tiles)}"]
                lines += [f"address = b_ + ti.cast(b_offset{v}, ti.i64) * {tiles.type.itemsize}"]
                lines += [f"muladd.{source.TAICHI_NAMES[tiles.type.name]}_load(b{v}, address, count{v})"]
            else:
                lines += [f"b{v} = " + (f"ti.Vector([{column}])" if tiles.right == "gathered" else f"b_[b_offset{v}]")]
            lines += [f"b_offset{v} += k_stride_b"]
        for r in range(high):
            lines += [f"a = {number.format(r=r, s=s, u=r // unit, l=r % unit)}"]
            lines += [muladd.fma_line(f"c{r}_{v}", f"b{v}", "a", tiles.type.name) for v in range(wide)]
        lines += ["a_offset += k_stride_a"] if tiles.left == "columns" else []
    return lines


def _epilogue_lines(end: source.Epilogue, tile: tuple[int, int], blocks: int) -> list[str]:
    """Return the loop of an epilogue over the vectors of a tile, after the last block of its sum."""
    high, wide = tile
    start, first = "(n * m + row) * column_vectors", f"group % column_tiles * {wide}"
    return [
        f"if (block + 1) * {blocks} >= depth:",
        f"    for row in range(i * {high}, ti.min(m, (i + 1) * {high})):",
        f"        for e in range({start} + {first}, {start} + ti.min(column_vectors, {first} + {wide})):",
        *[f"            {line}" for line in end.lines.splitlines()],
    ]


def _access_lines(tiles: TiledProduct, cells: list[tuple[int, int]], name: str, stores: bool) -> list[str]:
    """Return the statements that store the vectors `name` of a tile's result, or load them."""
    lanes, scalar, lines = tiles.lanes, source.TAICHI_NAMES[tiles.type.name], []
    for r, v in cells:
        vector, element = f"{name}{r}_{v}", f"row{r} * size + j{v} * {lanes}"
        if not tiles.has_full_vectors and muladd.FUSED:
            arguments = f"address, {vector}, count{v}" if stores else f"{vector}, address, count{v}"
            lines += [f"address = y_ + ti.cast({element}, ti.i64) * {tiles.type.itemsize}"]
            lines += [f"muladd.{scalar}_{'store' if stores else 'load'}({arguments})"]
            continue
        place, indent = f"y_[row{r} * column_vectors + j{v}]", ""
        if not tiles.has_full_vectors:
            lines += [f"for l in range(ti.min({lanes}, size - j{v} * {lanes})):"]
            place, vector, indent = f"y_[{element} + l]", f"{vector}[l]", "    "
        lines += [f"{indent}{place} = {vector}" if stores else f"{indent}{vector} = {place}"]
    return lines


@arch_cache(16)
def dot_kernel(type: Any, serial: bool) -> Kernel:
    """Return a kernel that computes dot products, reading both operands in place, in vectors along the sum."""
    dtype, lanes, rows, columns = type.name, LANES[type], range(DOT_TILE[0]), range(DOT_TILE[1])
    cells = list(product(rows, columns))
    names = ["row_tiles", "column_tiles", "m", "size", "depth", "heads_a", "batch_stride_a", "head_stride_a"]
    names += ["row_stride_a", "heads_b", "batch_stride_b", "head_stride_b", "column_stride_b", "bias_stride", "k_step"]
    lines = [f"{x} = scalars_[{k}]" for k, x in enumerate(names)]
    lines += [
        "for t in range(first_t, last_t):",
        "    i = t // column_tiles % row_tiles",
        "    j = t % column_tiles",
        "    n = t // column_tiles // row_tiles",
        *[f"    {line}" for line in _BATCH_LINES],
        *[f"    row{r} = ti.min(i * {len(rows)} + {r}, m - 1)" for r in rows],
        *[f"    a{r} = batch_a + row{r} * row_stride_a" for r in rows],
        *[f"    column{c} = ti.min(j * {len(columns)} + {c}, size - 1)" for c in columns],
        *[f"    b{c} = batch_b + column{c} * column_stride_b" for c in columns],
        *[f"    d{r}_{c} = z_[column{c} * bias_stride]" for r, c in cells],
        f"    for block in range((depth + {BLOCK - 1}) // {BLOCK}):",
        *[
            f"        c{r}_{c} = ti.Vector([ti.{source.TAICHI_NAMES[dtype]}(0.0) for _ in range({lanes})])"
            for r, c in cells
        ],
        f"        k = block * {BLOCK}",
        f"        last = ti.min(depth, k + {BLOCK})",
        "        while k < last:",
        *[f"            y{c} = b_[b{c} + k]" for c in columns],
    ]
    for r in rows:
        lines += [f"            x = a_[a{r} + k]"]
        lines += [f"            {muladd.fma_vectors_line(f'c{r}_{c}', 'x', f'y{c}', dtype)}" for c in columns]
    lines += ["            k += k_step", f"        s = ti.{source.TAICHI_NAMES[dtype]}(0.0)"]
    for r, c in cells:
        lines += [f"        {muladd.sum_line('s', f'c{r}_{c}', dtype)}"]
        lines += [f"        d{r}_{c} = s + d{r}_{c}"]
    lines += [f"    y_[(n * m + row{r}) * size + column{c}] = d{r}_{c}" for r, c in cells]
    each, alone = vector_annotation(dtype, lanes), source.array_annotation(dtype)
    arrays = {"y_": alone, "a_": each, "b_": each, "z_": alone, "scalars_": source.array_annotation("int32")}
    head = ", ".join([*[f"{x}: {what}" for x, what in arrays.items()], "tiles: ti.i32"])
    loop = source.partitioned_loop("tiles", "".join(f"            {line}\n" for line in lines), serial)
    return get_kernel("matmul_dot", f"@ti.kernel\ndef matmul_dot_kernel({head}):\n{loop}", "aaaaai")
