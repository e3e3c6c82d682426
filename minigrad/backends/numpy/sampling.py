"""Grid sampling kernels. Each pixel is a row of channels; an extra row of zeros represents pixels outside the image."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Shape
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def corner_weights(x: Array, y: Array, shape: Shape, nearest: bool) -> Iterator[tuple[Array, Array]]:
    """Yield the pixel index and the interpolation weight of each corner around points (x, y), in images of `shape`."""
    batch, _, height, width = shape
    first = np.arange(0, batch * height * width, height * width)[:, None, None]
    left, top = (np.rint(x), np.rint(y)) if nearest else (np.floor(x), np.floor(y))
    fraction_x, fraction_y = x - left, y - top
    for dx, dy in [(0, 0)] if nearest else product((0, 1), repeat=2):
        column, row = left + dx, top + dy
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        column, row = [np.where(inside, coordinate, 0).astype(np.intp) for coordinate in (column, row)]
        pixel = np.where(inside, first + row * width + column, batch * height * width)
        yield (
            pixel,
            np.ones_like(x)
            if nearest
            else (fraction_x if dx else 1 - fraction_x) * (fraction_y if dy else 1 - fraction_y),
        )


@kernel("grid_sample", DEVICE)
def grid_sample(a: Array, b: Array, c: Array, *, nearest: bool) -> Array:
    batch, channels, height, width = a.shape
    pixels = np.zeros((batch * height * width + 1, channels), a.dtype)
    pixels[:-1] = a.transpose(0, 2, 3, 1).reshape(batch * height * width, channels)
    out = np.zeros((*b.shape, channels), a.dtype)
    for pixel, weight in corner_weights(b, c, a.shape, nearest):
        out += pixels[pixel] * weight[..., None]
    return np.ascontiguousarray(out.transpose(0, 3, 1, 2))


@kernel("grid_put", DEVICE)
def grid_put(a: Array, b: Array, c: Array, *, shape: Shape, nearest: bool) -> Array:
    batch, channels, height, width = shape
    values = a.transpose(0, 2, 3, 1)
    out = np.zeros((batch * height * width + 1) * channels, a.dtype)
    for pixel, weight in corner_weights(b, c, shape, nearest):
        offsets = pixel[..., None] * channels + np.arange(channels)
        np.add.at(out, offsets.reshape(-1), (values * weight[..., None]).reshape(-1))  # fastest on flat arrays
    image = out[: out.size - channels].reshape(batch, height, width, channels)
    return np.ascontiguousarray(image.transpose(0, 3, 1, 2))
