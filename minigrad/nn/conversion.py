"""Conversion of modules to other devices and floating-point dtypes, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from minigrad.core.dtypes import DType, as_dtype, float32, float64
from minigrad.core.errors import DTypeError
from minigrad.core.storage import check_device
from minigrad.core.tensor import Tensor
from minigrad.nn.parameter import Parameter, replace_data

__all__ = ["ConversionMixin"]

Self = TypeVar("Self", bound="ConversionMixin")


class ConversionMixin:
    """Mixin of `Module` that moves and converts the parameters and buffers of a module and its children."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]

    def children(self) -> Iterator[Any]:
        """Iterate over the immediate children."""
        raise NotImplementedError

    def _apply(self: Self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Apply `fn` to each parameter, its gradient and each buffer, of this module and its children.

        A subclass that stores other tensors may override this method.
        """
        for module in self.children():
            module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                replace_data(parameter, fn(parameter.detach()))
                parameter._grad = None if parameter._grad is None else fn(parameter._grad.detach())
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(
        self: Self, *targets: Any, dtype: DType | None = None, device: str | None = None, non_blocking: bool = False
    ) -> Self:
        """Move the module to a device, and convert its floating-point tensors to a dtype.

        A tensor argument specifies both. The parameters are modified in place, so an optimizer stays valid. Raises
        DTypeError for a dtype that is not floating point, DeviceError for an unavailable device.
        """
        for target in targets:
            if isinstance(target, Tensor):
                dtype, device = target.dtype, target.device
            elif isinstance(target, str):
                device = target
            elif target is not None:
                dtype = as_dtype(target)
        if dtype is not None and not dtype.is_floating_point:
            raise DTypeError(f"to: a module can only be converted to a floating-point dtype, but got {dtype.name}.")
        target_device = None if device is None else check_device(device, "to")
        return self._apply(lambda x: x.to(dtype if x.dtype.is_floating_point else None, device=target_device))

    def cpu(self: Self) -> Self:
        """Move the module to host memory; see `Tensor.cpu`."""
        return self._apply(lambda x: x.cpu())

    def cuda(self: Self, device: Any = None) -> Self:
        """Move the module to the device "cuda". Raises DeviceError if it is unavailable."""
        return self.to("cuda" if device is None or isinstance(device, int) else device)

    def type(self: Self, dst_type: Any) -> Self:
        """Convert the floating-point tensors to `dst_type`."""
        return self.to(as_dtype(dst_type))

    def float(self: Self) -> Self:
        """Convert the floating-point tensors to float32."""
        return self.to(float32)

    def double(self: Self) -> Self:
        """Convert the floating-point tensors to float64."""
        return self.to(float64)

    def half(self: Self) -> Self:
        """Raise DTypeError: 16-bit floating point is not supported."""
        raise DTypeError("half: float16 is not supported, only float32 and float64.\n  Leave it out.")

    bfloat16 = half
