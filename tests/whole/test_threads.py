"""Threads that share tensors, generators, optimizers and kernels."""

import contextlib
import gc
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from concurrency import CPU_DEVICES, Interleave, interleave_after, run_concurrently
from minigrad.backends.numpy import threads as numpy_threads
from minigrad.backends.taichi.runtime import buffers, kernel
from minigrad.backends.taichi.runtime.array import Pool
from minigrad.backends.taichi.runtime.locking import mute_stdout
from minigrad.backends.taichi.runtime.transforms import add_offsets
from minigrad.compiler.jit import scalars
from minigrad.core import step, tensor
from minigrad.core.errors import GraphError
from minigrad.core.graph import Node
from minigrad.profiling import memory_report, tidying

SIZES = [4, 20_000]  # NumPy releases the interpreter while it adds more than 500 elements


# --- gradients ---


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("device", CPU_DEVICES)
def test_concurrent_backward_passes_accumulate_into_shared_leaves(device, size):
    for _ in range(40):
        a, b = (mg.ones(size, device=device, requires_grad=True) for _ in range(2))
        x = mg.full((size,), 2.0, device=device)

        def work(k, a=a, b=b, x=x):
            for _ in range(3):
                ((a + b) * x).sum().backward()  # one array for both: one leaf takes ownership, the other copies it

        run_concurrently(4, work)
        assert a.grad.tolist() == b.grad.tolist() == [24.0] * size


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_gradients_of_two_first_passes_are_added(device):
    w = mg.ones(3, device=device, requires_grad=True)
    with interleave_after("contiguous", lambda: w.backward(mg.full((3,), 2.0, device=device)), waits=True):
        w.backward(mg.ones(3, device=device))
    assert w.grad.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_gradients_with_a_graph_are_added(device):
    w = mg.full((3,), 2.0, device=device, requires_grad=True)
    with interleave_after("copy", lambda: (w * w * w).sum().backward(create_graph=True), waits=True):
        (w * w).sum().backward(create_graph=True)
    assert w.grad.tolist() == [16.0, 16.0, 16.0]  # 2w + 3w²
    (second,) = mg.grad(w.grad.sum(), w)
    assert second.tolist() == [14.0, 14.0, 14.0]  # 2 + 6w


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_a_gradient_cleared_during_a_pass_stays_cleared(device):
    w = mg.ones(3, device=device, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)
    w.sum().backward()
    with interleave_after("add", optimizer.zero_grad):
        w.sum().backward()
    assert w.grad is None


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_concurrent_passes_accumulate_retained_gradients(device):
    for _ in range(40):
        w = mg.ones(4, device=device, requires_grad=True)
        h = w * 2.0
        h.retain_grad()
        y = (h * 3.0).sum()
        run_concurrently(4, lambda k, y=y: y.backward(retain_graph=True))
        assert h.grad.tolist() == [12.0] * 4
        assert w.grad.tolist() == [24.0] * 4


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_a_pass_completes_if_another_frees_the_graph(device, monkeypatch):
    w = mg.tensor([1.0, 2.0, 4.0], device=device, requires_grad=True)
    y, gradient = mg.layer_norm(w, (3,)), mg.tensor([0.0, 1.0, 2.0], device=device)  # a graph of one node
    y.backward(gradient, retain_graph=True)
    expected, w.grad = w.grad.tolist(), None
    gradient.mul_(1.0)  # after a write, backward calls `is_modified_since`
    real = step.is_modified_since
    monkeypatch.setattr(step, "is_modified_since", lambda *args: pause() or real(*args))
    with Interleave(lambda: y.backward(gradient)) as pause:
        y.backward(gradient)
    assert w.grad.tolist() == [2.0 * x for x in expected]
    with pytest.raises(GraphError, match="trying to backward through the graph a second time"):
        y.backward(gradient)


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_each_pass_through_a_freed_graph_succeeds_or_raises(device):
    for _ in range(50):
        w = mg.ones(2, 4, device=device, requires_grad=True)
        y = mg.layer_norm(mg.logsumexp(w * 2.0, 1), (2,)).tanh().sum()

        def work(k, y=y):
            try:
                return y.backward()
            except GraphError as error:
                return str(error)

        for message in run_concurrently(3, work):
            assert message is None or "trying to backward through the graph a second time" in message


def test_gradients_of_values_are_added():
    class Slow(float):
        def __float__(self):
            pause()
            return 1.0

    v = mg.Value(3.0)
    v.grad = Slow()
    with Interleave(lambda: (v * 5.0).backward(), waits=True) as pause:
        (v * 2.0).backward()
    assert v.grad == 8.0


def test_hooks_that_threads_register_on_one_leaf_are_all_called(monkeypatch):
    w, calls = mg.ones(2, requires_grad=True), []

    def slow(self, key, default=None):
        value = Node._get_extra(self, key, default)
        if key == "hooks":
            pause()
        return value

    monkeypatch.setattr(mg.Tensor, "_get_extra", slow, raising=False)
    with Interleave(lambda: w.register_hook(lambda gradient: calls.append("the other's")), waits=True) as pause:
        w.register_hook(lambda gradient: calls.append("one thread's"))
    w.sum().backward()
    assert sorted(calls) == ["one thread's", "the other's"]


def test_concurrent_first_uses_create_one_storage(monkeypatch):
    """With two, a write would increment the version of one while the graph checks the other."""
    w = mg.ones(3, requires_grad=True)
    others = []

    class Slow(tensor.Storage):
        def __init__(self, array):
            pause()
            super().__init__(array)

    monkeypatch.setattr(tensor, "Storage", Slow)
    with Interleave(lambda: others.append(w.detach())) as pause:
        detached = w.detach()
    y = (w * w).sum()
    for x in (detached, others[0]):
        assert x.storage is w.storage
    others[0].mul_(2.0)
    with pytest.raises(GraphError, match="modified by an inplace operation: mul_"):
        y.backward()


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_writes_are_counted_one_by_one(device):
    x = mg.zeros(4, device=device)
    before = x.storage.writes

    def work(k):
        counter = mg.zeros(2, device=device)
        for _ in range(150):
            x.detach().add_(1.0)
            counter.add_(1.0)
        return counter._version

    assert run_concurrently(4, work) == [150] * 4
    assert (x._version, x.storage.writes - before) == (600, 1200)


# --- optimizers, random numbers, kernels, memory ---


def test_step_hooks_are_called_during_another_thread_s_step():
    w = mg.ones(2, requires_grad=True)
    optimizer, calls = mg.optim.SGD([w], lr=1.0), []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before") or pause())
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    with Interleave(optimizer.step) as pause:
        optimizer.step()
    assert calls == ["before", "before", "after", "after"]


def test_no_random_number_is_drawn_twice_while_another_thread_reseeds():
    generator = mg.Generator(0)

    def work(k):
        if k:
            return [generator.draw(1) for _ in range(3000)]
        for seed in range(1, 1000):
            generator.manual_seed(seed)
        return []

    samples = [one for some in run_concurrently(4, work) for one in some]
    assert len(samples) == len(set(samples)) == 9000


@pytest.mark.parametrize("device", CPU_DEVICES)
def test_jitted_steps_draw_no_random_number_twice(device):
    generator = mg.Generator(3)

    def drawn():
        return mg.randint(0, 2**62, (64,), generator=generator, device=device)

    steps = [mg.jit(lambda: drawn() + 0) for _ in range(3)]
    eager = run_concurrently(4, lambda k: [(steps[k] if k < 3 else drawn)().tolist() for _ in range(60)])
    values = [x for runs in eager for run in runs for x in run]
    assert len(set(values)) == 4 * 60 * 64
    assert generator.draw(0) == (3, 4 * 60 * 64)


def test_a_replay_draws_after_another_thread_s_draws(monkeypatch):
    generator, drawn = mg.Generator(3), []
    step = mg.jit(lambda: mg.randint(0, 2**62, (4,), generator=generator))
    for _ in range(3):
        step()
    real = scalars.GeneratorDraws.reserve
    monkeypatch.setattr(scalars.GeneratorDraws, "reserve", lambda draws: pause() or real(draws))
    with Interleave(lambda: drawn.append(mg.randint(0, 2**62, (4,), generator=generator))) as pause:
        drawn.append(step())
    expected = mg.randint(0, 2**62, (20,), generator=mg.Generator(3)).tolist()
    assert [x.tolist() for x in drawn] == [expected[12:16], expected[16:]]


@pytest.mark.usefixtures("compiled_on_cpu")
def test_concurrent_lookups_compile_a_kernel_once(monkeypatch):
    class Slow(kernel.Kernel):
        def __init__(self, *args):
            super().__init__(*args)
            pause()

    kernels = []
    monkeypatch.setattr(kernel, "Kernel", Slow)
    with Interleave(lambda: kernels.append(kernel.get_kernel("same", "# one text", "a"))) as pause:
        kernels.append(kernel.get_kernel("same", "# one text", "a"))
    assert kernels[0] is kernels[1]


def test_memory_that_is_freed_while_a_pool_is_emptied_is_counted():
    class Entry:
        def __del__(self):
            pause()

    pool = Pool()
    pool.release(Entry(), 64)
    pool.release("some memory", 128)
    with Interleave(lambda: pool.release("more", 256)) as pause:
        pool.clear()
    assert pool.free_bytes == sum(size * len(entries) for size, entries in pool._free.items())


def test_memory_is_counted_while_another_thread_frees_some(monkeypatch):
    x, real = mg.ones(3), memory_report.memory_owner
    monkeypatch.setattr(memory_report, "memory_owner", lambda array: pause() or real(array))
    with Interleave(lambda: tidying._free(x, "")) as pause:
        assert mg.memory()[str(mg.get_default_device())].tensors > 0


def test_output_of_other_threads_is_kept_while_taichi_starts(capsys):
    with mute_stdout():
        print("a greeting")
        run_concurrently(1, lambda k: print("a result", flush=True))
    print("the end")
    assert capsys.readouterr().out == "a result\nthe end\n"


def test_parallel_sections_restore_the_blas_thread_count(monkeypatch):
    class Blas(SimpleNamespace):
        def info(self):
            return [{"num_threads": self.count}]

        @contextlib.contextmanager
        def limit(self, limits):
            before, self.count = self.count, limits
            yield
            self.count = before

    blas, parts = Blas(count=2), []
    monkeypatch.setattr(numpy_threads, "_blas", lambda: blas)
    with Interleave(
        lambda: numpy_threads.parallel_for(parts.append, 4, numpy_threads.MIN_ELEMENTS), waits=True
    ) as pause:
        numpy_threads.parallel_for(pause, 4, numpy_threads.MIN_ELEMENTS)
    assert sorted(parts, key=str) == [slice(0, 2), slice(2, 4)]  # as in a single thread: sums depend on the split
    assert blas.count == 2


@pytest.mark.usefixtures("compiled_on_cpu")
def test_sources_of_kernels_are_parsed_by_one_thread_at_a_time():
    """Before 3.11.8, Python's parser fails if garbage collection switches to another thread that parses."""

    class Garbage:
        def __del__(self):
            for _ in range(20):
                pass

    lines = "".join(f"    y_[{k}] = x_[{k}] * {k} + ti.select(x_[{k}] > {k}, -{k}, {k})\n" for k in range(60))
    text = f"@ti.kernel\ndef k_kernel(y_: ti.types.ndarray(), x_: ti.types.ndarray()):\n{lines}"
    thresholds = gc.get_threshold()

    def work(k):
        for _ in range(10):
            for _ in range(3):
                one = Garbage()
                one.itself = one
            add_offsets(text, False)

    gc.set_threshold(50)
    try:
        run_concurrently(4, work)
    finally:
        gc.set_threshold(*thresholds)


def test_elements_reach_a_gpu_buffer_before_another_thread_reads(monkeypatch):
    host_array = np.zeros(64, np.uint8).view(buffers._HostMemory)
    host_array.buffer = SimpleNamespace(is_alive=True, raw=None)
    block, done = host_array.view(buffers.GpuBlock), []
    block.on_host = True

    def move(self, up):
        pause()
        done.append("moved")

    monkeypatch.setattr(buffers.GpuBlock, "_transfer", move)
    with Interleave(lambda: (block.on_device or block.upload(), done.append("read")), waits=True) as pause:
        block.upload()
    assert done == ["moved", "read"]
