"""The calls of random programs, in addition to samples: each adds a line or two to the program.

Some calls are invalid: a dimension or an index out of range, incompatible shapes, an unsupported dtype. PyTorch
determines which ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samples.elementwise import ONLY_MINIGRAD, WRAPPERS
from strategies import ATTRS, ELEMENTWISE
from torture._program_generator import ProgramGenerator, kind_of

__all__ = ["CALLS"]

INVALID_FRACTION = 0.04  # fraction of the dimensions, indices and shapes
UNARY = [op for op in ELEMENTWISE if len(op.inputs) == 1 and op.name not in ONLY_MINIGRAD]
BINARY = [op for op in ELEMENTWISE if len(op.inputs) == 2 and op.name not in (*ONLY_MINIGRAD, "prelu", "floor_divide")]
REDUCTIONS = (
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "var",
    "std",
    "logsumexp",
    "any",
    "all",
    "argmax",
    "argmin",
    "norm",
)
DIM_FUNCTIONS = ("cumsum", "cumprod", "softmax", "log_softmax", "max", "min", "sort", "argsort", "median")
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
TYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")


def dim(m: ProgramGenerator, x: Any) -> int:
    n = max(x.ndim, 1)
    return m.choice(n, -n - 1, 7) if m.chance(INVALID_FRACTION) else m.random.randrange(-n, n)


def broadcastable_with(m: ProgramGenerator, name: str, kinds: str = "f") -> str:
    """Return the name of a tensor that broadcasts with the named one, or sometimes of any tensor."""
    if m.chance(INVALID_FRACTION):
        return m.pick(kinds)
    shape = tuple(m.tensor_of(name).shape)

    def fits(x: Any) -> bool:
        try:
            return np.prod(np.broadcast_shapes(shape, tuple(x.shape))) < 200
        except ValueError:
            return False

    return m.pick(kinds, fits)


def unary(m: ProgramGenerator) -> None:
    op = m.random.choice(UNARY)
    name = m.pick(m.choice("f", "f", "f", "f", "i", "b"))
    if kind_of(m.tensor_of(name)) == "f" and m.chance(0.7):
        name = m.within(name, max(op.domain[0].low, -3.0), min(op.domain[0].high, 3.0))
    attrs = "".join(f", {key}={value}" for key, value in ATTRS.get(op.name, {}).items())
    approximate = ", approximate='tanh'" if op.name in WRAPPERS else ""
    m.line(f"F.{op.name.removesuffix('_tanh')}({name}{attrs}{approximate})")


def binary(m: ProgramGenerator) -> None:
    op = m.random.choice(BINARY)
    a = m.pick(m.choice("f", "f", "f", "i", "b"))
    b = broadcastable_with(m, a, m.choice("f", "f", "f", "fi", "b"))
    if kind_of(m.tensor_of(b)) == "f" and m.chance(0.7):
        b = m.within(b, max(op.domain[1].low, -3.0), min(op.domain[1].high, 3.0))
    if m.chance(0.5):
        a, b = (a, b) if op.name in ("pow", "div", "remainder", "floor_divide") else (b, a)
    m.line(f"F.{op.name}({a}, {b})")


def arithmetic(m: ProgramGenerator) -> None:
    a = m.pick(m.choice("f", "f", "f", "i", "b"))
    b = m.choice(broadcastable_with(m, a, "fi"), broadcastable_with(m, a, "f"), 2, 0.5, -1.5, 3)
    sign = m.choice("+", "-", "*", "/", "+", "*", "**", "//", "%")
    if sign == "**":
        b = m.choice(2, 3, 0.5, -1, 0)
    if sign == "//":  # PyTorch has no gradient for it, not even 0
        a, b = f"{a}.detach()", f"{b}.detach()" if isinstance(b, str) else b
    m.line(f"{b} {sign} {a}" if m.chance(0.3) and sign in "+-*/" else f"{a} {sign} {b}")


def comparison(m: ProgramGenerator) -> None:
    a = m.pick("fib")
    sign = m.choice("<", "<=", ">", ">=", "==", "!=")
    m.line(f"{a} {sign} {m.choice(broadcastable_with(m, a, 'fib'), 0, 0.5, 1)}")


def logical(m: ProgramGenerator) -> None:
    a = m.pick("bbi")
    b = broadcastable_with(m, a, "bbi")
    m.line(m.choice(f"{a} & {b}", f"{a} | {b}", f"{a} ^ {b}", f"~{a}", f"F.logical_not({a})"))


def where(m: ProgramGenerator) -> None:
    mask = m.pick("b")
    a = broadcastable_with(m, mask)
    m.line(f"F.where({mask}, {a}, {m.choice(broadcastable_with(m, a, 'f'), broadcastable_with(m, a, 'fi'), 0.0, 1)})")


def reduction(m: ProgramGenerator) -> None:
    name = m.pick(m.choice("f", "f", "f", "f", "ib"))
    x, function = m.tensor_of(name), m.random.choice(REDUCTIONS)
    if m.chance(0.25) and function != "logsumexp":
        m.line(f"{name}.{function}()")
        return
    axis: Any = dim(m, x)
    if x.ndim > 1 and m.chance(0.2) and function in ("sum", "mean", "amax", "amin", "logsumexp"):
        axis = tuple(m.random.sample(range(x.ndim), 2))
    extra = ", correction=0" if function in ("var", "std") and m.chance(0.3) else ""
    m.line(f"{name}.{function}(dim={axis}{extra}{m.choice('', ', keepdim=True')})")


def along_dim(m: ProgramGenerator) -> None:
    name = m.pick(m.choice("f", "f", "f", "f", "f", "i"))
    function = m.random.choice(DIM_FUNCTIONS)
    if function == "median":
        name = m.pick("f", has_distinct_elements)
    extra = ", stable=True" if "sort" in function else ""
    m.line(f"{name}.{function}(dim={dim(m, m.tensor_of(name))}{extra})")


def has_distinct_elements(x: Any) -> bool:
    elements = x.detach().numpy() if hasattr(x, "detach") else np.arange(x.size)
    return len(np.unique(elements)) == elements.size


def select_largest(m: ProgramGenerator) -> None:
    name = m.pick("f", has_distinct_elements)  # among equal elements PyTorch may choose any
    x = m.tensor_of(name)
    d = dim(m, x)
    size = x.shape[d] if -x.ndim <= d < x.ndim else 1
    k = m.choice(1, max(size, 1), size, size + (1 if m.chance(INVALID_FRACTION) else 0))
    m.line(m.choice(f"{name}.topk({k}, dim={d})", f"{name}.kthvalue({max(k, 1)}, dim={d})"))


def shape(m: ProgramGenerator) -> None:
    name = m.pick("fffib")
    x = m.tensor_of(name)
    n, d, e = x.ndim, dim(m, x), dim(m, x)
    order = m.random.sample(range(n), n)
    size = x.shape[d] if -n <= d < n else 1
    k = m.random.randrange(0, size + 1) + (size if m.chance(INVALID_FRACTION) else 0)
    m.line(
        m.random.choice(
            [
                *(f"{name}.reshape(-1)", f"{name}.view(-1)", f"{name}.flatten()", f"{name}.unsqueeze({e})"),
                *(f"{name}.permute({tuple(order)})", f"{name}.transpose({d}, {e})", f"{name}.squeeze()"),
                *(f"{name}.squeeze({d})", f"{name}.movedim({d}, {e})", f"{name}.narrow({d}, {k}, {size - k})"),
                *(f"{name}.select({d}, {k - (k == size)})", f"{name}.flip({d})", f"{name}.roll({k}, {d})"),
                *(f"{name}.expand({(2, *x.shape)})", f"{name}.expand({m.choice(2, 3)}, *{name}.shape[1:])"),
                *(f"{name}.diagonal({m.choice(0, 1, -1)}, {d}, {e})", f"{name}.unfold({d}, {max(k, 1)}, 1)"),
                *(f"{name}.reshape({x.numel() // 2}, 2)", f"{name}.view(2, -1)", f"{name}.split({max(k, 1)}, {d})"),
                *(f"{name}.chunk(2, {d})", f"{name}.unbind({d})", f"{name}.tril()", f"{name}.triu({m.choice(1, -1)})"),
                *(f"{name}.repeat_interleave(2, {d})", f"{name}.repeat({(2, *[1] * n)})", f"{name}.mT", f"{name}.t()"),
                *(f"{name}.contiguous()", f"{name}.clone()", f"{name}.detach()", f"{name}.swapaxes({d}, {e})"),
                *(f"F.zeros_like({name})", f"F.ones_like({name})", f"F.diag_embed({name})"),
            ]
        )
    )


def concatenation(m: ProgramGenerator) -> None:
    a = m.pick("f", lambda x: tuple(x.shape) != (0,))  # cat skips these
    b = (
        m.pick("f", lambda x: tuple(x.shape) == tuple(m.tensor_of(a).shape))
        if not m.chance(INVALID_FRACTION)
        else m.pick("f")
    )
    d = dim(m, m.tensor_of(a))
    m.line(m.choice(f"F.cat([{a}, {b}], {d})", f"F.stack([{a}, {b}], {d})", f"F.cat([{b}, {a}, {b}], {d})"))


def subscript(m: ProgramGenerator, x: Any) -> str:
    """Return an index for some of the dimensions: integers, slices, `None`, `...`, and lists of indices."""
    parts = []
    for size in x.shape[: m.random.randrange(1, max(x.ndim, 1) + 1)]:
        k = m.random.randrange(-size, size) if size else 0
        k = size + 1 if m.chance(INVALID_FRACTION) else k
        indices = m.random.sample(range(size), min(size, m.choice(1, 2, 3))) or [0]  # for elements written twice
        indices = [at - size if m.chance(0.3) else at for at in indices]  # the gradients differ from PyTorch's
        parts += [m.choice(k, ":", "1:", "::2", ":-1", "None, :", f"{min(k, size)}:", indices, ":")]
    parts += ["..."] * m.chance(0.1)
    return ", ".join(map(str, parts)) or "..."


def index(m: ProgramGenerator) -> None:
    name = m.pick("fffib")
    m.line(f"{name}[{subscript(m, m.tensor_of(name))}]")


def masked(m: ProgramGenerator) -> None:
    name = m.pick("f")
    size = tuple(m.tensor_of(name).shape)
    mask = m.pick("b", lambda x: tuple(x.shape) == size)
    if tuple(m.tensor_of(mask).shape) != size:
        mask = m.leaf(size, "b")
    value = m.choice("0.5", "-1", "inf")
    m.line(m.choice(f"{name}[{mask}]", f"{name}.masked_fill({mask}, {value})", f"F.masked_select({name}, {mask})"))


def gather(m: ProgramGenerator) -> None:
    name = m.pick("f", lambda x: len(x.shape) > 0 and 0 not in tuple(x.shape))
    x = m.tensor_of(name)
    if not x.ndim:
        return
    d = m.random.randrange(x.ndim)
    size = x.shape[d]
    line = m.leaf((m.choice(1, 2, 4),), array=np.array([m.random.randrange(size) for _ in range(3)]))
    indices = m.leaf(tuple(x.shape), array=np.array(m.random.choices(range(size), k=x.numel())).reshape(x.shape))
    m.line(
        m.choice(
            *(f"{name}.index_select({d}, {line})", f"{name}.gather({d}, {indices})"),
            f"F.take_along_dim({name}, {indices}, {d})",
            f"{name}.scatter({d}, {indices}, 0.5)",
            f"{name}.scatter_add({d}, {indices}, {name})",
            f"{name}.index_fill({d}, {line}, 0.5)",
        )
    )  # fmt: skip


def in_place(m: ProgramGenerator) -> None:
    """Add an in-place write, mostly to a computed tensor or a view."""
    computed = [
        name for name, x in m.usable().items() if kind_of(x) == "f" and (x.grad_fn is not None or not x.requires_grad)
    ]
    name = m.random.choice(computed) if computed and m.chance(0.9) else m.pick("fffi")
    x = m.tensor_of(name)
    b = broadcastable_with(m, name, m.choice("f", "f", "f", "fi"))
    if not m.chance(INVALID_FRACTION * 2) and np.broadcast_shapes(
        tuple(x.shape), *[tuple(m.tensor_of(b).shape)][: fits(x, m.tensor_of(b))]
    ) != tuple(x.shape):
        b = m.choice("0.5", "2.0", "-1")
    statements = [
        *(f"{name}.add_({b})", f"{name}.mul_({b})", f"{name}.sub_({b}, alpha=2)", f"{name}.copy_({b})"),
        *(f"{name}.div_(2.0)", f"{name}.clamp_(-1.0, 1.0)", f"{name}.zero_()", f"{name}.fill_(0.5)", f"{name}.neg_()"),
        *(
            f"{name}.tanh_()",
            f"{name}.sigmoid_()",
            f"{name}.relu_()",
            f"{name}.sin_()",
            f"{name}.exp_()",
            f"{name}.abs_()",
        ),
        *(
            f"{name}.square_()",
            f"{name}.add_({b})",
            f"{name}.mul_({b})",
            f"{name}[{subscript(m, x)}] = {m.choice(b, 0.5)}",
        ),
        *(f"{name}[{subscript(m, x)}] = 1.5", f"{name}[{subscript(m, x)}] *= 2", f"{name}[{subscript(m, x)}] += {b}"),
        *(f"{name}[{subscript(m, x)}].mul_(0.5)", f"{name}.view(-1).add_(1)", f"{name}.t().mul_({b})"),
        *(f"{name}.masked_fill_({name} > 0, -0.5)", f"{name}.detach().add_(1)", f"{name}.reciprocal_()"),
    ]
    statement = m.random.choice(statements)
    if m.chance(0.15):
        m.line(f"with lib.no_grad(): {statement}", named=False)
    else:
        m.line(statement, named=False)


def fits(x: Any, y: Any) -> int:
    """Return 1 if the shape of `y` broadcasts to that of `x`, else 0."""
    try:
        return int(np.broadcast_shapes(tuple(x.shape), tuple(y.shape)) == tuple(x.shape))
    except ValueError:
        return 0


def change_dims(m: ProgramGenerator) -> None:
    name = m.pick("f")
    d, e = dim(m, m.tensor_of(name)), dim(m, m.tensor_of(name))
    m.line(
        m.choice(
            *(f"{name}.unsqueeze_({d})", f"{name}.squeeze_()", f"{name}.t_()", f"{name}.transpose_({d}, {e})"),
            f"{name}.requires_grad_()",
        ),
        named=False,
    )


def product(m: ProgramGenerator) -> None:
    a = m.pick("f", lambda x: len(x.shape) > 0)
    last = tuple(m.tensor_of(a).shape)[-1:]

    def inner(x: Any) -> bool:
        size = tuple(x.shape)
        return len(size) in (1, 2) and size[-2:][:1] == last

    b = m.pick("f", inner) if not m.chance(INVALID_FRACTION) else m.pick("f")
    if not inner(m.tensor_of(b)) and last and not m.chance(INVALID_FRACTION):
        b = m.leaf((*last, m.choice(1, 2, 3)))
    m.line(m.choice(f"{a} @ {b}", f"{a} @ {b}", f"F.matmul({a}, {b})", f"{a} @ {a}.mT", f"F.mm({a}, {b})"))
    if m.chance(0.3) and last:
        weight = m.leaf((2, *last))
        m.line(f"F.linear({a}, {weight}, {m.leaf((2,))})")


def normalisation(m: ProgramGenerator) -> None:
    name = m.pick("f", lambda x: len(x.shape) > 0)
    x = m.tensor_of(name)
    size = tuple(x.shape)[-1:]
    d = dim(m, x)
    m.line(
        m.choice(
            *(f"F.layer_norm({name}, {size})", f"F.normalize({name}, dim={d})", f"F.rms_norm({name}, {size})"),
            *(f"F.softmax({name}, {d})", f"F.log_softmax({name}, {d})", f"F.layer_norm({name}, (5,))"),
            *(f"{name}.norm(dim={d})", f"{name}.norm(1, {d})", f"F.cosine_similarity({name}, {name} * 2, dim={d})"),
        )
    )


def loss(m: ProgramGenerator) -> None:
    name = m.pick("f", lambda x: len(x.shape) == 2)
    size = tuple(m.tensor_of(name).shape)
    reduction_name = m.choice("mean", "sum", "none")
    if len(size) == 2 and size[1] and m.chance(0.5):
        target = m.leaf(
            size[:1],
            array=np.array(
                [m.random.randrange(size[1] + m.chance(INVALID_FRACTION)) for _ in range(size[0])], np.int64
            ),
        )
        m.line(f"F.cross_entropy({name}, {target}, reduction={reduction_name!r})")
        return
    target = m.pick("f", lambda x: tuple(x.shape) == size)
    if (
        tuple(m.tensor_of(target).shape) != size or m.tensor_of(target).dtype is not m.tensor_of(name).dtype
    ):  # losses promote differently
        target = m.line(f"{m.leaf(size)}.to({name}.dtype)")
    m.line(f"F.{m.random.choice(LOSSES)}({name}, {target}, reduction={reduction_name!r})")


def conversion(m: ProgramGenerator) -> None:
    name = m.pick("fib")
    dtype = m.random.choice(TYPES)
    if dtype == "uint8" and kind_of(m.tensor_of(name)) == "f":
        dtype = "int64"  # casting a negative float to uint8 is undefined
    m.line(
        m.choice(f"{name}.to(lib.{dtype})", f"{name}.float()", f"{name}.double()", f"{name}.long()", f"{name}.bool()")
    )


CALLS: list[tuple[Callable[[ProgramGenerator], None], float]] = [
    *[(unary, 4.0), (binary, 4.0), (arithmetic, 4.0), (comparison, 1.0), (logical, 0.5), (where, 1.0)],
    *[
        (reduction, 4.0),
        (along_dim, 2.0),
        (select_largest, 0.5),
        (shape, 7.0),
        (concatenation, 1.5),
        (index, 3.0),
        (masked, 1.0),
    ],
    *[
        (gather, 1.0),
        (in_place, 5.0),
        (change_dims, 0.5),
        (product, 2.0),
        (normalisation, 1.5),
        (loss, 1.0),
        (conversion, 1.0),
    ],
]
