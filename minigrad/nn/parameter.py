"""Parameter: a trainable tensor of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.core.errors import DTypeError
from minigrad.core.storage import Storage
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_tensor
from minigrad.functional.creation import empty

__all__ = ["Parameter", "replace_data"]


class Parameter(Tensor):
    """A leaf tensor that requires gradients and that a `Module` registers as a parameter when assigned as an attribute.

    It shares memory with `data`, a floating-point tensor, but has no graph. `data` defaults to an empty tensor. Raises
    DTypeError if `requires_grad` and `data` is not floating point, or if `data` is not a tensor.

    >>> import minigrad as mg
    >>> mg.nn.Parameter(mg.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        source = empty(0) if data is None else check_tensor(data, "Parameter", "data")
        if requires_grad and not source.dtype.is_floating_point:
            raise DTypeError(
                "Parameter: only floating-point tensors can require gradients, and this one has dtype "
                f"{source.dtype.name}.\n  Write nn.Parameter(x.float()), or nn.Parameter(x, requires_grad=False)."
            )
        self._array, self._storage = source._array, source.storage
        self._step = self._base = self._grad = self._op = None
        self._requires_grad = bool(requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __copy__(self) -> Parameter:
        return Parameter(self, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = Parameter(super().__deepcopy__(memo), self.requires_grad)
            memo[id(self)].grad = None if self.grad is None else self.grad.__deepcopy__(memo)
        copied: Parameter = memo[id(self)]
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., Parameter], tuple[Any, ...]]:
        return Parameter, (self.detach(), self.requires_grad)


def replace_data(x: Tensor, source: Tensor) -> None:
    """Replace the array of the leaf `x`, in place, by that of `source`, which may have another dtype and device.

    The version counter of `x` increases, so that a backward pass that saved the old values raises an error.
    """
    if source._array is x._array:
        return
    storage = Storage(source._array)
    storage.version, storage.rebase_count = x._version, x.storage.rebase_count
    storage.mark_written("to")
    x._array, x._storage, x._base = source._array, storage, None
