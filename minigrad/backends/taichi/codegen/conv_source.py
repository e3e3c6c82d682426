"""Convolutions and their weight gradients on the CPU: register tiles, one launch.

Each core copies the image that it processes to scratch memory, with channels innermost and zero padding. Then each
kernel position reads contiguous vectors at any output position: im2col columns are never materialised, and no element
needs index arithmetic.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import BLOCK, LANES, vector_annotation
from minigrad.backends.taichi.runtime import muladd
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel, get_kernel

__all__ = ["ROWS", "ImageLayout", "TiledConvolution", "weight_gradient_kernel"]

ROWS = 8  # output positions, or input elements, of a tile


class ImageLayout(NamedTuple):
    """The layout of images, and of the copy of one: rows of pixels with `padded` channels each, and zero padding."""

    channels: int
    padded: int  # channels, including padding
    by_n: int
    by_c: int
    by_row: int
    by_col: int
    row0: int  # the first row that is used
    rows: int
    col0: int
    cols: int
    first_offset: int  # offset of the first element
    row_pixels: int  # pixels in a row, including padding
    total_elements: int  # elements in total


# --- common parts ---


def _load_lines(names: tuple[str, ...], indent: int) -> str:
    return "".join(f"{' ' * indent}{x} = numbers_[{k}]\n" for k, x in enumerate(names))


def _partitioned_loop(names: tuple[str, ...], count: str, body: str, serial: bool) -> str:
    """Return a loop in which core `me` processes first_t to last_t of the range of `count`."""
    return source.partitioned_loop(count, body, serial, _load_lines(names, 12))


def _transpose_lines(indent: int, width: int, read: str, write: str) -> str:
    """Return the statements that transpose: read four elements of each of `width` rows, write four columns."""
    lines = [f"v{k} = {read.format(k=k)}" for k in range(width)]
    for s in range(4):
        lines.append(f"{write.format(s=s)} = ti.Vector([{', '.join(f'v{k}[{s}]' for k in range(width))}])")
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _image_copy_lines(unit: int, fours: bool) -> str:
    """Return the statements that copy image n to `mine`, inside its zero padding. In fours, missing channels repeat the
    last one."""
    if not fours:
        return """                    for row in range(rows):
                        for c in range(channels):
                            at = n * by_n + c * by_c + (row0 + row) * by_row + col0 * by_col
                            to = mine + first_offset + row * row_pixels * padded + c
                            for col in range(cols):
                                s_[to + col * padded] = x_[at + col * by_col]
"""
    turned = _transpose_lines(
        32, unit, "x_[at + ti.min({k}, most) * (by_c // 4) + q]", f"a_[to + (q * 4 + {{s}}) * (padded // {unit})]"
    )
    return f"""                    for row in range(rows):
                        for g in range(padded // {unit}):
                            at = (n * by_n + g * {unit} * by_c + (row0 + row) * by_row + col0) // 4
                            to = (mine + first_offset + row * row_pixels * padded) // {unit} + g
                            most = channels - 1 - g * {unit}
                            for q in range(cols // 4):
{turned}"""


def _zero(dtype: str, lanes: int) -> str:
    return f"ti.Vector([ti.{source.TAICHI_NAMES[dtype]}(0.0) for _ in range({lanes})])"


def _kernel(name: str, arrays: dict[str, str], loops: str, end: source.Epilogue = source.NO_EPILOGUE) -> Kernel:
    arrays = (
        arrays
        | {f"{x}_": vector_annotation("float32", ROWS) for x in end.arrays}
        | {f"{x}_": "ti.f32" for x in end.scalars}
    )
    head = ", ".join(f"{x}: {what}" for x, what in arrays.items())
    kinds = "a" * (len(arrays) - len(end.scalars)) + "f" * len(end.scalars)
    return get_kernel(name, f"{end.functions}@ti.kernel\ndef {name}_kernel({head}):\n{loops}", kinds)


def _array_annotations(dtype: str, lanes: int, unit: int, fours: bool, more: dict[str, str]) -> dict[str, str]:
    """Return the result, images and other arrays; `s_`, `a_` and `b_` are scratch memory, as elements and vectors."""
    table = source.array_annotation("int32")
    arrays = {"y_": source.array_annotation(dtype), "x_": source.array_annotation(dtype, 4 if fours else 1), **more}
    arrays |= {
        "s_": source.array_annotation(dtype),
        "a_": source.array_annotation(dtype, unit),
        "b_": vector_annotation(dtype, lanes),
    }
    return arrays | {"spots_": table, "places_": table, "numbers_": table}


# --- convolution: a tile has 8 output positions and a vector of output channels ---

_CONVOLVED = (
    "batches", "down", "m", "panels", "count", "deep", "kh", "kw",
    "by_o", "by_i", "by_h", "by_w", "biased", "by_z", "bias_at", "workspace_offset", "workspace_per_core",
    *ImageLayout._fields,
)  # fmt: skip


def _weights(dtype: str, lanes: int, serial: bool) -> str:
    """Return the packing of weights and bias, with zeros for missing channels."""
    body = f"""            for j in range(first_t, last_t):
                for k in range(j * kh * kw * padded, (j + 1) * kh * kw * padded):
                    b_[k] = {_zero(dtype, lanes)}
                b_[bias_at // {lanes} + j] = {_zero(dtype, lanes)}
                for o in range(j * {lanes}, ti.min(count, (j + 1) * {lanes})):
                    if biased == 1:
                        s_[bias_at + o] = z_[o * by_z]
                    for c in range(channels):
                        for i in range(kh):
                            to = ((j * kh * kw + i * kw) * padded + c) * {lanes} + o - j * {lanes}
                            at = o * by_o + c * by_i + i * by_h
                            for k in range(kw):
                                s_[to + k * padded * {lanes}] = w_[at + k * by_w]
"""
    return _partitioned_loop(_CONVOLVED, "panels", body, serial)


def _sums(lanes: int, unit: int, dtype: str) -> str:
    """Return the sums of a tile: d0 to d7, for output positions with offsets r0 to r7."""
    rows, step, zero = range(ROWS), BLOCK // unit, _zero(dtype, lanes)
    lines = [
        *[f"    d{r} = b_[bias_at // {lanes} + j]" for r in rows],
        f"    for block in range((deep + {step - 1}) // {step}):",
        *[f"        c{r} = {zero}" for r in rows],
        f"        for k in range(block * {step}, ti.min(deep, (block + 1) * {step})):",
        "            far = spots_[k]",
    ]
    for s in range(unit):
        number = f"[{s}]" if unit > 1 else ""
        lines.append(f"            b = b_[(j * deep + k) * {unit} + {s}]")
        for r in rows:
            lines += [
                f"            a = a_[far + r{r}]{number}",
                f"            {muladd.fma_line(f'c{r}', 'b', 'a', dtype)}",
            ]
    lines += [f"        d{r} += c{r}" for r in rows]
    return "".join(f"                {line}\n" for line in lines)


def _store_lines(lanes: int, whole: bool, end: source.Epilogue) -> str:
    """Return the stores of a tile by channel: eight positions of a `has_full_tiles` tile at once, transposed in
    registers, others through memory; and the epilogue."""
    rows, lines = range(ROWS), []
    if whole:
        for k in range(lanes):
            column = ", ".join(f"d{r}[{k}]" for r in rows)
            lines.append(f"if j * {lanes} + {k} < count:")
            lines.append(f"    y_[(n * count + j * {lanes} + {k}) * down + i] = ti.Vector([{column}])")
        if end.lines:
            lines.append(f"for o in range(j * {lanes}, ti.min(count, (j + 1) * {lanes})):")
            lines += [f"    {line}" for line in ["e = (n * count + o) * down + i", *end.lines.splitlines()]]
    else:
        lines += [f"b_[(mine + total_elements) // {lanes} + {r}] = d{r}" for r in rows]
        lines.append(f"for l in range(ti.min({lanes}, count - j * {lanes})):")
        lines.append(f"    to = (n * count + j * {lanes} + l) * m + i * {ROWS}")
        lines.append(f"    for r in range(ti.min({ROWS}, m - i * {ROWS})):")
        lines.append(f"        y_[to + r] = s_[mine + total_elements + r * {lanes} + l]")
    return "".join(f"                    {line}\n" for line in lines)


class TiledConvolution(NamedTuple):
    """The parameters of a convolution's source. Its kernel reads integers from the array `table`."""

    type: Any
    unit: int
    fours: bool
    has_full_tiles: bool
    has_few_weights: bool
    serial: bool

    @property
    def table(self) -> int:
        """The index of that array among the arguments."""
        return 9

    @property
    def lanes(self) -> int:
        """The number of elements in a vector of the result."""
        return ROWS

    def items(self, numbers: Any) -> int:
        """Return the number of elements of the result, from the kernel's integers."""
        known = dict(zip(_CONVOLVED, numbers, strict=False))
        return int(known["batches"]) * int(known["m"]) * int(known["count"])

    def kernel(self, end: source.Epilogue | None = None) -> Kernel:
        """Return the kernel of the convolution, optionally with an epilogue."""
        return _convolution_kernel(self, end or source.NO_EPILOGUE)


@arch_cache(64)
def _convolution_kernel(what: TiledConvolution, end: source.Epilogue) -> Kernel:
    type, unit, fours, whole, little, serial = what
    dtype, lanes = type.name, LANES[type]
    begins = [f"r{r} = mine // {unit} + places_[ti.min(i * {ROWS} + {r}, m - 1)]" for r in range(ROWS)]
    body = f"""            mine = workspace_offset + me * workspace_per_core
            for k in range(ti.select(first_t < last_t, total_elements // {lanes}, 0)):
                b_[mine // {lanes} + k] = {_zero(dtype, lanes)}
            for t in range(first_t, last_t):
                n = t // down
                i = t % down
                if (i == 0) | (t == first_t):
{_image_copy_lines(unit, fours)}{"".join(f"                {line}{chr(10)}" for line in begins)}\
                for j in range(panels):
{_sums(lanes, unit, dtype)}{_store_lines(lanes, whole, end)}"""
    arrays = _array_annotations(dtype, lanes, unit, fours, dict.fromkeys(("w_", "z_"), source.array_annotation(dtype)))
    if whole:
        arrays["y_"] = vector_annotation(dtype, ROWS)
    body = "".join(f"    {source.broadcast_line(f'{x}_', x, ROWS)}" for x in end.scalars) + body
    loops = _weights(dtype, lanes, little) + _partitioned_loop(_CONVOLVED, "batches * down", body, serial)
    made = _kernel(f"convolve{'_ended' * bool(end.lines)}", arrays, loops, end)
    if whole and type.name == "float32":
        made.work = what
    return made


# --- weight gradient: a tile has 8 input elements and a vector of channels of the output gradient ---

_CORRELATED = (
    "units", "bands", "down", "m", "panels", "count", "deep", "spots", "parts", "sums_at", "size", "workspace_per_core",
    *ImageLayout._fields,
)  # fmt: skip


def _gradient_copy_lines(lanes: int, fours: bool) -> str:
    """Return the statements that copy the output gradient of image n to vectors of channels."""
    if fours:
        read = f"g_[(n * count + ti.min(j * {lanes} + {{k}}, count - 1)) * (m // 4) + q]"
        turned = _transpose_lines(28, lanes, read, f"b_[(mine + total_elements) // {lanes} + j * m + q * 4 + {{s}}]")
        return f"""                    for j in range(panels):
                        for q in range(m // 4):
{turned}"""
    return f"""                    for o in range(count):
                        to = mine + total_elements + o // {lanes} * m * {lanes} + o % {lanes}
                        for p in range(m):
                            s_[to + p * {lanes}] = g_[(n * count + o) * m + p]
"""


def _products(lanes: int, unit: int, dtype: str) -> str:
    """Return the statements that add the products of some positions to the sums of each tile."""
    rows = range(ROWS)
    lines = ["for i in range(down):"]
    for k in range(ROWS // unit):
        lines.append(f"    q{k} = mine // {unit} + spots_[ti.min(i * {ROWS // unit} + {k}, deep - 1)]")
    lines += [
        "    for j in range(panels):",
        f"        at = (mine + total_elements) // {lanes} + j * m",
        f"        to = (sums_at + t * size) // {lanes} + (j * down + i) * {ROWS}",
        *[f"        c{r} = {_zero(dtype, lanes)}" for r in rows],
        f"        for p in range(band * {BLOCK}, ti.min(m, (band + 1) * {BLOCK})):",
        "            b = b_[at + p]",
        "            far = places_[p]",
    ]
    number = [f"[{r % unit}]" if unit > 1 else "" for r in rows]
    for r in rows:
        lines += [
            f"            a = a_[far + q{r // unit}]{number[r]}",
            f"            {muladd.fma_line(f'c{r}', 'b', 'a', dtype)}",
        ]
    lines += [f"        b_[to + {r}] = b_[to + {r}] + c{r}" for r in rows]
    return "".join(f"                    {line}\n" for line in lines)


def _reduce_parts_loop(lanes: int, serial: bool) -> str:
    """Return the sum of all partial sums, in the layout of the weights."""
    body = f"""            for j in range(first_t, last_t):
                begin = sums_at // {lanes} + j * down * {ROWS}
                for k in range(begin, begin + down * {ROWS}):
                    total = b_[k]
                    for part in range(1, parts):
                        total = total + b_[k + part * (size // {lanes})]
                    b_[k] = total
                for o in range(j * {lanes}, ti.min(count, (j + 1) * {lanes})):
                    for c in range(channels):
                        at = (begin + c) * {lanes} + o - j * {lanes}
                        for k in range(spots):
                            y_[(o * channels + c) * spots + k] = s_[at + k * padded * {lanes}]
"""
    return _partitioned_loop(_CORRELATED, "panels", body, serial)


@arch_cache(64)
def weight_gradient_kernel(
    type: Any, unit: int, fours: bool, lines: bool, has_few_weights: bool, serial: bool
) -> Kernel:
    dtype, lanes = type.name, LANES[type]
    zero = _zero(dtype, lanes)
    body = f"""            mine = me * workspace_per_core
            for k in range(ti.select(first_t < last_t, workspace_per_core // {lanes}, 0)):
                b_[mine // {lanes} + k] = {zero}
            for t in range(first_t, last_t):
                for k in range(size // {lanes}):
                    b_[(sums_at + t * size) // {lanes} + k] = {zero}
                first_u = t * units // parts
                for u in range(first_u, (t + 1) * units // parts):
                    n = u // bands
                    band = u % bands
                    if (band == 0) | (u == first_u):
{indent(_image_copy_lines(unit, fours) + _gradient_copy_lines(lanes, lines), "    ")}{_products(lanes, unit, dtype)}"""
    arrays = _array_annotations(dtype, lanes, unit, fours, {"g_": source.array_annotation(dtype, 4 if lines else 1)})
    return _kernel(
        "correlate",
        arrays,
        _partitioned_loop(_CORRELATED, "parts", body, serial) + _reduce_parts_loop(lanes, has_few_weights),
    )
