"""The exercises of lesson 4, A network of Values."""

from __future__ import annotations

import math
from typing import Any

from minigrad.data import iris
from minigrad.lessons.checking import Wrong, as_numbers, call, compare, exercise, is_close

__all__: list[str] = []


@exercise("04.1", "positive numbers that add up to 1; with the largest score subtracted first, none can overflow.")
def _softmax(answer: Any) -> None:
    stable = "such scores make exp too large or too small. Subtract the largest score from all of them first."
    zero = "you divide by 0. Divide by the sum of all exp(score), which is never 0."
    trials = {(0.0, 0.0): 0.5, (math.log(3), 0.0): 0.75, (1000.0, 0.0): 1.0, (-1000.0, -1000.0): 0.5}
    for scores, first in trials.items():
        case = f"softmax of [{', '.join(f'{score:.3g}' for score in scores)}]"
        try:
            result = call(answer, list(scores))
            probabilities = as_numbers(list(result) if isinstance(result, tuple) else result, ["p0", "p1"], case)
        except (OverflowError, ZeroDivisionError) as error:
            raise Wrong(f"{case}: {stable if abs(scores[0]) > 9 else zero}") from error
        except Wrong as wrong:
            raise Wrong(f"{case}: {stable}") if "nan" in str(wrong) else wrong from None
        if min(probabilities) < 0:
            raise Wrong(
                f"{case} gives {min(probabilities):.3g}: no probability is negative. exp makes all numbers positive."
            )
        if not is_close(sum(probabilities), 1.0):
            raise Wrong(
                f"{case}: the probabilities add up to {sum(probabilities):.3g}, not 1. Divide each by their sum."
            )
        mistakes = [(1 - first, "the larger score should get the larger one."), (0.5, "the scores have no say.")]
        compare(f"{case}: the first probability", probabilities[0], first, mistakes)


@exercise("04.2", "p - 1 for the right class, p for the others: its score should rise, theirs should fall.")
def _score_slopes(answer: Any) -> None:
    for p, target in (([0.5, 0.25, 0.25], 0), ([0.125, 0.125, 0.75], 1)):
        names = [f"∂L/∂s{k}" for k in range(3)]
        gradient = as_numbers(call(answer, p, target), names, "the gradient")
        if all(map(is_close, gradient, p)):
            raise Wrong(
                f"that is p itself. L also subtracts s{target}, the score of the right class: take 1 off there."
            )
        for k, name in enumerate(names):
            right = p[k] - (k == target)
            missing = [(0.0, "this score is in L too: it is in the sum under the logarithm.")]
            up = f"A higher score for {'the right class lowers' if k == target else 'a wrong class raises'} the loss."
            compare(f"{name} for p = {p}, target {target},", gradient[k], right, missing, up)


@exercise("04.3", "two of the four measurements are nearly enough: petals tell the species apart.")
def _petals(answer: Any) -> None:
    if not callable(answer):
        raise Wrong(f"this is a {type(answer).__name__}, not a model. Give the trained MLP itself.")
    sizes = getattr(answer, "sizes", (2, 3))
    if sizes[0] != 2 or sizes[-1] != 3:
        raise Wrong(f"this model takes {sizes[0]} inputs to {sizes[-1]} scores. Make it 2 (petals) to 3 (species).")
    flowers = iris()
    votes = []
    for x in flowers.test_x:
        scores = [float(score) for score in call(answer, x[2:])]
        votes.append(scores.index(max(scores)))
    hits = sum(map(int.__eq__, votes, flowers.test_y))
    result = f"{hits} of {len(votes)} test flowers are right"
    if len(set(votes)) < 3:
        never = ", ".join(name for k, name in enumerate(flowers.species) if k not in votes)
        raise Wrong(f"{result}, and it never answers {never}. Train longer, on all the training flowers.")
    if hits < 27:
        raise Wrong(f"{result}; it takes 27. Is each flower paired with its own species, and does the loss fall?")
