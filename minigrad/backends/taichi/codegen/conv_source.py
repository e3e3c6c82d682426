"""Convolutions and their weight gradients on the CPU, by register tiles and in one launch.

Each core copies the image that it processes to scratch memory, with channels innermost and zero padding. The elements
at a kernel position are then contiguous vectors for every output position, so that im2col columns are not materialised
and no indices are computed per element.
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

ROWS = 8  # number of output positions, or of input elements, in a tile


class ImageLayout(NamedTuple):
    """The layout of images, and of the copy of an image: rows of pixels with `padded` channels, and zero padding."""

    channels: int
    padded: int  # channels, including padding
    stride_n: int
    stride_c: int
    stride_row: int
    stride_col: int
    row0: int  # the first row that is used
    rows: int
    col0: int
    cols: int
    first_offset: int  # offset of the first element
    row_pixels: int  # pixels in a row, including padding
    total_elements: int  # elements in total


# --- common parts ---


def _load_lines(names: tuple[str, ...], indent: int) -> str:
    return "".join(f"{' ' * indent}{x} = scalars_[{k}]\n" for k, x in enumerate(names))


def _partitioned_loop(names: tuple[str, ...], count: str, body: str, serial: bool) -> str:
    """Return `source.partitioned_loop`, with code that loads the integers called `names` from a table."""
    return source.partitioned_loop(count, body, serial, _load_lines(names, 12))


def _transpose_lines(indent: int, width: int, read: str, write: str) -> str:
    """Return the statements of a transpose: read four elements of each of `width` rows, and write four columns."""
    lines = [f"v{k} = {read.format(k=k)}" for k in range(width)]
    for s in range(4):
        lines.append(f"{write.format(s=s)} = ti.Vector([{', '.join(f'v{k}[{s}]' for k in range(width))}])")
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _image_copy_lines(unit: int, fours: bool) -> str:
    """Return the statements that copy image n to `image_offset`, surrounded by zero padding. If `fours`, missing
    channels of a group repeat the last channel."""
    if not fours:
        return """                    for row in range(rows):
                        for c in range(channels):
                            source = n * stride_n + c * stride_c + (row0 + row) * stride_row + col0 * stride_col
                            target = image_offset + first_offset + row * row_pixels * padded + c
                            for col in range(cols):
                                s_[target + col * padded] = x_[source + col * stride_col]
"""
    turned = _transpose_lines(
        32,
        unit,
        "x_[source + ti.min({k}, last_channel) * (stride_c // 4) + q]",
        f"a_[target + (q * 4 + {{s}}) * (padded // {unit})]",
    )
    return f"""                    for row in range(rows):
                        for g in range(padded // {unit}):
                            source = (n * stride_n + g * {unit} * stride_c + (row0 + row) * stride_row + col0) // 4
                            target = (image_offset + first_offset + row * row_pixels * padded) // {unit} + g
                            last_channel = channels - 1 - g * {unit}
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
    """Return the type annotations of the array arguments, by name. `s_`, `a_` and `b_` are the scratch memory, accessed
    as elements and as vectors."""
    table = source.array_annotation("int32")
    arrays = {"y_": source.array_annotation(dtype), "x_": source.array_annotation(dtype, 4 if fours else 1), **more}
    arrays |= {
        "s_": source.array_annotation(dtype),
        "a_": source.array_annotation(dtype, unit),
        "b_": vector_annotation(dtype, lanes),
    }
    return arrays | {"tap_offsets_": table, "position_offsets_": table, "scalars_": table}


# --- convolution: a tile has 8 output positions and a vector of output channels ---

_CONVOLVED = (
    "batches", "row_tiles", "m", "panels", "count", "depth", "kh", "kw",
    "stride_o", "stride_i", "stride_h", "stride_w", "has_bias", "bias_stride", "bias_offset",
    "workspace_offset", "workspace_per_core",
    *ImageLayout._fields,
)  # fmt: skip


def _weights(dtype: str, lanes: int, serial: bool) -> str:
    """Return the loop that packs weights and bias, with zeros for missing channels."""
    body = f"""            for j in range(first_t, last_t):
                for k in range(j * kh * kw * padded, (j + 1) * kh * kw * padded):
                    b_[k] = {_zero(dtype, lanes)}
                b_[bias_offset // {lanes} + j] = {_zero(dtype, lanes)}
                for o in range(j * {lanes}, ti.min(count, (j + 1) * {lanes})):
                    if has_bias == 1:
                        s_[bias_offset + o] = z_[o * bias_stride]
                    for c in range(channels):
                        for i in range(kh):
                            target = ((j * kh * kw + i * kw) * padded + c) * {lanes} + o - j * {lanes}
                            source = o * stride_o + c * stride_i + i * stride_h
                            for k in range(kw):
                                s_[target + k * padded * {lanes}] = w_[source + k * stride_w]
"""
    return _partitioned_loop(_CONVOLVED, "panels", body, serial)


def _sums(lanes: int, unit: int, dtype: str) -> str:
    """Return the statements that compute the sums of a tile, d0 to d7, for output positions with offsets r0 to r7."""
    rows, step, zero = range(ROWS), BLOCK // unit, _zero(dtype, lanes)
    lines = [
        *[f"    d{r} = b_[bias_offset // {lanes} + j]" for r in rows],
        f"    for block in range((depth + {step - 1}) // {step}):",
        *[f"        c{r} = {zero}" for r in rows],
        f"        for k in range(block * {step}, ti.min(depth, (block + 1) * {step})):",
        "            tap = tap_offsets_[k]",
    ]
    for s in range(unit):
        number = f"[{s}]" if unit > 1 else ""
        lines.append(f"            b = b_[(j * depth + k) * {unit} + {s}]")
        for r in rows:
            lines += [
                f"            a = a_[tap + r{r}]{number}",
                f"            {muladd.fma_line(f'c{r}', 'b', 'a', dtype)}",
            ]
    lines += [f"        d{r} += c{r}" for r in rows]
    return "".join(f"                {line}\n" for line in lines)


def _store_lines(lanes: int, whole: bool, end: source.Epilogue) -> str:
    """Return the statements that store a tile by channel, and the epilogue. If `whole`, tiles are transposed in
    registers and eight positions are stored at once; otherwise tiles are stored through scratch memory."""
    rows, lines = range(ROWS), []
    if whole:
        for k in range(lanes):
            column = ", ".join(f"d{r}[{k}]" for r in rows)
            lines.append(f"if j * {lanes} + {k} < count:")
            lines.append(f"    y_[(n * count + j * {lanes} + {k}) * row_tiles + i] = ti.Vector([{column}])")
        if end.lines:
            lines.append(f"for o in range(j * {lanes}, ti.min(count, (j + 1) * {lanes})):")
            lines += [f"    {line}" for line in ["e = (n * count + o) * row_tiles + i", *end.lines.splitlines()]]
    else:
        lines += [f"b_[(image_offset + total_elements) // {lanes} + {r}] = d{r}" for r in rows]
        lines.append(f"for l in range(ti.min({lanes}, count - j * {lanes})):")
        lines.append(f"    target = (n * count + j * {lanes} + l) * m + i * {ROWS}")
        lines.append(f"    for r in range(ti.min({ROWS}, m - i * {ROWS})):")
        lines.append(f"        y_[target + r] = s_[image_offset + total_elements + r * {lanes} + l]")
    return "".join(f"                    {line}\n" for line in lines)


class TiledConvolution(NamedTuple):
    """The parameters of the source of a convolution. The kernel reads integers from the argument at index `table`."""

    type: Any
    unit: int
    fours: bool
    has_full_tiles: bool
    has_few_weights: bool
    serial: bool

    @property
    def table(self) -> int:
        """The index of the integer table among the arguments."""
        return 9

    @property
    def lanes(self) -> int:
        """The number of elements in a vector of the result."""
        return ROWS

    def items(self, numbers: Any) -> int:
        """Return the number of elements of the result, computed from the kernel's integers."""
        values = dict(zip(_CONVOLVED, numbers, strict=False))
        return int(values["batches"]) * int(values["m"]) * int(values["count"])

    def kernel(self, end: source.Epilogue | None = None) -> Kernel:
        """Return the kernel of the convolution, optionally with an epilogue."""
        return _convolution_kernel(self, end or source.NO_EPILOGUE)


@arch_cache(64)
def _convolution_kernel(what: TiledConvolution, end: source.Epilogue) -> Kernel:
    type, unit, fours, whole, little, serial = what
    dtype, lanes = type.name, LANES[type]
    begins = [
        f"r{r} = image_offset // {unit} + position_offsets_[ti.min(i * {ROWS} + {r}, m - 1)]" for r in range(ROWS)
    ]
    body = f"""            image_offset = workspace_offset + core_id * workspace_per_core
            for k in range(ti.select(first_t < last_t, total_elements // {lanes}, 0)):
                b_[image_offset // {lanes} + k] = {_zero(dtype, lanes)}
            for t in range(first_t, last_t):
                n = t // row_tiles
                i = t % row_tiles
                if (i == 0) | (t == first_t):
{_image_copy_lines(unit, fours)}{"".join(f"                {line}{chr(10)}" for line in begins)}\
                for j in range(panels):
{_sums(lanes, unit, dtype)}{_store_lines(lanes, whole, end)}"""
    arrays = _array_annotations(dtype, lanes, unit, fours, dict.fromkeys(("w_", "z_"), source.array_annotation(dtype)))
    if whole:
        arrays["y_"] = vector_annotation(dtype, ROWS)
    body = "".join(f"    {source.broadcast_line(f'{x}_', x, ROWS)}" for x in end.scalars) + body
    loops = _weights(dtype, lanes, little) + _partitioned_loop(_CONVOLVED, "batches * row_tiles", body, serial)
    made = _kernel(f"conv2d{'_epilogue' * bool(end.lines)}", arrays, loops, end)
    if whole and type.name == "float32":
        made.work = what
    return made


# --- weight gradient: a tile has 8 input elements and a vector of channels of the output gradient ---

_CORRELATED = (
    "units", "bands", "row_tiles", "m", "panels", "count", "depth", "taps", "partials", "sums_offset",
    "size", "workspace_per_core",
    *ImageLayout._fields,
)  # fmt: skip


def _gradient_copy_lines(lanes: int, fours: bool) -> str:
    """Return the statements that copy the output gradient of image n to vectors of channels."""
    if fours:
        read = f"g_[(n * count + ti.min(j * {lanes} + {{k}}, count - 1)) * (m // 4) + q]"
        turned = _transpose_lines(
            28, lanes, read, f"b_[(image_offset + total_elements) // {lanes} + j * m + q * 4 + {{s}}]"
        )
        return f"""                    for j in range(panels):
                        for q in range(m // 4):
{turned}"""
    return f"""                    for o in range(count):
                        target = image_offset + total_elements + o // {lanes} * m * {lanes} + o % {lanes}
                        for p in range(m):
                            s_[target + p * {lanes}] = g_[(n * count + o) * m + p]
"""


def _products(lanes: int, unit: int, dtype: str) -> str:
    """Return the statements that add the products for a band of positions to the sums of each tile."""
    rows = range(ROWS)
    lines = ["for i in range(row_tiles):"]
    for k in range(ROWS // unit):
        lines.append(f"    q{k} = image_offset // {unit} + tap_offsets_[ti.min(i * {ROWS // unit} + {k}, depth - 1)]")
    lines += [
        "    for j in range(panels):",
        f"        source = (image_offset + total_elements) // {lanes} + j * m",
        f"        target = (sums_offset + t * size) // {lanes} + (j * row_tiles + i) * {ROWS}",
        *[f"        c{r} = {_zero(dtype, lanes)}" for r in rows],
        f"        for p in range(band * {BLOCK}, ti.min(m, (band + 1) * {BLOCK})):",
        "            b = b_[source + p]",
        "            position = position_offsets_[p]",
    ]
    number = [f"[{r % unit}]" if unit > 1 else "" for r in rows]
    for r in rows:
        lines += [
            f"            a = a_[position + q{r // unit}]{number[r]}",
            f"            {muladd.fma_line(f'c{r}', 'b', 'a', dtype)}",
        ]
    lines += [f"        b_[target + {r}] = b_[target + {r}] + c{r}" for r in rows]
    return "".join(f"                    {line}\n" for line in lines)


def _reduce_parts_loop(lanes: int, serial: bool) -> str:
    """Return the loop that adds the partial sums, and stores the total in the layout of the weights."""
    body = f"""            for j in range(first_t, last_t):
                begin = sums_offset // {lanes} + j * row_tiles * {ROWS}
                for k in range(begin, begin + row_tiles * {ROWS}):
                    total = b_[k]
                    for partial in range(1, partials):
                        total = total + b_[k + partial * (size // {lanes})]
                    b_[k] = total
                for o in range(j * {lanes}, ti.min(count, (j + 1) * {lanes})):
                    for c in range(channels):
                        source = (begin + c) * {lanes} + o - j * {lanes}
                        for k in range(taps):
                            y_[(o * channels + c) * taps + k] = s_[source + k * padded * {lanes}]
"""
    return _partitioned_loop(_CORRELATED, "panels", body, serial)


@arch_cache(64)
def weight_gradient_kernel(
    type: Any, unit: int, fours: bool, lines: bool, has_few_weights: bool, serial: bool
) -> Kernel:
    dtype, lanes = type.name, LANES[type]
    zero = _zero(dtype, lanes)
    body = f"""            image_offset = core_id * workspace_per_core
            for k in range(ti.select(first_t < last_t, workspace_per_core // {lanes}, 0)):
                b_[image_offset // {lanes} + k] = {zero}
            for t in range(first_t, last_t):
                for k in range(size // {lanes}):
                    b_[(sums_offset + t * size) // {lanes} + k] = {zero}
                first_u = t * units // partials
                for u in range(first_u, (t + 1) * units // partials):
                    n = u // bands
                    band = u % bands
                    if (band == 0) | (u == first_u):
{indent(_image_copy_lines(unit, fours) + _gradient_copy_lines(lanes, lines), "    ")}{_products(lanes, unit, dtype)}"""
    arrays = _array_annotations(dtype, lanes, unit, fours, {"g_": source.array_annotation(dtype, 4 if lines else 1)})
    return _kernel(
        "conv2d_weight",
        arrays,
        _partitioned_loop(_CORRELATED, "partials", body, serial) + _reduce_parts_loop(lanes, has_few_weights),
    )
