"""The exercises of lesson 11, When it goes wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from minigrad.lessons.checking import ArrayMistakes, Wrong, call, compare, compare_arrays, exercise, to_tensor

__all__: list[str] = []


@exercise("11.1", "half of the squares stay and half shrink by a², so n·b²/3·(1 + a²)/2 = 1; with a = √5 that is 1/√n.")
def _bound(answer: Any) -> None:
    for n, a in ((784, 0.5), (64, 0.0), (100, 0.25), (25, 1.0)):
        passed = 1 + a * a
        right = math.sqrt(6 / (passed * n))
        mistakes = [
            (
                math.sqrt(2 / (passed * n)),
                "that is the standard deviation of the weights. Of a uniform one it is b / √3, so b is √3 times that.",
            ),
            (
                math.sqrt(3 / (passed * n)),
                "the half is missing. Half of the sums are above 0 and half below: they keep (1 + a²) / 2.",
            ),
            (math.sqrt(3 * passed / (2 * n)), "upside down: the more passes through, the *smaller* the weights."),
            (math.sqrt(6 / ((1 + a) * n)), "a is the derivative, so the squares are multiplied by a²."),
            (6 / (passed * n), "that is b². Take the root."),
            (2 / (passed * n), "that is the variance of the weights. It is b² / 3."),
            (1 / math.sqrt(n), "that is the default of nn.Linear, whatever the activation is."),
            (
                math.sqrt(6 / n),
                "that is He's rule for a = 0. Values below 0 are multiplied by a here, not cut.",
            ),
            (math.sqrt(3 / n), "that is the bound without any activation."),
            (math.sqrt(6 / (passed * n)) / n, "n is in it twice."),
        ]
        compare(f"with n = {n} and a = {a:g}, b", call(answer, n, a), right, mistakes)


# --- dead units -------------------------------------------------------------------------------------------------------

_SUMS = (
    [
        [2.0, -1.0, -0.5, 0.0, -3.0],
        [-1.0, -2.0, 1.5, -1.0, 4.0],
        [0.5, -0.25, -2.0, -2.0, -5.0],
        [-1.0, -3.0, -1.0, -0.5, -1.0],
    ],
    [[-1.0, 1.0, -1.0], [-2.0, 2.0, 0.5]],
    [[1.0, 0.5], [-2.0, 0.25], [1.5, 3.0]],
)


@exercise("11.2", "a unit is dead if it is above 0 for no sample: where the sum is 0 or less, its gradient is 0.")
def _dead(answer: Any) -> None:
    for sums in _SUMS:
        units, samples = list(zip(*sums, strict=True)), sums
        right = [k for k, unit in enumerate(units) if not any(z > 0 for z in unit)]
        case = f"for {len(samples)} samples of {len(units)} units"
        result = call(answer, to_tensor(sums))
        dead = result.tolist() if hasattr(result, "tolist") else result
        if dead == len(right) and not isinstance(dead, bool):
            raise Wrong(f"{case} that is how many are dead. Return a list of which.")
        flags = isinstance(dead, Sequence) and dead and all(isinstance(one, bool) for one in dead)
        if flags and len(dead) in (len(units), len(samples)):
            raise Wrong(f"{case} that is a list of True and False. Return the indices of the units that are dead.")
        if not isinstance(dead, Sequence) or not all(isinstance(one, Integral) for one in dead):
            raise Wrong(f"{case} it should be a list of integers, and this is {dead!r}.")
        mistakes = (
            (
                [k for k, unit in enumerate(units) if not all(z > 0 for z in unit)],
                "those are silent for *some* sample. A dead unit is silent for all of them.",
            ),
            ([k for k, unit in enumerate(units) if any(z > 0 for z in unit)], "those are the ones that are alive."),
            (
                [k for k, unit in enumerate(units) if all(z < 0 for z in unit)],
                "a sum of exactly 0 passes no gradient either: the derivative counts as 0 there.",
            ),
            (
                [k for k, unit in enumerate(units) if sum(unit) <= 0],
                "the mean, or the sum, may be below 0 while the unit fires for one of the samples.",
            ),
            (
                [k for k, sample in enumerate(samples) if not any(z > 0 for z in sample)],
                "those are samples. A unit is a column: reduce over the samples, dim 0.",
            ),
            (
                [k for k, sample in enumerate(samples) if not all(z > 0 for z in sample)],
                "those are samples. A unit is a column: reduce over the samples, dim 0.",
            ),
        )
        if sorted(dead) == right:
            continue
        for wrong, cause in mistakes:
            if wrong and sorted(dead) == wrong:
                raise Wrong(f"{case} {dead}: {cause}")
        if sorted(dead) == [k + 1 for k in right]:
            raise Wrong(f"{case} {dead}: units are counted from 0.")
        raise Wrong(f"{case} {dead}, and it should be {right}.")


# --- a sum of powers --------------------------------------------------------------------------------------------------

_SCORES = (
    ("small scores", [[0.5, -1.0, 2.0], [1.0, 1.0, 0.0]]),
    ("scores of 1000", [[1000.0, 999.0, 0.0], [1000.0, 1000.0, 1000.0]]),
    ("scores of −1000", [[-1000.0, -1001.0, -1000.0], [-2000.0, -1000.0, -1000.5]]),
    ("scores of 1000 and −1000 in one table", [[1000.0, 999.5, 998.0], [-1000.0, -1000.5, -999.0]]),
)


@exercise(
    "11.3", "with the largest of its row subtracted, no power is above 1 and no sum below 1; then it is added again."
)
def _log_sum_exp(answer: Any) -> None:
    import numpy as np

    for text, scores in _SCORES:
        s = np.array(scores)
        top = s.max(1)
        powers = np.exp(s - top[:, None]).sum(1)
        right = np.log(powers) + top
        x = to_tensor(scores, requires_grad=True)
        result = call(answer, x)
        values = result.detach().numpy() if hasattr(result, "detach") else np.asarray(result)
        _shape(text, values.shape, len(s))
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            why = "a power of e is infinite" if s[row].max() > 0 else "all its powers are 0, and ln 0 is −∞"
            hint = " Each row needs its *own* largest score." if np.ptp(top) > 700 else ""
            raise Wrong(f"for {text}, row {row} is {values[row]}: {why}. Subtract the largest score before exp.{hint}")
        mistakes: ArrayMistakes = [
            (np.log(powers), "the largest score was subtracted. Add it again, each row its own."),
            (
                np.log(powers) - top,
                "the largest score is subtracted before exp. After log it is added, not subtracted.",
            ),
            (top, "that is the largest score alone. The logarithm of the sum of the powers is missing."),
            (powers + top, "the logarithm is missing."),
            (
                np.logaddexp.reduce(np.minimum(s, 700.0), axis=1),
                "clipped scores are other scores, and get no gradient. Subtract the largest one instead.",
            ),
            (s.sum(1), "the logarithm of a sum of powers is not the sum of the scores."),
        ]
        compare_arrays(f"for {text}, the result", result, right, mistakes)
        _comes_back(text, x, result, np.exp(s - right[:, None]))


def _shape(text: str, result_shape: tuple[int, ...], rows: int) -> None:
    """Raise `Wrong` unless the result for three classes has one element for each row."""
    causes = {
        (rows, 1): f"One element for each row is {(rows,)}: the last sum, or the largest score, still has its keepdim.",
        (
            rows,
            rows,
        ): "A column of largest scores was added to a row of logarithms, and broadcast to a table (lesson 6).",
        (3,): "That is one element for each class. Sum over the classes, along dim 1.",
        (): "That is one scalar for the entire table. There should be one for each row: sum over dim 1.",
    }
    if result_shape != (rows,):
        raise Wrong(f"for {text} the shape is {result_shape}. {causes.get(result_shape, f'It should be {(rows,)}.')}")


def _comes_back(text: str, x: Any, result: Any, right: Any) -> None:
    import numpy as np

    if not getattr(result, "requires_grad", False):
        raise Wrong("the values are right, but they do not require grad: stay with tensors, without item and numpy.")
    result.sum().backward()
    gradient = np.zeros(right.shape) if x.grad is None else x.grad.numpy()
    if np.isnan(gradient).any():
        raise Wrong(f"for {text} the values are right, but the gradient has nan in it: somewhere 0 meets an infinity.")
    compare_arrays(f"for {text} the values are right, but the gradient", gradient, right)


# --- a training -------------------------------------------------------------------------------------------------------


def _samples() -> tuple[Any, Any]:
    """Twelve samples of three classes that are easy to tell apart, and their classes."""
    import numpy as np

    t = np.arange(12) % 3
    wobble = np.random.default_rng(11).integers(-4, 5, (12, 4)) / 16
    return np.eye(3, 4)[t] * 2 + wobble, t


def _trained(x: Any, t: Any, steps: int, forget: bool = True, uphill: bool = False, summed: bool = False) -> Any:
    """Return the weights after `steps` steps from 0, optionally with a mistake."""
    import numpy as np

    w, g = np.zeros((4, 3)), np.zeros((4, 3))
    for _ in range(steps):
        s = x @ w
        powers = np.exp(s - s.max(1, keepdims=True))
        p = powers / powers.sum(1, keepdims=True)
        gradient = x.T @ (p - np.eye(3)[t]) / (1 if summed else len(x))
        g = gradient if forget else g + gradient
        w = w + 0.5 * g if uphill else w - 0.5 * g
    return w


@exercise(
    "11.4",
    "one order for samples and labels, gradients reset in each step, and a loss that cannot overflow.",
)
def _repaired(answer: Any) -> None:
    import numpy as np

    x, t = _samples()
    w, losses = _run(answer, x, t, 20)
    if not (np.isfinite(losses).all() and np.isfinite(w).all()):
        raise Wrong("some values are not finite, though those in x are small. Look at the logarithm.")
    if not w.any():
        raise Wrong("w has not changed: is its gradient reset before the step? Or is w a new tensor?")
    known = [
        (_trained(x, t, 20, forget=False), "the gradients of all steps add up. Reset them before each backward."),
        (_trained(x, t, 20, uphill=True), "the loss rises: the step goes uphill. Subtract the gradient."),
        (_trained(x, t, 20, summed=True), "that is the gradient of the sum over the samples. Take the mean."),
        (_trained(x, t, 1), "there was one step only, or the loss was computed once. Compute it again in each step."),
        (_trained(x, t, 19), "one step is missing."),
    ]
    right = _trained(x, t, 20)
    if not np.allclose(w, right, rtol=1e-4, atol=1e-6):
        for wrong, cause in known:
            if np.allclose(w, wrong, rtol=1e-4, atol=1e-6):
                raise Wrong(f"after 20 steps, {cause}")
        if losses[-1] > 0.6:
            raise Wrong(
                f"after 20 steps the loss is {losses[-1]:.1f}, and it could be below 0.3. All values are finite and w "
                "changes, so look at the inputs of the loss. Does each row of x still have its own label?"
            )
    compare_arrays("after 20 steps, w", w, right)
    x = 1000 * x
    w, losses = _run(answer, x, t, 3)
    if not (np.isfinite(losses).all() and np.isfinite(w).all()):
        bad = "inf" if np.isinf(losses).any() else "nan"
        raise Wrong(f"it learns now. But if the values in x are 1000 times as large, a loss is {bad}. Make it stable.")
    compare_arrays("with x 1000 times as large, after 3 steps, w", w, _trained(x, t, 3))


def _run(answer: Any, x: Any, t: Any, steps: int) -> tuple[Any, Any]:
    """Return the weights and the losses after the learner's training from weights of 0."""
    import numpy as np

    w = to_tensor(np.zeros((4, 3)), requires_grad=True)
    losses = call(answer, w, to_tensor(x), to_tensor(t), steps)
    if hasattr(losses, "detach"):
        raise Wrong("return the list of the losses, one Python number (.item()) for each step.")
    if not isinstance(losses, Sequence) or len(losses) != steps:
        description = f"{len(losses)} of them" if isinstance(losses, Sequence) else f"a {type(losses).__name__}"
        raise Wrong(f"return the list of the losses, one for each of the {steps} steps; this is {description}.")
    values = [loss.item() if hasattr(loss, "item") else loss for loss in losses]
    return w.detach().numpy().copy(), np.array(values, dtype=float)
