"""Synthetic 2-D classification datasets: moons, circles, spirals and blobs.

Common arguments: `n` is the total number of points, divided evenly among the classes and shuffled with `seed`; `noise`
is the standard deviation of Gaussian noise added to each coordinate. The functions return x, float32 of shape (n, 2),
and y, int64 of shape (n,), on `device`. The points are computed with NumPy, so they are the same on every device.
Arguments out of range raise ArgumentError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import tensor
from minigrad.random import Generator, rand, randn, randperm

__all__ = ["blobs", "circles", "moons", "spirals"]


def moons(n: int = 200, noise: float = 0.1, seed: int = 0, device: str | None = None) -> tuple[Tensor, Tensor]:
    """Generate two interleaving half circles of radius 1, as scikit-learn's `make_moons`.

    Points are (cos t, sin t) in class 0 and (1 - cos t, 1/2 - sin t) in class 1, for evenly spaced t from 0 to pi.

    >>> x, y = moons(100)
    >>> x.shape, y.sum().item()
    ((100, 2), 50)
    """

    def curve(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        t = np.linspace(0, math.pi, count)
        return (np.cos(t), np.sin(t)) if not k else (1 - np.cos(t), 0.5 - np.sin(t))

    return _sample_points("moons", n, 2, noise, seed, device, curve)


def circles(
    n: int = 200, noise: float = 0.05, factor: float = 0.5, seed: int = 0, device: str | None = None
) -> tuple[Tensor, Tensor]:
    """Generate a circle of radius 1 (class 0) around a smaller one of radius 0 <= `factor` < 1 (class 1), as
    scikit-learn's `make_circles`."""
    if not 0 <= factor < 1:
        raise ArgumentError(f"circles: factor, the inner radius, should be in [0, 1), but got factor={factor}.")

    def curve(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        t = np.linspace(0, 2 * math.pi, count, endpoint=False)
        radius = factor if k else 1.0
        return radius * np.cos(t), radius * np.sin(t)

    return _sample_points("circles", n, 2, noise, seed, device, curve)


def spirals(
    n: int = 300, classes: int = 3, noise: float = 0.03, turns: float = 0.75, seed: int = 0, device: str | None = None
) -> tuple[Tensor, Tensor]:
    """Generate `classes` arms of an Archimedean spiral, from the origin to radius 1 in `turns` turns.

    On arm k, the point at radius r has the angle 2 pi (k / classes + turns r).
    """
    if classes < 1:
        raise ArgumentError(f"spirals: classes should be a positive int, but got classes={classes!r}.")

    def curve(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        r = np.linspace(0, 1, count)
        t = 2 * math.pi * (k / classes + turns * r)
        return r * np.cos(t), r * np.sin(t)

    return _sample_points("spirals", n, classes, noise, seed, device, curve)


def blobs(
    n: int = 300,
    centers: int | Sequence[Sequence[float]] = 3,
    std: float = 1.0,
    seed: int = 0,
    device: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Generate isotropic Gaussian blobs of standard deviation `std`, as scikit-learn's `make_blobs`.

    `centers` is a list of points (x, y), or the number of centres to draw uniformly from [-10, 10).

    >>> x, y = blobs(4, centers=[(0.0, 0.0), (5.0, 5.0)], std=0.0)
    >>> sorted(zip(y.tolist(), x.tolist()))
    [(0, [0.0, 0.0]), (0, [0.0, 0.0]), (1, [5.0, 5.0]), (1, [5.0, 5.0])]
    """
    if isinstance(centers, int):
        if centers < 1:
            raise ArgumentError(f"blobs: centers should be at least 1, but got centers={centers}.")
        unit_points = rand(centers, 2, generator=Generator(_derive_seed(seed)), device="numpy").numpy()
        centre_points = unit_points.astype(float) * 20 - 10
    else:
        centre_points = np.array(centers, dtype=float)
        if centre_points.ndim != 2 or centre_points.shape[1] != 2 or not len(centre_points):
            raise ArgumentError(f"blobs: centers should be a list of points (x, y), but got centers={centers!r}.")

    def curve(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        return np.full(count, centre_points[k, 0]), np.full(count, centre_points[k, 1])

    return _sample_points("blobs", n, len(centre_points), std, seed, device, curve)


def _derive_seed(seed: int) -> int:
    """Derive a second seed for the centres, which are then independent of the noise."""
    return Generator(seed).next_key()


def _sample_points(
    name: str,
    n: int,
    classes: int,
    noise: float,
    seed: int,
    device: str | None,
    curve: Callable[[int, int], tuple[np.ndarray, np.ndarray]],
) -> tuple[Tensor, Tensor]:
    if n < 1:
        raise ArgumentError(f"{name}: n should be a positive int, but got n={n!r}.")
    if not 0 <= noise < math.inf:
        raise ArgumentError(f"{name}: the standard deviation should be finite and non-negative, but got {noise}.")
    counts = [n // classes + (k < n % classes) for k in range(classes)]
    x = np.concatenate([np.stack(curve(k, count), axis=1) for k, count in enumerate(counts)])
    y = np.repeat(np.arange(classes, dtype=np.int64), counts)
    generator = Generator(seed)
    order = randperm(n, generator=generator, device="numpy").numpy()
    x = x + noise * randn(n, 2, generator=generator, device="numpy").numpy().astype(float)
    return tensor(x[order].astype(np.float32), device=device), tensor(y[order], device=device)
