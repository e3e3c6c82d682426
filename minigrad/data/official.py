"""Load MNIST, Fashion-MNIST and CIFAR-10 from files that the user has downloaded; minigrad never downloads anything.

The files are searched in the folder given by the environment variable MINIGRAD_DATA (default:
``~/.cache/minigrad/data``); `minigrad data` lists them and whether they exist. Compressed files are compared with the
MD5 checksums published by their authors or by torchvision. A checksum of another dataset raises; an unknown one only
warns, since recompressing a file changes its checksum and not its data. Sizes, shapes and labels are always validated.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.core.errors import ArgumentError, FileFormatError, MissingFileError
from minigrad.data.cifar import read_archive, read_batch
from minigrad.data.dataset import TensorDataset
from minigrad.data.idx import read_idx
from minigrad.data.known import ARCHIVE, CIFAR10, FASHION_MNIST, MNIST, OFFICIAL, Official, md5_of, places
from minigrad.functional.creation import tensor

__all__ = ["check", "cifar10", "fashion_mnist", "mnist", "read_images"]

# train: (images, labels)
_IDX = {
    True: ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    False: ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


_KNOWN = {md5: (one.name, file) for one in OFFICIAL for file, md5 in one.files.items()}
_COUNTS = {True: 60_000, False: 10_000}
_RECORDS = 10_000
_BATCHES = {True: tuple(f"data_batch_{k}.bin" for k in range(1, 6)), False: ("test_batch.bin",)}


def mnist(
    train: bool = True, folder: str | os.PathLike[str] | None = None, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Load MNIST, 60,000 training or 10,000 test images of handwritten digits: images (N, 1, 28, 28), labels (N,).

    Images are float32 from 0 (background) to 1, or uint8 from 0 to 255 with `raw`. Labels are int64. `folder` overrides
    the default data folder. Raises MissingFileError for missing files, and FileFormatError for invalid ones.
    """
    return _idx_set(MNIST, train, folder, raw, device)


def fashion_mnist(
    train: bool = True, folder: str | os.PathLike[str] | None = None, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Load Fashion-MNIST, 60,000 training or 10,000 test images of clothing. Arguments and shapes as in `mnist`."""
    return _idx_set(FASHION_MNIST, train, folder, raw, device)


def cifar10(
    train: bool = True, folder: str | os.PathLike[str] | None = None, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Load CIFAR-10, 50,000 training or 10,000 test images: images (N, 3, 32, 32), labels (N,).

    It reads ``cifar-10-binary.tar.gz`` or the extracted files. Arguments as in `mnist`.
    """
    names = _BATCHES[bool(train)]
    for place in places(CIFAR10, folder):
        for inner in (place / "cifar-10-batches-bin", place):
            if all((inner / name).is_file() for name in names):
                return _dataset([read_batch(inner / name, _RECORDS) for name in names], raw, device)
        archive = place / ARCHIVE
        if archive.is_file():
            check(archive, CIFAR10)
            return _dataset(read_archive(archive, names, _RECORDS), raw, device)
    raise _missing(CIFAR10, names, folder)


def read_images(
    folder: str | os.PathLike[str], train: bool = True, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Load images of any size and their labels from two IDX files with MNIST's names, gzip-compressed or not.

    As on Kaggle, the names may contain a dot, ``train-images.idx3-ubyte``, and each file may be in a folder of the same
    name. `folder` may also be the parent of ``raw`` or of ``MNIST/raw``, as created by torchvision. Raises
    MissingFileError, FileFormatError if images and labels do not match, ArgumentError if several pairs match.
    """
    root, names = Path(folder), _IDX[bool(train)]
    if root.is_file():
        raise ArgumentError(f"read_images: {root} is a file; pass the folder that contains {' and '.join(names)}.")
    found = {}
    for place in (root, root / "raw", *sorted(root.glob("*/raw"))):
        images, labels = [_file(place, name) for name in names]
        if images is not None and labels is not None:
            found[place] = images, labels
        if place == root and found:
            break
    if len(found) > 1:
        raise ArgumentError(
            f"read_images: {root} contains several datasets: {', '.join(str(x.relative_to(root)) for x in found)}.\n"
            "  Pass one of these folders."
        )
    if found:
        (pair,) = found.values()
        return _dataset([_pair(*pair)], raw, device)
    lacking = next(name for name in names if _file(root, name) is None)
    here = sorted(x.name for x in root.glob("*ubyte*"))[:6]
    more = f"\n  It contains {', '.join(here)}." if here else ""
    raise MissingFileError(f"read_images: neither {lacking} nor {lacking}.gz exists in {root}.{more}")


def check(path: Path, one: Official) -> None:
    """Verify a file's MD5: raise FileFormatError if it is another dataset's, and warn if it is unknown."""
    found = md5_of(path)
    official = one.files[path.name]
    if found == official:
        return
    if found in _KNOWN:
        name, file_name = _KNOWN[found]
        raise FileFormatError(
            f"{path}: expected {one.name}'s {path.name}, but the checksum is that of {name}'s {file_name}."
        )
    warnings.warn(
        f"{path}: MD5 mismatch: expected {official}, but got {found}. This is harmless if the file was recompressed; "
        "otherwise download it again.",
        stacklevel=4,
    )


def _idx_set(one: Official, train: bool, folder: Any, raw: bool, device: str | None) -> TensorDataset:
    for place in places(one, folder):
        paths = [_file(place, name) for name in _IDX[bool(train)]]
        if None in paths:
            continue
        for path in paths:
            if path is not None and path.name in one.files:
                check(path, one)
        x, y = _pair(*paths)
        if x.shape != (_COUNTS[bool(train)], 1, 28, 28):
            raise FileFormatError(
                f"{paths[0]}: expected {_COUNTS[bool(train)]:,} {'training' if train else 'test'} images of 28x28 for "
                f"{one.name}, but got {len(x):,} of {x.shape[2]}x{x.shape[3]}.\n"
                "  For other sizes, use read_images(folder)."
            )
        return _dataset([(x, y)], raw, device)
    raise _missing(one, _IDX[bool(train)], folder)


def _pair(images: Path | None, labels: Path | None) -> tuple[Any, Any]:
    """Read images and labels from two files, and check that they match."""
    x, y = read_idx(images or ""), read_idx(labels or "")
    if x.ndim != 3 or x.dtype != np.uint8:
        raise FileFormatError(
            f"{images}: expected 3-D uint8 images, but got a {x.ndim}-D array of {x.dtype}"
            f"{'; these look like the labels' if x.ndim == 1 else ''}."
        )
    if y.ndim != 1 or y.dtype != np.uint8:
        raise FileFormatError(
            f"{labels}: expected 1-D uint8 labels, but got a {y.ndim}-D array of {y.dtype}"
            f"{'; these look like the images' if y.ndim == 3 else ''}."
        )
    if len(x) != len(y):
        raise FileFormatError(f"{images} has {len(x):,} images, but {labels} has {len(y):,} labels.")
    if len(y) and y.max() > 9:
        raise FileFormatError(f"{labels}: found label {y.max()}, but labels range from 0 to 9.")
    return x[:, None], y


def _dataset(parts: Iterable[tuple[Any, Any]], raw: bool, device: str | None) -> TensorDataset:
    images, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    x = images if raw else images.astype(np.float32) / np.float32(255)
    return TensorDataset(tensor(x, device=device), tensor(labels.astype(np.int64), device=device))


def _file(place: Path, name: str) -> Path | None:
    """Return the path of a file in a folder under any of its name variants, or None."""
    names = [f"{one}{end}" for one in (name, name.replace("-idx", ".idx")) for end in (".gz", "")]
    return next((path for one in names for path in (place / one, place / one / one) if path.is_file()), None)


def _missing(one: Official, names: Sequence[str], folder: Any) -> MissingFileError:
    return MissingFileError(
        f"{one.name}: {', '.join(names)} not found in {places(one, folder)[0]}.\n"
        f"  minigrad does not download datasets: get {', '.join(one.files)} from\n"
        f"  {one.where}, and put {'it' if len(one.files) == 1 else 'them'} there, or pass folder=.\n"
        "  `minigrad data` lists all datasets and their folders."
    )
