"""The exercises of lesson 7, Gradient rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.lessons.checking import (
    ArrayMistakes,
    Wrong,
    call_on_shapes,
    compare_shaped,
    exercise,
    sample_array,
    to_tensor,
)

__all__: list[str] = []


def _call_rule(rule: Callable[..., Any], hint: str, *operands: Any) -> Any:
    """Return what the learner's rule returns for tensors; a shape error in it raises `Wrong` with a hint."""
    result = call_on_shapes(rule, *map(to_tensor, operands), hint=hint)
    return result[0] if isinstance(result, tuple) and len(result) == 1 else result  # as in the lesson's table


@exercise("07.1", "each element counts for one part in n of the mean, so each gets g / n.")
def _mean(answer: Any) -> None:
    import numpy as np

    for shape in ((4, 3), (2, 5)):
        a, g = sample_array(1, *shape), np.array(1.5)
        n, ones = a.size, np.ones(shape)
        mistakes: ArrayMistakes = [
            (g / n, "that is what each element of a gets. Give it to each: a gradient has the shape of its operand."),
            (g, "that is g itself. Divide it among the elements of a, and give each of them its part."),
            (g * ones, "that is the rule of the sum. In the mean, each element counts for one part in n only."),
            (g * ones / shape[0], "that is divided by the number of rows. The mean is over all the elements of a."),
            (g * ones / shape[1], "that is divided by the number of columns. The mean is over all the elements of a."),
            (g * a / n, "the derivative does not depend on the value of the element: no a in it."),
            (ones / n, "that is the local derivative, and g is missing. A contribution is upstream times local."),
        ]
        up = "If an element goes up, the mean goes up."
        result = _call_rule(answer, "", g, a)
        compare_shaped(f"what a, of shape {shape}, gets", result, g * ones / n, mistakes, up)


@exercise(
    "07.2", "y[i, j] depends on row i of x, row j of w and b[j]: x gets g w, w gets gᵀ x, b the sum over the rows."
)
def _layer(answer: Any) -> None:
    x, w, g = sample_array(2, 4, 3), sample_array(3, 5, 3), sample_array(4, 4, 5)
    result = _call_rule(answer, "Is a transpose missing, or on the wrong side?", g, x, w)
    if not isinstance(result, tuple | list) or len(result) != 3:
        description = f"{len(result)}" if isinstance(result, tuple | list) else f"a {type(result).__name__}"
        raise Wrong(f"return three tensors, what x, w and b get, with commas between them; this is {description}.")
    half = "half of it is there. The rule of a product of two factors has no ½."
    by_x: ArrayMistakes = [(w.T @ g.T, "that is its transpose. Row i of the gradient belongs to row i of x.")]
    by_w: ArrayMistakes = [
        (x.T @ g, "that is the rule for x @ w. Here w is transposed forward, so its gradient is too: gᵀ x."),
        (g.T @ x / len(g), "do not divide by the number of samples. What arrives from all of them is added up."),
    ]
    by_b: ArrayMistakes = [
        (g, "b is copied to every row, so what arrives from all the rows is added up: a sum over the rows is missing."),
        (g.mean(0), "that is the mean over the rows. What arrives along several paths is added up, not averaged."),
        (
            g.sum(1),
            "that is a sum over the columns, one element a sample. b has one for each neuron: sum over the rows.",
        ),
        (g.sum(), "that is one sum over all. b has one element for each neuron: sum over the rows only."),
        (g.sum(0, keepdims=True), "b has no rows. Write g.sum(0), without keepdim."),
        (g[0], "that is the first sample alone. Add up what arrives from all the rows."),
    ]
    for name, share, right, mistakes in (
        ("x", result[0], g @ w, by_x), ("w", result[1], g.T @ x, by_w), ("b", result[2], g.sum(0), by_b)
    ):  # fmt: skip
        compare_shaped(f"what {name} gets", share, right, [*mistakes, (right / 2, half)])


@exercise(
    "07.3", "every element reaches y twice: as the factor at its own index, and in the sum that is at every index."
)
def _weighted(answer: Any) -> None:
    import numpy as np

    for size in (3, 5):
        x, g = sample_array(5, size), sample_array(6, size)
        through_sum, through_factor = (g * x).sum(), g * x.sum()
        mistakes: ArrayMistakes = [
            (
                through_factor,
                "that is what comes through the first x. The sum depends on x, too, and is in every result.",
            ),
            (
                through_sum * np.ones(size),
                "that is what comes through the sum. x is also the other factor: add g * sum.",
            ),
            (through_sum, "that is what comes through the sum, a scalar: give it to each x, and add g * sum."),
            (
                through_factor + g * x,
                "what comes through the sum is added up over all results: sum g * x before you add it.",
            ),
            (
                through_factor * through_sum,
                "the two ways are multiplied. What arrives along several paths is added up.",
            ),
            (
                through_factor - through_sum,
                "what arrives along the second path is subtracted. What arrives along several paths is added.",
            ),
            (x.sum() + x, "that is a derivative, and g is missing."),
            (2 * g * x, "that is the rule of x * x, elementwise. Here the second factor is the sum of all."),
            (2 * through_factor, "the two ways do not bring the same. Through the sum comes one scalar: sum(g * x)."),
        ]
        compare_shaped(
            f"what x, of {size} elements, gets", _call_rule(answer, "", g, x), through_factor + through_sum, mistakes
        )


@exercise("07.4", "the rule centres the gradient as y centres a: g minus its mean, in each row.")
def _centering(answer: Any) -> None:
    import numpy as np

    for shape in ((3, 4), (2, 5)):
        a, g = sample_array(7, *shape), sample_array(8, *shape)
        rows = g.mean(1, keepdims=True)
        mistakes: ArrayMistakes = [
            (g, "that is what comes through a itself. Each element is in the mean of its row, too."),
            (g + rows, "the mean is subtracted in y, so what comes through it has a minus sign."),
            (g - g.mean(), "that is the mean over all. Each row has its own mean: mean(1, keepdim=True)."),
            (g - g.mean(0), "that is the mean over each column. Rows are centered: mean(1, keepdim=True)."),
            (
                g - g.sum(1, keepdims=True),
                "the derivative of the mean is one part in n: subtract the mean of g, not its sum.",
            ),
            (-rows * np.ones(shape), "that is what comes through the mean. a itself is in y, too: add g."),
            (g - g / shape[1], "what comes through the mean comes from every result of the row: sum g over the row."),
            (g - a.mean(1, keepdims=True), "that subtracts the mean of a. It is the mean of g that goes back."),
            (g * (a - a.mean(1, keepdims=True)), "that is g times y. y is linear in a: no a in its derivatives."),
        ]
        result = _call_rule(answer, "Is keepdim=True missing?", g, a)
        compare_shaped(f"what a, of shape {shape}, gets", result, g - rows, mistakes)
