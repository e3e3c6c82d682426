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


def test_tensors_of_the_block_are_freed_and_older_ones_are_not():
    initial = mg.ones(3)
    view = initial[1:]
    with mg.tidy():
        outputs = initial * 2.0
        inner = outputs[1:]
        outer = initial[:2]
    assert [freed(x) for x in (initial, view, outputs, inner, outer)] == [False, False, True, True, True]
    assert initial.tolist() == [1.0] * 3


@pytest.fixture
def on_cpu():
    needs("taichi")
    initial = mg.get_default_device()
    mg.set_default_device("cpu")
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    mg.set_default_device(initial)


@pytest.mark.usefixtures("on_cpu")
def test_memory_is_released_immediately_even_in_cycles():
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


def test_kept_and_returned_tensors_survive_in_containers():
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
    results = step(mg.ones(2), scale=3.0)
    assert (results["loss"].item(), results["all"][0].tolist(), freed(hidden[0])) == (6.0, [2.0, 2.0], True)
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


def test_parameters_keep_gradients_computed_in_the_block():
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


def test_a_kept_result_keeps_its_leaves_and_bases():
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


def test_nested_blocks_pass_kept_tensors_to_the_outer_block():
    @mg.tidy
    def inner():
        return mg.ones(1), mg.keep(mg.ones(1))

    with mg.tidy():
        first, kept_tensor = inner()
        assert not freed(first)
    assert (freed(first), freed(kept_tensor)) == (True, False)


def test_exceptions_free_tensors_as_well():
    log = []

    def failing():
        with mg.tidy():
            log.append(mg.ones(1))
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert freed(log[0])


def test_other_threads_are_unaffected():
    outputs, ready, done = [], threading.Event(), threading.Event()

    def work():
        ready.wait(10)
        outputs.append(mg.ones(2) + 1.0)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with mg.tidy():
        ready.set()
        assert done.wait(10)
        result = mg.ones(1)
    thread.join()
    assert outputs[0].tolist() == [2.0, 2.0]
    assert freed(result)


def test_creating_tensors_outside_blocks_has_no_overhead():
    plain = tensor._new_tensor
    with mg.tidy(), mg.tidy():
        assert tensor._new_tensor is not plain
    assert tensor._new_tensor is plain
    assert mg.keep(3) == 3


def test_a_long_block_prunes_dead_references():
    with mg.tidy() as block:
        for _ in range(5000):
            last = mg.ones(1) + 1.0
        assert len(block._created) < 2500
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
def test_using_a_freed_tensor_raises_with_its_line(use, needs_grad):
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
