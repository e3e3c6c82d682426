"""The exercises of lesson 5, The tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from minigrad.lessons.checking import Wrong, as_numbers, call, compare, exercise, is_close

__all__: list[str] = []

_Instructions = Sequence[Any]  # tuples of an operation and the rows that it reads


def _ran(program: _Instructions, leaves: Sequence[float]) -> list[float]:
    """Return the values of a program's rows. Raise `Wrong` for an invalid instruction."""
    compute: dict[str, tuple[int, Callable[..., float]]] = {
        "add": (2, lambda x, y: x + y), "mul": (2, lambda x, y: x * y), "neg": (1, lambda x: -x), "max": (2, max)
    }  # fmt: skip
    values = list(leaves)
    for k, instruction in enumerate(program):
        location = f"instruction {k}, {instruction!r},"
        if not isinstance(instruction, Sequence) or isinstance(instruction, str) or not instruction:
            raise Wrong(f'{location} should be an operation and the rows that it reads, like ("add", 0, 1).')
        op, *reads = instruction
        if op not in list(compute):  # op may be unhashable
            raise Wrong(f"{location} has the operation {op!r}. There are {', '.join(compute)}.")
        count, function = compute[op]
        if len(reads) != count:
            raise Wrong(f"{location} reads {len(reads)} rows; {op} reads {count}.")
        for read in reads:
            if isinstance(read, bool) or not isinstance(read, int):
                raise Wrong(f"{location} names {read!r}, which is no row. Rows are counted from 0: a is 0, b is 1.")
            if not 0 <= read < len(values):
                raise Wrong(
                    f"{location} reads row {read}, but writes row {len(values)}: there are only rows before that."
                )
        values.append(function(*[values[read] for read in reads]))
    return values


@exercise("05.1", "row 2 is a·b, read twice; row 3 adds a to it; and row 4, the last, is what the formula says.")
def _program(answer: Any) -> None:
    if not isinstance(answer, Sequence) or isinstance(answer, str):
        raise Wrong(f"a program is a list of instructions, and this is a {type(answer).__name__}.")
    for a, b in ((2.0, 3.0), (-1.5, 0.25)):
        values, product = _ran(answer, [a, b]), a * b
        mistakes = [
            (product + a, "that is a·b + a. It still has to be multiplied by a·b."),
            ((a + b) * product, "that is (a + b)·(a·b). The first factor is a·b + a."),
            ((product + b) * product, "to a·b you add b. Add a, which is row 0."),
            ((product + a) * a, "the second factor should be a·b, row 2, not a."),
            ((product + a) * b, "the second factor should be a·b, row 2, not b."),
            ((product + a) ** 2, "the sum is multiplied by itself. The second factor is a·b, row 2."),
        ]
        compare(f"with a = {a:g} and b = {b:g}, the last row", values[-1], (product + a) * product, mistakes)
    if len(answer) > 3:
        raise Wrong(f"the value is right, by {len(answer)} instructions. Three are enough: read the row of a·b twice.")


_PROGRAMS: tuple[tuple[_Instructions, list[float], str], ...] = (
    ([("add", 0, 1)], [2.0, 3.0], "a + b"),
    ([("mul", 0, 1), ("add", 2, 0)], [2.0, 3.0], "a·b + a"),
    ([("mul", 0, 0), ("neg", 1), ("add", 2, 0)], [-1.5], "-(a·a) + a"),
    ([("neg", 0), ("mul", 2, 1), ("mul", 3, 2)], [2.0, -0.5], "(-a·b)·(-a)"),
)


@exercise("05.2", "one loop for all operations: each instruction reads rows that are there, and writes the next one.")
def _run(answer: Any) -> None:
    with_max: _Instructions = [("max", 0, 1), ("neg", 2), ("add", 3, 1)]
    for program, leaves, text in (
        *_PROGRAMS,
        (with_max, [4.0, -1.0], "-max(a, b) + b"),
        (with_max, [0.5, 1.0], "-max(a, b) + b"),
    ):
        right, passed = _ran(program, leaves), list(leaves)
        result = call(answer, program, passed)
        case = f"for {text} with the leaves {leaves}"
        if passed != leaves:
            raise Wrong(f"{case} your function changes the list of leaves that it was given. Copy it: list(leaves).")
        if isinstance(result, Real) and is_close(float(result), right[-1]):
            raise Wrong(f"{case} that is the last value. Give back the list of all rows: the way back needs them.")
        if isinstance(result, Sequence) and len(result) == len(program):
            raise Wrong(f"{case} the leaves are missing: they are the first rows. Begin with values = list(leaves).")
        rows = as_numbers(result, [f"row {k}" for k in range(len(right))], f"the result {case}")
        for k, (value, expected) in enumerate(zip(rows, right, strict=True)):
            compare(f"{case}, row {k}", value, expected)


def _back(
    program: _Instructions, values: Sequence[float], add: bool = True, forward: bool = False, swap_factors: bool = False
) -> list[float]:
    """Return the gradients of a program's rows, optionally with one of three mistakes."""
    derivatives: dict[str, Callable[..., tuple[float, ...]]] = {
        "add": lambda x, y: (1.0, 1.0), "mul": lambda x, y: (y, x), "neg": lambda x: (-1.0,)
    }  # fmt: skip
    gradients, steps = [0.0] * (len(values) - 1) + [1.0], list(enumerate(program, len(values) - len(program)))
    for row, (op, *reads) in steps if forward else reversed(steps):
        local = derivatives[op](*[values[read] for read in (reads[::-1] if swap_factors else reads)])
        for read, derivative in zip(reads, local, strict=True):
            gradients[read] = (gradients[read] if add else 0.0) + gradients[row] * derivative
    return gradients


@exercise("05.3", "from the last row to the first, each row passes on what it has, times a slope, and it is added up.")
def _run_back(answer: Any) -> None:
    for program, leaves, text in _PROGRAMS:
        values = _ran(program, leaves)
        result = call(answer, program, list(values))
        case = f"for {text} with the leaves {leaves}"
        if isinstance(result, Sequence) and len(result) == len(leaves):
            raise Wrong(f"{case} you give one gradient for each leaf. Give those of all rows, {len(values)} of them.")
        gradients = as_numbers(result, [f"row {k}" for k in range(len(values))], f"the result {case}")
        right = _back(program, values)
        if all(map(is_close, gradients, right)):
            continue
        if not any(gradients):
            raise Wrong(f"{case} all gradients are 0. The last row begins with 1.")
        known = (
            (
                _back(program, values, add=False),
                "a row that is read twice keeps only one of two contributions. Add (+=).",
            ),
            (
                _back(program, values, forward=True),
                "you go through the program from its beginning. Begin with the last row.",
            ),
            (_back(program, values, swap_factors=True), "in a product, the slope by one factor is the other factor."),
        )
        for wrong, cause in known:
            if all(map(is_close, gradients, wrong)):
                raise Wrong(f"{case}: {cause}")
        for k, (value, expected) in enumerate(zip(gradients, right, strict=True)):
            compare(f"{case}, the gradient of row {k}", value, expected)
