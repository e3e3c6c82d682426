"""The state dict of a DataLoader: saving the position in an epoch, and resuming there."""

import itertools

import pytest

import minigrad as mg
from data_sets import Squares, Stream, drawn, rows, seen
from minigrad.core.errors import ArgumentError
from minigrad.data import DataLoader, RandomSampler


@pytest.mark.parametrize("at", [0, 1, 3, 4, 5, 7])
@pytest.mark.parametrize("kind", ["gathered", "made", "sampler", "stream"])
def test_a_resumed_loader_goes_on_with_the_same_batches(kind, at):
    def loader():
        own = mg.Generator(5)
        if kind == "sampler":
            return DataLoader(Squares(), batch_size=3, sampler=RandomSampler(range(10), True, 11, generator=own))
        if kind == "stream":
            return DataLoader(Pairs(10), batch_size=3)
        return DataLoader(rows() if kind == "gathered" else Squares(), batch_size=3, shuffle=True, generator=own)

    def run(source):
        return itertools.chain.from_iterable(iter(source) for _ in range(2))

    whole = [batch[1].tolist() for batch in run(loader())]
    assert len(whole) == 8
    first, states = loader(), []
    states.append(first.state_dict())
    for _ in run(first):
        states.append(first.state_dict())
    second = loader()
    second.load_state_dict(states[at])
    assert [batch[1].tolist() for batch in run(second)][: len(whole) - at] == whole[at:][: 8 - at]


class Pairs(Stream):
    def __iter__(self):
        return zip(range(10), range(10), strict=True)


def test_a_resumed_loader_of_the_default_generator_goes_on_with_the_stored_state_of_that():
    mg.manual_seed(8)
    first = DataLoader(rows(), batch_size=2, shuffle=True)
    begun = iter(first)
    next(begun), next(begun)
    state, numbers = first.state_dict(), mg.get_rng_state()
    rest = [batch[1].tolist() for batch in begun] + seen(first)
    mg.manual_seed(9)
    second = DataLoader(rows(), batch_size=2, shuffle=True)
    second.load_state_dict(state)
    mg.set_rng_state(numbers)
    assert seen(second) + seen(second) == rest


def test_the_state_is_of_plain_numbers_and_says_epoch_and_position():
    loader = drawn(seed=2)
    assert loader.state_dict() == {"epoch": 0, "position": 0, "start": None, "generator": [2, 0]}
    begun = iter(loader)
    next(begun)
    assert loader.state_dict() == {"epoch": 0, "position": 1, "start": [2, 0], "generator": [2, 1]}
    list(begun)
    assert loader.state_dict() == {"epoch": 1, "position": 0, "start": None, "generator": [2, 1]}
    next(iter(loader))
    next(iter(loader))
    assert loader.state_dict()["epoch"] == 2, "an epoch left early counts"


def test_a_state_of_something_else_is_refused():
    with pytest.raises(ArgumentError, match="not the state dict of a loader"):
        drawn().load_state_dict({"epoch": 1})
    with pytest.raises(ArgumentError, match="with a generator, unlike this loader"):
        DataLoader(rows(), shuffle=True).load_state_dict(drawn().state_dict())
