"""Catalogue of datasets, shipped or read from the user's files: their files, checksums, authors and licences.

It does not need NumPy; `minigrad data` prints it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "ARCHIVE",
    "CIFAR10",
    "FASHION_MNIST",
    "MNIST",
    "OFFICIAL",
    "SHIPPED",
    "BundledDataset",
    "OfficialDataset",
    "candidate_folders",
    "data_folder",
    "file_md5",
    "find_files",
]


class BundledDataset(NamedTuple):
    """A dataset shipped with the package, with the call that loads it, a description, its files and its source."""

    call: str
    description: str
    files: tuple[str, ...]
    source: str


SHIPPED = (
    BundledDataset(
        "iris()",
        "150 flowers, 4 measurements",
        ("iris.csv",),
        "Fisher 1936; public domain",
    ),
    BundledDataset(
        "digits()",
        "1,797 handwritten digits, 8x8",
        ("digits-images.idx3.gz", "digits-labels.idx1.gz"),
        "Alpaydin, Kaynak 1998 (UCI); CC BY 4.0",
    ),
    BundledDataset('names("elements")', "118 chemical elements", ("elements.txt",), "IUPAC 2016; facts"),
    BundledDataset('names("countries")', "195 countries", ("countries.txt",), "United Nations 2024; facts"),
    BundledDataset('names("stars")', "330 stars", ("stars.txt",), "IAU star names 2018; CC BY 4.0"),
    BundledDataset("corpus()", "minigrad's own text", ("corpus.txt.gz",), "minigrad; MIT"),
    BundledDataset("moons(), circles(),", "labelled points in the plane", (), "generated from a seed"),
    BundledDataset("spirals(), blobs()", "", (), ""),
)


class OfficialDataset(NamedTuple):
    """A dataset that the user downloads, with its folders, MD5 checksums of compressed files, and extracted files.

    The MD5 checksums of MNIST are torchvision's, as its authors publish none; the others come from their authors.
    """

    name: str
    call: str
    description: str
    folders: tuple[str, ...]
    files: dict[str, str]
    extracted_files: tuple[str, ...]
    homepage: str
    authors: str
    licence: str


_IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
MNIST = OfficialDataset(
    "MNIST",
    "mnist()",
    "70,000 handwritten digits, 28x28",
    ("mnist", "MNIST/raw"),
    {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    _IDX,
    "yann.lecun.com/exdb/mnist",
    "Y. LeCun, C. Cortes, C. Burges",
    "CC BY-SA 3.0",
)
FASHION_MNIST = OfficialDataset(
    "Fashion-MNIST",
    "fashion_mnist()",
    "70,000 images of clothing, 28x28",
    ("fashion-mnist", "FashionMNIST/raw"),
    {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
    _IDX,
    "github.com/zalandoresearch/fashion-mnist",
    "H. Xiao, K. Rasul, R. Vollgraf",
    "MIT",
)
ARCHIVE = "cifar-10-binary.tar.gz"
_BATCHES = "cifar-10-batches-bin"
CIFAR10 = OfficialDataset(
    "CIFAR-10",
    "cifar10()",
    "60,000 colour images in 10 classes, 32x32",
    (".", "cifar-10", "cifar10"),
    {ARCHIVE: "c32a1d4ab5d03f1284b67883e8d87530"},
    tuple(f"{_BATCHES}/{name}.bin" for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch")),
    "www.cs.toronto.edu/~kriz/cifar.html, “binary version”",
    "A. Krizhevsky",
    "no licence stated",
)
OFFICIAL = (MNIST, FASHION_MNIST, CIFAR10)


def data_folder() -> Path:
    """Return the folder searched for datasets: ``$MINIGRAD_DATA``, else ``~/.cache/minigrad/data``."""
    return Path(os.path.expanduser(os.environ.get("MINIGRAD_DATA") or "~/.cache/minigrad/data"))


def find_files(dataset: OfficialDataset, folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the existing files of a dataset, compressed or not, from the first folder that has any."""
    for candidate in candidate_folders(dataset, folder):
        if existing := [
            candidate / name for name in (*dataset.files, *dataset.extracted_files) if (candidate / name).is_file()
        ]:
            return existing
    return []


def candidate_folders(dataset: OfficialDataset, folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders to search for a dataset: subfolders of the data folder, or `folder` and its subfolders."""
    root = data_folder() if folder is None else Path(folder)
    return [root / name for name in dataset.folders] + ([] if folder is None else [root])


def file_md5(path: Path) -> str:
    """Return the MD5 checksum of a file. Dataset authors publish MD5 checksums."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
