"""The state dict of a DataLoader: saving the position in an epoch, and resuming there."""

import itertools

import pytest

import minigrad as mg
from data_sets import Squares, Stream, row_dataset, shuffled_loader, targets
from minigrad.core.errors import ArgumentError
from minigrad.data import DataLoader, RandomSampler


@pytest.mark.parametrize("at", [0, 1, 3, 4, 5, 7])
@pytest.mark.parametrize("kind", ["gathered", "made", "sampler", "stream"])
def test_a_resumed_loader_yields_the_same_batches(kind, at):
    def loader():
        generator = mg.Generator(5)
        if kind == "sampler":
            return DataLoader(Squares(), batch_size=3, sampler=RandomSampler(range(10), True, 11, generator=generator))
        if kind == "stream":
            return DataLoader(Pairs(10), batch_size=3)
        return DataLoader(
            row_dataset() if kind == "gathered" else Squares(), batch_size=3, shuffle=True, generator=generator
        )

    def run(source):
        return itertools.chain.from_iterable(iter(source) for _ in range(2))

    uninterrupted = [batch[1].tolist() for batch in run(loader())]
    assert len(uninterrupted) == 8
    first, states = loader(), []
    states.append(first.state_dict())
    for _ in run(first):
        states.append(first.state_dict())
    second = loader()
    second.load_state_dict(states[at])
    assert [batch[1].tolist() for batch in run(second)][: len(uninterrupted) - at] == uninterrupted[at:][: 8 - at]


class Pairs(Stream):
    def __iter__(self):
        return zip(range(10), range(10), strict=True)


def test_a_loader_resumes_with_the_saved_default_generator():
    mg.manual_seed(8)
    first = DataLoader(row_dataset(), batch_size=2, shuffle=True)
    rng_state = iter(first)
    next(rng_state), next(rng_state)
    state, generator_state = first.state_dict(), mg.get_rng_state()
    rest = [batch[1].tolist() for batch in rng_state] + targets(first)
    mg.manual_seed(9)
    second = DataLoader(row_dataset(), batch_size=2, shuffle=True)
    second.load_state_dict(state)
    mg.set_rng_state(generator_state)
    assert targets(second) + targets(second) == rest


def test_the_state_holds_ints_with_epoch_and_position():
    loader = shuffled_loader(seed=2)
    assert loader.state_dict() == {"epoch": 0, "position": 0, "start": None, "generator": [2, 0]}
    iterator = iter(loader)
    next(iterator)
    assert loader.state_dict() == {"epoch": 0, "position": 1, "start": [2, 0], "generator": [2, 1]}
    list(iterator)
    assert loader.state_dict() == {"epoch": 1, "position": 0, "start": None, "generator": [2, 1]}
    next(iter(loader))
    next(iter(loader))
    assert loader.state_dict()["epoch"] == 2, "an epoch left early counts"


def test_an_invalid_state_raises():
    with pytest.raises(ArgumentError, match="not the state dict of a loader"):
        shuffled_loader().load_state_dict({"epoch": 1})
    with pytest.raises(ArgumentError, match="with a generator, unlike this loader"):
        DataLoader(row_dataset(), shuffle=True).load_state_dict(shuffled_loader().state_dict())
