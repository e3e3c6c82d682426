"""Elementwise operations as snippets: Taichi expressions of the operands a, b, c, … and of attributes."""

__all__ = ["PREDICATES", "SNIPPETS", "clamp_snippet"]


def clamp_snippet(low: str | None, high: str | None) -> str:
    """Return a snippet that clamps `a` to the bounds named `low` and `high`. None means no bound; nan propagates."""
    snippet = "a" if low is None else f"ti.select((a < {low}) | (({low} == {low}) == 0), {low}, a)"
    return (
        snippet if high is None else f"ti.select(({snippet} > {high}) | (({high} == {high}) == 0), {high}, {snippet})"
    )


_ROOT, _CUBIC, _HALF = 0.7978845608028654, 0.044715, 0.7071067811865476
_SCALE, _ALPHA = 1.0507009873554805, 1.6732632423543772
# (1 + tanh x) / 2 is sigmoid(2 x), which is accurate for large negative x.
# The sum of the two sigmoids is 1.
_SIGMOID_POSITIVE, _SIGMOID_NEGATIVE = (f"sigmoid({k * _ROOT} * (b + {_CUBIC} * (b * b * b)))" for k in (2, -2))
_DERIVATIVE = f"({2 * _ROOT} * (1 + {3 * _CUBIC} * (b * b)))"

SNIPPETS = {
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "neg": "a * -1",
    "abs": "ti.abs(a)",
    "exp": "ti.exp(a)",
    "log": "ti.log(a)",
    "sqrt": "ti.sqrt(a)",
    "sin": "ti.sin(a)",
    "cos": "ti.cos(a)",
    "tan": "ti.tan(a)",
    "tanh": "ti.tanh(a)",
    "asin": "ti.select(ti.abs(a) <= 1, ti.atan2(a, ti.sqrt((1 - a) * (1 + a))), nan)",  # GPU built-ins are inaccurate
    "acos": "ti.select(ti.abs(a) <= 1, ti.atan2(ti.sqrt((1 - a) * (1 + a)), a), nan)",
    "atan": "ti.select(a == a, ti.atan2(a, 1.0), a)",
    "atan2": "ti.select((a == a) & (b == b), ti.atan2(a, b), a + b)",  # on some GPUs atan2 of nan is 0
    "sinh": "sinh(a)",
    "cosh": "cosh(a)",
    "asinh": "asinh(a)",
    "acosh": "acosh(a)",
    "atanh": "atanh(a)",
    "expm1": "expm1(a)",
    "log1p": "log1p(a)",
    "log2": "log2(a)",
    "erf": "erf(a)",
    "square": "a * a",
    "reciprocal": "1.0 / a",
    "rsqrt": "1.0 / ti.sqrt(a)",
    "maximum": "ti.select(((a == a) == 0) | (a > b), a, b)",
    "minimum": "ti.select(((a == a) == 0) | (a < b), a, b)",
    "lerp": "ti.select(ti.abs(c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c))",
    # --- activations ---
    "sigmoid": "sigmoid(a)",
    "softplus": "softplus(a)",
    "silu": "a * sigmoid(a)",
    "mish": "a * ti.tanh(softplus(a))",
    "softsign": "a / (1 + ti.abs(a))",
    "relu": "ti.select(a <= 0, 0, a)",
    "relu_backward": "ti.select(b <= 0, 0, a)",
    "relu6": "ti.select(a < 0, 0, ti.select(a >= 6, 6, a))",
    "hardtanh": clamp_snippet("min_val", "max_val"),
    "selu": f"ti.select(a <= 0, {_SCALE * _ALPHA} * expm1(ti.select(a <= 0, a, 0)), {_SCALE} * a)",
    "elu": "ti.select(a < 0, alpha * expm1(ti.select(a < 0, a, 0)), a)",
    "leaky_relu": "ti.select(a > 0, a, a * negative_slope)",
    "prelu": "ti.select(a > 0, a, a * b)",
    "step": "ti.select(a > 0, 1, ti.select(a == a, alpha, a))",
    "gelu": f"a * (0.5 * (1 + erf(a * {_HALF})))",
    "gelu_tanh": f"a * sigmoid({2 * _ROOT} * (a + {_CUBIC} * (a * a * a)))",
    "gelu_backward": f"a * (0.5 * (1 + erf(b * {_HALF})) + b * (0.3989422804014327 * ti.exp(-0.5 * (b * b))))",
    "gelu_tanh_backward": (
        f"a * ({_SIGMOID_POSITIVE} + b * (({_SIGMOID_POSITIVE} * {_SIGMOID_NEGATIVE}) * {_DERIVATIVE}))"
    ),
    # --- losses ---
    "mse_loss": "(a - b) * (a - b)",
    "l1_loss": "ti.abs(a - b)",
    "hinge_loss": "ti.select(a * b >= 1, 0, 1 - a * b)",
    "huber_loss": "ti.min(ti.abs(a - b), delta) * (ti.abs(a - b) - 0.5 * ti.min(ti.abs(a - b), delta))",
    "bce_with_logits": "(1 - b) * a + (1 + (c - 1) * b) * softplus(a * -1)",
}
PREDICATES = {
    "lt": "a < b",
    "le": "a <= b",
    "gt": "a > b",
    "ge": "a >= b",
    "eq": "a == b",
    "ne": "(a == b) == 0",
    "isnan": "isnan(a)",
    "isinf": "isinf(a)",
    "isfinite": "isfinite(a)",
    "logical_and": "((a == 0) | (b == 0)) == 0",
    "logical_or": "((a == 0) & (b == 0)) == 0",
    "logical_xor": "((a == 0) == (b == 0)) == 0",
    "logical_not": "a == 0",
}
