"""Each operation at zeros, denormal, large, infinite and NaN operands, near singularities, and over 10⁷ elements.

Values and derivatives must equal PyTorch's, or mpmath's at 50 digits, unless `EXCEPTIONS` says why not. The tolerance
near singularities is 4 ulp, or twice PyTorch's largest error there. No device flushes denormal numbers to zero.
"""

from __future__ import annotations

import itertools
import math
import os
import random
from typing import Any

from torture import Campaign
from torture._value_exceptions import CORNERS, EXCEPTIONS

__all__ = ["CAMPAIGNS"]

ORACLES = ("torch", "mpmath")
PYTORCH_ULPS = 16.0  # ulp: tolerance for PyTorch's results
ULPS = 4.0  # ulp: tolerance for exact results
TOLERANCES = {("mish", "slope"): 12.0}  # computed from a float32 tanh, which SIMD evaluates to 2 ulp
SPECIAL = (0.0, 1e-4, 0.5, 1.0, 3.0, math.inf)
UNARY_VALUES = (
    2.0,
    2.5,
    6.0,
    9.0,
    20.0,
    88.0,
    89.0,
    104.0,
    710.0,
    750.0,
    1e4,
    1e8,
    1e15,
    1e30,
    1e-8,
    1e-20,
    math.pi / 2,
)
DENORMAL_EXACT = frozenset(
    [
        *("add", "sub", "mul", "div", "neg", "abs", "sqrt", "square", "reciprocal", "maximum", "minimum", "where"),
        *("clamp", "floor", "ceil", "trunc", "round", "sign", "relu", "relu6", "hardtanh", "leaky_relu", "prelu"),
        *("relu_backward", "step"),
    ]
)  # denormal results are compared too: PyTorch's vectorised versions of other functions flush them


def _library() -> Any:
    """Return minigrad with the default device that the environment selects."""
    import minigrad as mg

    mg.set_default_device(os.environ["TORTURE_DEVICE"])
    return mg


def _special_values(dtype: Any, arity: int) -> list[Any]:
    import numpy as np

    info = np.finfo(dtype)
    edges = (
        info.smallest_subnormal,
        info.smallest_normal - info.smallest_subnormal,
        info.smallest_normal,
        info.eps,
        info.max,
    )
    near_one = (np.nextafter(dtype(1), dtype(2)), np.nextafter(dtype(1), dtype(0)))
    values = [dtype(x) for x in (*SPECIAL, *edges, *((*UNARY_VALUES, *near_one) if arity == 1 else ()))]
    return [*values, *[-x for x in values], dtype(np.nan)]


def _random_values(seed: str, dtype: Any, arity: int) -> list[Any]:
    """Return random bit patterns, so of all magnitudes, and values of moderate size, 2000 for each operand."""
    import numpy as np

    draws = np.random.default_rng(random.Random(seed).getrandbits(64))
    bits = np.dtype(dtype).itemsize * 8
    arrays = []
    for _ in range(arity):
        any_size = draws.integers(0, 2**bits, 1000, dtype=f"uint{bits}").view(dtype)
        arrays.append(draws.permutation(np.concatenate([any_size, (draws.normal(size=1000) * 3).astype(dtype)])))
    return arrays


def _operands(op: Any, variant: int, dtype: Any) -> list[Any]:
    import numpy as np

    arity = len(op.inputs)
    if variant % 4 == 3:
        columns = _random_values(f"{op.name}{variant}", dtype, arity)
    else:
        combinations = itertools.product(_special_values(dtype, arity), repeat=arity)
        columns = [np.array(column, dtype) for column in zip(*combinations, strict=True)]
    return [x > 0 if op.name == "where" and k == 0 else x for k, x in enumerate(columns)]


def _find_difference(op: Any, output: str, x: list[Any], actual: Any, expected: Any) -> str | None:
    """Describe where minigrad's result differs from PyTorch's, apart from documented exceptions."""
    import numpy as np

    if actual.dtype.kind != "f":
        wrong = actual != expected
    else:
        info = np.finfo(actual.dtype)
        with np.errstate(all="ignore"):
            size = abs(expected) if output == "value" else np.maximum(abs(expected), 1)
            smallest = info.smallest_subnormal if op.name in DENORMAL_EXACT else info.smallest_normal
            near = (abs(actual - expected) <= PYTORCH_ULPS * info.eps * size) | (abs(actual - expected) <= smallest)
            same_sign = (actual != 0) | (expected != 0) | (np.signbit(actual) == np.signbit(expected))
            wrong = ~(
                ((actual == expected) & same_sign)
                | (near & (actual != expected))
                | (np.isnan(actual) & np.isnan(expected))
            )
            for decision in EXCEPTIONS:
                if (decision.op, decision.output) == (op.name, output):
                    wrong &= ~decision.mask(x, actual, expected)
    if not wrong.any():
        return None
    k = int(np.flatnonzero(wrong)[0])
    operands = ", ".join(f"{v[k]!r}" for v in x)
    return (
        f"{op.name}, {output}, at ({operands}): {actual[k]!r}, in PyTorch {expected[k]!r}; {wrong.sum()} of "
        f"{wrong.size} differ"
    )


def special(case_number: int) -> str | None:
    """Check an operation at all tuples of special values, or at random ones: contiguous or with stride 2, in float32 or
    float64.
    """
    import numpy as np
    import torch

    from strategies import ATTRS, ELEMENTWISE, torch_equivalent

    mg = _library()
    op, turn = ELEMENTWISE[case_number % len(ELEMENTWISE)], case_number // len(ELEMENTWISE)
    dtype = (np.float32, np.float64)[turn % 2]
    is_strided = turn // 2 % 2 == 1
    x = _operands(op, turn // 2, dtype)
    attrs = ATTRS.get(op.name, {})
    inputs = [mg.tensor(np.repeat(v, 2))[::2] if is_strided else mg.tensor(v) for v in x]
    torch_inputs = [torch.tensor(v) for v in x]
    differentiable = [k for k, v in enumerate(x) if op.differentiable and v.dtype.kind == "f"]
    for k in differentiable:
        inputs[k] = inputs[k].detach().requires_grad_()
        torch_inputs[k].requires_grad_()
    y, z = op(*inputs, **attrs), torch_equivalent(op)(*torch_inputs, **attrs)
    wrong = _find_difference(op, "value", x, y.detach().numpy(), z.detach().numpy())
    if wrong or not differentiable:
        return wrong
    gradients = mg.grad(y, [inputs[k] for k in differentiable], mg.ones_like(y))
    expected = torch.autograd.grad(z, [torch_inputs[k] for k in differentiable], torch.ones_like(z))
    for k, a, b in zip(differentiable, gradients, expected, strict=True):
        wrong = wrong or _find_difference(op, "abc"[k], x, a.numpy(), b.numpy())
    return wrong


def value(case_number: int) -> str | None:
    """Check the same for floats, with Values."""
    import numpy as np
    import torch

    import minigrad as mg
    from strategies import ATTRS, ELEMENTWISE, torch_equivalent

    op = ELEMENTWISE[case_number % len(ELEMENTWISE)]
    attrs = ATTRS.get(op.name, {})
    x = _operands(op, 3 if case_number >= len(ELEMENTWISE) else 0, np.float64)
    chosen = sorted(random.Random(f"{op.name}{case_number}").sample(range(len(x[0])), min(len(x[0]), 800)))
    x = [v[chosen] for v in x]
    torch_inputs = [torch.tensor(v) for v in x]
    differentiable = [k for k, v in enumerate(x) if op.differentiable and v.dtype.kind == "f"]
    for k in differentiable:
        torch_inputs[k].requires_grad_()
    rows: list[list[float]] = []
    for point in zip(*x, strict=True):
        inputs = [mg.Value(float(v)) if v.dtype.kind == "f" else bool(v) for v in point]
        y = op(*inputs, **attrs)
        if differentiable:
            y.backward()
        rows.append([y if isinstance(y, bool) else y.data, *[inputs[k].grad for k in differentiable]])
    z = torch_equivalent(op)(*torch_inputs, **attrs)
    torch_grads = (
        torch.autograd.grad(z, [torch_inputs[k] for k in differentiable], torch.ones_like(z)) if differentiable else ()
    )
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    for of, actual, b in zip(
        ["value", *["abc"[k] for k in differentiable]], columns, [z.detach(), *torch_grads], strict=True
    ):
        wrong = _find_difference(op, of, x, actual.astype(b.numpy().dtype), b.numpy())
        if wrong:
            return wrong
    return None


def _values_near(name: str, point: float, dtype: Any, seed: str) -> Any:
    """Return values ever closer to a point, and some around it."""
    import numpy as np

    draws = np.random.default_rng(random.Random(seed).getrandbits(64))
    digits = 7 if dtype == np.float32 else 16
    distances = np.concatenate([10.0 ** -draws.uniform(0, digits, 100), 10.0 ** -draws.uniform(digits, 37, 20)])
    nearby = dtype(point) + (distances * max(abs(point), 1.0)).astype(dtype) * draws.choice([-1, 1], 120).astype(dtype)
    neighbours = [np.nextafter(dtype(point), dtype(side)) for side in (-np.inf, np.inf)]
    values = np.concatenate([nearby.astype(dtype), np.array([point, *neighbours], dtype)])
    return values[np.isfinite(values)]


def accurate(case_number: int) -> str | None:
    """Check a function and its derivative near a point where precision is easily lost."""
    import numpy as np
    import torch

    from strategies import ATTRS, torch_equivalent

    mg = _library()
    from torture._exact_values import FUNCTIONS, NEAR, exact

    pairs = [(name, point) for name in FUNCTIONS for point in NEAR.get(name, (0.0, 1.0))]
    name, point = pairs[case_number % len(pairs)]
    turn = case_number // len(pairs)
    dtype, op = (np.float32, np.float64)[turn % 2], mg.ops.__dict__[name]
    x = _values_near(name, point, dtype, f"{name}{case_number}")
    a, b = mg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, z = op(a, **ATTRS.get(name, {})), torch_equivalent(op)(b, **ATTRS.get(name, {}))
    results_by_output = {"value": (y.detach().numpy(), z.detach().numpy())}
    results_by_output["slope"] = (
        mg.grad(y, a, mg.ones_like(y))[0].numpy(),
        torch.autograd.grad(z, b, torch.ones_like(z))[0].numpy(),
    )
    for (of, results), function in zip(results_by_output.items(), FUNCTIONS[name], strict=True):
        exact_values = exact(function, [float(v) for v in x])
        limits = np.finfo(dtype)
        compared = [
            k for k, r in enumerate(exact_values) if r is not None and limits.smallest_normal < abs(r) < limits.max
        ]
        errors = [[_ulps(result[k], exact_values[k], dtype, of) for k in compared] for result in results]
        if compared and max(errors[0]) > max(TOLERANCES.get((name, of), ULPS), 2 * max(errors[1])):
            k = compared[int(np.argmax(errors[0]))]
            return (
                f"{name}, {of}, {np.dtype(dtype).name}, near {point}: at {x[k]!r} {results[0][k]!r} instead of "
                f"{float(exact_values[k])!r}: {max(errors[0]):.1f} ulp; PyTorch's largest error here is "
                f"{max(errors[1]):.1f}"
            )
    return None


def _ulps(actual: Any, expected: Any, dtype: Any, output: str) -> float:
    """Return the error in ulps, infinite for NaN and inf; for derivatives, which are factors, in ulps of at least 1."""
    import numpy as np

    size = float(expected) if output == "value" else max(abs(float(expected)), 1.0)
    if not math.isfinite(actual):
        return math.inf
    return float(abs(expected - float(actual))) / float(np.spacing(dtype(abs(size))))


# --- many elements ---

COUNT = 10_000_000
RELATIVE_TOLERANCE = 1e-6  # relative, of float32
SHAPES = {"flat": ((COUNT,), 0), "columns": ((-1, 4), 0), "wide": ((-1, 100), 0), "between": ((2, -1, 5), 1)}
SUMS = ("sum", "mean", "var", "std", "norm", "norm 3", "logsumexp", "softmax", "prod", "cumsum", "cumprod", "products")


def check_reduction(case_number: int) -> str | None:
    """Compare a reduction of 10⁷ float32, in rows or columns, with the same in float64."""
    import numpy as np

    mg = _library()
    name, (layout, (shape, dim)) = (
        SUMS[case_number % len(SUMS)],
        list(SHAPES.items())[case_number // len(SUMS) % len(SHAPES)],
    )
    draws = np.random.default_rng(case_number)
    a = draws.random(COUNT, dtype=np.float32).reshape(shape)
    a = a * np.float32(1e-4) + np.float32(1) if "prod" in name[:7] and name != "products" else a
    a = a * 4 + np.float32(1e4) if name in ("var", "std") else a
    x, reference = mg.tensor(a), a.astype(np.float64)
    match name:
        case "norm 3":
            actual, expected = x.norm(3, dim), (reference**3).sum(dim) ** (1 / 3)
        case "norm":
            actual, expected = x.norm(2, dim), np.sqrt((reference**2).sum(dim))
        case "var" | "std":
            actual, expected = getattr(x, name)(dim), getattr(reference, name)(dim, ddof=1)
        case "logsumexp" | "softmax":
            each = np.exp(reference)
            actual = getattr(x, name)(dim)
            expected = np.log(each.sum(dim)) if name == "logsumexp" else each / each.sum(dim, keepdims=True)
        case "products":
            actual, expected = x.view(4, -1) @ x.view(4, -1).T, reference.reshape(4, -1) @ reference.reshape(4, -1).T
        case _:
            actual, expected = getattr(x, name)(dim), getattr(reference, name)(dim)
    with np.errstate(all="ignore"):
        got = actual.numpy().astype(np.float64)
        error = np.where(
            (got == expected) | (np.isinf(got) & (expected > np.finfo(np.float32).max)), 0, abs(got / expected - 1)
        )
    error = float(error[np.isnan(error) | (abs(expected) > np.finfo(np.float32).tiny)].max(initial=0.0))
    return None if error <= RELATIVE_TOLERANCE else f"{name} of {COUNT:,} elements, {layout}: off by {error:.1e}"


# --- stability: results independent of offset and scale ---


def _check_close(name: str, actual: Any, expected: Any, rtol: float) -> str | None:
    import numpy as np

    if np.allclose(actual, expected, rtol=rtol, atol=rtol, equal_nan=True):
        return None
    return f"{name}: {np.asarray(actual).ravel()[:4]}, not {np.asarray(expected).ravel()[:4]}"


def _scores(draws: random.Random, n: int) -> tuple[list[float], float]:
    """Return multiples of a quarter, so that float32 represents their sum with the offset exactly."""
    scores = [draws.randrange(-40, 40) / 4 for _ in range(n)]
    if draws.random() < 0.3:
        for k in range(1, n, 2):
            scores[k] = -math.inf
    return scores, draws.choice([0.0, 1e4, -1e4, 2.0**20, 88.0, -104.0])


def check_stability(case_number: int) -> str | None:
    """Check softmax and its losses of shifted scores, variance about a far mean, norms, and gradients."""
    import numpy as np

    mg = _library()
    draws = random.Random(f"stable{case_number}")
    n, rows = draws.choice([1, 5, 32, 64, 100]), draws.choice([1, 3])
    scores, offset = _scores(draws, n)
    a = np.array([scores] * rows, np.float32) + np.float32(offset)
    reference = a.astype(np.float64) - offset
    x = mg.tensor(a, requires_grad=True)
    p = np.exp(reference) / np.exp(reference).sum(1, keepdims=True)
    label = draws.randrange(0, n, 2)
    with np.errstate(divide="ignore"):
        logs = np.log(p)
    loss = mg.nn.functional.cross_entropy(x, mg.tensor([label] * rows), reduction="sum")
    labels = mg.tensor(np.eye(n, dtype=np.float32)[[label] * rows])
    finite = np.isfinite(a).all()
    soft = mg.nn.functional.cross_entropy(x, labels, reduction="sum") if finite else loss
    expected_gradient = p - np.eye(n)[[label] * rows]
    spread = np.arange(n) % 7 / 4.0 + offset
    size = draws.choice([1.0, 1e-12, 1e15])
    checks = [
        ("softmax", x.softmax(1), p, 1e-6),
        ("log_softmax", x.log_softmax(1), logs, 2e-6),
        ("logsumexp", x.logsumexp(1), np.log(np.exp(reference).sum(1)) + offset, 2e-6),
        ("cross_entropy", loss, -logs[:, label].sum(), 2e-6),
        ("gradient of soft cross_entropy", mg.grad(soft, x, retain_graph=True)[0], expected_gradient, 2e-6),
        ("gradient of cross_entropy", mg.grad(loss, x)[0], expected_gradient, 2e-6),
        ("var", mg.tensor(spread, dtype=mg.float32).var(correction=0), (spread - offset).var(), 1e-5),
        ("norm", mg.tensor(spread * size / (1 + abs(offset)), dtype=mg.float32).norm() / size, None, 1e-6),
    ]
    scaled = spread * size / (1 + abs(offset))
    for name, result, right, rtol in checks:
        right = np.sqrt((scaled**2).sum()) / size if right is None else right
        wrong = _check_close(f"{name} of {n} elements about {offset}", result.detach().numpy(), right, rtol)
        if wrong:
            return wrong
    return None


# --- derivatives at corners: PyTorch's ---


def check_corner(case_number: int) -> str | None:
    """Check a value and its derivatives where the function has a corner, a zero or a tie."""
    import numpy as np
    import torch

    mg = _library()
    name, (function, inputs) = list(CORNERS.items())[case_number % len(CORNERS)]
    dtype = ("float32", "float64")[case_number // len(CORNERS) % 2]
    results = []
    for library, tensor in ((mg, mg.tensor), (torch, torch.tensor)):
        x = [tensor(np.array(v, dtype)).requires_grad_() for v in inputs]
        y = function(library, *x)
        results.append([y.detach().numpy()])
        y.sum().backward()
        results[-1] += [v.grad.numpy() for v in x]
    for k, (actual, expected) in enumerate(zip(*results, strict=True)):
        if not np.allclose(actual, expected, rtol=1e-6, atol=0, equal_nan=True):
            return f"{name}, {'value' if k == 0 else 'abc'[k - 1]}, {dtype}: {actual}, in PyTorch {expected}"
    return None


def check_delicate(case_number: int) -> str | None:
    """Check in turn a function near a singularity, against 50 digits, and a call at a corner, against PyTorch."""
    return (accurate, check_corner)[case_number % 2](case_number // 2)


def _campaigns() -> list[Campaign]:
    all_campaigns = []
    for device, few in (("numpy", 0.3), ("cpu", 0.0)):
        environment = (("TORTURE_DEVICE", device), ("OMP_NUM_THREADS", "1"))
        all_campaigns += [
            Campaign(
                f"special numbers, {device}",
                f"an operation and its gradient at pairs of ±0, denormal, large, infinite and NaN operands on {device}",
                special, many=1800, few=round(18 * few), environment=environment, needs=ORACLES,
            ),
            Campaign(
                f"singularities and corners, {device}",
                f"a function and its derivative near a singularity, in a tail, at 0, at ties and at ends on {device}",
                check_delicate, many=600, few=round(12 * few), environment=environment, needs=ORACLES,
            ),
            Campaign(
                f"ten million numbers, {device}",
                f"a reduction of 10⁷ float32 on {device}, in rows and columns, against float64, to 1e-6",
                check_reduction, many=len(SUMS) * len(SHAPES), few=round(few), environment=environment,
            ),
            Campaign(
                f"stability, {device}",
                f"softmax, its losses, variance and norm of shifted, large and small elements on {device}",
                check_stability, many=1000, few=round(16 * few), environment=environment, needs=ORACLES,
            ),
        ]  # fmt: skip
    return [
        *all_campaigns,
        Campaign(
            "special numbers, Value", "the same for floats, with Values, against PyTorch", value, 225, 3, needs=ORACLES
        ),
    ]


CAMPAIGNS = _campaigns()
