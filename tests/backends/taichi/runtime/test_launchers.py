"""CPU kernels are launched from a persistent context."""

import threading
from types import SimpleNamespace

import pytest

import minigrad as mg
from minigrad.backends.taichi.runtime import launchers


class Context:
    """A context that stores its arguments; with `fails` it is interrupted after setting an argument."""

    def __init__(self):
        self.arguments, self.set_positions, self.fails = {}, [], False

    def put(self, at, value):
        self.arguments[at] = value
        self.set_positions.append(at[0])
        if self.fails:
            self.fails = False
            raise KeyboardInterrupt

    def set_arg_external_array_with_shape(self, at, address, size, shape, gradient):
        self.put(at, (address, *shape, size))

    set_arg_int = set_arg_float = put


def make_launcher(kinds):
    """Return a launch function for these kinds of arguments, its context, and a list of launches."""
    context, launched = Context(), []
    core = SimpleNamespace(prog="program")
    run = launchers.launcher(kinds)(
        threading.RLock(),
        lambda: context,
        lambda ready, it: launched.append(list(it.arguments.values())),
        "ready",
        core,
        None,
    )
    return run, context, launched


def test_only_changed_arguments_are_set_again():
    run, context, launched = make_launcher("aai")
    x, y, z = (64, 8, 32), (128, 8, 32), (256, 8, 32)
    run(x, y, 8)
    run(x, z, 8)
    run(x, z, 8)
    assert context.set_positions == [0, 1, 2, 1]
    assert launched == [[x, y, 8], [x, z, 8], [x, z, 8]]


def test_an_interrupted_argument_is_set_again():
    run, context, launched = make_launcher("ai")
    x, y = (64, 8, 32), (128, 8, 32)
    run(x, 8)
    context.fails = True
    with pytest.raises(KeyboardInterrupt):
        run(y, 8)
    run(x, 8)
    assert launched == [[x, 8], [x, 8]]


def test_minus_0_and_nan_are_set_after_0():
    zeros = [mg.full((4,), value).tolist()[0] for value in (0.0, -0.0, float("nan"), 0.0)]
    assert list(map(str, zeros)) == ["0.0", "-0.0", "nan", "0.0"]
    added = [(mg.zeros(4).neg() + value).tolist()[0] for value in (0.0, -0.0, 0.0)]
    assert list(map(str, added)) == ["0.0", "-0.0", "0.0"]


def test_arrays_that_bypass_the_cache_are_passed_by_address():
    run, context, launched = make_launcher("pa")
    x, y, z = (64, 8, 32), (128, 8, 32), (256, 8, 32)
    run(x, y)
    run(z, y)
    assert context.set_positions == [0, 1, 0]
    assert launched == [[64, y], [256, y]]
