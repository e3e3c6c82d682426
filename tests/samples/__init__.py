"""Sample calls of every operation, from which tests against PyTorch and finite differences are generated.

Each family lists its samples in a module here. A sample is one call, written once for both libraries: its function
takes `F`, a namespace of minigrad's or PyTorch's functions, and the inputs as tensors.

    sample("conv2d, stride 2", lambda F, x, w: F.conv2d(x, w, stride=2), numbers(2, 3, 6, 6), numbers(4, 3, 3, 3))
"""

import importlib
import pkgutil
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Sample", "all_samples", "distinct_floats", "distinct_ints", "sample"]


class Sample(NamedTuple):
    """A sample call. Floating-point inputs are cast to the tested dtype and differentiated; others are unchanged."""

    name: str
    call: Callable[..., Any]
    inputs: tuple[Any, ...]
    differs: Mapping[str, str]  # deliberate differences from PyTorch: layout or dtype -> reason; tested elsewhere
    kinked: bool  # not differentiable near these inputs, so finite differences do not apply
    parity: bool  # whether PyTorch supports this call; otherwise only finite differences check it
    eps: float  # the step of the finite differences


def sample(
    name: str,
    call: Callable[..., Any],
    *inputs: Any,
    differs: Mapping[str, str] = MappingProxyType({}),
    kinked: bool = False,
    parity: bool = True,
    eps: float = 1e-6,
) -> Sample:
    return Sample(name, call, with_int64(inputs), differs, kinked, parity, eps)


def with_int64(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert arrays of NumPy's default integers, which are as wide as a pointer, to int64, the tensors' default."""
    return tuple([x.astype(np.int64) if getattr(x, "dtype", None) == np.intp else x for x in inputs])


def distinct_floats(*shape: int, low: float = -3.0, high: float = 3.0, seed: int = 0) -> Any:
    """Return floats of `shape`, evenly spaced from `low` to `high` and shuffled: distinct and not integers."""
    count = int(np.prod(shape))
    spaced = [low + (high - low) * (k + 0.37) / max(count, 1) for k in range(count)]
    random.Random(f"{shape}{seed}").shuffle(spaced)
    return np.array(spaced).reshape(shape)


def distinct_ints(*shape: int, high: int, seed: int = 0) -> Any:
    """Return integers of `shape`, from 0 to `high` - 1, each about equally often."""
    count = int(np.prod(shape))
    spread = [k % high for k in range(count)]
    random.Random(f"{shape}{seed}").shuffle(spread)
    return np.array(spread, dtype=np.int64).reshape(shape)


def all_samples() -> dict[str, Sample]:
    """Return every sample, keyed by "family: name"."""
    samples: dict[str, Sample] = {}
    for module in pkgutil.iter_modules(__path__):
        for sample in importlib.import_module(f"samples.{module.name}").SAMPLES:
            key = f"{module.name}: {sample.name}"
            assert key not in samples, f"two samples are called {key!r}"
            samples[key] = sample
    return samples
