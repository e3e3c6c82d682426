"""Activation layers: elementwise functions, and softmax along a dimension.

The formulas are in the functions of the same name of `minigrad.functional`. `inplace` overwrites the input.
"""

from __future__ import annotations

from typing import Any

from minigrad import functional as F
from minigrad.core.dtypes import DType
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import full
from minigrad.nn.function_module import UnaryFunctionModule
from minigrad.nn.module import Module, Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _InPlaceActivation(UnaryFunctionModule):
    """Base class of activations with an in-place option."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self.applies)(input, inplace=self.inplace)


class ReLU(_InPlaceActivation, of="relu"):
    """Rectified linear unit: ``max(x, 0)``. Nair and Hinton 2010."""


class ReLU6(_InPlaceActivation, of="relu6"):
    """Rectified linear unit with an upper bound: ``min(max(x, 0), 6)``."""


class SELU(_InPlaceActivation, of="selu"):
    """Scaled exponential linear unit: `ELU` scaled so that activations converge to mean 0 and variance 1.

    Klambauer et al. 2017.
    """


class SiLU(_InPlaceActivation, of="silu"):
    """Sigmoid linear unit, also known as swish: ``x sigmoid(x)``."""


class Mish(_InPlaceActivation, of="mish"):
    """Mish activation: ``x tanh(softplus(x))``. Misra 2019."""


class Hardsigmoid(_InPlaceActivation, of="hardsigmoid"):
    """Piecewise linear approximation of `Sigmoid`: ``relu6(x + 3) / 6``."""


class Hardswish(_InPlaceActivation, of="hardswish"):
    """Approximation of `SiLU` without an exponential: ``x relu6(x + 3) / 6``. Howard et al. 2019."""

    _repr_settings = ()


class ELU(UnaryFunctionModule, of="elu"):
    """Exponential linear unit: ``x`` if positive, else ``alpha (exp(x) - 1)``. Clevert et al. 2016."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class CELU(UnaryFunctionModule, of="celu"):
    """An `ELU` with continuous derivative: ``x`` if positive, else ``alpha (exp(x / alpha) - 1)``. Barron 2017."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class LeakyReLU(UnaryFunctionModule, of="leaky_relu"):
    """Leaky rectified linear unit: ``x`` if positive, else ``negative_slope x``. Maas, Hannun and Ng 2013."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class Hardtanh(UnaryFunctionModule, of="hardtanh"):
    """Clamps ``x`` to [`min_val`, `max_val`]."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class Threshold(UnaryFunctionModule, of="threshold"):
    """Returns ``x`` if it is above `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class GELU(UnaryFunctionModule, of="gelu"):
    """Gaussian error linear unit: ``x Φ(x)``, where Φ is the normal CDF. Hendrycks and Gimpel 2016.

    With `approximate` "tanh", Φ is replaced by a closed-form approximation.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


class Softplus(UnaryFunctionModule, of="softplus"):
    """A smooth approximation of `ReLU`: ``log(1 + exp(beta x)) / beta``. Dugas et al. 2001.

    It is ``x`` where beta x exceeds `threshold`.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class _Shrink(UnaryFunctionModule):
    """Base class of shrinkage functions, which map small values to 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(_Shrink, of="softshrink"):
    """Shrinks ``x`` towards 0 by `lambd`; it is 0 within [-lambd, lambd]."""


class Hardshrink(_Shrink, of="hardshrink"):
    """Returns ``x`` outside of [-lambd, lambd], else 0."""


class GLU(UnaryFunctionModule, of="glu"):
    """Gated linear unit: the first half along `dim` times the sigmoid of the second. Dauphin et al. 2017."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class _NoSettings(UnaryFunctionModule):
    """Base class of activations without settings."""

    _settings = ()

    def __init__(self) -> None:
        super().__init__()


class Softsign(_NoSettings, of="softsign"):
    """Softsign function: ``x / (1 + |x|)``. Turian, Bergstra and Bengio 2009."""


class Tanhshrink(_NoSettings, of="tanhshrink"):
    """Tanhshrink function: ``x - tanh(x)``."""


class LogSigmoid(_NoSettings, of="logsigmoid"):
    """Logarithm of the sigmoid, ``log(sigmoid(x))``, computed in a numerically stable way."""


class Sigmoid(_NoSettings, of="sigmoid"):
    """Sigmoid function: ``1 / (1 + exp(-x))``."""


class Tanh(_NoSettings, of="tanh"):
    """Hyperbolic tangent: ``tanh(x)``."""


class PReLU(Module):
    """Parametric rectified linear unit: ``x`` if positive, else ``weight x``. He et al. 2015.

    The learned weight has `num_parameters` elements: one for all channels, or one per channel.
    """

    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: str | None = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), float(init), device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _AlongDim(UnaryFunctionModule):
    """Base class of activations that are computed along one dimension."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim=dim)


class Softmax(_AlongDim, of="softmax"):
    """Softmax along `dim`: ``exp(x) / sum(exp(x))``, positive values that sum to 1."""


class LogSoftmax(_AlongDim, of="log_softmax"):
    """Logarithm of the softmax along `dim`, ``log(softmax(x))``, computed in a numerically stable way."""


class Softmin(_AlongDim, of="softmin"):
    """Softmin along `dim`: ``softmax(-x)``."""


class Softmax2d(Module):
    """`Softmax` over the channels of (N, C, H, W) or (C, H, W), at each pixel."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, -3)
