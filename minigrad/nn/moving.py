"""Movable: how a module goes to another device, or to another type of floats. Names are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from minigrad.core.dtypes import DType, as_dtype, float32, float64
from minigrad.core.errors import DTypeError
from minigrad.core.storage import check_device
from minigrad.core.tensor import Tensor
from minigrad.nn.parameter import Parameter, replace

__all__ = ["Movable"]

Self = TypeVar("Self", bound="Movable")


class Movable:
    """What has parameters, buffers and children, which move with it."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]

    def children(self) -> Iterator[Any]:
        """The parts of it."""
        raise NotImplementedError

    def _apply(self: Self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replace each parameter's elements, its gradient and each buffer by what `fn` returns for them.

        A subclass that has tensors elsewhere may do the same with those.
        """
        for module in self.children():
            module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                replace(parameter, fn(parameter.detach()))
                parameter._grad = None if parameter._grad is None else fn(parameter._grad.detach())
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(
        self: Self, *what: Any, dtype: DType | None = None, device: str | None = None, non_blocking: bool = False
    ) -> Self:
        """Move the module to a device, or convert its floats to a type; both as those of a tensor that is given.

        In place: the parameters stay the tensors that they were, so that an optimizer goes on with them. Raises
        DTypeError for a type that is not of floats, DeviceError where there is no such device.
        """
        for one in what:
            if isinstance(one, Tensor):
                dtype, device = one.dtype, one.device
            elif isinstance(one, str):
                device = one
            elif one is not None:
                dtype = as_dtype(one)
        if dtype is not None and not dtype.is_floating_point:
            raise DTypeError(f"to: a module's parameters are fractions, which {dtype.name} does not hold.")
        place = None if device is None else check_device(device, "to")
        return self._apply(lambda x: x.to(dtype if x.dtype.is_floating_point else None, device=place))

    def cpu(self: Self) -> Self:
        """Move it to the memory of the processor, as `Tensor.cpu`."""
        return self._apply(lambda x: x.cpu())

    def cuda(self: Self, device: Any = None) -> Self:
        """Move it to the device "cuda". Raises DeviceError if there is none."""
        return self.to("cuda" if device is None or isinstance(device, int) else device)

    def type(self: Self, dst_type: Any) -> Self:
        """Convert its floats to a type."""
        return self.to(as_dtype(dst_type))

    def float(self: Self) -> Self:
        """Convert its floats to float32."""
        return self.to(float32)

    def double(self: Self) -> Self:
        """Convert its floats to float64."""
        return self.to(float64)

    def half(self: Self) -> Self:
        """Refused with DTypeError: there are no floats of 16 bits here."""
        raise DTypeError("half: there is no float16 here: floats are float32 and float64.\n  Leave it out.")

    bfloat16 = half
