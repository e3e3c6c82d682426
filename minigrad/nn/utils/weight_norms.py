"""Weight and spectral normalisation, which recompute a weight before each forward pass.

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


class _ReparametrizedWeight:
    """Forward pre-hook that recomputes a weight of a module before each forward pass."""

    handle: RemovableHandle

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Module) -> Tensor:
        """Compute the weight from the learned parameters."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))

    def apply(self, module: Module, parts: dict[str, Parameter]) -> None:
        """Replace the weight parameter by `parts`, and register the hook."""
        delattr(module, self.name)
        for name, part in parts.items():
            module.register_parameter(f"{self.name}_{name}", part)
        self(module, None)
        self.handle = module.register_forward_pre_hook(self)

    def remove(self, module: Module, *parts: str) -> None:
        """Replace the learned parts by a parameter with the current weight, and remove the hook."""
        with no_grad():
            weight = Parameter(self.compute_weight(module).detach().clone())
        self.handle.remove()
        for part in (f"{self.name}_{part}" for part in parts):
            delattr(module, part)
        delattr(module, self.name)
        module.register_parameter(self.name, weight)


class _WeightNorm(_ReparametrizedWeight):
    def compute_weight(self, module: Module) -> Tensor:
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        weight: Tensor = v * (g / _norm_except_dim(v, self.dim))
        return weight


def _norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """Return the norm over all dimensions of `v` except `dim`, which are kept, or of all elements if `dim` is None."""
    if dim is None:
        return norm(v)
    return norm(v, dim=[k for k in range(v.ndim) if k != dim % v.ndim], keepdim=True)


class _SpectralNorm(_ReparametrizedWeight):
    def __init__(self, name: str, dim: int, n_power_iterations: int, eps: float) -> None:
        super().__init__(name, dim)
        self.n_power_iterations, self.eps = n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Reshape the weight to a matrix with one row per index along `dim`."""
        assert self.dim is not None
        rows: Tensor = weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)
        return rows

    def compute_weight(self, module: Module, n_power_iterations: int | None = None) -> Tensor:
        weight_orig, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        rows = self.reshape_weight_to_matrix(weight_orig)
        with no_grad():
            for _ in range(
                self.n_power_iterations * module.training if n_power_iterations is None else n_power_iterations
            ):
                v.copy_(normalize(rows.mT @ u, dim=0, eps=self.eps))
                u.copy_(normalize(rows @ v, dim=0, eps=self.eps))
            left_vector, right_vector = u.clone(), v.clone()  # the next forward pass overwrites u and v
        weight: Tensor = weight_orig / left_vector.dot(rows @ right_vector)
        return weight


def weight_norm(module: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Reparametrise a weight by magnitude ``weight_g`` and direction ``weight_v``: w = g · v / ‖v‖.

    There is one magnitude per slice along `dim`, or a single one if `dim` is None. Salimans, Kingma 2016, "Weight
    normalization", eq. 2. Returns the module. Raises ArgumentError if it has no parameter `name`.

    >>> import minigrad as mg
    >>> layer = mg.nn.utils.weight_norm(mg.nn.Linear(3, 2))
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('bias', (2,)), ('weight_g', (2, 1)), ('weight_v', (2, 3))]
    """
    weight = _get_parameter("weight_norm", module, name)
    magnitude = _norm_except_dim(weight.detach(), dim)
    _WeightNorm(name, dim).apply(module, {"g": Parameter(magnitude), "v": Parameter(weight.detach().clone())})
    return module


def spectral_norm(
    module: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Reparametrise a weight as ``weight_orig`` divided by its largest singular value, the spectral norm.

    Each forward pass in training runs `n_power_iterations`, v = Wᵀ u / ‖Wᵀ u‖, u = W v / ‖W v‖, from the previous
    vectors. The matrix W has one row per index along `dim`, by default 0, or 1 for transposed convolutions. Miyato,
    Kataoka, Koyama, Yoshida 2018, "Spectral normalization for generative adversarial networks", algorithm 1. Returns
    the module. Raises ArgumentError if it has no parameter `name`, and for fewer than one iteration.
    """
    weight = _get_parameter("spectral_norm", module, name)
    if n_power_iterations < 1:
        raise ArgumentError(f"spectral_norm: expected n_power_iterations to be positive, but got {n_power_iterations}.")
    row_dim = int(isinstance(module, ConvTranspose1d | ConvTranspose2d)) if dim is None else dim
    hook = _SpectralNorm(name, row_dim, n_power_iterations, eps)
    rows = hook.reshape_weight_to_matrix(weight.detach())
    for part, size in zip("uv", rows.shape, strict=True):
        vector = normalize(randn(size, dtype=weight.dtype, device=weight.device), dim=0, eps=eps)
        module.register_buffer(f"{name}_{part}", vector)
    hook.apply(module, {"orig": Parameter(weight.detach().clone())})
    return module


def remove_weight_norm(module: Layer, name: str = "weight") -> Layer:
    """Undo `weight_norm`, and make the current weight a parameter. Raises ArgumentError if it was not applied."""
    _find_hook("remove_weight_norm", module, name, _WeightNorm).remove(module, "g", "v")
    return module


def remove_spectral_norm(module: Layer, name: str = "weight") -> Layer:
    """Undo `spectral_norm`, and make the current weight a parameter. Raises ArgumentError if it was not applied."""
    _find_hook("remove_spectral_norm", module, name, _SpectralNorm).remove(module, "orig", "u", "v")
    return module


def _get_parameter(caller: str, module: Module, name: str) -> Parameter:
    parameter = module._parameters.get(name)
    if parameter is None:
        existing = ", ".join(module._parameters) or "none"
        raise ArgumentError(f"{caller}: {type(module).__name__} has no parameter {name!r}; it has {existing}.")
    return parameter


def _find_hook(caller: str, module: Module, name: str, hook_type: type[_ReparametrizedWeight]) -> _ReparametrizedWeight:
    for hook, _ in module._get_hooks().before.values():
        if isinstance(hook, hook_type) and hook.name == name:
            return hook
    raise ArgumentError(f"{caller}: {caller.removeprefix('remove_')} of {name!r} not found in {type(module).__name__}.")
