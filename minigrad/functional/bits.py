"""Logic on bools, and on the bits of whole numbers: the operators ``&``, ``|``, ``^`` and ``~``."""

from __future__ import annotations

from functools import partial
from typing import Any

from minigrad import ops
from minigrad.core.errors import DTypeError
from minigrad.core.op import OPS, Op
from minigrad.core.tensor import Tensor
from minigrad.functional.methods import in_place

__all__ = ["METHODS", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor"]


def bitwise_and(input: Any, other: Any) -> Any:
    """``input & other``, bit by bit, as for bools "and". Raises DTypeError for floats, which have no such bits.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0, 3.0])
    >>> (x > 1) & (x < 3)
    tensor([False,  True, False])
    """
    return _checked(ops.bitwise_and, input, other)


def bitwise_or(input: Any, other: Any) -> Any:
    """``input | other``, bit by bit, as for bools "or". Raises DTypeError for floats."""
    return _checked(ops.bitwise_or, input, other)


def bitwise_xor(input: Any, other: Any) -> Any:
    """``input ^ other``, bit by bit: for bools, whether they differ. Raises DTypeError for floats."""
    return _checked(ops.bitwise_xor, input, other)


def bitwise_not(input: Tensor) -> Any:
    """``~input``, bit by bit: for bools "not", for signed ints ``-input - 1``. Raises DTypeError for floats."""
    return _checked(ops.bitwise_not, input)


def _checked(op: Op, *operands: Any) -> Any:
    _check(op, *operands)
    return op(*operands)


def _check(op: Op, *operands: Any) -> None:
    for x in operands:
        if isinstance(x, float) or (isinstance(x, Tensor) and x.dtype.is_floating_point):
            given, sign = x.dtype.name if isinstance(x, Tensor) else repr(x), _SIGNS[op.name]
            raise DTypeError(
                f"{op.name}: {given} has no bits to take: {sign} is for bools and whole numbers.\n"
                f"  It binds tighter than a comparison: write {'~' if sign == '~' else f'(x > 0) {sign} '}(x < 1)."
            )


METHODS: dict[str, Any] = {"__invert__": bitwise_not}
_SIGNS = {"bitwise_not": "~"}
for _sign, _name in (("&", "and"), ("|", "or"), ("^", "xor")):
    _SIGNS[f"bitwise_{_name}"] = _sign
    METHODS |= dict.fromkeys((f"__{_name}__", f"__r{_name}__"), globals()[f"bitwise_{_name}"])
for _name in _SIGNS:
    METHODS |= {_name: globals()[_name], f"{_name}_": in_place(getattr(ops, _name), partial(_check, OPS[_name]))}
METHODS |= {f"__i{_name}__": METHODS[f"bitwise_{_name}_"] for _name in ("and", "or", "xor")}
