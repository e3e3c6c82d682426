"""Is this derivative right? `gradcheck` compares it with a finite difference, for tests and for readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.autograd import grad
from minigrad.errors import DTypeError, GradcheckError
from minigrad.graph import enable_grad
from minigrad.value import Value

__all__ = ["gradcheck", "gradgradcheck"]

Inputs = Value | float | Sequence[Value | float]


@enable_grad
def gradcheck(
    function: Callable[..., Any], inputs: Inputs, *, eps: float = 1e-6, atol: float = 1e-7, rtol: float = 1e-6
) -> bool:
    """Compare the gradient of `function` at `inputs` with central differences, (f(x + h) - f(x - h)) / (2 h).

    `function` takes as many Values and returns one, or a sequence of them. The step h is `eps`, or eps * abs(x)
    where abs(x) > 1. The two must agree to ``atol + rtol * |difference|``: with h = 1e-6 a central difference is itself
    good to about 1e-10 of f's size. Returns True; raises GradcheckError that names the output, the input and both
    numbers where they disagree, or if there is nothing to compare.

    >>> gradcheck(lambda x, y: x.sin() * y, [0.5, -2.0])
    True
    """
    point = _point(inputs)
    leaves = [Value(x) for x in point]
    outputs = _outputs(function, leaves)
    if not outputs or not leaves:
        raise GradcheckError(f"gradcheck of {_name(function)}: there is nothing to check without inputs and outputs.")
    for k, output in enumerate(outputs):
        analytic = grad(output, leaves, allow_unused=True) if output.requires_grad else (None,) * len(leaves)
        for i, derivative in enumerate(analytic):
            numeric = _central_difference(function, point, i, k, eps)
            exact = 0.0 if derivative is None else float(derivative)
            if not abs(exact - numeric) <= atol + rtol * abs(numeric):
                raise GradcheckError(_disagreement(function, k, i, point, exact, numeric))
    return True


@enable_grad
def gradgradcheck(
    function: Callable[..., Any], inputs: Inputs, *, eps: float = 1e-6, atol: float = 1e-7, rtol: float = 1e-6
) -> bool:
    """`gradcheck` of the gradient of `function`: are its second derivatives, by every pair of inputs, right too?

    The gradients of all outputs, each weighted by another number, are checked. Returns and raises as `gradcheck`.

    >>> gradgradcheck(lambda x, y: x.sin() * y, [0.5, -2.0])
    True
    """

    def gradient(*leaves: Value) -> Any:
        found = []
        for k, output in enumerate(_outputs(function, leaves)):
            if output.requires_grad:
                grads = grad(output, leaves, 1.0 + 0.5 * k, create_graph=True, allow_unused=True)
                found += [g for g in grads if g is not None]
        return found

    gradient.__name__ = f"the gradient of {_name(function)}"
    if not gradient(*map(Value, _point(inputs))):  # then its gradient is said to be 0 everywhere: is that so?
        gradient = function
    agrees: bool = gradcheck(gradient, inputs, eps=eps, atol=atol, rtol=rtol)
    return agrees


def _point(inputs: Inputs) -> list[float]:
    return [float(x) for x in inputs] if isinstance(inputs, Sequence) else [float(inputs)]


def _name(function: Callable[..., Any]) -> str:
    name: str = getattr(function, "__name__", repr(function))
    return name


def _outputs(function: Callable[..., Any], leaves: Sequence[Value]) -> list[Value]:
    result = function(*leaves)
    outputs = [result] if not isinstance(result, Sequence) else list(result)
    for output in outputs:
        if not isinstance(output, Value):
            raise DTypeError(
                f"gradcheck of {_name(function)}: it returned {output!r}, a {type(output).__name__}, not a Value."
            )
    return outputs


def _central_difference(function: Callable[..., Any], point: list[float], i: int, k: int, eps: float) -> float:
    def at(x: float) -> float:
        return float(_outputs(function, [Value(v) for v in (*point[:i], x, *point[i + 1 :])])[k])

    h = eps * max(1.0, abs(point[i]))
    above, below = point[i] + h, point[i] - h
    return (at(above) - at(below)) / (above - below)  # the step that was taken, after rounding


def _disagreement(function: Any, k: int, i: int, point: list[float], exact: float, numeric: float) -> str:
    return (
        f"gradcheck of {_name(function)}: the derivative of output {k} by input {i} (= {point[i]!r}) is {exact:.9g} by "
        f"the rules, but {numeric:.9g} by a central difference; they differ by {abs(exact - numeric):.3g}.\n"
        "  One of the rules on the way is wrong, or the function has a kink or a jump at this point."
    )
