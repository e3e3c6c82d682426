"""Grad mode per thread: as a function, a context manager and a decorator, and after an exception."""

import pytest

import minigrad as mg


def test_set_grad_enabled_persists_as_a_call_but_not_as_a_context():
    with mg.set_grad_enabled(False):
        assert not mg.is_grad_enabled()
        with mg.set_grad_enabled(True):
            assert mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    mg.set_grad_enabled(False)
    try:
        assert not (mg.Value(2.0) * 3.0).requires_grad
    finally:
        mg.set_grad_enabled(True)
    assert (mg.Value(2.0) * 3.0).requires_grad


@pytest.mark.parametrize("block", [mg.no_grad, mg.inference_mode, lambda: mg.set_grad_enabled(False)])
def test_a_context_restores_the_mode_after_an_exception(block):
    def failing():
        with block():
            modes.append(mg.is_grad_enabled())
            raise KeyError

    modes = []
    with pytest.raises(KeyError):
        failing()
    assert [*modes, mg.is_grad_enabled()] == [False, True]


def test_a_decorator_applies_during_calls_only():
    @mg.set_grad_enabled(False)
    def product(x):
        return x * 3.0

    assert mg.is_grad_enabled()
    assert not product(mg.Value(2.0)).requires_grad
    assert mg.is_grad_enabled()


def test_scopes_nest_and_each_entry_is_distinct():
    with mg.scope("layer"), mg.scope("neuron"):
        first = mg.Value(1.0) * 2.0
    with mg.scope("layer"):
        second = mg.Value(1.0) * 2.0
    assert [x.scope for x in (first, second)] == ["layer/neuron", "layer"]
    assert first.scope.outer is not second.scope
