"""Kernels of whole sequences of recurrent layers.

On the CPU, one launch computes all time steps in float32. Otherwise, each time step takes two launches: the product and
the gates.
"""

from __future__ import annotations

from typing import Any

from minigrad.backends.numpy.recurrent import time_order
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.recurrent_source import (
    CELLS,
    SequenceTile,
    sequence_kernel,
    step_arrays,
    step_kernel,
)
from minigrad.backends.taichi.kernels.elementwise import copy_into, evaluate, full
from minigrad.backends.taichi.kernels.matmul import linear, matmul
from minigrad.backends.taichi.kernels.packing import pack_columns
from minigrad.backends.taichi.kernels.shape import as_contiguous, contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, address_argument, array_argument, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.core.dispatch import kernel

__all__: list[str] = []

LANES = source.VECTOR_SIZE
MAX_SERIAL = source.serial_limit(1 << 17)  # maximum number of multiplications of a sequence for one core
REGISTERS = 31 if source.HAS_AVX512 else 8  # vectors of sixteen in registers


# --- step by step ---


def _steps_forward(name: str, x: Any, h: Any, c: Any, w: Any, b: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """Return h of all time steps, the gates and the saved array."""
    cell, (length, batch, _), size = CELLS[name], x.shape, h.shape[1]
    y, x, h, c = empty((length, batch, size), x.dtype), *[None if a is None else as_contiguous(a) for a in (x, h, c)]
    gates: Any = empty(x.shape, x.dtype) if cell.saves else None
    saved: Any = empty(y.shape, x.dtype) if cell.saves else None
    launch = step_kernel(name, False, x.dtype.name, h.size <= source.SERIAL_LIMIT)
    for t in time_order(length, reverse):
        arrays = {"y": y[t], "x": x[t], "a": linear(h, w, b), "h": h, "c": c}
        if cell.saves:
            arrays |= {"gates": gates[t], "saved": saved[t]}
        launch(*[array_argument(arrays[k]) for k in step_arrays(cell, False)], size, h.size)
        h, c = y[t], None if c is None else saved[t]
    return y, gates, saved


def _steps_backward(
    name: str, u: Any, d: Any, e: Any, states: Any, gates: Any, saved: Any, first: Any, w: Any, reverse: bool
) -> tuple[Any, Any, Any, Any]:
    """Return the gradients of x, of the hidden products, of h and of e."""
    cell, size = CELLS[name], w.shape[1]
    length, batch = (states if gates is None else gates).shape[:2]
    grad = empty((length, batch, cell.gates * size), w.dtype)
    hidden = empty(grad.shape, w.dtype) if cell.hidden_grads else grad
    zeros = full((batch, size), w.dtype)
    d, e = zeros if d is None else as_contiguous(d), full((batch, size), w.dtype) if e is None else contiguous(e)
    launch = step_kernel(name, True, w.dtype.name, d.size <= source.SERIAL_LIMIT)
    order, previous = time_order(length, reverse), states if cell.carries_hidden else saved
    for k in range(length - 1, -1, -1):
        t = order[k]
        if u is not None:
            d = evaluate("add", "a + b", (d, u[t]), d.dtype)
        arrays = {"grad": grad[t], "hidden": hidden[t], "e": e, "d": d}
        if cell.saves:
            before = previous[order[k - 1]] if k else as_contiguous(first)
            arrays |= {"gates": gates[t], "saved": saved[t], "before": before}
        else:
            arrays |= {"h": states[t]}
        launch(*[array_argument(arrays[x]) for x in step_arrays(cell, True)], size, d.size)
        d = matmul(hidden[t], w)
    return grad, hidden, evaluate("add", "a + b", (d, e), d.dtype) if cell.carries_hidden else d, e


# --- all steps in one launch ---


def _is_fused(*arrays: Any) -> bool:
    return source.VECTORIZED and all(x is None or x.dtype == FLOAT for x in arrays)


@arch_cache(1024)
def _plan_tile(rows: int, vectors: int, gates: int) -> SequenceTile:
    """Return the fastest tile for `rows` rows on a core and `vectors` vectors of columns per gate."""
    tiles = [
        SequenceTile(r, v) for r in range(1, 15) for v in range(1, 5) if gates * v * (r + 1) < REGISTERS or r == v == 1
    ]

    def cost(tile: SequenceTile) -> float:
        columns = gates * tile.vectors
        operations = max(tile.rows * columns, tile.rows + columns, 8)  # products, loads, latency
        return -(-rows // tile.rows) * -(-vectors // tile.vectors) * (operations + 1)

    return min(tiles, key=cost)


def _aligned(x: Any, unit: int) -> Any:
    """Return `x`, or a copy if it is not contiguous or not aligned to `unit` elements."""
    return x if x.flags.c_contiguous and address_argument(x)[0] % (4 * unit) == 0 else contiguous(x)


def _padded(x: Any, batch: int, size: int) -> Any:
    """Return a copy of `x`, (N, H), or zeros if it is None, with H padded to full vectors."""
    vectors = -(-size // LANES)
    if x is None:
        return full((batch, vectors * LANES), FLOAT)
    out = empty((batch, vectors * LANES), FLOAT)
    copy_into(out[:, :size], x)
    return out


def _unpadded(x: Any, size: int) -> Any:
    return x if x.shape[1] == size else contiguous(x[:, :size])


def _launch(
    name: str,
    backward: bool,
    flag: bool,
    shape: tuple[int, int, int],
    depth: int,
    reverse: bool,
    arrays: dict[str, Any],
) -> None:
    """Launch the kernel of a whole sequence of `shape` (L, N, H). `depth` is the inner size of the product."""
    length, batch, size = shape
    gates, vectors, unit = CELLS[name].gates, -(-size // LANES), 1 if size % LANES else LANES
    serial = batch == 1 or length * batch * gates * size * size <= MAX_SERIAL
    cores = 1 if serial else source.CORES
    tile = _plan_tile(-(-batch // cores), vectors, 1 if backward else gates)
    launch, names = sequence_kernel(name, backward, unit, tile, flag, serial)
    acc = empty((cores * tile.rows * tile.vectors * (1 if backward else gates) * LANES,), FLOAT)
    arrays = {**{k: _aligned(x, unit) for k, x in arrays.items() if x is not None}, "acc": acc}
    sizes = (size // unit, depth, -(-depth // 4) * 4, vectors, -(-vectors // tile.vectors), int(reverse), 1)
    launch(*[array_argument(arrays[k]) for k in names], batch, length, *sizes)


def _sequence_forward(name: str, x: Any, h: Any, c: Any, w: Any, b: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """Return h of all time steps, the gates and the saved array."""
    if not _is_fused(x, h, c, w, b):
        return _steps_forward(name, x, h, c, w, b, reverse)
    cell, (length, batch, _), size = CELLS[name], x.shape, h.shape[1]
    width = -(-size // LANES) * LANES
    y = empty((length, batch, size), FLOAT)
    gates, saved = (empty(x.shape, FLOAT), empty(y.shape, FLOAT)) if cell.saves else (None, None)
    states = empty((2 * batch, width), FLOAT)  # h of the previous step and of this one
    copy_into(states[:batch, :size], h)
    arrays = {
        "y": y,
        "x": x,
        "w": pack_columns(as_contiguous(w).reshape(cell.gates, size, size).swapaxes(1, 2)),
        "states": states,
    }
    arrays |= {"h": states, "c": None if c is None else _padded(c, batch, size), "gates": gates, "saved": saved}
    _launch(name, False, b is not None, (length, batch, size), size, reverse, {**arrays, "bias": b})
    return y, gates, saved


def _sequence_backward(
    name: str, u: Any, d: Any, e: Any, states: Any, gates: Any, saved: Any, first: Any, w: Any, reverse: bool
) -> tuple[Any, Any, Any, Any]:
    """Return the gradients of x, of the hidden products, of h and of e."""
    states, gates, saved, u = [None if x is None else as_contiguous(x) for x in (states, gates, saved, u)]
    if not _is_fused(u, d, e, states, gates, w):
        return _steps_backward(name, u, d, e, states, gates, saved, first, w, reverse)
    cell, size = CELLS[name], w.shape[1]
    length, batch = (states if gates is None else gates).shape[:2]
    grad = empty((length, batch, cell.gates * size), FLOAT)
    hidden = empty(grad.shape, FLOAT) if cell.hidden_grads else grad
    d, e = _padded(d, batch, size), _padded(e, batch, size) if cell.saves else None
    arrays = {"grad": grad, "hidden": hidden, "rows": hidden, "w": pack_columns(w[None]), "d": d, "e": e}
    arrays |= {"gates": gates, "saved": saved, "first": first, "states": states, "u": u}
    _launch(name, True, u is not None, (length, batch, size), cell.gates * size, reverse, arrays)
    return grad, hidden, _unpadded(d, size), None if e is None else _unpadded(e, size)


# --- operations ---


def _last(y: Any, reverse: bool) -> Any:
    return contiguous(y[0 if reverse else -1])


@kernel("lstm_sequence", TAICHI)
def lstm_sequence(x: Any, h: Any, c: Any, w: Any, b: Any, *, reverse: bool) -> tuple[Any, ...]:
    y, gates, cells = _sequence_forward("lstm", x, h, c, w, b, reverse)
    return y, _last(y, reverse), _last(cells, reverse), gates, cells


@kernel("lstm_sequence_backward", TAICHI)
def lstm_sequence_backward(
    u: Any, uh: Any, uc: Any, gates: Any, cells: Any, c: Any, w: Any, *, reverse: bool
) -> tuple[Any, ...]:
    grad, _, grad_h, grad_c = _sequence_backward("lstm", u, uh, uc, None, gates, cells, c, w, reverse)
    return grad, grad_h, grad_c


@kernel("gru_sequence", TAICHI)
def gru_sequence(x: Any, h: Any, w: Any, b: Any, *, reverse: bool) -> tuple[Any, ...]:
    y, gates, projected = _sequence_forward("gru", x, h, None, w, b, reverse)
    return y, _last(y, reverse), gates, projected


@kernel("gru_sequence_backward", TAICHI)
def gru_sequence_backward(
    u: Any, uh: Any, states: Any, gates: Any, q: Any, h: Any, w: Any, *, reverse: bool
) -> tuple[Any, ...]:
    grad, hidden, grad_h, _ = _sequence_backward("gru", u, uh, None, states, gates, q, h, w, reverse)
    return grad, grad_h, hidden


@kernel("rnn_sequence", TAICHI)
def rnn_sequence(x: Any, h: Any, w: Any, b: Any, *, activation: str, reverse: bool) -> tuple[Any, Any]:
    y = _sequence_forward(f"rnn_{activation}", x, h, None, w, b, reverse)[0]
    return y, _last(y, reverse)


@kernel("rnn_sequence_backward", TAICHI)
def rnn_sequence_backward(u: Any, uh: Any, states: Any, w: Any, *, activation: str, reverse: bool) -> tuple[Any, Any]:
    name = f"rnn_{activation}"
    grad, _, grad_h, _ = _sequence_backward(name, u, uh, None, states, None, None, None, w, reverse)
    return grad, grad_h
