"""Source of kernels of recurrent layers: of one time step, and, vectorised for the CPU, of a whole sequence.

`CELLS` contains the arithmetic of a step, which both share. A vectorised kernel runs all steps. Each core processes
some rows of the batch, which are independent, so that cores never wait for each other. Tiles of several rows and
vectors of columns compute the hidden product of a step: they are accumulated in registers, from packed panels of the
weight. The arithmetic of the gates follows for the same tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.functions import required_functions, to_vector_form
from minigrad.backends.taichi.codegen.tiles import BLOCK
from minigrad.backends.taichi.runtime import muladd
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel, get_kernel
from minigrad.backends.taichi.runtime.vector_functions import cast_literals

__all__ = ["CELLS", "Cell", "SequenceTile", "sequence_kernel", "step_arrays", "step_kernel"]

LANES = source.VECTOR_SIZE


class Cell(NamedTuple):
    """The arithmetic of a time step, as statements.

    `forward` computes h, and c of an LSTM, from their previous values, the projected inputs x0, x1, … and the hidden
    products a0, a1, … of the gates. It assigns the gates to save, s0, s1, …, and the array `saved`. `backward` computes
    the gradients x0, x1, … and a0, a1, … from d, the gradient of h, and updates e, which is carried to the previous
    step: the gradient of c, or the gradient of h that does not pass through the product. It reads `saved`, `h`, and
    `before`, the c (GRU: h) of the previous step. `hidden_grads` are the gates whose a differs from x.
    """

    gates: int
    forward: str
    backward: str
    saves: bool = True  # whether it saves gates and `saved`
    carries_hidden: bool = False  # whether e is added to the gradient of h
    hidden_grads: bool = False


CELLS = {
    "lstm": Cell(
        4,
        """s0 = sigmoid(x0 + a0)
s1 = sigmoid(x1 + a1)
s2 = ti.tanh(x2 + a2)
s3 = sigmoid(x3 + a3)
c = s1 * c + s0 * s2
h = s3 * ti.tanh(c)
saved = c""",
        """squashed = ti.tanh(saved)
e = e + d * s3 * (1.0 - squashed * squashed)
x0 = e * s2 * (s0 * (1.0 - s0))
x1 = e * before * (s1 * (1.0 - s1))
x2 = e * s0 * (1.0 - s2 * s2)
x3 = d * squashed * (s3 * (1.0 - s3))
e = e * s1""",
    ),
    "gru": Cell(
        3,
        """s0 = sigmoid(x0 + a0)
s1 = sigmoid(x1 + a1)
s2 = ti.tanh(x2 + s0 * a2)
h = s2 + s1 * (h - s2)
saved = a2""",
        """d = d + e
x2 = d * (1.0 - s1) * (1.0 - s2 * s2)
x1 = d * (before - s2) * (s1 * (1.0 - s1))
x0 = x2 * saved * (s0 * (1.0 - s0))
a0 = x0
a1 = x1
a2 = x2 * s0
e = d * s1""",
        carries_hidden=True,
        hidden_grads=True,
    ),
    "rnn_tanh": Cell(1, "h = ti.tanh(x0 + a0)", "x0 = d * (1.0 - h * h)", saves=False),
    "rnn_relu": Cell(
        1, "total = x0 + a0\nh = ti.select(total <= 0, 0, total)", "x0 = ti.select(h <= 0, 0, d)", saves=False
    ),
}


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{k}" for k in range(count)]


# --- one time step, for all dtypes and devices ---


def step_arrays(cell: Cell, backward: bool) -> list[str]:
    """Return the names of the arrays of a step kernel, of which the first ones are written."""
    if not backward:
        written = ["y", *(["gates", "saved"] if cell.saves else [])]
        return [*written, "x", "a", "h", *(["c"] if cell.gates == 4 else [])]
    written = ["grad", *(["hidden"] if cell.hidden_grads else []), "e"]
    reads = ["gates", "saved", "before"] if cell.saves else ["h"]
    return [*(written if cell.saves else ["grad"]), *reads, "d"]


@arch_cache(64)
def step_kernel(name: str, backward: bool, dtype: str, serial: bool) -> Kernel:
    """Return the kernel of one time step. Its arguments are `step_arrays`, n = H, and the number of elements of h.

    The gates of a row are at ``row * gates * n``. The gradient `e` is updated in place.
    """
    cell, arrays = CELLS[name], step_arrays(CELLS[name], backward)
    lines = ["first = i // n * (n * GATES) + i % n"]
    per_gate = {"gates": "s", "x": "x", "a": "a", "grad": "x", "hidden": "a"}
    stores = {"grad": "x", "hidden": "a", "e": "e"} if backward else {"y": "h", "gates": "s", "saved": "saved"}

    def cells(array: str, name: str) -> list[tuple[str, str]]:
        """Return the elements of `array` that belong to element i of h, each with the name of its variable."""
        if array in per_gate:
            return [(f"{array}_[first + {q} * n]", f"{name}{q}") for q in range(cell.gates)]
        return [(f"{array}_[i]", name)]

    for array in arrays:
        if array == "e" or array not in stores:
            lines += [f"{name} = {element}" for element, name in cells(array, per_gate.get(array, array))]
    lines += (cell.backward if backward else cell.forward).splitlines()
    for array in arrays:
        if array in stores:
            lines += [f"{element} = {name}" for element, name in cells(array, stores[array])]
    body = "".join(f"        {line}\n" for line in lines).replace("GATES", str(cell.gates))
    takes = [source.KernelArgument("a", array, dtype) for array in arrays[1:]]
    body = body.replace(f"{arrays[0]}_[", "y_[")
    full_name = f"{name}_step{'_backward' * backward}"
    return get_kernel(
        full_name, *source.wrap_kernel(full_name, takes, dtype, dtype, ["n", "count"], "count", body, serial)
    )


# --- a whole sequence, in vectors of sixteen float32 ---


class SequenceTile(NamedTuple):
    """The rows and the vectors of columns, per gate, of a tile of the product."""

    rows: int
    vectors: int


_ZEROS = f"ti.Vector([ti.f32(0.0) for _ in range({LANES})])"
_SIZES = ("batch", "length", "size", "depth", "padded", "vectors", "tiles", "reverse", "k_step")


def _row_annotation(unit: int) -> str:
    """Return the annotation of arrays of rows of H elements; see `sequence_kernel`."""
    return source.ADDRESS if unit == 1 and muladd.FUSED else source.array_annotation("float32", unit)


def _element_lines(name: str, array: str, row: str, unit: int, stores: bool) -> list[str]:
    """Return statements that load vector j of a row of H elements, or store it, without the lanes past the end."""
    element, end = f"({row}) * size + j * {LANES // unit}", f"ti.min({LANES}, size - j * {LANES})"
    if unit == LANES:
        return [f"{array}_[{element}] = {name}" if stores else f"{name} = {array}_[{element}]"]
    if muladd.FUSED:
        lines = [f"address = {array}_ + ti.cast({element}, ti.i64) * 4", f"count = {end}"]
        if stores:
            return [*lines, f"muladd.f32_store(address, {name}, count)"]
        return [*lines, f"{name} = {_ZEROS}", f"muladd.f32_load({name}, address, count)"]
    left, right = f"{array}_[{element} + l]", f"{name}[l]"
    loop = [f"for l in range({end}):", f"    {f'{left} = {right}' if stores else f'{right} = {left}'}"]
    return loop if stores else [f"{name} = {_ZEROS}", *loop]


def _load_lines(name: str, array: str, row: str, unit: int) -> list[str]:
    return _element_lines(name, array, row, unit, stores=False)


def _store_lines(name: str, array: str, row: str, unit: int) -> list[str]:
    return _element_lines(name, array, row, unit, stores=True)


def _product_lines(gates: int, tile: SequenceTile, left: str) -> list[str]:
    """Return statements that add the product of rows `left` of a tile and panels of w to acc, in blocks of the sum."""
    rows, columns = range(tile.rows), list(product(range(gates), range(tile.vectors)))
    lines = ["    k = block * BLOCK", "    last_k = ti.min(depth, k + BLOCK)"]
    for (q, v), n in zip(columns, range(len(columns)), strict=True):
        panel = f"({q} * vectors + ti.min(tile * {tile.vectors} + {v}, vectors - 1))"
        lines += [f"    b_offset{n} = {panel} * padded + k"]
        lines += [f"    t{r}_{n} = {_ZEROS}" for r in rows]
    lines += ["    while k < last_k:"]
    lines += [f"        b{n} = w_[b_offset{n}]" for n in range(len(columns))]
    for r in rows:
        lines += [f"        x = {left}_[left{r} + k]"]
        lines += [f"        {muladd.fma_line(f't{r}_{n}', f'b{n}', 'x', 'float32')}" for n in range(len(columns))]
    lines += [f"        b_offset{n} += k_step" for n in range(len(columns))] + ["        k += k_step"]
    start = f"core_id * {tile.rows * len(columns)}"
    cells = [(f"acc_[{start} + {r * len(columns) + n}]", f"t{r}_{n}") for r in rows for n in range(len(columns))]
    lines += ["    if block == 0:", *[f"        {total} = {term}" for total, term in cells]]
    lines += ["    else:", *[f"        {total} = {total} + {term}" for total, term in cells]]
    return ["for block in range((depth + BLOCK - 1) // BLOCK):".replace("BLOCK", str(BLOCK))] + [
        line.replace("BLOCK", str(BLOCK)) for line in lines
    ]


def _tile_loop(
    gates: int, tile: SequenceTile, left: str, left_row: str, product_guard: str, body: Sequence[str]
) -> list[str]:
    """Return the loops over the tiles of a time step: the product of each, and `body` for each of its vectors."""
    columns = gates * tile.vectors
    lines = [f"left{r} = {left_row.format(f'ti.min(row0 + {r}, last_t - 1)')}" for r in range(tile.rows)]
    lines += _product_lines(gates, tile, left)
    if product_guard:
        lines = [f"if {product_guard}:", *[f"    {line}" for line in lines]]
    lines += [
        f"for r in range(ti.min({tile.rows}, last_t - row0)):",
        "    row = row0 + r",
        f"    for v in range({tile.vectors}):",
        f"        j = tile * {tile.vectors} + v",
        "        if j < vectors:",
        f"            acc = core_id * {tile.rows * columns} + r * {columns} + v",
        *[f"            {line}" for line in body],
    ]
    return [
        "for tile in range(tiles):",
        f"    for group in range((last_t - first_t + {tile.rows - 1}) // {tile.rows}):",
        f"        row0 = first_t + group * {tile.rows}",
        *[f"        {line}" for line in lines],
    ]


def _forward_lines(cell: Cell, unit: int, tile: SequenceTile, biased: bool) -> tuple[dict[str, str], list[str]]:
    """Return the arrays of a forward kernel, with the number of elements of their vectors, and its statements."""
    row, vector, number = _row_annotation(unit), _row_annotation(LANES), source.array_annotation("float32")
    arrays = {"y": row, "x": row, "w": vector, "states": number, "h": vector, "acc": vector}
    arrays |= {"gates": row, "saved": row} if cell.saves else {}
    arrays |= {"c": vector} if cell.gates == 4 else {}
    arrays |= {"bias": row} if biased else {}
    body = []
    for q in range(cell.gates):
        body += [f"a{q} = acc_[acc + {q * tile.vectors}]"]
        body += _load_lines(f"x{q}", "x", f"(t * batch + row) * {cell.gates} + {q}", unit)
        body += [*_load_lines("b", "bias", str(q), unit), f"a{q} = a{q} + b"] if biased else []
    body += ["h = h_[(source + row) * vectors + j]"] if cell.carries_hidden else []
    body += ["c = c_[row * vectors + j]"] if cell.gates == 4 else []
    body += [to_vector_form(line) for line in cell.forward.splitlines()]
    body += ["h_[(target + row) * vectors + j] = h", *_store_lines("h", "y", "t * batch + row", unit)]
    body += ["c_[row * vectors + j] = c"] if cell.gates == 4 else []
    if cell.saves:
        for q in range(cell.gates):
            body += _store_lines(f"s{q}", "gates", f"(t * batch + row) * {cell.gates} + {q}", unit)
        body += _store_lines("saved", "saved", "t * batch + row", unit)
    lines = [
        "for step in range(length):",
        "    t = ti.select(reverse == 1, length - 1 - step, step)",
        "    source = step % 2 * batch",
        "    target = batch - source",
    ]
    loop = _tile_loop(cell.gates, tile, "states", f"(source + {{}}) * vectors * {LANES}", "", body)
    return arrays, [*lines, *[f"    {line}" for line in loop]]


def _backward_lines(cell: Cell, unit: int, tile: SequenceTile, has_grads: bool) -> tuple[dict[str, str], list[str]]:
    """Return the arrays of a backward kernel, with the number of elements of their vectors, and its statements.

    Iteration `length` computes only the gradients of the initial states.
    """
    left = "hidden" if cell.hidden_grads else "grad"
    row, vector, number = _row_annotation(unit), _row_annotation(LANES), source.array_annotation("float32")
    arrays = {"grad": row, "w": vector, "rows": number, "d": vector, "acc": vector}
    arrays |= {"hidden": row} if cell.hidden_grads else {}
    arrays |= {"e": vector, "gates": row, "saved": row, "first": row} if cell.saves else {}
    arrays |= {"states": row} if cell.gates != 4 else {}
    arrays |= {"u": row} if has_grads else {}
    at, previous = "t * batch + row", "states" if cell.carries_hidden else "saved"
    body = ["d = d_[row * vectors + j]", "if step > 0:", "    d = acc_[acc]"]
    body += ["e = e_[row * vectors + j]"] if cell.saves else []
    body += ["if step == length:", f"    d_[row * vectors + j] = d{' + e' * cell.carries_hidden}", "else:"]
    inner = [*_load_lines("u", "u", at, unit), "d = d + u"] if has_grads else []
    if cell.saves:
        for q in range(cell.gates):
            inner += _load_lines(f"s{q}", "gates", f"({at}) * {cell.gates} + {q}", unit)
        inner += [*_load_lines("saved", "saved", at, unit), "before = saved"]
        inner += ["if step == length - 1:", *[f"    {line}" for line in _load_lines("p", "first", "row", unit)]]
        inner += ["    before = p", "else:"]
        inner += [f"    {line}" for line in _load_lines("p", previous, "t_before * batch + row", unit)]
        inner += ["    before = p"]
    else:
        inner += _load_lines("h", "states", at, unit)
    inner += [to_vector_form(line) for line in cell.backward.splitlines()]
    for q in range(cell.gates):
        inner += _store_lines(f"x{q}", "grad", f"({at}) * {cell.gates} + {q}", unit)
        inner += _store_lines(f"a{q}", left, f"({at}) * {cell.gates} + {q}", unit) if cell.hidden_grads else []
    inner += ["e_[row * vectors + j] = e"] if cell.saves else []
    lines = [
        "for step in range(length + 1):",
        "    t = ti.select(reverse == 1, step, length - 1 - step)",
        "    t_after = ti.select(reverse == 1, step - 1, length - step)",
        "    t_before = ti.select(reverse == 1, step + 1, length - 2 - step)",
    ]
    loop = _tile_loop(
        1, tile, "rows", "(t_after * batch + {}) * depth", "step > 0", [*body, *[f"    {x}" for x in inner]]
    )
    return arrays, [*lines, *[f"    {line}" for line in loop]]


@arch_cache(256)
def sequence_kernel(
    name: str, backward: bool, unit: int, tile: SequenceTile, flag: bool, serial: bool
) -> tuple[Kernel, tuple[str, ...]]:
    """Return the kernel of a whole sequence, and the names of its arrays, which precede the sizes `_SIZES`.

    `unit` is the number of elements of a vector in arrays with H elements per row: 16, or 1 if vectors may be partial
    or not aligned. `size` is H in these units. `flag` means that there is a bias, or in a backward kernel, that the
    outputs of all steps have gradients.
    """
    cell = CELLS[name]
    arrays, lines = (_backward_lines if backward else _forward_lines)(cell, unit, tile, flag)
    body = cast_literals("".join(f"            {line}\n" for line in lines), "f32")
    full_name = f"{name}_sequence{'_backward' * backward}"
    head = [f"{x}_: {annotation}" for x, annotation in arrays.items()]
    head += [f"{x}: ti.i32" for x in _SIZES]
    loop = source.partitioned_loop("batch", body, serial)
    text = f"@ti.kernel\ndef {full_name}_kernel(\n{source.format_parameters(head)}):\n{loop}"
    functions = required_functions(body, "f32", True)
    kinds = "".join("p" if x == source.ADDRESS else "a" for x in arrays.values()) + "i" * len(_SIZES)
    return get_kernel(full_name, functions + text, kinds), tuple(arrays)
