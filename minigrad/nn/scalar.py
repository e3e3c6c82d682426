"""Networks of scalar Values: a neuron, a layer and a multi-layer perceptron, small enough to draw every node."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, cast, get_args

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, describe_type
from minigrad.core.modes import slow_path
from minigrad.core.value import Value
from minigrad.nn.call_scopes import is_observed, module_scope
from minigrad.nn.weighted_sum import weighted_sum

__all__ = ["MLP", "Activation", "Layer", "Module", "Neuron", "cross_entropy"]

Activation = Literal["linear", "relu", "sigmoid", "tanh"]


class Module:
    """Base class of models of Values. Assign Values and modules as attributes, and define `forward`.

    Values and modules may also be in lists, tuples and dicts. Call the module rather than its `forward`: graph drawings
    show each call as a block.
    >>> class Difference(Module):
    ...     def __init__(self):
    ...         self.sides = [Neuron(2), Neuron(2)]
    ...     def forward(self, x):
    ...         return self.sides[0](x) - self.sides[1](x)
    >>> model = Difference()
    >>> [name for name, _ in model.named_parameters()][:3]
    ['sides[0].w[0]', 'sides[0].w[1]', 'sides[0].b']
    >>> model([0.5, -1.0]).op.name
    'sub'
    """

    def forward(self, *args: Any) -> Any:
        """Compute the output. Every subclass must override this method."""
        raise NotImplementedError(
            f'{type(self).__name__} is missing the required "forward" function: define def forward(self, x).'
        )

    def __call__(self, *args: Any) -> Any:
        if slow_path.reasons and is_observed():
            with module_scope(self):
                return self.forward(*args)
        result = self.forward(*args)
        for value in result if result.__class__ is list else (result,):
            if value.__class__ is Value and value._op is not None:
                try:  # record the call only on its results; a scope would slow down every operation
                    value._extras[self] = args
                except AttributeError:
                    value._extras = {self: args}
        return result

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True, *, memo: set[int] | None = None
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over (path, module) pairs of this module and its descendants, such as ``"layers[0].neurons[2]"``."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, child in _iter_attributes(self, prefix):
            if isinstance(child, Module):
                yield from child.named_modules(name, remove_duplicate, memo=memo)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Value]]:
        """Iterate over (name, Value) pairs of this module, and of its descendants if `recurse`."""
        memo = set[int]()
        for path, module in self.named_modules(prefix, remove_duplicate) if recurse else [(prefix, self)]:
            for name, x in _iter_attributes(module, path):
                if isinstance(x, Value) and x.op is None and id(x) not in memo:
                    if remove_duplicate:
                        memo.add(id(x))
                    yield name, x

    def parameters(self) -> list[Value]:
        """Return the trainable Values."""
        return [x for _, x in self.named_parameters()]

    def _get_name(self) -> str:
        """Return the name shown in graph drawings."""
        return type(self).__name__

    def zero_grad(self) -> None:
        """Reset the gradient of each parameter to None."""
        for parameter in self.parameters():
            parameter.grad = None


def _iter_attributes(module: Module, prefix: str) -> Iterator[tuple[str, Any]]:
    """Iterate over (path, attribute) pairs of a module, including the items of lists, tuples and dicts."""
    stack = [(f"{prefix}.{name}" if prefix else name, x) for name, x in vars(module).items()][::-1]
    while stack:
        name, x = stack.pop()
        if isinstance(x, list | tuple | dict):
            items = list(x.items() if isinstance(x, dict) else enumerate(x))
            stack += [(f"{name}[{key!r}]", item) for key, item in reversed(items)]
        else:
            yield name, x


class Neuron(Module):
    """A neuron that computes activation(w · x + b) of `inputs` scalars.

    Weights and bias are initialised from U(-k, k), k = 1 / sqrt(inputs), like PyTorch's ``Linear``, with `generator`,
    by default Python's global generator. `label` prefixes the labels of the parameters: ``label.w[0]``, …, ``label.b``.
    Raises ArgumentError for an unknown activation, ShapeError if the input has another length.
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
            raise ArgumentError(
                f"Neuron: unknown activation {activation!r}; expected one of {', '.join(get_args(Activation))}."
            )
        if inputs < 1:
            raise ShapeError(f"Neuron: inputs must be > 0, but got {inputs}.")
        k = 1.0 / math.sqrt(inputs)
        draw = (generator or random).uniform
        prefix = f"{label}." if label else ""
        self.w = [Value(draw(-k, k), f"{prefix}w[{i}]") for i in range(inputs)]
        self.b = Value(draw(-k, k), f"{prefix}b")
        self.activation = activation

    def __call__(self, x: Sequence[Value | float]) -> Value:
        if slow_path.reasons:
            return cast(Value, super().__call__(x))
        out = self.forward(x)
        out._extras = {self: (x,)}  # `Module.__call__` inlined, because most calls are of neurons
        return out

    def forward(self, x: Sequence[Value | float]) -> Value:
        try:
            count = len(x)
        except TypeError:
            raise DTypeError(
                f"Neuron: expected a list of {len(self.w)} scalars, but got {describe_type(x)}: {x!r:.100}."
            ) from None
        if count != len(self.w):
            raise ShapeError(f"Neuron: expected {len(self.w)} inputs, but got {count}.")
        total = None if slow_path.reasons else weighted_sum(self.b, self.w, x)
        if total is None:
            total = self.b
            for w, x_i in zip(self.w, x, strict=True):
                total = total + w * x_i
        return total if self.activation == "linear" else getattr(total, self.activation)()

    def parameters(self) -> list[Value]:
        return [*self.w, self.b]

    def _get_name(self) -> str:
        return f"Neuron({len(self.w)})"

    def __repr__(self) -> str:
        return f"Neuron({len(self.w)}, {self.activation!r})"


class Layer(Module):
    """A layer of `outputs` neurons, each connected to all `inputs` scalars."""

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
            raise ShapeError(f"Layer: outputs must be > 0, but got {outputs}.")
        prefix = f"{label}." if label else ""
        self.neurons = [
            Neuron(inputs, activation, label=f"{prefix}neurons[{i}]", generator=generator) for i in range(outputs)
        ]

    def forward(self, x: Sequence[Value | float]) -> list[Value]:
        inputs = x if slow_path.reasons else tuple(x)  # the same tuple for all neurons, for `weighted_sum`
        return [neuron(inputs) for neuron in self.neurons]

    def parameters(self) -> list[Value]:
        return [parameter for neuron in self.neurons for parameter in neuron.parameters()]

    def _get_name(self) -> str:
        return f"Layer({len(self.neurons[0].w)}→{len(self.neurons)})"

    def __repr__(self) -> str:
        first = self.neurons[0]
        return f"Layer({len(first.w)} -> {len(self.neurons)}, {first.activation!r})"


class MLP(Module):
    """A multi-layer perceptron. `sizes` lists the number of inputs, of neurons in each hidden layer, and of outputs.

    Hidden layers use `activation`; the output layer is linear. `seed` makes the initial weights reproducible.

    >>> model = MLP([2, 3, 1], seed=1)
    >>> model
    MLP(2 -> 3 -> 1, 'tanh', 13 parameters)
    >>> len(model([0.5, -1.0]))
    1
    """

    def __init__(self, sizes: Sequence[int], activation: Activation = "tanh", *, seed: int | None = None) -> None:
        if not hasattr(sizes, "__len__") or len(sizes) < 2:
            raise ShapeError(
                f"MLP: expected the sizes of the input and of at least one layer, such as [4, 8, 3], but got {sizes}."
            )
        generator = random.Random(seed)
        last = len(sizes) - 2
        self.sizes = tuple(sizes)
        self.activation = activation
        self.layers = [
            Layer(n, m, "linear" if i == last else activation, label=f"layers[{i}]", generator=generator)
            for i, (n, m) in enumerate(pairwise(sizes))
        ]

    def forward(self, x: Sequence[Value | float]) -> list[Value]:
        if not hasattr(x, "__iter__"):
            raise DTypeError(
                f"MLP: expected a list of {self.sizes[0]} scalars, but got {describe_type(x)}: {x!r:.100}."
            )
        outputs = list(x)
        for layer in self.layers:
            outputs = layer(outputs)
        return outputs  # type: ignore[return-value]

    def parameters(self) -> list[Value]:
        return [parameter for layer in self.layers for parameter in layer.parameters()]

    def _get_name(self) -> str:
        return f"MLP({'→'.join(map(str, self.sizes))})"

    def __repr__(self) -> str:
        sizes = " -> ".join(map(str, self.sizes))
        return f"MLP({sizes}, {self.activation!r}, {len(self.parameters())} parameters)"


def cross_entropy(scores: Sequence[Value], target: int) -> Value:
    """Return the cross-entropy loss in nats: -ln of the softmax of `scores` at index `target`.

    softmax(s)_k = exp(s_k) / sum_j exp(s_j). Subtracting the largest score first prevents overflow without changing the
    result (Goodfellow, Bengio and Courville, *Deep Learning*, 2016, section 4.1). Raises ShapeError if `target` is out
    of range.

    >>> round(cross_entropy([Value(1.0), Value(1.0)], 0).data, 6)     # two classes, no preference: ln 2
    0.693147
    """
    if not 0 <= target < len(scores):
        raise ShapeError(
            f"cross_entropy: target {target} is out of bounds for {len(scores)} scores; class indices start at 0."
        )
    largest = max(score.data for score in scores)
    shifted = [score - largest for score in scores]
    total = shifted[0].exp()
    for score in shifted[1:]:
        total = total + score.exp()
    return total.log() - shifted[target]
