"""Which memory a step of each optimizer writes, and which it does not."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import GraphError
from minigrad.core.grad_mode import copy_overwritten
from needs import needs
from optimizer_cases import NAMES, leaf, make_optimizer, run_steps, set_gradients
from strategies import PYTORCH, RELATIVE
from taichi_device import DEVICE


@pytest.mark.parametrize("name", NAMES)
def test_a_step_changes_only_values_and_version_of_a_parameter(name):
    p = leaf(3, 4)
    optimizer = make_optimizer(name, [p])
    set_gradients([p], 0)
    before, memory, grad, version = p.detach().clone(), p._array, p.grad, p._version
    assert optimizer.step() is None
    assert not (p == before).any()
    assert (p._array is memory, p.grad is grad, p.requires_grad, p.is_leaf) == (True, True, True, True)
    assert p._version > version


@pytest.mark.parametrize("name", NAMES)
def test_backward_raises_if_a_saved_parameter_was_updated(name):
    p = leaf(3, 4)
    loss = (p * p).sum()
    set_gradients([p], 0)
    make_optimizer(name, [p]).step()
    with pytest.raises(GraphError, match="modified by an inplace operation") as raised:
        loss.backward()
    assert "test_optimizer.py" in str(raised.value), "the message names the line of the step"


@pytest.mark.parametrize("name", NAMES)
def test_parameters_without_a_gradient_are_unchanged(name):
    p, q = leaf(3, 4), leaf(3, 4, seed=1)
    optimizer, before = make_optimizer(name, [p, q]), q.detach().clone()
    set_gradients([p], 0)
    optimizer.step()
    assert (q == before).all()
    assert list(optimizer.state_dict()["state"]) == [0]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "Muon"])
def test_an_update_is_one_kernel_call(name):
    p, calls = leaf(3, 4), []
    optimizer = make_optimizer(name, [p])
    run_steps(optimizer, [p], 0, 1)  # creates the state
    set_gradients([p], 1)
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
    run_steps(optimizer, [p], 0, 1)
    count = len(_kernels)
    for k, rate in enumerate((0.1, 0.2, 0.3)):
        optimizer.param_groups[0]["lr"] = rate
        run_steps(optimizer, [p], k, k + 1)
    assert len(_kernels) == count


def test_state_has_the_device_and_dtype_of_its_parameter():
    for dtype in ("float32", "float64"):
        p = leaf(3, 4, dtype=dtype)
        optimizer = mg.optim.Adam([p])
        run_steps(optimizer, [p], 0, 1)
        for name in ("exp_avg", "exp_avg_sq"):
            buffer = optimizer.state[p][name]
            assert (buffer.dtype, buffer.device, buffer.shape) == (p.dtype, p.device, p.shape)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(3, 4), (33, 47), (300, 200)])
def test_devices_agree(name, shape):
    needs("taichi")
    results = []
    for device in ("numpy", DEVICE):
        p = leaf(*shape, device=device)
        run_steps(make_optimizer(name, [p], lr=1e-2), [p], 0, 5)
        results.append(p.detach().numpy())
    assert abs(results[0] - results[1]).max() <= 20 * RELATIVE["float32"] * abs(results[0]).max()


@pytest.mark.parametrize("name", [n for n in NAMES if n != "Muon"])
def test_memory_layout_does_not_change_the_result(name):
    """Transposed and strided views of larger memory, with gradients of another layout."""
    whole = np.random.default_rng(0).normal(size=(12, 14))
    results = []
    for arrange in (lambda x: x.contiguous(), lambda x: x, lambda x: x.T.contiguous().T):
        big = mg.tensor(whole)
        p = arrange(big[1:9:2, 2:9]).detach().requires_grad_()
        optimizer = make_optimizer(name, [p], lr=0.1)
        for k in range(3):
            g = mg.tensor(np.random.default_rng(k).normal(size=(7, 4))).T
            p.grad = g if k else g.contiguous()
            optimizer.step()
        results.append(p.detach().numpy().copy())
        if p.storage.array.shape == whole.shape:
            now = big.numpy().copy()
            now[1:9:2, 2:9] = whole[1:9:2, 2:9]
            assert (now == whole).all()  # nothing outside the view was written
    assert abs(results[0] - results[1]).max() <= PYTORCH
    assert abs(results[0] - results[2]).max() <= PYTORCH


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
    set_gradients([p], 0)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0, 0.0]
    assert q.grad is None
    optimizer.zero_grad()
    assert p.grad is None


def test_a_thousand_steps_leak_no_memory():
    p = leaf(50, 20)
    optimizer = mg.optim.Adam([p])
    device = str(p.device)
    run_steps(optimizer, [p], 0, 10)
    before = mg.memory()[device]
    run_steps(optimizer, [p], 10, 1010)
    after = mg.memory()[device]
    assert (after.tensors, after.bytes) == (before.tensors, before.bytes)


def test_a_profile_names_the_update():
    p = leaf(3)
    optimizer = mg.optim.SGD([p], lr=0.1)
    set_gradients([p], 0)
    with mg.profile() as profile:
        optimizer.step()
    assert "sgd_step" in str(profile)


def test_a_tap_can_observe_operands_before_a_step():
    p, calls = leaf(3), []
    optimizer = mg.optim.Adam([p])
    run_steps(optimizer, [p], 0, 1)
    before, mean = p.tolist(), optimizer.state[p]["exp_avg"].tolist()
    set_gradients([p], 1)
    with mg.tap(calls.append), copy_overwritten():
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
