"""Type promotion, which casts operands to the dtype in which an operation computes, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from minigrad.core.dtypes import DTYPES, DType, dtype_of_scalar, get_default_dtype, result_type
from minigrad.core.errors import DTypeError, describe_type
from minigrad.core.graph import Node
from minigrad.core.modes import modes
from minigrad.core.op import OPS, Op
from minigrad.core.shapes import broadcast_shapes, check_equal_shapes

__all__ = ["PYTHON_SCALARS", "as_operand", "promote"]

PYTHON_SCALARS = frozenset({float, int, bool})


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Node)


def promote(op: Op, inputs: tuple[Any, ...], make_tensor: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Check that the shapes of `inputs` broadcast, and cast them to the dtype in which `op` computes.

    If all operands except a condition are Python scalars, `make_tensor` converts them from NumPy arrays to tensors.
    """
    condition: tuple[Any, ...] = ()
    if op.promotes == "rest":
        condition, inputs = inputs[:1], inputs[1:]
    shape = dtype = None
    is_uniform = True  # whether all tensors have the same float dtype and shape, so that no cast is needed
    for x in (*condition, *inputs) if condition else inputs:
        if _is_tensor(x):
            array = x._array
            if dtype is None:
                dtype, shape = array.dtype, array.shape
                is_uniform = dtype.kind == "f" and not condition
            elif array.dtype is not dtype or array.shape != shape:
                is_uniform = False
        elif x.__class__ not in PYTHON_SCALARS:
            return promote(op, tuple([as_operand(op, x) for x in (*condition, *inputs)]), make_tensor)
    if is_uniform:
        return inputs
    broadcast_shapes(*[x.shape for x in (*condition, *inputs) if _is_tensor(x)], op=op.name)
    if modes.strict:
        named_operands = zip(op.inputs, (*condition, *inputs), strict=True)
        check_equal_shapes({name: x.shape for name, x in named_operands if _is_tensor(x)}, op.name)
    tensors = [x for x in inputs if _is_tensor(x)]
    target = result_type(
        [x.dtype for x in tensors if x.ndim],
        [x.dtype for x in tensors if not x.ndim],
        [dtype_of_scalar(x) for x in inputs if not _is_tensor(x)],
    )
    if op.promotes == "number" and target is DTYPES["bool"]:
        raise DTypeError(f"{op.name}: not supported for bool tensors; convert them first: x.to(mg.int64).")
    if op.promotes == "int" and target is DTYPES["bool"]:
        target = DTYPES["int64"]
    if op.promotes == "float" and not target.is_floating_point:
        target = get_default_dtype()
    if not tensors:  # for scalars alone, a kernel would use NumPy's default dtype
        return (*condition, *[make_tensor(np.asarray(x, target.name)) for x in inputs])
    return (*condition, *[_cast(x, target) for x in inputs])


def _cast(x: Any, dtype: DType) -> Any:
    if _is_tensor(x):
        return x if x.dtype is dtype else OPS["to"](x, dtype=dtype)
    # A symbolic float remains symbolic.
    return x if x.__class__ is (python_type := (bool, int, float)[dtype.kind]) else python_type(x)


def as_operand(op: Op, x: Any) -> Any:
    """Return `x` as a tensor or a Python scalar. Raises DTypeError for other types."""
    if x.__class__ in PYTHON_SCALARS or (_is_tensor(x) and x._array is not None):  # raises for a Value
        return x
    if isinstance(x, np.generic) and x.dtype.kind in "biuf":
        return x.item()  # otherwise NumPy's promotion would be applied as well
    if isinstance(x, Real):
        return int(x) if isinstance(x, Integral) else float(x)
    raise DTypeError(
        f"{op.name}: {describe_type(x)} is not supported; expected a tensor or a Python scalar.\n"
        "  Convert it first: mg.tensor(x), or mg.from_numpy(x) to share memory."
    )
