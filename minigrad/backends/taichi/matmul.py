"""Products of matrices: tiles of 8 rows and one vector of columns, whose sums stay in registers.

The operands are first laid out in panels, in the order in which a tile reads them: of the left one, 8 rows by 4 places
of the sum; of the right one, a vector of columns after the other. So any strides, transposed operands among them, cost
the same; and 64 bytes at once can be loaded from an aligned place. What is small, or no float, is one plain reduction.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi import source
from minigrad.backends.taichi.array import CpuArray, empty, shaped
from minigrad.backends.taichi.elementwise import collapsed, computed, filled, put
from minigrad.backends.taichi.reduce import reduced
from minigrad.backends.taichi.runtime import Kernel, compiled
from minigrad.backends.taichi.shape import in_rows
from minigrad.kernels import kernel, kernels_of
from minigrad.layout import broadcast_shapes

__all__ = ["LANES", "Panels", "matmul", "packed", "times", "vectors"]

DEVICE = "cpu"
LANES = {np.dtype("float32"): 16, np.dtype("float64"): 8}  # numbers in a vector of 64 bytes
ROWS, STEPS = 8, 4
PLAIN = 4096  # up to so many multiplications a reduction, one launch, is quicker
FEW = 64  # so few rows read each column too seldom for it to pay to lay the columns out
NEAR = 2**20  # bytes that are near wherever in them they lie
BLOCK = 64  # so many times 4 products are added up, and then those sums: it keeps more digits than one long sum


def vectors(dtype: str, count: int) -> str:
    return f"ti.types.ndarray(dtype=ti.types.vector({count}, ti.{source.TI[dtype]}), ndim=1)"


def _memory(x: Any) -> tuple[int, int, int]:
    return x.address or x.__array_interface__["data"][0], 1, 1  # kernels here know their sizes


# How a panel, `width` numbers for each of the `depth` places of a sum, is read: `how` the numbers lie.
_READ = {
    # side by side, so that a vector is copied
    "beside": """        for k in range(depth):
            y_[t * padded + k] = a_[n * by + k * down + j]
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
    stores = [
        f"            y_[t * padded + k * 4 + {s}] = ti.Vector([{', '.join(f'x{r}[{s}]' for r in rows)}])\n"
        for s in range(4)
    ]
    body = _READ[how].format(width=width, loads="".join(loads), stores="".join(stores))
    out = source.array_of(dtype) if how == "any" else vectors(dtype, width)
    given = {"beside": vectors(dtype, width), "along": vectors(dtype, 4)}.get(how, source.array_of(dtype))
    body = f"        n = t // panels\n        j = t % panels\n        zero = ti.cast(0, ti.{source.TI[dtype]})\n{body}"
    numbers = ("batches", "panels", "size", "depth", "padded", "by", "right", "down")
    text = (
        f"@ti.kernel\ndef pack_{how}_{width}_kernel(y_: {out}, a_: {given}, "
        f"{', '.join(f'{x}: ti.i32' for x in numbers)}):\n{source.spread('batches * panels', body, serial)}"
    )
    return compiled(f"pack_{how}_{width}", text, "aa" + "i" * len(numbers))


@lru_cache(maxsize=16)
def _tiling(type: Any, serial: bool) -> Kernel:
    dtype, lanes, rows, steps = type.name, LANES[type], range(ROWS), range(STEPS)
    each, zero = vectors(dtype, lanes), f"ti.{source.TI[dtype]}(0.0)"
    numbers = ("batches", "down", "right", "m", "wide", "deep", "by_a", "by_b", "step_b", "panel_b", "step_z")
    head = f"y_: {each}, a_: {vectors(dtype, ROWS * STEPS)}, b_: {each}, z_: {each}, "
    head = f"@ti.kernel\ndef matmul_tiles_kernel({head}{', '.join(f'{x}: ti.i32' for x in numbers)}):\n"
    lines = [
        "        i = t % down",
        "        j = t // down % right",
        "        n = t // down // right",
        "        first = n * by_a + i * deep",
        "        at = n * by_b + j * panel_b",
        *[f"        d{r} = z_[j * step_z]" for r in rows],
        f"        for block in range((deep + {BLOCK - 1}) // {BLOCK}):",
        *[f"            c{r} = ti.Vector([{zero} for _ in range({lanes})])" for r in rows],
        f"            for k in range(first + block * {BLOCK}, first + ti.min(deep, (block + 1) * {BLOCK})):",
    ]
    for s in steps:
        lines.append(f"                b{s} = b_[at + {s} * step_b]")
        lines += [f"                c{r} += b{s} * a_[k][{s * ROWS + r}]" for r in rows]
    lines.append(f"                at += {STEPS} * step_b")
    lines += [f"            d{r} += c{r}" for r in rows]
    for r in rows:
        lines.append(f"        if i * {ROWS} + {r} < m:")
        lines.append(f"            y_[(n * m + i * {ROWS} + {r}) * wide + j] = d{r}")
    loop = source.spread("batches * down * right", "\n".join(lines) + "\n", serial)
    return compiled("matmul_tiles", head + loop, "aaaa" + "i" * len(numbers))


class Panels:
    """An operand as tiles read it: its memory, and by how many vectors it goes on to the next batch, step and panel."""

    __slots__ = ("array", "batch", "panel", "step")

    def __init__(self, array: Any, batch: int, step: int, panel: int) -> None:
        self.array, self.batch, self.step, self.panel = array, batch, step, panel


def packed(x: Any, batches: int, width: int, size: int, depth: int, by: int, right: int, down: int) -> Panels:
    """The panels of numbers x[n * by + l * right + k * down], l below `size` and k below `depth`."""
    panels, deep = -(-size // width), -(-depth // STEPS) * STEPS
    out = empty((batches * panels * deep * width,), x.dtype)
    address, length = _memory(x)[0], x.itemsize
    how, unit = "any", 1
    if depth == deep:
        if right == 1 and not (size % width or by % width or down % width or address % (width * length)):
            how, unit = "beside", width
        elif down == 1 and not (by % 4 or right % 4 or address % (4 * length)):
            how, unit = "along", 4
    made = _packing(how, x.dtype, width, out.size <= 4 * source.SERIAL)
    made(_memory(out), _memory(x), batches, panels, size, depth, deep, by // unit, right // unit, down // unit)
    return Panels(out, panels * deep, 1, deep)


@lru_cache(maxsize=2)
def _zeros(dtype: Any) -> Any:
    return filled((LANES[dtype],), dtype)


def tiles(a: Panels, b: Panels, out: Any, depth: int, bias: Any = None) -> None:
    """Write the products of panels, plus a number a column, into `out`, (batches, m, n) row by row."""
    (batches, m, n), dtype = out.shape, out.dtype
    lanes, deep = LANES[dtype], -(-depth // STEPS)
    right, down = -(-n // lanes), -(-m // ROWS)
    whole = n == right * lanes and not _memory(out)[0] % 64
    into = out if whole else empty((batches, m, right * lanes), dtype)
    start = _zeros(dtype) if bias is None else bias
    made = _tiling(dtype, batches * m * n * depth <= 2**18)
    memories = map(_memory, (into, a.array, b.array, start))
    numbers = (a.batch // STEPS, b.batch, b.step, b.panel, int(bias is not None))
    made(*memories, batches, down, right, m, right, deep, *numbers)
    if not whole:
        put(out, into[..., :n])


def _batched(x: Any, batch: tuple[int, ...]) -> tuple[Any, int]:
    """`x` with `batch` in front of its last two dimensions, in which one step serves all; and that step, in numbers."""
    if x.ndim == 2:
        return x, 0
    wide = np.broadcast_to(x, (*batch, *x.shape[-2:]), subok=True)
    _, (steps,) = collapsed(batch, [[by // x.itemsize for by in wide.strides[:-2]]])
    if len(steps) == 1:
        return x, steps[0]
    return in_rows(wide.view(CpuArray)), x.shape[-2] * x.shape[-1]


def times(a: Any, b: Any, bias: Any = None) -> Any:
    """a @ b + bias of floats, by tiles."""
    (m, depth), n, length = a.shape[-2:], b.shape[-1], a.itemsize
    batch = () if a.ndim == b.ndim == 2 else broadcast_shapes(a.shape[:-2], b.shape[:-2], op="matmul")
    (a, by_a), (b, by_b) = _batched(a, batch), _batched(b, batch)
    count, lanes = prod(batch), LANES[a.dtype]
    (right_a, down_a), (down_b, right_b) = [tuple([by // length for by in x.strides[-2:]]) for x in (a, b)]
    left = packed(a, count if by_a else 1, ROWS, m, depth, by_a, right_a, down_a)
    left.batch *= by_a != 0
    aligned = right_b == 1 and not (n % lanes or depth % STEPS or down_b % lanes or by_b % lanes or _memory(b)[0] % 64)
    if aligned and (m <= FEW or depth * n * length <= NEAR):
        columns = Panels(b, by_b // lanes, down_b // lanes, 1)
    else:
        columns = packed(b, count if by_b else 1, lanes, n, depth, by_b, right_b, down_b)
        columns.batch *= by_b != 0
    out = empty((count, m, n), a.dtype)
    early = (
        bias is not None and bias.shape == (n,) and bias.flags.c_contiguous and not (n % lanes or _memory(bias)[0] % 64)
    )
    tiles(left, columns, out, depth, bias if early else None)
    if bias is not None and not early:
        out = computed("add", "a + b", (out, bias), out.dtype, out)
    return out if len(batch) == 1 else shaped(out, (*batch, m, n))


def _product(a: Any, b: Any, bias: Any = None) -> Any:
    if a.dtype == b.dtype and a.dtype in LANES and min(a.shape[-2], b.shape[-1]) > 1:
        count = max(prod(a.shape[:-2]), prod(b.shape[:-2]))
        if count * a.shape[-2] * a.shape[-1] * b.shape[-1] > PLAIN:
            return times(a, b, bias)
    dtype = np.result_type(a.dtype, b.dtype)
    ends = "(s == 0) == 0" if dtype.kind == "b" else "s"
    dim = max(a.ndim, b.ndim) - 1
    out = reduced("matmul", "sum", "a * b", (a[..., None], b[..., None, :, :]), (dim,), False, dtype, ends)
    return out if bias is None else computed("add", "a + b", (out, bias), out.dtype, out)


@kernel("matmul", DEVICE)
def matmul(a: Any, b: Any) -> Any:
    """Of matrices, batched and broadcast in all dimensions but the last two."""
    return _product(a, b)


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
    y = _product(a, b) if summed else kernels_of("mul")[DEVICE](a, b)
    found, shape = both + mine + its, batch + rows + columns
    y = y if y.shape == shape else shaped(y, shape)
    return y if found == list(out) else y.transpose([found.index(k) for k in out])
