"""Tensor printing: PyTorch's ``repr``, plus the size of large tensors and counts of nan and inf."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from minigrad.core.dtypes import get_default_dtype
from minigrad.core.errors import DTypeError
from minigrad.core.registry import register_method
from minigrad.core.storage import get_default_device, host
from minigrad.core.tensor import Tensor
from minigrad.profiling.tidying import Freed

DIGITS = 4  # PyTorch's precision: digits after the decimal point
LINE = 80  # PyTorch's linewidth, in characters
MANY = 1000  # PyTorch's threshold: number of elements above which a tensor is summarised
EDGE = 3  # PyTorch's edgeitems


@register_method("__repr__")
def _repr(self: Tensor) -> str:
    """Show the elements, the size of a summarised tensor, counts of nan and inf, device, dtype and `grad_fn`.

    The default device and dtype are omitted.

    >>> import minigrad as mg
    >>> mg.tensor([[1.0, 0.25], [float("nan"), -3.0]], requires_grad=True)
    tensor([[ 1.0000,  0.2500],
            [    nan, -3.0000]], nan=1, requires_grad=True)
    >>> mg.zeros(2, 1000)
    tensor([[0., 0., 0.,  ..., 0., 0., 0.],
            [0., 0., 0.,  ..., 0., 0., 0.]], size=(2, 1000))
    """
    if type(self._array) is Freed:
        return repr(self._array)
    array, details = host(self._array), []
    if array.size == 0:
        text = "[]"
    else:
        edge = EDGE if array.size > MANY else 0
        shown = _edges(array, edge)
        text = _block(shown, array.shape, edge, _writer(shown.reshape(-1).tolist()), len("tensor("))
    if array.size > MANY or (array.size == 0 and array.ndim != 1):
        details.append(f"size={self.shape}")
    if self.dtype.is_floating_point:
        counts = {"nan": np.isnan(array).sum(), "inf": np.isinf(array).sum()}
        details += [f"{name}={count}" for name, count in counts.items() if count]
    if self.device != get_default_device():
        details.append(f"device={str(self.device)!r}")
    usual = get_default_dtype().name
    if self.dtype.name not in ((usual,) if array.size == 0 else (usual, "int64", "bool")):
        details.append(f"dtype={self.dtype!r}")
    if self.grad_fn is not None:
        details.append(f"grad_fn={self.grad_fn!r}")
    elif self.requires_grad:
        details.append("requires_grad=True")
    return _joined(f"tensor({text}", details)


def _joined(text: str, details: list[str]) -> str:
    """Append `details` to `text`, wrapping at the line width."""
    used = len(text) - text.rfind("\n") - 1
    for detail in details:
        if used + len(detail) + 3 > LINE:
            text, used = f"{text},\n       {detail}", 7 + len(detail)
        else:
            text, used = f"{text}, {detail}", used + 2 + len(detail)
    return f"{text})"


def _edges(array: Any, edge: int) -> Any:
    """Cut each dimension of `array` down to `edge` elements at either end."""
    if edge:
        for dim, size in enumerate(array.shape):
            if size > 2 * edge:
                array = np.take(array, [*range(edge), *range(size - edge, size)], axis=dim)
    return array


def _block(shown: Any, shape: tuple[int, ...], edge: int, write: Callable[[Any], str], indent: int) -> str:
    """Format `shown`, the displayed elements of a tensor of `shape`, in brackets, indented to column `indent`."""
    if not shape:
        return write(shown.item())
    cut = bool(edge) and shape[0] > 2 * edge
    if len(shape) > 1:
        parts = [_block(one, shape[1:], edge, write, indent + 1) for one in shown]
        gap = "\n" * (len(shape) - 1) + " " * (indent + 1)
        return f"[{f',{gap}'.join([*parts[:edge], '...', *parts[edge:]] if cut else parts)}]"
    words = [write(x) for x in shown.tolist()]
    if cut:
        words[edge:edge] = [" ..."]
    room = max(1, (LINE - indent) // (len(words[0]) + 2))
    lines = [", ".join(words[k : k + room]) for k in range(0, len(words), room)]
    return f"[{f',{chr(10)}{chr(32) * (indent + 1)}'.join(lines)}]"


def _writer(numbers: list[Any]) -> Callable[[Any], str]:
    """Return a formatter for `numbers`, with a common width and a common choice of digits or scientific notation."""
    form = str if not isinstance(numbers[0], float) else _float_form(numbers)
    width = max(len(form(x)) for x in numbers)
    return lambda x: form(x).rjust(width)


def _float_form(numbers: list[float]) -> Callable[[float], str]:
    sizes = [abs(x) for x in numbers if isfinite(x) and x]
    least, most = min(sizes, default=1.0), max(sizes, default=1.0)
    whole = all(x.is_integer() for x in sizes)
    if most / least > 1000 or most > 1e8 or (least < 1e-4 and not whole):
        return lambda x: f"{x:.{DIGITS}e}"
    if whole:
        return lambda x: f"{x:.0f}." if isfinite(x) else f"{x}"
    return lambda x: f"{x:.{DIGITS}f}"


@register_method("__format__")
def _format(self: Tensor, spec: str) -> str:
    """Format a 0-d tensor like a Python scalar; for other tensors only an empty `spec` is supported."""
    if not self.ndim:
        return format(host(self._array).item(), spec)
    if spec:
        raise DTypeError(
            f"format: unsupported format string {spec!r} for a tensor of shape {self.shape}; it must be 0-d.\n"
            "  Omit it, or format each element: [format(x, spec) for x in t.tolist()]."
        )
    return _repr(self)
