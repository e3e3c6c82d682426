"""Functions of numbers that Taichi lacks, as texts: the generator puts those that a snippet names before its kernel.

Fractions in a text take the type that the kernel computes in, by `typed`: Taichi would make them all of one type.

Texts serve vectors of sixteen float32 too, where Taichi can lower what they are made of: so they write ``y * -1`` for
-y and ``1.0 / y`` with a fraction, since the other forms abort the process there. What Taichi has for numbers only is
in `VECTORS`, made of arithmetic.
"""

from __future__ import annotations

import re
from functools import cache
from textwrap import indent

from minigrad.backends.numpy.elementwise import _P, _Q, _R, _S
from minigrad.backends.taichi.muladd import FUSED, added_product, added_products, horner, polynomial

__all__ = ["FUNCTIONS", "OF_TWO", "VECTORS", "alone", "needed", "packable", "packed", "typed"]


def _clamped(x: str, low: float, high: float) -> str:
    """Unlike `ti.min` and `ti.max` it lets nan through, and takes two instructions in place of six."""
    return f"ti.select({x} < {low}, {low}, ti.select({x} > {high}, {high}, {x}))"


# Highest power first: of (exp(r) - 1 - r) / r**2, (log(1 + f) - f + f**2 / 2) / f**3; and of tanh(x) / x by x**2,
# above and below.
_EXP = (0.001395047939, 0.008368883972, 0.04166620598, 0.1666651888, 0.5000000095)
_LOG = (0.08700368066, -0.1426748928, 0.1491478999, -0.1657758465, 0.1996306192, -0.2500133705, 0.3333391078)
_TANH = (-1.220360447e-11, 3.058522652e-08, 2.800754925e-05, 0.003868332374, 0.136799188, 0.9999999987)
_TANH_BELOW = (1.287372741e-06, 0.0003938639171, 0.02724585586, 0.4701325086, 1.0)

FUNCTIONS: dict[str, str] = {
    "isnan": "return (x == x) == 0",  # in Taichi nan != nan is false
    "isinf": "return (x == inf) | (x == -inf)",
    "isfinite": "return x - x == 0",
    "truncated": "return ti.select(x < 0, ti.ceil(x), ti.floor(x))",
    # of a half the even neighbour; a zero has the sign of x
    "rounded": """low = ti.floor(x)
    part = x - low
    even = ti.select(ti.floor(low * 0.5) * 2 == low, low, low + 1)
    near = ti.select(part < 0.5, low, ti.select(part > 0.5, low + 1, even))
    return ti.select(near == 0, x * 0, near)""",
    # W. Kahan: what is lost in 1 + x is lost in the same way beside it, and divides out
    "log1p": """u = 1 + x
    d = u - 1
    return ti.select(d == 0, x, ti.select(x > 1e30, ti.log(x), ti.log(u) * (x / ti.select(d == 0, d + 1, d))))""",
    "expm1": """u = ti.exp(x)
    d = u - 1
    l = ti.log(u)
    good = (d != 0) & (d != -1) & (u < 1e30)
    return ti.select(good, d * (x / ti.select(good, l, l * 0 + 1)), ti.select(d == 0, x, d))""",
    "log2": "return ti.log(x) * 1.4426950408889634",
    "sinh": """e = expm1(ti.abs(x))
    y = ti.select(e > 1e15, ti.exp(ti.abs(x) * 0.5) * (ti.exp(ti.abs(x) * 0.5) * 0.5), (e + e / (e + 1)) * 0.5)
    return ti.select(x < 0, y * -1, ti.select(x == 0, x, y))""",
    "cosh": """h = ti.exp(ti.abs(x) * 0.5)
    return ti.select(h > 1e7, h * (h * 0.5), (h * h + 1.0 / (h * h)) * 0.5)""",
    "asinh": """s = ti.abs(x)
    big = s > 1e8
    t = ti.select(big, s * 0, s)
    y = ti.select(big, ti.log(s) + 0.6931471805599453, log1p(t + t * t / (1 + ti.sqrt(t * t + 1))))
    return ti.select(x < 0, y * -1, ti.select(x == 0, x, y))""",
    "acosh": """big = x > 1e8
    t = ti.select(big, x * 0 + 1, x) - 1
    y = ti.select(big, ti.log(x) + 0.6931471805599453, log1p(t + ti.sqrt(t * (t + 2))))
    return ti.select(x < 1, nan, y)""",
    "atanh": """s = ti.abs(x)
    y = 0.5 * log1p(2 * s / (1 - s))
    return ti.select(x < 0, y * -1, ti.select(x == 0, x, y))""",
    # by squaring; to a whole power below 0 it is 1 / x, cut to a whole number
    # where pow is of positive numbers only
    "power": """size, whole = ti.abs(x), ti.floor(y) == y
    odd = whole & ((ti.floor(y * 0.5) * 2 == y) == 0)
    found = ti.pow(ti.select(size == 0, 1.0, size), y)
    none = ti.select(y == 0, 1.0, ti.select(y > 0, 0.0, inf))
    found = ti.select(size == 0, none, found)
    return ti.select(x < 0, ti.select(whole, ti.select(odd, found * -1, found), nan), found)""",
    "power_of_ints": """result, base, left = x * 0 + 1, x, ti.cast(y, ti.i64)
    while left > 0:
        if left % 2 == 1:
            result *= base
        base *= base
        left //= 2
    odd = ti.cast(y, ti.i64) % 2 == 1
    return ti.select(y >= 0, result, ti.select(x == 1, x, ti.select(x == -1, ti.select(odd, x, x * -1), x * 0)))""",
    # What is left of |x| when |y| is taken away as often as can be. Twice |y| and so on are taken away, largest first:
    # so each difference is exact, where x - y * floor(x / y) is not.
    "left_over": """rest, part, by = ti.abs(x), ti.abs(y), ti.abs(y)
    while (part <= rest * 0.5) & (part > 0) & (rest < inf):
        part = part + part
    while (part >= by) & (part > 0) & (part < inf) & (rest < inf):
        rest = ti.select(rest >= part, rest - part, rest)
        part = part * 0.5
    return ti.select((rest < inf) & (by > 0), rest, nan)""",
    "modulo": """rest = left_over(x, y)
    rest = ti.select(x < 0, rest * -1, rest)
    rest = ti.select((rest == 0) | ((rest < 0) == (y < 0)), rest, rest + y)
    return ti.select(rest == 0, ti.abs(rest) * ti.select(y < 0, -1, 1), rest)""",
    # the last: CUDA makes products of two quotients by y
    "quotient": """rest = left_over(x, y)
    rest = ti.select(x < 0, rest * -1, rest)
    whole = (x - rest) / y
    whole = ti.select((rest == 0) | ((rest < 0) == (y < 0)), whole, whole - 1)
    low = ti.floor(whole)
    near = ti.select(whole - low > 0.5, low + 1, low)
    return ti.select(y == 0, x / (y * 0.5), ti.select(near == 0, x / y * 0, near))""",
    "sigmoid": """small = ti.exp(ti.abs(x) * -1)
    return ti.select(x >= 0, small * 0 + 1, small) / (1 + small)""",
    "softplus": "return ti.max(x, 0) + log1p(ti.exp(ti.abs(x) * -1))",
    "erf": f"""size = ti.min(ti.abs(x), 6)
    u = ti.min(size, 0.46875) * ti.min(size, 0.46875)
    near = x * (({horner(_P, "u")}) / ({horner(_Q, "u")}))
    far = 1 - ti.exp(size * size * -1) * (({horner(_R, "size")}) / ({horner(_S, "size")}))
    return ti.select((x == x) == 0, x, ti.select(size <= 0.46875, near, ti.select(x < 0, far * -1, far)))""",
}

# Number by number, where muladd.ll is not to be called. In a long text LLVM 15 can make of that, for a processor
# with AVX-512, a vector that there is not, and end the process.
_SCALED = """half = ti.Vector([
        ti.bit_cast(((ti.cast(k[j], ti.i32) >> 1) << 23) + 1065353216, ti.f32) for j in range(16)
    ])
    rest = ti.Vector([
        ti.bit_cast(((ti.cast(k[j], ti.i32) - (ti.cast(k[j], ti.i32) >> 1)) << 23) + 1065353216, ti.f32)
        for j in range(16)
    ])
    y = y * half * rest"""
_SPLIT = """k = ti.Vector([ti.cast((ti.bit_cast(u[j], ti.i32) - 1060439283) >> 23, ti.f32) for j in range(16)])
    u = ti.Vector([
        ti.bit_cast(((ti.bit_cast(u[j], ti.i32) - 1060439283) & 8388607) + 1060439283, ti.f32) for j in range(16)
    ])"""


def _vectors(fused: bool) -> dict[str, str]:
    """Functions of float32 in vectors of sixteen. The polynomials are minimax fits, made with Lawson's weights, to 3e-8
    or better."""

    def lines(name: str, coefficients: tuple[float, ...], x: str) -> str:
        return indent(polynomial(name, coefficients, x, fused), "    ").lstrip()

    return {
        # 2**k exp(r), |r| <= log(2) / 2, where 2**k is a product of two powers, so that denormal numbers come out right
        "exp16": f"""t = {_clamped("x", -104.0, 89.0)}
    k = ti.floor(t * 1.4426950408889634 + 0.5)
    r = t
    by = -0.693359375
    {added_product("r", "k", "by", "float32", fused)}
    by = 2.12194440e-4
    {added_product("r", "k", "by", "float32", fused)}
    {lines("p", _EXP, "r")}
    square, y = r * r, r
    {added_products("y", "square", "p", "float32", fused)}
    y = y + 1.0
    {"muladd.f32_scale(y, k)" if fused else _SCALED}
    return y""",
        # x = 2**k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); 1060439283 are the bits of sqrt(1/2)
        "log16": f"""tiny = x < 1.17549435e-38
    u = ti.select(tiny, x * 33554432.0, x)
    k = u
    {"muladd.f32_split(u, k)" if fused else _SPLIT}
    k = k - ti.select(tiny, 25.0, 0.0)
    f = u - 1.0
    {lines("p", _LOG, "f")}
    y = ((f * f * (f * p - 0.5) - k * 2.12194440e-4) + f) + k * 0.693359375
    return ti.select(x > 0, ti.select(x < inf, y, x), ti.select(x == 0, -inf, nan))""",
        "tanh16": f"""t = {_clamped("x", -9.02, 9.02)}
    u = t * t
    {lines("p", _TANH, "u")}
    {lines("q", _TANH_BELOW, "u")}
    y = t * p / q
    return {_clamped("y", -1.0, 1.0)}""",
        "abs16": "return ti.select(x <= 0, 0.0 - x, x)",  # of -0 it is 0
    }


VECTORS = _vectors(FUSED)
OF_TWO = frozenset(
    {"power", "power_of_ints", "left_over", "modulo", "quotient"}
)  # functions of x and y, not of x alone
_OF_NUMBERS = re.compile(r"ti\.(exp|log|tanh|abs)\(")
_LOWERED = {"ti.select", "ti.min", "ti.max", "ti.sqrt", "ti.floor", "ti.ceil"}  # known to lower on vectors
_CALLED = re.compile(r"(?<![\w.])(\w+)\(")
_FRACTION = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf|nan)(?!\w)")


def typed(text: str, dtype: str) -> str:
    """A text with its fractions of one of Taichi's types.

    >>> typed("0.5 * x + 1", "f32")
    'ti.f32(0.5) * x + 1'
    """
    return _FRACTION.sub(lambda found: f"ti.{dtype}({_CONSTANTS.get(found[1], found[1])})", text)


def alone(name: str) -> str:
    """The function of VECTORS for single numbers, as ``log_alone``: some GPUs compute their own too coarsely."""
    plain = _vectors(False)[f"{name}16"]
    text = re.sub(r"ti\.Vector\(\[\s*(.*?)\s*for j in range\(16\)\s*\]\)", r"(\1)", plain, flags=re.S)
    return f"@ti.func\ndef {name}_alone(x):\n    {typed(text.replace('[j]', ''), 'f32')}\n"


_CONSTANTS = {"inf": "ti.math.inf", "nan": "ti.math.nan"}


def packed(text: str) -> str:
    """A text with the vector forms of what Taichi has for single numbers.

    >>> packed("a + ti.exp(a)")
    'a + exp16(a)'
    """
    return _OF_NUMBERS.sub(r"\g<1>16(", text)


@cache
def packable(text: str) -> bool:
    """Whether all that a text calls has a form for vectors. (A whole number over a vector aborts the process.)"""
    for prefix, name in re.findall(r"(?<![\w.])(ti\.)?(\w+)\(", packed(text)):
        if prefix + name in _LOWERED or name in VECTORS:
            continue
        if prefix or name not in FUNCTIONS or name in OF_TWO or not packable(FUNCTIONS[name]):
            return False
    return not re.search(r"[%~^]|//|ti\.i\d|(?<![\w.])\d+ /", text)


@cache
def needed(text: str, dtype: str, vectors: bool = False) -> str:
    """The functions that a text calls, each after those that it calls itself, for numbers of one of Taichi's types."""
    known = FUNCTIONS | VECTORS if vectors else FUNCTIONS
    found: dict[str, str] = {}

    def visit(body: str) -> None:
        for name in _CALLED.findall(body):
            if name in known and name not in found:
                inner = packed(known[name]) if vectors else known[name]
                visit(inner)
                takes = "x, y" if name in OF_TWO else "x"
                found[name] = f"@ti.func\ndef {name}({takes}):\n    {typed(inner, dtype)}\n\n\n"

    visit(text)
    return "".join(found.values())
