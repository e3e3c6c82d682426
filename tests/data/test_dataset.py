"""Datasets: what an example is, how they are put together and split, and what they refuse."""

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


def test_rows_of_tensors_go_together():
    data = TensorDataset(mg.arange(6).reshape(3, 2), mg.tensor([7, 8, 9]))
    assert [(x.tolist(), y.item()) for x, y in (data[k] for k in range(3))] == [([0, 1], 7), ([2, 3], 8), ([4, 5], 9)]
    assert data[-1][1].item() == 9
    assert [x.shape for x in data[1:]] == [(2, 2), (2,)]
    assert [x.device for x in data.to("numpy").tensors] == ["numpy", "numpy"]


def test_datasets_stand_one_after_another():
    data = Squares(3) + Squares(2)
    assert isinstance(data, ConcatDataset)
    assert [data[k][1] for k in range(-1, 5)] == [1, 0, 1, 4, 0, 1]
    assert len(data) == 5
    with pytest.raises(ShapeError, match="there is no example 5: it has 5"):
        data[5]


def test_iterable_datasets_follow_one_another():
    chain = Stream(2) + Stream(3)
    assert isinstance(chain, ChainDataset)
    assert list(chain) == [0, 1, 0, 1, 2]


def test_datasets_stand_side_by_side():
    assert StackDataset(Squares(3), range(3))[2] == ((2.0, 4), 2)
    assert StackDataset(a=Squares(3), b=range(3))[1] == {"a": (1.0, 1), "b": 1}


def test_a_split_has_every_example_once_and_follows_its_seed():
    first, second = random_split(Squares(10), [7, 3], generator=mg.Generator(1))
    assert sorted([*first.indices, *second.indices]) == list(range(10))
    assert first.indices == random_split(range(10), [0.7, 0.3], generator=mg.Generator(1))[0].indices
    assert [y for _, y in (second[k] for k in range(3))] == [k * k for k in second.indices]
    assert [len(part) for part in random_split(range(10), [1 / 3, 1 / 3, 1 / 3])] == [4, 3, 3]


def test_a_part_that_gets_nothing_is_warned_of():
    with pytest.warns(UserWarning, match=r"of 2 examples, \[1, 1, 0\] leave a part empty"):
        random_split(range(2), [0.4, 0.3, 0.3])


class Nothing(Dataset):
    pass


@merge_cases
@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (TensorDataset, ArgumentError, "it takes one tensor or more"),
        (lambda: TensorDataset([1, 2]), DTypeError, "argument 0 is a list, not a tensor"),
        (lambda: TensorDataset(mg.tensor(1.0)), ShapeError, "tensor 0 is one number, without rows"),
        (lambda: TensorDataset(mg.ones(3), mg.ones(2)), ShapeError, "its tensors have 3, 2 rows"),
        (lambda: ConcatDataset([]), ArgumentError, "should not be an empty iterable"),
        (lambda: ConcatDataset([Stream()]), DTypeError, "Write ChainDataset"),
        (lambda: ConcatDataset([Nothing()]), DTypeError, "Nothing does not say how many examples it has"),
        (lambda: list(ChainDataset([Squares()])), DTypeError, "Squares is not an IterableDataset"),
        (lambda: StackDataset(Squares(2), Squares(3)), ShapeError, r"they have \[2, 3\] examples"),
        (lambda: StackDataset(), ArgumentError, "all by place or all by name"),
        (lambda: random_split(range(4), [1, 2]), ArgumentError, "add up to 3, but there are 4 examples"),
        (lambda: random_split(range(4), [5, -1]), ArgumentError, "add up to 4"),
        (lambda: random_split(range(4), [1.5, -0.5]), ArgumentError, "shares are from 0 to 1"),
        (lambda: Nothing()[0], NotImplementedError, "Nothing: say in __getitem__ what example number 0 is"),
        (lambda: iter(IterableDataset()), NotImplementedError, "yield its examples in __iter__"),
    ],
)
def test_what_cannot_be_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_subset_is_in_the_order_of_its_numbers():
    part = Subset(Squares(5), [4, 0])
    assert ([part[k][1] for k in range(2)], len(part)) == ([16, 0], 2)


@pytest.mark.parity
def test_lengths_of_splits_are_pytorchs(torch):
    for shares in ([0.5, 0.5], [0.8, 0.1, 0.1], [0.333, 0.333, 0.334]):
        ours = random_split(range(101), shares)
        theirs = torch.utils.data.random_split(range(101), shares)
        assert [len(part) for part in ours] == [len(part) for part in theirs]
