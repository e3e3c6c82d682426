"""Networks of single Values: a neuron, a layer, a multi-layer perceptron. Small enough to draw whole."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, cast, get_args

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, a_kind
from minigrad.core.modes import detour
from minigrad.core.value import Value
from minigrad.nn.naming import entered, watched

__all__ = ["MLP", "Activation", "Layer", "Module", "Neuron", "cross_entropy"]

Activation = Literal["linear", "relu", "sigmoid", "tanh"]


class Module:
    """A part of a model of Values. Derive from it, make Values and other modules attributes, alone or in lists, tuples
    and dicts, and write `forward`. Call the module, not its `forward`: pictures show each call as a block.

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
        """The output for some inputs. To be written."""
        raise NotImplementedError(f"{type(self).__name__} has no forward: write def forward(self, x) in it.")

    def __call__(self, *args: Any) -> Any:
        if detour.reasons and watched():
            with entered(self):
                return self.forward(*args)
        result = self.forward(*args)
        for value in result if result.__class__ is list else (result,):
            if value.__class__ is Value and value._op is not None:
                try:  # a note at the results alone: a scope, for which each operation looks, would slow all of them
                    value._more[self] = args
                except AttributeError:
                    value._more = {self: args}
        return result

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True, *, memo: set[int] | None = None
    ) -> Iterator[tuple[str, Module]]:
        """This module, named by `prefix`, and all that are in it, each once: ``"layers[0].neurons[2]"``."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, part in _parts(self, prefix):
            if isinstance(part, Module):
                yield from part.named_modules(name, remove_duplicate, memo=memo)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Value]]:
        """The Values that are attributes of this module, and with `recurse` of those in it, with their names."""
        seen = set[int]()
        for path, module in self.named_modules(prefix, remove_duplicate) if recurse else [(prefix, self)]:
            for name, x in _parts(module, path):
                if isinstance(x, Value) and x.op is None and id(x) not in seen:
                    if remove_duplicate:
                        seen.add(id(x))
                    yield name, x

    def parameters(self) -> list[Value]:
        """The Values that training may change."""
        return [x for _, x in self.named_parameters()]

    def _get_name(self) -> str:
        """What pictures say that it is."""
        return type(self).__name__

    def zero_grad(self) -> None:
        """Forget the gradient of each parameter."""
        for parameter in self.parameters():
            parameter.grad = None


def _parts(module: Module, prefix: str) -> Iterator[tuple[str, Any]]:
    """The attributes of a module, and what is in those that are lists, tuples and dicts, as one writes them."""
    stack = [(f"{prefix}.{name}" if prefix else name, x) for name, x in vars(module).items()][::-1]
    while stack:
        name, x = stack.pop()
        if isinstance(x, list | tuple | dict):
            items = list(x.items() if isinstance(x, dict) else enumerate(x))
            stack += [(f"{name}[{key!r}]", part) for key, part in reversed(items)]
        else:
            yield name, x


class Neuron(Module):
    """activation(w · x + b) of `inputs` numbers.

    Weights and bias start in U(-k, k), k = 1 / sqrt(inputs), as PyTorch's ``Linear``, drawn from `generator` (Python's
    own when None). `label` names the parameters in pictures: ``label.w[0]``, …, ``label.b``.
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
        self.w = [Value(draw(-k, k), f"{prefix}w[{i}]") for i in range(inputs)]
        self.b = Value(draw(-k, k), f"{prefix}b")
        self.activation = activation

    def __call__(self, x: Sequence[Value | float]) -> Value:
        if detour.reasons:
            return cast(Value, super().__call__(x))
        out = self.forward(x)
        out._more = {self: (x,)}  # as `Module` does, in fewer steps: neurons are called most
        return out

    def forward(self, x: Sequence[Value | float]) -> Value:
        try:
            count = len(x)
        except TypeError:
            raise DTypeError(f"Neuron: {x!r:.100} is {a_kind(x)}, not a list of {len(self.w)} numbers.") from None
        if count != len(self.w):
            raise ShapeError(f"Neuron: {count} numbers were given to a neuron of {len(self.w)} inputs.")
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
        self.neurons = [
            Neuron(inputs, activation, label=f"{prefix}neurons[{i}]", generator=generator) for i in range(outputs)
        ]

    def forward(self, x: Sequence[Value | float]) -> list[Value]:
        return [neuron(x) for neuron in self.neurons]

    def parameters(self) -> list[Value]:
        return [parameter for neuron in self.neurons for parameter in neuron.parameters()]

    def _get_name(self) -> str:
        return f"Layer({len(self.neurons[0].w)}→{len(self.neurons)})"

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
            Layer(n, m, "linear" if i == last else activation, label=f"layers[{i}]", generator=generator)
            for i, (n, m) in enumerate(pairwise(sizes))
        ]

    def forward(self, x: Sequence[Value | float]) -> list[Value]:
        if not hasattr(x, "__iter__"):
            raise DTypeError(f"MLP: {x!r:.100} is {a_kind(x)}, not a list of {self.sizes[0]} numbers.")
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
