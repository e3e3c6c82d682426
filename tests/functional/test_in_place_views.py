"""In-place view methods, such as `unsqueeze_`."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import GraphError

IN_PLACE_VIEWS = {
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "squeeze_": lambda x: x.squeeze_(),
    "squeeze_ one": lambda x: x.squeeze_(0),
    "t_": lambda x: x.squeeze_(0).t_(),
    "transpose_": lambda x: x.transpose_(0, -1),
    "swapaxes_": lambda x: x.swapaxes_(1, 2),
    "several": lambda x: x.swapdims_(0, 1).unsqueeze_(0).transpose_(0, 3).squeeze_(),
}


def make_tensor(library):
    return library.tensor(np.arange(6, dtype=np.float32).reshape(1, 2, 3))


@pytest.mark.parity
@pytest.mark.parametrize("turn", IN_PLACE_VIEWS.values(), ids=IN_PLACE_VIEWS)
def test_shapes_values_and_gradients_match_pytorch(torch, turn):
    results = []
    for library in (mg, torch):
        x = make_tensor(library).requires_grad_()
        y = x * 2.0
        assert turn(y) is y
        y.mul_(3.0)
        (y * y.detach() + y[0] * 1.0).sum().backward()
        results.append((tuple(y.shape), y.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("turn", IN_PLACE_VIEWS.values(), ids=IN_PLACE_VIEWS)
def test_other_views_still_share_memory(turn):
    x = make_tensor(mg)
    other, flat = x[0, 1], x.view(6)
    turn(x)
    x.zero_()
    assert (other.tolist(), flat.tolist()) == ([0.0] * 3, [0.0] * 6)
    flat[5] = 7.0
    assert x.max().item() == 7.0


def test_earlier_views_get_correct_gradients():
    x = make_tensor(mg).requires_grad_()
    y = x * 1.0
    row = y[0, 1]
    y.squeeze_().t_()
    y.mul_(2.0)  # writes through y into the memory of row
    (row * mg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[[0.0] * 3, [2.0, 20.0, 200.0]]]


def test_write_to_an_earlier_view_reaches_the_base():
    x = make_tensor(mg).requires_grad_()
    y = x * 1.0
    row = y[0, 1]
    y.transpose_(0, 2)
    row.mul_(5.0)
    y.sum().backward()
    assert x.grad.tolist() == [[[1.0] * 3, [5.0] * 3]]


def test_requires_grad_after_an_in_place_view():
    x = make_tensor(mg).unsqueeze_(0).requires_grad_()
    (x * 2.0).sum().backward()
    assert (x.shape, x.is_leaf, x.grad.shape) == ((1, 1, 2, 3), True, (1, 1, 2, 3))


def test_leaf_that_requires_grad_raises():
    x = make_tensor(mg).requires_grad_()
    with pytest.raises(
        GraphError,
        match=r"unsqueeze_: a leaf that requires grad is being used in an .*\n  Write y = x.unsqueeze",
    ):
        x.unsqueeze_(0)
    assert x.shape == (1, 2, 3)


def test_view_of_a_leaf_that_requires_grad_raises():
    x = make_tensor(mg).requires_grad_()
    row = x[:, 0]
    with pytest.raises(
        GraphError, match=r"squeeze_: a view of a leaf that requires grad is being used in an in-place operation"
    ):
        row.squeeze_()
    with mg.no_grad():
        assert row.squeeze_().shape == (3,)


def test_saved_tensor_with_changed_shape_raises():
    x = make_tensor(mg).requires_grad_()
    y = x * 1.0
    z = (y * y).sum()
    y.transpose_(1, 2)
    with pytest.raises(GraphError, match="modified by an inplace operation: transpose_"):
        z.backward()


@pytest.mark.parity
def test_views_retain_their_gradients_across_writes(torch):
    """Write through the base, the view, another view, in a chain, repeatedly, with constants; and to views of views."""
    results = []
    for library in (mg, torch):

        def write(mutate, views, library=library):
            x = library.tensor([1.0, 2.0, 3.0]).requires_grad_()
            base = x * 1
            tensors = [base, *views(base)]
            for view in tensors:
                view.retain_grad()
            mutate(*tensors)
            total = sum((view * library.tensor(k + 2.0)).sum() for k, view in enumerate(tensors))
            total.backward()
            return [x.grad.tolist(), *[None if view.grad is None else view.grad.tolist() for view in tensors]]

        def one(base):
            return [base[:2]]

        def two(base):
            return [base[:2], base[1:]]

        def nested(base):
            return [base[:2], base[:2][1:], base.view(3)[1:]]

        results.append(
            [
                write(lambda b, v: b.mul_(2), one),
                write(lambda b, v: v.mul_(2), one),
                write(lambda b, v: b.mul_(2).add_(1) is v.mul_(3), one),
                write(lambda b, v: v.zero_(), one),
                write(lambda b, v: b.__setitem__(0, 7.0), one),
                write(lambda b, v: b.copy_(v.new_ones(3)), one),
                write(lambda b, u, v: u.mul_(v.detach() * 2), two),
                write(lambda b, u, v: (v.zero_(), u.mul_(2)), two),
                write(lambda b, u, v, w: b.exp_(), nested),
                write(lambda b, u, v, w: v.mul_(5), nested),
            ]
        )
    for k, (actual, expected) in enumerate(zip(*results, strict=True)):
        assert [x is None for x in actual] == [x is None for x in expected], k
        assert np.concatenate([x for x in actual if x]) == pytest.approx(np.concatenate([x for x in expected if x])), k
