"""Transforms of images, one (C, H, W) or a batch (N, C, H, W), with torchvision's names.

Each is made once and called often. Those that draw at random take a `generator`, the default one for None, and draw for
each image of a batch by itself, on the device where the images are: so ``x = augment(x)`` in a training loop is a few
kernels a batch, and the same seed gives the same pictures on every device, up to rounding. ShapeError for what is no
image, DTypeError for what is no tensor (of fractions, where pixels are mixed), ArgumentError for options out of range.

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
    """One transform after another."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def __repr__(self) -> str:
        return f"Compose({self.transforms})"


class Lambda:
    """A function of your own as a transform. (One with a name, at the top of a file, can go to worker processes.)"""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        if not callable(function):
            raise DTypeError(f"Lambda: {function!r} cannot be called.")
        self.function = function

    def __call__(self, x: Any) -> Any:
        return self.function(x)

    def __repr__(self) -> str:
        return f"Lambda({getattr(self.function, '__name__', self.function)})"


class ToTensor:
    """A NumPy array (H, W) or (H, W, C), or a batch (N, H, W, C), as a tensor with the channels before the rows.

    Bytes, 0 to 255, become float32 from 0 to 1; other numbers keep their type and size.

    >>> ToTensor()(np.full((1, 2, 3), 255, np.uint8)).shape
    (3, 1, 2)
    """

    def __call__(self, x: Any) -> Tensor:
        if not isinstance(x, np.ndarray):
            raise DTypeError(f"ToTensor: it takes a NumPy array, not {type(x).__name__}.")
        if x.ndim not in (2, 3, 4):
            raise ShapeError(f"ToTensor: an image is (H, W) or (H, W, C), a batch (N, H, W, C), not {x.shape}.")
        moved = x[None] if x.ndim == 2 else np.moveaxis(x, -1, -3)
        return tensor(moved.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else moved)

    def __repr__(self) -> str:
        return "ToTensor()"


class Normalize:
    """``(x - mean) / std``, with a number a channel, or one for all."""

    def __init__(self, mean: Sequence[float] | float, std: Sequence[float] | float) -> None:
        self.mean, self.std = [[float(v)] if isinstance(v, int | float) else [*map(float, v)] for v in (mean, std)]
        if not all(self.std):
            raise ArgumentError(f"Normalize: std={std} has a 0, by which nothing can be divided.")

    def __call__(self, x: Tensor) -> Tensor:
        channels = _image(x, "Normalize", fractions=True).shape[-3]
        for name, row in (("mean", self.mean), ("std", self.std)):
            if len(row) not in (1, channels):
                raise ShapeError(f"Normalize: {name} has {len(row)} numbers, and the image {channels} channels.")
        mean, std = [tensor(row, dtype=x.dtype, device=x.device).reshape(-1, 1, 1) for row in (self.mean, self.std)]
        return (x - mean) / std

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class Pad:
    """Pixels added around: `padding` on all sides, (left and right, above and below), or (left, above, right, below).

    `padding_mode` is "constant", with `fill`, "edge", "reflect" or, as if repeated, "circular".
    """

    def __init__(self, padding: int | Sequence[int], fill: float = 0.0, padding_mode: str = "constant") -> None:
        sides = [padding] * 4 if isinstance(padding, int) else [*padding] * (2 if len(padding) == 2 else 1)
        if len(sides) != 4 or min(sides) < 0:
            raise ArgumentError(f"Pad: padding={padding} is not 1, 2 or 4 numbers, each 0 or more.")
        modes = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "circular": "circular"}
        if padding_mode not in modes:
            raise ArgumentError(f"Pad: padding_mode={padding_mode!r} is none of {', '.join(map(repr, modes))}.")
        self.sides, self.fill, self.mode = sides, fill, modes[padding_mode]

    def __call__(self, x: Tensor) -> Tensor:
        left, above, right, below = self.sides
        if not any(self.sides):
            return _image(x, "Pad")
        fill = self.fill if self.mode == "constant" else None
        return pad(_image(x, "Pad"), (left, right, above, below), mode=self.mode, value=fill)

    def __repr__(self) -> str:
        return f"Pad({self.sides}, fill={self.fill}, mode={self.mode!r})"


class _Random:
    """A transform that draws: a subclass says what becomes of a batch."""

    generator: Generator | None = None
    fractions = False

    def __call__(self, x: Tensor) -> Tensor:
        _image(x, type(self).__name__, self.fractions)
        return self._batch(x) if x.ndim == 4 else self._batch(x[None])[0]

    def _batch(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _even(self, x: Tensor, low: float, high: float) -> Tensor:
        """A number an image, drawn evenly from `low` up to `high`."""
        kind = x.dtype if x.dtype.is_floating_point else None
        return rand(len(x), generator=self.generator, dtype=kind, device=x.device) * (high - low) + low


class RandomHorizontalFlip(_Random):
    """The image, with probability `p` as in a mirror: left is right."""

    dim = -1

    def __init__(self, p: float = 0.5, *, generator: Generator | None = None) -> None:
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p={p} is a probability, from 0 to 1.")
        self.p, self.generator = p, generator

    def _batch(self, x: Tensor) -> Tensor:
        flipped = (self._even(x, 0.0, 1.0) < self.p).reshape(-1, 1, 1, 1)
        return _chosen(flipped, x.flip(self.dim), x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomVerticalFlip(RandomHorizontalFlip):
    """The image, with probability `p` upside down."""

    dim = -2


class RandomCrop(_Random):
    """A part of `size`, (rows, columns) or a square, from anywhere in the image, to which `padding` is added before."""

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
            raise ArgumentError(f"RandomCrop: size={size} is not rows and columns, each 1 or more.")
        self.pad = None if padding is None else Pad(padding, fill, padding_mode)
        self.generator = generator

    def _batch(self, x: Tensor) -> Tensor:
        x = x if self.pad is None else self.pad(x)
        (count, channels, height, width), (rows, columns) = x.shape, self.size
        if rows > height or columns > width:
            raise ShapeError(f"RandomCrop: {rows}x{columns} is no part of an image of {height}x{width}; see padding=.")
        top = randint(height - rows + 1, (count, 1, 1), generator=self.generator, device=x.device)
        left = randint(width - columns + 1, (count, 1, 1), generator=self.generator, device=x.device)
        row, column = arange(rows, device=x.device)[:, None], arange(columns, device=x.device)
        at = ((top + row) * width + left + column).reshape(count, 1, rows * columns)
        found = x.reshape(count, channels, height * width).gather(2, at.expand(-1, channels, -1))
        return found.reshape(count, channels, rows, columns)

    def __repr__(self) -> str:
        return f"RandomCrop(size={self.size}, padding={self.pad})"


class RandomAffine(_Random):
    """The image turned, moved, resized and sheared at random about its middle; pixels between are mixed.

    The angle is from `degrees`, (low, high) or plus or minus one number, counter-clockwise; the shift at most
    `translate` (of the width, of the height); the factor from `scale`; `shear` an angle as `degrees`, along the rows.
    What comes from outside is 0. Through `affine_grid` and `grid_sample`, so gradients flow.
    """

    fractions = True

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        *,
        generator: Generator | None = None,
    ) -> None:
        self.degrees, self.shear = _range(degrees, "degrees"), _range(shear or 0.0, "shear")
        self.translate = tuple(translate or (0.0, 0.0))
        self.scale = tuple(scale or (1.0, 1.0))
        if len(self.translate) != 2 or not all(0 <= share <= 1 for share in self.translate):
            raise ArgumentError(f"{type(self).__name__}: translate={translate} is two shares, from 0 to 1.")
        if len(self.scale) != 2 or not 0 < self.scale[0] <= self.scale[1]:
            raise ArgumentError(f"{type(self).__name__}: scale={scale} is two factors above 0, the smaller first.")
        self.generator = generator

    def _batch(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        angle, slant = [self._even(x, *ends) * (math.pi / 180) for ends in (self.degrees, self.shear)]
        factor = self._even(x, *self.scale)
        right, down = [self._even(x, -2 * share, 2 * share) for share in self.translate]  # an image is 2 wide, 2 high
        cos, sin, tan = angle.cos() / factor, angle.sin() / factor, slant.tan()
        # Where a pixel comes from: the way back through shift, turn, shear and size. Its coordinates are shares of the
        # width and of the height, and angles are angles only in pixels.
        rows = [cos - tan * sin, -sin - tan * cos], [sin, cos]
        ratio = ((1.0, height / width), (width / height, 1.0))
        theta = [[a * k for a, k in zip(row, ks, strict=True)] for row, ks in zip(rows, ratio, strict=True)]
        matrix = stack([stack([a, b, -(a * right + b * down)], dim=1) for a, b in theta], dim=1)
        return grid_sample(x, affine_grid(matrix, x.shape))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.degrees}, {self.translate}, {self.scale}, {self.shear})"


class RandomRotation(RandomAffine):
    """The image turned about its middle by an angle from `degrees`, (low, high) or plus or minus one number."""

    def __init__(self, degrees: float | Sequence[float], *, generator: Generator | None = None) -> None:
        super().__init__(degrees, generator=generator)


def _range(ends: float | Sequence[float], name: str) -> tuple[float, float]:
    low, high = (-abs(ends), abs(ends)) if isinstance(ends, int | float) else ends
    if not low <= high:
        raise ArgumentError(f"{name}={ends}: the smaller angle comes first.")
    return float(low), float(high)


def _chosen(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """`a` where the condition holds, else `b`."""
    out: Tensor = ops.where(condition, a, b)
    return out


def _image(x: Any, asked: str, fractions: bool = False) -> Tensor:
    if not isinstance(x, Tensor):
        raise DTypeError(f"{asked}: it takes a tensor, not {type(x).__name__}; ToTensor() makes one of an array.")
    if x.ndim not in (3, 4):
        raise ShapeError(f"{asked}: an image is (C, H, W), a batch (N, C, H, W), not {x.shape}.")
    if fractions and not x.dtype.is_floating_point:
        raise DTypeError(f"{asked}: pixels are fractions here, and this tensor holds {x.dtype.name}.\n  Write x / 255.")
    return x
