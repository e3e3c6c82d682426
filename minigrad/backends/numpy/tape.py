"""Reference execution of a scalar graph on arrays: NumPy kernels and the rules of the ops, on a run of nodes at a time.

A run is split where a node depends on another of the same run, so a chain of one operation is computed node by node.
Values per sample are stored in `rows`, (rows, samples); values shared by all samples in `value`, (rows,).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import kernel, kernels_of, on_raw_numbers

__all__ = ["step"]

TOGETHER = 1 << 22  # the maximum number of elements computed at a time when there are many samples


@kernel("tape_forward", DEVICE)
def tape_forward(known: Array, *, program: Any, out: Any = None) -> Array:
    """Compute all nodes of `program` into `out`. Its first rows hold `known`, the leaves and constants."""
    _forward(program, known, out[:, None])
    return out


@kernel("tape_backward", DEVICE)
def tape_backward(value: Array, *, program: Any, out: Any = None) -> Array:
    """Accumulate the gradients of all operands into `out`, which holds the gradients of the outputs."""
    _backward(program, value, value[:, None], out, out[:, None])
    return out


@kernel("tape_batch", DEVICE)
def tape_batch(value: Array, columns: Array, *, program: Any, out: Any = None) -> Array:
    """Compute the outputs, (outputs, samples), from shared values and the `columns` of fed leaves, (fed, samples)."""
    for samples, rows in _stretches(program, columns):
        _forward(program, value, rows)
        for k, row in enumerate(program.outputs[:-1]):
            if row >= 0:
                out[k, samples] = rows[row]
    return out


@kernel("tape_batch_backward", DEVICE)
def tape_batch_backward(value: Array, columns: Array, seeds: Array, *, program: Any, out: Any = None) -> Array:
    """Compute the gradients of the leaves, in rows as of `value`, summed over samples, from those of the outputs."""
    out[...] = 0.0
    for samples, rows in _stretches(program, columns):
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


def _stretches(program: Any, columns: Array) -> Iterator[tuple[slice, Array]]:
    """Yield chunks of samples, with rows in which those of the fed leaves are filled."""
    length = max(1, TOGETHER // program.rows)
    for start in range(0, columns.shape[1], length):
        part = columns[:, start : start + length]
        rows = np.zeros((program.rows, part.shape[1]))
        rows[: len(part)] = part
        yield slice(start, start + length), rows


def _forward(program: Any, value: Array, rows: Array) -> None:
    for kind, nodes, operands in _pieces(program):
        given = _given(kind, operands, value, rows)
        rows[nodes] = _computing(kind)(*given[: kind.takes], **kind.named(given))


def _backward(program: Any, value: Array, rows: Array, sums: Array, grads: Array) -> None:
    with on_raw_numbers():
        for kind, nodes, operands in reversed(list(_pieces(program))):
            if not any(kind.wants):
                continue
            given, g = _given(kind, operands, value, rows), grads[nodes]
            for slot, rule in enumerate(kind.op.rules):
                if not kind.wants[slot]:
                    continue
                product = np.broadcast_to(rule(g, rows[nodes], *given[: kind.takes], **kind.named(given)), g.shape)
                if kind.shared and kind.shared[slot]:
                    np.add.at(sums, operands[slot], product.sum(axis=1))
                else:
                    np.add.at(grads, operands[slot], product)


def _given(kind: Any, operands: Array, value: Array, rows: Array) -> list[Array]:
    """Return the values of each operand and attribute, (nodes, samples), or (nodes, 1) if shared."""
    shared = kind.shared or (False,) * len(operands)
    return [value[one][:, None] if same else rows[one] for one, same in zip(operands, shared, strict=True)]


def _pieces(program: Any) -> Iterator[tuple[Any, slice, Array]]:
    """Yield runs, split so that no node depends on another: the kind, the node rows, and the rows of each operand."""
    for number, first, count, at in program.runs.tolist():
        kind = program.kinds[number]
        operands = program.operands[at : at + count * kind.width].reshape(count, kind.width)
        ours = operands if True not in kind.shared else np.where(kind.shared, -1, operands)
        latest = ours.max(axis=1).tolist()
        start = 0
        for place in range(count + 1):
            if place == count or latest[place] >= first + start:
                if place > start:
                    yield kind, slice(first + start, first + place), operands[start:place].T
                start = place


def _computing(kind: Any) -> Callable[..., Array]:
    """Return the array kernel or, if there is none, a loop over the scalar kernel."""
    kernels = kernels_of(kind.op.name)
    if DEVICE in kernels:
        return kernels[DEVICE]

    def one_by_one(*operands: Array, **attrs: Any) -> Array:
        arrays = {name: x for name, x in attrs.items() if isinstance(x, np.ndarray)}
        whole = np.broadcast_arrays(*operands, *arrays.values())
        found = []
        for numbers in zip(*[x.ravel().tolist() for x in whole], strict=True):
            named = dict(zip(arrays, numbers[len(operands) :], strict=True))
            found.append(kernels["python"](*numbers[: len(operands)], **{**attrs, **named}))
        return np.array(found, dtype=np.float64).reshape(whole[0].shape)

    return one_by_one
