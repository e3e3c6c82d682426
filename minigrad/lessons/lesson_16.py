"""The exercises of lesson 16, Beyond first order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minigrad.autograd import grad
from minigrad.core.value import Value
from minigrad.lessons.checking import NotYet, Wrong, as_numbers, call, check_keys, compare, exercise

__all__: list[str] = []

_Pair = tuple[float, float]


@exercise("16.1", "the first is 6x·(x² − 1)², a product, so the second is 6·(x² − 1)² + 6x·2·(x² − 1)·2x = 54 + 288.")
def _twice(answer: Any) -> None:
    check_keys(answer, "first", "second")
    inner = "the derivative of x² − 1, which is 2x = 4, is missing."
    first = [
        (27.0, inner),
        (36.0, "the derivative of u³ is 3u², and u = x² − 1 is 3: its square is missing."),
        (54.0, "the derivative of x² − 1 at x = 2 is 2x = 4, not 2."),
        (12.0, "3 · 2x is there. (x² − 1)², which is 9, is missing."),
    ]
    both = "Differentiate 6x·(x² − 1)² as a product: there are two parts."
    second = [
        (54.0, f"that is 6·(x² − 1)² alone. {both}"),
        (288.0, f"that is 6x times the derivative of (x² − 1)², alone. {both}"),
        (126.0, "in the second part the inner derivative is missing: (x² − 1)² has 2·(x² − 1)·2x."),
        (18.0, "that is 6·(x² − 1), as if u = x² − 1 moved as fast as x, and evenly."),
        (
            72.0,
            "that is a product of derivatives. By the chain rule they multiply in a composition; " + both,
        ),
        (108.0, "that is the first derivative. Differentiate it once more."),
    ]
    compare("the first derivative", answer["first"], 108.0, first, "If x goes up, y goes up.")
    compare("the second derivative", answer["second"], 342.0, second, "If x goes up, the derivative goes up.")


def _valley(p: Any) -> Any:
    x, y = p
    return (1 - x) ** 2 + 4 * (y - x**2) ** 2


def _mixed(p: Any) -> Any:
    x, y, z = p
    return x * y * z + x**3 - 2 * y * y + z


@exercise("16.2", "the gradient of g · v is Hv. Times v, over v · v, that is the curvature, however long v is.")
def _bend(answer: Any) -> None:
    from minigrad import functional  # noqa: F401 -- attaches the methods of Tensor
    from minigrad.autograd import hessian
    from minigrad.core.dtypes import float64
    from minigrad.functional.creation import tensor

    cases: tuple[tuple[Callable[..., Any], list[float], list[float]], ...] = (
        (_valley, [1.0, 0.5], [2.0, 0.0]),
        (_valley, [-1.0, 1.5], [1.0, -2.0]),
        (_mixed, [0.5, -1.0, 2.0], [1.0, 0.5, -2.0]),
    )
    for f, point, direction in cases:
        p, v = tensor(point, dtype=float64), tensor(direction, dtype=float64)
        h = hessian(f, p)
        start = p.clone().requires_grad_()
        (g,) = grad(f(start), start)
        result = call(answer, f, p, v)
        if hasattr(result, "item"):
            if result.numel() != 1:
                raise Wrong(f"a curvature is a scalar, and this tensor has {result.numel()} elements. Is it Hv alone?")
            result = result.item()
        product, length = h @ v, (v * v).sum().item()
        right = (v * product).sum().item() / length
        mistakes = [
            (right * length, "that is v · Hv, in which the length of v counts twice. Divide by v · v."),
            (right * length**0.5, "that is v · Hv over the length of v. It counts twice, so divide by v · v."),
            (right / length, "that is divided by v · v once too often."),
            ((g * v).sum().item(), "that is g · v, the directional derivative. Differentiate it once more."),
            ((g * v).sum().item() / length, "that is g · v over v · v. Differentiate g · v once more."),
            ((product * product).sum().item() ** 0.5 / length**0.5, "that is how long Hv is. Multiply Hv by v."),
            (product.sum().item() / length, "you add up Hv. Multiply it by v first."),
            (product.sum().item(), "you add up Hv. Multiply it by v first, and divide by v · v."),
            (
                sum(h[k, k].item() * x * x for k, x in enumerate(direction)) / length,
                "that takes only the diagonal of H. The gradient of g · v has all of it.",
            ),
        ]  # fmt: skip
        up = f"Along v the derivative goes {'up' if right > 0 else 'down'}."
        compare(f"at {point}, along {direction}, the curvature", result, right, mistakes, up)


def _walk(f: Callable[[Any], Any], x: float, steps: int, move: Callable[[float, float], float]) -> float:
    for _ in range(steps):
        value = Value(x)
        (derivative,) = grad(f(value), value, create_graph=True)
        (curvature,) = grad(derivative, value)
        x -= move(derivative.data, curvature)
    return x


def _step(g: float, c: float) -> float:
    return g / abs(c)


_MOVES: list[tuple[Callable[[float, float], float], str]] = [
    (lambda g, c: g / c, "it has climbed, for the curvature is negative there. Divide by its absolute value."),
    (lambda g, c: abs(g / c), "the absolute value is that of the curvature alone. The derivative keeps its sign."),
    (lambda g, c: -g / abs(c), "uphill: subtract the step."),
    (lambda g, c: -g / c, "uphill: subtract the step."),
    (lambda g, c: g, "that is plain descent at the rate 1. Divide the derivative by the curvature."),
    (lambda g, c: abs(c) / g if g else 0.0, "upside down: the derivative is divided by the curvature."),
    (lambda g, c: 0.0, "x has not changed."),
]


@exercise(
    "16.3", "always against the derivative, and by the length that would bring it to 0 if it changed by |c| a unit."
)
def _downhill(answer: Any) -> None:
    cases: tuple[tuple[Callable[[Any], Any], float, int, str], ...] = (
        (lambda x: 3 * x * x - 12 * x + 5, 10.0, 1, "3x² − 12x + 5"),
        (lambda x: 3 * x * x - 12 * x + 5, -10.0, 1, "3x² − 12x + 5"),
        (lambda x: x.exp() - 2 * x, 2.0, 2, "e^x − 2x"),
        *[(lambda x: x * x * x * x / 4 - x * x / 2, 0.25, steps, "x⁴/4 − x²/2") for steps in (1, 3)],
    )
    for f, x, steps, text in cases:
        right = _walk(f, x, steps, _step)
        mistakes = [(_walk(f, x, steps, move), cause) for move, cause in _MOVES]
        mistakes.append((_walk(f, x, steps - 1, _step), "one step too few."))
        mistakes.append((_walk(f, x, steps + 1, _step), "one step too many."))
        name = f"for {text} from {x:g}, after {steps} step(s), x"
        result = call(answer, f, x, steps)
        if isinstance(result, Sequence) and not isinstance(result, str):
            raise Wrong(f"{name} should be a scalar, and this is a {type(result).__name__}. Return the last x.")
        compare(name, result, right, mistakes)


_Slopes = list[tuple[Callable[..., float], str]]  # wrong ones, of pairs (value, derivative), and their causes

_DIV: _Slopes = [
    (lambda p, q: (p[1] * q[0] + p[0] * q[1]) / q[0] ** 2, "the second part has a minus sign."),
    (lambda p, q: p[1] / q[1], "the derivative of a quotient is no quotient of derivatives."),
    (lambda p, q: p[1] / q[0], "that is the part of the first operand. The second moves as well."),
    (lambda p, q: -p[0] * q[1] / q[0] ** 2, "that is the part of the second operand. Add that of the first."),
    (lambda p, q: (p[1] - p[0] * q[1]) / q[0], "the local derivative by the second is −a/b², with a square."),
    (lambda p, q: 1 / q[0] - p[0] / q[0] ** 2, "multiply each local derivative by the derivative of its operand."),
    (lambda p, q: (p[0] * q[1] - p[1] * q[0]) / q[0] ** 2, "the signs are the other way round."),
]
_LOCAL = "that is the local derivative. Multiply it by the derivative of the operand."
_SAME = "the derivative is returned unchanged. Multiply it by the local derivative."
_SIN: _Slopes = [
    (lambda p: math.cos(p[0]), _LOCAL),
    (lambda p: -math.cos(p[0]) * p[1], "the derivative of sin is cos, without a minus."),
    (lambda p: math.sin(p[1]), "do not apply the function to a derivative. Multiply it by cos."),
    (lambda p: math.cos(p[1]), "cos is taken at the value, and multiplied by the derivative."),
    (lambda p: math.sin(p[0]) * p[1], "the local derivative of sin is cos."),
    (lambda p: p[1], _SAME),
]
_EXP: _Slopes = [
    (lambda p: math.exp(p[0]), _LOCAL),
    (lambda p: math.exp(p[1]), "do not apply the function to a derivative. Multiply it by e^x."),
    (lambda p: p[0] * math.exp(p[0] - 1) * p[1], "that is the rule of powers. e^x is its own derivative."),
    (lambda p: p[0] * p[1], "the local derivative of e^x is e^x, not x."),
    (lambda p: p[1], _SAME),
]


@exercise("16.4", "in forward mode each rule sums the local derivatives times the derivatives of the operands.")
def _duals(answer: Any) -> None:
    right: dict[str, tuple[Callable[..., _Pair], _Slopes, int]] = {
        "div": (lambda p, q: (p[0] / q[0], p[1] / q[0] - p[0] * q[1] / q[0] ** 2), _DIV, 2),
        "sin": (lambda p: (math.sin(p[0]), math.cos(p[0]) * p[1]), _SIN, 1),
        "exp": (lambda p: (math.exp(p[0]), math.exp(p[0]) * p[1]), _EXP, 1),
    }
    check_keys(answer, *right)
    pairs = [(3.0, 2.0), (1.5, -0.5), (-0.75, 3.0)]
    for name, (rule, wrong, count) in right.items():
        for k in range(3):
            operands = [pairs[k], pairs[(k + 1) % 3]][:count]
            case = f"{name}({', '.join(map(str, operands))})"
            try:
                result = call(answer[name], *operands)
            except NotYet:
                raise NotYet(f"{name} returns None so far. Write its body and end it with return.") from None
            value, derivative = as_numbers(result, ["value", "derivative"], case)
            expected = rule(*operands)
            compare(f"the value of {case}", value, expected[0])
            mistakes = [(w(*operands), cause) for w, cause in wrong]
            compare(f"the derivative of {case}", derivative, expected[1], mistakes)


_SHAPES = {"pen": (2, 1), "camera": (10_000, 6), "loss": (1, 2_410), "robot": (3, 7)}


@exercise(
    "16.5", "forward mode takes a run for each input, and reverse mode one for each result: the fewer of the two."
)
def _modes(answer: Any) -> None:
    check_keys(answer, *_SHAPES)
    for name, (results, inputs) in _SHAPES.items():
        pair = answer[name]
        two = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
        if not two or pair[0] not in ("forward", "reverse"):
            raise Wrong(f'{name}: give a pair like ("forward", 7), and not {pair!r}.')
        mode, runs = pair
        cheap = "forward" if inputs < results else "reverse"
        if mode != cheap:
            each, needed = ("input", inputs) if mode == "forward" else ("result", results)
            raise Wrong(f"{name}: {mode} mode takes a run for each {each}, {needed}. The other takes fewer.")
        mistakes = [
            (float(max(inputs, results)), f"that is what the other mode would take. {mode} mode takes fewer."),
            (float(inputs * results), "that is the number of elements. One run computes a row of them, or a column."),
        ]
        compare(f"{name}: the number of runs", runs, float(min(inputs, results)), mistakes)
