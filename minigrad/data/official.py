"""Load MNIST, Fashion-MNIST and CIFAR-10 from files that the user has downloaded; minigrad never downloads anything.

The files are searched in the folder given by the environment variable MINIGRAD_DATA (default:
``~/.cache/minigrad/data``); `minigrad data` lists them and whether they exist. Compressed files are compared with the
MD5 checksums published by their authors or by torchvision. A checksum of another dataset raises an error; an unknown
one only emits a warning, since recompressing a file changes its checksum but not its data. Sizes, shapes and labels are
always validated.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.core.errors import ArgumentError, FileFormatError, MissingFileError
from minigrad.data.catalogue import (
    ARCHIVE,
    CIFAR10,
    FASHION_MNIST,
    MNIST,
    OFFICIAL,
    OfficialDataset,
    candidate_folders,
    file_md5,
)
from minigrad.data.cifar import read_archive, read_batch
from minigrad.data.dataset import TensorDataset
from minigrad.data.idx import read_idx
from minigrad.functional.creation import tensor

__all__ = ["cifar10", "fashion_mnist", "mnist", "read_images", "verify_checksum"]

# train -> (images, labels)
_IDX_FILES = {
    True: ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    False: ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


_FILE_BY_MD5 = {md5: (one.name, file) for one in OFFICIAL for file, md5 in one.files.items()}
_IMAGE_COUNTS = {True: 60_000, False: 10_000}
_RECORDS_PER_FILE = 10_000
_BATCH_FILES = {True: tuple(f"data_batch_{k}.bin" for k in range(1, 6)), False: ("test_batch.bin",)}


def mnist(
    train: bool = True, folder: str | os.PathLike[str] | None = None, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Load MNIST, 60,000 training or 10,000 test images of handwritten digits: images (N, 1, 28, 28), labels (N,).

    Images are float32 from 0 (background) to 1, or uint8 from 0 to 255 with `raw`. Labels are int64. `folder` overrides
    the default data folder. Raises MissingFileError for missing files, and FileFormatError for invalid ones.
    """
    return _load_idx_dataset(MNIST, train, folder, raw, device)


def fashion_mnist(
    train: bool = True, folder: str | os.PathLike[str] | None = None, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Load Fashion-MNIST, 60,000 training or 10,000 test images of clothing. Arguments and shapes as in `mnist`."""
    return _load_idx_dataset(FASHION_MNIST, train, folder, raw, device)


def cifar10(
    train: bool = True, folder: str | os.PathLike[str] | None = None, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Load CIFAR-10, 50,000 training or 10,000 test images: images (N, 3, 32, 32), labels (N,).

    It reads ``cifar-10-binary.tar.gz`` or the extracted files. Arguments as in `mnist`.
    """
    names = _BATCH_FILES[bool(train)]
    for candidate in candidate_folders(CIFAR10, folder):
        for batch_folder in (candidate / "cifar-10-batches-bin", candidate):
            if all((batch_folder / name).is_file() for name in names):
                return _to_tensor_dataset(
                    [read_batch(batch_folder / name, _RECORDS_PER_FILE) for name in names], raw, device
                )
        archive = candidate / ARCHIVE
        if archive.is_file():
            verify_checksum(archive, CIFAR10)
            return _to_tensor_dataset(read_archive(archive, names, _RECORDS_PER_FILE), raw, device)
    raise _missing_files_error(CIFAR10, names, folder)


def read_images(
    folder: str | os.PathLike[str], train: bool = True, *, raw: bool = False, device: str | None = None
) -> TensorDataset:
    """Load images of any size and their labels from two IDX files with MNIST's names, gzip-compressed or not.

    As on Kaggle, the names may contain a dot, ``train-images.idx3-ubyte``, and each file may be in a folder of the same
    name. `folder` may also be the parent of ``raw`` or of ``MNIST/raw``, as created by torchvision. Raises
    MissingFileError for missing files, FileFormatError if images and labels do not match, and ArgumentError for several
    pairs of files.
    """
    root, names = Path(folder), _IDX_FILES[bool(train)]
    if root.is_file():
        raise ArgumentError(f"read_images: {root} is a file; pass the folder that contains {' and '.join(names)}.")
    pairs = {}
    for candidate in (root, root / "raw", *sorted(root.glob("*/raw"))):
        images, labels = [_find_file(candidate, name) for name in names]
        if images is not None and labels is not None:
            pairs[candidate] = images, labels
        if candidate == root and pairs:
            break
    if len(pairs) > 1:
        raise ArgumentError(
            f"read_images: {root} contains several datasets: {', '.join(str(x.relative_to(root)) for x in pairs)}.\n"
            "  Pass one of these folders."
        )
    if pairs:
        (pair,) = pairs.values()
        return _to_tensor_dataset([_read_pair(*pair)], raw, device)
    missing_name = next(name for name in names if _find_file(root, name) is None)
    idx_files = sorted(x.name for x in root.glob("*ubyte*"))[:6]
    hint = f"\n  It contains {', '.join(idx_files)}." if idx_files else ""
    raise MissingFileError(f"read_images: neither {missing_name} nor {missing_name}.gz exists in {root}.{hint}")


def verify_checksum(path: Path, dataset: OfficialDataset) -> None:
    """Check the MD5 checksum of a file. Raise FileFormatError if it is another dataset's, and warn if it is unknown."""
    digest = file_md5(path)
    expected_md5 = dataset.files[path.name]
    if digest == expected_md5:
        return
    if digest in _FILE_BY_MD5:
        name, file_name = _FILE_BY_MD5[digest]
        raise FileFormatError(
            f"{path}: expected {dataset.name}'s {path.name}, but the checksum is that of {name}'s {file_name}."
        )
    warnings.warn(
        f"{path}: MD5 mismatch: expected {expected_md5}, but got {digest}. This is harmless if the file was "
        "recompressed; otherwise download it again.",
        stacklevel=4,
    )


def _load_idx_dataset(
    dataset: OfficialDataset, train: bool, folder: Any, raw: bool, device: str | None
) -> TensorDataset:
    for candidate in candidate_folders(dataset, folder):
        paths = [_find_file(candidate, name) for name in _IDX_FILES[bool(train)]]
        if None in paths:
            continue
        for path in paths:
            if path is not None and path.name in dataset.files:
                verify_checksum(path, dataset)
        x, y = _read_pair(*paths)
        if x.shape != (_IMAGE_COUNTS[bool(train)], 1, 28, 28):
            raise FileFormatError(
                f"{paths[0]}: expected {_IMAGE_COUNTS[bool(train)]:,} {'training' if train else 'test'} images of "
                f"28x28 for {dataset.name}, but got {len(x):,} of {x.shape[2]}x{x.shape[3]}.\n"
                "  For other sizes, use read_images(folder)."
            )
        return _to_tensor_dataset([(x, y)], raw, device)
    raise _missing_files_error(dataset, _IDX_FILES[bool(train)], folder)


def _read_pair(images: Path | None, labels: Path | None) -> tuple[Any, Any]:
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


def _to_tensor_dataset(parts: Iterable[tuple[Any, Any]], raw: bool, device: str | None) -> TensorDataset:
    images, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    x = images if raw else images.astype(np.float32) / np.float32(255)
    return TensorDataset(tensor(x, device=device), tensor(labels.astype(np.int64), device=device))


def _find_file(folder: Path, name: str) -> Path | None:
    """Return the path of the file `name`, or of a variant of this name, in `folder`; None if there is no such file."""
    names = [
        f"{candidate}{extension}" for candidate in (name, name.replace("-idx", ".idx")) for extension in (".gz", "")
    ]
    return next((path for one in names for path in (folder / one, folder / one / one) if path.is_file()), None)


def _missing_files_error(dataset: OfficialDataset, names: Sequence[str], folder: Any) -> MissingFileError:
    return MissingFileError(
        f"{dataset.name}: {', '.join(names)} not found in {candidate_folders(dataset, folder)[0]}.\n"
        f"  minigrad does not download datasets: get {', '.join(dataset.files)} from\n"
        f"  {dataset.homepage}, and put {'it' if len(dataset.files) == 1 else 'them'} there, or pass folder=.\n"
        "  `minigrad data` lists all datasets and their folders."
    )
