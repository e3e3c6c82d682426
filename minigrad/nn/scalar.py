"""Networks of single Values: a neuron, a layer, a multi-layer perceptron. Small enough to draw whole."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

from minigrad.errors import ArgumentError, DTypeError, ShapeError, a_kind
from minigrad.value import Value

__all__ = ["MLP", "Activation", "Layer", "Module", "Neuron", "cross_entropy"]

Activation = Literal["linear", "relu", "sigmoid", "tanh"]


class Module:
    """Something with parameters."""

    def parameters(self) -> list[Value]:
        """The Values that training may change."""
        return []

    def zero_grad(self) -> None:
        """Forget the gradient of each parameter."""
        for parameter in self.parameters():
            parameter.grad = None


class Neuron(Module):
    """activation(w · x + b) of `inputs` numbers.

    Weights and bias start in U(-k, k), k = 1 / sqrt(inputs), as PyTorch's ``Linear``, drawn from `generator` (Python's
    own when None). `label` names the parameters in pictures: ``label.w0``, …, ``label.b``.
    Raises ArgumentError for an unknown activation, ShapeError for a number of inputs that does not fit.
    """

    def __init__(
        self,
        inputs: int,
        activation: Activation = "tanh",
        *,
        label: str = "",
        generator: random.Random | None = None,
    ) -> None:
        if activation not in get_args(Activation):
            raise ArgumentError(f"Neuron: no activation {activation!r}; there are {', '.join(get_args(Activation))}.")
        if inputs < 1:
            raise ShapeError(f"Neuron: it needs at least one input, not {inputs}.")
        k = 1.0 / math.sqrt(inputs)
        draw = (generator or random).uniform
        prefix = f"{label}." if label else ""
        self.w = [Value(draw(-k, k), f"{prefix}w{i}") for i in range(inputs)]
        self.b = Value(draw(-k, k), f"{prefix}b")
        self.activation = activation

    def __call__(self, x: Sequence[Value | float]) -> Value:
        if not hasattr(x, "__iter__"):
            raise DTypeError(f"Neuron: {x!r:.100} is {a_kind(x)}, not a list of {len(self.w)} numbers.")
        if len(x) != len(self.w):
            raise ShapeError(f"Neuron: {len(x)} numbers were given to a neuron of {len(self.w)} inputs.")
        total = self.b
        for w, x_i in zip(self.w, x, strict=True):
            total = total + w * x_i
        return total if self.activation == "linear" else getattr(total, self.activation)()

    def parameters(self) -> list[Value]:
        return [*self.w, self.b]

    def __repr__(self) -> str:
        return f"Neuron({len(self.w)}, {self.activation!r})"


class Layer(Module):
    """`outputs` neurons that see the same `inputs` numbers."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        activation: Activation = "tanh",
        *,
        label: str = "",
        generator: random.Random | None = None,
    ) -> None:
        if outputs < 1:
            raise ShapeError(f"Layer: it needs at least one neuron, not {outputs}.")
        prefix = f"{label}." if label else ""
        self.neurons = [Neuron(inputs, activation, label=f"{prefix}n{i}", generator=generator) for i in range(outputs)]

    def __call__(self, x: Sequence[Value | float]) -> list[Value]:
        return [neuron(x) for neuron in self.neurons]

    def parameters(self) -> list[Value]:
        return [parameter for neuron in self.neurons for parameter in neuron.parameters()]

    def __repr__(self) -> str:
        first = self.neurons[0]
        return f"Layer({len(first.w)} -> {len(self.neurons)}, {first.activation!r})"


class MLP(Module):
    """Layers one after the other: `sizes` are the numbers of inputs, of each hidden layer's neurons, of outputs.

    The hidden layers use `activation`, the last is linear. `seed` makes the starting weights repeatable.

    >>> model = MLP([2, 3, 1], seed=1)
    >>> model
    MLP(2 -> 3 -> 1, 'tanh', 13 parameters)
    >>> len(model([0.5, -1.0]))
    1
    """

    def __init__(self, sizes: Sequence[int], activation: Activation = "tanh", *, seed: int | None = None) -> None:
        if not hasattr(sizes, "__len__") or len(sizes) < 2:
            raise ShapeError(
                f"MLP: sizes are those of the inputs and of at least one layer, such as [4, 8, 3]; not {sizes}."
            )
        generator = random.Random(seed)
        last = len(sizes) - 2
        self.sizes = tuple(sizes)
        self.activation = activation
        self.layers = [
            Layer(n, m, "linear" if i == last else activation, label=f"l{i}", generator=generator)
            for i, (n, m) in enumerate(pairwise(sizes))
        ]

    def __call__(self, x: Sequence[Value | float]) -> list[Value]:
        if not hasattr(x, "__iter__"):
            raise DTypeError(f"MLP: {x!r:.100} is {a_kind(x)}, not a list of {self.sizes[0]} numbers.")
        outputs = list(x)
        for layer in self.layers:
            outputs = layer(outputs)  # type: ignore[assignment]
        return outputs  # type: ignore[return-value]

    def parameters(self) -> list[Value]:
        return [parameter for layer in self.layers for parameter in layer.parameters()]

    def __repr__(self) -> str:
        sizes = " -> ".join(map(str, self.sizes))
        return f"MLP({sizes}, {self.activation!r}, {len(self.parameters())} parameters)"


def cross_entropy(scores: Sequence[Value], target: int) -> Value:
    """How surprised the model is by the right class: -ln of the softmax of `scores` at index `target`, in nats.

    softmax(s)_k = exp(s_k) / sum_j exp(s_j). The largest score is subtracted first, which changes nothing but keeps exp
    from overflowing (Goodfellow, Bengio and Courville, *Deep Learning*, 2016, section 4.1). Raises ShapeError if there
    is no such class.

    >>> round(cross_entropy([Value(1.0), Value(1.0)], 0).data, 6)     # two classes, no preference: ln 2
    0.693147
    """
    if not 0 <= target < len(scores):
        raise ShapeError(f"cross_entropy: there is no class {target} among {len(scores)} scores; classes count from 0.")
    largest = max(score.data for score in scores)
    shifted = [score - largest for score in scores]
    total = shifted[0].exp()
    for score in shifted[1:]:
        total = total + score.exp()
    return total.log() - shifted[target]
