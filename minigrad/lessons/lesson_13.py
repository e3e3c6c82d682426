"""The exercises of lesson 13, Attention."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from minigrad.lessons.checking import (
    Mistakes,
    Wrong,
    as_array,
    as_number,
    as_numbers,
    call,
    compare,
    compare_arrays,
    exercise,
    is_close,
)

__all__: list[str] = []


def _softmax(scores: Sequence[float]) -> list[float]:
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


# --- a soft lookup ----------------------------------------------------------------------------------------------------

_VALUES = (1.0, 4.0, 7.0, 60.0)
_SEEN = (1 / 3, 1 / 3, 1 / 3, 0.0)
_KNOWN = [
    (_softmax([0.0, 0.0, 0.0, 6 / math.sqrt(2)]), "the last key is hidden: its score is −∞ before the softmax."),
    (_softmax([0.0, 0.0, 0.0, 6.0]), "the last key is hidden: its score is −∞ before the softmax."),
    ([0.25] * 4, "a hidden score is not 0 but −∞. e⁰ is 1, and e to the −∞ is 0."),
    ([0.0, 0.0, 0.0, 1.0], "the last key would match best, but it is hidden."),
    ([0.25, 0.25, 0.25, 0.0], "they do not add up to 1. Hide the score before the softmax, not the weight after it."),
]


def _as_floats(x: Any, name: str) -> list[float]:
    x = x.tolist() if hasattr(x, "tolist") else x
    return as_numbers(x, [f"{name}, entry {k}" for k in range(4)], f"{name}, one for each key,")


@exercise("13.1", "all visible keys are at right angles to the query: equal weights, 4 is found, and w · (v − 4).")
def _lookup(answer: Any) -> None:
    if not isinstance(answer, Mapping):
        raise Wrong(
            f'the answer should be a dict, {{"weights": …, "found": …, "slopes": …}}, not a {type(answer).__name__}.'
        )
    if missing := [name for name in ("weights", "found", "slopes") if name not in answer]:
        raise Wrong(f"{', '.join(missing)} is missing from the dict.")
    weights = _as_floats(answer["weights"], "weights")
    for wrong, cause in _KNOWN:
        if all(map(is_close, weights, wrong)):
            raise Wrong(f"weights: {cause}")
    if not all(map(is_close, weights, _SEEN)) and not is_close(sum(weights), 1):
        raise Wrong(f"weights: they add up to {sum(weights):g}, and should to 1.")
    if weights[3]:
        raise Wrong(f"weights: the last key is hidden, so its weight is 0 and not {weights[3]:g}.")
    for k, (weight, right) in enumerate(zip(weights, _SEEN, strict=True)):
        same = "the dot products of the query with the first three keys are all 0, so their weights are equal."
        compare(f"weight {k}", weight, right, [(weight, same)])
    found_mistakes: Mistakes = [
        (12, "that is the sum of the values. Each has a weight of ⅓."),
        (18, "the last value is in it. It has the weight 0."),
        (72, "that is the sum of all values. Take their mean, by the weights."),
    ]
    compare("found", as_number(answer["found"], "found"), 4.0, found_mistakes)
    derivatives = _as_floats(answer["slopes"], "slopes")
    if all(map(is_close, derivatives, _SEEN)):
        raise Wrong("slopes: these are the derivatives with respect to the values. By a score it is w · (v − y).")
    for k, (weight, value) in enumerate(zip(_SEEN, _VALUES, strict=True)):
        mistakes: Mistakes = [
            (weight * value, "w · v is its contribution now. More weight for it means less for others: w · (v − y)."),
            (value - 4, "v − y is right, but it has to be multiplied by the weight."),
            (weight * (1 - weight), "that is how far the weight itself moves. Ask for what is found: w · (v − y)."),
        ]
        up = "More weight for a value above 4 makes what is found larger, for one below 6 smaller."
        compare(f"slope {k}", derivatives[k], weight * (value - 4), mistakes, up)


# --- a mask -----------------------------------------------------------------------------------------------------------


@exercise("13.2", "position t sees positions t − back to t: hidden are those after it, and those further back.")
def _window(answer: Any) -> None:
    import numpy as np

    for length, back in ((6, 2), (5, 1), (4, 0), (4, 9)):
        name, position = f"for length = {length} and back = {back} the mask", np.arange(length)
        behind = position[:, None] - position  # how far the key position is behind the query position
        mask = as_array(call(answer, length, back), (length, length), name)
        if np.isinf(mask).any():
            raise Wrong(f"{name} has −∞ in it: attend inserts that. Give True where a position is hidden.")
        if not np.isin(mask, (0, 1)).all():
            raise Wrong(f"{name} should be of True and False, and has {mask[~np.isin(mask, (0, 1))][0]:g} in it.")
        hidden, right = mask.astype(bool), (behind < 0) | (behind > back)
        known = (
            (~right, "is the wrong way round. True is for what is hidden."),
            (right.T, "is mirrored. The rows are the positions that look, and they look back, to the left."),
            (abs(behind) > back, "lets a position look ahead. Hide what is after it as well."),
            (behind < 0, "lets a position see all before it. Hide what is more than `back` positions behind."),
            (behind > back, "lets a position see all that comes after it."),
            ((behind < 0) | (behind >= back), "has one position too few: itself, and `back` more."),
            ((behind < 0) | (behind > back + 1), "has one position too many: itself, and `back` more."),
            ((behind <= 0) | (behind > back), "hides each position from itself."),
            ((behind < 0) & (behind > back), "hides nothing: no position is both ahead and far behind. Use `|`."),
        )
        if (hidden == right).all():
            continue
        for wrong, cause in known:
            if (hidden == wrong).all():
                raise Wrong(f"{name} {cause}")
        if hidden.all(axis=1).any():
            raise Wrong(f"{name} hides all from position {hidden.all(axis=1).argmax()}: its softmax would be 0 by 0.")
        row, column = (int(k) for k in np.argwhere(hidden != right)[0])
        raise Wrong(
            f"{name} is {hidden[row, column]} in row {row}, column {column}, and should be {right[row, column]}."
        )


# --- parameters -------------------------------------------------------------------------------------------------------


@exercise(
    "13.3", "a block has 12 width² weights, and 13 width biases and norms; heads only divide the width among them."
)
def _count(answer: Any) -> None:
    for letters, width, blocks in ((28, 32, 2), (5, 8, 0), (100, 16, 3)):
        w, ends = width, letters * width + 2 * width + letters * width + letters
        right = ends + blocks * (12 * w * w + 13 * w)
        name = f"with {letters} letters, a width of {w} and {blocks} blocks the number of parameters"
        mistakes: Mistakes = [
            (right - blocks * 9 * w - letters, "the biases of the linear layers are missing."),
            (
                right - blocks * 4 * w - 2 * w,
                "the layer norms are missing: each has a gain and a bias for all of the width.",
            ),
            (right - blocks * 2 * w - w, "a layer norm has two parameters for each of the width, a gain and a bias."),
            (right - 2 * w, "the last norm is missing, before the scores."),
            (right - blocks * (w * w + w), "the linear layer that combines the heads is missing (out)."),
            (right - letters * w - letters, "the linear layer that computes the scores is missing."),
            (right - letters * w, "letters · width counts twice: in the embedding, and in the layer for the scores."),
            (right - letters, "the scores have biases, too: one for each letter."),
            (right + 24 * w, "the clocks are computed, not learned. They are no parameters."),
            (ends + 12 * w * w + 13 * w, "that is one block. Multiply by their number."),
            (blocks * (12 * w * w + 13 * w), "these are the blocks. Add the embedding, the last norm and the scores."),
        ]
        mistakes = [(wrong, cause) for wrong, cause in mistakes if wrong != right]  # without blocks, some are right
        count = as_number(call(answer, letters, width, blocks), name)
        if not is_close(count, right) and not any(is_close(count, wrong) for wrong, _ in mistakes):
            way = "too few" if count < right else "too many"
            part = "outside of the blocks" if not blocks else "Check the blocks by themselves: blocks = 0 is right"
            raise Wrong(f"{name} is {count:g}, which is {abs(count - right):g} {way}. {part}.")
        compare(name, count, right, mistakes)


# --- sampling ---------------------------------------------------------------------------------------------------------


def _best(scores: Sequence[float], k: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda i: -scores[i])[:k]


def _sampling(scores: Sequence[float], k: int) -> list[float]:
    chosen = _best(scores, k)
    left = dict(zip(chosen, _softmax([scores[i] for i in chosen]), strict=True))
    return [left.get(i, 0.0) for i in range(len(scores))]


@exercise("13.4", "divided by the temperature, cut to the best k, and a softmax of the rest.")
def _probabilities(answer: Any) -> None:
    import numpy as np

    cases: tuple[tuple[list[float], float, int], ...] = (
        ([1.0, -0.5, 2.0, 0.25], 0.5, 2),
        ([0.0, 1.5, 1.0, -2.0, 3.0], 2.0, 3),
        ([0.5, -1.0, 0.75], 1.0, 3),
        ([-3.0, -2.0, -1.0, -2.5], 0.5, 1),
    )
    for scores, temperature, k in cases:
        name = f"for the scores {scores}, a temperature of {temperature:g} and k = {k} the answer"
        passed = list(scores)
        probabilities = as_array(call(answer, passed, temperature, k), (len(scores),), name)
        if passed != scores:
            raise Wrong(f"{name} overwrites the list of scores that it got. Return a new list.")
        cooled = [score / temperature for score in scores]
        right, whole = np.array(_sampling(cooled, k)), np.array(_softmax(cooled))
        least = _best([-score for score in scores], k)
        lowest = np.zeros(len(scores))
        lowest[least] = _softmax([cooled[i] for i in least])
        cut = np.where(right > 0, whole, 0.0)
        zeroed = np.array(_softmax([score if right[i] else 0.0 for i, score in enumerate(cooled)]))
        mistakes = [
            (_sampling([score * temperature for score in scores], k), "divide by the temperature, do not multiply."),
            (_sampling(scores, k), "the temperature is not in it. Divide the scores by it."),
            (whole, f"all letters can be drawn. Leave only the best {k}."),
            (cut, "it does not add up to 1. Cut the scores before the softmax, or divide by the sum of the rest."),
            (zeroed, "a score of 0 is no way to keep a letter out: e⁰ is 1. Its probability has to be 0."),
            (lowest, f"these are the {k} lowest scores. Take the highest."),
        ]
        if np.allclose(probabilities, right, rtol=1e-4, atol=1e-6):
            continue
        compare_arrays(name, probabilities, right, mistakes)
