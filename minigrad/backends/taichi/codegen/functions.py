"""Sources of functions that Taichi lacks. The functions that a snippet calls are prepended to its kernel.

The sources also work on vectors of sixteen float32 if Taichi can lower their operations. They contain ``y * -1``
instead of -y, and ``1.0 / y`` with a float literal, since the other forms abort the process on vectors.
`vector_functions` implements functions that Taichi provides only for scalars.
"""

from __future__ import annotations

import re

from minigrad.backends.numpy.elementwise import ERF_FAR, ERF_NEAR
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.muladd import horner
from minigrad.backends.taichi.runtime.vector_functions import VECTOR_FUNCTIONS, cast_literals

__all__ = ["BINARY_FUNCTIONS", "FUNCTIONS", "has_vector_form", "required_functions", "to_vector_form"]

FUNCTIONS: dict[str, str] = {
    "isnan": "return (x == x) == 0",  # in Taichi nan != nan is false
    "isinf": "return (x == inf) | (x == -inf)",
    "isfinite": "return x - x == 0",
    "truncated": "return ti.select(x < 0, ti.ceil(x), ti.floor(x))",
    # rounds half to even; a zero keeps the sign of x
    "rounded": """low = ti.floor(x)
    fraction = x - low
    even = ti.select(ti.floor(low * 0.5) * 2 == low, low, low + 1)
    nearest = ti.select(fraction < 0.5, low, ti.select(fraction > 0.5, low + 1, even))
    return ti.select(nearest == 0, x * 0, nearest)""",
    # W. Kahan: the rounding error of 1 + x also occurs in the divisor, and cancels out
    "log1p": """u = 1 + x
    d = u - 1
    return ti.select(d == 0, x, ti.select(x > 1e30, ti.log(x), ti.log(u) * (x / ti.select(d == 0, d + 1, d))))""",
    "expm1": """u = ti.exp(x)
    d = u - 1
    l = ti.log(u)
    is_regular = (d != 0) & (d != -1) & (u < 1e30)
    return ti.select(is_regular, d * (x / ti.select(is_regular, l, l * 0 + 1)), ti.select(d == 0, x, d))""",
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
    # Taichi's pow is defined only for positive bases
    "power": """size, is_integer = ti.abs(x), ti.floor(y) == y
    odd = is_integer & ((ti.floor(y * 0.5) * 2 == y) == 0)
    result = ti.pow(ti.select(size == 0, 1.0, size), y)
    power_of_zero = ti.select(y == 0, 1.0, ti.select(y > 0, 0.0, inf))
    result = ti.select(size == 0, power_of_zero, result)
    return ti.select(x < 0, ti.select(is_integer, ti.select(odd, result * -1, result), nan), result)""",
    # by repeated squaring; a power with a negative exponent is truncated to an int
    "power_of_ints": """result, base, exponent = x * 0 + 1, x, ti.cast(y, ti.i64)
    while exponent > 0:
        if exponent % 2 == 1:
            result *= base
        base *= base
        exponent //= 2
    odd = ti.cast(y, ti.i64) % 2 == 1
    return ti.select(y >= 0, result, ti.select(x == 1, x, ti.select(x == -1, ti.select(odd, x, x * -1), x * 0)))""",
    # The remainder of |x| modulo |y|: subtract multiples of |y| by powers of two, largest first, so that each
    # difference is exact, unlike x - y * floor(x / y).
    "fmod_abs": """remainder, multiple, divisor = ti.abs(x), ti.abs(y), ti.abs(y)
    while (multiple <= remainder * 0.5) & (multiple > 0) & (remainder < inf):
        multiple = multiple + multiple
    while (multiple >= divisor) & (multiple > 0) & (multiple < inf) & (remainder < inf):
        remainder = ti.select(remainder >= multiple, remainder - multiple, remainder)
        multiple = multiple * 0.5
    return ti.select((remainder < inf) & (divisor > 0), remainder, nan)""",
    "floor_mod": """remainder = fmod_abs(x, y)
    remainder = ti.select(x < 0, remainder * -1, remainder)
    remainder = ti.select((remainder == 0) | ((remainder < 0) == (y < 0)), remainder, remainder + y)
    return ti.select(remainder == 0, ti.abs(remainder) * ti.select(y < 0, -1, 1), remainder)""",
    # divides by y only once, since CUDA replaces two quotients by products with the rounded reciprocal
    "floor_div": """remainder = fmod_abs(x, y)
    remainder = ti.select(x < 0, remainder * -1, remainder)
    quotient = (x - remainder) / y
    quotient = ti.select((remainder == 0) | ((remainder < 0) == (y < 0)), quotient, quotient - 1)
    low = ti.floor(quotient)
    nearest = ti.select(quotient - low > 0.5, low + 1, low)
    return ti.select(y == 0, x / (y * 0.5), ti.select(nearest == 0, x / (y + y) * 0, nearest))""",
    "sigmoid": """small = ti.exp(ti.abs(x) * -1)
    return ti.select(x >= 0, small * 0 + 1, small) / (1 + small)""",
    "softplus": "return ti.max(x, 0) + log1p(ti.exp(ti.abs(x) * -1))",
    "erf": f"""size = ti.min(ti.abs(x), 6)
    u = ti.min(size, 0.46875) * ti.min(size, 0.46875)
    inner = x * (({horner(ERF_NEAR[0], "u")}) / ({horner(ERF_NEAR[1], "u")}))
    tail = 1 - ti.exp(size * size * -1) * (({horner(ERF_FAR[0], "size")}) / ({horner(ERF_FAR[1], "size")}))
    return ti.select((x == x) == 0, x, ti.select(size <= 0.46875, inner, ti.select(x < 0, tail * -1, tail)))""",
}

BINARY_FUNCTIONS = frozenset({"power", "power_of_ints", "fmod_abs", "floor_mod", "floor_div"})  # functions of x and y
_SCALAR_FUNCTION = re.compile(r"ti\.(exp|log|tanh|abs)\(")
_LOWERABLE = {"ti.select", "ti.min", "ti.max", "ti.sqrt", "ti.floor", "ti.ceil"}  # these lower on vectors
_CALLED = re.compile(r"(?<![\w.])(\w+)\(")


def to_vector_form(source: str) -> str:
    """Return a source with the vector versions of Taichi's scalar functions.

    >>> to_vector_form("a + ti.exp(a)")
    'a + exp16(a)'
    """
    return _SCALAR_FUNCTION.sub(r"\g<1>16(", source)


@arch_cache()
def has_vector_form(source: str) -> bool:
    """Return whether every function in a source has a vector version, and no integer literal is divided by a vector."""
    for prefix, name in re.findall(r"(?<![\w.])(ti\.)?(\w+)\(", to_vector_form(source)):
        if prefix + name in _LOWERABLE or name in VECTOR_FUNCTIONS:
            continue
        if prefix or name not in FUNCTIONS or name in BINARY_FUNCTIONS or not has_vector_form(FUNCTIONS[name]):
            return False
    return not re.search(r"[%~^]|//|ti\.i\d|(?<![\w.])\d+ /", source)


@arch_cache()
def required_functions(source: str, dtype: str, vectors: bool = False) -> str:
    """Return the functions that a source calls, in dependency order. `dtype` is the Taichi type of scalars."""
    functions = FUNCTIONS | VECTOR_FUNCTIONS if vectors else FUNCTIONS
    sources: dict[str, str] = {}

    def visit(body: str) -> None:
        for name in _CALLED.findall(body):
            if name in functions and name not in sources:
                inner = to_vector_form(functions[name]) if vectors else functions[name]
                visit(inner)
                parameters = "x, y" if name in BINARY_FUNCTIONS else "x"
                sources[name] = f"@ti.func\ndef {name}({parameters}):\n    {cast_literals(inner, dtype)}\n\n\n"

    visit(source)
    return "".join(sources.values())
