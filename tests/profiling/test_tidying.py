"""tidy frees the tensors that a block created and did not keep, even if they are still referenced."""

import gc
import threading
from contextlib import nullcontext

import pytest

import minigrad as mg
from minigrad.core import tensor
from minigrad.core.errors import MinigradError, TidiedError
from minigrad.profiling.tidying import Freed
from needs import needs

needs("numpy")


def freed(x):
    return type(x._array) is Freed


def test_what_the_block_made_is_freed_though_it_has_a_name_and_what_was_there_is_not():
    before = mg.ones(3)
    view = before[1:]
    with mg.tidy():
        made = before * 2.0
        inner = made[1:]
        outer = before[:2]
    assert [freed(x) for x in (before, view, made, inner, outer)] == [False, False, True, True, True]
    assert before.tolist() == [1.0] * 3


@pytest.fixture
def on_cpu():
    needs("taichi")
    before = mg.get_default_device()
    mg.set_default_device("cpu")
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    mg.set_default_device(before)


@pytest.mark.usefixtures("on_cpu")
def test_memory_goes_back_to_the_pool_at_once_also_that_of_graphs_in_cycles():
    mg.empty_cache()
    w = mg.ones(100_000, requires_grad=True)
    used = mg.memory()["cpu"]
    out = {}
    with mg.tidy():
        y = (w * 2.0).exp()
        y.register_hook(lambda g, y=y: g)  # a reference cycle
        out[3] = y.sum()
    after = mg.memory()["cpu"]
    assert (after.tensors, after.bytes) == (used.tensors, used.bytes)
    assert after.pooled >= 2 * 400_000


def test_what_is_kept_or_returned_survives_also_in_containers():
    with mg.tidy():
        a, b, c = mg.ones(1), mg.ones(1), mg.ones(1)
        assert mg.keep(a) is a
        mg.keep({"b": [b]})
    assert [freed(x) for x in (a, b, c)] == [False, False, True]

    @mg.tidy
    def step(x, *, scale):
        """Its docstring."""
        hidden.append(x * scale)
        return {"loss": hidden[-1].sum(), "all": (x + 1.0,)}

    hidden = []
    found = step(mg.ones(2), scale=3.0)
    assert (found["loss"].item(), found["all"][0].tolist(), freed(hidden[0])) == (6.0, [2.0, 2.0], True)
    assert step.__doc__ == "Its docstring."


def trained(block):
    w = mg.ones(3, requires_grad=True)
    for _ in range(3):
        with block():
            loss = (w * w).sum()
            loss.backward()
            with mg.no_grad():
                w.sub_(w.grad * 0.25)
    return w, loss


def test_parameters_survive_with_the_gradients_that_a_block_brought():
    (w, loss), (expected, _) = trained(mg.tidy), trained(nullcontext)
    assert freed(loss)
    assert (w.tolist(), w.grad.tolist()) == (expected.tolist(), expected.grad.tolist())


def test_a_tensor_that_is_kept_keeps_its_gradient():
    with mg.tidy():
        x = mg.keep(mg.tensor([1.0, 2.0], requires_grad=True))
        (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_gradient_that_can_be_differentiated_keeps_its_graph():
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    with mg.tidy():
        (w * w * w).sum().backward(create_graph=True)
    (second,) = mg.autograd.grad(w.grad.sum(), [w])
    assert second.tolist() == [6.0, 12.0]


def test_a_kept_result_can_be_differentiated_also_by_leaves_and_bases_of_the_block():
    with mg.tidy():
        w = mg.ones(4, requires_grad=True)
        hidden = w.exp()
        loss = mg.keep(hidden[1:].sum())
    loss.backward()
    assert w.grad.tolist() == pytest.approx([0.0] + [2.7182817] * 3)
    with mg.tidy():
        base = mg.zeros(4)
        view = mg.keep(base[2:])
    base.add_(1.0)
    assert view.tolist() == [1.0, 1.0]


def test_blocks_nest_and_what_leaves_one_belongs_to_the_next():
    @mg.tidy
    def inner():
        return mg.ones(1), mg.keep(mg.ones(1))

    with mg.tidy():
        moved, kept = inner()
        assert not freed(moved)
    assert (freed(moved), freed(kept)) == (True, False)


def test_an_error_tidies_too():
    seen = []

    def failing():
        with mg.tidy():
            seen.append(mg.ones(1))
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert freed(seen[0])


def test_other_threads_are_left_alone():
    made, ready, done = [], threading.Event(), threading.Event()

    def work():
        ready.wait(10)
        made.append(mg.ones(2) + 1.0)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with mg.tidy():
        ready.set()
        assert done.wait(10)
        ours = mg.ones(1)
    thread.join()
    assert made[0].tolist() == [2.0, 2.0]
    assert freed(ours)


def test_outside_of_blocks_making_a_tensor_is_as_it_was():
    plain = tensor._new
    with mg.tidy(), mg.tidy():
        assert tensor._new is not plain
    assert tensor._new is plain
    assert mg.keep(3) == 3


def test_a_long_block_forgets_what_is_gone():
    with mg.tidy() as block:
        for _ in range(5000):
            last = mg.ones(1) + 1.0
        assert len(block._made) < 2500
    assert freed(last)


USES = {
    "computing": lambda x: x + 1.0,
    "beside another": lambda x: mg.ones(3) * x,
    "from the left": lambda x: 2.0 - x,
    "reducing": lambda x: x.sum(),
    "matmul": lambda x: mg.ones(3) @ x,
    "cat": lambda x: mg.cat([mg.ones(3), x]),
    "indexing": lambda x: x[0],
    "writing": lambda x: x.add_(1.0),
    "being read by a write": lambda x: mg.ones(3).copy_(x),
    "reading": lambda x: x.tolist(),
    "to NumPy": lambda x: x.detach().numpy(),
    "to a device": lambda x: x.to("numpy"),
    "copying": lambda x: x.clone(),
    "backward": lambda x: x.requires_grad_().backward(),
    "its shape": lambda x: x.shape,
    "its device": lambda x: x.device,
    "its type": lambda x: x.dtype,
    "its truth": bool,
    "its length": len,
    "going through": list,
    "a tensor of it": mg.tensor,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("needs_grad", [False, True])
def test_use_after_tidy_says_what_was_freed_where_and_what_to_write(use, needs_grad):
    with mg.tidy():
        x = mg.ones(3, requires_grad=needs_grad) * 2.0
    with pytest.raises(TidiedError) as error:
        USES[use](x)
    first, advice = str(error.value).splitlines()
    assert first.startswith("a float32 tensor of shape (3,) was freed by mg.tidy() at ")
    assert first.endswith("test_tidying.py:" + first.rpartition("test_tidying.py:")[2])
    assert first.endswith(": with mg.tidy():")
    assert advice.startswith("  Keep what you need after the block: y = mg.keep(y) in it")


def test_a_freed_tensor_is_shown_and_counted_as_such():
    with mg.tidy():
        x = mg.ones(3)
        count = mg.memory()[x.device].tensors
    assert repr(x).startswith("<a float32 tensor of shape (3,) was freed by mg.tidy() at ")
    assert mg.memory()[mg.get_default_device()].tensors == count - 1
    assert issubclass(TidiedError, MinigradError)
    assert issubclass(TidiedError, RuntimeError)
