"""In-place view methods, which change the shape of a tensor but not its elements, such as PyTorch's ``unsqueeze_``.

The out-of-place ``x = x.unsqueeze(0)`` has the same cost and is more readable.
"""

from __future__ import annotations

from collections.abc import Callable

from minigrad.core.errors import GraphError
from minigrad.core.grad_mode import enable_grad
from minigrad.core.modes import modes
from minigrad.core.registry import register_method
from minigrad.core.tensor import Tensor, wrap
from minigrad.functional.checks import Dims
from minigrad.functional.views import squeeze, t, transpose, unsqueeze

_SLOTS = ("_array", "_base", "_view_chain", "_rebase_count", "_requires_grad", "_step", "_storage")


@register_method("unsqueeze_")
def _unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1 at `dim` in place. Raises GraphError for a leaf that requires grad.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0])
    >>> x.unsqueeze_(0).shape, x.shape
    ((1, 2), (1, 2))
    """
    return _replace_with_view(self, "unsqueeze", lambda x: unsqueeze(x, dim))


@register_method("squeeze_")
def _squeeze(self: Tensor, dim: Dims = None) -> Tensor:
    """Remove all dimensions of size 1, or those in `dim`, in place. Raises GraphError like `unsqueeze_`."""
    return _replace_with_view(self, "squeeze", lambda x: squeeze(x, dim))


@register_method("transpose_", "swapaxes_", "swapdims_")
def _transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions in place. Raises GraphError like `unsqueeze_`."""
    return _replace_with_view(self, "transpose", lambda x: transpose(x, dim0, dim1))


@register_method("t_")
def _t(self: Tensor) -> Tensor:
    """Transpose this matrix in place; do nothing for fewer than 2 dimensions. Raises errors like `unsqueeze_`."""
    return _replace_with_view(self, "t", t)


def _replace_with_view(x: Tensor, name: str, view: Callable[[Tensor], Tensor]) -> Tensor:
    """Make `x` a view of a new tensor, which receives the previous state of `x` and is the base of its other views."""
    if x.requires_grad and x.is_leaf:
        raise GraphError(
            f"{name}_: a leaf that requires grad is being used in an in-place operation; its shape must match .grad.\n"
            f"  Write y = x.{name}(…), which shares memory, or change the shape before requires_grad_()."
        )
    if modes.grad and x._base is not None and x._base.requires_grad and x._base.is_leaf:
        raise GraphError(
            f"{name}_: a view of a leaf that requires grad is being used in an in-place operation.\n"
            f"  Write y = x.{name}(…), which shares memory."
        )
    for listener in modes.metadata_changed:
        listener.metadata_changed(x, name)
    previous = x
    if x._base is None:
        previous = wrap(x._array)
        previous._storage, previous._step, previous._requires_grad = x.storage, x._step, x._requires_grad
    with enable_grad():
        result = view(previous)
    if result is previous:
        return x
    x.storage.mark_written(f"{name}_", recorded=True)  # invalidates rules that saved the tensor with its old shape
    result._rebase_count = x.storage.rebase_count
    for slot in _SLOTS:
        setattr(x, slot, getattr(result, slot))
    if x._get_extra("retained"):
        x._move_retained_grad()
    return x
