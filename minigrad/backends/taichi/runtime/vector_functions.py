"""Source of exp, log, tanh, abs and erf for vectors of sixteen float32, since Taichi provides them only for scalars.

`cast_literals` converts float literals to the kernel's type; otherwise all of them would have Taichi's default type.
"""

from __future__ import annotations

import re
from textwrap import indent

from minigrad.backends.taichi.runtime.muladd import FUSED, fma_line, fma_vectors_line, polynomial_lines

__all__ = ["VECTOR_FUNCTIONS", "cast_literals", "scalar_function"]


def _clamp_expression(x: str, low: float, high: float) -> str:
    """Return an expression that clamps `x` and propagates NaN, unlike `ti.min` and `ti.max`. It compiles to two
    instructions rather than six."""
    return f"ti.select({x} < {low}, {low}, ti.select({x} > {high}, {high}, {x}))"


# Coefficients, highest power first, of (exp(r) - 1 - r) / r**2, (log(1 + f) - f + f**2 / 2) / f**3, and of numerator
# and denominator of tanh(x) / x and erf(x) / x in x**2.
_EXP = (0.001395047939, 0.008368883972, 0.04166620598, 0.1666651888, 0.5000000095)
_LOG = (0.08700368066, -0.1426748928, 0.1491478999, -0.1657758465, 0.1996306192, -0.2500133705, 0.3333391078)
_TANH = (-1.220360447e-11, 3.058522652e-08, 2.800754925e-05, 0.003868332374, 0.136799188, 0.9999999987)
_TANH_DENOMINATOR = (1.287372741e-06, 0.0003938639171, 0.02724585586, 0.4701325086, 1.0)
_ERF = (2.050074782e-06, 0.0002848835241, 0.003765665815, 0.05274887736, 0.1904076394, 1.128379146)
_ERF_DENOMINATOR = (3.809162664e-05, 0.00116254671, 0.01496931636, 0.1141095951, 0.5020771177, 1.0)

# Elementwise code for platforms without muladd.ll. In long sources LLVM 15 may vectorise it, for a CPU with AVX-512, to
# a vector type that does not exist, and abort the process.
_SCALED = """half_power = ti.Vector([
        ti.bit_cast(((ti.cast(k[j], ti.i32) >> 1) << 23) + 1065353216, ti.f32) for j in range(16)
    ])
    other_power = ti.Vector([
        ti.bit_cast(((ti.cast(k[j], ti.i32) - (ti.cast(k[j], ti.i32) >> 1)) << 23) + 1065353216, ti.f32)
        for j in range(16)
    ])
    y = y * half_power * other_power"""
_SPLIT = """k = ti.Vector([ti.cast((ti.bit_cast(u[j], ti.i32) - 1060439283) >> 23, ti.f32) for j in range(16)])
    u = ti.Vector([
        ti.bit_cast(((ti.bit_cast(u[j], ti.i32) - 1060439283) & 8388607) + 1060439283, ti.f32) for j in range(16)
    ])"""


def _vectors(fused: bool) -> dict[str, str]:
    """Return the source of functions of vectors of sixteen float32. Their polynomials are minimax fits, computed with
    Lawson's weights, with errors of at most 3e-8."""

    def lines(name: str, coefficients: tuple[float, ...], x: str) -> str:
        return indent(polynomial_lines(name, coefficients, x, fused), "    ").lstrip()

    return {
        # 2**k exp(r), |r| <= log(2) / 2; 2**k is a product of two powers, so that denormals are exact
        "exp16": f"""t = {_clamp_expression("x", -104.0, 89.0)}
    k = ti.floor(t * 1.4426950408889634 + 0.5)
    r = t
    factor = -0.693359375
    {fma_line("r", "k", "factor", "float32", fused)}
    factor = 2.12194440e-4
    {fma_line("r", "k", "factor", "float32", fused)}
    {lines("p", _EXP, "r")}
    square, y = r * r, r
    {fma_vectors_line("y", "square", "p", "float32", fused)}
    y = y + 1.0
    {"muladd.f32_ldexp(y, k)" if fused else _SCALED}
    return y""",
        # x = 2**k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); 1060439283 are the bits of sqrt(1/2)
        "log16": f"""tiny = x < 1.17549435e-38
    u = ti.select(tiny, x * 33554432.0, x)
    k = u
    {"muladd.f32_frexp(u, k)" if fused else _SPLIT}
    k = k - ti.select(tiny, 25.0, 0.0)
    f = u - 1.0
    {lines("p", _LOG, "f")}
    y = ((f * f * (f * p - 0.5) - k * 2.12194440e-4) + f) + k * 0.693359375
    return ti.select(x > 0, ti.select(x < inf, y, x), ti.select(x == 0, -inf, nan))""",
        "tanh16": f"""t = {_clamp_expression("x", -9.02, 9.02)}
    u = t * t
    {lines("p", _TANH, "u")}
    {lines("q", _TANH_DENOMINATOR, "u")}
    y = t * p / q
    return {_clamp_expression("y", -1.0, 1.0)}""",
        "erf": f"""t = {_clamp_expression("x", -3.92, 3.92)}
    u = t * t
    {lines("p", _ERF, "u")}
    {lines("q", _ERF_DENOMINATOR, "u")}
    y = t * p / q
    return {_clamp_expression("y", -1.0, 1.0)}""",
        "abs16": "return ti.select(x <= 0, 0.0 - x, x)",  # maps -0 to 0
    }


VECTOR_FUNCTIONS = _vectors(FUSED)
_CONSTANTS = {"inf": "ti.math.inf", "nan": "ti.math.nan"}
_FLOAT_LITERAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf|nan)(?!\w)")


def cast_literals(source: str, dtype: str) -> str:
    """Return a source with its float literals converted to one of Taichi's types.

    >>> cast_literals("0.5 * x + 1", "f32")
    'ti.f32(0.5) * x + 1'
    """
    return _FLOAT_LITERAL.sub(lambda found: f"ti.{dtype}({_CONSTANTS.get(found[1], found[1])})", source)


def scalar_function(name: str) -> str:
    """Return the source of the scalar version of a vector function, such as ``log_scalar``. The built-in functions of
    some GPUs are too inaccurate."""
    vector_source = _vectors(False)[f"{name}16"]
    source = re.sub(r"ti\.Vector\(\[\s*(.*?)\s*for j in range\(16\)\s*\]\)", r"(\1)", vector_source, flags=re.S)
    return f"@ti.func\ndef {name}_scalar(x):\n    {cast_literals(source.replace('[j]', ''), 'f32')}\n"
