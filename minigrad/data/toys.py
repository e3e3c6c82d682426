"""Points in the plane in classes that a line cannot part: moons, circles, spirals, and blobs.

Where they agree: `n` points in all, as evenly over the classes as can be, in an order drawn from `seed`; `noise` is the
standard deviation of what is added to each coordinate. They return x, (n, 2) of float32, and y, (n,) of int64, on
`device`; NumPy computes them, so that the numbers are the same on every device. ArgumentError for what is out of range.
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
    """Two half circles of radius 1 that reach into each other: scikit-learn's `make_moons`.

    Class 0 is (cos t, sin t), class 1 (1 - cos t, 1/2 - sin t), t from 0 to pi in even steps.

    >>> x, y = moons(100)
    >>> x.shape, y.sum().item()
    ((100, 2), 50)
    """

    def curve(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        t = np.linspace(0, math.pi, count)
        return (np.cos(t), np.sin(t)) if not k else (1 - np.cos(t), 0.5 - np.sin(t))

    return _points("moons", n, 2, noise, seed, device, curve)


def circles(
    n: int = 200, noise: float = 0.05, factor: float = 0.5, seed: int = 0, device: str | None = None
) -> tuple[Tensor, Tensor]:
    """A circle of radius 1, class 0, and one of radius `factor`, from 0 up to 1, inside it, class 1: scikit-learn's
    `make_circles`."""
    if not 0 <= factor < 1:
        raise ArgumentError(f"circles: factor={factor} is the inner radius, from 0 up to, and without, 1.")

    def curve(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        t = np.linspace(0, 2 * math.pi, count, endpoint=False)
        radius = factor if k else 1.0
        return radius * np.cos(t), radius * np.sin(t)

    return _points("circles", n, 2, noise, seed, device, curve)


def spirals(
    n: int = 300, classes: int = 3, noise: float = 0.03, turns: float = 0.75, seed: int = 0, device: str | None = None
) -> tuple[Tensor, Tensor]:
    """`classes` arms of a spiral (Archimedes'), from the middle to radius 1, each after `turns` turns.

    On arm k the angle is 2 pi (k / classes + turns r) at radius r.
    """
    if classes < 1:
        raise ArgumentError(f"spirals: classes={classes!r} is not an int of 1 or more.")

    def curve(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        r = np.linspace(0, 1, count)
        t = 2 * math.pi * (k / classes + turns * r)
        return r * np.cos(t), r * np.sin(t)

    return _points("spirals", n, classes, noise, seed, device, curve)


def blobs(
    n: int = 300,
    centers: int | Sequence[Sequence[float]] = 3,
    std: float = 1.0,
    seed: int = 0,
    device: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Normal clouds of standard deviation `std` around `centers`, as scikit-learn's `make_blobs`.

    Centres are points, (x, y) each, or how many to draw evenly from -10 to 10.

    >>> x, y = blobs(4, centers=[(0.0, 0.0), (5.0, 5.0)], std=0.0)
    >>> sorted(zip(y.tolist(), x.tolist()))
    [(0, [0.0, 0.0]), (0, [0.0, 0.0]), (1, [5.0, 5.0]), (1, [5.0, 5.0])]
    """
    if isinstance(centers, int):
        if centers < 1:
            raise ArgumentError(f"blobs: centers={centers} is not 1 or more.")
        drawn = rand(centers, 2, generator=Generator(_beside(seed)), device="numpy").numpy()
        places = drawn.astype(float) * 20 - 10
    else:
        places = np.array(centers, dtype=float)
        if places.ndim != 2 or places.shape[1] != 2 or not len(places):
            raise ArgumentError(f"blobs: centers={centers!r} are not points in the plane, (x, y) each.")

    def curve(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        return np.full(count, places[k, 0]), np.full(count, places[k, 1])

    return _points("blobs", n, len(places), std, seed, device, curve)


def _beside(seed: int) -> int:
    """The seed of a stream beside the one of `seed`, so that places and what is scattered are independent."""
    return Generator(seed).next_key()


def _points(
    name: str,
    n: int,
    classes: int,
    noise: float,
    seed: int,
    device: str | None,
    curve: Callable[[int, int], tuple[np.ndarray, np.ndarray]],
) -> tuple[Tensor, Tensor]:
    if n < 1:
        raise ArgumentError(f"{name}: n={n!r} is not an int of 1 or more.")
    if not 0 <= noise < math.inf:
        raise ArgumentError(f"{name}: {noise} is no standard deviation, which is 0 or more.")
    counts = [n // classes + (k < n % classes) for k in range(classes)]
    x = np.concatenate([np.stack(curve(k, count), axis=1) for k, count in enumerate(counts)])
    y = np.repeat(np.arange(classes), counts)
    generator = Generator(seed)
    order = randperm(n, generator=generator, device="numpy").numpy()
    x = x + noise * randn(n, 2, generator=generator, device="numpy").numpy().astype(float)
    return tensor(x[order].astype(np.float32), device=device), tensor(y[order], device=device)
