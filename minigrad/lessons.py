"""Checks for the exercises of the lessons: they say what is wrong with an answer, never only that it is.

An exercise is a function that looks at an answer and raises `Wrong` with a sentence, `NotYet` while the answer is still
blank, or nothing if it is right. To add one, write it below under its number, with why the right answer is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Literal, NamedTuple

from minigrad.autograd import events
from minigrad.data import iris
from minigrad.value import Value

__all__ = ["EXERCISES", "Exercise", "NotYet", "Verdict", "Wrong", "check", "judge"]


class Exercise(NamedTuple):
    """`look` raises at an answer that is not right; `because` says why a right one is."""

    look: Callable[[Any], None]
    because: str


class Verdict(NamedTuple):
    """What a check found, and the sentence it says."""

    state: Literal["right", "wrong", "not yet"]
    sentence: str


class Wrong(Exception):
    """An answer that is not right; the message says what about it."""


class NotYet(Exception):
    """An answer still left blank."""


EXERCISES: dict[str, Exercise] = {}
"""Every exercise by its number: lesson, dot, exercise."""


def check(exercise_id: str, answer: Any) -> None:
    """Print one line about `answer`: right and why, wrong and what, or not yet.

    Raises KeyError if there is no such exercise. An error inside your own function comes through as it is, with a note
    on which call it was.

    >>> check("01.1", ...)
    01.1 not yet: replace the ... with your answer.
    >>> check("01.1", {"w": 0.125, "x": 1.0, "b": -0.25})
    01.1 not right: ∂y/∂b = -0.25 has the right size but the wrong sign. If b goes up, y goes up.
    >>> check("01.1", {"w": 0.125, "x": 1.0, "b": 0.25})
    01.1 right: the sigmoid passes on a quarter of it; w gets that times x, x that times w, b the quarter itself.
    """
    verdict = judge(exercise_id, answer)
    print(f"{exercise_id} {'not right' if verdict.state == 'wrong' else verdict.state}: {verdict.sentence}")


def judge(exercise_id: str, answer: Any) -> Verdict:
    """What `check` prints, as a `Verdict`: for tests, and for grading."""
    if exercise_id not in EXERCISES:
        raise KeyError(f"there is no exercise {exercise_id!r}; there are {', '.join(sorted(EXERCISES))}")
    exercise = EXERCISES[exercise_id]
    try:
        _filled(answer)
        exercise.look(answer)
    except NotYet as blank:
        return Verdict("not yet", str(blank))
    except Wrong as wrong:
        return Verdict("wrong", str(wrong))
    return Verdict("right", exercise.because)


def _exercise(number: str, because: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def register(look: Callable[[Any], None]) -> Callable[[Any], None]:
        EXERCISES[number] = Exercise(look, because)
        return look

    return register


# --- what the checks are made of --------------------------------------------------------------------------------------

Mistakes = Iterable[tuple[float, str]]  # a wrong number that has a known cause, and the cause


def _filled(answer: Any) -> None:
    if answer is None or answer is ...:
        raise NotYet("replace the ... with your answer.")
    items: Iterable[tuple[Any, Any]] = answer.items() if isinstance(answer, Mapping) else ()
    if blank := [str(key) for key, item in items if item is None or item is ...]:
        raise NotYet(f"still open: {', '.join(blank)}.")


def _call(function: Any, *arguments: Any) -> Any:
    """What the reader's function returns."""
    if not callable(function):
        raise Wrong(f"this is a {type(function).__name__}, not a function. Give the function itself, do not call it.")
    try:
        result = function(*arguments)
    except Exception as error:
        shown = ", ".join("a function" if callable(argument) else repr(argument) for argument in arguments)
        error.add_note(f"This happened when the check called your function with {shown}.")
        raise
    if result is None or result is ...:
        raise NotYet("the function gives nothing back so far. Write its body and end it with return.")
    return result


def _number(x: Any, what: str) -> float:
    if isinstance(x, Value):
        raise Wrong(f"{what} should be a plain number, and this is a Value: take its .data or its .grad.")
    if isinstance(x, bool) or not isinstance(x, Real):
        raise Wrong(f"{what} should be a number, and this is a {type(x).__name__}.")
    if math.isnan(x):
        raise Wrong(f"{what} is nan: somewhere inf was divided by inf, or 0 by 0.")
    return float(x)


def _numbers(x: Any, names: Sequence[str], what: str) -> list[float]:
    """As many numbers as there are names, from any sequence of them."""
    if not isinstance(x, Sequence) or isinstance(x, str) or len(x) != len(names):
        found = type(x).__name__ + (f" of {len(x)}" if isinstance(x, Sequence) else "")
        raise Wrong(f"{what} should be {len(names)} numbers ({', '.join(names)}), and this is a {found}.")
    return [_number(item, name) for item, name in zip(x, names, strict=True)]


def _close(x: float, y: float) -> bool:
    return math.isclose(x, y, rel_tol=1e-4, abs_tol=1e-6)


def _compare(name: str, given: Any, right: float, mistakes: Mistakes = (), up: str = "") -> None:
    """Raise `Wrong` if `given` is not `right`, and say why as exactly as can be; `up` is said of a wrong sign."""
    number = _number(given, name)
    if _close(number, right):
        return
    for wrong, cause in mistakes:
        if _close(number, wrong):
            raise Wrong(f"{name} = {number:g}: {cause}")
    if _close(number, -right):
        raise Wrong(f"{name} = {number:g} has the right size but the wrong sign. {up}".rstrip())
    if right and number:
        way = "Is a factor missing" if abs(number) < abs(right) else "Is there a factor too many, or a division missing"
        raise Wrong(f"{name} = {number:g} is {number / right:.3g} times what it should be. {way}?")
    raise Wrong(f"{name} = {number:g}, but a nudge says {right:g}.")


def _gradient(answer: Any, right: Mapping[str, float], mistakes: Mapping[str, Mistakes]) -> None:
    """Compare a dict of slopes of y, one for each name in `right`."""
    if not isinstance(answer, Mapping):
        names = ", ".join(f'"{name}": …' for name in right)
        raise Wrong(f"the answer should be a dict, {{{names}}}, and this is a {type(answer).__name__}.")
    if missing := [name for name in right if name not in answer]:
        raise Wrong(f"the slope by {', '.join(missing)} is missing from the dict.")
    for name, slope in right.items():
        up = f"If {name} goes up, y goes {'up' if slope > 0 else 'down'}."
        _compare(f"∂y/∂{name}", answer[name], slope, mistakes.get(name, ()), up)


# --- the exercises ----------------------------------------------------------------------------------------------------


@_exercise("01.1", "the sigmoid passes on a quarter of it; w gets that times x, x that times w, b the quarter itself.")
def _neuron(answer: Any) -> None:
    alone = "that is the slope of w·x + b. The sigmoid comes after it and passes on only a quarter."
    swapped = "w and x have changed places. In w·x, the slope by one is the other."
    none = "b is added, so w·x + b moves exactly as far as b does."
    by_w, by_x = [(0.5, alone), (1.0, swapped)], [(4.0, alone), (0.125, swapped)]
    mistakes = {"w": by_w, "x": by_x, "b": [(1.0, alone), (0.0, none)]}
    _gradient(answer, {"w": 0.125, "x": 1.0, "b": 0.25}, mistakes)


@_exercise("01.2", "rise over run: how far f moved, divided by how far x did.")
def _slope(answer: Any) -> None:
    trials: tuple[tuple[str, Callable[[float], float], float, float], ...] = (
        ("x**2", lambda x: x * x, 3.0, 6.0),
        ("x**2", lambda x: x * x, -3.0, -6.0),
        ("x**3", lambda x: x**3, 2.0, 12.0),
        ("7", lambda x: 7.0, 1.0, 0.0),
    )
    for text, f, x, right in trials:
        given = _number(_call(answer, f, x), "the slope")
        if right and 0 < abs(given) < 0.01:
            raise Wrong(f"{given:.2g} for {text} at {x:g} is how far f moved. Divide it by how far x moved.")
        mistakes = [
            (f(x), "that is f(x) itself. Subtract two values of f, then divide by the distance between the two x."),
            (0.0, "f did not move at all. With so small a step, x + h is rounded back to x: take 1e-5."),
            (2 * right, "twice too much. From x - h to x + h it is 2h, so divide by 2 * h."),
            (right / 2, "half of it. If you nudge one way only, divide by h, not by 2 * h."),
        ]
        name = f"the slope of {text} at {x:g}"
        if not _close(given, right) and abs(given - right) < 0.05 * abs(right):
            raise Wrong(f"{name} = {given:g}: near {right:g}, but not near enough. Take a smaller step, such as 1e-5.")
        _compare(name, given, right, mistakes, "Subtract the value on the left from the one on the right.")


@_exercise("01.3", "a share of a is 1/b of it; and -a/b² says that more sharers (b) make every share smaller.")
def _division(answer: Any) -> None:
    names = ("a / b", "the slope by a", "the slope by b")
    for a, b in ((6.0, 4.0), (-3.0, 2.0), (5.0, 0.5)):
        given = _numbers(_call(answer, a, b), names, f"division({a:g}, {b:g})")
        right = (a / b, 1 / b, -a / b**2)
        where = f" for a = {a:g}, b = {b:g}"
        if _close(given[1], right[2]) and _close(given[2], right[1]):
            raise Wrong("the two slopes have changed places: first the slope by a, then the slope by b.")
        _compare(names[0] + where, given[0], right[0])
        by_a = [(b, "that would be the slope of a·b."), (1.0, "that would be the slope of a + b.")]
        _compare(names[1] + where, given[1], right[1], by_a)
        by_b = [(-a / b, "nearly. b² is below the line, not b."), (-1 / b**2, "the factor a is missing.")]
        _compare(names[2] + where, given[2], right[2], by_b, "A larger divisor makes a positive quotient smaller.")


@_exercise("02.1", "each slope is the product of the local slopes on the way; the minus of c and of d is one of them.")
def _quotient(answer: Any) -> None:
    undivided = "the division by d lies on the way, and its local slope, 1/d, is missing."
    times_a = "the multiplication by a lies on the way, and its local slope, a, is missing."
    square = [(-3.0, "the local slope of n/d by d is -n/d²: the square is missing.")]
    by_b, by_c = [(6.0, undivided), (0.25, times_a)], [(-6.0, undivided), (-0.25, times_a)]
    mistakes = {"a": [(2.0, undivided)], "b": by_b, "c": by_c, "d": square}
    _gradient(answer, {"a": 0.5, "b": 1.5, "c": -1.5, "d": -0.75}, mistakes)


@_exercise("02.2", "a value may stand in the list only when all that it was made from stands before it.")
def _in_order(answer: Any) -> None:
    a, b, twin = Value(2.0, "a"), Value(3.0, "b"), Value(2.0, "c")
    total, double = a + b, a * 2.0
    product = total * a
    trials: tuple[tuple[list[Value], bool, str, str], ...] = (
        ([a, b, total], True, "[a, b, a + b]", "both operands come before their sum."),
        ([total, a, b], False, "[a + b, a, b]", "the sum comes before what it is made from."),
        ([a, total, b], False, "[a, a + b, b]", "b, the second operand, comes too late. Look at all of them."),
        ([a, b, total, product], True, "[a, b, a + b, (a + b) * a]", "that a is used twice does no harm."),
        ([a, b, product, total], False, "[a, b, (a + b) * a, a + b]", "the sum comes after the product that uses it."),
        ([a, double], True, "[a, a * 2.0]", "2.0 is a plain number, no Value, and need not be in the list."),
        ([a, total], False, "[a, a + b]", "b is not there at all."),
        ([twin, double], False, "[c, a * 2.0]", "c is not a, though both hold 2. `==` compares numbers: use a set."),
    )
    for nodes, right, text, remark in trials:
        if bool(_call(answer, nodes)) is not right:
            raise Wrong(f"you say {not right} to {text}, but it is {'' if right else 'not '}in order: {remark}")


@_exercise("02.3", "three operations, three local slopes: 3, then cos(3x), then 2·sin(3x), all multiplied.")
def _sine_squared(answer: Any) -> None:
    for x in (0.5, -0.4, 2.0):
        inner, outer = math.cos(3 * x), 2 * math.sin(3 * x)
        mistakes = [
            (inner * outer, "the slope of the innermost step, 3·x, is missing: it is 3."),
            (3 * outer, "the slope of the sine, cos(3x), is missing."),
            (3 * inner, "the slope of the square, 2·sin(3x), is missing."),
            (3 * inner * outer / 2, "half of it: the slope of u² is 2·u, not u."),
            (3 * math.cos(x) * outer, "the slope of the sine is the cosine of what went into it: cos(3x), not cos(x)."),
            (math.sin(3 * x) ** 2, "that is y itself, not its slope."),
        ]
        _compare(f"the slope at x = {x:g}", _call(answer, x), 3 * inner * outer, mistakes, "The sine's slope is +cos.")


@_exercise("03.1", "three paths lead from a to y, and they add up: a·b + a·b + 1 = 13. From b there is one: a·a = 9.")
def _three_paths(answer: Any) -> None:
    three = "a is used three times. Add what arrives along all three paths: 6 + 6 + 1."
    by_a = [(36.0, "paths are added, not multiplied: 6 + 6 + 1."), *[(part, three) for part in (1.0, 6.0, 7.0, 12.0)]]
    by_b = [(3.0, "b is multiplied by a twice, so its slope is a·a.")]
    _gradient(answer, {"a": 13.0, "b": 9.0}, {"a": by_a, "b": by_b})


@_exercise("03.2", "a gradient is the sum of all contributions that arrive at one value.")
def _sum_of_events(answer: Any) -> None:
    a, b, idle = Value(3.0, "a"), Value(3.0, "b"), Value(1.0, "c")
    seen = events(a * a + a * b)
    for value, right in ((a, 9.0), (b, 3.0), (idle, 0.0)):
        if value is idle and (result := answer(seen, value)) is None:
            raise Wrong("for a value that no event arrives at you give None: its gradient is 0. Start your sum at 0.0.")
        mine = [event for event in seen if event.target is value]
        mistakes = [
            (12.0, "those of a and b together: both hold 3, and `==` compares numbers. Ask `event.target is value`."),
            (sum(event.contribution for event in seen), "these are all contributions. Take those that reach `value`."),
            (sum(event.total for event in mine), "`total` is a running sum already. Add up `contribution`."),
            (mine[-1].contribution if mine else 0.0, "that is one contribution alone. Add (+=), do not overwrite (=)."),
        ]
        result = _call(answer, seen, value)
        _compare(f"for a * a + a * b with a = b = 3, the gradient of {value.label}", result, right, mistakes)


@_exercise("03.3", "a fresh graph and a fresh gradient for each step, and then a step against the slope.")
def _descent(answer: Any) -> None:
    for start, steps, right in ((0.0, 1, 1.0), (0.0, 3, 1.75), (10.0, 2, 4.0)):
        stale, kept, up = start, 0.0, start
        for _ in range(steps):
            kept += 2 * stale - 4
            stale -= 0.25 * kept
            up += 0.25 * (2 * up - 4)
        mistakes = [
            (stale, "the gradients of earlier steps are still in there. Forget them before each backward()."),
            (up, "uphill. Subtract the gradient: x.data -= 0.25 * x.grad."),
            (start, "x has not moved. Write the new number into x.data."),
            (2 + (right - 2) * 2, "one step too few."),
            (2 + (right - 2) / 2, "one step too many."),
        ]
        _compare(f"from {start:g}, after {steps} step(s), x", _call(answer, start, steps), right, mistakes)


@_exercise("04.1", "positive numbers that add up to 1; with the largest score subtracted first, none can overflow.")
def _softmax(answer: Any) -> None:
    stable = "such scores make exp too large or too small. Subtract the largest score from all of them first."
    zero = "you divide by 0. Divide by the sum of all exp(score), which is never 0."
    trials = {(0.0, 0.0): 0.5, (math.log(3), 0.0): 0.75, (1000.0, 0.0): 1.0, (-1000.0, -1000.0): 0.5}
    for scores, first in trials.items():
        what = f"softmax of [{', '.join(f'{score:.3g}' for score in scores)}]"
        try:
            result = _call(answer, list(scores))
            given = _numbers(list(result) if isinstance(result, tuple) else result, ["p0", "p1"], what)
        except (OverflowError, ZeroDivisionError) as error:
            raise Wrong(f"{what}: {stable if abs(scores[0]) > 9 else zero}") from error
        except Wrong as wrong:
            raise Wrong(f"{what}: {stable}") if "nan" in str(wrong) else wrong from None
        if min(given) < 0:
            raise Wrong(f"{what} gives {min(given):.3g}: no probability is negative. exp makes all numbers positive.")
        if not _close(sum(given), 1.0):
            raise Wrong(f"{what}: the probabilities add up to {sum(given):.3g}, not 1. Divide each by their sum.")
        mistakes = [(1 - first, "the larger score should get the larger one."), (0.5, "the scores have no say.")]
        _compare(f"{what}: the first probability", given[0], first, mistakes)


@_exercise("04.2", "p - 1 for the right class, p for the others: its score should rise, theirs should fall.")
def _score_slopes(answer: Any) -> None:
    for p, target in (([0.5, 0.25, 0.25], 0), ([0.125, 0.125, 0.75], 1)):
        names = [f"∂L/∂s{k}" for k in range(3)]
        given = _numbers(_call(answer, p, target), names, "the gradient")
        if all(map(_close, given, p)):
            raise Wrong(
                f"that is p itself. L also subtracts s{target}, the score of the right class: take 1 off there."
            )
        for k, name in enumerate(names):
            right = p[k] - (k == target)
            missing = [(0.0, "this score is in L too: it is in the sum under the logarithm.")]
            up = f"A higher score for {'the right class lowers' if k == target else 'a wrong class raises'} the loss."
            _compare(f"{name} for p = {p}, target {target},", given[k], right, missing, up)


@_exercise("04.3", "two of the four measurements are nearly enough: petals tell the species apart.")
def _petals(answer: Any) -> None:
    if not callable(answer):
        raise Wrong(f"this is a {type(answer).__name__}, not a model. Give the trained MLP itself.")
    sizes = getattr(answer, "sizes", (2, 3))
    if sizes[0] != 2 or sizes[-1] != 3:
        raise Wrong(f"this model takes {sizes[0]} inputs to {sizes[-1]} scores. Make it 2 (petals) to 3 (species).")
    flowers = iris()
    votes = []
    for x in flowers.test_x:
        scores = [float(score) for score in _call(answer, x[2:])]
        votes.append(scores.index(max(scores)))
    hits = sum(map(int.__eq__, votes, flowers.test_y))
    found = f"{hits} of {len(votes)} test flowers are right"
    if len(set(votes)) < 3:
        never = ", ".join(name for k, name in enumerate(flowers.species) if k not in votes)
        raise Wrong(f"{found}, and it never answers {never}. Train longer, on all the training flowers.")
    if hits < 27:
        raise Wrong(f"{found}; it takes 27. Is each flower paired with its own species, and does the loss fall?")


Instructions = Sequence[Any]  # tuples of an operation and the rows that it reads


def _ran(program: Instructions, leaves: Sequence[float]) -> list[float]:
    """The values of a program's rows. Raises `Wrong` with what is the matter with an instruction."""
    compute: dict[str, tuple[int, Callable[..., float]]] = {
        "add": (2, lambda x, y: x + y), "mul": (2, lambda x, y: x * y), "neg": (1, lambda x: -x), "max": (2, max)
    }  # fmt: skip
    values = list(leaves)
    for k, instruction in enumerate(program):
        where = f"instruction {k}, {instruction!r},"
        if not isinstance(instruction, Sequence) or isinstance(instruction, str) or not instruction:
            raise Wrong(f'{where} should be an operation and the rows that it reads, like ("add", 0, 1).')
        op, *reads = instruction
        if op not in list(compute):  # which may be no name at all
            raise Wrong(f"{where} has the operation {op!r}. There are {', '.join(compute)}.")
        count, function = compute[op]
        if len(reads) != count:
            raise Wrong(f"{where} reads {len(reads)} rows; {op} reads {count}.")
        for read in reads:
            if isinstance(read, bool) or not isinstance(read, int):
                raise Wrong(f"{where} names {read!r}, which is no row. Rows are counted from 0: a is 0, b is 1.")
            if not 0 <= read < len(values):
                raise Wrong(f"{where} reads row {read}, but writes row {len(values)}: there are only rows before that.")
        values.append(function(*[values[read] for read in reads]))
    return values


@_exercise("05.1", "row 2 is a·b, read twice; row 3 adds a to it; and row 4, the last, is what the formula says.")
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
        _compare(f"with a = {a:g} and b = {b:g}, the last row", values[-1], (product + a) * product, mistakes)
    if len(answer) > 3:
        raise Wrong(f"the value is right, by {len(answer)} instructions. Three are enough: read the row of a·b twice.")


_PROGRAMS: tuple[tuple[Instructions, list[float], str], ...] = (
    ([("add", 0, 1)], [2.0, 3.0], "a + b"),
    ([("mul", 0, 1), ("add", 2, 0)], [2.0, 3.0], "a·b + a"),
    ([("mul", 0, 0), ("neg", 1), ("add", 2, 0)], [-1.5], "-(a·a) + a"),
    ([("neg", 0), ("mul", 2, 1), ("mul", 3, 2)], [2.0, -0.5], "(-a·b)·(-a)"),
)


@_exercise("05.2", "one loop for all operations: each instruction reads rows that are there, and writes the next one.")
def _run(answer: Any) -> None:
    more: Instructions = [("max", 0, 1), ("neg", 2), ("add", 3, 1)]
    for program, leaves, text in (
        *_PROGRAMS,
        (more, [4.0, -1.0], "-max(a, b) + b"),
        (more, [0.5, 1.0], "-max(a, b) + b"),
    ):
        right, mine = _ran(program, leaves), list(leaves)
        given = _call(answer, program, mine)
        what = f"for {text} with the leaves {leaves}"
        if mine != leaves:
            raise Wrong(f"{what} your function changes the list of leaves that it was given. Copy it: list(leaves).")
        if isinstance(given, Real) and _close(float(given), right[-1]):
            raise Wrong(f"{what} that is the last value. Give back the list of all rows: the way back needs them.")
        if isinstance(given, Sequence) and len(given) == len(program):
            raise Wrong(f"{what} the leaves are missing: they are the first rows. Begin with values = list(leaves).")
        numbers = _numbers(given, [f"row {k}" for k in range(len(right))], f"the result {what}")
        for k, (number, expected) in enumerate(zip(numbers, right, strict=True)):
            _compare(f"{what}, row {k}", number, expected)


def _back(
    program: Instructions, values: Sequence[float], add: bool = True, forward: bool = False, own: bool = False
) -> list[float]:
    """The gradients of a program's rows; or what comes out with one of three mistakes."""
    slopes: dict[str, Callable[..., tuple[float, ...]]] = {
        "add": lambda x, y: (1.0, 1.0), "mul": lambda x, y: (y, x), "neg": lambda x: (-1.0,)
    }  # fmt: skip
    found, steps = [0.0] * (len(values) - 1) + [1.0], list(enumerate(program, len(values) - len(program)))
    for row, (op, *reads) in steps if forward else reversed(steps):
        local = slopes[op](*[values[read] for read in (reads[::-1] if own else reads)])
        for read, slope in zip(reads, local, strict=True):
            found[read] = (found[read] if add else 0.0) + found[row] * slope
    return found


@_exercise("05.3", "from the last row to the first, each row passes on what it has, times a slope, and it is added up.")
def _run_back(answer: Any) -> None:
    for program, leaves, text in _PROGRAMS:
        values = _ran(program, leaves)
        given = _call(answer, program, list(values))
        what = f"for {text} with the leaves {leaves}"
        if isinstance(given, Sequence) and len(given) == len(leaves):
            raise Wrong(f"{what} you give one gradient for each leaf. Give those of all rows, {len(values)} of them.")
        numbers = _numbers(given, [f"row {k}" for k in range(len(values))], f"the result {what}")
        right = _back(program, values)
        if all(map(_close, numbers, right)):
            continue
        if not any(numbers):
            raise Wrong(f"{what} all gradients are 0. The last row begins with 1.")
        known = (
            (
                _back(program, values, add=False),
                "a row that is read twice keeps only one of two contributions. Add (+=).",
            ),
            (
                _back(program, values, forward=True),
                "you go through the program from its beginning. Begin with the last row.",
            ),
            (_back(program, values, own=True), "in a product, the slope by one factor is the other factor."),
        )
        for wrong, cause in known:
            if all(map(_close, numbers, wrong)):
                raise Wrong(f"{what}: {cause}")
        for k, (number, expected) in enumerate(zip(numbers, right, strict=True)):
            _compare(f"{what}, the gradient of row {k}", number, expected)
