"""Bitwise operators on integer and bool tensors: ``&``, ``|``, ``^`` and ``~``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from minigrad import ops
from minigrad.core.errors import DTypeError
from minigrad.core.op import Op
from minigrad.core.registry import register, register_method
from minigrad.core.tensor import Tensor
from minigrad.functional.methods import in_place

_SYMBOLS = {"bitwise_and": "&", "bitwise_not": "~", "bitwise_or": "|", "bitwise_xor": "^"}


def _check_not_floating(op: Op, *operands: Any) -> None:
    for x in operands:
        if isinstance(x, float) or (isinstance(x, Tensor) and x.dtype.is_floating_point):
            operand_name, symbol = x.dtype.name if isinstance(x, Tensor) else repr(x), _SYMBOLS[op.name]
            raise DTypeError(
                f"{op.name}: {symbol} is only implemented for integer and bool tensors, but got {operand_name}.\n"
                f"  It binds tighter than a comparison: write {'~' if symbol == '~' else f'(x > 0) {symbol} '}(x < 1)."
            )


def _make_in_place(op: Op) -> Callable[..., Tensor]:
    return in_place(op, partial(_check_not_floating, op))


@register(method=True, in_place=_make_in_place(ops.bitwise_and), operator="and")
def bitwise_and(input: Any, other: Any) -> Any:
    """Return the bitwise AND, ``input & other``; for bools the logical AND. Raises DTypeError for floats.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0, 3.0])
    >>> (x > 1) & (x < 3)
    tensor([False,  True, False])
    """
    return _check_and_apply(ops.bitwise_and, input, other)


@register(method=True, in_place=_make_in_place(ops.bitwise_or), operator="or")
def bitwise_or(input: Any, other: Any) -> Any:
    """Return the bitwise OR, ``input | other``; for bools the logical OR. Raises DTypeError for floats."""
    return _check_and_apply(ops.bitwise_or, input, other)


@register(method=True, in_place=_make_in_place(ops.bitwise_xor), operator="xor")
def bitwise_xor(input: Any, other: Any) -> Any:
    """Return the bitwise XOR, ``input ^ other``; for bools the logical XOR. Raises DTypeError for floats."""
    return _check_and_apply(ops.bitwise_xor, input, other)


@register(method=True, in_place=_make_in_place(ops.bitwise_not))
@register_method("__invert__")
def bitwise_not(input: Tensor) -> Any:
    """Return the bitwise NOT, ``~input``: ``-input - 1`` for signed ints. Raises DTypeError for floats."""
    return _check_and_apply(ops.bitwise_not, input)


def _check_and_apply(op: Op, *operands: Any) -> Any:
    _check_not_floating(op, *operands)
    return op(*operands)
