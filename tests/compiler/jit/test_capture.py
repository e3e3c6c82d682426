"""Capturing a step: the gradients that a trace includes, and graph breaks, which name the line."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import CaptureError, ShapeError

nn = mg.nn

READS = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "repr": repr,
    "array": np.asarray,
    "dlpack": np.from_dlpack,
    "float": lambda x: float(x.sum()),
    "format": lambda x: f"{x.sum():.1f}",
    "in": lambda x: 1.0 in x,
}


@pytest.mark.parametrize("read", READS)
def test_reading_an_element_is_refused_with_the_line(read):
    function = mg.jit(lambda x: READS[read](x + 1))
    with pytest.raises(
        CaptureError, match=r"an element of a tensor is read while the step is traced, at .*test_capture\.py:"
    ):
        function(mg.ones(2))
    assert mg.ones(2).tolist() == [1.0, 1.0]  # and nothing else is affected


def branching(x):
    if x.sum() > 0:
        return x
    return -x


def looping(x):
    while x.sum() < 100:
        x = x * 2
    return x


def asserting(x):
    assert x.sum() > 0
    return x


@pytest.mark.parametrize(
    ("step", "message", "advice"),
    [
        (
            branching,
            r"data-dependent control flow: `if` reads a tensor .*: if x\.sum\(\) > 0:",
            r"mg\.where\(condition",
        ),
        (looping, r"data-dependent control flow: `while` reads a tensor .*: while x\.sum\(\) < 100", r"mg\.where"),
        (lambda x: 1 if x.sum() else 2, r"data-dependent control flow: `if` reads a tensor", r"as an argument"),
        (asserting, r"an assert reads a tensor .*: assert x\.sum\(\) > 0", r"return the tensor, and assert outside"),
    ],
)
def test_control_flow_that_reads_a_tensor_is_named_with_what_to_write_instead(step, message, advice):
    with pytest.raises(CaptureError, match=message) as caught:
        mg.jit(step)(mg.ones(2))
    assert caught.match(advice)


def test_a_step_that_creates_leaves_is_traced_once():
    w = mg.tensor([[1.0, 2.0]], requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.015625)

    def siren(x):
        """Return the loss of a gradient with respect to coordinates, a leaf that the step creates."""
        coordinates = x.clone().detach().requires_grad_(True)
        (gradient,) = mg.grad((w @ coordinates).sin().sum(), coordinates, create_graph=True)
        optimizer.zero_grad()
        loss = (gradient - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def maml(x):
        """Take one step of an inner loop on a copy of the weights, whose gradient comes from backward."""
        fast = w.detach().clone().requires_grad_(True)
        ((fast @ x) ** 2).sum().backward()
        inner = fast - 0.25 * fast.grad
        optimizer.zero_grad()
        loss = (((w + (inner - fast).detach()) @ x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    for step in (siren, maml):
        results = []
        for function in (step, jitted := mg.jit(step)):
            with mg.no_grad():
                w.copy_(mg.tensor([[1.0, 2.0]]))
            results.append(
                [function(mg.tensor([[0.5, k], [0.25, 1.0]])).item() for k in range(20)] + w.flatten().tolist()
            )
        assert results[0] == pytest.approx(results[1], rel=1e-6)
        assert len(jitted.captures) <= 2, jitted.captures  # the gradients are None in the first call


def test_data_dependent_shapes_are_refused():
    function = mg.jit(lambda x: x[x > 0])
    with pytest.raises(
        CaptureError, match=r"the output shape of nonzero depends on the elements, at .*test_capture\.py"
    ):
        function(mg.ones(2))


def test_gradients_may_be_added_up_zeroed_outside_or_filled_with_zeros():
    def runs(wrap, before, inside):
        w = mg.ones(2, requires_grad=True)

        def step(x):
            inside(w)
            ((w * x) ** 2).sum().backward()

        function, grads = wrap(step), []
        for k in range(5):
            before(w)
            function(mg.tensor([1.0, float(k)]))
            grads.append(w.grad.tolist())
        return grads

    def nothing(w):
        pass

    def none(w):
        w.grad = None

    def zeros(w):
        if w.grad is not None:
            w.grad = w.grad.detach()
            w.grad.zero_()

    for before, inside in [(nothing, nothing), (none, nothing), (nothing, none), (zeros, nothing), (nothing, zeros)]:
        assert runs(mg.jit, before, inside) == runs(lambda step: step, before, inside)


def test_a_gradient_is_cleared_even_if_it_was_none_while_tracing():
    w = mg.ones(2, requires_grad=True)

    @mg.jit
    def step(x):
        w.grad = None
        return x * 2

    for k in range(4):
        w.grad = mg.ones(2) if k else None
        step(mg.ones(1))
        assert w.grad is None
    assert step.trace_count == 1


def test_a_gradient_that_is_only_read_is_guarded():
    w = mg.ones(2, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)
    update, scaled = mg.jit(optimizer.step), mg.jit(lambda: None if w.grad is None else w.grad * 2)
    for k in range(4):  # the same memory with other elements
        w.grad = mg.zeros(2) if k == 0 else w.grad
        w.grad.fill_(k)
        update()
        assert scaled().tolist() == [2.0 * k] * 2
    assert w.tolist() == [-5.0] * 2
    assert len(update.captures) == len(scaled.captures) == 1
    w.grad = mg.full((2,), 10.0)
    update()
    assert w.tolist() == [-15.0] * 2
    assert scaled().tolist() == [20.0] * 2
    assert update.captures[1:] == ["a gradient from before the step was replaced"]
    w.grad = None
    update()
    assert w.tolist() == [-15.0] * 2
    assert scaled() is None
    assert update.captures[2:] == ["a gradient that existed is None"]


def test_a_stored_gradient_is_not_overwritten():
    w = mg.ones(2, requires_grad=True)

    @mg.jit
    def step(x):
        w.grad = None
        (w * x).sum().backward()

    grads = []
    for k in range(4):
        step(mg.full((2,), float(k)))
        grads.append(w.grad)
    assert [g.tolist() for g in grads] == [[k, k] for k in (0.0, 1.0, 2.0, 3.0)]


def test_an_argument_with_a_graph_is_refused():
    w = mg.ones(2, requires_grad=True)
    with pytest.raises(CaptureError, match=r"the argument `x`, of shape \(2,\), has a grad_fn, so it is not a leaf"):
        mg.jit(lambda x: x)(w * 2)
    function = mg.jit(lambda x: x)
    function(w)
    with pytest.raises(CaptureError, match="has a grad_fn, so it is not a leaf"):
        function(w * 2)  # with the key of an existing trace


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_an_index_out_of_range_raises_in_a_jitted_step(device):
    x = mg.ones(3, device=device)
    for take in (lambda x: x[[7]], lambda x: x[:0][[0]], lambda x: x.gather(0, mg.tensor([-5], device=device))):
        step = mg.jit(lambda x, take=take: take(x) * 1)
        for _ in range(3):
            with pytest.raises(ShapeError, match="index out of range: "):
                step(x)
