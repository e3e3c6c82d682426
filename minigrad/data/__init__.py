"""Data to learn from: datasets and loaders with PyTorch's names, file formats, and what is shipped with the package.

`minigrad data` lists what there is. Iris, the names and the text need no NumPy; all else comes when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from minigrad.core.packages import explained
from minigrad.data.known import data_folder
from minigrad.data.shipped import Digits, Iris, corpus, digits, iris, names

if TYPE_CHECKING:
    from minigrad.data import transforms
    from minigrad.data.collate import default_collate, default_convert
    from minigrad.data.dataset import (
        ChainDataset,
        ConcatDataset,
        Dataset,
        IterableDataset,
        StackDataset,
        Subset,
        TensorDataset,
        random_split,
    )
    from minigrad.data.idx import read_idx, write_idx
    from minigrad.data.loader import DataLoader
    from minigrad.data.official import cifar10, fashion_mnist, mnist, read_images
    from minigrad.data.sampler import (
        BatchSampler,
        RandomSampler,
        Sampler,
        SequentialSampler,
        SubsetRandomSampler,
        WeightedRandomSampler,
    )
    from minigrad.data.tables import Table, read_csv
    from minigrad.data.text import Vocabulary, read_text
    from minigrad.data.toys import blobs, circles, moons, spirals
    from minigrad.data.workers import get_worker_info

_ROOMS = ("dataset", "sampler", "collate", "loader", "workers", "idx", "toys", "official", "tables", "text")


@explained()
def __getattr__(name: str) -> Any:
    """What needs NumPy comes when it is first asked for."""
    if name == "transforms":
        return import_module("minigrad.data.transforms")
    if name in __all__:
        for room in _ROOMS:
            module = import_module(f"minigrad.data.{room}")
            if name in module.__all__:
                globals()[name] = found = getattr(module, name)
                return found
    raise AttributeError(f"module 'minigrad.data' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "Digits",
    "Iris",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "Table",
    "TensorDataset",
    "Vocabulary",
    "WeightedRandomSampler",
    "blobs",
    "cifar10",
    "circles",
    "corpus",
    "data_folder",
    "default_collate",
    "default_convert",
    "digits",
    "fashion_mnist",
    "get_worker_info",
    "iris",
    "mnist",
    "moons",
    "names",
    "random_split",
    "read_csv",
    "read_idx",
    "read_images",
    "read_text",
    "spirals",
    "transforms",
    "write_idx",
]
