"""Random tensors: PyTorch's functions that draw from a generator."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import minigrad.backends.arrays  # noqa: F401 -- registers the kernels of arrays
from minigrad.backends.limits import check_count
from minigrad.core import views
from minigrad.core.dispatch import dispatch
from minigrad.core.dtypes import DType, as_dtype, float32, get_default_dtype, int64
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, a_kind
from minigrad.core.op import OPS
from minigrad.core.registry import register_method
from minigrad.core.shapes import Shape, broadcast_shapes, size_of
from minigrad.core.storage import check_device, host
from minigrad.core.tensor import Tensor, wrap
from minigrad.random.generator import Generator, default_generator

__all__ = [
    "bernoulli",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]


def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn evenly from [0, 1)."""
    return _made("random_uniform", "rand", size_of(sizes, "rand", size), generator, dtype, device, requires_grad)


def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn from the normal distribution of mean 0 and variance 1."""
    return _made("random_normal", "randn", size_of(sizes, "randn", size), generator, dtype, device, requires_grad)


def randint(
    low: int = 0,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Whole numbers drawn evenly from `low` up to, and without, `high`, as int64: also ``randint(high, size)``.

    Raises ArgumentError if there are none, DTypeError where `dtype` cannot hold them.
    """
    if size is None or high is None:
        low, high, size = 0, low, high if size is None else size
    if size is None:
        raise DTypeError(f"randint: how many numbers below {high}?\n  Give a shape: randint({high}, (2, 3)).")
    check_device(device, "randint")
    shape = size_of((size,), "randint")
    out = _whole("randint", shape, low, high, generator, int64 if dtype is None else as_dtype(dtype), device)
    return out.requires_grad_() if requires_grad else out


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType = int64,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The ints from 0 to ``n - 1`` in random order, each order as likely as another."""
    check_device(device, "randperm")
    (count,) = size_of((n,), "randperm")
    out: Tensor = _drawn("random_permutation", count, generator, device, count=count).to(as_dtype(dtype))
    return out.requires_grad_() if requires_grad else out


def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers drawn from normal distributions of `mean` and standard deviation `std`.

    Both numbers, and a `size`; or one or both tensors, which broadcast, and without one. Raises ArgumentError for a
    `std` below 0.
    """
    given = [x.detach() for x in (mean, std) if isinstance(x, Tensor)]
    if bool(given) == (size is not None):
        raise ArgumentError("normal: of two numbers it takes a size, of tensors it does not: normal(0.0, 1.0, (2, 3)).")
    if np.any((host(std._array) if isinstance(std, Tensor) else np.asarray(std)) < 0):
        raise ArgumentError(f"normal: a standard deviation is 0 or more, and std is {std!r}.")
    shape = broadcast_shapes(*[x.shape for x in given], op="normal") if given else size_of((size,), "normal")
    kind = given[0].dtype if given and dtype is None else dtype
    place = given[0].device if given and device is None else device
    drawn = _made("random_normal", "normal", shape, generator, kind, place, False)
    mean, std = [x.detach() if isinstance(x, Tensor) else x for x in (mean, std)]
    out: Tensor = drawn * std + mean
    return out.requires_grad_() if requires_grad else out


@register_method("bernoulli")
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability in `input`, else 0, of its shape and type; with `p` in place of all its numbers.

    Raises ArgumentError for probabilities outside 0 to 1, DTypeError for ints without `p`.
    """
    if not isinstance(input, Tensor):
        raise DTypeError(
            f"bernoulli: input is {a_kind(input)}, not a tensor.\n"
            "  Write bernoulli(mg.full(size, p)), with the chance of each number."
        )
    chances = input.detach() if p is None else p
    if p is None and not input.dtype.is_floating_point:
        raise DTypeError(f"bernoulli: probabilities are fractions, and this tensor holds {input.dtype.name}.")
    return _coins("bernoulli", input, chances, generator).to(input.dtype)


@register_method("multinomial")
def multinomial(
    input: Tensor, num_samples: Any, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn with probabilities in proportion to `input`, (n,) or rows (m, n): (num_samples,) or (m, ditto).

    Without `replacement` no index is drawn twice. Raises ArgumentError for weights below 0, not finite or all 0,
    ShapeError for more samples than there are weights above 0, DTypeError for ints.

    >>> import minigrad as mg
    >>> mg.multinomial(mg.tensor([0.0, 1.0, 0.0]), 4, replacement=True).tolist()
    [1, 1, 1, 1]
    """
    if not input.dtype.is_floating_point:
        raise DTypeError(f"multinomial: weights are fractions, and this tensor holds {input.dtype.name}.")
    if input.ndim not in (1, 2) or not input._array.size:
        raise ShapeError(f"multinomial: weights are (n,) or (m, n), at least one a row, not {input.shape}.")
    if not isinstance(num_samples, int) or num_samples < 1:
        raise ShapeError(f"multinomial: num_samples={num_samples!r} is not an int of 1 or more.")
    weights = host(input._array)
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any(-1).all():
        raise ArgumentError("multinomial: weights are finite, 0 or more, and at least one of a row is above 0.")
    available = int((weights > 0).sum(-1).min())
    if not replacement and num_samples > available:
        raise ShapeError(
            f"multinomial: {num_samples} samples cannot be drawn from {available} weights above 0 without replacement."
            "\n  Write replacement=True to draw an index more than once."
        )
    rows = weights.size // weights.shape[-1]
    used = rows * num_samples if replacement else weights.size
    return _drawn(
        "random_choice", used, generator, None, input.detach(), count=num_samples, replacement=bool(replacement)
    )


def rand_like(input: Tensor, **options: Any) -> Tensor:
    """`rand` of the shape of `input` and, unless said otherwise, its type and device."""
    return rand(input.shape, **{"dtype": input.dtype, "device": input.device, **options})


def randn_like(input: Tensor, **options: Any) -> Tensor:
    """`randn` of the shape of `input` and, unless said otherwise, its type and device."""
    return randn(input.shape, **{"dtype": input.dtype, "device": input.device, **options})


def randint_like(input: Tensor, low: int = 0, high: int | None = None, **options: Any) -> Tensor:
    """`randint` of the shape of `input` and, unless said otherwise, its type and device: ``randint_like(input, high)``
    too."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.shape, **{"dtype": input.dtype, "device": input.device, **options})


# --- in place ---


@register_method("uniform_")
def _uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite these numbers by ones drawn evenly from `from_` up to `to`. Raises ArgumentError if there are none."""
    _check_target("uniform_", self, fractions=True)
    if not from_ <= to:
        raise ArgumentError(f"uniform_: no number is from {from_} up to {to}.")
    return self.copy_(rand_like(self, generator=generator) * (to - from_) + from_)


@register_method("normal_")
def _normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite these numbers by ones drawn from the normal distribution of `mean` and standard deviation `std`."""
    _check_target("normal_", self, fractions=True)
    return self.copy_(normal(mean, std, self.shape, generator=generator, dtype=self.dtype, device=self.device))


@register_method("exponential_")
def _exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite these numbers by ones drawn from the exponential distribution of rate `lambd`, of mean 1 / `lambd`."""
    _check_target("exponential_", self, fractions=True)
    if not lambd > 0:
        raise ArgumentError(f"exponential_: a rate is above 0, and lambd is {lambd}.")
    return self.copy_(OPS["log1p"](-rand_like(self, generator=generator)) / -lambd)


@register_method("bernoulli_")
def _bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Overwrite these numbers by 1 with probability `p`, else 0; a tensor `p` broadcasts. Raises as `bernoulli`."""
    _check_target("bernoulli_", self)
    return self.copy_(_coins("bernoulli_", self, p, generator))


@register_method("random_")
def _random_(self: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Overwrite these numbers by whole ones drawn evenly from `from_` up to `to`: also ``random_(to)``.

    Without either from 0 up to the largest of the type, or what it counts to without gaps.
    """
    if to is None:
        from_, to = 0, from_ or _ends(self.dtype)[1]
    _check_target("random_", self)
    return self.copy_(_whole("random_", self.shape, from_, to, generator, self.dtype, self.device))


# --- what they share ---


def _drawn(
    name: str, used: int, generator: Generator | None, device: str | None, *operands: Tensor, **attrs: Any
) -> Tensor:
    """What the op `name`, which uses up `used` numbers of `generator`, gives: on `device`, or where `operands` are."""
    if not isinstance(generator, Generator | None):
        raise DTypeError(f"{name}: generator is {a_kind(generator)}.\n  Write generator=mg.Generator(seed).")
    key, offset = (default_generator if generator is None else generator).draw(used)
    attrs = {"key": key, "offset": offset, **attrs}
    if not operands:
        return wrap(dispatch(name, check_device(device, name), (), attrs))
    out: Tensor = Tensor._apply(OPS[name], operands, attrs)
    return out


def _made(
    op: str,
    asked: str,
    shape: Shape,
    generator: Generator | None,
    dtype: DType | None,
    device: str | None,
    requires_grad: bool,
) -> Tensor:
    check_count(shape, check_device(device, asked), asked)
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not kind.is_floating_point:
        raise DTypeError(f"{asked}: it draws fractions, which {kind.name} does not hold; see randint.")
    out = _drawn(op, prod(shape), generator, device, shape=shape, dtype=kind)
    return out.requires_grad_() if requires_grad else out


def _whole(
    name: str, shape: Shape, low: Any, high: Any, generator: Generator | None, dtype: DType, device: str | None
) -> Tensor:
    if not isinstance(low, int) or not isinstance(high, int):
        raise DTypeError(f"{name}: from {low!r} up to {high!r}: both are ints.")
    if low >= high:
        raise ArgumentError(f"{name}: no whole number is from {low} up to, and without, {high}.")
    check_count(shape, check_device(device, name), name)
    least, end = _ends(dtype)
    if low < least or high > end:
        raise DTypeError(f"{name}: numbers from {low} up to {high} do not all fit into {dtype.name}.")
    return _drawn("random_int", prod(shape), generator, device, shape=shape, low=low, high=high, dtype=dtype)


def _ends(dtype: DType) -> tuple[int, int]:
    """The least whole number of a type, and the one after the largest; of floats, where they are without gaps."""
    if dtype.is_floating_point:
        digits = 24 if dtype is float32 else 53
        return -(2**digits), 2**digits + 1
    if dtype.kind == 0:
        return 0, 2
    limits = np.iinfo(dtype.name)
    return int(limits.min), int(limits.max) + 1


def _coins(name: str, like: Tensor, p: Tensor | float, generator: Generator | None) -> Tensor:
    chances = host(p._array) if isinstance(p, Tensor) else np.asarray(p)
    if not ((chances >= 0) & (chances <= 1)).all():
        raise ArgumentError(f"{name}: a probability is from 0 to 1, and p is {p!r}.")
    kind = p.dtype if isinstance(p, Tensor) else like.dtype
    drawn = rand(like.shape, generator=generator, dtype=kind if kind.is_floating_point else None, device=like.device)
    return drawn < p


def _check_target(name: str, x: Tensor, fractions: bool = False) -> None:
    if fractions and not x.dtype.is_floating_point:
        raise DTypeError(f"{name}: it draws fractions, which {x.dtype.name} does not hold; see random_.")
    views.check_writable(x, x.shape, x.dtype.kind, name)
