"""The exercises of lesson 9, Optimizers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from minigrad.lessons.checking import (
    Mistakes,
    as_array,
    as_number,
    call,
    check_keys,
    compare,
    compare_arrays,
    exercise,
)

__all__: list[str] = []

Rule = Callable[..., Any]  # of a parameter, its gradient, a memory, and options


def _compare_entry(
    answer: Mapping[str, Any], name: str, right: float, mistakes: Mistakes, rounded: float = 1e-4
) -> None:
    """Compare one entry of a dict, with the relative tolerance `rounded`."""
    if not math.isclose(as_number(answer[name], name), right, rel_tol=rounded):
        compare(name, answer[name], right, mistakes)


@exercise("09.1", "the largest curvature sets it, 10 for a, 8 for b and 16 for c, and the bound is 2 over it.")
def _bounds(answer: Any) -> None:
    check_keys(answer, "a", "b", "c")
    once = "with 1 over the curvature, one step lands in the minimum. The bound is twice as far."
    by_a = [
        (0.4, "the curvature is how fast the derivative grows, and the derivative of 5x² is 10x."),
        (0.1, once),
    ]
    by_b = [
        (2 / 3, "that is the bound along x. Along y it is smaller, and both have to shrink."),
        (
            2 / 11,
            "2 over the sum of the two curvatures is the best rate, where both shrink equally. The bound is larger.",
        ),
        (0.5, "the derivative of ½ · 8y² is 8y: the ½ cancels the 2 of the square."),
        (0.125, once),
    ]
    by_c = [
        (
            0.2,
            "2 over 10, the curvature along x alone. The steepest way is (1, 1), and there the gradient is (16, 16).",
        ),
        (0.25, "that is 2 over 8. The gradient at (1, 1) is (16, 16), so the curvature there is 16."),
        (0.5, "that is the bound along (1, −1). Along (1, 1) it is smaller, and both have to shrink."),
        (0.0625, once),
    ]
    for name, right, mistakes in (("a", 0.2, by_a), ("b", 0.25, by_b), ("c", 0.125, by_c)):
        _compare_entry(answer, name, right, mistakes)


# --- rules ------------------------------------------------------------------------------------------------------------

_GRADIENTS = ((2.0, -4.0), (1.0, 3.0), (-0.5, 2.0))  # of three steps, whatever the parameter


def _walk(rule: Rule, **options: float) -> Any:
    """Return the parameters after each of three steps from (1, 2), by a rule for NumPy arrays."""
    import numpy as np

    memory: dict[str, Any] = {}
    p, path = np.array([1.0, 2.0]), []
    for g in _GRADIENTS:
        p = rule(p, np.array(g), memory, **options)
        path.append(p)
    return np.array(path)


def _follow(answer: Any, right: Rule, wrong: Iterable[tuple[Rule, str]], **options: float) -> None:
    """Compare three steps of the learner's rule with those of `right`, and of known mistakes."""
    import numpy as np

    from minigrad import functional  # noqa: F401 -- attaches the methods of Tensor
    from minigrad.core.dtypes import float64
    from minigrad.functional.creation import tensor

    memory: dict[str, Any] = {}
    p, path = np.array([1.0, 2.0]), []
    for k, g in enumerate(_GRADIENTS, 1):
        result = call(answer, tensor(p, dtype=float64), tensor(g, dtype=float64), memory, *options.values())
        p = as_array(result, (2,), f"p after step {k}")
        path.append(p)
    shown = " and ".join(f"{name} = {value:g}" for name, value in options.items())
    known = [(_walk(rule, **options), cause) for rule, cause in wrong]
    name = f"where three steps from (1, 2) lead, with {shown},"
    compare_arrays(name, np.array(path), _walk(right, **options), known)


def _mean(memory: dict[str, Any], name: str, beta: float, new: Any) -> Any:
    memory[name] = beta * memory.get(name, 0.0) + new
    return memory[name]


def _nesterov(p: Any, g: Any, memory: dict[str, Any], lr: float, beta: float) -> Any:
    return p - lr * (g + beta * _mean(memory, "m", beta, g))


@exercise("09.2", "once more the same g would make β·m + g of the memory m, and the step goes along that.")
def _look_ahead(answer: Any) -> None:
    def stored(p: Any, g: Any, memory: dict[str, Any], lr: float, beta: float) -> Any:
        memory["m"] = g + beta * _mean(memory, "m", beta, g)
        return p - lr * memory["m"]

    wrong: list[tuple[Rule, str]] = [
        (lambda p, g, memory, lr, beta: p - lr * g, "that is SGD: nothing is remembered."),
        (
            lambda p, g, memory, lr, beta: p - lr * _mean(memory, "m", beta, g),
            "that is momentum as before. Step along what the memory would become next: beta * m + g, of the new m.",
        ),
        (
            lambda p, g, memory, lr, beta: p - lr * (g + beta * g),
            'the memory is empty at each step. Put it into memory["m"], and begin with memory.get("m", 0).',
        ),
        (stored, 'memory["m"] holds the look-ahead. Store m there, and step along β·m + g.'),
        (
            lambda p, g, memory, lr, beta: p - lr * (1 + beta) * _mean(memory, "m", beta, g),
            "you step along m + β·m. The memory would become β·m + g: the gradient is added, not the memory.",
        ),
        (
            lambda p, g, memory, lr, beta: p - lr * beta * _mean(memory, "m", beta, g),
            "you step along β·m. What the memory would become is β·m + g.",
        ),
        (lambda p, g, memory, lr, beta: _nesterov(p, g, memory, -lr, beta), "uphill: subtract the step."),
        (
            lambda p, g, memory, lr, beta: (
                p - lr * ((1 - beta) * g + beta * _mean(memory, "m", beta, (1 - beta) * g))
            ),
            "g is added with the factor 1 − β, as in Adam. Here the memory is β·m + g.",
        ),
    ]  # fmt: skip
    _follow(answer, _nesterov, wrong, lr=0.5, beta=0.5)


@exercise("09.3", "the step is m / √s: too long by (1 − β₁ᵗ) / √(1 − β₂ᵗ), so a tenth over the root of a thousandth.")
def _without_correction(answer: Any) -> None:
    check_keys(answer, "first", "tenth", "beta2")
    alone = "that is by how much m is too small. Divide it by what that does to √s."
    square = "s is a mean of squares, and the step is divided by its root."
    turned = "the other way round: m is the numerator, and √s the denominator."
    only = "that is the effect of √s alone. m is too small as well."
    for name, t in (("first", 1), ("tenth", 10)):
        m, s = 1 - 0.9**t, 1 - 0.999**t
        mistakes = [(m, alone), (m / s, square), (m**-1 * s**0.5, turned), (s**-0.5, only)]
        mistakes.append((1.0, "both means are too small, but not by the same factor, and one is under a root."))
        if name == "tenth":
            mistakes.append(
                ((1 - 0.9**9) / (1 - 0.999**9) ** 0.5, "that is the ninth. After ten steps the power is 10.")
            )
            mistakes.append(
                ((1 - 0.9) / (1 - 0.999) ** 0.5, "that is the first again. After ten steps 1 − β¹⁰ is left.")
            )
        _compare_entry(answer, name, m / s**0.5, mistakes, rounded=5e-3)
    by_beta2 = [
        (0.9, "then m and s are too small by the same factor, but s is under a root: 1 − β₂ has to be 0.1²."),
        (0.01, "that is 1 − β₂."),
        (1 - 0.1**0.5, "the root is of 1 − β₂, so 1 − β₂ is the square of 0.1, and not its root."),
        (0.81, "1 − β₂ has to be 0.1², and that is not 1 − 0.9²."),
    ]
    _compare_entry(answer, "beta2", 0.99, by_beta2)


def _adam(p: Any, g: Any, memory: dict[str, Any], lr: float, corrected: bool = True) -> Any:
    t = _mean(memory, "t", 1.0, 1)
    m, s = _mean(memory, "m", 0.9, 0.1 * g), _mean(memory, "s", 0.999, 0.001 * g * g)
    if corrected:
        m, s = m / (1 - 0.9**t), s / (1 - 0.999**t)
    return p - lr * m / (s**0.5 + 1e-8)


def _adamw(p: Any, g: Any, memory: dict[str, Any], lr: float, decay: float) -> Any:
    return _adam(p, g, memory, lr) - lr * decay * p


@exercise(
    "09.4", "Adam's means see g alone, and each parameter is pulled by the same fraction, lr · decay, steep or gentle."
)
def _decoupled(answer: Any) -> None:
    wrong: list[tuple[Rule, str]] = [
        (
            lambda p, g, memory, lr, decay: _adam(p, g + decay * p, memory, lr),
            "decay * p has gone into the gradient, and so through Adam's means. Leave g alone, and pull outside.",
        ),
        (lambda p, g, memory, lr, decay: _adam(p, g, memory, lr), "that is Adam: nothing is pulled to 0."),
        (
            lambda p, g, memory, lr, decay: _adam(p, g, memory, lr) - decay * p,
            "the pull is decay * p. Multiply it by the rate, too.",
        ),
        (
            lambda p, g, memory, lr, decay: _adam(p, g, memory, lr) * (1 - lr * decay),
            "you pull the p that Adam has updated. Compute both from the old p.",
        ),
        (
            lambda p, g, memory, lr, decay: _adam(p, g, memory, lr) + lr * decay * p,
            "the pull has the wrong sign: parameters are driven away from 0.",
        ),
        (
            lambda p, g, memory, lr, decay: _adam(p, g, memory, lr, corrected=False) - lr * decay * p,
            "the pull is right, and Adam is without its correction: divide m by 1 − β₁ᵗ and s by 1 − β₂ᵗ.",
        ),
        (
            lambda p, g, memory, lr, decay: _adam(p, g, {}, lr) - lr * decay * p,
            "the memory is empty at each step. Pass on the one that you got.",
        ),
        (lambda p, g, memory, lr, decay: p - lr * (g + decay * p), "that is SGD with a pull. Take Adam's step."),
    ]  # fmt: skip
    _follow(answer, _adamw, wrong, lr=0.5, decay=0.25)


# --- a loop -----------------------------------------------------------------------------------------------------------


def _run_momentum(
    steps: int, keeps_velocity: bool = True, zeroes_gradient: bool = True, recomputes_gradient: bool = True
) -> Any:
    """Run momentum from (4, −2) where the curvatures are 1 and 4, optionally with some of three mistakes."""
    import numpy as np

    p, m, g, curvatures = np.array([4.0, -2.0]), np.zeros(2), np.zeros(2), np.array([1.0, 4.0])
    gradient = curvatures * p
    for _ in range(steps):
        gradient = curvatures * p if recomputes_gradient else gradient
        g = gradient if zeroes_gradient else g + gradient
        m = 0.5 * m + g if keeps_velocity else g
        p = p - 0.125 * m
    return p


@exercise("09.5", "one optimizer, which keeps its state; and zero_grad comes before backward, not after.")
def _loop(answer: Any) -> None:
    from minigrad import functional  # noqa: F401 -- attaches the methods of Tensor
    from minigrad.core.dtypes import float64
    from minigrad.functional.creation import tensor

    curvatures = tensor([1.0, 4.0], dtype=float64)
    for steps in (1, 2, 5):
        p = tensor([4.0, -2.0], dtype=float64, requires_grad=True)
        mistakes = [
            (_run_momentum(0), "p has not changed. zero_grad between backward and step discards the new gradient."),
            (
                _run_momentum(steps, keeps_velocity=False),
                "the optimizer is re-created at each step, and loses its state. Create it once.",
            ),
            (
                _run_momentum(steps, zeroes_gradient=False),
                "gradients add up from step to step. Call zero_grad before backward.",
            ),
            (
                _run_momentum(steps, keeps_velocity=False, zeroes_gradient=False),
                "the optimizer is re-created at each step, and gradients add up: fix both.",
            ),
            (
                _run_momentum(steps, recomputes_gradient=False),
                "the loss is computed once. Compute f(p) again at each step.",
            ),
            (_run_momentum(steps - 1), "one step too few."),
            (_run_momentum(steps + 1), "one step too many."),
        ]
        result = call(answer, lambda p: (curvatures * p * p).sum() / 2, p, steps)
        compare_arrays(f"p after {steps} step(s) from (4, −2)", result, _run_momentum(steps), mistakes)
