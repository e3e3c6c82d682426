"""Datasets: indexing, concatenation, stacking, splitting, and errors."""

import pytest

import minigrad as mg
from cases import merge_cases
from data_sets import Squares, Stream
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


def test_tensor_dataset_zips_rows():
    data = TensorDataset(mg.arange(6).reshape(3, 2), mg.tensor([7, 8, 9]))
    assert [(x.tolist(), y.item()) for x, y in (data[k] for k in range(3))] == [([0, 1], 7), ([2, 3], 8), ([4, 5], 9)]
    assert data[-1][1].item() == 9
    assert [x.shape for x in data[1:]] == [(2, 2), (2,)]
    assert [x.device for x in data.to("numpy").tensors] == ["numpy", "numpy"]


def test_datasets_are_concatenated():
    data = Squares(3) + Squares(2)
    assert isinstance(data, ConcatDataset)
    assert [data[k][1] for k in range(-1, 5)] == [1, 0, 1, 4, 0, 1]
    assert len(data) == 5
    with pytest.raises(ShapeError, match="index 5 is out of range for a dataset of length 5"):
        data[5]


def test_iterable_datasets_are_chained():
    chain = Stream(2) + Stream(3)
    assert isinstance(chain, ChainDataset)
    assert list(chain) == [0, 1, 0, 1, 2]


def test_datasets_are_stacked():
    assert StackDataset(Squares(3), range(3))[2] == ((2.0, 4), 2)
    assert StackDataset(a=Squares(3), b=range(3))[1] == {"a": (1.0, 1), "b": 1}


def test_a_split_has_every_sample_once_and_depends_on_the_seed():
    first, second = random_split(Squares(10), [7, 3], generator=mg.Generator(1))
    assert sorted([*first.indices, *second.indices]) == list(range(10))
    assert first.indices == random_split(range(10), [0.7, 0.3], generator=mg.Generator(1))[0].indices
    assert [y for _, y in (second[k] for k in range(3))] == [k * k for k in second.indices]
    assert [len(part) for part in random_split(range(10), [1 / 3, 1 / 3, 1 / 3])] == [4, 3, 3]


def test_an_empty_subset_warns():
    with pytest.warns(UserWarning, match=r"splitting 2 samples into lengths \[1, 1, 0\] results in an empty dataset"):
        random_split(range(2), [0.4, 0.3, 0.3])


class WithoutLen(Dataset):
    pass


@merge_cases
@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (TensorDataset, ArgumentError, "expected at least one tensor, but got none"),
        (lambda: TensorDataset([1, 2]), DTypeError, "expected argument 0 to be a tensor, but got a list"),
        (lambda: TensorDataset(mg.tensor(1.0)), ShapeError, "tensor 0 is 0-dimensional"),
        (
            lambda: TensorDataset(mg.ones(3), mg.ones(2)),
            ShapeError,
            "size mismatch between tensors: their first dimensions are 3, 2",
        ),
        (lambda: ConcatDataset([]), ArgumentError, "should not be an empty iterable"),
        (lambda: ConcatDataset([Stream()]), DTypeError, "Write ChainDataset"),
        (lambda: ConcatDataset([WithoutLen()]), DTypeError, r"object of type WithoutLen has no len\(\)"),
        (
            lambda: list(ChainDataset([Squares()])),
            DTypeError,
            "ChainDataset only supports IterableDataset, but got Squares",
        ),
        (
            lambda: StackDataset(Squares(2), Squares(3)),
            ShapeError,
            r"size mismatch between datasets: their lengths are \[2, 3\]",
        ),
        (lambda: StackDataset(), ArgumentError, "all as positional or all as keyword arguments"),
        (
            lambda: random_split(range(4), [1, 2]),
            ArgumentError,
            r"sum of lengths \[1, 2\] is 3, but the dataset has length 4",
        ),
        (lambda: random_split(range(4), [5, -1]), ArgumentError, r"sum of lengths \[5, -1\] is 4"),
        (lambda: random_split(range(4), [1.5, -0.5]), ArgumentError, "fractions must be between 0 and 1"),
        (
            lambda: WithoutLen()[0],
            NotImplementedError,
            "WithoutLen: implement __getitem__ to return the sample at index 0",
        ),
        (lambda: iter(IterableDataset()), NotImplementedError, "implement __iter__ to yield the samples"),
    ],
)
def test_invalid_datasets_raise(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_subset_follows_its_indices():
    part = Subset(Squares(5), [4, 0])
    assert ([part[k][1] for k in range(2)], len(part)) == ([16, 0], 2)


@pytest.mark.parity
def test_split_lengths_match_pytorch(torch):
    for fractions in ([0.5, 0.5], [0.8, 0.1, 0.1], [0.333, 0.333, 0.334]):
        actual = random_split(range(101), fractions)
        expected = torch.utils.data.random_split(range(101), fractions)
        assert [len(part) for part in actual] == [len(part) for part in expected]
