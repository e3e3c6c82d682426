"""Threads that share jitted steps."""

import gc
import os
import threading
import time

import pytest

import minigrad as mg
from concurrency import CPU_DEVICES, Interleave, interleave_after, run_concurrently
from minigrad.backends.taichi.runtime import deferred_checks
from minigrad.compiler.jit import step_trace
from minigrad.core.effects import Effects, listen
from minigrad.core.op import ANY, OPS


def training_step(w, factor, device):
    """Return a jitted step, with its own optimizer, that subtracts `factor` from each element of `w`."""
    optimizer, x = mg.optim.SGD([w], lr=1.0), mg.full(w.shape, factor, device=device)

    @mg.jit
    def step():
        optimizer.zero_grad()
        loss = (w * x).sum() * 1.0
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_jitted_steps_that_train_one_parameter_are_serialised(device):
    """A step captured while another replaced the gradient used to accumulate into that gradient from then on."""
    for _ in range(5):
        w = mg.zeros(8, device=device, requires_grad=True)
        steps = [training_step(w, k + 1.0, device) for k in range(4)]
        run_concurrently(4, lambda k, steps=steps: [steps[k]() for _ in range(20)])
        assert w.tolist() == [-200.0] * 8
        for k, run in enumerate(steps):
            with mg.no_grad():
                w.zero_()
            run()
            assert (w.tolist(), w.grad.tolist()) == ([-k - 1.0] * 8, [k + 1.0] * 8)


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_jitted_and_eager_passes_accumulate_into_one_leaf(device):
    w = mg.zeros(3, device=device, requires_grad=True)
    step = mg.jit(lambda: (w * 2.0).sum().backward())
    for _ in range(3):
        w.grad = None
        step()
    w.grad = None
    with interleave_after("contiguous", step, waits=True):
        w.backward(mg.ones(3, device=device))
    assert (w.grad.tolist(), len(step.captures)) == ([3.0] * 3, 2)
    run_concurrently(4, lambda k: [step() if k < 2 else (w * 5.0).sum().backward() for _ in range(40)])
    assert w.grad.tolist() == [3.0 + 40 * (2 + 2 + 5 + 5)] * 3


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_a_step_is_recaptured_if_its_gradient_changed_during_capture(device):
    w = mg.zeros(3, device=device, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)

    class Pausing(Effects):  # between zero_grad and backward, without a guard
        def memory_requested(self, memory):
            pause()
            return memory

    @mg.jit
    def step():
        optimizer.zero_grad()
        (w * 2.0).sum().backward()
        optimizer.step()

    with Interleave(lambda: (w * 5.0).sum().backward()) as pause, listen(Pausing()):
        step()
    assert w.grad.tolist() == [7.0] * 3
    step()
    assert len(step.captures) == 2
    for _ in range(3):
        step()
    assert len(step.captures) == 2
    assert (w.grad.tolist(), w.tolist()) == ([2.0] * 3, [-7.0 - 4 * 2.0] * 3)


def test_another_thread_may_change_a_container_during_capture():
    class Key:
        def __repr__(self):
            pause()  # in the middle of the entries
            return "key"

    table = {Key(): 1.0, "one": 2.0}
    step = mg.jit(lambda x: x + float(len(table)))
    with Interleave(lambda: table.update(another=3.0)) as pause:
        step(mg.zeros(2))
    for entries in (3.0, 3.0, 4.0):
        if entries == 4.0:
            table["more"] = 4.0
        assert step(mg.zeros(2)).tolist() == [entries] * 2


def test_concurrent_first_calls_capture_a_step_once():
    step = mg.jit(lambda x: (x * 2.0).sum())
    results = run_concurrently(8, lambda k: [step(mg.full((3,), k + 1.0)).item() for _ in range(6)])
    assert results == [[6.0 * (k + 1.0)] * 6 for k in range(8)]
    assert len(step.captures) == 1


@pytest.mark.usefixtures("compiled_on_cpu")
def test_deferred_checks_of_a_jitted_step_belong_to_its_thread():
    table = mg.ones(4, 2)
    step = mg.jit(lambda at: mg.index_select(table, 0, at))
    for _ in range(3):
        step(mg.tensor([0, 3]))
    (check,) = step.recording.replay._checks
    slot, *complaint = check
    assert deferred_checks.error_slot(*complaint) is not slot
    with pytest.raises(mg.errors.ShapeError, match="out of range"):
        step(mg.tensor([0, 4]))
    assert run_concurrently(2, lambda k: step(mg.tensor([1, 2])).tolist()) == [[[1.0, 1.0]] * 2] * 2


SEED = int(os.environ.get("MINIGRAD_THREADS", "0"))  # change it to compile kernels that are not cached yet


@pytest.fixture
def litter():
    """Create cyclic garbage in another thread, so that its collection runs at arbitrary points of all threads."""
    stopped, threshold = threading.Event(), gc.get_threshold()

    def make():
        while not stopped.is_set():
            cycle = [mg.ones(2) for _ in range(8)]
            cycle.append(cycle)
            del cycle
            time.sleep(1e-4)

    thread = threading.Thread(target=make, daemon=True)
    gc.freeze()  # existing objects need not be traversed
    gc.set_threshold(100)
    thread.start()
    yield
    stopped.set()
    thread.join()
    gc.unfreeze()
    gc.set_threshold(*threshold)


@pytest.fixture
def own_operations():
    """Declare four operations, each with its own kernel, not compiled yet."""
    names = [f"crowd_{SEED}_{k}" for k in range(4)]
    for k, name in enumerate(names):
        mg.Op(name, "2 {a}", vjp=(lambda g: g * 2.0,), domain=(ANY,), promotes="float")
        mg.kernel(name, "cpu", f"a * 2.0 + {4 * SEED + k}.0")
    yield [OPS[name] for name in names]
    for name in names:
        OPS.pop(name)


@pytest.mark.usefixtures("compiled_on_cpu", "litter")
def test_threads_capture_compile_replay_and_merge_concurrently(monkeypatch, own_operations):
    """Each of eight threads captures its own step, all share another, and all accumulate into one leaf."""
    monkeypatch.setattr(step_trace, "MERGE_AFTER_REPLAYS", 2)
    common, barrier = mg.ones(3, requires_grad=True), threading.Barrier(8)

    def step_of(k):
        w = mg.arange(6 + k, dtype=mg.float32).requires_grad_()
        optimizer, shift = mg.optim.SGD([w], lr=0.5), float(2 * SEED + k // 4)  # part of the merged source

        def step(x):
            optimizer.zero_grad()
            loss = (w * x + shift).relu().sum()
            loss.backward()
            optimizer.step()
            return loss

        return step

    def work(k, jit, shared):
        step, results = jit(step_of(k)), []
        for i in range(6):
            if jit is mg.jit:
                barrier.wait(60)
                for _ in range(5):
                    (common * 2.0).sum().backward()
            x = mg.full((6 + k,), float(i % 3))
            results += [step(x).item(), shared(x).item(), own_operations[k // 2](x).sum().item()]
        if jit is mg.jit:
            assert "merged into" in step.program
        return results

    def plain(x):
        return (x * 3.0 + 1.0).sum()

    shared = mg.jit(plain)
    assert run_concurrently(8, lambda k: work(k, mg.jit, shared)) == [
        work(k, lambda step: step, plain) for k in range(8)
    ]
    assert common.grad.tolist() == [8 * 6 * 5 * 2.0] * 3
