"""Linear layers."""

from __future__ import annotations

import math

from minigrad import functional as F
from minigrad.core.dtypes import DType
from minigrad.core.errors import ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_number
from minigrad.functional.creation import empty
from minigrad.nn import init
from minigrad.nn.layer_utils import draw_bias
from minigrad.nn.module import Module, Parameter

__all__ = ["Bilinear", "Linear"]


class Linear(Module):
    """Applies an affine transformation: ``input @ weight.T + bias``, from (…, in_features) to (…, out_features).

    `weight` has shape (out_features, in_features); `bias` has shape (out_features,), or is None. Both are initialised
    from U(-k, k), k = 1 / sqrt(in_features), by `init.kaiming_uniform_` with a = sqrt(5), whose bound is
    sqrt(2 / (1 + 5)) sqrt(3 / in_features). Raises ShapeError for negative sizes.

    >>> import minigrad as mg
    >>> layer = mg.nn.Linear(784, 128)
    >>> layer.weight.shape, bool(layer.weight.abs().max() <= 784**-0.5)
    ((128, 784), True)
    """

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        check_number(in_features, "Linear", "in_features", integer=True)
        check_number(out_features, "Linear", "out_features", integer=True)
        if min(in_features, out_features) < 0:
            raise ShapeError(f"Linear: {in_features=} and {out_features=} must not be negative.")
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sample weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        draw_bias(self.bias, self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """Computes ``input1 @ weight[k] @ input2 + bias[k]`` for each k, from (…, in1_features) and (…, in2_features).

    `weight` has shape (out_features, in1_features, in2_features). `weight` and `bias` are initialised from U(-k, k),
    k = 1 / sqrt(in1_features).
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if in1_features < 1:
            raise ShapeError(f"Bilinear: in1_features must be > 0, but got {in1_features}.")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sample weight and bias again."""
        bound = self.in1_features**-0.5
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
