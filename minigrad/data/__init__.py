"""Data to learn from, shipped with the package."""

from __future__ import annotations

import csv
import random
from importlib.resources import files
from typing import NamedTuple

__all__ = ["Iris", "iris"]


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
    with files(__name__).joinpath("iris.csv").open(encoding="utf-8") as file:
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
