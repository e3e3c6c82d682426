"""Copy the values of PyTorch tensors to the host: small tensors as NumPy arrays, large ones as a summary.

Statistics are computed on the tensor's own device, so that only the sampled elements are transferred.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch

from minigrad_viz.trace.array_summary import ArraySummary
from minigrad_viz.trace.arrays import BINS, MAX_CELLS, grid, subsampling_step

__all__ = ["HostValues", "copy_to_host", "dtype_name", "has_same_values"]

HostValues = Any  # an np.ndarray, an ArraySummary, or None if the values cannot be read
SAMPLE_CELLS = 1024  # sampled elements of a tensor with more than MAX_CELLS elements
MAX_EXACT_ELEMENTS = 1_000_000  # elements above which the mean and the standard deviation are estimated
ESTIMATE_CELLS = 16_384  # elements from which they are estimated


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype without the prefix ``torch.``."""
    return str(dtype).removeprefix("torch.")


def copy_to_host(x: torch.Tensor, same_elements: HostValues = None) -> HostValues:
    """Return the values of `x` as a NumPy array, or as an `ArraySummary` if there are more than 10,000 elements.

    `same_elements` are the values of a tensor with the same elements in another order, such as the base of a view; its
    statistics are reused. NumPy has no bfloat16 and no 8-bit floats: those become float32 arrays whose dtype's metadata
    stores the name. Returns None for tensors whose elements cannot be read, such as those on the device "meta", nested
    tensors, and some subclasses of `torch.Tensor`.
    """
    try:
        return _copy(x.detach(), same_elements)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return None


def _copy(x: torch.Tensor, same_elements: HostValues) -> HostValues:
    if x.layout is not torch.strided:
        if not hasattr(x, "to_dense") or x.numel() > MAX_CELLS:
            return None
        x = x.to_dense()
    if x.device.type == "meta" or x.is_quantized or x.is_nested:
        return None
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    if x.numel() <= MAX_CELLS:
        return _to_numpy(x)
    rows, cols, step, indices = _sample(tuple(x.shape), x.device)
    cells = _to_numpy(x.take(indices)).reshape(rows, cols)
    if isinstance(same_elements, ArraySummary) and same_elements.size == x.numel():
        statistics = same_elements.statistics
    else:
        statistics = _statistics(x, cells)
    return ArraySummary(tuple(x.shape), dtype_name(x.dtype), cells, step, statistics)


def has_same_values(first: HostValues, second: HostValues) -> bool:
    """Whether two tensors have the same elements, as far as they were copied."""
    if isinstance(first, ArraySummary) and isinstance(second, ArraySummary):
        return first.statistics == second.statistics and has_same_values(first.cells, second.cells)
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return False
    return np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")


def _to_numpy(x: torch.Tensor) -> Any:
    """Return a copy of the elements of `x`."""
    kind = _numpy_dtype(x.dtype)
    host = x.cpu() if kind.metadata is None else x.to("cpu", torch.float32)
    return np.array(host.numpy(), copy=True, order="C").view(kind)


@cache
def _numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """Return the NumPy dtype of the same name, or float32 with that name as metadata."""
    name = dtype_name(dtype)
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(np.float32, metadata={"name": name})


@lru_cache(maxsize=256)
def _sample(
    shape: tuple[int, ...], device: torch.device, cells: int = SAMPLE_CELLS
) -> tuple[int, int, tuple[int, int], torch.Tensor]:
    """Return the rows and columns of the subsampled picture of an array, its strides, and the flat indices of its
    elements.
    """
    rows, cols, across = grid(shape)
    down, right = subsampling_step(rows, cols, cells)
    y, x = np.meshgrid(np.arange(0, rows, down), np.arange(0, cols, right), indexing="ij")
    height, width = (shape[-2] if len(shape) > 1 else 1), (shape[-1] if shape else 1)
    matrix = (y // height) * across + x // width
    indices = (matrix * height + y % height) * width + x % width
    return *indices.shape, (down, right), torch.from_numpy(indices.reshape(-1)).to(device)


def _statistics(x: torch.Tensor, cells: Any) -> dict[str, Any]:
    """Return the statistics of all elements, as `arrays.summary` does, with the histogram of the sample `cells`.

    The mean and the standard deviation of more than a million elements are those of 16,384 of them.
    """
    sample = cells
    if x.numel() > MAX_EXACT_ELEMENTS:
        sample = _to_numpy(x.take(_sample(tuple(x.shape), x.device, ESTIMATE_CELLS)[3]))
    if x.dtype.is_complex:
        x, cells, sample = x.abs(), abs(cells), abs(sample)
    elif x.dtype not in (torch.float32, torch.float64):
        x = x.float()
    x = _in_memory_order(x)
    with np.errstate(all="ignore"):  # of elements that are not finite
        low, high, mean, std = _moments(x, sample)
    nan = inf = 0
    if not np.isfinite([low, high, mean]).all():
        nan, inf = int(x.isnan().sum()), int(x.isinf().sum())
        finite = x[x.isfinite()]
        if not finite.numel():
            return {"min": None, "max": None, "mean": None, "std": None, "hist": [0] * BINS, "nan": nan, "inf": inf}
        low, high, mean, std = _moments(finite.double(), sample[np.isfinite(sample)])
    shown = cells[np.isfinite(cells)].astype(np.float64)
    hist = np.histogram(shown, BINS, (low, high))[0] if high > low else np.bincount([BINS // 2], minlength=BINS)
    estimated = {"estimated": True} if x.numel() > MAX_EXACT_ELEMENTS else {}
    statistics = {"min": low, "max": high, "mean": mean, "std": std, "hist": hist.tolist(), "nan": nan, "inf": inf}
    return statistics | estimated


def _in_memory_order(x: torch.Tensor) -> torch.Tensor:
    """Return the elements of `x` in the order of their addresses if they are adjacent, which is faster to read."""
    extent = 1
    for stride, size in sorted(zip(x.stride(), x.shape, strict=True)):
        if size > 1 and stride != extent:
            return x
        extent *= size
    return x.as_strided((x.numel(),), (1,), x.storage_offset())


def _moments(x: torch.Tensor, sample: Any) -> tuple[float, float, float, float]:
    """Return the minimum, maximum, mean and standard deviation of the elements of `x`, of which `sample` is a part.

    One pass over memory takes about as long as a pointwise operation, and `torch.var_mean` ten times as long. So the
    standard deviation is computed from the norm, unless the mean is so large that the difference loses its digits.
    """
    low, high = x.aminmax()
    if x.numel() > MAX_EXACT_ELEMENTS and sample.size:
        bounds: list[float] = torch.stack((low.double(), high.double())).tolist()
        return bounds[0], bounds[1], float(sample.mean(dtype=np.float64)), float(sample.std(dtype=np.float64))
    measures = low, high, x.mean(), torch.linalg.vector_norm(x)
    numbers: list[float] = torch.stack([measure.double() for measure in measures]).tolist()
    mean, mean_square = numbers[2], numbers[3] ** 2 / x.numel()
    variance = mean_square - mean**2
    std = variance**0.5 if variance > 1e-4 * mean_square or not mean_square else float(sample.std(dtype=np.float64))
    return numbers[0], numbers[1], mean, std
