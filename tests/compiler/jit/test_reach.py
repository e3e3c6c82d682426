"""Reach: which links of reachable objects are guarded, and which objects cannot be."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.compiler.jit.reach import Reach
from minigrad.compiler.jit.watch import EntryWatch


def read_by(step, *args):
    """Return what `step` read when it ran: the guards, the names of its tensors, and what is refused."""
    reach = Reach()
    reach.add(step, "step")
    with EntryWatch(reach.enter) as watch:
        step(*args)
    selection = reach.select_read(watch)
    return (
        [guard.name for guard in selection.guards],
        [name for _, name in selection.tensors.values()],
        selection.unguardable,
    )


def test_only_attributes_that_the_step_names_are_guarded():
    config = SimpleNamespace(rate=0.5, history=[], name="a")
    guarded, _, _ = read_by(lambda: config.rate * 2)
    assert "config.rate" in guarded
    assert not {"config.history", "config.name"} & set(guarded)


def test_a_function_that_is_not_entered_is_guarded_as_an_object_alone():
    factor = 2.0

    def used():
        return factor

    def unused():
        return other

    other = 3.0
    guarded, _, _ = read_by(lambda flag: used() if flag else unused(), True)
    assert {"used", "unused", "factor"} <= set(guarded)
    assert "other" not in guarded


def test_tensors_in_containers_are_found_with_their_names():
    container = {"w": mg.ones(2), "rest": [mg.zeros(1), (mg.zeros(3),)]}
    _, tensors, _ = read_by(lambda: container["w"])
    assert tensors == ["container['w']", "container['rest'][0]", "container['rest'][1][0]"]


@pytest.mark.parametrize(
    ("thing", "description"),
    [
        (itertools.count(), "thing, a count: its next item cannot be guarded"),
        ((k for k in range(3)), "thing, a generator: its next item cannot be guarded"),
        (iter([1]), "thing, a list_iterator: its next item cannot be guarded"),
        ([0] * 20_000, "thing, a list of 20,000 entries: comparing them would take longer than a step"),
        (np.zeros(200_000), "thing, a ndarray of 1,600,000 bytes: comparing them would take longer than a step"),
    ],
    ids=["count", "generator", "iterator", "list", "array"],
)
def test_what_cannot_be_guarded_is_named(thing, description):
    _, _, refused = read_by(lambda: thing and None if thing is None else thing)
    assert [x[: len(description)] for x in refused] == [description]
