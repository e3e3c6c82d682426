"""The exercises of lesson 14, Looking where it matters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad.core.errors import ShapeError
from minigrad.lessons.checking import (
    Mistakes,
    Wrong,
    as_array,
    as_numbers,
    call,
    check_keys,
    compare,
    compare_arrays,
    exercise,
    is_close,
)

__all__: list[str] = []

_Matrix = list[list[float]]


@exercise(
    "14.1", "u = ¼ and v = ½, so the weights are ⅜ and ⅛, twice. To find more, go down, and a little to the left."
)
def _by_hand(answer: Any) -> None:
    exchanged = "x and y are exchanged. x goes to the right, and y down."
    by_value = [
        (4.75, exchanged),
        (5.25, "u and 1 − u are exchanged. The point is nearer to the left, so 2 and 10 have the larger weights."),
        (5.5, "that is the plain mean of the four. The point is nearer to the left two."),
        (3.0, "that is found between 2 and 6 alone. Half of it has to come from the lower pair."),
        (6.0, "that is found between 2 and 10 alone. A quarter has to come from the pair on the right."),
        (2.0, "that is the nearest pixel. Mix all four."),
        (10.0, "that is the nearest pixel. Mix all four."),
        (23.0, "the weights should add up to 1. These are four times as large."),
        (11.5, "the weights should add up to 1. These are twice as large."),
    ]
    by_six = [
        (0.375, "that is the weight of the 2. The point is ¾ of a pixel from the column of the 6."),
        (0.75, "that is what the 6 contributes to the value. By how much does that grow if the 6 grows by 1?"),
        (0.25, "that is u. The weight also depends on v: times 1 − v."),
        (0.5, "that is 1 − v. The weight also depends on u: times u."),
        (1.0, "the 6 is only one of four that are mixed. The derivative is its weight."),
        (0.0, "the 6 has a part in it: nudge it, and the value moves."),
    ]
    by_x = [
        (4.0, "that is the rise from 2 to 6. The rise of the lower pair, −6, is to be mixed with it: half of each."),
        (-6.0, "that is the rise from 10 to 4. The rise of the upper pair, 4, is to be mixed with it: half of each."),
        (-2.0, "that is the sum of the two rises. They are mixed, with 1 − v and v."),
        (1.5, "the two rises, 4 and −6, are mixed with 1 − v and v, and v is ½: y counts downwards."),
        (5.5, "that is the derivative downwards. By x, pair left with right."),
    ]
    by_y = [
        (
            8.0,
            "that is the rise from 2 to 10. The rise of the right pair, −2, is to be mixed with it: a quarter of it.",
        ),
        (6.0, "that is the sum of the two rises. They are mixed, with 1 − u and u."),
        (3.0, "the two rises, 8 and −2, are mixed with 1 − u and u, and u is ¼."),
        (
            0.5,
            "the two rises are mixed the wrong way round: the left one, 8, counts ¾, since the point is nearer to it.",
        ),
        (-1.0, "that is the derivative to the right. By y, pair above with below."),
    ]
    check_keys(answer, "value", "by the 6", "by x", "by y")
    compare("the value", answer["value"], 5.75, by_value)
    compare("the derivative by the 6", answer["by the 6"], 0.125, by_six)
    compare("the derivative by x", answer["by x"], -1.0, by_x, "A little to the right, the picture is darker.")
    compare("the derivative by y", answer["by y"], 5.5, by_y, "A little further down, the picture is brighter.")


# --- matrices ---------------------------------------------------------------------------------------------------------


def _stretched(x: float, y: float, right: float = 0.0, down: float = 0.0) -> _Matrix:
    return [[x, 0.0, right], [0.0, y, down]]


_WANTED: dict[str, tuple[_Matrix, list[tuple[_Matrix, str]]]] = {
    "twice as large": (
        _stretched(0.5, 0.5),
        [
            (_stretched(2, 2), "a grid twice as wide sees twice as much, so that the picture comes out half as large."),
            (_stretched(0.5, 1), "it is scaled across only. Its height has to double, too."),
            (_stretched(1, 0.5), "it is scaled downwards only. Its width has to double, too."),
            (_stretched(0.5, 0.5, -0.5, -0.5), "that is the upper left quarter. Around the middle, nothing shifts."),
            (_stretched(0.25, 0.25), "that is four times as large. The grid should be half as wide."),
            (_stretched(1, 1), "that is the picture as it is."),
        ],
    ),
    "to the right": (
        _stretched(1, 1, -0.5),
        [
            (
                _stretched(1, 1, 0.5),
                "the grid goes to the right, and finds the picture further left. Look to the left.",
            ),
            (_stretched(1, 1, -0.25), "from −1 to 1 the width is 2, so a quarter of it is not 0.25."),
            (_stretched(1, 1, 0.25), "two things: the width is 2, not 1; and the grid has to look to the left."),
            (_stretched(1, 1, -2), "that is in pixels. θ counts from −1 to 1, and the width is 2."),
            (_stretched(1, 1, 2), "that is in pixels. θ counts from −1 to 1, and the width is 2."),
            (_stretched(1, 1, 0, -0.5), "that is a shift downwards. The upper row of θ says x, the lower one y."),
            (_stretched(1, 1, 0, 0.5), "that is a shift upwards. The upper row of θ says x, the lower one y."),
            (_stretched(0, 0, -0.5), "every pixel looks at one position. Besides the shift, x and y have to stay."),
        ],
    ),
    "quarter turn": (
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]],
        [
            ([[0, 1, 0], [-1, 0, 0]], "that picture turns to the right. Where should (1, 0), on the right, look?"),
            ([[0, 1, 0], [1, 0, 0]], "that is a mirror: rows become columns. One of the two has a minus sign."),
            ([[0, -1, 0], [-1, 0, 0]], "that is a mirror. Only one of the two has a minus sign."),
            (_stretched(-1, -1), "that is half a turn."),
            (_stretched(-1, 1), "that is a mirror, left and right exchanged."),
        ],
    ),
    "left half": (
        _stretched(0.5, 1, -0.5),
        [
            (_stretched(0.5, 1, 0.5), "that is the right half."),
            (_stretched(0.5, 1), "half as wide is right, but that is the middle half. Where should x = 1 look? At 0."),
            (_stretched(0.5, 0.5, -0.5), "the height is scaled, too. It should stay."),
            (_stretched(0.5, 1, -1), "that is too far to the left: x = −1 looks at −1.5. It should look at −1."),
            (
                _stretched(0.5, 1, -0.25),
                "that is not far enough to the left: x = 1 looks at 0.25. It should look at 0.",
            ),
            (_stretched(2, 1, -0.5), "the grid gets twice as wide. It should be half as wide."),
            (_stretched(2, 1, 1), "that is the inverse map, from positions in the old picture. θ says where to look."),
            (_stretched(1, 1, -0.5), "that is a shift only. The half has to be scaled to the full width, too."),
        ],
    ),
}


@exercise("14.2", "θ moves the grid, so the picture does the opposite: less is larger, and left is right.")
def _where_to_look(answer: Any) -> None:
    import numpy as np

    check_keys(answer, *_WANTED)
    for name, (right, mistakes) in _WANTED.items():
        theta = as_array(answer[name], (2, 3), f"θ for “{name}”")
        known = [(np.array(wrong, dtype=np.float64), cause) for wrong, cause in mistakes]
        compare_arrays(f"θ for “{name}”", theta, np.array(right), known)


# --- functions --------------------------------------------------------------------------------------------------------


def _weights(count: int, x: float) -> list[float]:
    left = math.floor(x)
    return [1 - (x - left) if k == left else x - left if k == left + 1 else 0.0 for k in range(count)]


@exercise(
    "14.3", "the two neighbours get 1 − u and u, all others nothing; and the point gets the rise between the two."
)
def _line(answer: Any) -> None:
    for line, x in (([1.0, 4.0, 2.0, 8.0], 1.25), ([3.0, -1.0, 5.0], 0.5), ([2.0, 0.0, 1.0, 6.0, -2.0], 2.75)):
        passed, left = list(line), math.floor(x)
        result = call(answer, passed, x)
        case = f"for the line {line} and x = {x}"
        if passed != line:
            raise Wrong(f"{case} your function changes the list that it got.")
        if not isinstance(result, Sequence) or isinstance(result, str) or len(result) != 3:
            description = f"{len(result)} things" if isinstance(result, Sequence) else f"a {type(result).__name__}"
            raise Wrong(
                f"{case} return three things, the value, the derivatives by the line, by x; this is {description}."
            )
        value, by_line, by_x = result
        low, high, u = line[left], line[left + 1], x - left
        by_value: Mistakes = [
            (u * low + (1 - u) * high, "u and 1 − u are exchanged. The nearer x is to an element, the more it counts."),
            (line[round(x)], "that is the nearest element. Mix the two neighbours."),
            (low, "that is the element on the left. Mix it with the one on the right."),
            (high, "that is the element on the right. Mix it with the one on the left."),
            ((low + high) / 2, "that is the mean of the two. The nearer one counts for more."),
            ((1 - x) * low + x * high, "u is how far x is from its left neighbour: x − floor(x), not x."),
        ]
        compare(f"{case}, the value", value, (1 - u) * low + u * high, by_value if u != 0.5 else ())
        weights = _weights(len(line), x)
        by_line = by_line.tolist() if hasattr(by_line, "tolist") else by_line
        if isinstance(by_line, Sequence) and len(by_line) == 2:
            raise Wrong(f"{case} two derivatives by the line. Return one for each element of it: those not read get 0.")
        derivatives = as_numbers(
            by_line, [f"the derivative by line[{k}]" for k in range(len(line))], f"{case}, the second thing"
        )
        share = [weight * element for weight, element in zip(weights, line, strict=True)]
        for known, cause in (
            (
                _weights(len(line), left + 1 - u),
                "u and 1 − u are exchanged: the nearer neighbour has the larger derivative.",
            ),
            (share, "that is what each element contributes to the value. Its derivative is the weight alone."),
            ([float(weight > 0) for weight in weights], "the neighbours are mixed: their derivatives are 1 − u and u."),
            ([0.0] * len(line), "all derivatives are 0. If a neighbour grows, the value grows by its weight."),
        ):
            if all(map(is_close, derivatives, known)) and not all(map(is_close, derivatives, weights)):
                raise Wrong(f"{case}, the derivatives by the line: {cause}")
        for k, (derivative, weight) in enumerate(zip(derivatives, weights, strict=True)):
            compare(f"{case}, the derivative by line[{k}]", derivative, weight)
        slope_mistakes: Mistakes = [
            (
                0.0,
                "that is the derivative of rounding. If x goes right, the value moves from one element to the other.",
            ),
            (1.0, "a step in x by 1 moves the value from the left element to the right one: by their difference."),
            ((high - low) * u, "a straight line has one derivative: the difference, wherever x is between the two."),
            ((high - low) / 2, "the two are one apart: do not divide by 2."),
            (low + high, "the derivative by the left weight is −1 and by the right one 1: subtract."),
        ]
        up = "It is the right element minus the left one."
        slope_mistakes = [(wrong, cause) for wrong, cause in slope_mistakes if not is_close(wrong, high - low)]
        compare(f"{case}, the derivative by x", by_x, high - low, slope_mistakes, up)


@exercise("14.4", "second says where to look in the picture between, and first where that looks: first after second.")
def _both(answer: Any) -> None:
    import numpy as np

    from minigrad import functional  # noqa: F401 -- attaches the methods of Tensor
    from minigrad.functional.creation import tensor

    cases: tuple[tuple[_Matrix, _Matrix], ...] = (
        ([[0.5, 0.0, 0.25], [0.0, 2.0, -0.5]], [[0.0, -1.0, 0.5], [1.0, 0.0, 0.75]]),
        ([[1.0, 0.5, -0.25], [0.25, 1.5, 0.5]], [[0.75, -0.5, 1.0], [0.5, 2.0, -0.75]]),
    )
    for first, second in cases:
        try:
            result = call(answer, tensor(first), tensor(second))
        except ShapeError as error:
            hint = "(2, 3) and (2, 3) cannot be multiplied. The last column is a shift, and needs care."
            raise Wrong(f"shapes that do not match: {str(error).splitlines()[0]} {hint}") from error
        (a, s), (b, t) = [(matrix[:, :2], matrix[:, 2:]) for matrix in (np.array(first), np.array(second))]
        if tuple(getattr(result, "shape", ())) == (3, 3):
            raise Wrong("that is 3 × 3. Leave out the last row, 0 0 1: θ has two.")
        mistakes = [
            (np.hstack([b @ a, b @ s + t]), "the two are exchanged. A point of the last picture meets second first."),
            (np.hstack([a @ b, t + s]), "first applies to the shift of second, too: multiply it, as the rest."),
            (np.hstack([a @ b, s]), "the shift of second is lost."),
            (np.hstack([a @ b, a @ t]), "the shift of first is lost."),
            (np.hstack([a @ b, t]), "the shift of first is lost, and that of second has not gone through first."),
            (np.hstack([a @ b, b @ s + t]), "the shift is that of the other order: first is done after second."),
            (np.hstack([a * b, s * t]), "that is elementwise. A row of first goes over the columns of second."),
            (np.hstack([a + b, s + t]), "that is the sum. One map after the other is a product."),
            (np.hstack([a, s]), "that is first alone."),
            (np.hstack([b, t]), "that is second alone."),
        ]
        compare_arrays("the matrix of both", result, np.hstack([a @ b, a @ t + s]), mistakes)
