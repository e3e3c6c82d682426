"""The device ``numpy``, the reference implementation. A kernel takes ndarrays (and Python scalars) and returns an
ndarray.

Kernels run with NumPy's floating-point warnings disabled, since 1/0 is inf. This setting applies only in a separate
context, so that the user's NumPy settings do not change. Operands have been promoted to a common dtype and checked for
broadcasting. Results are new arrays, or views for view ops.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from minigrad.backends.limits import size_error
from minigrad.backends.numpy.arrays import DEVICE
from minigrad.core.dispatch import Kernel, register_raw_types, register_runner
from minigrad.core.dtypes import DTYPES
from minigrad.core.errors import ShapeError
from minigrad.core.packages import check_package
from minigrad.core.storage import Allocator, register_device

__all__ = ["DEVICE", "quiet_context"]

check_package("numpy")  # kernels use functions that older versions lack

_is_quiet = contextvars.ContextVar("entered", default=False)


class _QuietContext(threading.local):
    """A per-thread context in which NumPy does not warn."""

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        context.run(_is_quiet.set, True)
        self.run = context.run


quiet_context = _QuietContext()


def _call_quietly(kernel: Kernel, *inputs: Any, **attrs: Any) -> Any:
    """Call `kernel` in the quiet context, unless the context is active because another kernel is running."""
    try:
        return kernel(*inputs, **attrs) if _is_quiet.get() else quiet_context.run(kernel, *inputs, **attrs)
    except IndexError as error:  # raised by NumPy for an index that only the kernel can check
        raise error if isinstance(error, ShapeError) else ShapeError(f"index out of range: {error}") from None
    except (ValueError, OverflowError) as error:
        if (shape_error := size_error(kernel, inputs, attrs, error)) is None:
            raise
        raise shape_error from None


@register_runner(DEVICE)
def run(kernel: Kernel, inputs: tuple[Any, ...], attrs: Mapping[str, Any], out: Any = None) -> Any:
    """Call `kernel`, writing the result to `out` if given; convert scalar results to 0-d arrays."""
    if out is not None:
        if isinstance(kernel, np.ufunc):
            return _call_quietly(kernel, *inputs, out=out, casting="unsafe")
        if "out" in (getattr(kernel, "__kwdefaults__", None) or ()):  # the kernel may write only some elements
            return _call_quietly(kernel, *inputs, **attrs, out=out)
        results = _call_quietly(kernel, *inputs, **attrs)
        for target, values in zip(out, results, strict=True) if isinstance(out, tuple) else ((out, results),):
            np.copyto(target, values, casting="unsafe")
        return out
    result = _call_quietly(kernel, *inputs, **attrs)
    if isinstance(result, tuple):
        return tuple([np.asarray(x) if isinstance(x, np.generic) else x for x in result])
    return result if isinstance(result, np.ndarray) else np.asarray(result)


def run_raw(kernel: Kernel, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    """Call `kernel` on arrays and on NumPy scalars, which NumPy's operators return instead of 0-d arrays."""
    for x in inputs:
        if x.__class__ is not np.ndarray and isinstance(x, np.generic):
            inputs = tuple([np.asarray(x) if isinstance(x, np.generic) else x for x in inputs])
            break
    result = kernel(*inputs, **attrs)
    if result.__class__ is np.ndarray:
        return result
    return result if isinstance(result, (np.ndarray, tuple)) else np.asarray(result)


register_device(
    DEVICE,
    np.ndarray,
    Allocator(
        np.empty,
        lambda sizes, dtype, value: np.full(sizes, value, dtype),
        lambda array: array,
        np.array,
        lambda array: array,
        type(None),
    ),
)
register_raw_types(
    DEVICE,
    # Some types have two names: int64 is NumPy's long or long long, int32 its int or long.
    (np.ndarray, *{np.dtype(code).type for code in "?Bilqfd" if np.dtype(code).name in DTYPES}),
    run_raw,
    lambda: np.errstate(all="ignore"),
)

from minigrad.backends.numpy import (  # noqa: E402 -- each registers its kernels
    activation,  # noqa: F401
    attention,  # noqa: F401
    bits,  # noqa: F401
    conv,  # noqa: F401
    elementwise,  # noqa: F401
    indexing,  # noqa: F401
    linalg,  # noqa: F401
    loss,  # noqa: F401
    normalization,  # noqa: F401
    optim,  # noqa: F401
    pool,  # noqa: F401
    random,  # noqa: F401
    recurrent,  # noqa: F401
    reduce,  # noqa: F401
    sampling,  # noqa: F401
    shape,  # noqa: F401
    sorting,  # noqa: F401
    tape,  # noqa: F401
)
