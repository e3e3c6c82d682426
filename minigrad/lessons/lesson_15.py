"""The exercises of lesson 15, One step, one kernel."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from minigrad.lessons.checking import Wrong, as_number, call, compare, compare_arrays, entries, exercise, true_or_false
from minigrad.lessons.expressions import evaluate

__all__: list[str] = []


# --- 15.1: two prices ------------------------------------------------------------------------------------------------

_PRICES: dict[str, tuple[float, list[tuple[float, str]]]] = {
    "three calls": (
        32e6,
        [
            (28e6, "one array is missing. Two of the calls read x, and each has to fetch it."),
            (36e6, "r is a plain number, and no array that is read."),
            (20e6, "that is what they read. Each of the three writes an array, too."),
            (12e6, "that is what they write. Reading moves bytes, too: two arrays, one, and two."),
            (8e6, "these are numbers. Each has four bytes."),
            (32, "that is for each number, or in megabytes. Say it in bytes, for a million."),
        ],
    ),
    "fused": (
        12e6,
        [
            (8e6, "x and y are read, and the result has to be written."),
            (32e6, "that is what three calls move. In one, the difference never goes to memory."),
            (16e6, "x is read once: in the loop it is there already. And r is a plain number."),
            (20e6, "only x, y and the result go to memory. What is between them does not."),
            (3e6, "these are numbers. Each has four bytes."),
            (12, "that is for each number, or in megabytes. Say it in bytes, for a million."),
        ],
    ),
    "n": (
        900_000 / 32,
        [
            (300_000 / 32, "that is the price of one call. There are three."),
            (900_000 / 12, "12 bytes for each number is what the fused one moves. The three calls move 32."),
            (900_000 / 8, "eight numbers are moved for each n. These are 32 bytes."),
            (900_000, "that is how many bytes cost as much as three calls. Divide by the bytes for each number."),
            (1_000_000, "for a million, the three calls cost 90 millionths of a second, and 32 million bytes 3,200."),
            (90 / 32, "10,000 bytes are moved in a millionth of a second: 900,000 while three calls are made."),
        ],
    ),
}


@exercise(
    "15.1",
    "calls cost the same for any n, bytes grow with it: a step is mostly calls below this n, and memory above.",
)
def _prices(answer: Any) -> None:
    entries(answer, *_PRICES)
    for name, (right, mistakes) in _PRICES.items():
        number = as_number(answer[name], name)
        for near in [right, *[wrong for wrong, _ in mistakes]]:
            if abs(number - near) < 0.01 * near:  # rounded by the reader
                number = near
        compare(name, number, right, mistakes)


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


def _told(row: tuple[str, tuple[Any, ...], str]) -> str:
    op, reads, out = row
    return f"{out} = {op}({', '.join(map(str, reads))})"


def _once(program: _Rows) -> tuple[_Rows, dict[str, str]]:
    """The right answer, and which name stands for each that is gone."""
    first: dict[Any, str] = {}
    instead: dict[str, str] = {}
    kept: _Rows = []
    for op, reads, out in program:
        reads = tuple([instead.get(x, x) for x in reads])
        if (op, reads) in first:
            instead[out] = first[op, reads]
        else:
            first[op, reads] = out
            kept.append((op, reads, out))
    return kept, instead


@exercise("15.2", "names are replaced before rows are compared, so that what follows from equal rows is found as well.")
def _each_once(answer: Any) -> None:
    for program in _PROGRAMS:
        given = list(program)
        found = call(answer, given)
        what = f"in {'; '.join(map(_told, program))}:"
        if given != program:
            raise Wrong(f"{what} your function changes the program that it was given. Make a new list.")
        _look_at_rows(what, program, _rows(what, found))


def _rows(what: str, found: Any) -> _Rows:
    """The answer as rows of tuples."""
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise Wrong(f"{what} give back a list of rows; this is a {type(found).__name__}.")
    rows = []
    for row in found:
        if not isinstance(row, Sequence) or len(row) != 3 or not isinstance(row[1], tuple | list):
            raise Wrong(f"{what} {row!r} should be an operation, a tuple of what it reads, and what it writes.")
        rows.append((row[0], tuple(row[1]), row[2]))
    return rows


def _look_at_rows(what: str, program: _Rows, rows: _Rows) -> None:
    right, instead = _once(program)
    written = [out for _, _, out in rows]
    for op, reads, out in right:
        if out not in written:
            same = next((row for row in program if row[2] != out and row[0] == op), None)
            other = f" {_told(same)} is not the same: what is read, and in which order, counts." if same else ""
            raise Wrong(f"{what} {_told((op, reads, out))} is gone, and has to stay.{other}")
    for _, reads, out in rows:
        for x in reads:
            if x in instead and x not in written:
                raise Wrong(
                    f"{what} {out} still reads {x}, which nobody writes any more. Read {instead[x]} in its place."
                )
        if out in instead:
            twin = next(row for row in right if row[2] == instead[out])
            if any(x in instead for x in next(row[1] for row in program if row[2] == out)):
                raise Wrong(
                    f"{what} {out} is {_told(twin).partition(' = ')[2]} too, once names have been replaced. "
                    "Replace first, then ask if such a row was there."
                )
            raise Wrong(f"{what} {out} computes what {instead[out]} is already. It should be left out.")
    if rows != right:
        raise Wrong(f"{what} this gives {'; '.join(map(_told, rows))}. It should be {'; '.join(map(_told, right))}.")


# --- 15.3: fuse texts ------------------------------------------------------------------------------------------------

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


@exercise(
    "15.3", "where the name stands as a word, the text takes its place, in brackets: one loop, and one trip less."
)
def _fused(answer: Any) -> None:
    for first, second in _PAIRS:
        found = call(answer, first, second)
        what = f"for {first!r} and {second!r}"
        if not isinstance(found, str):
            raise Wrong(f"{what} give back one text; this is a {type(found).__name__}.")
        (text, out), (reader, _) = first, second
        if out == "t3" and found == reader.replace(out, f"({text})") != re.sub(r"\bt3\b", f"({text})", reader):
            raise Wrong(f"{what} you give {found!r}: t31 is another name, which only begins like t3.")
        try:
            tree = ast.parse(found.strip(), mode="eval")
        except SyntaxError:
            near = " t31 is another name, which only begins like t3." if "t31" in reader else ""
            raise Wrong(f"{what} you give {found!r}, which is no expression.{near}") from None
        if any(not isinstance(part, _PARTS) for part in ast.walk(tree)):
            raise Wrong(f"{what} you give {found!r}. It should be made of names, numbers and + - * / ( ).")
        names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        if out in names:
            once = " Replace it everywhere." if {"t1", "t2"} <= names else " Put its text there."
            raise Wrong(f"{what} you give {found!r}, which still reads {out}.{once}")
        if stray := sorted(names - set(re.findall(r"t\d+", f"{text} {reader}"))):
            raise Wrong(f"{what} you give {found!r}, and {', '.join(stray)} is in neither of the two.")
        right = re.sub(rf"\b{out}\b", f"({text})", reader)
        mistakes = [
            (_computed(re.sub(rf"\b{out}\b", text, reader)), "without brackets the signs around it bind differently."),
            (_computed(text), f"that is the first alone. Put it in the place of {out} in the second."),
        ]
        compare(f"{what} you give {found!r}: with numbers,", _computed(found), _computed(right), mistakes)


# --- 15.4: recorded again? -------------------------------------------------------------------------------------------

_AGAIN = {
    "A": (False, "other numbers in the same shape are what a recording is for: arguments are read at each call."),
    "B": (True, "another shape is another recording: other loops, and another mean."),
    "C": (False, "rates of optimizers are looked up at each call, so a schedule works."),
    "D": (True, "layers may compute otherwise then, so the modules that a step uses are guarded."),
    "E": (True, "a name that the step takes from around it is guarded."),
    "F": (True, "guards follow a step into the functions that it calls, however it reaches them."),
}


@exercise("15.4", "of what may change, arguments and rates are read at each call; names and modules are guarded.")
def _again(answer: Any) -> None:
    entries(answer, *_AGAIN)
    true_or_false(answer, _AGAIN, "is recorded again", "is not recorded again")


# --- 15.5: repair a step ---------------------------------------------------------------------------------------------


@exercise("15.5", "it chooses by where, gives back what it used to append, and reads the rate where it lies.")
def _descend(answer: Any) -> None:
    import numpy as np

    import minigrad.functional  # noqa: F401 -- which gives tensors their methods
    from minigrad.compiler.jit import jit
    from minigrad.core.errors import CaptureError
    from minigrad.functional.creation import tensor

    if not callable(answer):
        raise Wrong(f"this is a {type(answer).__name__}, not a function. Give descend itself, without mg.jit.")
    step = answer if hasattr(answer, "captures") else jit(answer)
    w = tensor([1.0, -1.0], requires_grad=True, device="numpy")
    now = np.array([1.0, -1.0])
    for k, (x, rate) in enumerate((([3.0, 1.0], 0.125), ([1.75, -0.75], 0.125), ([1.0, 2.0], 0.25), ([1.0, 0.5], 0.5))):
        what = f"in step {k}, with a rate of {rate},"
        try:
            loss = call(step, w, tensor(x, device="numpy"), tensor(rate, device="numpy"))
        except CaptureError as error:
            raise Wrong(f"it cannot be recorded: {' '.join(str(error).split())}") from None
        slope, right = 2.0 * (now - x), float(((now - x) ** 2).sum())
        half = rate / 2 if right < 1.0 else rate
        other = rate if right < 1.0 else rate / 2
        again = now - half * slope
        compare(f"{what} the loss that you give back", _number(loss), right, [(float(((again - x) ** 2).sum()), _LATE)])
        mistakes = [
            (now, "has not moved. Write to it: w.sub_(…) under mg.no_grad()."),
            (now - other * slope, f"the loss is {right:g}, so the rate should be {'halved' if half < rate else rate}."),
            (now + half * slope, "goes uphill. Subtract."),
        ]
        compare_arrays(f"{what} w", w, again, mistakes)
        now = again
    if len(step.captures) > 1:
        raise Wrong(f"right, but it is recorded {len(step.captures)} times: {step.captures[1]}.")


_LATE = "that is the loss after the update. Give back the one that you went back from."


def _number(loss: Any) -> float:
    return as_number(loss.item() if hasattr(loss, "item") else loss, "the loss")
