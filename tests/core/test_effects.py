"""Effects: which ones the engine reports, in which order, and to which listeners."""

import pytest

import minigrad as mg
from minigrad.core.effects import EFFECTS, Effects, disable_effects, listen
from minigrad.core.modes import exit_all, modes


def names_of(*effects):
    """A listener that appends the names of these effects to `log`, and for kernels also the op."""

    def heard(name):
        def method(self, *args):
            self.calls.append(args[0].op if name == "kernel_called" else name)
            return getattr(Effects, name)(self, *args)

        return method

    listener = type("Names", (Effects,), {name: heard(name) for name in effects})()
    listener.calls = []
    return listener


def test_a_training_step_reports_its_effects_in_order():
    mg.manual_seed(0)
    layer = mg.nn.Linear(2, 1, bias=False, device="numpy")
    x, optimizer = mg.ones(1, 2, device="numpy"), mg.optim.SGD(layer.parameters(), lr=0.5)
    with listen(names := names_of(*[x for x in EFFECTS if x != "gradient_passed"])):
        layer(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    forward, backward = names.calls[:3], names.calls[3:-4]
    assert forward == ["module_called", "linear", "sum"]
    assert backward[1:] == [
        "hooks_read",
        "reshape",
        "expand",
        "hooks_read",
        "permute",
        "matmul",
        "hooks_read",
        "grad_changed",
        "optimizer_stepping",
    ]
    assert names.calls[-4:] == ["grad_read", "storage_written", "sgd_step", "grad_changed"]


def test_sampling_reads_and_writes_are_reported():
    x = mg.tensor([1.0, 2.0], device="numpy")
    with listen(names := names_of(*[x for x in EFFECTS if x != "kernel_called"])):
        mg.rand(2, device="numpy")
        x.tolist()
        x.add_(1)
        x.unsqueeze_(0)
        mg.manual_seed(0)
        mg.initial_seed()
    assert names.calls == [
        "elements_drawn",
        "values_read",
        "storage_written",
        "graph_rebased",
        "metadata_changed",
        "storage_written",
        "generator_seeded",
        "generator_state_read",
    ]


def test_listeners_are_called_in_order_and_chain_returned_values():
    class Doubles(Effects):
        def elements_drawn(self, generator, first, count):
            log.append((self, first, count))
            return generator._seed, first + 1

    log, item, two = [], Doubles(), Doubles()
    with listen(item), listen(two):
        assert mg.Generator(7).draw(3) == (7, 1)
    assert log == [(item, 0, 3), (two, 0, 3)]


def test_disabled_effects_are_not_reported():
    x = mg.ones(2, device="numpy")
    with listen(names := names_of("kernel_called", "values_read")):
        with disable_effects():
            x.add(1).tolist()
        with disable_effects("kernel_called"):
            x.add(1).tolist()
    assert names.calls == ["values_read"]


def test_listening_ends_on_exit_exception_or_interrupt():
    with pytest.raises(ZeroDivisionError), listen(names_of("kernel_called")):
        raise ZeroDivisionError
    assert modes.kernel_called == modes.grad_read == ()
    listen(names_of("kernel_called")).__enter__()
    assert len(modes.kernel_called) == 1
    exit_all()
    assert modes.kernel_called == ()
