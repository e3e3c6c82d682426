"""Gradient checking against finite differences."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from minigrad.autograd.gradients import grad
from minigrad.core.errors import DTypeError, GradcheckError, describe_type
from minigrad.core.grad_mode import enable_grad
from minigrad.core.graph import Node
from minigrad.core.value import Value

__all__ = ["gradcheck", "gradgradcheck"]

Vector = list[float]


@enable_grad
def gradcheck(
    function: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-6,
    fast_mode: bool = False,
) -> bool:
    """Check the gradients of `function` at `inputs` against central differences, (f(x + h) - f(x - h)) / (2 h).

    `inputs` are Python scalars, which are converted to Values, and tensors. Only float64 tensors are checked.
    `function` takes these and returns a Value or tensor, or a sequence of them. The step h is `eps`, or eps * abs(x)
    for abs(x) > 1. The tolerance is ``atol + rtol * |difference|``; with h = 1e-6 a central difference is accurate to
    about 1e-10 relative to f. Every derivative of each output with respect to each input is compared. With `fast_mode`,
    a single random weighted sum of them is compared, which takes two calls of `function` for tensors of any size.

    Returns True. Raises GradcheckError with the output, the input and both derivatives on a mismatch, or if there is
    nothing to compare.

    >>> gradcheck(lambda x, y: x.sin() * y, [0.5, -2.0])
    True
    """
    point = _CheckInputs(inputs)
    leaves = point.leaves()
    outputs = _outputs(function, leaves)
    indices = point.element_indices()
    if not indices or not any(_elements(output) for output in outputs):
        raise GradcheckError(f"gradcheck of {_name(function)}: there are no inputs or no outputs to check.")
    directions = [[(index, 1.0)] for index in indices]
    weights = [_one_hot(outputs, k, j) for k, output in enumerate(outputs) for j in range(len(_elements(output)))]
    if fast_mode:
        generator = random.Random(len(indices))
        directions = [[(index, generator.uniform(0.5, 1.5) * generator.choice((-1, 1))) for index in indices]]
        weights = [[[generator.uniform(-1.0, 1.0) for _ in _elements(output)] for output in outputs]]
    differences = [(direction, *_difference(function, point, direction, eps)) for direction in directions]
    for weight in weights:
        gradients = _weighted_gradients(outputs, leaves, weight)
        for direction, change, h in differences:
            analytical = sum(gradients[i][j] * coefficient for (i, j), coefficient in direction)
            pairs = [(w, c) for ws, cs in zip(weight, change, strict=True) for w, c in zip(ws, cs, strict=True)]
            numerical = sum(w * c for w, c in pairs if w) / h
            if not abs(analytical - numerical) <= atol + rtol * abs(numerical):
                raise GradcheckError(_mismatch_message(function, weight, direction, point, analytical, numerical))
    return True


@enable_grad
def gradgradcheck(
    function: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-6,
    fast_mode: bool = False,
) -> bool:
    """Check the second derivatives of `function` by applying `gradcheck` to its gradient.

    The gradient is computed for a sum of all output elements with distinct weights. Return values and errors are those
    of `gradcheck`.

    >>> gradgradcheck(lambda x, y: x.sin() * y, [0.5, -2.0])
    True
    """

    def gradient(*leaves: Any) -> Any:
        gradients: list[Any] = []
        inputs = [leaves[i] for i in _differentiable_indices(leaves)]
        for k, output in enumerate(_outputs(function, leaves)):
            if _needs_gradient(output):
                count = len(_elements(output))
                weight = _reshape_like(output, [1.0 + 0.5 * k + (0.25 * j) % 1.0 for j in range(count)])
                gradients += grad(output, inputs, weight, create_graph=True, allow_unused=True)
        return [g for g in gradients if g is not None]

    gradient.__name__ = f"the gradient of {_name(function)}"
    if not gradient(*_CheckInputs(inputs).leaves()):  # `grad` returns no gradients; check that the derivatives are 0
        gradient = function
    is_correct: bool = gradcheck(gradient, inputs, eps=eps, atol=atol, rtol=rtol, fast_mode=fast_mode)
    return is_correct


class _CheckInputs:
    """The inputs of a check, whose elements can be perturbed. Index (i, j) is element j of input i."""

    def __init__(self, inputs: Any) -> None:
        input_list = inputs if isinstance(inputs, Sequence) else [inputs]
        self.inputs: list[Any] = [
            x if isinstance(x, Node) and not isinstance(x, Value) else float(x) for x in input_list
        ]

    def element_indices(self) -> list[tuple[int, int]]:
        return [
            (i, j)
            for i in range(len(self.inputs))
            if self._is_checked(i)
            for j in range(len(_elements(self.inputs[i])))
        ]

    def element(self, i: int, j: int) -> float:
        return _elements(self.inputs[i])[j]

    def leaves(self, replacements: Sequence[tuple[tuple[int, int], float]] = ()) -> list[Any]:
        """Return the inputs as new leaves, with the elements in `replacements` replaced."""
        leaves: list[Any] = []
        for i, x in enumerate(self.inputs):
            replacements_of_input = {j: value for (k, j), value in replacements if k == i}
            if isinstance(x, float):
                leaves.append(Value(replacements_of_input.get(0, x)))
            elif not self._is_checked(i):
                leaves.append(x)
            else:
                elements = _elements(x)
                for j, replacement in replacements_of_input.items():
                    elements[j] = replacement
                leaves.append(_reshape_like(x, elements).requires_grad_())
        return leaves

    def _is_checked(self, i: int) -> bool:
        x = self.inputs[i]
        return isinstance(x, float) or x.dtype.name == "float64"


def _elements(x: Any) -> Vector:
    """Return the elements of a float, a Value or a tensor as a flat list."""
    if isinstance(x, float | Value):
        return [float(x)]
    elements: Vector = x.detach().numpy().astype("float64").reshape(-1).tolist()
    return elements


def _reshape_like(output: Any, elements: Vector) -> Any:
    """Return `elements` as a tensor like `output`, or as a float if `output` is a Value."""
    if isinstance(output, Value):
        return elements[0]
    return output.detach().clone().copy_(output.new_tensor(elements).reshape(output.shape))


def _name(function: Callable[..., Any]) -> str:
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", repr(function))
    return f"{owner.__name__}.{name}" if isinstance(owner, type) else str(name)  # such as `Function.apply`


def _outputs(function: Callable[..., Any], leaves: Sequence[Any]) -> list[Any]:
    result = function(*leaves)
    outputs = list(result) if isinstance(result, Sequence) else [result]
    for output in outputs:
        if not isinstance(output, Node):
            raise DTypeError(
                f"gradcheck of {_name(function)}: it returned {output!r}, {describe_type(output)}; expected a Value or "
                "tensor."
            )
    return outputs


def _needs_gradient(output: Any) -> bool:
    edge = output._edge()
    return edge is not None and edge._requires_grad


def _one_hot(outputs: Sequence[Any], k: int, j: int) -> list[Vector]:
    return [[float((m, n) == (k, j)) for n in range(len(_elements(x)))] for m, x in enumerate(outputs)]


def _difference(
    function: Callable[..., Any], point: _CheckInputs, direction: Sequence[tuple[tuple[int, int], float]], eps: float
) -> tuple[list[Vector], float]:
    """Return the difference of each output element along `direction`, and the actual step size after rounding."""
    h = eps * max(1.0, *(abs(point.element(*index)) for index, _ in direction))
    upper = [(index, point.element(*index) + h * coefficient) for index, coefficient in direction]
    lower = [(index, point.element(*index) - h * coefficient) for index, coefficient in direction]
    outputs = [[_elements(x) for x in _outputs(function, point.leaves(moves))] for moves in (upper, lower)]
    change = [[a - b for a, b in zip(*rows, strict=True)] for rows in zip(*outputs, strict=True)]
    return change, (upper[0][1] - lower[0][1]) / direction[0][1]


def _differentiable_indices(leaves: Sequence[Any]) -> list[int]:
    return [i for i, leaf in enumerate(leaves) if isinstance(leaf, Node) and leaf._edge() is not None]


def _weighted_gradients(outputs: Sequence[Any], leaves: Sequence[Any], weight: Sequence[Vector]) -> list[Vector]:
    """Return the gradient of the weighted sum of all outputs for each leaf, 0 for unused leaves."""
    total = [[0.0] * len(_elements(leaf)) for leaf in leaves]
    indices = _differentiable_indices(leaves)
    for output, row in zip(outputs, weight, strict=True):
        if any(row) and _needs_gradient(output):
            seed = _reshape_like(output, row)
            gradients = grad(output, [leaves[i] for i in indices], seed, retain_graph=True, allow_unused=True)
            for i, derivative in zip(indices, gradients, strict=True):
                if derivative is not None:
                    total[i] = [a + b for a, b in zip(total[i], _elements(derivative), strict=True)]
    return total


def _mismatch_message(
    function: Any,
    weight: Sequence[Vector],
    direction: Sequence[Any],
    point: _CheckInputs,
    analytical: float,
    numerical: float,
) -> str:
    if len(direction) > 1:
        description = "a weighted sum of all derivatives"
    else:
        (i, j), _ = direction[0]
        output_index = next((k, n) for k, row in enumerate(weight) for n, w in enumerate(row) if w)
        description = (
            f"output {_element_name(*output_index, weight[output_index[0]])} with respect to input "
            f"{_element_name(i, j, _elements(point.inputs[i]))} (= {point.element(i, j)!r})"
        )
    return (
        f"gradcheck of {_name(function)}: Jacobian mismatch for {description}\n  analytical: {analytical:.9g}, "
        f"numerical: {numerical:.9g}; they differ by {abs(analytical - numerical):.3g}.\n"
        "  A derivative rule is incorrect, or the function has a kink or a jump at this point."
    )


def _element_name(k: int, j: int, row: Vector) -> str:
    return str(k) if len(row) == 1 else f"{k}, element {j}"
