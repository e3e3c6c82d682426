"""Samplers: the indices they yield, their generators, and errors."""

import itertools
import sys
from collections import Counter

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad.data import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def test_a_random_sampler_draws_one_key_per_epoch():
    generator = mg.Generator(3)
    sampler = RandomSampler(range(50), generator=generator)
    first = list(sampler)
    assert sorted(first) == list(range(50)) != first
    assert generator.draw(0) == (3, 1)
    assert list(sampler) != first
    generator.manual_seed(3)
    assert list(sampler) == first


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_a_key_gives_one_order_on_every_device(device):
    samplers = {
        "random": lambda: RandomSampler(range(20), generator=mg.Generator(1)),
        "again": lambda: RandomSampler(range(20), True, 30, generator=mg.Generator(1)),
        "subset": lambda: SubsetRandomSampler(range(5, 25), generator=mg.Generator(1)),
        "weighted": lambda: WeightedRandomSampler([0.5] * 20, 9, generator=mg.Generator(1)),
    }
    for make in samplers.values():
        order = make().indices_tensor(device)
        assert (order.device, order.dtype) == (device if device == "numpy" else mg.device("cpu"), mg.int64)
        assert order.tolist() == list(make())


def test_more_samples_than_the_dataset_repeat_it():
    drawn = list(RandomSampler(range(4), num_samples=10, generator=mg.Generator(0)))
    assert len(drawn) == 10
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3]


def test_replacement_allows_repeats():
    drawn = Counter(RandomSampler(range(4), True, 4000, generator=mg.Generator(0)))
    assert all(900 < drawn[k] < 1100 for k in range(4))


def test_weights_set_frequencies():
    drawn = Counter(WeightedRandomSampler([1, 3, 0], 4000, generator=mg.Generator(0)))
    assert drawn[2] == 0
    assert 900 < drawn[0] < 1100
    once = list(WeightedRandomSampler([1, 3, 2], 3, replacement=False, generator=mg.Generator(0)))
    assert sorted(once) == [0, 1, 2]


def test_a_subset_is_shuffled():
    drawn = list(SubsetRandomSampler(list(range(10, 40)), generator=mg.Generator(0)))
    assert sorted(drawn) == list(range(10, 40)) != drawn


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomSampler(range(3), num_samples=0), "should be a positive integer value, but got num_samples=0"),
        (lambda: WeightedRandomSampler([1.0], -1), "should be a positive integer value, but got num_samples=-1"),
        (lambda: WeightedRandomSampler([[1.0]], 1), "weights should be a 1d sequence"),
        (lambda: BatchSampler(range(3), True, False), "batch_size should be a positive integer value"),
        (lambda: list(RandomSampler([], num_samples=2)), "cannot draw 2 samples from an empty dataset"),
    ],
)
def test_invalid_samplers_raise(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_an_abstract_sampler_raises():
    with pytest.raises(NotImplementedError, match="Sampler: implement __iter__ to yield sample indices"):
        iter(Sampler())


@pytest.mark.parity
def test_index_batches_match_pytorch(torch):
    for drop in (False, True):
        actual, expected = [library.BatchSampler(range(7), 3, drop) for library in (mg.data, torch.utils.data)]
        assert list(actual) == list(expected)
        assert len(actual) == len(expected)


@pytest.mark.parametrize("weights", [[-1.0, 1.0], [0.0, 0.0], [], [mg.nan, 1.0], [mg.inf, 1.0]])
def test_weights_are_validated_before_drawing(weights):
    with pytest.raises(
        ArgumentError, match="WeightedRandomSampler: weights should be finite and non-negative, and at least one"
    ):
        WeightedRandomSampler(weights, 1)


def test_too_many_samples_without_replacement_raise():
    with pytest.raises(ArgumentError, match="cannot sample 5 indices without replacement from 2 positive weights"):
        WeightedRandomSampler([1.0, 0.0, 2.0], 5, replacement=False)


MANY = min(10**10, sys.maxsize)  # the largest length that Python supports on this machine


@pytest.mark.parametrize("data", [range(10), range(MANY)])
def test_billions_of_samples_are_drawn_lazily(data):
    generator = mg.Generator(0)
    sampler = RandomSampler(data, replacement=True, num_samples=MANY, generator=generator)
    assert len(sampler) == MANY
    first = list(itertools.islice(sampler, 5))
    assert (
        first
        == RandomSampler(data, replacement=True, num_samples=5, generator=mg.Generator(0))
        .indices_tensor("numpy")
        .tolist()
    )
    assert next(iter(BatchSampler(SequentialSampler(range(MANY)), 3, False))) == [0, 1, 2]
    many = RandomSampler(range(10), num_samples=MANY, generator=mg.Generator(0))
    assert sorted(itertools.islice(many, 10)) == list(range(10))


def test_a_sampler_is_generic():
    class Pairs(Sampler[list[int]]):
        def __iter__(self):
            yield [0, 1]

    assert list(Pairs()) == [[0, 1]]
