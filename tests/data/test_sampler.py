"""Samplers: the indices they yield, their generators, and errors."""

import itertools
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


def test_a_random_sampler_draws_a_key_an_epoch():
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
        order = make().order(device)
        assert (order.device, order.dtype) == (device if device == "numpy" else mg.device("cpu"), mg.int64)
        assert order.tolist() == list(make())


def test_more_samples_than_examples_go_through_them_again():
    drawn = list(RandomSampler(range(4), num_samples=10, generator=mg.Generator(0)))
    assert len(drawn) == 10
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3]


def test_with_replacement_any_may_come_again():
    drawn = Counter(RandomSampler(range(4), True, 4000, generator=mg.Generator(0)))
    assert all(900 < drawn[k] < 1100 for k in range(4))


def test_weights_say_how_often():
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
def test_what_cannot_be_drawn_is_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_sampler_says_what_it_wants():
    with pytest.raises(NotImplementedError, match="Sampler: implement __iter__ to yield sample indices"):
        iter(Sampler())


@pytest.mark.parity
def test_batches_of_numbers_are_pytorchs(torch):
    for drop in (False, True):
        ours, theirs = [library.BatchSampler(range(7), 3, drop) for library in (mg.data, torch.utils.data)]
        assert list(ours) == list(theirs)
        assert len(ours) == len(theirs)


@pytest.mark.parametrize("weights", [[-1.0, 1.0], [0.0, 0.0], [], [mg.nan, 1.0], [mg.inf, 1.0]])
def test_weights_are_looked_at_before_anything_is_drawn(weights):
    with pytest.raises(
        ArgumentError, match="WeightedRandomSampler: weights should be finite and non-negative, and at least one"
    ):
        WeightedRandomSampler(weights, 1)


def test_more_numbers_than_weights_are_refused_without_replacement():
    with pytest.raises(ArgumentError, match="cannot sample 5 indices without replacement from 2 positive weights"):
        WeightedRandomSampler([1.0, 0.0, 2.0], 5, replacement=False)


@pytest.mark.parametrize("data", [range(10), range(10**10)])
def test_billions_of_samples_are_drawn_as_they_are_asked_for(data):
    generator = mg.Generator(0)
    sampler = RandomSampler(data, replacement=True, num_samples=10**10, generator=generator)
    assert len(sampler) == 10**10
    first = list(itertools.islice(sampler, 5))
    assert (
        first == RandomSampler(data, replacement=True, num_samples=5, generator=mg.Generator(0)).order("numpy").tolist()
    )
    assert next(iter(BatchSampler(SequentialSampler(range(10**12)), 3, False))) == [0, 1, 2]
    many = RandomSampler(range(10), num_samples=10**10, generator=mg.Generator(0))
    assert sorted(itertools.islice(many, 10)) == list(range(10))


def test_a_sampler_may_name_the_type_of_its_numbers():
    class Pairs(Sampler[list[int]]):
        def __iter__(self):
            yield [0, 1]

    assert list(Pairs()) == [[0, 1]]
