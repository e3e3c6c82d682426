"""The exercises of lesson 2, The chain rule."""

from __future__ import annotations

import math
from typing import Any

from minigrad.core.value import Value
from minigrad.lessons.checking import Wrong, call, compare, compare_gradient, exercise

__all__: list[str] = []


@exercise("02.1", "each slope is the product of the local slopes on the way; the minus of c and of d is one of them.")
def _quotient(answer: Any) -> None:
    undivided = "the division by d lies on the way, and its local slope, 1/d, is missing."
    times_a = "the multiplication by a lies on the way, and its local slope, a, is missing."
    square = [(-3.0, "the local slope of n/d by d is -n/d²: the square is missing.")]
    by_b, by_c = [(6.0, undivided), (0.25, times_a)], [(-6.0, undivided), (-0.25, times_a)]
    mistakes = {"a": [(2.0, undivided)], "b": by_b, "c": by_c, "d": square}
    compare_gradient(answer, {"a": 0.5, "b": 1.5, "c": -1.5, "d": -0.75}, mistakes)


@exercise("02.2", "a value may stand in the list only when all that it was made from stands before it.")
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
        if bool(call(answer, nodes)) is not right:
            raise Wrong(f"you say {not right} to {text}, but it is {'' if right else 'not '}in order: {remark}")


@exercise("02.3", "three operations, three local slopes: 3, then cos(3x), then 2·sin(3x), all multiplied.")
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
        compare(f"the slope at x = {x:g}", call(answer, x), 3 * inner * outer, mistakes, "The sine's slope is +cos.")
