"""Reparametrised weights, recomputed before each forward pass: weight normalisation and spectral normalisation.

The learned parameters have PyTorch's names: ``weight_g`` and ``weight_v``, or ``weight_orig``.
"""

from __future__ import annotations

from typing import Any, TypeVar

from minigrad.core.errors import ArgumentError
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import RemovableHandle, Tensor
from minigrad.functional import norm, normalize
from minigrad.nn.conv import ConvTranspose1d, ConvTranspose2d
from minigrad.nn.module import Module
from minigrad.nn.parameter import Parameter
from minigrad.random import randn

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

Layer = TypeVar("Layer", bound=Module)


class _Reworked:
    """Pre-hook of a module that recomputes one of its weights before each forward pass."""

    handle: RemovableHandle

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def weight(self, module: Module) -> Tensor:
        """Compute the weight from the learned parameters."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.weight(module))

    def begin(self, module: Module, parts: dict[str, Parameter]) -> None:
        """Replace the weight parameter by `parts`, and register the hook."""
        delattr(module, self.name)
        for name, part in parts.items():
            module.register_parameter(f"{self.name}_{name}", part)
        self(module, None)
        self.handle = module.register_forward_pre_hook(self)

    def end(self, module: Module, *parts: str) -> None:
        """Replace the learned parts by a parameter with the current weight, and remove the hook."""
        with no_grad():
            weight = Parameter(self.weight(module).detach().clone())
        self.handle.remove()
        for part in (f"{self.name}_{part}" for part in parts):
            delattr(module, part)
        delattr(module, self.name)
        module.register_parameter(self.name, weight)


class _Length(_Reworked):
    def weight(self, module: Module) -> Tensor:
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        found: Tensor = v * (g / _lengths(v, self.dim))
        return found


def _lengths(v: Tensor, dim: int | None) -> Tensor:
    """Return the norm of each slice of `v` along `dim`, with size 1 elsewhere, or of all elements for None."""
    if dim is None:
        return norm(v)
    return norm(v, dim=[k for k in range(v.ndim) if k != dim % v.ndim], keepdim=True)


class _Stretch(_Reworked):
    def __init__(self, name: str, dim: int, rounds: int, eps: float) -> None:
        super().__init__(name, dim)
        self.rounds, self.eps = rounds, eps

    def matrix(self, weight: Tensor) -> Tensor:
        """Reshape the weight to a matrix whose rows run along `dim`."""
        assert self.dim is not None
        rows: Tensor = weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)
        return rows

    def weight(self, module: Module, rounds: int | None = None) -> Tensor:
        whole, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        rows = self.matrix(whole)
        with no_grad():
            for _ in range(self.rounds * module.training if rounds is None else rounds):
                v.copy_(normalize(rows.mT @ u, dim=0, eps=self.eps))
                u.copy_(normalize(rows @ v, dim=0, eps=self.eps))
            left, right = u.clone(), v.clone()  # the next pass overwrites them in place
        found: Tensor = whole / left.dot(rows @ right)
        return found


def weight_norm(module: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Reparametrise a weight by magnitude ``weight_g`` and direction ``weight_v``: w = g · v / ‖v‖.

    There is one magnitude per slice along `dim`, or a single one for None. Salimans, Kingma 2016, "Weight
    normalization", eq. 2. Returns the module. Raises ArgumentError if it has no parameter `name`.

    >>> import minigrad as mg
    >>> layer = mg.nn.utils.weight_norm(mg.nn.Linear(3, 2))
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('bias', (2,)), ('weight_g', (2, 1)), ('weight_v', (2, 3))]
    """
    weight = _parameter("weight_norm", module, name)
    length = _lengths(weight.detach(), dim)
    _Length(name, dim).begin(module, {"g": Parameter(length), "v": Parameter(weight.detach().clone())})
    return module


def spectral_norm(
    module: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Reparametrise a weight as ``weight_orig`` divided by its largest singular value, the spectral norm.

    Each forward pass in training runs `n_power_iterations`, v = Wᵀ u / ‖Wᵀ u‖, u = W v / ‖W v‖, from the previous
    vectors. The rows of W run along `dim`: 0, or 1 for transposed convolutions. Miyato, Kataoka, Koyama, Yoshida 2018,
    "Spectral normalization for generative adversarial networks", algorithm 1. Returns the module. Raises ArgumentError
    if it has no parameter `name`, and for fewer than one iteration.
    """
    weight = _parameter("spectral_norm", module, name)
    if n_power_iterations < 1:
        raise ArgumentError(f"spectral_norm: expected n_power_iterations to be positive, but got {n_power_iterations}.")
    along = int(isinstance(module, ConvTranspose1d | ConvTranspose2d)) if dim is None else dim
    hook = _Stretch(name, along, n_power_iterations, eps)
    rows = hook.matrix(weight.detach())
    for part, size in zip("uv", rows.shape, strict=True):
        drawn = normalize(randn(size, dtype=weight.dtype, device=weight.device), dim=0, eps=eps)
        module.register_buffer(f"{name}_{part}", drawn)
    hook.begin(module, {"orig": Parameter(weight.detach().clone())})
    return module


def remove_weight_norm(module: Layer, name: str = "weight") -> Layer:
    """Undo `weight_norm`, with the current weight as a parameter. Raises ArgumentError if it was not applied."""
    _hook("remove_weight_norm", module, name, _Length).end(module, "g", "v")
    return module


def remove_spectral_norm(module: Layer, name: str = "weight") -> Layer:
    """Undo `spectral_norm`, with the current weight as a parameter. Raises ArgumentError if it was not applied."""
    _hook("remove_spectral_norm", module, name, _Stretch).end(module, "orig", "u", "v")
    return module


def _parameter(asked: str, module: Module, name: str) -> Parameter:
    found = module._parameters.get(name)
    if found is None:
        known = ", ".join(module._parameters) or "none"
        raise ArgumentError(f"{asked}: {type(module).__name__} has no parameter {name!r}; it has {known}.")
    return found


def _hook(asked: str, module: Module, name: str, kind: type[_Reworked]) -> _Reworked:
    for hook, _ in module._hooks_of().before.values():
        if isinstance(hook, kind) and hook.name == name:
            return hook
    raise ArgumentError(f"{asked}: {asked.removeprefix('remove_')} of {name!r} not found in {type(module).__name__}.")
