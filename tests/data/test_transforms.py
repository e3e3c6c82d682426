"""Transforms: pixel values, separate random draws per image of a batch, and reproducibility from a seed."""

import pickle

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.data import transforms as T
from strategies import PARITY

TOLERANCE = PARITY["float32"]


def seeded(seed=0):
    return mg.Generator(seed)


def batch(n=6, c=2, h=5, w=7):
    return mg.arange(n * c * h * w, dtype=mg.float32).reshape(n, c, h, w) + 1


def close(a, b):
    return np.abs(a.numpy() - b.numpy()).max() <= TOLERANCE * max(1.0, np.abs(b.numpy()).max())


def test_arrays_become_tensors_with_channels_first():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    x = T.ToTensor()(image)
    assert (x.shape, x.dtype) == ((3, 2, 4), mg.float32)
    assert np.abs(x.numpy() * 255 - image.transpose(2, 0, 1)).max() < 1e-4
    assert T.ToTensor()(image[..., 0]).shape == (1, 2, 4)
    assert T.ToTensor()(image[None]).shape == (1, 3, 2, 4)
    assert T.ToTensor()(image.astype(np.float32))[0].tolist() == image[..., 0].tolist()


def test_normalizing_gives_each_channel_its_mean_and_deviation():
    x = batch()
    mean, std = x.mean((0, 2, 3)).tolist(), x.std((0, 2, 3), correction=0).tolist()
    y = T.Normalize(mean, std)(x)
    assert np.abs(y.mean((0, 2, 3)).numpy()).max() < 1e-5
    assert np.abs(y.std((0, 2, 3), correction=0).numpy() - 1).max() < 1e-5
    assert T.Normalize(1.0, 2.0)(x[0]).tolist() == ((x[0] - 1) / 2).tolist()


def test_padding_order_is_left_top_right_bottom():
    x = mg.ones(1, 2, 3)
    assert T.Pad((1, 2, 3, 4), fill=9.0)(x).shape == (1, 8, 7)
    y = T.Pad((1, 0, 0, 2), fill=9.0)(x)
    assert y[0, :, 0].tolist() == [9.0] * 4
    assert y[0, 2].tolist() == [9.0] * 4
    assert T.Pad((1, 2))(x).shape == (1, 6, 5)
    row = mg.tensor([[[1.0, 2.0, 3.0]]])
    assert T.Pad((2, 0), padding_mode="reflect")(row).tolist() == [[[3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]]
    assert T.Pad((1, 0), padding_mode="edge")(row).tolist() == [[[1.0, 1.0, 2.0, 3.0, 3.0]]]
    assert T.Pad(0)(row) is row


@pytest.mark.parametrize(("kind", "dim"), [(T.RandomHorizontalFlip, -1), (T.RandomVerticalFlip, -2)])
def test_images_are_flipped_independently(kind, dim):
    x = batch(200, 1, 2, 3)
    y = kind(generator=seeded())(x)
    flipped = [bool((a == b.flip(dim)).all()) for a, b in zip(y, x, strict=True)]
    same = [bool((a == b).all()) for a, b in zip(y, x, strict=True)]
    assert all(f != s for f, s in zip(flipped, same, strict=True))
    assert 70 < sum(flipped) < 130
    assert (kind(p=1.0)(x) == x.flip(dim)).all().item()
    assert (kind(p=0.0)(x[0]) == x[0]).all().item()


def test_crops_are_regions_of_their_images():
    x = batch(40, 2, 5, 7)
    y = T.RandomCrop((2, 3), generator=seeded())(x)
    assert y.shape == (40, 2, 2, 3)
    offsets = set()
    for image, part in zip(x.numpy(), y.numpy(), strict=True):
        top, left = np.argwhere(image[0] == part[0, 0, 0])[0]
        assert part.tolist() == image[:, top : top + 2, left : left + 3].tolist()
        offsets.add((int(top), int(left)))
    assert {top for top, _ in offsets} == {0, 1, 2, 3}
    assert {left for _, left in offsets} == {0, 1, 2, 3, 4}


def test_a_crop_of_a_padded_image_keeps_its_size():
    y = T.RandomCrop(5, padding=2, generator=seeded())(mg.ones(1, 5, 5))
    assert y.shape == (1, 5, 5)
    assert set(y.flatten().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize(("degrees", "turns"), [(90, 1), (180, 2), (270, 3), (0, 0)])
def test_quarter_turns_match_rot90(degrees, turns):
    x = batch(2, 1, 5, 5)
    y = T.RandomRotation((degrees, degrees))(x)
    expected = mg.tensor(np.rot90(x.numpy(), turns, (2, 3)).copy())  # counter-clockwise
    assert np.abs((y - expected).numpy()).max() < 1e-3


def test_rotation_preserves_angles_of_non_square_images():
    x = mg.zeros(1, 1, 5, 9)
    x[0, 0, 2, 2:7] = 1.0  # a line, 5 wide
    y = T.RandomRotation((90, 90))(x)
    assert np.abs(y[0, 0, :, 4].numpy() - 1).max() < 1e-5
    assert abs(y.sum().item() - 5) < 1e-4


def test_translation_and_scaling():
    x = mg.zeros(1, 8, 8)
    x[0, 3:5, 3:5] = 1.0
    grown = T.RandomAffine(0, scale=(2.0, 2.0))(x)
    assert abs(grown.sum().item() - 16) < 1e-3
    translated = [T.RandomAffine(0, translate=(0.25, 0.0), generator=seeded(k))(x) for k in range(20)]
    columns = mg.arange(8, dtype=mg.float32)
    centres = [((y[0].sum(0) * columns).sum() / y.sum()).item() for y in translated]
    assert all(1.5 - 1e-3 <= centre <= 5.5 + 1e-3 for centre in centres)
    assert max(centres) - min(centres) > 2
    assert all(abs(y[0].sum(1)[3].item() - 2) < 1e-3 for y in translated), "no vertical translation"


def test_shear_is_horizontal():
    x = mg.zeros(1, 9, 9)
    x[0, :, 4] = 1.0
    y = T.RandomAffine(0, shear=(45, 45))(x)
    assert np.abs(y[0].numpy() - np.eye(9)[:, :]).max() < 1e-4


def test_rotation_is_differentiable():
    x = mg.rand(1, 1, 6, 6, requires_grad=True)
    T.RandomAffine(20, generator=seeded())(x).sum().backward()
    assert x.grad.shape == x.shape
    assert x.grad[0, 0, 3, 3].item() > 0.5


RANDOM = {
    "flip": lambda g: T.RandomHorizontalFlip(generator=g),
    "crop": lambda g: T.RandomCrop(3, padding=1, generator=g),
    "rotation": lambda g: T.RandomRotation(30, generator=g),
    "affine": lambda g: T.RandomAffine(30, (0.1, 0.2), (0.8, 1.2), 10, generator=g),
}


@pytest.mark.parametrize("name", RANDOM)
def test_a_seed_gives_the_same_images_on_every_device(name):
    x, make = batch(8, 1, 5, 5), RANDOM[name]
    first, again, other = make(seeded(1))(x), make(seeded(1))(x), make(seeded(2))(x)
    assert first.tolist() == again.tolist() != other.tolist()
    assert close(make(seeded(1))(x.to("numpy")), first)
    transform = make(seeded(1))
    assert transform(x).tolist() != transform(x).tolist()


def test_compose_and_repr():
    both = T.Compose([T.Pad(1), T.Lambda(abs), T.Normalize(0.5, 0.5), T.RandomHorizontalFlip()])
    assert both(-mg.ones(1, 2, 2)).shape == (1, 4, 4)
    assert repr(both) == (
        "Compose([Pad([1, 1, 1, 1], fill=0.0, mode='constant'), Lambda(abs), Normalize(mean=[0.5], std=[0.5]), "
        "RandomHorizontalFlip(p=0.5)])"
    )
    assert pickle.loads(pickle.dumps(both))(mg.ones(1, 2, 2)).shape == (1, 4, 4)


@merge_cases
@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: T.ToTensor()(mg.ones(2, 2)), DTypeError, "ToTensor: expected a NumPy array, but got Tensor"),
        (lambda: T.ToTensor()(np.ones(2)), ShapeError, r"but got \(2,\)"),
        (lambda: T.Normalize(0, 0), ArgumentError, "std=0 contains a zero"),
        (
            lambda: T.Normalize([0, 0], [1])(mg.ones(3, 2, 2)),
            ShapeError,
            "mean has 2 values, but the image has 3 channels",
        ),
        (lambda: T.Normalize(0, 1)(np.ones((1, 2, 2))), DTypeError, "expected a tensor, but got ndarray; ToTensor"),
        (lambda: T.Normalize(0, 1)(mg.ones(2, 2)), ShapeError, r"or \(N, C, H, W\), but got \(2, 2\)"),
        (lambda: T.RandomRotation(5)(mg.arange(4).reshape(1, 2, 2)), DTypeError, "but got int64.\n  Write x / 255"),
        (
            lambda: T.Pad((1, 2, 3)),
            ArgumentError,
            r"should be 1, 2 or 4 non-negative ints, but got padding=\(1, 2, 3\)",
        ),
        (lambda: T.Pad(1, padding_mode="mirror"), ArgumentError, "'constant', 'edge', 'reflect', 'circular'"),
        (lambda: T.RandomHorizontalFlip(2), ArgumentError, "p should be between 0 and 1, but got p=2"),
        (lambda: T.RandomCrop(0), ArgumentError, r"size should be \(height, width\), both at least 1, but got size=0"),
        (
            lambda: T.RandomCrop(6)(mg.ones(1, 5, 5)),
            ShapeError,
            "required crop size 6x6 is larger than input image size 5x5",
        ),
        (lambda: T.RandomRotation((5, -5)), ArgumentError, r"should be \(min, max\) with min <= max"),
        (
            lambda: T.RandomAffine(0, translate=(2, 0)),
            ArgumentError,
            r"two values between 0 and 1, but got translate=\(2, 0\)",
        ),
        (
            lambda: T.RandomAffine(0, scale=(0, 1)),
            ArgumentError,
            r"should be \(min, max\) with 0 < min <= max, but got scale=\(0, 1\)",
        ),
        (lambda: T.Lambda(3), DTypeError, "expected a callable, but got 3"),
    ],
)
def test_invalid_arguments_raise(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
