"""Tensor printing: PyTorch's ``repr``, plus the size of large tensors and counts of nan and inf."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from minigrad.core.dtypes import get_default_dtype
from minigrad.core.errors import DTypeError
from minigrad.core.registry import register_method
from minigrad.core.storage import get_default_device, to_numpy
from minigrad.core.tensor import Tensor
from minigrad.profiling.tidying import Freed

PRECISION = 4  # PyTorch's precision: digits after the decimal point
LINE_WIDTH = 80  # PyTorch's linewidth, in characters
SUMMARY_THRESHOLD = 1000  # PyTorch's threshold: number of elements above which a tensor is summarised
EDGE_ITEMS = 3  # PyTorch's edgeitems: number of elements displayed at each end of a dimension


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
    array, details = to_numpy(self._array), []
    if array.size == 0:
        body = "[]"
    else:
        edge_items = EDGE_ITEMS if array.size > SUMMARY_THRESHOLD else 0
        displayed = _edge_elements(array, edge_items)
        body = _format_block(
            displayed, array.shape, edge_items, _element_formatter(displayed.reshape(-1).tolist()), len("tensor(")
        )
    if array.size > SUMMARY_THRESHOLD or (array.size == 0 and array.ndim != 1):
        details.append(f"size={self.shape}")
    if self.dtype.is_floating_point:
        counts = {"nan": np.isnan(array).sum(), "inf": np.isinf(array).sum()}
        details += [f"{name}={count}" for name, count in counts.items() if count]
    if self.device != get_default_device():
        details.append(f"device={str(self.device)!r}")
    default_dtype = get_default_dtype().name
    if self.dtype.name not in ((default_dtype,) if array.size == 0 else (default_dtype, "int64", "bool")):
        details.append(f"dtype={self.dtype!r}")
    if self.grad_fn is not None:
        details.append(f"grad_fn={self.grad_fn!r}")
    elif self.requires_grad:
        details.append("requires_grad=True")
    return _append_details(f"tensor({body}", details)


def _append_details(body: str, details: list[str]) -> str:
    """Append `details` to `body`, wrapping at the line width."""
    column = len(body) - body.rfind("\n") - 1
    for detail in details:
        if column + len(detail) + 3 > LINE_WIDTH:
            body, column = f"{body},\n       {detail}", 7 + len(detail)
        else:
            body, column = f"{body}, {detail}", column + 2 + len(detail)
    return f"{body})"


def _edge_elements(array: Any, edge_items: int) -> Any:
    """Return the first and last `edge_items` elements of each dimension, or `array` itself if `edge_items` is 0."""
    if edge_items:
        for dim, size in enumerate(array.shape):
            if size > 2 * edge_items:
                array = np.take(array, [*range(edge_items), *range(size - edge_items, size)], axis=dim)
    return array


def _format_block(
    displayed: Any, shape: tuple[int, ...], edge_items: int, format_element: Callable[[Any], str], indent: int
) -> str:
    """Format the elements `displayed` of a tensor of shape `shape` in nested brackets, indented by `indent` columns."""
    if not shape:
        return format_element(displayed.item())
    is_truncated = bool(edge_items) and shape[0] > 2 * edge_items
    if len(shape) > 1:
        parts = [_format_block(block, shape[1:], edge_items, format_element, indent + 1) for block in displayed]
        separator = "\n" * (len(shape) - 1) + " " * (indent + 1)
        return f"[{f',{separator}'.join([*parts[:edge_items], '...', *parts[edge_items:]] if is_truncated else parts)}]"
    items = [format_element(x) for x in displayed.tolist()]
    if is_truncated:
        items[edge_items:edge_items] = [" ..."]
    items_per_line = max(1, (LINE_WIDTH - indent) // (len(items[0]) + 2))
    lines = [", ".join(items[k : k + items_per_line]) for k in range(0, len(items), items_per_line)]
    return f"[{f',{chr(10)}{chr(32) * (indent + 1)}'.join(lines)}]"


def _element_formatter(values: list[Any]) -> Callable[[Any], str]:
    """Return a function that formats all `values` with the same width and notation, fixed-point or scientific."""
    format_value = str if not isinstance(values[0], float) else _float_formatter(values)
    width = max(len(format_value(x)) for x in values)
    return lambda x: format_value(x).rjust(width)


def _float_formatter(values: list[float]) -> Callable[[float], str]:
    magnitudes = [abs(x) for x in values if isfinite(x) and x]
    smallest, largest = min(magnitudes, default=1.0), max(magnitudes, default=1.0)
    all_integers = all(x.is_integer() for x in magnitudes)
    if largest / smallest > 1000 or largest > 1e8 or (smallest < 1e-4 and not all_integers):
        return lambda x: f"{x:.{PRECISION}e}"
    if all_integers:
        return lambda x: f"{x:.0f}." if isfinite(x) else f"{x}"
    return lambda x: f"{x:.{PRECISION}f}"


@register_method("__format__")
def _format(self: Tensor, spec: str) -> str:
    """Format a 0-d tensor like a Python scalar; for other tensors only an empty `spec` is supported."""
    if not self.ndim:
        return format(to_numpy(self._array).item(), spec)
    if spec:
        raise DTypeError(
            f"format: unsupported format string {spec!r} for a tensor of shape {self.shape}; it must be 0-d.\n"
            "  Omit it, or format each element: [format(x, spec) for x in t.tolist()]."
        )
    return _repr(self)
