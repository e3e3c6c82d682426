"""CPU kernels are launched from a persistent context."""

import threading
from types import SimpleNamespace

import pytest

import minigrad as mg
from minigrad.backends.taichi.runtime import launchers


class Context:
    """A context that stores its arguments; with `fails` it is interrupted after setting an argument."""

    def __init__(self):
        self.has, self.given, self.fails = {}, [], False

    def put(self, at, value):
        self.has[at] = value
        self.given.append(at[0])
        if self.fails:
            self.fails = False
            raise KeyboardInterrupt

    def set_arg_external_array_with_shape(self, at, address, size, shape, gradient):
        self.put(at, (address, *shape, size))

    set_arg_int = set_arg_float = put


def made(kinds):
    """Return a launch function for these kinds of arguments, its context, and a list of launches."""
    context, launched = Context(), []
    core = SimpleNamespace(prog="program")
    run = launchers.launcher(kinds)(
        threading.RLock(),
        lambda: context,
        lambda ready, it: launched.append(list(it.has.values())),
        "ready",
        core,
        None,
    )
    return run, context, launched


def test_only_what_is_another_than_last_time_is_given_again():
    run, context, launched = made("aai")
    x, y, z = (64, 8, 32), (128, 8, 32), (256, 8, 32)
    run(x, y, 8)
    run(x, z, 8)
    run(x, z, 8)
    assert context.given == [0, 1, 2, 1]
    assert launched == [[x, y, 8], [x, z, 8], [x, z, 8]]


def test_an_argument_whose_setting_was_interrupted_is_given_again():
    run, context, launched = made("ai")
    x, y = (64, 8, 32), (128, 8, 32)
    run(x, 8)
    context.fails = True
    with pytest.raises(KeyboardInterrupt):
        run(y, 8)
    run(x, 8)
    assert launched == [[x, 8], [x, 8]]


def test_minus_0_and_nan_are_given_after_0():
    zeros = [mg.full((4,), value).tolist()[0] for value in (0.0, -0.0, float("nan"), 0.0)]
    assert list(map(str, zeros)) == ["0.0", "-0.0", "nan", "0.0"]
    added = [(mg.zeros(4).neg() + value).tolist()[0] for value in (0.0, -0.0, 0.0)]
    assert list(map(str, added)) == ["0.0", "-0.0", "0.0"]


def test_of_an_array_that_is_stored_past_the_cache_a_kernel_gets_the_address():
    run, context, launched = made("pa")
    x, y, z = (64, 8, 32), (128, 8, 32), (256, 8, 32)
    run(x, y)
    run(z, y)
    assert context.given == [0, 1, 0]
    assert launched == [[64, y], [256, y]]
