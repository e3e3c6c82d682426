"""Matrix products on CUDA: one output tile per thread block.

A thread block copies tiles of the operands to shared memory once and reads them many times. The next tiles are
prefetched into registers meanwhile (double buffering).
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import empty, like, pointer
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.backends.taichi.runtime.types import FLOAT

__all__ = ["ImageTable", "parts", "seen", "serves_product", "table_of", "times"]


class Tile(NamedTuple):
    """The tile of a thread block, `rows` x `columns`, and of a thread, `high` x `wide`; multiples of 4 (float4)."""

    rows: int
    columns: int
    high: int
    wide: int
    depth: int
    """The k extent of a tile in shared memory."""

    @property
    def threads(self) -> int:
        return self.rows // self.high * (self.columns // self.wide)


LARGE = Tile(128, 128, 8, 16, 8)
NARROW = Tile(128, 64, 8, 8, 8)  # for few columns
BUSY = 64  # minimum tiles for acceptable occupancy
MANY = 320  # tiles for full occupancy
PIECE, PIECES = 192, 6  # split-k: minimum elements per piece, maximum pieces
PAD = 4  # padding elements between rows of a tile in shared memory
SLIM = Tile(128, 32, 8, 4, 16)


def serves_product(m: int, n: int, depth: int, batches: int) -> bool:
    """Return whether to use tiles: enough of them to keep the GPU busy, and none mostly empty."""
    enough = batches * m * n >= (1 << 14 if depth > 1024 else 1 << 12)
    return driver.arch() == "cuda" and min(m, n) >= 32 and depth >= 8 and enough


class ImageTable(NamedTuple):
    """Offset table of an implicit GEMM. For each row and each k, `numbers` has an offset from the first element of an
    image. With padding ("around") it also has a code for each; the two codes add up to 65,536 * y + x, the position in
    the padded image.
    """

    numbers: Any
    shape: tuple[int, int, int]
    """The shape of the result."""
    tiles: int
    how: tuple[Tile, tuple[bool, bool], bool, str, bool]
    """The arguments of `_product`, which determine the source."""


class Fetch(NamedTuple):
    """The elements of an operand that a thread loads: the k index and the index in the tile of each.

    Adjacent threads load adjacent elements, along k or across it (coalesced).
    """

    side: str
    near: str
    row: int
    places: tuple[tuple[str, str], ...]


def _fetches(tile: Tile, along: tuple[bool, bool]) -> list[Fetch]:
    found = []
    for side, near, size, by_sum in (("a", "near_a", tile.rows, along[0]), ("b", "near_b", tile.columns, along[1])):
        count, apart = size * tile.depth // tile.threads, tile.threads // tile.depth
        if by_sum:
            places = [(f"lane % {tile.depth}", f"lane // {tile.depth} + {j * apart}") for j in range(count)]
        elif tile.threads >= size:
            places = [(f"lane // {size} + {j * (tile.threads // size)}", f"lane % {size}") for j in range(count)]
        else:
            parts = size // tile.threads
            places = [(f"{j // parts}", f"lane + {j % parts * tile.threads}") for j in range(count)]
        found.append(Fetch(side, near, size + PAD, tuple(places)))
    return found


def _fetch(fetches: list[Fetch], whole: bool, seen: str, pad: str, start: str) -> str:
    """Generate loads of both operands into registers. If `whole`, sizes are multiples of the tile; otherwise load 0
    beyond the last k."""
    lines = []
    for one in fetches:
        for j, (k, _) in enumerate(one.places):
            name, at = f"{one.side}{j}", f"{start} + {k}"
            k, inside = at if whole else f"ti.min({at}, depth - 1)", [] if whole else [f"({at} < depth)"]
            place = f"{name}_at + ({k}) * {one.side}_k"
            if seen and one.side == "a":
                place = f"{name}_at + table_[down + {k}]"
                if seen == "around":
                    lines.append(f"code = {name}_code + table_[down_code + {k}]")
                    inside.append("(ti.cast((code >> 16) - above, ti.u32) < ti.cast(rows, ti.u32))")
                    inside.append("(ti.cast((code & 65535) - before, ti.u32) < ti.cast(columns, ti.u32))")
                    lines.append(f"inside = {' & '.join(inside)}")
                    inside, place = ["inside"], f"ti.select(inside, {place}, 0)"
            number = f"{one.side}_[{place}]"
            lines.append(f"{name} = " + (f"ti.select({' & '.join(inside)}, {number}, zero)" if inside else number))
    return "".join(f"{pad}{line}\n" for line in lines)


def _store(fetches: list[Fetch], pad: str, half: str) -> str:
    return "".join(
        f"{pad}{one.near}[({half} + {k}) * {one.row} + {place}] = {one.side}{j}\n"
        for one in fetches
        for j, (k, place) in enumerate(one.places)
    )


def _head(tile: Tile, fetches: list[Fetch], whole: bool, seen: str) -> str:
    """Generate the prologue: the tile of the block, the start addresses of the loads, and zeroed accumulators."""
    lines = [f"{name} = table_[{k}]" for k, name in enumerate(SIZES)] if seen else []
    if seen:
        lines += [
            f"right = {len(SIZES)}",
            "down = right + m",
            "right_code = down + depth",
            "down_code = right_code + m",
        ]
    lines += [
        "ti.simt.block.sync()",
        f"lane = t % {tile.threads}",
        f"tile = t // {tile.threads}",
        "batch = tile // (high * wide)",
        f"top = tile % (high * wide) // wide * {tile.rows}",
        f"first = tile % wide * {tile.columns}",
        f"x = lane % {tile.columns // tile.wide}",
        f"y = lane // {tile.columns // tile.wide}",
        f"near_a = ti.simt.block.SharedArray(({2 * tile.depth * (tile.rows + PAD)},), ti.f32)",
        f"near_b = ti.simt.block.SharedArray(({2 * tile.depth * (tile.columns + PAD)},), ti.f32)",
        "zero = ti.f32(0.0)",
        "a_start, b_start = batch * a_by, batch * b_by",
    ]
    ends = {"a": ("top", "m", "a_start"), "b": ("first", "n", "b_start")}
    for one in fetches:
        begin, size, start = ends[one.side]
        for j, (_, place) in enumerate(one.places):
            place = f"{begin} + {place}" if whole else f"ti.min({begin} + {place}, {size} - 1)"
            by = f"table_[right + {place}]" if seen and one.side == "a" else f"({place}) * {one.side}_{size}"
            lines.append(f"{one.side}{j}_at = {start} + {by}")
            if seen == "around" and one.side == "a":
                lines.append(f"a{j}_code = table_[right_code + {place}]")
    for r in range(tile.high):
        lines += [f"c{r}_{c} = zero" for c in range(tile.wide)]
    return "".join(f"        {line}\n" for line in lines)


@cached()
def _product(tile: Tile, along: tuple[bool, bool], whole: bool, seen: str, few: bool, biased: bool) -> tuple[str, str]:
    """Generate the kernel. Operands are contiguous along k where `along`; if `whole`, sizes are multiples of the tile.

    If `seen`, load a through a table, with padding if it is "around", and store the result transposed.
    """
    apart_y, apart_x = tile.rows // tile.high, tile.columns // tile.wide
    fetches = _fetches(tile, along)
    body = (
        _head(tile, fetches, whole, seen) + _fetch(fetches, whole, seen, " " * 8, "0") + _store(fetches, " " * 8, "0")
    )
    body += f"        ti.simt.block.sync()\n        turns = (depth + {tile.depth - 1}) // {tile.depth}\n"
    body += f"        for turn in range(turns):\n            half = (turn & 1) * {tile.depth}\n"
    body += f"            ahead = ti.min(turn + 1, turns - 1) * {tile.depth}\n"
    body += _fetch(fetches, whole, seen, " " * 12, "ahead")
    body += f"            for d in ti.static(range({tile.depth})):\n"
    pad = " " * 16
    body += f"{pad}at = (half + d) * {tile.rows + PAD} + y * 4\n"
    body += "".join(f"{pad}l{r} = near_a[at + {r // 4 * apart_y * 4 + r % 4}]\n" for r in range(tile.high))
    body += f"{pad}at = (half + d) * {tile.columns + PAD} + x * 4\n"
    body += "".join(f"{pad}r{c} = near_b[at + {c // 4 * apart_x * 4 + c % 4}]\n" for c in range(tile.wide))
    for r in range(tile.high):
        body += "".join(f"{pad}c{r}_{c} += l{r} * r{c}\n" for c in range(tile.wide))
    body += (
        f"            half = {tile.depth} - half\n{_store(fetches, ' ' * 12, 'half')}            ti.simt.block.sync()\n"
    )
    for r in range(tile.high):
        body += f"        i = top + (y + {r // 4 * apart_y}) * 4 + {r % 4}\n"
        for c in range(tile.wide):
            column = f"first + (x + {c // 4 * apart_x}) * 4 + {c % 4}"
            into = f"(batch * n + {column}) * m + i" if seen else f"(batch * m + i) * n + {column}"
            guard = "" if whole else f"if (i < m) & ({column} < n):\n            "
            added = f" + z_[{column if whole else f'ti.min({column}, n - 1)'}]" if biased else ""
            body += f"        {guard}y_[{into}] = c{r}_{c}{added}\n"
    numbers: tuple[str, ...] = (
        "batches",
        "high",
        "wide",
        "m",
        "n",
        "depth",
        "a_by",
        "a_m",
        "a_k",
        "b_by",
        "b_k",
        "b_n",
    )
    takes = [f"{x}_: {source.array_of('float32')}" for x in ("yabz" if biased else "yab")]
    tiles, name = "batches * high * wide", "matmul_by_blocks"
    if seen:
        takes, numbers = [*takes, f"table_: {source.array_of('int32')}"], ("tiles",)
        tiles, name = "tiles", "seen_by_blocks"
    text = (
        f"@ti.kernel\ndef {name}_kernel({', '.join(takes)}, {', '.join(f'{x}: ti.i32' for x in numbers)}):\n"
        f"{source.blocks(tiles, tile.threads, body, few)}"
    )
    return text, "a" * len(takes) + "i" * len(numbers)


def _tile(batches: int, m: int, n: int) -> Tile:
    """Return the largest tile that is not mostly empty and gives enough tiles to keep a GPU busy, else the smallest."""
    for tile in (LARGE, NARROW):
        if n > tile.columns // 2 and batches * -(-m // tile.rows) * -(-n // tile.columns) >= BUSY:
            return tile
    return SLIM


def parts(m: int, n: int, depth: int) -> int:
    """Return the split-k factor: how many partial products to compute where there are too few tiles for all
    multiprocessors, as for weight gradients."""
    tiles = -(-m // LARGE.rows) * -(-n // LARGE.columns)
    for count in range(min(MANY // tiles, depth // PIECE, PIECES), 1, -1):
        if depth % (count * LARGE.depth) == 0:
            return count
    return 1


def times(a: Any, b: Any, batch: tuple[int, ...], by_a: int, by_b: int, bias: Any = None) -> Any:
    """Return a @ b + bias for arbitrarily strided matrices, whose batches are `by_a` and `by_b` elements apart; `bias`
    has one element per column."""
    (m, depth), n = a.shape[-2:], b.shape[-1]
    out, tile = empty((*batch, m, n), FLOAT), _tile(prod(batch), m, n)
    (a_m, a_k), (b_k, b_n) = [tuple(by // 4 for by in x.strides[-2:]) for x in (a, b)]
    whole = m % tile.rows == n % tile.columns == depth % tile.depth == 0
    sizes = (prod(batch), -(-m // tile.rows), -(-n // tile.columns), m, n, depth)
    made = compiled(
        "matmul_by_blocks",
        *_product(tile, (a_k == 1, b_k == 1), whole, "", prod(sizes[:3]) <= source.FEW_BLOCKS, bias is not None),
    )
    more = () if bias is None else (pointer(bias),)
    made(pointer(out), pointer(a), pointer(b), *more, *sizes, by_a, a_m, a_k, by_b, b_k, b_n)
    return out


# Arguments that a convolution kernel reads from memory: each launch argument costs 0.6 µs, and a window has many.
SIZES = ("high", "wide", "m", "n", "depth", "a_by", "b_by", "b_k", "b_n", "rows", "columns", "above", "before")


def table_of(
    right: Any, down: Any, codes: tuple[Any, Any] | None, image: tuple[int, ...], batches: int, n: int,
    steps: tuple[int, int, int],
) -> ImageTable:  # fmt: skip
    """Return the `ImageTable` of `batches` products with `n` columns.

    `image` is the number of elements, rows and columns of an image, and its top and left padding. `steps` are the
    strides of b along the batch, k and the columns.
    """
    m, depth = len(right), len(down)
    tile = _tile(batches, m, n)
    high, wide = -(-m // tile.rows), -(-n // tile.columns)
    sizes = (high, wide, m, n, depth, image[0], *steps, *image[1:])
    host = np.concatenate([sizes, right, down, *(codes or ())]).astype(np.int32)
    whole = m % tile.rows == n % tile.columns == depth % tile.depth == 0
    tiles = batches * high * wide
    how = tile, (False, steps[1] == 1), whole, "around" if codes else "seen", tiles <= source.FEW_BLOCKS
    return ImageTable(like(host), (batches, n, m), tiles, how)


def seen(x: Any, b: Any, table: ImageTable, bias: Any = None) -> Any:
    """Return the implicit GEMM, x[batch] at table[row, k] times b[batch, k, column], summed over k, plus bias[column];
    the result is transposed, (batches, n, rows)."""
    out = empty(table.shape, FLOAT)
    made = compiled("seen_by_blocks", *_product(*table.how, bias is not None))
    more = () if bias is None else (pointer(bias),)
    made(pointer(out), pointer(x), pointer(b), *more, pointer(table.numbers), table.tiles)
    return out
