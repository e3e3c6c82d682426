"""Which memory a step of each optimizer writes, and which it does not."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import GraphError
from minigrad.core.grad_mode import keep_operands
from needs import needs
from places import HERE
from stepped import NAMES, give, leaf, made, run
from strategies import PYTORCH, RELATIVE


@pytest.mark.parametrize("name", NAMES)
def test_a_step_changes_numbers_and_version_and_nothing_else_of_a_parameter(name):
    p = leaf(3, 4)
    optimizer = made(name, [p])
    give([p], 0)
    before, memory, grad, version = p.detach().clone(), p._array, p.grad, p._version
    assert optimizer.step() is None
    assert not (p == before).any()
    assert (p._array is memory, p.grad is grad, p.requires_grad, p.is_leaf) == (True, True, True, True)
    assert p._version > version


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_that_saved_a_parameter_refuses_after_the_step(name):
    p = leaf(3, 4)
    loss = (p * p).sum()
    give([p], 0)
    made(name, [p]).step()
    with pytest.raises(GraphError, match="modified by an inplace operation") as told:
        loss.backward()
    assert "test_optimizer.py" in str(told.value), "the message names the line of the step"


@pytest.mark.parametrize("name", NAMES)
def test_parameters_without_a_gradient_are_left_alone(name):
    p, q = leaf(3, 4), leaf(3, 4, seed=1)
    optimizer, before = made(name, [p, q]), q.detach().clone()
    give([p], 0)
    optimizer.step()
    assert (q == before).all()
    assert list(optimizer.state_dict()["state"]) == [0]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "Muon"])
def test_a_parameter_is_updated_by_one_call_of_one_kernel(name):
    p, calls = leaf(3, 4), []
    optimizer = made(name, [p])
    run(optimizer, [p], 0, 1)  # creates the state
    give([p], 1)
    with mg.tap(calls.append):
        optimizer.step()
    assert [call.op.endswith("_step") for call in calls] == [True]
    out = calls[0].out if isinstance(calls[0].out, tuple) else (calls[0].out,)
    assert out[0] is p._array
    assert {id(x._array) for x in optimizer.state[p].values() if isinstance(x, mg.Tensor)} == {id(x) for x in out[1:]}


def test_a_new_rate_compiles_nothing_again():
    needs("taichi")
    from minigrad.backends.taichi.kernels.optim import _kernels

    p = leaf(3, 4, device="cpu")
    optimizer = mg.optim.Adam([p])
    run(optimizer, [p], 0, 1)
    count = len(_kernels)
    for k, rate in enumerate((0.1, 0.2, 0.3)):
        optimizer.param_groups[0]["lr"] = rate
        run(optimizer, [p], k, k + 1)
    assert len(_kernels) == count


def test_what_is_remembered_is_where_the_parameter_is_and_of_its_type():
    for dtype in ("float32", "float64"):
        p = leaf(3, 4, dtype=dtype)
        optimizer = mg.optim.Adam([p])
        run(optimizer, [p], 0, 1)
        for name in ("exp_avg", "exp_avg_sq"):
            kept = optimizer.state[p][name]
            assert (kept.dtype, kept.device, kept.shape) == (p.dtype, p.device, p.shape)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(3, 4), (33, 47), (300, 200)])
def test_devices_agree(name, shape):
    needs("taichi")
    found = []
    for device in ("numpy", HERE):
        p = leaf(*shape, device=device)
        run(made(name, [p], lr=1e-2), [p], 0, 5)
        found.append(p.detach().numpy())
    assert abs(found[0] - found[1]).max() <= 20 * RELATIVE["float32"] * abs(found[0]).max()


@pytest.mark.parametrize("name", [n for n in NAMES if n != "Muon"])
def test_how_numbers_lie_changes_nothing(name):
    """Transposed and strided views of larger memory, with gradients of another layout."""
    whole = np.random.default_rng(0).normal(size=(12, 14))
    found = []
    for arrange in (lambda x: x.contiguous(), lambda x: x, lambda x: x.T.contiguous().T):
        big = mg.tensor(whole)
        p = arrange(big[1:9:2, 2:9]).detach().requires_grad_()
        optimizer = made(name, [p], lr=0.1)
        for k in range(3):
            g = mg.tensor(np.random.default_rng(k).normal(size=(7, 4))).T
            p.grad = g if k else g.contiguous()
            optimizer.step()
        found.append(p.detach().numpy().copy())
        if p.storage.array.shape == whole.shape:
            now = big.numpy().copy()
            now[1:9:2, 2:9] = whole[1:9:2, 2:9]
            assert (now == whole).all()  # nothing outside the view was written
    assert abs(found[0] - found[1]).max() <= PYTORCH
    assert abs(found[0] - found[2]).max() <= PYTORCH


def test_a_closure_is_called_with_gradients_on_and_its_loss_returned():
    p = leaf(3)
    optimizer = mg.optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with mg.no_grad():
        first = optimizer.step(closure)
    assert first.item() > optimizer.step(closure).item()


def test_zero_grad_forgets_or_fills_with_zeros():
    p, q = leaf(3), leaf(2, seed=1)
    optimizer = mg.optim.SGD([p, q], lr=0.1)
    give([p], 0)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0, 0.0]
    assert q.grad is None
    optimizer.zero_grad()
    assert p.grad is None


def test_a_thousand_steps_leave_nothing_behind():
    p = leaf(50, 20)
    optimizer = mg.optim.Adam([p])
    device = str(p.device)
    run(optimizer, [p], 0, 10)
    before = mg.memory()[device]
    run(optimizer, [p], 10, 1010)
    after = mg.memory()[device]
    assert (after.tensors, after.bytes) == (before.tensors, before.bytes)


def test_a_profile_names_the_update():
    p = leaf(3)
    optimizer = mg.optim.SGD([p], lr=0.1)
    give([p], 0)
    with mg.profile() as profile:
        optimizer.step()
    assert "sgd_step" in str(profile)


def test_who_listens_can_be_shown_the_numbers_before_a_step():
    p, calls = leaf(3), []
    optimizer = mg.optim.Adam([p])
    run(optimizer, [p], 0, 1)
    before, mean = p.tolist(), optimizer.state[p]["exp_avg"].tolist()
    give([p], 1)
    with mg.tap(calls.append), keep_operands():
        optimizer.step()
    (call,) = [call for call in calls if call.op == "adam_step"]
    assert (call.inputs[0].tolist(), call.inputs[2].tolist()) == (before, mean)
    assert call.out[0] is p._array
    assert p.tolist() != before


def test_a_weight_that_is_used_twice_is_updated_once_by_both_gradients():
    p = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    optimizer = mg.optim.SGD([p], lr=0.5)
    (p.sum() + p.T.sum()).backward()
    optimizer.step()
    assert p.tolist() == [[0.0, 1.0], [2.0, 3.0]]
