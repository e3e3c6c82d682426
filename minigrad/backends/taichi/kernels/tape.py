"""Kernels that execute a scalar graph by a loop over runs of nodes of the same kind, with an inner loop for each kind.

One core computes a single sample. Many samples are distributed over the cores in chunks of `CHUNK`. A core processes a
chunk in blocks of `BLOCK` samples, in its own rows, which stay in its cache for any number of samples; the backward
pass therefore recomputes the forward pass. Loops over a block have a fixed length, which reduces the compile time to a
third; the last block is padded with its last sample. Runs execute in order (in reverse order in the backward pass), and
chunk sums are added in order, so that results are bitwise independent of the number of cores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import indent
from typing import Any

import numpy as np

from minigrad.backends.numpy.tape import step
from minigrad.backends.taichi.codegen.functions import required_functions
from minigrad.backends.taichi.codegen.snippets import PREDICATES, SNIPPETS, clamp_snippet
from minigrad.backends.taichi.codegen.source import CORES, LETTERS, array_annotation, format_parameters
from minigrad.backends.taichi.runtime.array import TAICHI, CpuArray, array_argument, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.backends.taichi.runtime.vector_functions import cast_literals
from minigrad.core.dispatch import kernel

__all__ = ["generate_source"]

BLOCK, CHUNK = 32, 256
_SNIPPETS = SNIPPETS | PREDICATES
_SNIPPETS["sign"] = "ti.cast(a > 0, ti.f64) - ti.cast(a < 0, ti.f64)"
_SNIPPETS["clamp"] = clamp_snippet("low", "high")
_NAME_PATTERN = re.compile(r"(?<![\w.])(?!(?:ti|inf|nan)\b)[a-z_]+\b(?!\()")
_ARRAYS = {
    "tape_forward": ("value", "operands", "runs"),
    "tape_backward": ("value", "operands", "runs", "grad"),
    "tape_batch": ("value", "operands", "runs", "columns", "outputs", "rows", "result"),
    "tape_batch_backward": (
        *("value", "operands", "runs", "columns", "outputs", "rows"),
        *("fed", "seeds", "grads", "sums"),
    ),
}
_SIZE_NAMES = {
    False: ("length",),
    True: ("length", "count_rows", "count_fed", "count_outputs", "count", "count_values"),
}

Kind = tuple[str, int, str, tuple[str | None, ...], tuple[bool, ...]]
"""Operation name, number of rows read, expression, gradient expression of each row, and flags of the shared rows."""


@kernel("tape_forward", TAICHI)
def tape_forward(leaf_values: Any, *, program: Any, out: Any = None) -> Any:
    """Compute all nodes of `program` into `out`. The first rows of `out` contain `leaf_values`, the leaves and
    constants."""
    _launch("tape_forward", program, (out, program.operands, program.runs), ())
    return out


@kernel("tape_backward", TAICHI)
def tape_backward(value: Any, *, program: Any, out: Any = None) -> Any:
    """Accumulate the gradients of all operands into `out`, which already contains the gradients of the outputs."""
    _launch("tape_backward", program, (value, program.operands, program.runs, out), ())
    return out


@kernel("tape_batch", TAICHI)
def tape_batch(value: Any, columns: Any, *, program: Any, out: Any = None) -> Any:
    """Compute the outputs, of shape (outputs, samples), from shared values and the `columns` of the fed leaves, of
    shape (fed, samples)."""
    arguments = (value, program.operands, program.runs, columns, program.outputs, _rows(program), out)
    _launch("tape_batch", program, arguments, _counts(program, columns, 0))
    return out


@kernel("tape_batch_backward", TAICHI)
def tape_batch_backward(value: Any, columns: Any, seeds: Any, *, program: Any, out: Any = None) -> Any:
    """Compute the gradients of the leaves, summed over samples, from `seeds`, the gradients of the outputs. The rows of
    `out` correspond to those of `value`."""
    sums = empty((-(-columns.shape[1] // CHUNK), len(out)), np.float64)
    sums.view(np.ndarray).fill(0.0)
    shared_arguments = (value, program.operands, program.runs, columns, program.outputs, _rows(program), program.fed)
    arguments = (*shared_arguments, seeds, _rows(program), sums)
    _launch("tape_batch_backward", program, arguments, _counts(program, columns, len(out)))
    out.view(np.ndarray)[...] = sums.view(np.ndarray).sum(axis=0)
    return out


kernel("tape_step", TAICHI)(step)


def _rows(program: Any) -> Any:
    return empty((CORES * program.rows * BLOCK,), np.float64)


def _counts(program: Any, columns: Any, count_values: int) -> tuple[int, ...]:
    return program.rows, len(columns), len(program.outputs) - 1, columns.shape[1], count_values


def _launch(name: str, program: Any, arrays: Sequence[Any], counts: tuple[int, ...]) -> None:
    compiled_kernel = program.backend_cache.get(name)
    if compiled_kernel is None:
        kinds = "a" * len(arrays) + "i" * (1 + len(counts))
        compiled_kernel = program.backend_cache[name] = get_kernel(name, generate_source(name, program.snippets), kinds)
    pointers = [array_argument(x if isinstance(x, CpuArray) else x.view(CpuArray)) for x in arrays]
    compiled_kernel.launch(*pointers, len(program.runs), *counts)


# --- source ----------------------------------------------------------------------------------------------------------


@arch_cache(64)
def generate_source(name: str, kinds: tuple[Kind, ...]) -> str:
    """Return the source of the kernel `name`, such as ``tape_forward`` or ``tape_batch``, for these kinds of nodes."""
    if name in ("tape_forward", "tape_backward"):
        loop = (
            f"ti.loop_config(serialize=True)\nfor once in range(1):\n{indent(_run_loop(kinds, name, '', ''), ' ' * 4)}"
        )
    else:
        loop = _chunk_loop(kinds, name == "tape_batch_backward")
    arguments = []
    for array in _ARRAYS[name]:
        is_integer = array in ("operands", "runs", "outputs", "fed")
        arguments.append(f"{array}: {array_annotation('int32' if is_integer else 'float64')}")
    arguments += [f"{size_name}: ti.i32" for size_name in _SIZE_NAMES["batch" in name]]
    functions = "".join(
        _snippet_function(snippet_name) for snippet_name in dict.fromkeys(re.findall(r"\b(\w+)_of\(", loop))
    )
    head = f"@ti.kernel\ndef {name}_kernel(\n{format_parameters(arguments)}):\n"
    return f"{required_functions(functions + loop, 'f64')}{functions}{head}{indent(loop, ' ' * 4)}"


def _snippet_function(name: str) -> str:
    """Return the source of a snippet as a Taichi function. Its parameters are the operands and attributes, in order of
    occurrence."""
    params = ", ".join(dict.fromkeys(_NAME_PATTERN.findall(_SNIPPETS[name])))
    return f"@ti.func\ndef {name}_of({params}):\n    return {cast_literals(_SNIPPETS[name], 'f64')}\n\n\n"


def _chunk_loop(kinds: tuple[Kind, ...], is_backward: bool) -> str:
    """Return the source of the parallel loop over chunks of samples, in which each core processes its chunks by
    blocks."""
    block = f"""first_sample = block * {BLOCK}
samples = ti.min({BLOCK}, count - first_sample)
for k in range(count_fed):
    for sample in range({BLOCK}):
        rows[base + k * {BLOCK} + sample] = columns[k * count + ti.min(first_sample + sample, count - 1)]
{_run_loop(kinds, "tape_forward", "rows", "")}"""
    if is_backward:
        block += f"""for k in range(count_rows * {BLOCK}):
    grads[base + k] = 0.0
for k in range(count_outputs):
    if outputs[k] >= 0:
        for sample in range(samples):
            grad_index = base + outputs[k] * {BLOCK} + sample
            grads[grad_index] = grads[grad_index] + seeds[k * count + first_sample + sample]
{_run_loop(kinds, "tape_backward", "rows", "grads")}for k in range(count_fed):
    total = ti.f64(0.0)
    for sample in range(samples):
        total = total + grads[base + k * {BLOCK} + sample]
    sums[chunk * count_values + fed[k]] = sums[chunk * count_values + fed[k]] + total
"""
    else:
        block += f"""for k in range(count_outputs):
    if outputs[k] >= 0:
        for sample in range(samples):
            result[k * count + first_sample + sample] = rows[base + outputs[k] * {BLOCK} + sample]
"""
    # Taichi splits a loop into tasks of at least 512 iterations; run one task per core, on every 512th iteration.
    return f"""for core in range({CORES * 512}):
    if core % 512 == 0:
        base = core // 512 * count_rows * {BLOCK}
        chunks = (count + {CHUNK - 1}) // {CHUNK}
        chunks_per_core = (chunks + {CORES - 1}) // {CORES}
        for chunk in range(core // 512 * chunks_per_core, ti.min(chunks, (core // 512 + 1) * chunks_per_core)):
            blocks = (ti.min(count, (chunk + 1) * {CHUNK}) + {BLOCK - 1}) // {BLOCK}
            for block in range(chunk * {CHUNK // BLOCK}, blocks):
{indent(block, " " * 16)}"""


def _run_loop(kinds: tuple[Kind, ...], name: str, rows: str, grads: str) -> str:
    """Return the source of the loop over runs. `rows` and `grads` are the names of a block's arrays, or empty for a
    single sample."""
    is_backward = name == "tape_backward"
    body = "".join(f"{x} = runs[4 * run + {k}]\n" for k, x in enumerate(("kind", "first", "nodes", "operand_start")))
    for kind_index, kind in enumerate(kinds):
        if not is_backward or any(kind[3]):
            lines = _backward_lines(kind, rows, grads) if is_backward else _forward_lines(kind, rows)
            node_index = "nodes - 1 - n" if is_backward else "n"
            inner = f"position = {node_index}\nnode = first + position\n{lines}"
            body += f"if kind == {kind_index}:  # {kind[0]}\n    for n in range(nodes):\n{indent(inner, ' ' * 8)}"
    run_index = "length - 1 - iteration" if is_backward else "iteration"
    return f"for iteration in range(length):\n    run = {run_index}\n{indent(body, ' ' * 4)}"


def _operand_lines(
    kind: Kind, expression: str, extra_slots: Sequence[int], is_batched: bool
) -> tuple[list[str], list[str], list[str]]:
    """Return three groups of source lines, which compute row offsets, load shared values, and load the values of a
    sample."""
    _, row_count, _, _, shared = kind
    named_slots = [k for k in range(row_count) if re.search(rf"\b{LETTERS[k]}\b", expression)]
    offset_lines: list[str] = []
    shared_loads: list[str] = []
    sample_loads: list[str] = []
    for k in sorted({*named_slots, *extra_slots}):
        letter = LETTERS[k]
        row = f"operands[operand_start + position * {row_count} + {k}]"
        per_sample = is_batched and not shared[k]
        offset_lines.append(f"row_{letter} = base + {row} * {BLOCK}" if per_sample else f"row_{letter} = {row}")
        if k in named_slots:
            line = f"{letter} = rows[row_{letter} + sample]" if per_sample else f"{letter} = value[row_{letter}]"
            (sample_loads if per_sample else shared_loads).append(line)
    return offset_lines, shared_loads, sample_loads


def _forward_lines(kind: Kind, rows: str) -> str:
    """Return the source lines that compute the value of a node."""
    offset_lines, shared_loads, sample_loads = _operand_lines(kind, kind[2], (), bool(rows))
    expression = cast_literals(kind[2], "f64")
    if not rows:
        return _join_lines([*offset_lines, *shared_loads, f"value[node] = {expression}"])
    loop = [*sample_loads, f"rows[row_y + sample] = {expression}"]
    return _join_lines([*offset_lines, f"row_y = base + node * {BLOCK}", *shared_loads, *_sample_loop(loop)])


def _backward_lines(kind: Kind, rows: str, grads: str) -> str:
    """Return the source lines that compute the gradients of a node's operands."""
    _, _, _, rules, shared = kind
    rule_by_slot = {k: rule for k, rule in enumerate(rules) if rule is not None}
    expression = " ".join(rule_by_slot.values())
    offset_lines, shared_loads, sample_lines = _operand_lines(kind, expression, list(rule_by_slot), bool(rows))
    rule_by_slot = {k: cast_literals(rule, "f64") for k, rule in rule_by_slot.items()}
    reads = {"y": "rows" if rows else "value", "g": "grads" if rows else "grad"}
    index = "row_y + sample" if rows else "node"
    sample_lines = [
        *sample_lines,
        *[f"{x} = {array}[{index}]" for x, array in reads.items() if re.search(rf"\b{x}\b", expression)],
    ]
    after = []
    for k, rule in rule_by_slot.items():
        letter = LETTERS[k]
        if rows and shared[k]:
            shared_loads.append(f"sum_{letter} = ti.f64(0.0)")
            sample_lines.append(f"sum_{letter} = sum_{letter} + ti.select(sample < samples, {rule}, ti.f64(0.0))")
            total = f"sums[chunk * count_values + row_{letter}]"
            after.append(f"{total} = {total} + sum_{letter}")
        else:
            total = f"grads[row_{letter} + sample]" if rows else f"grad[row_{letter}]"
            sample_lines.append(f"{total} = {total} + {rule}")
    if not rows:
        return _join_lines([*offset_lines, *shared_loads, *sample_lines])
    return _join_lines(
        [*offset_lines, f"row_y = base + node * {BLOCK}", *shared_loads, *_sample_loop(sample_lines), *after]
    )


def _sample_loop(lines: Sequence[str]) -> list[str]:
    return [f"for sample in range({BLOCK}):", *[f"    {line}" for line in lines]]


def _join_lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
