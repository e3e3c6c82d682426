"""Registration of custom kernels, and validation of their results."""

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from minigrad.core import dispatch
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, check_callable
from minigrad.core.op import OPS
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.storage import DEVICE_BY_ARRAY_TYPE, DEVICES

__all__ = ["kernel"]

Kernel = Callable[..., Any]


def kernel(op: str, device: str, snippet: str | None = None) -> Any:
    """Register a snippet or the decorated function as the kernel of `op` on `device`, replacing any earlier kernel.

    A *function* receives the operands as positional arguments and the attributes as keyword arguments. Operands are
    floats on the device ``python``, which computes Values, and arrays on other devices. The function returns a new
    array, or a tuple of them if the operation has several outputs or auxiliary results, which is validated. On ``cpu``
    the function launches Taichi kernels, which may be defined in a notebook: the operands are contiguous, and
    ``np.empty_like(a)`` allocates the result. On a GPU the operands are NumPy arrays, copied there and back.

    A *snippet* is an expression in the operands and attributes of a declared elementwise operation. It runs on the
    device of the operands; minigrad generates the loops, vectorised by 16, for any shape and dtype. While Taichi runs
    on a GPU, ``cpu`` operands are copied to the GPU and the result is copied back.

    >>> import minigrad as mg
    >>> swish = mg.Op(
    ...     "swish",
    ...     r"\\operatorname{swish}({a})",
    ...     vjp=(lambda g, y, a: g * (y + mg.sigmoid(a) * (1.0 - y)),),
    ...     domain=(mg.Domain(-3.0, 3.0),),
    ...     promotes="float",
    ... )
    >>> @mg.kernel("swish", "numpy")
    ... def _(a):
    ...     import numpy as np
    ...     return a / (1 + np.exp(-a))
    >>> mg.kernel("swish", "cpu", "a / (1 + ti.exp(-a))")
    >>> x = mg.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    >>> y = swish(x)
    >>> y.sum().backward()
    >>> y, x.grad
    (tensor([-0.2689,  0.0000,  1.7616], grad_fn=<SwishBackward>), tensor([0.0723, 0.5000, 1.0908]))
    >>> mg.gradcheck(swish, mg.tensor([[0.5, -2.0]], dtype=mg.float64, requires_grad=True))
    True

    The same operation as a Taichi kernel with an explicit loop:

    >>> import taichi as ti
    >>> @ti.kernel
    ... def swish_kernel(a: ti.types.ndarray(), y: ti.types.ndarray()):
    ...     for i in ti.grouped(a):
    ...         y[i] = a[i] / (1 + ti.exp(-a[i]))
    >>> @mg.kernel("swish", "cpu")
    ... def _(a):
    ...     import numpy as np
    ...     y = np.empty_like(a)
    ...     swish_kernel(a, y)
    ...     return y
    >>> swish(mg.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2689,  0.0000,  1.7616])
    >>> _ = mg.OPS.pop("swish")  # clean up
    """
    if snippet is not None:
        dispatch.kernel(op, device)(_compile_snippet(op, device, snippet))
        return None

    def register(function: Kernel) -> Kernel:
        dispatch.kernel(op, device)(_wrap_function(op, device, function))
        return function

    return register


def _compile_snippet(op: str, device: str, snippet: str) -> Kernel:
    arrays = import_module("minigrad.backends.arrays")
    if device == "numpy" or device not in DEVICES:
        supported = ", ".join(repr(name) for name in DEVICES if name != "numpy") or "no available device"
        raise ArgumentError(
            f"kernel: {op} on {device!r}: Taichi compiles snippets only for {supported}.\n"
            f"  Register a function instead: @mg.kernel({op!r}, {device!r}) above def {op}(a): …"
        )
    declared = OPS.get(op)
    if declared is None or not declared.domain or declared.outputs > 1 or declared.aux:
        raise ArgumentError(
            f"kernel: {op} is not a declared elementwise operation, which a snippet requires.\n"
            f"  Declare it first, with a domain for each operand: mg.Op({op!r}, formula, vjp=…, domain=…)."
        )
    kernel_function: Kernel = arrays.from_snippet(op, declared.inputs, declared.attrs, snippet)
    return kernel_function


def _wrap_function(op: str, device: str, function: Kernel) -> Kernel:
    """Wrap `function` to validate its results. Raises DTypeError if it is not callable."""
    check_callable(function, f"kernel: {op} on {device!r}")
    if device == "python" or not inspect.isfunction(function):
        return function

    def run(*inputs: Any, **attrs: Any) -> Any:
        if device not in DEVICES:  # a user-defined device
            return function(*inputs, **attrs)
        arrays = import_module("minigrad.backends.arrays")
        with arrays.allow_custom_kernel(device):
            result = arrays.from_custom_kernel(device, function(*arrays.to_custom_kernel(device, inputs), **attrs))
        for output in result if isinstance(result, tuple) else (result,):
            _check_result(op, device, inputs, output)
        return result

    wrapper: Any = functools.update_wrapper(run, function)
    wrapper.__kwdefaults__ = function.__kwdefaults__  # the runner checks it for an out= parameter
    return run


def _check_result(op: str, device: str, inputs: tuple[Any, ...], result: Any) -> None:
    """Raise an error unless `result` is an array of `device`, with the broadcast shape if `op` is elementwise."""
    if device == "numpy" and hasattr(result, "__float__") and not hasattr(result, "shape"):
        return  # a scalar, which NumPy converts to an array
    if DEVICE_BY_ARRAY_TYPE.get(result.__class__) != device and not (
        device == "numpy" and hasattr(result, "__array_interface__")
    ):
        array_type = next(kind.__name__ for kind, device_name in DEVICE_BY_ARRAY_TYPE.items() if device_name == device)
        advice = "Allocate it with y = np.empty_like(a), and let a Taichi kernel write to y."
        raise DTypeError(
            f"{op}: expected its kernel for {device!r} to return a {array_type}, an array of that device, but got "
            f"{type(result).__module__}.{type(result).__name__}.\n  "
            + ("Return its array, y._array." if hasattr(result, "_array") else advice)
        )
    declared = OPS.get(op)
    shapes = [x.shape for x in inputs if x.__class__ in DEVICE_BY_ARRAY_TYPE]  # type: ignore[attr-defined]
    if declared is not None and declared.domain and result.shape != broadcast_shapes(*shapes, op=op):
        raise ShapeError(
            f"{op}: its kernel for {device!r} returned shape {result.shape}, but the operands, of shapes "
            f"{', '.join(map(str, shapes))}, broadcast to {broadcast_shapes(*shapes, op=op)}."
        )
