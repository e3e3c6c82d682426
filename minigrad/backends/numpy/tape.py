"""Reference execution of a scalar graph: NumPy kernels and the rules of the ops, applied to a run of nodes at a time.

A run is split where a node depends on another node of the run, so a chain of one operation is computed node by node.
Values that differ between samples are stored in `rows`, (rows, samples), and shared values in `value`, (rows,).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import accept_raw_values, get_kernels, kernel

__all__ = ["step"]

MAX_ELEMENTS = 1 << 22  # maximum number of elements computed at a time


@kernel("tape_forward", DEVICE)
def tape_forward(leaf_values: Array, *, program: Any, out: Any = None) -> Array:
    """Compute all nodes of `program` into `out`. The first rows contain `leaf_values`, including constants."""
    _forward(program, leaf_values, out[:, None])
    return out


@kernel("tape_backward", DEVICE)
def tape_backward(value: Array, *, program: Any, out: Any = None) -> Array:
    """Accumulate the gradients of all operands into `out`, which initially contains the gradients of the outputs."""
    _backward(program, value, value[:, None], out, out[:, None])
    return out


@kernel("tape_batch", DEVICE)
def tape_batch(value: Array, columns: Array, *, program: Any, out: Any = None) -> Array:
    """Compute the outputs, (outputs, samples), from shared values and the `columns` of fed leaves (fed, samples)."""
    for samples, rows in _sample_chunks(program, columns):
        _forward(program, value, rows)
        for k, row in enumerate(program.outputs[:-1]):
            if row >= 0:
                out[k, samples] = rows[row]
    return out


@kernel("tape_batch_backward", DEVICE)
def tape_batch_backward(value: Array, columns: Array, seeds: Array, *, program: Any, out: Any = None) -> Array:
    """Compute the gradients of the leaves, summed over samples, from `seeds`, the gradients of the outputs."""
    out[...] = 0.0
    for samples, rows in _sample_chunks(program, columns):
        _forward(program, value, rows)
        grads = np.zeros_like(rows)
        for k, row in enumerate(program.outputs[:-1]):
            if row >= 0:
                grads[row] += seeds[k, samples]
        _backward(program, value, rows, out, grads)
        out[program.fed[:-1]] += grads[: len(columns)].sum(axis=1)
    return out


@kernel("tape_step", DEVICE)
def step(grad: Array, *, rows: Array, lr: float, out: Any = None) -> Array:
    """Take a gradient descent step: subtract `lr` times `grad` from the `rows` of `out`."""
    out.view(np.ndarray)[rows] -= lr * grad
    return out


def _sample_chunks(program: Any, columns: Array) -> Iterator[tuple[slice, Array]]:
    """Yield chunks of samples, each with an array of rows in which the fed leaves are set."""
    length = max(1, MAX_ELEMENTS // program.rows)
    for start in range(0, columns.shape[1], length):
        chunk = columns[:, start : start + length]
        rows = np.zeros((program.rows, chunk.shape[1]))
        rows[: len(chunk)] = chunk
        yield slice(start, start + length), rows


def _forward(program: Any, value: Array, rows: Array) -> None:
    for kind, nodes, operands in _independent_runs(program):
        values = _operand_values(kind, operands, value, rows)
        rows[nodes] = _array_kernel(kind)(*values[: kind.operand_count], **kind.attributes_of(values))


def _backward(program: Any, value: Array, rows: Array, sums: Array, grads: Array) -> None:
    with accept_raw_values():
        for kind, nodes, operands in reversed(list(_independent_runs(program))):
            if not any(kind.needs_grad):
                continue
            values, g = _operand_values(kind, operands, value, rows), grads[nodes]
            for slot, rule in enumerate(kind.op.rules):
                if not kind.needs_grad[slot]:
                    continue
                vjp = np.broadcast_to(
                    rule(g, rows[nodes], *values[: kind.operand_count], **kind.attributes_of(values)), g.shape
                )
                if kind.shared and kind.shared[slot]:
                    np.add.at(sums, operands[slot], vjp.sum(axis=1))
                else:
                    np.add.at(grads, operands[slot], vjp)


def _operand_values(kind: Any, operands: Array, value: Array, rows: Array) -> list[Array]:
    """Return the values of each operand and attribute, (nodes, samples), or (nodes, 1) if shared."""
    shared = kind.shared or (False,) * len(operands)
    return [value[row][:, None] if is_shared else rows[row] for row, is_shared in zip(operands, shared, strict=True)]


def _independent_runs(program: Any) -> Iterator[tuple[Any, slice, Array]]:
    """Yield the kind, the node rows and the operand rows of each run, split so that its nodes are independent."""
    for kind_index, first, count, operand_offset in program.runs.tolist():
        kind = program.kinds[kind_index]
        operands = program.operands[operand_offset : operand_offset + count * kind.width].reshape(count, kind.width)
        local_operands = operands if True not in kind.shared else np.where(kind.shared, -1, operands)
        last_dependencies = local_operands.max(axis=1).tolist()
        start = 0
        for stop in range(count + 1):
            if stop == count or last_dependencies[stop] >= first + start:
                if stop > start:
                    yield kind, slice(first + start, first + stop), operands[start:stop].T
                start = stop


def _array_kernel(kind: Any) -> Callable[..., Array]:
    """Return the array kernel or, if there is none, a loop over the scalar kernel."""
    kernels = get_kernels(kind.op.name)
    if DEVICE in kernels:
        return kernels[DEVICE]

    def apply_scalar_kernel(*operands: Array, **attrs: Any) -> Array:
        arrays = {name: x for name, x in attrs.items() if isinstance(x, np.ndarray)}
        broadcasted = np.broadcast_arrays(*operands, *arrays.values())
        results = []
        for scalars in zip(*[x.ravel().tolist() for x in broadcasted], strict=True):
            scalar_attrs = dict(zip(arrays, scalars[len(operands) :], strict=True))
            results.append(kernels["python"](*scalars[: len(operands)], **{**attrs, **scalar_attrs}))
        return np.array(results, dtype=np.float64).reshape(broadcasted[0].shape)

    return apply_scalar_kernel
