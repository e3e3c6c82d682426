"""The exercises of lesson 1, One neuron."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.lessons.checking import Wrong, as_number, as_numbers, call, compare, compare_gradient, exercise, is_close

__all__: list[str] = []


@exercise("01.1", "the sigmoid passes on a quarter of it; w gets that times x, x that times w, b the quarter itself.")
def _neuron(answer: Any) -> None:
    alone = "that is the slope of w·x + b. The sigmoid comes after it and passes on only a quarter."
    swapped = "w and x have changed places. In w·x, the slope by one is the other."
    none = "b is added, so w·x + b moves exactly as far as b does."
    by_w, by_x = [(0.5, alone), (1.0, swapped)], [(4.0, alone), (0.125, swapped)]
    mistakes = {"w": by_w, "x": by_x, "b": [(1.0, alone), (0.0, none)]}
    compare_gradient(answer, {"w": 0.125, "x": 1.0, "b": 0.25}, mistakes)


@exercise("01.2", "rise over run: how far f moved, divided by how far x did.")
def _slope(answer: Any) -> None:
    trials: tuple[tuple[str, Callable[[float], float], float, float], ...] = (
        ("x**2", lambda x: x * x, 3.0, 6.0),
        ("x**2", lambda x: x * x, -3.0, -6.0),
        ("x**3", lambda x: x**3, 2.0, 12.0),
        ("7", lambda x: 7.0, 1.0, 0.0),
    )
    for text, f, x, right in trials:
        result = as_number(call(answer, f, x), "the slope")
        if right and 0 < abs(result) < 0.01:
            raise Wrong(f"{result:.2g} for {text} at {x:g} is how far f moved. Divide it by how far x moved.")
        mistakes = [
            (f(x), "that is f(x) itself. Subtract two values of f, then divide by the distance between the two x."),
            (0.0, "f did not move at all. With so small a step, x + h is rounded back to x: take 1e-5."),
            (2 * right, "twice too much. From x - h to x + h it is 2h, so divide by 2 * h."),
            (right / 2, "half of it. If you nudge one way only, divide by h, not by 2 * h."),
        ]
        name = f"the slope of {text} at {x:g}"
        if not is_close(result, right) and abs(result - right) < 0.05 * abs(right):
            raise Wrong(f"{name} = {result:g}: near {right:g}, but not near enough. Take a smaller step, such as 1e-5.")
        compare(name, result, right, mistakes, "Subtract the value on the left from the one on the right.")


@exercise("01.3", "a share of a is 1/b of it; and -a/b² says that more sharers (b) make every share smaller.")
def _division(answer: Any) -> None:
    names = ("a / b", "the slope by a", "the slope by b")
    for a, b in ((6.0, 4.0), (-3.0, 2.0), (5.0, 0.5)):
        result = as_numbers(call(answer, a, b), names, f"division({a:g}, {b:g})")
        right = (a / b, 1 / b, -a / b**2)
        case = f" for a = {a:g}, b = {b:g}"
        if is_close(result[1], right[2]) and is_close(result[2], right[1]):
            raise Wrong("the two slopes have changed places: first the slope by a, then the slope by b.")
        compare(names[0] + case, result[0], right[0])
        by_a = [(b, "that would be the slope of a·b."), (1.0, "that would be the slope of a + b.")]
        compare(names[1] + case, result[1], right[1], by_a)
        by_b = [(-a / b, "nearly. b² is below the line, not b."), (-1 / b**2, "the factor a is missing.")]
        compare(names[2] + case, result[2], right[2], by_b, "A larger divisor makes a positive quotient smaller.")
