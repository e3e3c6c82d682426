"""Threads that share tensors, generators, optimizers and kernels."""

import contextlib
import gc
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from crowd import DEVICES, Pause, crowd, pausing
from minigrad.backends.numpy import threads as numpy_threads
from minigrad.backends.taichi.runtime import buffers, kernel
from minigrad.backends.taichi.runtime.array import Pool
from minigrad.backends.taichi.runtime.locking import muted
from minigrad.backends.taichi.runtime.offsets import moved
from minigrad.compiler.jit import scalars
from minigrad.core import step, tensor
from minigrad.core.errors import GraphError
from minigrad.core.graph import Node
from minigrad.profiling import memory_report, tidying

SIZES = [4, 20_000]  # NumPy releases the interpreter while it adds more than 500 elements


# --- gradients ---


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("device", DEVICES)
def test_backward_passes_into_shared_leaves_lose_nothing(device, size):
    for _ in range(40):
        a, b = (mg.ones(size, device=device, requires_grad=True) for _ in range(2))
        x = mg.full((size,), 2.0, device=device)

        def work(k, a=a, b=b, x=x):
            for _ in range(3):
                ((a + b) * x).sum().backward()  # one array for both: one leaf takes ownership, the other copies it

        crowd(4, work)
        assert a.grad.tolist() == b.grad.tolist() == [24.0] * size


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_two_first_passes_are_added(device):
    w = mg.ones(3, device=device, requires_grad=True)
    with pausing("contiguous", lambda: w.backward(mg.full((3,), 2.0, device=device)), waits=True):
        w.backward(mg.ones(3, device=device))
    assert w.grad.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_with_a_graph_are_added(device):
    w = mg.full((3,), 2.0, device=device, requires_grad=True)
    with pausing("copy", lambda: (w * w * w).sum().backward(create_graph=True), waits=True):
        (w * w).sum().backward(create_graph=True)
    assert w.grad.tolist() == [16.0, 16.0, 16.0]  # 2w + 3w²
    (second,) = mg.grad(w.grad.sum(), w)
    assert second.tolist() == [14.0, 14.0, 14.0]  # 2 + 6w


@pytest.mark.parametrize("device", DEVICES)
def test_a_gradient_that_is_forgotten_meanwhile_stays_forgotten(device):
    w = mg.ones(3, device=device, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)
    w.sum().backward()
    with pausing("add", optimizer.zero_grad):
        w.sum().backward()
    assert w.grad is None


@pytest.mark.parametrize("device", DEVICES)
def test_passes_through_one_graph_lose_nothing_of_what_is_retained(device):
    for _ in range(40):
        w = mg.ones(4, device=device, requires_grad=True)
        h = w * 2.0
        h.retain_grad()
        y = (h * 3.0).sum()
        crowd(4, lambda k, y=y: y.backward(retain_graph=True))
        assert h.grad.tolist() == [12.0] * 4
        assert w.grad.tolist() == [24.0] * 4


@pytest.mark.parametrize("device", DEVICES)
def test_a_pass_goes_on_where_another_frees_the_graph_meanwhile(device, monkeypatch):
    w = mg.tensor([1.0, 2.0, 4.0], device=device, requires_grad=True)
    y, gradient = mg.layer_norm(w, (3,)), mg.tensor([0.0, 1.0, 2.0], device=device)  # a graph of one node
    y.backward(gradient, retain_graph=True)
    once, w.grad = w.grad.tolist(), None
    real = step.written_since
    monkeypatch.setattr(step, "written_since", lambda *given: pause() or real(*given))
    with Pause(lambda: y.backward(gradient)) as pause:
        y.backward(gradient)
    assert w.grad.tolist() == [2.0 * x for x in once]
    with pytest.raises(GraphError, match="trying to backward through the graph a second time"):
        y.backward(gradient)


@pytest.mark.parametrize("device", DEVICES)
def test_of_passes_that_free_one_graph_each_succeeds_or_says_that_it_is_freed(device):
    for _ in range(50):
        w = mg.ones(2, 4, device=device, requires_grad=True)
        y = mg.layer_norm(mg.logsumexp(w * 2.0, 1), (2,)).tanh().sum()

        def work(k, y=y):
            try:
                return y.backward()
            except GraphError as error:
                return str(error)

        for said in crowd(3, work):
            assert said is None or "trying to backward through the graph a second time" in said


def test_gradients_of_values_are_added():
    class Slow(float):
        def __float__(self):
            pause()
            return 1.0

    v = mg.Value(3.0)
    v.grad = Slow()
    with Pause(lambda: (v * 5.0).backward(), waits=True) as pause:
        (v * 2.0).backward()
    assert v.grad == 8.0


def test_hooks_that_threads_register_on_one_leaf_are_all_called(monkeypatch):
    w, seen = mg.ones(2, requires_grad=True), []

    def slow(self, key, default=None):
        found = Node._note(self, key, default)
        if key == "hooks":
            pause()
        return found

    monkeypatch.setattr(mg.Tensor, "_note", slow, raising=False)
    with Pause(lambda: w.register_hook(lambda gradient: seen.append("the other's")), waits=True) as pause:
        w.register_hook(lambda gradient: seen.append("one thread's"))
    w.sum().backward()
    assert sorted(seen) == ["one thread's", "the other's"]


def test_a_tensor_has_one_storage_whoever_asks_first(monkeypatch):
    """With two, a write would increment the version of one while the graph checks the other."""
    w = mg.ones(3, requires_grad=True)
    found = []

    class Slow(tensor.Storage):
        def __init__(self, array):
            pause()
            super().__init__(array)

    monkeypatch.setattr(tensor, "Storage", Slow)
    with Pause(lambda: found.append(w.detach())) as pause:
        mine = w.detach()
    y = (w * w).sum()
    for x in (mine, found[0]):
        assert x.storage is w.storage
    found[0].mul_(2.0)
    with pytest.raises(GraphError, match="modified by an inplace operation: mul_"):
        y.backward()


@pytest.mark.parametrize("device", DEVICES)
def test_writes_are_counted_one_by_one(device):
    x = mg.zeros(4, device=device)
    before = x.storage.writes

    def work(k):
        mine = mg.zeros(2, device=device)
        for _ in range(150):
            x.detach().add_(1.0)
            mine.add_(1.0)
        return mine._version

    assert crowd(4, work) == [150] * 4
    assert (x._version, x.storage.writes - before) == (600, 1200)


# --- optimizers, random numbers, kernels, memory ---


def test_hooks_of_a_step_are_called_beside_another_thread_s_step():
    w = mg.ones(2, requires_grad=True)
    optimizer, seen = mg.optim.SGD([w], lr=1.0), []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before") or pause())
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    with Pause(optimizer.step) as pause:
        optimizer.step()
    assert seen == ["before", "before", "after", "after"]


def test_no_random_number_is_drawn_twice_while_another_thread_reseeds():
    generator = mg.Generator(0)

    def work(k):
        if k:
            return [generator.draw(1) for _ in range(3000)]
        for seed in range(1, 1000):
            generator.manual_seed(seed)
        return []

    drawn = [one for some in crowd(4, work) for one in some]
    assert len(drawn) == len(set(drawn)) == 9000


@pytest.mark.parametrize("device", DEVICES)
def test_recorded_steps_draw_no_random_number_twice(device):
    generator = mg.Generator(3)

    def drawn():
        return mg.randint(0, 2**62, (64,), generator=generator, device=device)

    steps = [mg.jit(lambda: drawn() + 0) for _ in range(3)]
    eager = crowd(4, lambda k: [(steps[k] if k < 3 else drawn)().tolist() for _ in range(60)])
    numbers = [x for runs in eager for run in runs for x in run]
    assert len(set(numbers)) == 4 * 60 * 64
    assert generator.draw(0) == (3, 4 * 60 * 64)


def test_a_replay_draws_after_what_another_thread_drew_since_it_read_the_generator(monkeypatch):
    generator, found = mg.Generator(3), []
    step = mg.jit(lambda: mg.randint(0, 2**62, (4,), generator=generator))
    for _ in range(3):
        step()
    real = scalars.Draw.reserve
    monkeypatch.setattr(scalars.Draw, "reserve", lambda draws: pause() or real(draws))
    with Pause(lambda: found.append(mg.randint(0, 2**62, (4,), generator=generator))) as pause:
        found.append(step())
    expected = mg.randint(0, 2**62, (20,), generator=mg.Generator(3)).tolist()
    assert [x.tolist() for x in found] == [expected[12:16], expected[16:]]


@pytest.mark.usefixtures("compiled_on_cpu")
def test_threads_that_ask_for_a_kernel_at_once_get_one(monkeypatch):
    class Slow(kernel.Kernel):
        def __init__(self, *given):
            super().__init__(*given)
            pause()

    found = []
    monkeypatch.setattr(kernel, "Kernel", Slow)
    with Pause(lambda: found.append(kernel.compiled("same", "# one text", "a"))) as pause:
        found.append(kernel.compiled("same", "# one text", "a"))
    assert found[0] is found[1]


def test_memory_that_is_freed_while_a_pool_is_emptied_is_counted():
    class Entry:
        def __del__(self):
            pause()

    pool = Pool()
    pool.give(Entry(), 64)
    pool.give("some memory", 128)
    with Pause(lambda: pool.give("more", 256)) as pause:
        pool.clear()
    assert pool.held == sum(size * len(entries) for size, entries in pool._free.items())


def test_memory_is_counted_while_another_thread_frees_some(monkeypatch):
    x, real = mg.ones(3), memory_report.owner_of
    monkeypatch.setattr(memory_report, "owner_of", lambda array: pause() or real(array))
    with Pause(lambda: tidying._free(x, "")) as pause:
        assert mg.memory()[str(mg.get_default_device())].tensors > 0


def test_what_other_threads_print_while_taichi_starts_is_printed(capsys):
    with muted():
        print("a greeting")
        crowd(1, lambda k: print("a result", flush=True))
    print("the end")
    assert capsys.readouterr().out == "a result\nthe end\n"


def test_threads_that_share_work_give_blas_its_threads_back(monkeypatch):
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
    with Pause(lambda: numpy_threads.shared(parts.append, 4, numpy_threads.WORTH), waits=True) as pause:
        numpy_threads.shared(pause, 4, numpy_threads.WORTH)
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
    before = gc.get_threshold()

    def work(k):
        for _ in range(10):
            for _ in range(3):
                one = Garbage()
                one.itself = one
            moved(text, False)

    gc.set_threshold(50)
    try:
        crowd(4, work)
    finally:
        gc.set_threshold(*before)


def test_elements_are_in_a_gpu_buffer_before_another_thread_reads_it(monkeypatch):
    below = np.zeros(64, np.uint8).view(buffers._Below)
    below.buffer = SimpleNamespace(alive=True, raw=None)
    block, done = below.view(buffers.GpuBlock), []
    block.below = True

    def move(self, up):
        pause()
        done.append("moved")

    monkeypatch.setattr(buffers.GpuBlock, "_move", move)
    with Pause(lambda: (block.above or block.raise_up(), done.append("read")), waits=True) as pause:
        block.raise_up()
    assert done == ["moved", "read"]
