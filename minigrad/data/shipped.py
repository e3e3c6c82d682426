"""Datasets shipped with the package: tables, digits, names, and a text corpus. SOURCES.md lists their sources."""

from __future__ import annotations

import csv
import random
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from minigrad.core.errors import ArgumentError

if TYPE_CHECKING:
    from minigrad.core.tensor import Tensor
    from minigrad.data.dataset import TensorDataset

__all__ = ["Digits", "Iris", "corpus", "digits", "iris", "names"]


class Iris(NamedTuple):
    """Iris flowers, split into training and test sets: four standardised features per sample."""

    train_x: list[list[float]]
    train_y: list[int]
    test_x: list[list[float]]
    test_y: list[int]
    features: tuple[str, ...]
    species: tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]


def iris(seed: int = 0) -> Iris:
    """Load the 150 Iris flowers, shuffled with `seed`: 120 training samples, and 10 test samples per species.

    The features are the length and width of sepals and petals (in cm), standardised with the training set's `mean` and
    standard deviation `deviation` (both in cm). Labels are 0, 1 or 2, an index into `species`.

    Source: R. A. Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7 (1936),
    table I; measured by E. Anderson. The values are the paper's: the copy in the UCI repository has errors in samples
    35 and 38.

    >>> flowers = iris()
    >>> len(flowers.train_x), len(flowers.test_x), flowers.species
    (120, 30, ('setosa', 'versicolor', 'virginica'))
    """
    with files(__package__).joinpath("iris.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    species = tuple(sorted({row[-1] for row in rows}))
    flowers = [([float(cell) for cell in row[:-1]], species.index(row[-1])) for row in rows]
    random.Random(seed).shuffle(flowers)
    test = [flower for k in range(len(species)) for flower in [sample for sample in flowers if sample[1] == k][:10]]
    train = [flower for flower in flowers if not any(flower is other for other in test)]
    means, deviations = zip(
        *[_mean_and_deviation(column) for column in zip(*[x for x, _ in train], strict=True)], strict=True
    )

    def standardised(x: list[float]) -> list[float]:
        return [(v - mean) / deviation for v, mean, deviation in zip(x, means, deviations, strict=True)]

    return Iris(
        [standardised(x) for x, _ in train],
        [y for _, y in train],
        [standardised(x) for x, _ in test],
        [y for _, y in test],
        tuple(name.replace("_", " ") for name in header[:-1]),
        species,
        means,
        deviations,
    )


def _mean_and_deviation(column: tuple[float, ...]) -> tuple[float, float]:
    mean = sum(column) / len(column)
    return mean, (sum((v - mean) ** 2 for v in column) / len(column)) ** 0.5


class Digits(NamedTuple):
    """Handwritten digits: float32 images (N, 1, 8, 8) from 0 (background) to 1; int64 labels (N,) from 0 to 9."""

    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor

    @property
    def train(self) -> TensorDataset:
        """The training set, as a dataset of (image, label) pairs."""
        from minigrad.data.dataset import TensorDataset

        return TensorDataset(self.train_x, self.train_y)

    @property
    def test(self) -> TensorDataset:
        """The test set, as a dataset of (image, label) pairs."""
        from minigrad.data.dataset import TensorDataset

        return TensorDataset(self.test_x, self.test_y)


def digits(train: int = 1500, seed: int = 0, device: str | None = None) -> Digits:
    """Load 1,797 handwritten digits of 8x8 pixels, shuffled with `seed`: `train` for training, the rest for testing.

    Each pixel is the count of "on" pixels, 0 to 16, in a 4x4 block of a 32x32 bitmap, divided by 16. The order is the
    same on every device. Raises ArgumentError if the training or the test set would be empty.

    Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", 1998, UCI Machine Learning
    Repository, https://doi.org/10.24432/C50P49, CC BY 4.0: the test half, written by 13 people.

    >>> data = digits()
    >>> data.train_x.shape, data.test_y.shape, len(data.test)
    ((1500, 1, 8, 8), (297,), 297)
    """
    from minigrad import functional  # noqa: F401 -- attaches the methods of Tensor
    from minigrad.data.idx import read_idx
    from minigrad.functional.creation import tensor
    from minigrad.random import Generator, randperm

    folder = files(__package__)
    images, labels = [read_idx(folder.joinpath(f"digits-{part}.gz")) for part in ("images.idx3", "labels.idx1")]
    if not 0 < train < len(labels):
        raise ArgumentError(f"digits: train should be between 1 and {len(labels) - 1}, but got train={train!r}.")
    order = randperm(len(labels), generator=Generator(seed), device="numpy").numpy()
    x = (images[order, None] / 16).astype("float32")
    y = labels[order].astype("int64")
    parts = x[:train], y[:train], x[train:], y[train:]
    return Digits(*[tensor(part, device=device) for part in parts])


_NAME_KINDS = {"elements": "chemical elements", "countries": "countries", "stars": "stars"}


def names(kind: str) -> list[str]:
    """Return a list of names for character-level language models: "elements", "countries" or "stars", sorted.

    "elements": the 118 of IUPAC's periodic table, as of 2016. "countries": the 193 member states of the United Nations,
    as of 2024, and its two observer states, by their short English names. "stars": the IAU Catalog of Star Names,
    International Astronomical Union, Working Group on Star Names, as of 19 June 2018 (CC BY 4.0). Raises ArgumentError
    for other kinds.

    >>> len(names("elements")), names("elements")[:3]
    (118, ['actinium', 'aluminium', 'americium'])
    """
    if kind not in _NAME_KINDS:
        raise ArgumentError(f"names: unknown kind {kind!r}; expected one of {', '.join(map(repr, _NAME_KINDS))}.")
    return files(__package__).joinpath(f"{kind}.txt").read_text(encoding="utf-8").splitlines()


@cache
def corpus() -> str:
    """Return a text corpus for language models: a snapshot of minigrad's sources, documents and lessons.

    Its first line contains the date of the snapshot. It stays fixed, so that losses remain comparable over time;
    `make corpus` in a clone rebuilds it.

    >>> corpus().splitlines()[0].startswith("minigrad: its own sources")
    True
    """
    import gzip

    compressed = files(__package__).joinpath("corpus.txt.gz").read_bytes()
    return gzip.decompress(compressed).decode("utf-8")
