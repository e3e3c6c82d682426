"""A scalar graph as one kernel: a loop over runs of nodes of one kind, with an inner loop of the snippet of each kind.

One core computes a single sample. Many samples are distributed over the cores in chunks of `STRETCH`. A core processes
a chunk in blocks of `BLOCK` samples, in its own rows, which stay in its cache however many samples there are; backward
therefore recomputes the forward pass. Loops over a block have a fixed length, which compiles in a third of the time;
the last block is padded with its last sample. Runs execute in order, or in reverse order backward, and chunk sums are
added in order, so that results are bitwise independent of the number of cores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import indent
from typing import Any

import numpy as np

from minigrad.backends.numpy.tape import step
from minigrad.backends.taichi.codegen.functions import needed
from minigrad.backends.taichi.codegen.snippets import SNIPPETS, TRUTHS, clamped
from minigrad.backends.taichi.codegen.source import CORES, LETTERS, array_of, in_lines
from minigrad.backends.taichi.runtime.array import DEVICE, CpuArray, empty, pointer
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.backends.taichi.runtime.vector_functions import typed
from minigrad.core.dispatch import kernel

__all__ = ["text"]

BLOCK, STRETCH = 32, 256
_TEXTS = SNIPPETS | TRUTHS
_TEXTS["sign"] = "ti.cast(a > 0, ti.f64) - ti.cast(a < 0, ti.f64)"
_TEXTS["clamp"] = clamped("low", "high")
_NAMES = re.compile(r"(?<![\w.])(?!(?:ti|inf|nan)\b)[a-z_]+\b(?!\()")
_ARRAYS = {
    "tape_forward": ("value", "operands", "runs"),
    "tape_backward": ("value", "operands", "runs", "grad"),
    "tape_batch": ("value", "operands", "runs", "columns", "outputs", "rows", "result"),
    "tape_batch_backward": (
        *("value", "operands", "runs", "columns", "outputs", "rows"),
        *("fed", "seeds", "grads", "sums"),
    ),
}
_NUMBERS = {False: ("length",), True: ("length", "count_rows", "count_fed", "count_outputs", "count", "known")}

Kind = tuple[str, int, str, tuple[str | None, ...], tuple[bool, ...]]
"""The op name, the number of rows it reads, its snippet, a gradient snippet per row, and which rows are shared."""


@kernel("tape_forward", DEVICE)
def tape_forward(known: Any, *, program: Any, out: Any = None) -> Any:
    """Compute all nodes of `program` into `out`. Its first rows hold `known`, the leaves and constants."""
    _launch("tape_forward", program, (out, program.operands, program.runs), ())
    return out


@kernel("tape_backward", DEVICE)
def tape_backward(value: Any, *, program: Any, out: Any = None) -> Any:
    """Accumulate the gradients of all operands into `out`, which holds the gradients of the outputs."""
    _launch("tape_backward", program, (value, program.operands, program.runs, out), ())
    return out


@kernel("tape_batch", DEVICE)
def tape_batch(value: Any, columns: Any, *, program: Any, out: Any = None) -> Any:
    """Compute the outputs, (outputs, samples), from shared values and the `columns` of fed leaves, (fed, samples)."""
    given = (value, program.operands, program.runs, columns, program.outputs, _rows(program), out)
    _launch("tape_batch", program, given, _counts(program, columns, 0))
    return out


@kernel("tape_batch_backward", DEVICE)
def tape_batch_backward(value: Any, columns: Any, seeds: Any, *, program: Any, out: Any = None) -> Any:
    """Compute the gradients of the leaves, in rows as of `value`, summed over samples, from those of the outputs."""
    sums = empty((-(-columns.shape[1] // STRETCH), len(out)), np.float64)
    sums.view(np.ndarray).fill(0.0)
    given = (value, program.operands, program.runs, columns, program.outputs, _rows(program), program.fed)
    every = (*given, seeds, _rows(program), sums)
    _launch("tape_batch_backward", program, every, _counts(program, columns, len(out)))
    out.view(np.ndarray)[...] = sums.view(np.ndarray).sum(axis=0)
    return out


kernel("tape_step", DEVICE)(step)


def _rows(program: Any) -> Any:
    return empty((CORES * program.rows * BLOCK,), np.float64)


def _counts(program: Any, columns: Any, known: int) -> tuple[int, ...]:
    return program.rows, len(columns), len(program.outputs) - 1, columns.shape[1], known


def _launch(name: str, program: Any, arrays: Sequence[Any], counts: tuple[int, ...]) -> None:
    made = program.made.get(name)
    if made is None:
        kinds = "a" * len(arrays) + "i" * (1 + len(counts))
        made = program.made[name] = compiled(name, text(name, program.snippets), kinds)
    at = [pointer(x if isinstance(x, CpuArray) else x.view(CpuArray)) for x in arrays]
    made.launch(*at, len(program.runs), *counts)


# --- source ----------------------------------------------------------------------------------------------------------


@cached(64)
def text(name: str, kinds: tuple[Kind, ...]) -> str:
    """Return the source of the kernel `name`, such as ``tape_forward`` or ``tape_batch``, for these kinds of nodes."""
    if name in ("tape_forward", "tape_backward"):
        loop = f"ti.loop_config(serialize=True)\nfor once in range(1):\n{indent(_runs(kinds, name, '', ''), ' ' * 4)}"
    else:
        loop = _stretches(kinds, name == "tape_batch_backward")
    arguments = []
    for array in _ARRAYS[name]:
        whole = array in ("operands", "runs", "outputs", "fed")
        arguments.append(f"{array}: {array_of('int32' if whole else 'float64')}")
    arguments += [f"{number}: ti.i32" for number in _NUMBERS["batch" in name]]
    functions = "".join(_function(one) for one in dict.fromkeys(re.findall(r"\b(\w+)_of\(", loop)))
    head = f"@ti.kernel\ndef {name}_kernel(\n{in_lines(arguments)}):\n"
    return f"{needed(functions + loop, 'f64')}{functions}{head}{indent(loop, ' ' * 4)}"


def _function(name: str) -> str:
    """Return a snippet as a Taichi function, with operands and attributes in their order of occurrence."""
    takes = ", ".join(dict.fromkeys(_NAMES.findall(_TEXTS[name])))
    return f"@ti.func\ndef {name}_of({takes}):\n    return {typed(_TEXTS[name], 'f64')}\n\n\n"


def _stretches(kinds: tuple[Kind, ...], back: bool) -> str:
    """Generate the parallel loop over chunks of samples, in which each core processes its chunks by blocks."""
    block = f"""first_sample = block * {BLOCK}
samples = ti.min({BLOCK}, count - first_sample)
for k in range(count_fed):
    for sample in range({BLOCK}):
        rows[base + k * {BLOCK} + sample] = columns[k * count + ti.min(first_sample + sample, count - 1)]
{_runs(kinds, "tape_forward", "rows", "")}"""
    if back:
        block += f"""for k in range(count_rows * {BLOCK}):
    grads[base + k] = 0.0
for k in range(count_outputs):
    if outputs[k] >= 0:
        for sample in range(samples):
            at_g = base + outputs[k] * {BLOCK} + sample
            grads[at_g] = grads[at_g] + seeds[k * count + first_sample + sample]
{_runs(kinds, "tape_backward", "rows", "grads")}for k in range(count_fed):
    total = ti.f64(0.0)
    for sample in range(samples):
        total = total + grads[base + k * {BLOCK} + sample]
    sums[stretch * known + fed[k]] = sums[stretch * known + fed[k]] + total
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
        stretches = (count + {STRETCH - 1}) // {STRETCH}
        share = (stretches + {CORES - 1}) // {CORES}
        for stretch in range(core // 512 * share, ti.min(stretches, (core // 512 + 1) * share)):
            blocks = (ti.min(count, (stretch + 1) * {STRETCH}) + {BLOCK - 1}) // {BLOCK}
            for block in range(stretch * {STRETCH // BLOCK}, blocks):
{indent(block, " " * 16)}"""


def _runs(kinds: tuple[Kind, ...], name: str, rows: str, grads: str) -> str:
    """Generate the loop over runs; `rows` and `grads` name the arrays of a block, and are empty for a single sample."""
    back = name == "tape_backward"
    body = "".join(f"{x} = runs[4 * run + {k}]\n" for k, x in enumerate(("kind", "first", "nodes", "at")))
    for number, kind in enumerate(kinds):
        if not back or any(kind[3]):
            lines = _back(kind, rows, grads) if back else _forth(kind, rows)
            place = "nodes - 1 - again" if back else "again"
            inner = f"place = {place}\nnode = first + place\n{lines}"
            body += f"if kind == {number}:  # {kind[0]}\n    for again in range(nodes):\n{indent(inner, ' ' * 8)}"
    turn = "length - 1 - turn" if back else "turn"
    return f"for turn in range(length):\n    run = {turn}\n{indent(body, ' ' * 4)}"


def _read(kind: Kind, wanted: str, also: Sequence[int], many: bool) -> tuple[list[str], list[str], list[str]]:
    """Generate lines that locate the rows of a node, that load shared values, and that load values of a sample."""
    _, takes, _, _, shared = kind
    named = [k for k in range(takes) if re.search(rf"\b{LETTERS[k]}\b", wanted)]
    places: list[str] = []
    before: list[str] = []
    inside: list[str] = []
    for k in sorted({*named, *also}):
        letter = LETTERS[k]
        row = f"operands[at + place * {takes} + {k}]"
        ours = many and not shared[k]
        places.append(f"at_{letter} = base + {row} * {BLOCK}" if ours else f"at_{letter} = {row}")
        if k in named:
            line = f"{letter} = rows[at_{letter} + sample]" if ours else f"{letter} = value[at_{letter}]"
            (inside if ours else before).append(line)
    return places, before, inside


def _forth(kind: Kind, rows: str) -> str:
    """Generate the forward computation of a node."""
    places, before, inside = _read(kind, kind[2], (), bool(rows))
    made = typed(kind[2], "f64")
    if not rows:
        return _lines([*places, *before, f"value[node] = {made}"])
    loop = [*inside, f"rows[at_y + sample] = {made}"]
    return _lines([*places, f"at_y = base + node * {BLOCK}", *before, *_each(loop)])


def _back(kind: Kind, rows: str, grads: str) -> str:
    """Generate the gradients of the operands of a node."""
    _, _, _, rules, shared = kind
    found = {k: rule for k, rule in enumerate(rules) if rule is not None}
    wanted = " ".join(found.values())
    places, before, inside = _read(kind, wanted, list(found), bool(rows))
    found = {k: typed(rule, "f64") for k, rule in found.items()}
    reads = {"y": "rows" if rows else "value", "g": "grads" if rows else "grad"}
    at = "at_y + sample" if rows else "node"
    inside = [*inside, *[f"{x} = {array}[{at}]" for x, array in reads.items() if re.search(rf"\b{x}\b", wanted)]]
    after = []
    for k, rule in found.items():
        letter = LETTERS[k]
        if rows and shared[k]:
            before.append(f"sum_{letter} = ti.f64(0.0)")
            inside.append(f"sum_{letter} = sum_{letter} + ti.select(sample < samples, {rule}, ti.f64(0.0))")
            total = f"sums[stretch * known + at_{letter}]"
            after.append(f"{total} = {total} + sum_{letter}")
        else:
            total = f"grads[at_{letter} + sample]" if rows else f"grad[at_{letter}]"
            inside.append(f"{total} = {total} + {rule}")
    if not rows:
        return _lines([*places, *before, *inside])
    return _lines([*places, f"at_y = base + node * {BLOCK}", *before, *_each(inside), *after])


def _each(lines: Sequence[str]) -> list[str]:
    return [f"for sample in range({BLOCK}):", *[f"    {line}" for line in lines]]


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
