"""The exercises of lesson 15, One step, one kernel."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from minigrad.lessons.checking import (
    Wrong,
    as_number,
    call,
    check_keys,
    compare,
    compare_arrays,
    compare_flags,
    exercise,
)
from minigrad.lessons.expressions import evaluate

__all__: list[str] = []


# --- 15.1: two prices ------------------------------------------------------------------------------------------------

_PRICES: dict[str, tuple[float, list[tuple[float, str]]]] = {
    "three calls": (
        32e6,
        [
            (28e6, "one array is missing. Two of the calls read x, and each has to load it."),
            (36e6, "r is a Python number, and no array that is read."),
            (20e6, "that is what they read. Each of the three writes an array, too."),
            (12e6, "that is what they write. They read bytes, too: two arrays, one, and two."),
            (8e6, "these are elements. Each has four bytes."),
            (32, "that is for each element, or in megabytes. Give it in bytes, for a million."),
        ],
    ),
    "fused": (
        12e6,
        [
            (8e6, "x and y are read, and the result has to be written."),
            (32e6, "that is what three calls transfer. In one, the difference never goes to memory."),
            (16e6, "x is read once: in the loop it is in a register already. And r is a Python number."),
            (20e6, "only x, y and the result are in memory. Temporaries are not."),
            (3e6, "these are elements. Each has four bytes."),
            (12, "that is for each element, or in megabytes. Give it in bytes, for a million."),
        ],
    ),
    "n": (
        900_000 / 32,
        [
            (300_000 / 32, "that is the price of one call. There are three."),
            (900_000 / 12, "12 bytes for each element is what the fused one transfers. The three calls transfer 32."),
            (900_000 / 8, "eight elements are read or written for each n. These are 32 bytes."),
            (900_000, "that is how many bytes cost as much as three calls. Divide by the bytes for each element."),
            (1_000_000, "for a million, the three calls cost 90 millionths of a second, and 32 million bytes 3,200."),
            (90 / 32, "10,000 bytes take a millionth of a second: 900,000 take as long as three calls."),
        ],
    ),
}


@exercise(
    "15.1",
    "calls cost the same for any n, bytes grow with it: a step is mostly calls below this n, and memory above.",
)
def _prices(answer: Any) -> None:
    check_keys(answer, *_PRICES)
    for name, (right, mistakes) in _PRICES.items():
        value = as_number(answer[name], name)
        for near in [right, *[wrong for wrong, _ in mistakes]]:
            if abs(value - near) < 0.01 * near:  # rounded by the learner
                value = near
        compare(name, value, right, mistakes)


# --- 15.2: each once -------------------------------------------------------------------------------------------------

_Rows = list[tuple[str, tuple[Any, ...], str]]
_PROGRAMS: tuple[_Rows, ...] = (
    [("mul", ("t0", "t1"), "t2"), ("mul", ("t0", "t1"), "t3"), ("add", ("t2", "t3"), "t4")],
    [("sub", ("t0", "t1"), "t2"), ("sub", ("t1", "t0"), "t3"), ("add", ("t0", "t1"), "t4"),
     ("mul", ("t2", "t3"), "t5")],
    [("mul", ("t0", 2.0), "t1"), ("mul", ("t0", 3.0), "t2"), ("mul", ("t0", 2.0), "t3"), ("add", ("t2", "t3"), "t4")],
    [("exp", ("t0",), "t1"), ("exp", ("t0",), "t2"), ("neg", ("t1",), "t3"), ("neg", ("t2",), "t4"),
     ("mul", ("t3", "t4"), "t5")],
)  # fmt: skip


def _format_row(row: tuple[str, tuple[Any, ...], str]) -> str:
    op, reads, out = row
    return f"{out} = {op}({', '.join(map(str, reads))})"


def _once(program: _Rows) -> tuple[_Rows, dict[str, str]]:
    """Return the right answer, and the name that replaces each dropped one."""
    first: dict[Any, str] = {}
    instead: dict[str, str] = {}
    unique: _Rows = []
    for op, reads, out in program:
        reads = tuple([instead.get(x, x) for x in reads])
        if (op, reads) in first:
            instead[out] = first[op, reads]
        else:
            first[op, reads] = out
            unique.append((op, reads, out))
    return unique, instead


@exercise("15.2", "names are replaced before rows are compared, so that rows that use equal rows are found as well.")
def _each_once(answer: Any) -> None:
    for program in _PROGRAMS:
        passed = list(program)
        result = call(answer, passed)
        case = f"in {'; '.join(map(_format_row, program))}:"
        if passed != program:
            raise Wrong(f"{case} your function changes the program that it got. Return a new list.")
        _look_at_rows(case, program, _rows(case, result))


def _rows(case: str, result: Any) -> _Rows:
    """Return the answer as rows of tuples."""
    if not isinstance(result, Sequence) or isinstance(result, str):
        raise Wrong(f"{case} return a list of rows; this is a {type(result).__name__}.")
    rows = []
    for row in result:
        if not isinstance(row, Sequence) or len(row) != 3 or not isinstance(row[1], tuple | list):
            raise Wrong(f"{case} {row!r} should be an operation, a tuple of what it reads, and what it writes.")
        rows.append((row[0], tuple(row[1]), row[2]))
    return rows


def _look_at_rows(case: str, program: _Rows, rows: _Rows) -> None:
    right, instead = _once(program)
    written = [out for _, _, out in rows]
    for op, reads, out in right:
        if out not in written:
            same = next((row for row in program if row[2] != out and row[0] == op), None)
            other = f" {_format_row(same)} is not the same: the operands and their order count." if same else ""
            raise Wrong(f"{case} {_format_row((op, reads, out))} is missing, and has to stay.{other}")
    for _, reads, out in rows:
        for x in reads:
            if x in instead and x not in written:
                raise Wrong(f"{case} {out} still reads {x}, which no row writes any longer. Read {instead[x]} instead.")
        if out in instead:
            twin = next(row for row in right if row[2] == instead[out])
            if any(x in instead for x in next(row[1] for row in program if row[2] == out)):
                raise Wrong(
                    f"{case} {out} is {_format_row(twin).partition(' = ')[2]} too, once names have been replaced. "
                    "Replace first, then check if such a row exists."
                )
            raise Wrong(f"{case} {out} computes the same as {instead[out]}. It should be left out.")
    if rows != right:
        raise Wrong(
            f"{case} this gives {'; '.join(map(_format_row, rows))}. It should be {'; '.join(map(_format_row, right))}."
        )


# --- 15.3: fuse snippets ---------------------------------------------------------------------------------------------

_PARTS = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Load, ast.operator, ast.unaryop)
_NUMBERS = {f"t{k}": 1.5 + 0.75 * k for k in range(40)}
_PAIRS = (
    (("t1 + t2", "t3"), ("t3 * t4", "t5")),
    (("t1 - t2", "t3"), ("t4 - t3 * t3", "t5")),
    (("t1 / t2", "t3"), ("t4 / t3", "t5")),
    (("t1 + t2", "t3"), ("t3 * t31", "t5")),
)


def _computed(text: str) -> float:
    return float(evaluate(ast.parse(text.strip(), mode="eval").body, _NUMBERS))


@exercise("15.3", "the snippet replaces the name as a word, in parentheses: one loop, and less memory traffic.")
def _fused(answer: Any) -> None:
    for first, second in _PAIRS:
        result = call(answer, first, second)
        case = f"for {first!r} and {second!r}"
        if not isinstance(result, str):
            raise Wrong(f"{case} return one string; this is a {type(result).__name__}.")
        (text, out), (reader, _) = first, second
        if out == "t3" and result == reader.replace(out, f"({text})") != re.sub(r"\bt3\b", f"({text})", reader):
            raise Wrong(f"{case} you return {result!r}: t31 is another name, which only begins like t3.")
        try:
            tree = ast.parse(result.strip(), mode="eval")
        except SyntaxError:
            near = " t31 is another name, which only begins like t3." if "t31" in reader else ""
            raise Wrong(f"{case} you return {result!r}, which is no expression.{near}") from None
        if any(not isinstance(part, _PARTS) for part in ast.walk(tree)):
            raise Wrong(f"{case} you return {result!r}. It should consist of names, numbers and + - * / ( ).")
        names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        if out in names:
            once = " Replace it everywhere." if {"t1", "t2"} <= names else " Put its snippet there."
            raise Wrong(f"{case} you return {result!r}, which still reads {out}.{once}")
        if stray := sorted(names - set(re.findall(r"t\d+", f"{text} {reader}"))):
            raise Wrong(f"{case} you return {result!r}, and {', '.join(stray)} is in neither of the two.")
        right = re.sub(rf"\b{out}\b", f"({text})", reader)
        mistakes = [
            (_computed(re.sub(rf"\b{out}\b", text, reader)), "without parentheses the operators bind differently."),
            (_computed(text), f"that is the first alone. Substitute it for {out} in the second."),
        ]
        compare(f"{case} you return {result!r}: with numbers,", _computed(result), _computed(right), mistakes)


# --- 15.4: retraced? -------------------------------------------------------------------------------------------------

_AGAIN = {
    "A": (False, "other values in the same shape are what a trace is for: arguments are read at each call."),
    "B": (True, "another shape is another trace: other loops, and another mean."),
    "C": (False, "rates of optimizers are looked up at each call, so a schedule works."),
    "D": (True, "layers may compute differently then, so the modules that a step uses are guarded."),
    "E": (True, "globals and closure variables that the step reads are guarded."),
    "F": (True, "guards cover the functions that a step calls, too."),
}


@exercise("15.4", "arguments and rates are read at each call; globals, closure variables and modules are guarded.")
def _again(answer: Any) -> None:
    check_keys(answer, *_AGAIN)
    compare_flags(answer, _AGAIN, "is retraced", "is not retraced")


# --- 15.5: repair a step ---------------------------------------------------------------------------------------------


@exercise("15.5", "it chooses by where, returns what it used to append, and keeps the rate a tensor.")
def _descend(answer: Any) -> None:
    import numpy as np

    import minigrad.functional  # noqa: F401 -- attaches the methods of Tensor
    from minigrad.compiler.jit import jit
    from minigrad.core.errors import CaptureError
    from minigrad.functional.creation import tensor

    if not callable(answer):
        raise Wrong(f"this is a {type(answer).__name__}, not a function. Pass descend itself, without mg.jit.")
    step = answer if hasattr(answer, "captures") else jit(answer)
    w = tensor([1.0, -1.0], requires_grad=True, device="numpy")
    now = np.array([1.0, -1.0])
    for k, (x, rate) in enumerate((([3.0, 1.0], 0.125), ([1.75, -0.75], 0.125), ([1.0, 2.0], 0.25), ([1.0, 0.5], 0.5))):
        case = f"in step {k}, with a rate of {rate},"
        try:
            loss = call(step, w, tensor(x, device="numpy"), tensor(rate, device="numpy"))
        except CaptureError as error:
            raise Wrong(f"it cannot be captured: {' '.join(str(error).split())}") from None
        gradient, right = 2.0 * (now - x), float(((now - x) ** 2).sum())
        half = rate / 2 if right < 1.0 else rate
        other = rate if right < 1.0 else rate / 2
        again = now - half * gradient
        compare(
            f"{case} the loss that you return", _loss_value(loss), right, [(float(((again - x) ** 2).sum()), _LATE)]
        )
        mistakes = [
            (now, "has not changed. Update it in-place: w.sub_(…) under mg.no_grad()."),
            (
                now - other * gradient,
                f"the loss is {right:g}, so the rate should be {'halved' if half < rate else rate}.",
            ),
            (now + half * gradient, "goes uphill. Subtract."),
        ]
        compare_arrays(f"{case} w", w, again, mistakes)
        now = again
    if len(step.captures) > 1:
        raise Wrong(f"right, but it is captured {len(step.captures)} times: {step.captures[1]}.")


_LATE = "that is the loss after the update. Return the one on which you called backward()."


def _loss_value(loss: Any) -> float:
    return as_number(loss.item() if hasattr(loss, "item") else loss, "the loss")
