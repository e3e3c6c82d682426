"""Elementwise kernels whose snippet depends on the dtypes or attributes: rounding, powers, integer division, bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.elementwise import is_large_odd
from minigrad.backends.taichi.codegen.snippets import clamp_snippet
from minigrad.backends.taichi.kernels.elementwise import cast_scalar, evaluate, result_dtype
from minigrad.backends.taichi.runtime.array import TAICHI, current_target
from minigrad.core.dispatch import kernel

__all__: list[str] = []


@kernel("sign", TAICHI)
def sign(a: Any) -> Any:
    if a.dtype.kind in "bu":
        return evaluate("sign", "(a == 0) == 0", (a,), a.dtype)
    snippet = "ti.cast(a > 0, ti.i32) - ti.cast(a < 0, ti.i32)"  # 0 for nan, as in PyTorch
    return evaluate("sign", snippet, (a,), a.dtype)


@kernel("where", TAICHI)
def where(a: Any, b: Any, c: Any, *, out: Any = None) -> Any:
    arrays = [x for x in (b, c) if isinstance(x, np.ndarray)]
    dtype = result_dtype(arrays) if arrays else np.result_type(type(b), type(c))
    b, c = (x if isinstance(x, np.ndarray) else cast_scalar(x, np.dtype(dtype)) for x in (b, c))
    if not isinstance(a, np.ndarray):
        return evaluate("where_constant", "b" if a else "c", (a, b, c), dtype, out)
    return evaluate("where", "ti.select(a != 0, b, c)", (a, b, c), dtype, out)


for _name, _snippet in {
    "ceil": "ti.ceil(a)",
    "floor": "ti.floor(a)",
    "trunc": "truncated(a)",
    "round": "rounded(a)",
}.items():

    def _round_kernel(a: Any, *, out: Any = None, name: str = _name, snippet: str = _snippet) -> Any:
        return evaluate(name, snippet if a.dtype.kind == "f" else "a", (a,), a.dtype, out)

    kernel(_name, TAICHI)(_round_kernel)


@kernel("kl_div", TAICHI)
def kl_div(a: Any, b: Any, *, log_target: bool) -> Any:
    if log_target:
        return evaluate("kl_div_log_target", "ti.exp(b) * (b - a)", (a, b), result_dtype((a, b)))
    return evaluate("kl_div", "ti.select(b == 0, 0, b * ti.log(b)) - b * a", (a, b), result_dtype((a, b)))


@kernel("pow", TAICHI)
def pow(a: Any, b: Any, *, out: Any = None) -> Any:
    dtype = result_dtype((a, b))
    if isinstance(b, float) or isinstance(a, float) or dtype.kind == "f":
        snippet = "power(a, b)" if current_target().lacks_float64 else "ti.pow(a, b)"
        if is_large_odd(b):
            sign, b = ("*", b - 1.0) if b > 0 else ("/", b + 1.0)
            return evaluate("pow_of_large_odd", f"{snippet} {sign} a", (a, b), dtype, out)
        return evaluate("pow", snippet, (a, b), dtype, out)
    return evaluate("power_of_ints", "power_of_ints(a, b)", (a, b), dtype, out)


@kernel("clamp", TAICHI)
def clamp(a: Any, *, min: float | None, max: float | None, out: Any = None) -> Any:
    bounds = {name: bound for name, bound in (("low", min), ("high", max)) if bound is not None}
    snippet = clamp_snippet("low" if "low" in bounds else None, "high" if "high" in bounds else None)
    integral = a.dtype.kind != "f" and all(isinstance(x, int) for x in bounds.values())
    dtype = a.dtype if a.dtype.kind == "f" or integral else np.result_type(a.dtype, np.float64)
    return evaluate("clamp", snippet, (a,), dtype, out, {k: x if integral else float(x) for k, x in bounds.items()})


# Dividing the minimum of an integer dtype by -1 overflows, which traps on the CPU and kills the process.
_SAFE_DIVISOR = "ti.select((b == 0) | (b == -1), b * 0 + 1, b)"


@kernel("floor_divide", TAICHI)
def floor_divide(a: Any, b: Any, *, out: Any = None) -> Any:
    dtype = result_dtype((a, b))
    if dtype.kind == "f":
        return evaluate("floor_divide", "floor_div(a, b)", (a, b), dtype, out)
    return evaluate("floor_divide", f"ti.select(b == -1, a * -1, a // {_SAFE_DIVISOR})", (a, b), dtype, out)


@kernel("remainder", TAICHI)
def remainder(a: Any, b: Any, *, out: Any = None) -> Any:
    dtype = result_dtype((a, b))
    return evaluate("remainder", "floor_mod(a, b)" if dtype.kind == "f" else f"a % {_SAFE_DIVISOR}", (a, b), dtype, out)


for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):

    def _bitwise_kernel(a: Any, b: Any, *, out: Any = None, name: str = f"bitwise_{_name}", sign: str = _sign) -> Any:
        return evaluate(name, f"a {sign} b", (a, b), result_dtype((a, b)), out)

    kernel(f"bitwise_{_name}", TAICHI)(_bitwise_kernel)


@kernel("signbit", TAICHI)
def signbit(a: Any) -> Any:
    snippet = f"ti.bit_cast(a, ti.i{8 * a.itemsize}) < 0" if a.dtype.kind == "f" else "a < 0"
    return evaluate("signbit", snippet, (a,), np.bool_)


@kernel("bitwise_not", TAICHI)
def bitwise_not(a: Any) -> Any:
    return evaluate("bitwise_not", "a == 0" if a.dtype.kind == "b" else "~a", (a,), a.dtype)
