"""Products of matrices: tiles of some rows and vectors of columns, whose sums stay in registers.

A tile wants vectors of columns of the right operand, and of the left one a number of each row a place of the sum, each
for all lanes. Where operands lie so that it can read them as they are, it does. Else they are first laid out in panels,
in the order of reading: of the left one, the rows of a tile; of the right one, a vector of columns after the other.
Tiles go through the sum in blocks, so that the columns of a block stay in the nearest cache for all rows of a chunk,
and these in the next one for all columns. Of little work a tile gathers each number by its strides: one launch is
quicker than three. Where both operands lie along the sum, as in ``x @ w.T``, and laying them out is too much for the
work, tiles add up vectors along it, and then the lanes of these. What is tiny, or no float, is one plain reduction.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi import cuda, muladd, source
from minigrad.backends.taichi.array import DEVICE, LINE, empty, lasting, shaped
from minigrad.backends.taichi.elementwise import collapsed, computed, filled
from minigrad.backends.taichi.reduce import reduced
from minigrad.backends.taichi.runtime import Kernel, compiled
from minigrad.backends.taichi.shape import in_rows
from minigrad.kernels import kernel, kernels_of
from minigrad.layout import broadcast_shapes

__all__ = ["LANES", "Tiles", "matmul", "tiling", "times", "vectors"]

LANES = {np.dtype("float32"): 16, np.dtype("float64"): 8}  # numbers in a vector of 64 bytes
STEPS = 4
TILES = {(8, 1): 1.0, (8, 2): 1.74, (8, 3): 2.36} if source.ROOMY else {(6, 1): 1.0, (4, 1): 0.8}
"""The rows and vectors of a tile, and how long it takes beside the first one. Its sums have to fit into registers."""
DOTS = (8, 3) if source.ROOMY else (3, 2)  # rows and columns of a tile of sums along the operands
PLAIN = 4096  # up to so many multiplications a reduction, one launch, is quicker
SERIAL = 2**22  # up to so many a second core is not worth waking
LITTLE = 2**16  # up to so many, gathering is quicker than laying out
FEW = 64  # so few rows read each column too seldom for it to pay to lay the columns out
NARROW = 256  # so few columns read each row too seldom
NEAR = 2**20  # bytes that are near wherever in them they lie
CHUNK = 2**18  # bytes of the left operand that are read for all columns, and stay in a core's second cache
LONG = 1 << 14  # of twice as many products in a sum it is made of stretches, which are added up as float64
BLOCK = 256  # so many products are added up, and then those sums: it keeps more digits than one long sum


def vectors(dtype: str, count: int) -> str:
    return f"ti.types.ndarray(dtype=ti.types.vector({count}, ti.{source.TI[dtype]}), ndim=1)"


def _memory(x: Any) -> tuple[int, int, int]:
    return x.address or x.__array_interface__["data"][0], 1, 1  # kernels here know their sizes


# How a panel, `width` numbers for each of the `depth` places of a sum, is read: `how` the numbers lie.
_READ = {
    # side by side, so that a vector is copied
    "beside": """        for k in range(depth):
            for u in range({units}):
                y_[(t * padded + k) * {units} + u] = a_[n * by + k * down + j * {units} + u]
""",
    # along the sum, so that they are turned in blocks of four
    "along": """        for k in range(depth // 4):
{loads}{stores}""",
    "any": """        for k in range(padded):
            for l in range({width}):
                x = a_[n * by + ti.min(j * {width} + l, size - 1) * right + ti.min(k, depth - 1) * down]
                y_[(t * padded + k) * {width} + l] = ti.select(k < depth, x, zero)
""",
}


@lru_cache(maxsize=64)
def _packing(how: str, type: Any, width: int, serial: bool) -> Kernel:
    dtype, rows = type.name, range(width)
    loads = [f"            x{r} = a_[n * by + ti.min(j * {width} + {r}, size - 1) * right + k]\n" for r in rows]
    unit = _unit(width)
    units = width // unit
    stores = [
        f"            y_[(t * padded + k * 4 + {s}) * {units} + {u}] = "
        f"ti.Vector([{', '.join(f'x{r}[{s}]' for r in rows[u * unit : (u + 1) * unit])}])\n"
        for s, u in product(range(4), range(units))
    ]
    body = _READ[how].format(width=width, units=units, loads="".join(loads), stores="".join(stores))
    out = source.array_of(dtype) if how == "any" else vectors(dtype, unit)
    given = {"beside": vectors(dtype, unit), "along": vectors(dtype, 4)}.get(how, source.array_of(dtype))
    body = f"        n = t // panels\n        j = t % panels\n        zero = ti.cast(0, ti.{source.TI[dtype]})\n{body}"
    numbers = ("batches", "panels", "size", "depth", "padded", "by", "right", "down")
    text = (
        f"@ti.kernel\ndef pack_{how}_{width}_kernel(y_: {out}, a_: {given}, "
        f"{', '.join(f'{x}: ti.i32' for x in numbers)}):\n{source.spread('batches * panels', body, serial)}"
    )
    return compiled(f"pack_{how}_{width}", text, "aa" + "i" * len(numbers))


class _Left(NamedTuple):
    """How a tile reads the left operand: the places of the sum in one step, how many numbers its memory is seen in at
    once, what is known before the loop, and number r of place s in step k. `deep` steps make the sum."""

    steps: int
    seen: int
    before: str
    number: str


def _unit(rows: int) -> int:
    """How many numbers can be one vector in memory, if so many lie side by side time and again."""
    return rows & -rows


def _left(how: str, rows: int) -> _Left:
    unit = _unit(rows)
    row = f"r{{r}} = n * by_a + ti.min(i * {rows} + {{r}}, m - 1) * down_a"
    return {
        "panels": _Left(
            1, unit, f"first = (n * by_a + i * deep) * {rows // unit}", f"a_[first + k * {rows // unit} + {{u}}][{{l}}]"
        ),
        "rows": _Left(8, 8, row, "a_[r{r} + k][{s}]"),
        "columns": _Left(
            1, unit, f"far = n * by_a + i * {rows // unit} + block * {BLOCK} * right_a", "a_[far + {u}][{l}]"
        ),
        "any": _Left(1, 1, row, "a_[r{r} + k * right_a]"),
    }[how]


_NUMBERS = (  # in memory, since each would cost a launch as an argument 0.4 µs
    "down", "chunks", "rows", "right", "across", "m", "size", "deep", "by_a", "down_a", "right_a",
    "by_b", "step_b", "panel_b", "right_b", "step_z",
)  # fmt: skip


class Tiles(NamedTuple):
    """What decides about the text of a product: see `tiling`. Its kernel reads numbers from the array `table`."""

    type: Any
    left: str
    gathered: bool
    tile: tuple[int, int]
    whole: bool
    once: bool
    serial: bool

    @property
    def table(self) -> int:
        """The place of that array among the arguments."""
        return 4

    @property
    def lanes(self) -> int:
        """How many numbers of the result are a vector."""
        return LANES[self.type]

    def items(self, numbers: Any, tiles: int) -> int:
        """How many numbers the result has, by those that the kernel reads, and its tiles."""
        down, chunks, _, right, across, m = map(int, numbers[:6])
        return tiles // (down * chunks * across) * m * right * self.lanes

    def kernel(self, end: source.End | None = None) -> Kernel:
        """That of the product, or with an end."""
        return tiling(self, end or source.NO_END)


@lru_cache(maxsize=256)
def tiling(tiles: Tiles, end: source.End = source.NO_END) -> Kernel:
    """Tiles that read the left operand so, the right one in vectors or `gathered`, and write `whole` vectors or not;
    the sum is one block, gone through `once`, or several.

    Rows, vectors and columns past the end are the last ones again, which are written again. The loop along the sum is
    one that LLVM cannot count: it would take several steps at once, and not have registers for them.
    """
    type, left, gathered, (high, wide), whole, once, serial = tiles
    dtype, lanes = type.name, LANES[type]
    rows, vectors_ = range(high), range(wide)
    steps, seen, before, number = _left(left, high)
    each, zero = vectors(dtype, lanes), f"ti.{source.TI[dtype]}(0.0)"
    cells, alone = list(product(rows, vectors_)), source.array_of(dtype)
    start = "z_[j{v} * step_z]" if once else f"ti.Vector([{zero} for _ in range({lanes})])"
    arrays = {"y_": each if whole else alone, "a_": source.array_of(dtype, seen), "b_": alone if gathered else each}
    arrays |= {"z_": each, "numbers_": source.array_of("int32")}
    blocks, places = BLOCK // steps, range(lanes) if gathered else ()
    lines = [f"{x} = numbers_[{k}]" for k, x in enumerate(_NUMBERS)]
    lines += ["for group in range(first_t // down, (last_t + down - 1) // down):"]  # tiles of the same columns
    for v in vectors_:
        lines += [f"    j{v} = ti.min(group % across * {wide} + {v}, right - 1)"]
        lines += [f"    o{v}_{k} = ti.min(j{v} * {lanes} + {k}, size - 1)" for k in places]
    lines += [
        "    n = group // across // chunks",
        "    begin = group // across % chunks * down",
        "    end = ti.min(begin + ti.min(last_t - group * down, down), rows)",
        f"    for block in range((deep + {blocks - 1}) // {blocks}):",
        "        for i in range(begin + ti.max(first_t - group * down, 0), end):",
        *[f"            {before.format(r=r)}" for r in (rows if "{r}" in before else (0,))],
        *[f"            at{v} = n * by_b + j{v} * panel_b + block * {BLOCK} * step_b" for v in vectors_],
        *[f"            c{r}_{v} = {start.format(v=v)}" for r, v in cells],
        f"            for k in range(block * {blocks}, ti.min(deep, (block + 1) * {blocks})):",
    ]
    lines += _products(tiles, number)
    lines += [f"            row{r} = n * m + ti.min(i * {high} + {r}, m - 1)" for r in rows]
    if not once:
        lines += [f"            d{r}_{v} = z_[j{v} * step_z]" for r, v in cells]
        lines += ["            if block > 0:", *_cells(cells, "d{r}_{v}{l} = {y}", whole, lanes, " " * 16)]
        lines += [f"            c{r}_{v} += d{r}_{v}" for r, v in cells]
    lines += _cells(cells, "{y} = c{r}_{v}{l}", whole, lanes, " " * 12)
    lines += _end_of(end, tiles.tile, blocks) if end.lines else []
    known = [f"    {source.repeated(f'{x}_', x, lanes)}" for x in end.numbers]
    loop = source.shared("tiles", "".join(f"            {line}\n" for line in lines), serial, "".join(known))
    name = f"matmul_{left}{'_gathered' * gathered}{'_ended' * bool(end.lines)}"
    head = [f"{x}: {what}" for x, what in arrays.items()] + ["tiles: ti.i32"]
    head += [f"{x}_: {each}" for x in end.arrays] + [f"{x}_: ti.{source.TI[dtype]}" for x in end.numbers]
    kinds = "aaaaai" + "a" * len(end.arrays) + "f" * len(end.numbers)
    text = f"{end.functions}@ti.kernel\ndef {name}_kernel({', '.join(head)}):\n{loop}"
    made = compiled(name, text, kinds)
    if whole and type.name == "float32":
        made.work = tiles
    return made


def _products(tiles: Tiles, number: str) -> list[str]:
    """Lines that add the products of one step along the sum to those of a tile."""
    lanes, (high, wide), unit = LANES[tiles.type], tiles.tile, _unit(tiles.tile[0])
    lines = []
    for s in range(_left(tiles.left, high).steps):
        for v in range(wide):
            column = ", ".join(f"b_[at{v} + o{v}_{k} * right_b]" for k in range(lanes))
            lines += [f"b{v} = " + (f"ti.Vector([{column}])" if tiles.gathered else f"b_[at{v}]")]
            lines += [f"at{v} += step_b"]
        for r in range(high):
            lines += [f"a = {number.format(r=r, s=s, u=r // unit, l=r % unit)}"]
            lines += [muladd.added_product(f"c{r}_{v}", f"b{v}", "a", tiles.type.name) for v in range(wide)]
        lines += ["far += right_a"] if tiles.left == "columns" else []
    return [f"                {line}" for line in lines]


def _end_of(end: source.End, tile: tuple[int, int], blocks: int) -> list[str]:
    """Lines that go through the vectors of a tile, each once, after the last block of its sum."""
    high, wide = tile
    start, first = "(n * m + row) * right", f"group % across * {wide}"
    return [
        f"            if (block + 1) * {blocks} >= deep:",
        f"                for row in range(i * {high}, ti.min(m, (i + 1) * {high})):",
        f"                    for e in range({start} + {first}, {start} + ti.min(right, {first} + {wide})):",
        *[f"                        {line}" for line in end.lines.splitlines()],
    ]


def _cells(cells: list[tuple[int, int]], line: str, whole: bool, lanes: int, pad: str) -> list[str]:
    """A line for the vector of the result at each row and vector of a tile, or for each of its numbers."""
    if whole:
        return [pad + line.format(r=r, v=v, l="", y=f"y_[row{r} * right + j{v}]") for r, v in cells]
    lines = []
    for last in dict.fromkeys(v for _, v in cells):
        lines.append(f"{pad}for l in range(ti.min({lanes}, size - j{last} * {lanes})):")
        y = f"y_[row{{r}} * size + j{last} * {lanes} + l]"
        lines += [f"{pad}    {line.format(r=r, v=v, l='[l]', y=y.format(r=r))}" for r, v in cells if v == last]
    return lines


@lru_cache(maxsize=16)
def _dotting(type: Any, serial: bool) -> Kernel:
    """Tiles that read both operands along the sum, as they lie."""
    dtype, lanes, rows, columns = type.name, LANES[type], range(DOTS[0]), range(DOTS[1])
    cells = list(product(rows, columns))
    names = ("down", "across", "m", "size", "deep", "by_a", "down_a", "by_b", "right_b", "step_z")
    lines = [f"{x} = numbers_[{k}]" for k, x in enumerate(names)]
    lines += [
        "for t in range(first_t, last_t):",
        "    i = t // across % down",
        "    j = t % across",
        "    n = t // across // down",
        *[f"    row{r} = ti.min(i * {len(rows)} + {r}, m - 1)" for r in rows],
        *[f"    a{r} = n * by_a + row{r} * down_a" for r in rows],
        *[f"    column{c} = ti.min(j * {len(columns)} + {c}, size - 1)" for c in columns],
        *[f"    b{c} = n * by_b + column{c} * right_b" for c in columns],
        *[f"    c{r}_{c} = ti.Vector([ti.{source.TI[dtype]}(0.0) for _ in range({lanes})])" for r, c in cells],
        "    for k in range(deep):",
        *[f"        y{c} = b_[b{c} + k]" for c in columns],
    ]
    for r in rows:
        lines += [f"        x = a_[a{r} + k]"]
        lines += [f"        {muladd.added_products(f'c{r}_{c}', 'x', f'y{c}', dtype)}" for c in columns]
    lines += [f"    s = ti.{source.TI[dtype]}(0.0)"]
    for r, c in cells:
        lines += [f"    {muladd.summed('s', f'c{r}_{c}', dtype)}"]
        lines += [f"    y_[(n * m + row{r}) * size + column{c}] = s + z_[column{c} * step_z]"]
    each, alone = vectors(dtype, lanes), source.array_of(dtype)
    arrays = {"y_": alone, "a_": each, "b_": each, "z_": alone, "numbers_": source.array_of("int32")}
    head = ", ".join([*[f"{x}: {what}" for x, what in arrays.items()], "tiles: ti.i32"])
    loop = source.shared("tiles", "".join(f"            {line}\n" for line in lines), serial)
    return compiled("matmul_dots", f"@ti.kernel\ndef matmul_dots_kernel({head}):\n{loop}", "aaaaai")


def _packed(x: Any, batches: int, width: int, size: int, depth: int, by: int, right: int, down: int) -> Any:
    """The panels of numbers x[n * by + l * right + k * down], l below `size` and k below `depth`."""
    made, count, numbers = _panels(x.dtype, _memory(x)[0] % LINE, batches, width, size, depth, by, right, down)
    out = empty((count,), x.dtype)
    made.launch(_memory(out), _memory(x), *numbers)
    return out


@lru_cache(maxsize=4096)
def _panels(
    dtype: Any, odd: int, batches: int, width: int, size: int, depth: int, by: int, right: int, down: int
) -> tuple[Kernel, int, tuple[int, ...]]:
    """The kernel that lays them out, the count of all, and its numbers; `odd` bytes are before whole lines."""
    panels, deep, length = -(-size // width), -(-depth // STEPS) * STEPS, dtype.itemsize
    count = batches * panels * deep * width
    how, unit = "any", 1
    if depth == deep:
        each = _unit(width)
        if right == 1 and not (size % width or by % each or down % each or odd % (each * length)):
            how, unit = "beside", each
        elif down == 1 and not (by % 4 or right % 4 or odd % (4 * length)):
            how, unit = "along", 4
    made = _packing(how, dtype, width, count <= 4 * source.SERIAL)
    return made, count, (batches, panels, size, depth, deep, by // unit, right // unit, down // unit)


@lru_cache(maxsize=2)
def _zeros(dtype: Any) -> Any:
    return lasting(filled((LANES[dtype],), dtype))


class Plan(NamedTuple):
    """How a product is computed: what is laid out before, as arguments of `_packed`, and the launch."""

    left: tuple[int, ...] | None
    right: tuple[int, ...] | None
    kernel: Kernel
    numbers: np.ndarray[Any, Any]
    memory: tuple[int, int, int]  # of the numbers
    tiles: int


def _planned(made: Kernel, numbers: tuple[int, ...], tiles: int, left: Any = None, right: Any = None) -> Plan:
    kept = lasting(np.array(numbers, np.int32))
    return Plan(left, right, made, kept, (kept.ctypes.data, len(kept), 4), tiles)


def _tile(m: int, right: int) -> tuple[int, int]:
    """The tile that goes quickest through m rows and so many vectors of columns."""
    return min(TILES, key=lambda tile: -(-m // tile[0]) * -(-right // tile[1]) * TILES[tile])


@lru_cache(maxsize=4096)
def _plan(
    dtype: Any, m: int, n: int, depth: int, count: int, odd_a: int, odd: int, by_a: int, down_a: int, right_a: int,
    by_b: int, down_b: int, right_b: int, biased: bool,
) -> Plan:  # fmt: skip
    """For (m, depth) times (depth, n), `count` of each, with their steps; `odd` bytes of b are before whole lines."""
    lanes, length, work = LANES[dtype], dtype.itemsize, count * m * n * depth
    along = (by_a, down_a, by_b, right_b)
    lie_along = right_a == down_b == 1 and not (odd_a or odd or depth % lanes or any(step % lanes for step in along))
    if lie_along and m * n * 8 < depth * (m + n) and depth <= BLOCK * lanes:
        down, across = -(-m // DOTS[0]), -(-n // DOTS[1])
        numbers = (down, across, m, n, depth // lanes, *[step // lanes for step in along], int(biased))
        return _planned(_dotting(dtype, work <= SERIAL), numbers, count * down * across)
    near = m * depth * length <= NEAR
    left, gathered = "panels", False
    tile = _tile(m, -(-n // lanes))
    high, unit = tile[0], _unit(tile[0])
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
    steps, seen = _left(left, high)[:2]
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
    numbers = (down, chunks, rows, right, across, m, n, rounds, *reads_a, *reads_b, int(biased))
    return _planned(made, numbers, count * chunks * across * down, lay_a, lay_b)


def _batched(x: Any, batch: tuple[int, ...]) -> tuple[Any, int]:
    """`x` with `batch` in front of its last two dimensions, in which one step serves all; and that step, in numbers."""
    if x.ndim == 2:
        return x, 0
    wide = np.broadcast_to(x, (*batch, *x.shape[-2:]), subok=True)
    _, (steps,) = collapsed(batch, [[by // x.itemsize for by in wide.strides[:-2]]])
    if len(steps) == 1:
        return x, steps[0]
    return in_rows(wide.view(x.__class__)), x.shape[-2] * x.shape[-1]


def times(a: Any, b: Any, bias: Any = None) -> Any:
    """a @ b + bias of floats, by tiles."""
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
        and not (n % LANES[a.dtype] or _memory(bias)[0] % LINE)
    )
    (down_a, right_a), (down_b, right_b) = a.strides[-2:], b.strides[-2:]
    count, odds = prod(batch), (_memory(a)[0] % LINE, _memory(b)[0] % LINE)
    steps = (by_a, down_a // length, right_a // length, by_b, down_b // length, right_b // length)
    plan = _plan(a.dtype, m, n, depth, count, *odds, *steps, early)
    left = _packed(a, *plan.left) if plan.left else a
    right = _packed(b, *plan.right) if plan.right else b
    out = empty((*batch, m, n), a.dtype)
    start = bias if early else _zeros(a.dtype)
    plan.kernel.launch(_memory(out), _memory(left), _memory(right), _memory(start), plan.memory, plan.tiles)
    if bias is not None and not early:
        out = computed("add", "a + b", (out, bias), out.dtype, out)
    return out


def _batches(a: Any, b: Any) -> int:
    return int(max(prod(a.shape[:-2]), prod(b.shape[:-2])))


def _by_blocks(a: Any, b: Any, bias: Any) -> Any:
    """a @ b + bias on CUDA."""
    batch = () if a.ndim == b.ndim == 2 else broadcast_shapes(a.shape[:-2], b.shape[:-2], op="matmul")
    parts = 1 if batch else cuda.parts(len(a), b.shape[1], len(b))
    if parts > 1:
        some = len(b) // parts
        by_a, by_b = some * a.strides[1] // a.itemsize, some * b.strides[0] // b.itemsize
        products = [*cuda.times(a[:, :some], b[:some], (parts,), by_a, by_b), *([] if bias is None else [bias])]
        return computed("matmul_parts", " + ".join(source.LETTERS[: len(products)]), products, a.dtype)
    (a, by_a), (b, by_b) = _batched(a, batch), _batched(b, batch)
    early = bias if bias is not None and bias.shape == b.shape[-1:] and bias.flags.c_contiguous else None
    out = cuda.times(a, b, batch, by_a, by_b, early)
    return out if bias is early else computed("add", "a + b", (out, bias), out.dtype, out)


def _product(a: Any, b: Any, bias: Any = None) -> Any:
    (m, depth), n = a.shape[-2:], b.shape[-1]
    tiled = source.VECTORIZED and a.dtype == b.dtype and a.dtype in LANES and min(m, n) > 1
    if tiled and _batches(a, b) * m * depth * n > PLAIN:
        return times(a, b, bias)
    if a.dtype == b.dtype == cuda.FLOAT and cuda.serves_product(m, n, depth, _batches(a, b)):
        return _by_blocks(a, b, bias)
    dtype = np.result_type(a.dtype, b.dtype)
    ends = "(s == 0) == 0" if dtype.kind == "b" else "s"
    dim = max(a.ndim, b.ndim) - 1
    out = reduced("matmul", "sum", "a * b", (a[..., None], b[..., None, :, :]), (dim,), False, dtype, ends)
    return out if bias is None else computed("add", "a + b", (out, bias), out.dtype, out)


@kernel("matmul", DEVICE)
def matmul(a: Any, b: Any) -> Any:
    """Of matrices, batched and broadcast in all dimensions but the last two."""
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
def contract(a: Any, b: Any, *, left: str, right: str, out: str) -> Any:
    """By one batched product of matrices, (both, only in a, summed) and (both, summed, only in b)."""
    both, summed = [k for k in out if k in left and k in right], [k for k in left if k not in out]
    mine, its = [k for k in out if k not in right], [k for k in out if k not in left]
    if both + its + mine == list(out):  # this way round the result lies as it is asked for
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
    return y if found == list(out) else y.transpose([found.index(k) for k in out])
