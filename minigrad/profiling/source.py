"""Kernel source inspection: `kernel_source` shows the kernels that run for an operation, a tensor or a function.

Nothing is stored during normal execution. The operation is executed again while a listener collects the launched
kernels, so normal launches have no overhead and the source is that of the kernels that just ran.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from textwrap import dedent
from typing import Any, cast

import numpy as np

from minigrad.backends import arrays
from minigrad.core.dispatch import Call, disable_taps, get_kernels, tap
from minigrad.core.dtypes import get_default_dtype
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, describe_type
from minigrad.core.grad_mode import no_grad
from minigrad.core.graph import Node
from minigrad.core.op import OPS, Op
from minigrad.core.step import Step
from minigrad.core.storage import DEVICE_BY_ARRAY_TYPE, get_allocator, get_default_device
from minigrad.core.tensor import Tensor, wrap

__all__ = ["Source", "kernel_source"]


class Source(str):
    """Kernel source code, with syntax highlighting in notebooks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return f"```python\n{self}\n```"


def kernel_source(target: str | Op | Node | Callable[..., Any], *operands: Any, **attrs: Any) -> Source:
    """Return the source code of the kernels that compute `target`, each with a comment that describes the call.

    `target` is a tensor or Value, whose operation is executed again on its saved operands, or else on placeholders of
    the same dtype and shape; or an operation or its name; or any function. Operations and functions are called with
    `operands` and `attrs`; elementwise operations have default operands.

    On ``numpy`` and ``python`` a kernel is a Python or NumPy function. On the other devices it is source code that
    minigrad generated for these dtypes and that Taichi compiled.

    Raises GraphError for a leaf, ArgumentError for an unknown operation.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0], device="numpy", requires_grad=True)
    >>> print(mg.kernel_source(x.relu()))
    # relu on numpy: float32 (2,) -> float32 (2,)
    @kernel("relu", DEVICE)
    def relu(a: Array) -> Array:
        return np.maximum(a, 0)
    """
    if isinstance(target, Node) and not (operands or attrs):
        target, operands, attrs = _operation_of(target)
    elif isinstance(target, str):
        target = _get_op(target)
    if isinstance(target, Op) and not operands:
        operands = _default_operands(target)
    if not callable(target):
        raise DTypeError(
            f"kernel_source: {target!r:.100} is {describe_type(target)}; expected a tensor, operation or function."
        )
    calls: list[tuple[Call, list[Any]]] = []
    launched: list[Any] = []

    def on_call(call: Call) -> None:
        calls.append((call, launched.copy()))
        launched.clear()

    grad_context = no_grad() if isinstance(target, Op) else nullcontext()
    with (
        disable_taps(),
        tap(on_call),
        arrays.on_launch(launched.append),
        grad_context,
    ):  # The calls are not recorded in the user's profile.
        target(*operands, **attrs)
    return Source("\n\n".join([_format_call(*call) for call in calls]) or "# No kernel ran.")


def _get_op(name: str) -> Op:
    if name not in OPS:
        matches = difflib.get_close_matches(name, OPS, 1)
        raise ArgumentError(
            f"kernel_source: unknown operation {name!r}{f'; did you mean {matches[0]!r}?' if matches else '.'}\n"
            "  `minigrad ops` lists them. For a function, pass the function and its arguments: "
            "mg.kernel_source(mg.functional.linear, x, w)."
        )
    return OPS[name]


def _default_operands(op: Op) -> tuple[Tensor, ...]:
    """Return operands in the domain of an elementwise operation, of the default dtype on the default device."""
    if not op.domain:
        arguments = ", ".join([*op.inputs, *(f"{name}=…" for name in op.attrs if name not in op.defaults)])
        raise ArgumentError(
            f"kernel_source: the source of {op.name} depends on its operands, but none were given.\n"
            f"  Pass them: mg.kernel_source({op.name!r}, {arguments}); or a tensor that it computed: "
            "mg.kernel_source(y)."
        )
    rows = [np.linspace(domain.low, domain.high, 64, dtype=get_default_dtype().name) for domain in op.domain]
    return tuple([wrap(get_allocator(get_default_device()).copy(row)) for row in rows])


def _operation_of(node: Node) -> tuple[Op, tuple[Any, ...], dict[str, Any]]:
    """Return the operation that computed `node`, its operands (or placeholders for them), and its attributes."""
    step = node.grad_fn if isinstance(node, Tensor) else node
    if step is not None and step._op is OPS["pick"]:  # one of several outputs
        step = step._inputs[0]
    if step is None or step._op is None:
        raise GraphError(
            "kernel_source: this tensor is a leaf, with no grad_fn: it was created from data, or computed "
            "in no-grad mode.\n"
            "  Pass a result, mg.kernel_source(x.exp()) where x has requires_grad=True, or the operation, "
            'mg.kernel_source("exp", x).'
        )
    op, operands = step._op, step._inputs
    if op.name not in OPS:
        raise GraphError(
            f"kernel_source: {op.name} is a Function, whose forward pass is arbitrary Python code.\n"
            f"  Inspect the kernels that it runs: mg.kernel_source({op.name}.apply, …) with its operands."
        )
    if isinstance(node, Tensor):
        saved = (cast(Step, step)._saved or (None,) * (1 + len(operands)))[1:]
        saved_operands = zip(saved, cast(Step, step).constants, operands, strict=True)
        operands = tuple([_operand(op, k, *saved_operand, node) for k, saved_operand in enumerate(saved_operands)])
    static = step._static(as_nodes=True)
    return op, operands, {name: static[name] for name in op.attrs}


def _operand(op: Op, slot: int, saved: Any, constant: Any, edge: Any, result: Tensor) -> Any:
    """Return an operand: the saved array, the leaf or constant, or else ones of the same dtype and shape."""
    if saved is not None:
        return saved
    if constant is not None or edge is None or isinstance(edge, Tensor):  # None: an omitted operand
        return edge if constant is None else wrap(constant) if constant.__class__ in DEVICE_BY_ARRAY_TYPE else constant
    if isinstance(edge, Node):
        return wrap(get_allocator(result.device).copy(np.ones(edge._shape, edge._dtype)))  # type: ignore[attr-defined]
    raise GraphError(
        f"kernel_source: operand {slot} of {op.name}, a large tensor that does not require grad, has been freed.\n"
        f"  Pass the operands: mg.kernel_source({op.name!r}, {', '.join(op.inputs)})."
    )


def _format_call(call: Call, launched: list[Any]) -> str:
    """Format the source of a kernel call, of its launched kernels or else its function, below a title comment."""
    operand_texts = [_type_text(x) for x in call.inputs] + [
        f"{name}={value!r:.40}" for name, value in call.attrs.items()
    ]
    results = call.result if isinstance(call.result, tuple) else (call.result,)
    title = f"# {call.op} on {call.device}: {', '.join(operand_texts)} -> {', '.join(map(_type_text, results))}"
    function = inspect.unwrap(get_kernels(call.op)[call.device])
    if launched:
        if len(launched) == 1:
            return f"{title}\n{launched[0].compiled_source.rstrip()}"
        sources = [
            f"# {k} of {len(launched)}: {launch.name}\n{launch.compiled_source}" for k, launch in enumerate(launched, 1)
        ]
        return f"{title}, in {len(launched)} launches\n\n" + "\n".join(sources).rstrip()
    if call.device not in ("numpy", "python") and function.__module__.startswith("minigrad."):
        return (
            f"{title}\n# No kernel launched: there is nothing to compute, or the result is a view of the same memory."
        )
    try:
        return f"{title}\n{dedent(inspect.getsource(function)).rstrip()}"
    except (TypeError, OSError):  # It is not a Python function, or its source is not available.
        return f"{title}\n{_qualified_name(function)}"


def _qualified_name(function: Any) -> str:
    module = getattr(function, "__module__", None) or ("numpy" if isinstance(function, np.ufunc) else "")
    return f"{module.removeprefix('_')}.{function.__name__}".lstrip(".")


def _type_text(x: Any) -> str:
    return f"{x.dtype} {tuple(x.shape)}" if hasattr(x, "dtype") else repr(x)[:40]
