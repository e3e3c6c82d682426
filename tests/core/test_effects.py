"""Effects: which ones the engine reports, in which order, and to which listeners."""

import pytest

import minigrad as mg
from minigrad.core.effects import EFFECTS, Effects, listen, unheard
from minigrad.core.modes import leave_all, modes


def names_of(*effects):
    """A listener that appends the names of these effects to `seen`, and for kernels also the op."""

    def heard(name):
        def method(self, *args):
            self.seen.append(args[0].op if name == "kernel_called" else name)
            return getattr(Effects, name)(self, *args)

        return method

    listener = type("Names", (Effects,), {name: heard(name) for name in effects})()
    listener.seen = []
    return listener


def test_a_step_of_training_reports_what_it_does_in_order():
    mg.manual_seed(0)
    layer = mg.nn.Linear(2, 1, bias=False, device="numpy")
    x, optimizer = mg.ones(1, 2, device="numpy"), mg.optim.SGD(layer.parameters(), lr=0.5)
    with listen(names := names_of(*[x for x in EFFECTS if x != "gradient_passed"])):
        layer(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    forward, backward = names.seen[:3], names.seen[3:-5]
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
    assert names.seen[-5:] == ["grad_read", "grad_read", "storage_written", "sgd_step", "grad_changed"]


def test_what_draws_reads_and_writes_is_reported():
    x = mg.tensor([1.0, 2.0], device="numpy")
    with listen(names := names_of(*[x for x in EFFECTS if x != "kernel_called"])):
        mg.rand(2, device="numpy")
        x.tolist()
        x.add_(1)
        x.unsqueeze_(0)
        mg.manual_seed(0)
        mg.initial_seed()
    assert names.seen == [
        "elements_drawn",
        "values_read",
        "storage_written",
        "graph_rebased",
        "metadata_changed",
        "storage_written",
        "generator_seeded",
        "generator_state_read",
    ]


def test_listeners_hear_one_after_the_other_and_a_value_passes_through_all():
    class Doubles(Effects):
        def elements_drawn(self, generator, first, count):
            seen.append((self, first, count))
            return generator._seed, first + 1

    seen, one, two = [], Doubles(), Doubles()
    with listen(one), listen(two):
        assert mg.Generator(7).draw(3) == (7, 1)
    assert seen == [(one, 0, 3), (two, 0, 3)]


def test_inside_unheard_nothing_or_all_but_some_is_reported():
    x = mg.ones(2, device="numpy")
    with listen(names := names_of("kernel_called", "values_read")):
        with unheard():
            x.add(1).tolist()
        with unheard("kernel_called"):
            x.add(1).tolist()
    assert names.seen == ["values_read"]


def test_listening_ends_with_the_block_also_by_an_error_or_an_interrupt():
    with pytest.raises(ZeroDivisionError), listen(names_of("kernel_called")):
        raise ZeroDivisionError
    assert modes.kernel_called == modes.grad_read == ()
    listen(names_of("kernel_called")).__enter__()
    assert len(modes.kernel_called) == 1
    leave_all()
    assert modes.kernel_called == ()
