"""The data that is shipped with the package: numbers and facts, and the project's own text. SOURCES.md says whence."""

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
    """Flowers to train on and flowers to test with: four measurements each, in standard deviations from the mean."""

    train_x: list[list[float]]
    train_y: list[int]
    test_x: list[list[float]]
    test_y: list[int]
    features: tuple[str, ...]
    species: tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]


def iris(seed: int = 0) -> Iris:
    """The 150 Iris flowers in an order drawn from `seed`: 120 to train on, and 10 of each species to test with.

    Each flower is the length and width of its sepals and of its petals (measured in cm), standardised with the mean and
    the standard deviation of the 120: subtract `mean` (cm), divide by `deviation` (cm). Its class is 0, 1 or 2, an
    index of `species`.

    Source: R. A. Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7 (1936),
    table I; measured by E. Anderson. These are the paper's numbers: the copy in the UCI repository errs in the 35th
    and the 38th flower.

    >>> flowers = iris()
    >>> len(flowers.train_x), len(flowers.test_x), flowers.species
    (120, 30, ('setosa', 'versicolor', 'virginica'))
    """
    with files(__package__).joinpath("iris.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    species = tuple(sorted({row[-1] for row in rows}))
    flowers = [([float(cell) for cell in row[:-1]], species.index(row[-1])) for row in rows]
    random.Random(seed).shuffle(flowers)
    test = [flower for k in range(len(species)) for flower in [f for f in flowers if f[1] == k][:10]]
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
    """Handwritten digits: images (N, 1, 8, 8) of float32 from 0, paper, to 1, ink; labels (N,) of int64 from 0 to 9."""

    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor

    @property
    def train(self) -> TensorDataset:
        """The digits to train on, as pairs of an image and its label."""
        from minigrad.data.dataset import TensorDataset

        return TensorDataset(self.train_x, self.train_y)

    @property
    def test(self) -> TensorDataset:
        """The digits to test with, as pairs of an image and its label."""
        from minigrad.data.dataset import TensorDataset

        return TensorDataset(self.test_x, self.test_y)


def digits(train: int = 1500, seed: int = 0, device: str | None = None) -> Digits:
    """1,797 handwritten digits of 8x8 pixels in an order drawn from `seed`: `train` to train on, the rest to test with.

    Each pixel counts the inked dots, 0 to 16, of a square of 4x4 in a scan of 32x32; here it is divided by 16. The
    order is the same on every device. Raises ArgumentError if `train` leaves nothing for one of the two.

    Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", 1998, UCI Machine Learning
    Repository, https://doi.org/10.24432/C50P49, CC BY 4.0: the test half, written by 13 people.

    >>> data = digits()
    >>> data.train_x.shape, data.test_y.shape, len(data.test)
    ((1500, 1, 8, 8), (297,), 297)
    """
    from minigrad import functional  # noqa: F401 -- tensors have their methods by it, also where these are the first
    from minigrad.data.idx import read_idx
    from minigrad.functional.creation import tensor
    from minigrad.random import Generator, randperm

    folder = files(__package__)
    images, labels = [read_idx(folder.joinpath(f"digits-{part}.gz")) for part in ("images.idx3", "labels.idx1")]
    if not 0 < train < len(labels):
        raise ArgumentError(f"digits: train={train!r}: of {len(labels)} digits, 1 to {len(labels) - 1} can train.")
    order = randperm(len(labels), generator=Generator(seed), device="numpy").numpy()
    x = (images[order, None] / 16).astype("float32")
    y = labels[order].astype("int64")
    parts = x[:train], y[:train], x[train:], y[train:]
    return Digits(*[tensor(part, device=device) for part in parts])


_NAMES = {"elements": "chemical elements", "countries": "countries", "stars": "stars"}


def names(kind: str) -> list[str]:
    """Names that are facts, for a model of characters: of "elements", "countries" or "stars", in alphabetical order.

    "elements": the 118 of IUPAC's periodic table, as of 2016. "countries": the 193 member states of the United Nations,
    as of 2024, and its two observer states, by their short names in English. "stars": those of the IAU Catalog of Star
    Names, International Astronomical Union, Working Group on Star Names, as of 19 June 2018 (CC BY 4.0).
    Raises ArgumentError for another kind.

    >>> len(names("elements")), names("elements")[:3]
    (118, ['actinium', 'aluminium', 'americium'])
    """
    if kind not in _NAMES:
        raise ArgumentError(
            f"names: there are no names of {kind!r}; there are those of {', '.join(map(repr, _NAMES))}."
        )
    return files(__package__).joinpath(f"{kind}.txt").read_text(encoding="utf-8").splitlines()


@cache
def corpus() -> str:
    """A text to learn to write: minigrad's own sources, documents and lessons as they were on the day it begins with.

    It is frozen, so that a loss of last year can be compared with one of today; `make corpus`, in a clone, makes
    another, on purpose only.

    >>> corpus().splitlines()[0].startswith("minigrad: its own sources")
    True
    """
    import gzip

    packed = files(__package__).joinpath("corpus.txt.gz").read_bytes()
    return gzip.decompress(packed).decode("utf-8")
