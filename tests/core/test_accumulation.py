"""Accumulated gradients: their memory, what may be assigned to ``grad``, and what hooks may return."""

import copy
import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.dispatch import get_kernels
from minigrad.core.errors import DTypeError, GraphError, ShapeError
from minigrad.core.op import OPS, Op
from needs import needs
from parity import minigrad_functions, torch_functions
from strategies import PARITY


def leaves(*arrays):
    return [mg.tensor(values, requires_grad=True) for values in arrays]


# --- accumulation ---


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_gradients_add_up_with_and_without_a_graph(first, second):
    (x,) = leaves([2.0, 3.0])
    (x * x).sum().backward(create_graph=first)
    (x * x * x).sum().backward(create_graph=second)
    assert x.grad.tolist() == [16.0, 33.0]


def test_an_accumulated_gradient_with_a_graph_is_differentiable():
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
def test_gradients_share_no_memory(create_graph):
    a, b = leaves([2.0, 3.0], [4.0, 5.0])
    seed = mg.ones(2)
    (a + b.reshape(2, 1).reshape(2)).backward(seed, create_graph=create_graph)
    with mg.no_grad():
        a.grad.mul_(5.0)
    assert (a.grad.tolist(), b.grad.tolist(), seed.tolist()) == ([5.0, 5.0], [1.0, 1.0], [1.0, 1.0])


def test_accumulation_does_not_modify_a_hooks_argument_or_result():
    (x,) = leaves([2.0, 3.0])
    log, inputs = [], mg.ones(2)
    y = x + 1.0
    y.register_hook(lambda g: log.append(g))
    x.register_hook(lambda g: (log.append(g), inputs)[1])
    for _ in range(2):
        y.backward(mg.full((2,), 7.0), retain_graph=True)
    assert [g.tolist() for g in log] == [[7.0, 7.0]] * 4
    assert inputs.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [2.0, 2.0]


def test_events_are_unaffected_by_writes_to_gradients():
    (x,) = leaves([2.0, 3.0])
    with mg.record() as log:
        (x * x).sum().backward()
    x.grad.zero_()
    assert [event.total.tolist() for event in log.events if event.target is x] == [[2.0, 3.0], [4.0, 6.0]]


# --- slices ---


def parts_of(x):
    """Return overlapping slices, also of views, and the full tensor: in-place accumulation must affect nothing else."""
    a, b = x.chunk(2)
    diagonal = x[:2, :2].diagonal()
    full = x * 3.0
    return (
        (a * a).sum() + (b * 2.0).sin().sum() + x[1:3].exp().sum() + (diagonal**3).sum() + full.sum() + x[0, 1] * x[0]
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slice_gradients_are_equal_with_and_without_listeners(dtype):
    x = mg.tensor(np.random.default_rng(0).normal(size=(4, 3)).astype(dtype), requires_grad=True)
    y = parts_of(x * 1.0).sum()
    (alone,) = mg.grad(y, x, retain_graph=True)
    with mg.record():
        (log,) = mg.grad(y, x, retain_graph=True)
    (graphed,) = mg.grad(y, x, create_graph=True)
    assert alone.tolist() == log.tolist() == graphed.tolist()
    assert [event.target for event in mg.autograd.events(y)][-1] is x


def test_slices_of_a_tensor_accumulate_into_one_array(monkeypatch):
    x = mg.tensor(np.ones((64, 50), np.float32), requires_grad=True)
    y = x * 1.0
    loss = sum((row * k).sum() for k, row in enumerate(y.unbind()))
    outputs = []

    def counting(a, *, shape, key):
        outputs.append(shape)
        return initial(a, shape=shape, key=key)

    index = str(x.device)
    initial = get_kernels("index_backward")[index]
    monkeypatch.setitem(get_kernels("index_backward"), index, counting)
    loss.backward()
    assert outputs == [(64, 50)]
    assert x.grad[:, 0].tolist() == [float(k) for k in range(64)]


def test_slice_accumulation_does_not_modify_a_shared_gradient():
    a, b = leaves([1.0, 2.0], [3.0, 4.0])
    y = a + b  # both receive the same array
    (y.sum() + a[0] * 5.0 + b[1:].sum() * 7.0).backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([6.0, 1.0], [1.0, 8.0])


def test_slices_of_a_freed_graph_raise():
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
def test_an_invalid_gradient_raises(use, gradient, kind, message):
    with pytest.raises(kind) as error:
        use(gradient)
    assert str(error.value) == message


def test_an_overlapping_grad_raises_before_any_accumulation():
    a, b = leaves([2.0, 3.0], [2.0, 3.0])
    a.grad, b.grad = mg.zeros(2), mg.zeros(1).expand(2)
    with pytest.raises(ShapeError, match=r"^backward: adding to grad: unsupported operation: more than one element"):
        (a * b).sum().backward()
    assert a.grad.tolist() == [0.0, 0.0]


def test_a_gradient_is_cast_to_the_dtype_of_the_tensor():
    (x,) = leaves([2.0, 3.0])
    y = x * 2.0
    y.retain_grad()
    y.backward(mg.ones(2, dtype=mg.float64))
    x.backward(mg.tensor([1, 1]))
    assert (x.grad.dtype, y.grad.dtype) == (mg.float32, mg.float32)
    assert x.grad.tolist() == [3.0, 3.0]


# --- retained and freed memory ---


def test_an_input_of_grad_keeps_its_saved_tensors():
    (x,) = leaves([0.0])
    y = x.exp()
    mg.grad(y.sin().sum(), y)
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_view_of_a_scalar_accumulates(device):
    x = mg.tensor(3.0, device=device, requires_grad=True)
    first, second = x[...], x + x
    mg.autograd.backward([first, second])
    assert x.grad.item() == 3.0


def test_a_base_written_through_a_view_retains_its_new_gradient():
    (x,) = leaves([2.0, 3.0])
    base = x * 1.0
    base.retain_grad()
    base[0].mul_(2.0)
    base.sum().backward()
    assert (x.grad.tolist(), base.grad.tolist()) == ([2.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize("grad", [False, True])
def test_a_write_with_a_raising_tap_increments_the_version(grad):
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


def test_a_hook_creates_no_reference_cycle():
    (x,) = leaves([2.0, 3.0])
    y, reference = x * 2.0, mg.ones(2)
    alive = weakref.ref(reference)
    y.register_hook(lambda g, captured=reference: g * captured)
    gc.disable()
    del y, reference
    is_freed = alive() is None
    gc.enable()
    assert is_freed


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
def test_the_first_of_several_outputs_can_be_written_in_place(name):
    needs("torch")
    array = np.random.default_rng(0).normal(size=(3, 4))
    results = []
    for F, new in ((minigrad_functions(), mg.tensor), (torch_functions(), torch_functions().tensor)):
        x = new(array, requires_grad=True)
        y = WRITTEN[name](F, x)
        y.mul_(2.0)
        (y * y).sum().backward()
        results.append(x.grad.numpy())
    np.testing.assert_allclose(*results, rtol=1e-10)


def test_a_modified_saved_index_raises():
    (x,) = leaves([2.0, 3.0])
    values, index = x.sort()
    index.add_(1)
    with pytest.raises(GraphError, match=r"sort saved its result of shape \(2,\), which has been modified by"):
        values.sum().backward()


def test_a_rule_with_an_invalid_gradient_shape_raises():
    op = Op("shrinks", "{a}", vjp=(lambda g: OPS["sum_to"](g, shape=()),), listed=False)
    mg.kernel("shrinks", mg.get_default_device())(lambda a: a * 1)
    (x,) = leaves([2.0, 3.0])
    with pytest.raises(ShapeError) as error:
        op(x).sum().backward()
    assert str(error.value) == (
        "backward: a rule returned an invalid gradient: got shape () but expected one compatible with (2,).\n"
        "  It must have the operand's shape, or one that the operand can be broadcast to."
    )


def test_deepcopy_of_a_gradient_with_a_graph_raises():
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
def test_backward_with_several_tensors_and_inputs_matches_pytorch():
    import torch

    def run(library, backward):
        x = library.tensor([1.0, 2.0, 3.0], requires_grad=True)
        w = library.tensor([2.0, -1.0, 0.5], requires_grad=True)
        shared = x * w
        y, z = shared.exp(), (shared * x).sum()
        y.retain_grad()
        results = []

        def gradients():
            return [None if a.grad is None else a.grad.tolist() for a in (x, w, y)]

        backward([y, z], [library.tensor([1.0, 2.0, -1.0]), None], retain_graph=True)
        results.append(gradients())
        backward(z, inputs=[w], retain_graph=True)
        results.append(gradients())
        z.backward(inputs=x, retain_graph=True)
        results.append(gradients())
        backward((z, z), create_graph=True, inputs=[x, w])
        results.append(gradients())
        backward(x.grad.sum() + w.grad.sum(), inputs=w)
        return [*results, gradients()]

    results = run(mg, mg.autograd.backward), run(torch, torch.autograd.backward)
    for a, b in zip(*results, strict=True):
        for x, y in zip(a, b, strict=True):
            assert (x is None) == (y is None)
            if x is not None:
                np.testing.assert_allclose(x, y, rtol=PARITY["float32"])


def test_backward_of_several_tensors_traverses_the_shared_graph_once():
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
