"""MNIST, Fashion-MNIST and CIFAR-10 from files that the reader has: nothing is ever fetched.

They are looked for in the folder that the environment variable MINIGRAD_DATA names, else in ``~/.cache/minigrad/data``;
`minigrad data` says which files, and whether they are there. Packed files are compared with the checksums that their
authors, or PyTorch's torchvision, publish: one that is another data set's is refused; one that nobody knows is warned
of and read, because a file that was packed anew has the same numbers and another checksum. All files are held to their
sizes, shapes and labels.
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

# train or not: images, labels
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
    """MNIST's 60,000 handwritten digits to train on, or the 10,000 to test with: images (N, 1, 28, 28), labels (N,).

    Images are float32 from 0, paper, to 1, ink; with `raw` uint8 from 0 to 255. Labels are int64. `folder` is where the
    files are, if not where `minigrad data` says. Raises MissingFileError, and FileFormatError for wrong files.
    """
    return _idx_set(MNIST, train, folder, raw, device)


def fashion_mnist(
    train: bool = True, folder: str | os.PathLike[str] | None = None, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Fashion-MNIST's 60,000 pieces of clothing to train on, or the 10,000 to test with: as `mnist` gives digits."""
    return _idx_set(FASHION_MNIST, train, folder, raw, device)


def cifar10(
    train: bool = True, folder: str | os.PathLike[str] | None = None, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """CIFAR-10's 50,000 pictures to train on, or the 10,000 to test with: images (N, 3, 32, 32), labels (N,).

    From ``cifar-10-binary.tar.gz``, or from what it unpacks to. Else as `mnist`.
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
    """Images and labels from any two IDX files with MNIST's names in a folder, packed or not: as `mnist`, of any size.

    The names may have a dot, ``train-images.idx3-ubyte``, and each file may be in a folder of its own name, as Kaggle
    has them. `folder` may also be the one above ``raw``, or above ``MNIST/raw``, as torchvision makes them. Raises
    MissingFileError, FileFormatError where they do not belong together, ArgumentError where several could be meant.
    """
    root, names = Path(folder), _IDX[bool(train)]
    if root.is_file():
        raise ArgumentError(f"read_images: {root} is a file: give the folder with {' and '.join(names)}.")
    found = {}
    for place in (root, root / "raw", *sorted(root.glob("*/raw"))):
        images, labels = [_file(place, name) for name in names]
        if images is not None and labels is not None:
            found[place] = images, labels
        if place == root and found:
            break
    if len(found) > 1:
        raise ArgumentError(
            f"read_images: there are several in {root}: {', '.join(str(x.relative_to(root)) for x in found)}.\n"
            "  Give one of these."
        )
    if found:
        (pair,) = found.values()
        return _dataset([_pair(*pair)], raw, device)
    lacking = next(name for name in names if _file(root, name) is None)
    here = sorted(x.name for x in root.glob("*ubyte*"))[:6]
    more = f"\n  In it are {', '.join(here)}." if here else ""
    raise MissingFileError(f"read_images: there is no {lacking}, and no {lacking}.gz, in {root}.{more}")


def check(path: Path, one: Official) -> None:
    """Compare a packed file with its checksum: FileFormatError for another data set's, a warning for an unknown one."""
    found = md5_of(path)
    official = one.files[path.name]
    if found == official:
        return
    if found in _KNOWN:
        name, file_name = _KNOWN[found]
        raise FileFormatError(
            f"{path}: this is {file_name} of {name}, by its checksum, in the place of {one.name}'s {path.name}."
        )
    warnings.warn(
        f"{path}: its MD5 is {found}, that of the official file {official}. Packed anew it would have the same "
        "numbers; if it was not, fetch it again.",
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
                f"{paths[0]}: {one.name} has {_COUNTS[bool(train)]:,} images of 28x28 to "
                f"{'train on' if train else 'test with'}, and here are {len(x):,} of {x.shape[2]}x{x.shape[3]}.\n"
                "  For images of another size there is read_images(folder)."
            )
        return _dataset([(x, y)], raw, device)
    raise _missing(one, _IDX[bool(train)], folder)


def _pair(images: Path | None, labels: Path | None) -> tuple[Any, Any]:
    """The images and labels of two files, which belong together."""
    x, y = read_idx(images or ""), read_idx(labels or "")
    if x.ndim != 3 or x.dtype != np.uint8:
        raise FileFormatError(
            f"{images}: it holds {x.dtype} in {x.ndim} dimensions, where images are uint8 in three"
            f"{': it seems to be the labels' if x.ndim == 1 else ''}."
        )
    if y.ndim != 1 or y.dtype != np.uint8:
        raise FileFormatError(
            f"{labels}: it holds {y.dtype} in {y.ndim} dimensions, where labels are uint8 in one"
            f"{': it seems to be the images' if y.ndim == 3 else ''}."
        )
    if len(x) != len(y):
        raise FileFormatError(f"{images} has {len(x):,} images, and {labels} {len(y):,} labels: they are of two sets.")
    if len(y) and y.max() > 9:
        raise FileFormatError(f"{labels}: a label is {y.max()}, where they are from 0 to 9.")
    return x[:, None], y


def _dataset(parts: Iterable[tuple[Any, Any]], raw: bool, device: str | None) -> TensorDataset:
    images, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    x = images if raw else images.astype(np.float32) / np.float32(255)
    return TensorDataset(tensor(x, device=device), tensor(labels.astype(np.int64), device=device))


def _file(place: Path, name: str) -> Path | None:
    """The file of that name in a folder, packed or not, or with a dot, or in a folder of its own name."""
    names = [f"{one}{end}" for one in (name, name.replace("-idx", ".idx")) for end in (".gz", "")]
    return next((path for one in names for path in (place / one, place / one / one) if path.is_file()), None)


def _missing(one: Official, names: Sequence[str], folder: Any) -> MissingFileError:
    return MissingFileError(
        f"{one.name}: {', '.join(names)} {'is' if len(names) == 1 else 'are'} not in {places(one, folder)[0]}.\n"
        f"  Nothing is fetched: get {', '.join(one.files)} from\n"
        f"  {one.where}, and put {'it' if len(one.files) == 1 else 'them'} there, or say folder=.\n"
        "  `minigrad data` lists what is where."
    )
