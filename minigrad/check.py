"""Is this derivative right? `gradcheck` compares it with a finite difference, for tests and for readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.autograd import grad
from minigrad.errors import GradcheckError
from minigrad.value import Value

__all__ = ["gradcheck", "gradgradcheck"]


def gradcheck(
    function: Callable[..., Any],
    inputs: Sequence[Value | float],
    *,
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-6,
) -> bool:
    """Compare the gradient of `function` at `inputs` with central differences, (f(x + eps) - f(x - eps)) / (2 eps).

    `function` takes as many Values and returns one, or a sequence of them. The two must agree to
    ``atol + rtol * |difference|`` (a central difference of step 1e-6 is itself good to about 1e-10 of f's size).
    Returns True; raises GradcheckError that names the output, the input and both numbers where they disagree.

    >>> gradcheck(lambda x, y: x.sin() * y, [0.5, -2.0])
    True
    """
    point = [float(x) for x in inputs]
    leaves = [Value(x) for x in point]
    for k, output in enumerate(_outputs(function, leaves)):
        analytic = grad(output, leaves, allow_unused=True) if output.requires_grad else (None,) * len(leaves)
        for i, derivative in enumerate(analytic):
            numeric = _central_difference(function, point, i, k, eps)
            exact = 0.0 if derivative is None else float(derivative)
            if not abs(exact - numeric) <= atol + rtol * abs(numeric):
                raise GradcheckError(_disagreement(function, k, i, point, exact, numeric))
    return True


def gradgradcheck(
    function: Callable[..., Any],
    inputs: Sequence[Value | float],
    *,
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-6,
) -> bool:
    """`gradcheck` of the gradient of `function`: are its second derivatives, by every pair of inputs, right too?

    The gradients of all outputs, each weighted by another number, are checked. Returns and raises as `gradcheck`.

    >>> gradgradcheck(lambda x, y: x.sin() * y, [0.5, -2.0])
    True
    """

    def gradient(*leaves: Value) -> list[Value]:
        found = []
        for k, output in enumerate(_outputs(function, leaves)):
            if output.requires_grad:
                grads = grad(output, leaves, 1.0 + 0.5 * k, create_graph=True, allow_unused=True)
                found += [g for g in grads if g is not None]
        return found

    return gradcheck(gradient, inputs, eps=eps, atol=atol, rtol=rtol)


def _outputs(function: Callable[..., Any], leaves: Sequence[Value]) -> list[Value]:
    result = function(*leaves)
    return [result] if isinstance(result, Value) else list(result)


def _central_difference(function: Callable[..., Any], point: list[float], i: int, k: int, eps: float) -> float:
    def at(x: float) -> float:
        return float(_outputs(function, [Value(v) for v in (*point[:i], x, *point[i + 1 :])])[k])

    return (at(point[i] + eps) - at(point[i] - eps)) / (2 * eps)


def _disagreement(function: Any, k: int, i: int, point: list[float], exact: float, numeric: float) -> str:
    name = getattr(function, "__name__", repr(function))
    return (
        f"gradcheck of {name}: the derivative of output {k} by input {i} (= {point[i]!r}) is {exact:.9g} by the rules, "
        f"but {numeric:.9g} by a central difference; they differ by {abs(exact - numeric):.3g}.\n"
        "  One of the rules on the way is wrong, or the function has a kink or a jump at this point."
    )
