"""Transforms of an image (C, H, W) or a batch of images (N, C, H, W), with torchvision's names.

Random transforms take a `generator` (default: the global one) and draw separately for each image of a batch, on the
device of the images. Therefore, ``x = augment(x)`` in a training loop launches only a few kernels per batch, and a seed
produces the same images on every device, up to rounding. All transforms raise ShapeError for inputs that are not
images, DTypeError for inputs that are not tensors (of floating-point dtype if pixels are interpolated), and
ArgumentError for options out of range.

>>> import minigrad as mg
>>> augment = Compose([RandomHorizontalFlip(p=1.0), Normalize(mean=[0.5], std=[0.5])])
>>> augment(mg.tensor([[[0.0, 0.5, 1.0]]]))
tensor([[[ 1.,  0., -1.]]])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional import affine_grid, grid_sample, pad, stack
from minigrad.functional.creation import arange, tensor
from minigrad.random import Generator, rand, randint

__all__ = [
    "Compose",
    "Lambda",
    "Normalize",
    "Pad",
    "RandomAffine",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomRotation",
    "RandomVerticalFlip",
    "ToTensor",
]


class Compose:
    """Composition of several transforms, applied in order."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def __repr__(self) -> str:
        return f"Compose({self.transforms})"


class Lambda:
    """Transform that applies a user-defined function, which must be defined at module level for worker processes."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        if not callable(function):
            raise DTypeError(f"Lambda: expected a callable, but got {function!r}.")
        self.function = function

    def __call__(self, x: Any) -> Any:
        return self.function(x)

    def __repr__(self) -> str:
        return f"Lambda({getattr(self.function, '__name__', self.function)})"


class ToTensor:
    """Convert a NumPy array (H, W), (H, W, C) or (N, H, W, C) to a tensor (C, H, W) or (N, C, H, W).

    uint8 values in [0, 255] are scaled to float32 in [0, 1]; other dtypes are left unchanged.

    >>> ToTensor()(np.full((1, 2, 3), 255, np.uint8)).shape
    (3, 1, 2)
    """

    def __call__(self, x: Any) -> Tensor:
        if not isinstance(x, np.ndarray):
            raise DTypeError(f"ToTensor: expected a NumPy array, but got {type(x).__name__}.")
        if x.ndim not in (2, 3, 4):
            raise ShapeError(f"ToTensor: expected shape (H, W), (H, W, C) or (N, H, W, C), but got {x.shape}.")
        channels_first = x[None] if x.ndim == 2 else np.moveaxis(x, -1, -3)
        return tensor(channels_first.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else channels_first)

    def __repr__(self) -> str:
        return "ToTensor()"


class Normalize:
    """Normalise an image with ``(x - mean) / std``, where `mean` and `std` have one value, or one per channel."""

    def __init__(self, mean: Sequence[float] | float, std: Sequence[float] | float) -> None:
        self.mean, self.std = [[float(v)] if isinstance(v, int | float) else [*map(float, v)] for v in (mean, std)]
        if not all(self.std):
            raise ArgumentError(f"Normalize: std={std} contains a zero, leading to division by zero.")

    def __call__(self, x: Tensor) -> Tensor:
        channels = _check_image(x, "Normalize", requires_float=True).shape[-3]
        for name, row in (("mean", self.mean), ("std", self.std)):
            if len(row) not in (1, channels):
                raise ShapeError(f"Normalize: {name} has {len(row)} values, but the image has {channels} channels.")
        mean, std = [tensor(row, dtype=x.dtype, device=x.device).reshape(-1, 1, 1) for row in (self.mean, self.std)]
        return (x - mean) / std

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class Pad:
    """Pad an image by `padding`: an int, (left and right, top and bottom), or (left, top, right, bottom).

    `padding_mode` is "constant" (with value `fill`), "edge", "reflect" or "circular".
    """

    def __init__(self, padding: int | Sequence[int], fill: float = 0.0, padding_mode: str = "constant") -> None:
        sides = [padding] * 4 if isinstance(padding, int) else [*padding] * (2 if len(padding) == 2 else 1)
        if len(sides) != 4 or min(sides) < 0:
            raise ArgumentError(f"Pad: padding should be 1, 2 or 4 non-negative ints, but got padding={padding}.")
        modes = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "circular": "circular"}
        if padding_mode not in modes:
            raise ArgumentError(
                f"Pad: padding_mode should be one of {', '.join(map(repr, modes))}, but got {padding_mode!r}."
            )
        self.sides, self.fill, self.mode = sides, fill, modes[padding_mode]

    def __call__(self, x: Tensor) -> Tensor:
        left, top, right, bottom = self.sides
        if not any(self.sides):
            return _check_image(x, "Pad")
        fill = self.fill if self.mode == "constant" else None
        return pad(_check_image(x, "Pad"), (left, right, top, bottom), mode=self.mode, value=fill)

    def __repr__(self) -> str:
        return f"Pad({self.sides}, fill={self.fill}, mode={self.mode!r})"


class _RandomTransform:
    """Base class of random transforms: subclasses implement `_transform_batch`."""

    generator: Generator | None = None
    requires_float = False

    def __call__(self, x: Tensor) -> Tensor:
        _check_image(x, type(self).__name__, self.requires_float)
        return self._transform_batch(x) if x.ndim == 4 else self._transform_batch(x[None])[0]

    def _transform_batch(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _draw_uniform(self, x: Tensor, low: float, high: float) -> Tensor:
        """Draw one value per image from the uniform distribution on [low, high)."""
        dtype = x.dtype if x.dtype.is_floating_point else None
        return rand(len(x), generator=self.generator, dtype=dtype, device=x.device) * (high - low) + low


class RandomHorizontalFlip(_RandomTransform):
    """Flip the image horizontally with probability `p`."""

    dim = -1

    def __init__(self, p: float = 0.5, *, generator: Generator | None = None) -> None:
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p should be between 0 and 1, but got p={p}.")
        self.p, self.generator = p, generator

    def _transform_batch(self, x: Tensor) -> Tensor:
        flip_mask = (self._draw_uniform(x, 0.0, 1.0) < self.p).reshape(-1, 1, 1, 1)
        return _select(flip_mask, x.flip(self.dim), x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomVerticalFlip(RandomHorizontalFlip):
    """Flip the image vertically with probability `p`."""

    dim = -2


class RandomCrop(_RandomTransform):
    """Crop the image at a random location to `size`, an int or (height, width), after padding it by `padding`."""

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        fill: float = 0.0,
        padding_mode: str = "constant",
        *,
        generator: Generator | None = None,
    ) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        if len(self.size) != 2 or min(self.size) < 1:
            raise ArgumentError(f"RandomCrop: size should be (height, width), both at least 1, but got size={size}.")
        self.pad = None if padding is None else Pad(padding, fill, padding_mode)
        self.generator = generator

    def _transform_batch(self, x: Tensor) -> Tensor:
        x = x if self.pad is None else self.pad(x)
        (count, channels, height, width), (rows, columns) = x.shape, self.size
        if rows > height or columns > width:
            raise ShapeError(
                f"RandomCrop: required crop size {rows}x{columns} is larger than input image size {height}x{width}.\n"
                "  Pass padding=."
            )
        top = randint(height - rows + 1, (count, 1, 1), generator=self.generator, device=x.device)
        left = randint(width - columns + 1, (count, 1, 1), generator=self.generator, device=x.device)
        row, column = arange(rows, device=x.device)[:, None], arange(columns, device=x.device)
        flat_indices = ((top + row) * width + left + column).reshape(count, 1, rows * columns)
        crops = x.reshape(count, channels, height * width).gather(2, flat_indices.expand(-1, channels, -1))
        return crops.reshape(count, channels, rows, columns)

    def __repr__(self) -> str:
        return f"RandomCrop(size={self.size}, padding={self.pad})"


class RandomAffine(_RandomTransform):
    """Random affine transform of the image about its centre: rotation, translation, scaling and shear.

    The rotation angle is drawn from `degrees`, (min, max) or (-degrees, +degrees), counter-clockwise; the translation
    is at most `translate`, fractions of width and height; the scale factor is drawn from `scale`, and the horizontal
    shear angle from `shear`, specified like `degrees`. Pixels are interpolated; those outside the image are 0. The
    transform is differentiable.
    """

    requires_float = True

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        *,
        generator: Generator | None = None,
    ) -> None:
        self.degrees, self.shear = _parse_range(degrees, "degrees"), _parse_range(shear or 0.0, "shear")
        self.translate = tuple(translate or (0.0, 0.0))
        self.scale = tuple(scale or (1.0, 1.0))
        if len(self.translate) != 2 or not all(0 <= fraction <= 1 for fraction in self.translate):
            raise ArgumentError(
                f"{type(self).__name__}: translate should be two values between 0 and 1, but got translate={translate}."
            )
        if len(self.scale) != 2 or not 0 < self.scale[0] <= self.scale[1]:
            raise ArgumentError(
                f"{type(self).__name__}: scale should be (min, max) with 0 < min <= max, but got scale={scale}."
            )
        self.generator = generator

    def _transform_batch(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        angle, shear_angle = [self._draw_uniform(x, *bounds) * (math.pi / 180) for bounds in (self.degrees, self.shear)]
        factor = self._draw_uniform(x, *self.scale)
        shift_x, shift_y = [
            self._draw_uniform(x, -2 * fraction, 2 * fraction) for fraction in self.translate
        ]  # coordinates span [-1, 1]
        cos, sin, tan = angle.cos() / factor, angle.sin() / factor, shear_angle.tan()
        # The inverse transform maps output pixels to input pixels. `ratio` corrects for normalised coordinates, which
        # distort a rotation of a non-square image.
        rows = [cos - tan * sin, -sin - tan * cos], [sin, cos]
        ratio = ((1.0, height / width), (width / height, 1.0))
        theta = [[a * k for a, k in zip(row, ks, strict=True)] for row, ks in zip(rows, ratio, strict=True)]
        matrix = stack([stack([a, b, -(a * shift_x + b * shift_y)], dim=1) for a, b in theta], dim=1)
        return grid_sample(x, affine_grid(matrix, x.shape))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.degrees}, {self.translate}, {self.scale}, {self.shear})"


class RandomRotation(RandomAffine):
    """Rotate the image about its centre by an angle drawn from `degrees`, (min, max) or (-degrees, +degrees)."""

    def __init__(self, degrees: float | Sequence[float], *, generator: Generator | None = None) -> None:
        super().__init__(degrees, generator=generator)


def _parse_range(bounds: float | Sequence[float], name: str) -> tuple[float, float]:
    low, high = (-abs(bounds), abs(bounds)) if isinstance(bounds, int | float) else bounds
    if not low <= high:
        raise ArgumentError(f"{name} should be (min, max) with min <= max, but got {name}={bounds}.")
    return float(low), float(high)


def _select(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    out: Tensor = ops.where(condition, a, b)
    return out


def _check_image(x: Any, caller: str, requires_float: bool = False) -> Tensor:
    if not isinstance(x, Tensor):
        raise DTypeError(f"{caller}: expected a tensor, but got {type(x).__name__}; ToTensor() converts NumPy arrays.")
    if x.ndim not in (3, 4):
        raise ShapeError(f"{caller}: expected shape (C, H, W) or (N, C, H, W), but got {x.shape}.")
    if requires_float and not x.dtype.is_floating_point:
        raise DTypeError(f"{caller}: expected a floating-point tensor, but got {x.dtype.name}.\n  Write x / 255.")
    return x
