"""Random tensors: PyTorch's sampling functions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import minigrad.backends.arrays  # noqa: F401 -- registers the kernels of arrays
from minigrad.backends.limits import check_count
from minigrad.core import views
from minigrad.core.dispatch import dispatch
from minigrad.core.dtypes import DType, as_dtype, float32, get_default_dtype, int64
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, describe_type
from minigrad.core.op import OPS
from minigrad.core.registry import register_method
from minigrad.core.shapes import Shape, broadcast_shapes, parse_size
from minigrad.core.storage import check_device, to_numpy
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
    """Return a tensor of samples from the uniform distribution on [0, 1)."""
    return _sample_float(
        "random_uniform", "rand", parse_size(sizes, "rand", size), generator, dtype, device, requires_grad
    )


def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of samples from the standard normal distribution."""
    return _sample_float(
        "random_normal", "randn", parse_size(sizes, "randn", size), generator, dtype, device, requires_grad
    )


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
    """Return a tensor of integers sampled uniformly from [`low`, `high`), int64 by default.

    Also ``randint(high, size)``. Raises ArgumentError for an empty range, DTypeError if `dtype` cannot represent it.
    """
    if size is None or high is None:
        low, high, size = 0, low, high if size is None else size
    if size is None:
        raise DTypeError(f"randint: missing the argument size.\n  Pass a shape: randint({high}, (2, 3)).")
    check_device(device, "randint")
    shape = parse_size((size,), "randint")
    out = _sample_int("randint", shape, low, high, generator, int64 if dtype is None else as_dtype(dtype), device)
    return out.requires_grad_() if requires_grad else out


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType = int64,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a random permutation of the integers from 0 to ``n - 1``."""
    check_device(device, "randperm")
    (count,) = parse_size((n,), "randperm")
    out: Tensor = _sample_op("random_permutation", count, generator, device, count=count).to(as_dtype(dtype))
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
    """Return a tensor of samples from normal distributions with `mean` and standard deviation `std`.

    Either both are scalars and `size` is given, or one or both are tensors, which broadcast. Raises ArgumentError for a
    negative `std`.
    """
    tensors = [x.detach() for x in (mean, std) if isinstance(x, Tensor)]
    if bool(tensors) == (size is not None):
        raise ArgumentError("normal: scalars require a size, and tensors do not accept one: normal(0.0, 1.0, (2, 3)).")
    if np.any((to_numpy(std._array) if isinstance(std, Tensor) else np.asarray(std)) < 0):
        raise ArgumentError(f"normal: expects all elements of std >= 0.0, but got {std!r}.")
    shape = broadcast_shapes(*[x.shape for x in tensors], op="normal") if tensors else parse_size((size,), "normal")
    result_dtype = tensors[0].dtype if tensors and dtype is None else dtype
    result_device = tensors[0].device if tensors and device is None else device
    samples = _sample_float("random_normal", "normal", shape, generator, result_dtype, result_device, False)
    mean, std = [x.detach() if isinstance(x, Tensor) else x for x in (mean, std)]
    out: Tensor = samples * std + mean
    return out.requires_grad_() if requires_grad else out


@register_method("bernoulli")
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Return samples, 0 or 1, in the shape and dtype of `input`, which contains the probabilities of 1.

    A float `p` replaces these probabilities.

    Raises ArgumentError for probabilities outside [0, 1], DTypeError for integer dtypes without `p`.
    """
    if not isinstance(input, Tensor):
        raise DTypeError(
            f"bernoulli: input is {describe_type(input)}; expected a tensor.\n"
            "  Write bernoulli(mg.full(size, p)), with the probability of each element."
        )
    probabilities = input.detach() if p is None else p
    if p is None and not input.dtype.is_floating_point:
        raise DTypeError(f"bernoulli: expected a floating-point tensor of probabilities, but got {input.dtype.name}.")
    return _sample_bernoulli("bernoulli", input, probabilities, generator).to(input.dtype)


@register_method("multinomial")
def multinomial(
    input: Tensor, num_samples: Any, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Return indices sampled with probabilities proportional to `input`.

    `input` has shape (n,) or (m, n), the result (num_samples,) or (m, num_samples). Without `replacement` indices are
    distinct. Raises ArgumentError for weights that are negative, not finite or all 0, ShapeError for more samples than
    positive weights, DTypeError for integer dtypes.

    >>> import minigrad as mg
    >>> mg.multinomial(mg.tensor([0.0, 1.0, 0.0]), 4, replacement=True).tolist()
    [1, 1, 1, 1]
    """
    if not input.dtype.is_floating_point:
        raise DTypeError(f"multinomial: only supports floating-point dtypes for input, got: {input.dtype.name}.")
    if input.ndim not in (1, 2) or not input._array.size:
        raise ShapeError(f"multinomial: prob_dist must be 1 or 2 dim and not empty, but got shape {input.shape}.")
    if not isinstance(num_samples, int) or num_samples < 1:
        raise ShapeError(f"multinomial: expected num_samples to be an int > 0, but got {num_samples!r}.")
    weights = to_numpy(input._array)
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any(-1).all():
        raise ArgumentError("multinomial: probability tensor contains either inf, nan, element < 0 or a row of zeros.")
    available = int((weights > 0).sum(-1).min())
    if not replacement and num_samples > available:
        raise ShapeError(
            f"multinomial: cannot sample {num_samples} samples without replacement from {available} positive weights."
            "\n  Write replacement=True to sample an index more than once."
        )
    rows = weights.size // weights.shape[-1]
    count = rows * num_samples if replacement else weights.size
    return _sample_op(
        "random_choice", count, generator, None, input.detach(), count=num_samples, replacement=bool(replacement)
    )


def rand_like(input: Tensor, **options: Any) -> Tensor:
    """Return `rand` with the shape of `input` and, by default, its dtype and device."""
    return rand(input.shape, **{"dtype": input.dtype, "device": input.device, **options})


def randn_like(input: Tensor, **options: Any) -> Tensor:
    """Return `randn` with the shape of `input` and, by default, its dtype and device."""
    return randn(input.shape, **{"dtype": input.dtype, "device": input.device, **options})


def randint_like(input: Tensor, low: int = 0, high: int | None = None, **options: Any) -> Tensor:
    """Return `randint` with the shape of `input` and, by default, its dtype and device.

    Also ``randint_like(input, high)``.
    """
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.shape, **{"dtype": input.dtype, "device": input.device, **options})


# --- in-place ---


@register_method("uniform_")
def _uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill in-place with samples from the uniform distribution on [`from_`, `to`).

    Raises ArgumentError if `from_` > `to`.
    """
    _check_target("uniform_", self, needs_float=True)
    if not from_ <= to:
        raise ArgumentError(f"uniform_: expects to return a [from, to) range, but found from={from_} > to={to}.")
    return self.copy_(rand_like(self, generator=generator) * (to - from_) + from_)


@register_method("normal_")
def _normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill in-place with samples from the normal distribution with `mean` and standard deviation `std`."""
    _check_target("normal_", self, needs_float=True)
    return self.copy_(normal(mean, std, self.shape, generator=generator, dtype=self.dtype, device=self.device))


@register_method("exponential_")
def _exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill in-place with samples from the exponential distribution with rate `lambd` (mean 1 / `lambd`)."""
    _check_target("exponential_", self, needs_float=True)
    if not lambd > 0:
        raise ArgumentError(f"exponential_: expects lambda > 0.0, but found lambda={lambd}.")
    return self.copy_(OPS["log1p"](-rand_like(self, generator=generator)) / -lambd)


@register_method("bernoulli_")
def _bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill in-place with samples that are 1 with probability `p`, which broadcasts, and 0 otherwise.

    Raises the same errors as `bernoulli`.
    """
    _check_target("bernoulli_", self)
    return self.copy_(_sample_bernoulli("bernoulli_", self, p, generator))


@register_method("random_")
def _random_(self: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Fill in-place with integers sampled uniformly from [`from_`, `to`). Also ``random_(to)``.

    Without bounds the range is from 0 to the largest value of the dtype, or the largest exact integer of a float dtype.
    """
    if to is None:
        from_, to = 0, from_ or _integer_range(self.dtype)[1]
    _check_target("random_", self)
    return self.copy_(_sample_int("random_", self.shape, from_, to, generator, self.dtype, self.device))


# --- helpers ---


def _sample_op(
    name: str, draws: int, generator: Generator | None, device: str | None, *operands: Tensor, **attrs: Any
) -> Tensor:
    """Apply the random op `name`, which consumes `draws` numbers, on the device of `operands` or else `device`."""
    if not isinstance(generator, Generator | None):
        raise DTypeError(
            f"{name}: generator is {describe_type(generator)}; expected a Generator.\n"
            "  Write generator=mg.Generator(seed)."
        )
    key, offset = (default_generator if generator is None else generator).draw(draws)
    attrs = {"key": key, "offset": offset, **attrs}
    if not operands:
        return wrap(dispatch(name, check_device(device, name), (), attrs))
    out: Tensor = Tensor._apply(OPS[name], operands, attrs)
    return out


def _sample_float(
    op: str,
    func_name: str,
    shape: Shape,
    generator: Generator | None,
    dtype: DType | None,
    device: str | None,
    requires_grad: bool,
) -> Tensor:
    check_count(shape, check_device(device, func_name), func_name)
    result_dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not result_dtype.is_floating_point:
        raise DTypeError(f"{func_name}: expected a floating-point dtype, but got {result_dtype.name}; see randint.")
    out = _sample_op(op, prod(shape), generator, device, shape=shape, dtype=result_dtype)
    return out.requires_grad_() if requires_grad else out


def _sample_int(
    name: str, shape: Shape, low: Any, high: Any, generator: Generator | None, dtype: DType, device: str | None
) -> Tensor:
    if not isinstance(low, int) or not isinstance(high, int):
        raise DTypeError(f"{name}: expected ints as bounds, but got {low!r} and {high!r}.")
    if low >= high:
        raise ArgumentError(f"{name}: expects 'from' to be less than 'to', but got from={low} >= to={high}.")
    check_count(shape, check_device(device, name), name)
    min_value, end = _integer_range(dtype)
    if low < min_value or high > end:
        raise DTypeError(f"{name}: the range [{low}, {high}) is out of bounds for {dtype.name}.")
    return _sample_op("random_int", prod(shape), generator, device, shape=shape, low=low, high=high, dtype=dtype)


def _integer_range(dtype: DType) -> tuple[int, int]:
    """Return the half-open range of the integers of a dtype; for floats, the range in which all integers are exact."""
    if dtype.is_floating_point:
        digits = 24 if dtype is float32 else 53
        return -(2**digits), 2**digits + 1
    if dtype.kind == 0:
        return 0, 2
    limits = np.iinfo(dtype.name)
    return int(limits.min), int(limits.max) + 1


def _sample_bernoulli(name: str, reference: Tensor, p: Tensor | float, generator: Generator | None) -> Tensor:
    probabilities = to_numpy(p._array) if isinstance(p, Tensor) else np.asarray(p)
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise ArgumentError(f"{name}: expects p to be in [0, 1], but got p={p!r}.")
    sample_dtype = p.dtype if isinstance(p, Tensor) else reference.dtype
    samples = rand(
        reference.shape,
        generator=generator,
        dtype=sample_dtype if sample_dtype.is_floating_point else None,
        device=reference.device,
    )
    return samples < p


def _check_target(name: str, x: Tensor, needs_float: bool = False) -> None:
    if needs_float and not x.dtype.is_floating_point:
        raise DTypeError(f"{name}: expected a floating-point tensor, but got {x.dtype.name}; see random_.")
    views.check_writable(x, x.shape, x.dtype.kind, name)
