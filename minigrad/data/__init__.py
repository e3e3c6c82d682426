"""Datasets, samplers and `DataLoader` with PyTorch's names, file readers, and the datasets shipped with the package.

`minigrad data` lists the available datasets. `iris`, `names` and `corpus` do not need NumPy; everything else is
imported lazily.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from minigrad.core.packages import explain_import_errors
from minigrad.data.catalogue import data_folder
from minigrad.data.shipped import Digits, Iris, corpus, digits, iris, names

if TYPE_CHECKING:
    from minigrad.data import transforms as transforms
    from minigrad.data.collate import *  # noqa: F403 -- each module defines __all__
    from minigrad.data.dataset import *  # noqa: F403
    from minigrad.data.idx import *  # noqa: F403
    from minigrad.data.loader import *  # noqa: F403
    from minigrad.data.official import *  # noqa: F403
    from minigrad.data.sampler import *  # noqa: F403
    from minigrad.data.tables import *  # noqa: F403
    from minigrad.data.text import *  # noqa: F403
    from minigrad.data.toys import *  # noqa: F403
    from minigrad.data.workers import *  # noqa: F403

_MODULE_NAMES = {
    "dataset": "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset random_split",
    "sampler": "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler WeightedRandomSampler",
    "collate": "default_collate default_convert",
    "loader": "DataLoader",
    "workers": "get_worker_info",
    "idx": "read_idx write_idx",
    "toys": "blobs circles moons spirals",
    "official": "cifar10 fashion_mnist mnist read_images",
    "tables": "Table read_csv",
    "text": "Vocabulary read_text",
}  # the public names of each module

_MODULE_OF = {name: module for module, names in _MODULE_NAMES.items() for name in names.split()}
__all__ = ["Digits", "Iris", "corpus", "data_folder", "digits", "iris", "names", "transforms"]
__all__ += list(_MODULE_OF)


@explain_import_errors()
def __getattr__(name: str) -> Any:
    """Import a name on first access, so that NumPy is loaded only when needed."""
    if name == "transforms":
        return import_module("minigrad.data.transforms")
    if name in _MODULE_OF:
        globals()[name] = value = getattr(import_module(f"minigrad.data.{_MODULE_OF[name]}"), name)
        return value
    raise AttributeError(f"module 'minigrad.data' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return __all__
