"""Accumulated gradients: their memory, what may be assigned to ``grad``, and what hooks may return."""

import copy
import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.dispatch import kernels_of
from minigrad.core.errors import DTypeError, GraphError, ShapeError
from minigrad.core.op import OPS, Op
from needs import needs
from parity import ours, theirs
from strategies import PARITY


def leaves(*given):
    return [mg.tensor(numbers, requires_grad=True) for numbers in given]


# --- accumulation ---


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_gradients_add_up_with_and_without_a_graph(first, second):
    (x,) = leaves([2.0, 3.0])
    (x * x).sum().backward(create_graph=first)
    (x * x * x).sum().backward(create_graph=second)
    assert x.grad.tolist() == [16.0, 33.0]


def test_a_gradient_with_a_graph_that_was_added_to_is_differentiated():
    (x,) = leaves([2.0, 3.0])
    (x * x).sum().backward()
    (x * x * x).sum().backward(create_graph=True)
    assert mg.grad(x.grad.sum(), x)[0].tolist() == [12.0, 18.0]
    y = (x * x).sum()
    with mg.no_grad():
        y.backward(create_graph=True)
    assert x.grad.tolist() == [20.0, 39.0]
    assert x.grad.requires_grad


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_share_memory_neither_with_each_other_nor_with_the_given_one(create_graph):
    a, b = leaves([2.0, 3.0], [4.0, 5.0])
    seed = mg.ones(2)
    (a + b.reshape(2, 1).reshape(2)).backward(seed, create_graph=create_graph)
    with mg.no_grad():
        a.grad.mul_(5.0)
    assert (a.grad.tolist(), b.grad.tolist(), seed.tolist()) == ([5.0, 5.0], [1.0, 1.0], [1.0, 1.0])


def test_what_a_hook_saw_or_gave_is_not_added_to():
    (x,) = leaves([2.0, 3.0])
    seen, given = [], mg.ones(2)
    y = x + 1.0
    y.register_hook(lambda g: seen.append(g))
    x.register_hook(lambda g: (seen.append(g), given)[1])
    for _ in range(2):
        y.backward(mg.full((2,), 7.0), retain_graph=True)
    assert [g.tolist() for g in seen] == [[7.0, 7.0]] * 4
    assert given.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [2.0, 2.0]


def test_events_stay_as_they_were_when_gradients_are_written():
    (x,) = leaves([2.0, 3.0])
    with mg.record() as seen:
        (x * x).sum().backward()
    x.grad.zero_()
    assert [event.total.tolist() for event in seen.events if event.target is x] == [[2.0, 3.0], [4.0, 6.0]]


# --- slices ---


def parts_of(x):
    """Return overlapping slices, also of views, and the full tensor: in-place accumulation must affect nothing else."""
    a, b = x.chunk(2)
    diagonal = x[:2, :2].diagonal()
    whole = x * 3.0
    return (
        (a * a).sum() + (b * 2.0).sin().sum() + x[1:3].exp().sum() + (diagonal**3).sum() + whole.sum() + x[0, 1] * x[0]
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_parts_are_what_they_are_when_somebody_listens(dtype):
    x = mg.tensor(np.random.default_rng(0).normal(size=(4, 3)).astype(dtype), requires_grad=True)
    y = parts_of(x * 1.0).sum()
    (alone,) = mg.grad(y, x, retain_graph=True)
    with mg.record():
        (heard,) = mg.grad(y, x, retain_graph=True)
    (graphed,) = mg.grad(y, x, create_graph=True)
    assert alone.tolist() == heard.tolist() == graphed.tolist()
    assert [event.target for event in mg.autograd.events(y)][-1] is x


def test_parts_of_a_tensor_bring_back_one_array_and_not_one_each(monkeypatch):
    x = mg.tensor(np.ones((64, 50), np.float32), requires_grad=True)
    y = x * 1.0
    loss = sum((row * k).sum() for k, row in enumerate(y.unbind()))
    made = []

    def counting(a, *, shape, key):
        made.append(shape)
        return before(a, shape=shape, key=key)

    place = str(x.device)
    before = kernels_of("index_backward")[place]
    monkeypatch.setitem(kernels_of("index_backward"), place, counting)
    loss.backward()
    assert made == [(64, 50)]
    assert x.grad[:, 0].tolist() == [float(k) for k in range(64)]


def test_a_part_of_what_was_handed_on_as_it_is_leaves_the_other_alone():
    a, b = leaves([1.0, 2.0], [3.0, 4.0])
    y = a + b  # both receive the same array
    (y.sum() + a[0] * 5.0 + b[1:].sum() * 7.0).backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([6.0, 1.0], [1.0, 8.0])


def test_parts_of_a_graph_that_was_freed_are_refused_also_in_place():
    (x,) = leaves([1.0, 2.0, 3.0])
    y = x * 2.0
    first, second = y[0] * 1.0, y[1]
    second.backward(retain_graph=False)
    with pytest.raises(GraphError, match="trying to backward through the graph a second time"):
        (first + second + y[2]).backward()


# --- errors ---


def assigned(gradient):
    (x,) = leaves([2.0, 3.0])
    x.grad = x if gradient is None else gradient


def seeded(gradient):
    (x,) = leaves([2.0, 3.0])
    (x * x).backward(gradient)


def hooked(gradient):
    (x,) = leaves([2.0, 3.0])
    x.register_hook(lambda g: gradient)
    (x * x).sum().backward()


@pytest.mark.parametrize(
    ("use", "gradient", "kind", "message"),
    [
        (assigned, 1.0, DTypeError, "grad is a float; expected a tensor.\n  Convert it: mg.tensor(x)."),
        (
            assigned,
            mg.zeros(3),
            ShapeError,
            (
                "grad has shape (3,), but the tensor that it is assigned to has (2,).\n"
                "  The shapes must match: reshape or expand it."
            ),
        ),
        (
            assigned,
            mg.zeros(2, dtype=mg.float64),
            DTypeError,
            (
                "grad has dtype float64, but the tensor that it is assigned to has float32.\n"
                "  Convert it: x.to(mg.float32)."
            ),
        ),
        (
            assigned,
            None,
            GraphError,
            "grad: a tensor cannot be assigned as its own grad.\n  Assign x.detach().clone().",
        ),
        (
            seeded,
            [1.0, 1.0],
            DTypeError,
            "backward: gradient is a list; expected a tensor.\n  Convert it: mg.tensor(x).",
        ),
        (
            hooked,
            2.0,
            DTypeError,
            "register_hook: the result of the hook is a float; expected a tensor.\n  Convert it: mg.tensor(x).",
        ),
        (
            hooked,
            mg.ones(()),
            ShapeError,
            (
                "register_hook: the result of the hook has shape (), but the gradient has (2,).\n"
                "  The shapes must match: reshape or expand it."
            ),
        ),
        (
            hooked,
            mg.ones(2, dtype=mg.float64),
            DTypeError,
            (
                "register_hook: the result of the hook has dtype float64, but the gradient has float32.\n"
                "  Convert it: x.to(mg.float32)."
            ),
        ),
    ],
)
def test_a_gradient_that_does_not_fit_is_refused(use, gradient, kind, message):
    with pytest.raises(kind) as error:
        use(gradient)
    assert str(error.value) == message


def test_a_gradient_that_cannot_be_added_to_is_refused_before_any_is():
    a, b = leaves([2.0, 3.0], [2.0, 3.0])
    a.grad, b.grad = mg.zeros(2), mg.zeros(1).expand(2)
    with pytest.raises(ShapeError, match=r"^backward: adding to grad: unsupported operation: more than one element"):
        (a * b).sum().backward()
    assert a.grad.tolist() == [0.0, 0.0]


def test_a_given_gradient_takes_the_type_of_the_tensor():
    (x,) = leaves([2.0, 3.0])
    y = x * 2.0
    y.retain_grad()
    y.backward(mg.ones(2, dtype=mg.float64))
    x.backward(mg.tensor([1, 1]))
    assert (x.grad.dtype, y.grad.dtype) == (mg.float32, mg.float32)
    assert x.grad.tolist() == [3.0, 3.0]


# --- retained and freed memory ---


def test_a_tensor_that_is_only_asked_for_keeps_what_it_saved():
    (x,) = leaves([0.0])
    y = x.exp()
    mg.grad(y.sin().sum(), y)
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_view_of_a_single_number_adds_to_what_that_received(device):
    x = mg.tensor(3.0, device=device, requires_grad=True)
    first, second = x[...], x + x
    mg.autograd.backward([first, second])
    assert x.grad.item() == 3.0


def test_a_base_written_through_a_view_retains_the_gradient_of_what_it_is_then():
    (x,) = leaves([2.0, 3.0])
    base = x * 1.0
    base.retain_grad()
    base[0].mul_(2.0)
    base.sum().backward()
    assert (x.grad.tolist(), base.grad.tolist()) == ([2.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize("grad", [False, True])
def test_a_write_whose_tap_raises_counts_as_one(grad):
    (x,) = leaves([2.0, 3.0])
    y = x * 1.0
    z = y * y

    def raises(call):
        if call.op == "neg":
            raise KeyError

    with pytest.raises(KeyError), mg.tap(raises), mg.enable_grad() if grad else mg.no_grad():
        mg.Tensor.neg_(y)
    with pytest.raises(GraphError, match="modified by an inplace operation: neg_"):
        z.sum().backward()


def test_what_a_hook_holds_is_given_up_without_the_cycle_collector():
    (x,) = leaves([2.0, 3.0])
    y, held = x * 2.0, mg.ones(2)
    alive = weakref.ref(held)
    y.register_hook(lambda g, held=held: g * held)
    gc.disable()
    del y, held
    gone = alive() is None
    gc.enable()
    assert gone


WRITTEN = {
    "max": lambda F, x: F.max(x, 1)[0],
    "min": lambda F, x: F.min(x, 1)[0],
    "sort": lambda F, x: F.sort(x, 1)[0],
    "topk": lambda F, x: F.topk(x, 2)[0],
    "max_pool": lambda F, x: F.max_pool1d(x[None], 2)[0],
    "batch_norm": lambda F, x: F.batch_norm(x, None, None, training=True),
    "attention": lambda F, x: F.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", WRITTEN)
def test_the_first_of_several_results_can_be_written_in_place(name):
    needs("torch")
    array = np.random.default_rng(0).normal(size=(3, 4))
    found = []
    for F, new in ((ours(), mg.tensor), (theirs(), theirs().tensor)):
        x = new(array, requires_grad=True)
        y = WRITTEN[name](F, x)
        y.mul_(2.0)
        (y * y).sum().backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-10)


def test_an_index_that_was_overwritten_is_refused():
    (x,) = leaves([2.0, 3.0])
    values, index = x.sort()
    index.add_(1)
    with pytest.raises(GraphError, match=r"sort saved its result of shape \(2,\), which has been modified by"):
        values.sum().backward()


def test_a_rule_whose_gradient_does_not_fit_is_refused():
    op = Op("shrinks", "{a}", vjp=(lambda g: OPS["sum_to"](g, shape=()),), listed=False)
    mg.kernel("shrinks", mg.get_default_device())(lambda a: a * 1)
    (x,) = leaves([2.0, 3.0])
    with pytest.raises(ShapeError) as error:
        op(x).sum().backward()
    assert str(error.value) == (
        "backward: a rule returned an invalid gradient: got shape () but expected one compatible with (2,).\n"
        "  It must have the operand's shape, or one that the operand can be broadcast to."
    )


def test_a_gradient_with_a_graph_is_not_copied_without_it():
    (x,) = leaves([2.0, 3.0])
    (x * x).sum().backward()
    copied = copy.deepcopy(x)
    copied.grad.zero_()
    assert x.grad.tolist() == [4.0, 6.0]
    (x * x).sum().backward(create_graph=True)
    with pytest.raises(
        GraphError, match=r"^deepcopy: only graph leaves are supported, but this tensor was computed by <AddBackward>"
    ):
        copy.deepcopy(x)


@pytest.mark.filterwarnings("ignore:Using backward")  # PyTorch warns about create_graph
def test_backward_of_several_tensors_and_to_chosen_ones_is_pytorch_s():
    import torch

    def run(library, backward):
        x = library.tensor([1.0, 2.0, 3.0], requires_grad=True)
        w = library.tensor([2.0, -1.0, 0.5], requires_grad=True)
        shared = x * w
        y, z = shared.exp(), (shared * x).sum()
        y.retain_grad()
        found = []

        def gradients():
            return [None if a.grad is None else a.grad.tolist() for a in (x, w, y)]

        backward([y, z], [library.tensor([1.0, 2.0, -1.0]), None], retain_graph=True)
        found.append(gradients())
        backward(z, inputs=[w], retain_graph=True)
        found.append(gradients())
        z.backward(inputs=x, retain_graph=True)
        found.append(gradients())
        backward((z, z), create_graph=True, inputs=[x, w])
        found.append(gradients())
        backward(x.grad.sum() + w.grad.sum(), inputs=w)
        return [*found, gradients()]

    found = run(mg, mg.autograd.backward), run(torch, torch.autograd.backward)
    for a, b in zip(*found, strict=True):
        for x, y in zip(a, b, strict=True):
            assert (x is None) == (y is None)
            if x is not None:
                np.testing.assert_allclose(x, y, rtol=PARITY["float32"])


def test_backward_of_several_passes_what_they_share_once_and_frees_it():
    x = mg.ones(2, requires_grad=True)
    shared = x.exp()
    mg.autograd.backward([shared.sum(), (shared * 2).sum()])
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.exp([1.0, 1.0]), rtol=PARITY["float32"])
    with pytest.raises(GraphError, match="trying to backward through the graph a second time"):
        shared.sum().backward()
    with pytest.raises(
        GraphError, match=r"inputs must be tensors that require grad, but it contains one of shape \(3,\)"
    ):
        (x * 2).sum().backward(inputs=[x, mg.ones(3)])
    with pytest.raises(GraphError, match="inputs must be tensors that require grad, but it is empty"):
        (x * 2).sum().backward(inputs=[])
    with pytest.raises(DTypeError, match="cannot mix tensors and Values"):
        mg.autograd.backward([x.sum(), mg.Value(1.0)])
