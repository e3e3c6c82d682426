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

__all__ = ["HostValues", "copy_to_host", "dtype_name"]

HostValues = Any  # an np.ndarray, an ArraySummary, or None if the values cannot be read
SAMPLE_CELLS = 1024  # sampled elements of a tensor with more than MAX_CELLS elements


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype without the prefix ``torch.``."""
    return str(dtype).removeprefix("torch.")


def copy_to_host(x: torch.Tensor, same_elements: HostValues = None) -> HostValues:
    """Return the values of `x` as a NumPy array, or as an `ArraySummary` if there are more than 10,000 elements.

    `same_elements` are the values of a tensor with the same elements in another order, such as the base of a view; its
    statistics are reused. NumPy has no bfloat16 and no 8-bit floats: those become float32 arrays whose dtype's metadata
    stores the name. Returns None for tensors without data, such as those on the device "meta".
    """
    x = x.detach()
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


def _to_numpy(x: torch.Tensor) -> Any:
    """Return a copy of the elements of `x`."""
    kind = _numpy_dtype(x.dtype)
    host = x.cpu() if kind.metadata is None else x.to("cpu", torch.float32)
    return np.array(host.numpy(), dtype=kind, copy=True, order="C")


@cache
def _numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """Return the NumPy dtype of the same name, or float32 with that name as metadata."""
    name = dtype_name(dtype)
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(np.float32, metadata={"name": name})


@lru_cache(maxsize=256)
def _sample(shape: tuple[int, ...], device: torch.device) -> tuple[int, int, tuple[int, int], torch.Tensor]:
    """Return the rows and columns of the subsampled picture of an array, its strides, and the flat indices of its
    elements.
    """
    rows, cols, across = grid(shape)
    down, right = subsampling_step(rows, cols, SAMPLE_CELLS)
    y, x = np.meshgrid(np.arange(0, rows, down), np.arange(0, cols, right), indexing="ij")
    height, width = (shape[-2] if len(shape) > 1 else 1), (shape[-1] if shape else 1)
    matrix = (y // height) * across + x // width
    indices = (matrix * height + y % height) * width + x % width
    return *indices.shape, (down, right), torch.from_numpy(indices.reshape(-1)).to(device)


def _statistics(x: torch.Tensor, cells: Any) -> dict[str, Any]:
    """Return the statistics of all elements, as `arrays.summary` does, with the histogram of the sample `cells`."""
    if (
        not (x.dtype.is_floating_point or x.dtype.is_complex)
        or x.dtype in (torch.float16, torch.bfloat16)
        or x.dtype.itemsize == 1
    ):
        x = x.float()
    elif x.dtype.is_complex:
        x = x.abs()
    sample = abs(cells) if np.iscomplexobj(cells) else cells.astype(np.float64)
    sample = sample[np.isfinite(sample)]
    low, high, mean, std = _moments(x, sample)
    nan = inf = 0
    if not np.isfinite([low, high, mean]).all():
        nan, inf = int(x.isnan().sum()), int(x.isinf().sum())
        finite = x[x.isfinite()]
        if not finite.numel():
            return {"min": None, "max": None, "mean": None, "std": None, "hist": [0] * BINS, "nan": nan, "inf": inf}
        low, high, mean, std = _moments(finite.double(), sample)
    hist = np.histogram(sample, BINS, (low, high))[0] if high > low else np.bincount([BINS // 2], minlength=BINS)
    return {"min": low, "max": high, "mean": mean, "std": std, "hist": hist.tolist(), "nan": nan, "inf": inf}


def _moments(x: torch.Tensor, cells: Any) -> tuple[float, float, float, float]:
    """Return the minimum, maximum, mean and standard deviation of the elements of `x`, in three passes over memory.

    `torch.var_mean` takes ten times as long. If the mean is so large that the difference of squares loses its digits,
    the standard deviation is that of the sample `cells`.
    """
    low, high = x.aminmax()
    numbers: list[float] = torch.stack(
        [y.double() for y in (low, high, x.mean(), torch.linalg.vector_norm(x))]
    ).tolist()
    mean, mean_square = numbers[2], numbers[3] ** 2 / x.numel()
    variance = mean_square - mean**2
    std = variance**0.5 if variance > 1e-4 * mean_square or not mean_square else float(cells.std())
    return numbers[0], numbers[1], mean, std
