"""Each operation at zeros, denormal, large, infinite and NaN operands, near singularities, and over 10⁷ elements.

Values and derivatives must equal PyTorch's, or mpmath's at 50 digits, unless `DECISIONS` says why not. The tolerance
near singularities is 4 ulp, or twice PyTorch's largest error there. No device flushes denormal numbers to zero.
"""

from __future__ import annotations

import itertools
import math
import os
import random
from typing import Any

from torture import Campaign
from torture._numbers_decided import CORNERS, DECISIONS

__all__ = ["CAMPAIGNS"]

ORACLES = ("torch", "mpmath")
DIGITS = 16.0  # ulp: tolerance for PyTorch's results
ULPS = 4.0  # ulp: tolerance for exact results
LOOSER = {("mish", "slope"): 12.0}  # computed from a float32 tanh, which SIMD evaluates to 2 ulp
SPECIAL = (0.0, 1e-4, 0.5, 1.0, 3.0, math.inf)
ALONE = (2.0, 2.5, 6.0, 9.0, 20.0, 88.0, 89.0, 104.0, 710.0, 750.0, 1e4, 1e8, 1e15, 1e30, 1e-8, 1e-20, math.pi / 2)
EXACT = frozenset(
    [
        *("add", "sub", "mul", "div", "neg", "abs", "sqrt", "square", "reciprocal", "maximum", "minimum", "where"),
        *("clamp", "floor", "ceil", "trunc", "round", "sign", "relu", "relu6", "hardtanh", "leaky_relu", "prelu"),
        *("relu_backward", "step"),
    ]
)  # denormal results are compared too: PyTorch's vectorised versions of other functions flush them


def _here() -> Any:
    """Return minigrad with the default device that the environment selects."""
    import minigrad as mg

    mg.set_default_device(os.environ["TORTURE_DEVICE"])
    return mg


def _numbers(dtype: Any, arity: int) -> list[Any]:
    import numpy as np

    of = np.finfo(dtype)
    edges = (of.smallest_subnormal, of.smallest_normal - of.smallest_subnormal, of.smallest_normal, of.eps, of.max)
    near_one = (np.nextafter(dtype(1), dtype(2)), np.nextafter(dtype(1), dtype(0)))
    found = [dtype(x) for x in (*SPECIAL, *edges, *((*ALONE, *near_one) if arity == 1 else ()))]
    return [*found, *[-x for x in found], dtype(np.nan)]


def _drawn(seed: str, dtype: Any, arity: int) -> list[Any]:
    """Return random bit patterns, so of all magnitudes, and values of moderate size, 2000 for each operand."""
    import numpy as np

    draws = np.random.default_rng(random.Random(seed).getrandbits(64))
    bits = np.dtype(dtype).itemsize * 8
    found = []
    for _ in range(arity):
        any_size = draws.integers(0, 2**bits, 1000, dtype=f"uint{bits}").view(dtype)
        found.append(draws.permutation(np.concatenate([any_size, (draws.normal(size=1000) * 3).astype(dtype)])))
    return found


def _operands(op: Any, number: int, dtype: Any) -> list[Any]:
    import numpy as np

    arity = len(op.inputs)
    if number % 4 == 3:
        found = _drawn(f"{op.name}{number}", dtype, arity)
    else:
        every = itertools.product(_numbers(dtype, arity), repeat=arity)
        found = [np.array(column, dtype) for column in zip(*every, strict=True)]
    return [x > 0 if op.name == "where" and k == 0 else x for k, x in enumerate(found)]


def _differs(op: Any, of: str, x: list[Any], mine: Any, its: Any) -> str | None:
    """Describe where minigrad's result differs from PyTorch's, apart from documented exceptions."""
    import numpy as np

    if mine.dtype.kind != "f":
        wrong = mine != its
    else:
        of_type = np.finfo(mine.dtype)
        with np.errstate(all="ignore"):
            size = abs(its) if of == "value" else np.maximum(abs(its), 1)
            least = of_type.smallest_subnormal if op.name in EXACT else of_type.smallest_normal
            near = (abs(mine - its) <= DIGITS * of_type.eps * size) | (abs(mine - its) <= least)
            same_sign = (mine != 0) | (its != 0) | (np.signbit(mine) == np.signbit(its))
            wrong = ~(((mine == its) & same_sign) | (near & (mine != its)) | (np.isnan(mine) & np.isnan(its)))
            for decision in DECISIONS:
                if (decision.op, decision.of) == (op.name, of):
                    wrong &= ~decision.where(x, mine, its)
    if not wrong.any():
        return None
    k = int(np.flatnonzero(wrong)[0])
    place = ", ".join(f"{v[k]!r}" for v in x)
    return f"{op.name}, {of}, at ({place}): {mine[k]!r}, in PyTorch {its[k]!r}; {wrong.sum()} of {wrong.size} differ"


def special(number: int) -> str | None:
    """Check an operation at all tuples of special values, or at random ones: contiguous or with stride 2, in float32 or
    float64.
    """
    import numpy as np
    import torch

    from strategies import ATTRS, ELEMENTWISE, pytorch

    mg = _here()
    op, turn = ELEMENTWISE[number % len(ELEMENTWISE)], number // len(ELEMENTWISE)
    dtype = (np.float32, np.float64)[turn % 2]
    apart = turn // 2 % 2 == 1
    x = _operands(op, turn // 2, dtype)
    attrs = ATTRS.get(op.name, {})
    ours = [mg.tensor(np.repeat(v, 2))[::2] if apart else mg.tensor(v) for v in x]
    theirs = [torch.tensor(v) for v in x]
    free = [k for k, v in enumerate(x) if op.differentiable and v.dtype.kind == "f"]
    for k in free:
        ours[k] = ours[k].detach().requires_grad_()
        theirs[k].requires_grad_()
    y, z = op(*ours, **attrs), pytorch(op)(*theirs, **attrs)
    wrong = _differs(op, "value", x, y.detach().numpy(), z.detach().numpy())
    if wrong or not free:
        return wrong
    mine = mg.grad(y, [ours[k] for k in free], mg.ones_like(y))
    its = torch.autograd.grad(z, [theirs[k] for k in free], torch.ones_like(z))
    for k, a, b in zip(free, mine, its, strict=True):
        wrong = wrong or _differs(op, "abc"[k], x, a.numpy(), b.numpy())
    return wrong


def value(number: int) -> str | None:
    """Check the same for floats, with Values."""
    import numpy as np
    import torch

    import minigrad as mg
    from strategies import ATTRS, ELEMENTWISE, pytorch

    op = ELEMENTWISE[number % len(ELEMENTWISE)]
    attrs = ATTRS.get(op.name, {})
    x = _operands(op, 3 if number >= len(ELEMENTWISE) else 0, np.float64)
    chosen = sorted(random.Random(f"{op.name}{number}").sample(range(len(x[0])), min(len(x[0]), 800)))
    x = [v[chosen] for v in x]
    theirs = [torch.tensor(v) for v in x]
    free = [k for k, v in enumerate(x) if op.differentiable and v.dtype.kind == "f"]
    for k in free:
        theirs[k].requires_grad_()
    found: list[list[float]] = []
    for point in zip(*x, strict=True):
        ours = [mg.Value(float(v)) if v.dtype.kind == "f" else bool(v) for v in point]
        y = op(*ours, **attrs)
        if free:
            y.backward()
        found.append([y if isinstance(y, bool) else y.data, *[ours[k].grad for k in free]])
    z = pytorch(op)(*theirs, **attrs)
    its = torch.autograd.grad(z, [theirs[k] for k in free], torch.ones_like(z)) if free else ()
    columns = [np.array(column) for column in zip(*found, strict=True)]
    for of, mine, b in zip(["value", *["abc"[k] for k in free]], columns, [z.detach(), *its], strict=True):
        wrong = _differs(op, of, x, mine.astype(b.numpy().dtype), b.numpy())
        if wrong:
            return wrong
    return None


def _approaching(name: str, point: float, dtype: Any, seed: str) -> Any:
    """Return values ever closer to a point, and some around it."""
    import numpy as np

    draws = np.random.default_rng(random.Random(seed).getrandbits(64))
    digits = 7 if dtype == np.float32 else 16
    distances = np.concatenate([10.0 ** -draws.uniform(0, digits, 100), 10.0 ** -draws.uniform(digits, 37, 20)])
    about = dtype(point) + (distances * max(abs(point), 1.0)).astype(dtype) * draws.choice([-1, 1], 120).astype(dtype)
    neighbours = [np.nextafter(dtype(point), dtype(side)) for side in (-np.inf, np.inf)]
    found = np.concatenate([about.astype(dtype), np.array([point, *neighbours], dtype)])
    return found[np.isfinite(found)]


def accurate(number: int) -> str | None:
    """Check a function and its derivative near a point where precision is easily lost."""
    import numpy as np
    import torch

    from strategies import ATTRS, pytorch

    mg = _here()
    from torture._numbers_exact import FUNCTIONS, NEAR, exact

    pairs = [(name, point) for name in FUNCTIONS for point in NEAR.get(name, (0.0, 1.0))]
    name, point = pairs[number % len(pairs)]
    turn = number // len(pairs)
    dtype, op = (np.float32, np.float64)[turn % 2], mg.ops.__dict__[name]
    x = _approaching(name, point, dtype, f"{name}{number}")
    a, b = mg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, z = op(a, **ATTRS.get(name, {})), pytorch(op)(b, **ATTRS.get(name, {}))
    found = {"value": (y.detach().numpy(), z.detach().numpy())}
    found["slope"] = (
        mg.grad(y, a, mg.ones_like(y))[0].numpy(),
        torch.autograd.grad(z, b, torch.ones_like(z))[0].numpy(),
    )
    for (of, results), function in zip(found.items(), FUNCTIONS[name], strict=True):
        right = exact(function, [float(v) for v in x])
        limits = np.finfo(dtype)
        held = [k for k, r in enumerate(right) if r is not None and limits.smallest_normal < abs(r) < limits.max]
        errors = [[_ulps(result[k], right[k], dtype, of) for k in held] for result in results]
        if held and max(errors[0]) > max(LOOSER.get((name, of), ULPS), 2 * max(errors[1])):
            k = held[int(np.argmax(errors[0]))]
            return (
                f"{name}, {of}, {np.dtype(dtype).name}, near {point}: at {x[k]!r} {results[0][k]!r} instead of "
                f"{float(right[k])!r}: {max(errors[0]):.1f} ulp; PyTorch's largest error here is {max(errors[1]):.1f}"
            )
    return None


def _ulps(found: Any, right: Any, dtype: Any, of: str) -> float:
    """Return the error in ulps, infinite for NaN and inf; for derivatives, which are factors, in ulps of at least 1."""
    import numpy as np

    size = float(right) if of == "value" else max(abs(float(right)), 1.0)
    if not math.isfinite(found):
        return math.inf
    return float(abs(right - float(found))) / float(np.spacing(dtype(abs(size))))


# --- many elements ---

MILLIONS = 10_000_000
PRECISE = 1e-6  # relative, of float32
SHAPES = {"flat": ((MILLIONS,), 0), "columns": ((-1, 4), 0), "wide": ((-1, 100), 0), "between": ((2, -1, 5), 1)}
SUMS = ("sum", "mean", "var", "std", "norm", "norm 3", "logsumexp", "softmax", "prod", "cumsum", "cumprod", "products")


def sums(number: int) -> str | None:
    """Compare a reduction of 10⁷ float32, in rows or columns, with the same in float64."""
    import numpy as np

    mg = _here()
    name, (layout, (shape, dim)) = SUMS[number % len(SUMS)], list(SHAPES.items())[number // len(SUMS) % len(SHAPES)]
    draws = np.random.default_rng(number)
    a = draws.random(MILLIONS, dtype=np.float32).reshape(shape)
    a = a * np.float32(1e-4) + np.float32(1) if "prod" in name[:7] and name != "products" else a
    a = a * 4 + np.float32(1e4) if name in ("var", "std") else a
    x, wide = mg.tensor(a), a.astype(np.float64)
    match name:
        case "norm 3":
            found, right = x.norm(3, dim), (wide**3).sum(dim) ** (1 / 3)
        case "norm":
            found, right = x.norm(2, dim), np.sqrt((wide**2).sum(dim))
        case "var" | "std":
            found, right = getattr(x, name)(dim), getattr(wide, name)(dim, ddof=1)
        case "logsumexp" | "softmax":
            each = np.exp(wide)
            found = getattr(x, name)(dim)
            right = np.log(each.sum(dim)) if name == "logsumexp" else each / each.sum(dim, keepdims=True)
        case "products":
            found, right = x.view(4, -1) @ x.view(4, -1).T, wide.reshape(4, -1) @ wide.reshape(4, -1).T
        case _:
            found, right = getattr(x, name)(dim), getattr(wide, name)(dim)
    with np.errstate(all="ignore"):
        got = found.numpy().astype(np.float64)
        off = np.where((got == right) | (np.isinf(got) & (right > np.finfo(np.float32).max)), 0, abs(got / right - 1))
    off = float(off[np.isnan(off) | (abs(right) > np.finfo(np.float32).tiny)].max(initial=0.0))
    return None if off <= PRECISE else f"{name} of {MILLIONS:,} elements, {layout}: off by {off:.1e}"


# --- stability: results independent of offset and scale ---


def _near(name: str, found: Any, right: Any, rtol: float) -> str | None:
    import numpy as np

    if np.allclose(found, right, rtol=rtol, atol=rtol, equal_nan=True):
        return None
    return f"{name}: {np.asarray(found).ravel()[:4]}, not {np.asarray(right).ravel()[:4]}"


def _scores(draws: random.Random, n: int) -> tuple[list[float], float]:
    """Return multiples of a quarter, so that float32 represents their sum with the offset exactly."""
    found = [draws.randrange(-40, 40) / 4 for _ in range(n)]
    if draws.random() < 0.3:
        for k in range(1, n, 2):
            found[k] = -math.inf
    return found, draws.choice([0.0, 1e4, -1e4, 2.0**20, 88.0, -104.0])


def stable(number: int) -> str | None:
    """Check softmax and its losses of shifted scores, variance about a far mean, norms, and gradients."""
    import numpy as np

    mg = _here()
    draws = random.Random(f"stable{number}")
    n, rows = draws.choice([1, 5, 32, 64, 100]), draws.choice([1, 3])
    scores, far = _scores(draws, n)
    a = np.array([scores] * rows, np.float32) + np.float32(far)
    wide = a.astype(np.float64) - far
    x = mg.tensor(a, requires_grad=True)
    p = np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
    label = draws.randrange(0, n, 2)
    with np.errstate(divide="ignore"):
        logs = np.log(p)
    loss = mg.nn.functional.cross_entropy(x, mg.tensor([label] * rows), reduction="sum")
    labels = mg.tensor(np.eye(n, dtype=np.float32)[[label] * rows])
    finite = np.isfinite(a).all()
    soft = mg.nn.functional.cross_entropy(x, labels, reduction="sum") if finite else loss
    slope = p - np.eye(n)[[label] * rows]
    spread = np.arange(n) % 7 / 4.0 + far
    size = draws.choice([1.0, 1e-12, 1e15])
    checks = [
        ("softmax", x.softmax(1), p, 1e-6),
        ("log_softmax", x.log_softmax(1), logs, 2e-6),
        ("logsumexp", x.logsumexp(1), np.log(np.exp(wide).sum(1)) + far, 2e-6),
        ("cross_entropy", loss, -logs[:, label].sum(), 2e-6),
        ("gradient of soft cross_entropy", mg.grad(soft, x, retain_graph=True)[0], slope, 2e-6),
        ("gradient of cross_entropy", mg.grad(loss, x)[0], slope, 2e-6),
        ("var", mg.tensor(spread, dtype=mg.float32).var(correction=0), (spread - far).var(), 1e-5),
        ("norm", mg.tensor(spread * size / (1 + abs(far)), dtype=mg.float32).norm() / size, None, 1e-6),
    ]
    numbers = spread * size / (1 + abs(far))
    for name, found, right, rtol in checks:
        right = np.sqrt((numbers**2).sum()) / size if right is None else right
        wrong = _near(f"{name} of {n} elements about {far}", found.detach().numpy(), right, rtol)
        if wrong:
            return wrong
    return None


# --- derivatives at corners: PyTorch's ---


def corner(number: int) -> str | None:
    """Check a value and its derivatives where the function has a corner, a zero or a tie."""
    import numpy as np
    import torch

    mg = _here()
    name, (function, inputs) = list(CORNERS.items())[number % len(CORNERS)]
    dtype = ("float32", "float64")[number // len(CORNERS) % 2]
    found = []
    for library, tensor in ((mg, mg.tensor), (torch, torch.tensor)):
        x = [tensor(np.array(v, dtype)).requires_grad_() for v in inputs]
        y = function(library, *x)
        found.append([y.detach().numpy()])
        y.sum().backward()
        found[-1] += [v.grad.numpy() for v in x]
    for k, (mine, its) in enumerate(zip(*found, strict=True)):
        if not np.allclose(mine, its, rtol=1e-6, atol=0, equal_nan=True):
            return f"{name}, {'value' if k == 0 else 'abc'[k - 1]}, {dtype}: {mine}, in PyTorch {its}"
    return None


def delicate(number: int) -> str | None:
    """Check in turn a function near a singularity, against 50 digits, and a call at a corner, against PyTorch."""
    return (accurate, corner)[number % 2](number // 2)


def _campaigns() -> list[Campaign]:
    found = []
    for device, few in (("numpy", 0.3), ("cpu", 0.0)):
        where = (("TORTURE_DEVICE", device), ("OMP_NUM_THREADS", "1"))
        found += [
            Campaign(
                f"special numbers, {device}",
                f"an operation and its gradient at pairs of ±0, denormal, large, infinite and NaN operands on {device}",
                special, many=1800, few=round(18 * few), environment=where, needs=ORACLES,
            ),
            Campaign(
                f"singularities and corners, {device}",
                f"a function and its derivative near a singularity, in a tail, at 0, at ties and at ends on {device}",
                delicate, many=600, few=round(12 * few), environment=where, needs=ORACLES,
            ),
            Campaign(
                f"ten million numbers, {device}",
                f"a reduction of 10⁷ float32 on {device}, in rows and columns, against float64, to 1e-6",
                sums, many=len(SUMS) * len(SHAPES), few=round(few), environment=where,
            ),
            Campaign(
                f"stability, {device}",
                f"softmax, its losses, variance and norm of shifted, large and small elements on {device}",
                stable, many=1000, few=round(16 * few), environment=where, needs=ORACLES,
            ),
        ]  # fmt: skip
    return [
        *found,
        Campaign(
            "special numbers, Value", "the same for floats, with Values, against PyTorch", value, 225, 3, needs=ORACLES
        ),
    ]


CAMPAIGNS = _campaigns()
