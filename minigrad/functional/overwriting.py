"""Methods that write over a tensor what a function gives of it, as PyTorch's ``nan_to_num_`` and ``cumsum_``.

They take no less memory than ``x = x.nan_to_num()``: the numbers are computed beside, then copied, since rules may save
both. Those that need no room beside are made of operations, in `elementwise`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from minigrad.core.op import OPS
from minigrad.core.tensor import Tensor
from minigrad.core.views import check_writable
from minigrad.functional.derived import exp2, hypot, log10, logit
from minigrad.functional.elementwise import clamp, clamp_max, clamp_min, div, nan_to_num, round
from minigrad.functional.linalg import addbmm, addmm, addmv, addr, baddbmm
from minigrad.functional.methods import in_place, with_axis
from minigrad.functional.pointwise import deg2rad, fix, float_power, fmod, frac, heaviside, rad2deg, sinc, xlogy
from minigrad.functional.reduce import cumprod, cumsum
from minigrad.functional.scattering import scatter_reduce

__all__ = ["METHODS"]


def _over(function: Callable[..., Any]) -> tuple[str, Callable[..., Tensor]]:
    """The method that writes what `function` gives of a tensor over that, and its name."""

    def write(self: Tensor, *args: Any, **options: Any) -> Tensor:
        found = computed(self.clone(), *args, **options)  # a rule may save the numbers that are written over
        check_writable(self, found.shape, found.dtype.kind, name)
        return self.copy_(found)

    computed, name = with_axis(function), f"{function.__name__}_"
    own, *others = inspect.signature(function).parameters.values()
    shown: Any = write
    shown.__name__, shown.__qualname__ = name, f"Tensor.{name}"
    shown.__doc__ = f"Overwrite these numbers with `{function.__name__}` of them, and return them."
    shown.__signature__ = inspect.Signature([own.replace(name="self"), *others], return_annotation="Tensor")
    return name, shown


_NUMBERS = (clamp_max, clamp_min, deg2rad, exp2, fix, float_power, fmod, frac, heaviside, hypot, log10, logit)
_MORE = (nan_to_num, rad2deg, round, sinc, xlogy, cumprod, cumsum, scatter_reduce)
_PRODUCTS = (addbmm, addmm, addmv, addr, baddbmm)
_FUNCTIONS: tuple[Callable[..., Any], ...] = (*_NUMBERS, *_MORE, *_PRODUCTS)

METHODS: dict[str, Any] = dict(map(_over, _FUNCTIONS))
_clamped, _clamped_numbers = _over(clamp)[1], in_place(OPS["clamp"])


def _clamp(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Overwrite these numbers with `clamp` of them, and return them."""
    numbers = [x for x in (min, max) if x is not None]
    if not numbers or not self.dtype.is_floating_point or any(isinstance(x, Tensor) for x in numbers):
        return _clamped(self, min, max)
    return _clamped_numbers(self, min, max)


_rounded, _divided = _over(div)[1], in_place(OPS["div"])


def _div(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Overwrite these numbers with `div` of them, and return them."""
    return _divided(self, other) if rounding_mode is None else _rounded(self, other, rounding_mode=rounding_mode)


METHODS |= {"clamp_": _clamp, "clip_": _clamp} | dict.fromkeys(("div_", "divide_", "true_divide_"), _div)
