"""CPU kernels are launched from persistent contexts, in which only arguments that differ are set."""

import threading
from types import SimpleNamespace
from typing import ClassVar

import pytest

import minigrad as mg
from minigrad.backends.taichi.runtime import launchers


class Context:
    """A context that stores its arguments. `interrupts` contains, for the next arguments, whether they are interrupted
    after they were set."""

    interrupts: ClassVar[list[bool]] = []

    def __init__(self):
        self.arguments, self.set_positions = {}, []

    def put(self, at, value):
        self.arguments[at] = value
        self.set_positions.append(at[0])
        if self.interrupts and self.interrupts.pop(0):
            raise KeyboardInterrupt

    def set_arg_external_array_with_shape(self, at, address, size, shape, gradient):
        self.put(at, (address, *shape, size))

    set_arg_int = set_arg_float = put


def make_launcher(kinds):
    """Return a launch function for these kinds of arguments, a list of its contexts, and a list of launches."""
    contexts, launched = [], []
    core = SimpleNamespace(prog="program")

    def make():
        contexts.append(Context())
        return contexts[-1]

    run = launchers.launcher(kinds)(
        threading.RLock(),
        make,
        lambda ready, it: launched.append(list(it.arguments.values())),
        "ready",
        core,
        None,
    )
    return run, contexts, launched


def set_positions(contexts):
    return [context.set_positions for context in contexts]


def test_only_arguments_that_differ_from_the_previous_launch_are_set():
    run, contexts, launched = make_launcher("aai")
    x, y, z = (64, 8, 32), (128, 8, 32), (256, 8, 32)
    for second in (y, z, z, y):
        run(x, second, 8)
    assert set_positions(contexts) == [[0, 1, 2, 1, 1]]
    assert launched == [[x, y, 8], [x, z, 8], [x, z, 8], [x, y, 8]]


def test_a_combination_of_arguments_that_recurs_has_a_context():
    """Combinations that differ in several arguments, as those of two layers, are set at most twice."""
    run, contexts, launched = make_launcher("aai")
    x, y, z = (64, 8, 32), (128, 8, 32), (256, 8, 32)
    for first, second in 4 * [(x, y), (y, z)]:
        run(first, second, 8)
    assert set_positions(contexts) == [[0, 1, 2, 0, 1, 0, 1, 0, 1], [0, 1, 2], [0, 1, 2]]
    assert launched == 4 * [[x, y, 8], [y, z, 8]]


def test_floats_are_set_for_each_launch():
    run, contexts, launched = make_launcher("af")
    x = (64, 8, 32)
    for value in (0.0, -0.0, 1.5):
        run(x, value)
    assert [context.set_positions for context in contexts] == [[0, 1, 1, 1]]
    assert [str(value) for _, value in launched] == ["0.0", "-0.0", "1.5"]


def test_the_number_of_contexts_is_limited(monkeypatch):
    """Further combinations share a context, in which the arguments that differ are set."""
    monkeypatch.setattr(launchers, "MAX_CONTEXTS", 2)
    launchers.launcher.cache_clear()
    run, contexts, launched = make_launcher("aif")
    launchers.launcher.cache_clear()
    arguments = [((address, 8, 32), address, 0.5) for address in (64, 128, 256, 512)]
    calls = [*3 * arguments[:2], *3 * arguments[2:], *arguments[:2]]
    for call in calls:
        run(*call)
    assert launched == list(map(list, calls))
    assert len(contexts) == 3


def test_an_interrupted_argument_of_the_shared_context_is_set_again(monkeypatch):
    monkeypatch.setattr(launchers, "MAX_CONTEXTS", 0)
    launchers.launcher.cache_clear()
    run, contexts, launched = make_launcher("ai")
    launchers.launcher.cache_clear()
    x, y = (64, 8, 32), (128, 8, 32)
    run(x, 8)
    Context.interrupts.append(True)
    with pytest.raises(KeyboardInterrupt):
        run(y, 9)
    run(x, 8)
    assert launched == [[x, 8], [x, 8]]
    assert [context.set_positions for context in contexts] == [[0, 1, 0, 0]]


def test_an_interrupted_context_is_not_used_again():
    run, contexts, launched = make_launcher("ai")
    x, y = (64, 8, 32), (128, 8, 32)
    run(x, 8)
    run(y, 9)
    Context.interrupts.extend([False, False, True])  # it is set in the shared context, then in one of its own
    with pytest.raises(KeyboardInterrupt):
        run(x, 8)
    assert len(contexts) == 2
    assert not Context.interrupts
    run(y, 9)
    run(x, 8)
    assert launched == [[x, 8], [y, 9], [y, 9], [x, 8]]


def test_minus_0_and_nan_are_set_after_0():
    zeros = [mg.full((4,), value).tolist()[0] for value in (0.0, -0.0, float("nan"), 0.0)]
    assert list(map(str, zeros)) == ["0.0", "-0.0", "nan", "0.0"]
    added = [(mg.zeros(4).neg() + value).tolist()[0] for value in (0.0, -0.0, 0.0)]
    assert list(map(str, added)) == ["0.0", "-0.0", "0.0"]


def test_arrays_that_bypass_the_cache_are_passed_by_address():
    run, _, launched = make_launcher("pa")
    x, y, z = (64, 8, 32), (128, 8, 32), (256, 8, 32)
    run(x, y)
    run(z, y)
    assert launched == [[64, y], [256, y]]
