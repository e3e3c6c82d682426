"""What all optimizers share: groups, states, what is written, what is refused."""

import copy
import importlib
import inspect
import re

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from minigrad.core.grad_mode import keep_operands
from needs import needs
from places import HERE
from strategies import PYTORCH, RELATIVE, SINGLE, TRAJECTORY

NAMES = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Lion", "Muon"]
KEPT = {"SGD": {"momentum": 0.9}, "Adam": {"amsgrad": True}, "RMSprop": {"momentum": 0.9, "centered": True}}


def made(name, params, **options):
    return getattr(mg.optim, name)(params, **{**KEPT.get(name, {}), **options})


def leaf(*shape, seed=0, dtype="float32", device=None):
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    return mg.tensor(x, device=device, requires_grad=True)


def give(params, k):
    for i, p in enumerate(params):
        numbers = np.random.default_rng(100 * k + i).normal(size=p.shape)
        p.grad = mg.tensor(numbers.astype(p.dtype.name), device=p.device)


def run(optimizer, params, first, last):
    for k in range(first, last):
        give(params, k)
        optimizer.step()


# --- what a step writes ---


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
    with pytest.raises(GraphError, match="overwritten") as told:
        loss.backward()
    assert "test_optimizer.py" in str(told.value), "it says which line stepped"


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
    run(optimizer, [p], 0, 1)  # makes what it remembers
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
    """Views of larger memory, transposed, with gaps; gradients that lie otherwise."""
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
            assert (now == whole).all()  # nothing beside it was written
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


# --- groups ---


def test_groups_have_their_own_rates():
    p, q = leaf(2), leaf(2, seed=1)
    starts = p.tolist(), q.tolist()
    optimizer = mg.optim.SGD([{"params": [p], "lr": 0.5}, {"params": q}], lr=0.25)
    for x in (p, q):
        x.grad = mg.ones(2)
    optimizer.step()
    assert np.allclose(p.tolist(), np.array(starts[0]) - 0.5)
    assert np.allclose(q.tolist(), np.array(starts[1]) - 0.25)
    assert [group["momentum"] for group in optimizer.param_groups] == [0.0, 0.0]


def test_a_group_can_be_added_later():
    p, q = leaf(2), leaf(2, seed=1)
    optimizer = mg.optim.SGD([p], lr=0.25)
    optimizer.add_param_group({"params": [q], "momentum": 0.9})
    run(optimizer, [p, q], 0, 1)
    assert "momentum_buffer" in optimizer.state[q]
    assert "momentum_buffer" not in optimizer.state[p]


def test_an_optimizer_prints_its_options():
    text = repr(mg.optim.Adagrad([leaf(2)], lr=0.5))
    assert text == (
        "Adagrad (\nParameter Group 0\n    differentiable: False\n    eps: 1e-10\n    foreach: None\n    fused: None\n"
        "    initial_accumulator_value: 0.0\n    lr: 0.5\n    lr_decay: 0.0\n    maximize: False\n"
        "    weight_decay: 0.0\n)"
    )


WAYS = ("foreach", "fused", "capturable")
OF_PYTORCH = [name for name in NAMES if name not in ("Lion", "Muon")]


@pytest.mark.parametrize("name", OF_PYTORCH)
def test_ways_to_compute_that_pytorch_is_told_of_are_taken_and_change_no_bit(name):
    taken = [way for way in WAYS if way in inspect.signature(getattr(mg.optim, name)).parameters]
    assert "foreach" in taken
    p, found = leaf(3, 4), []
    for options in [{}, *({way: True} for way in taken)]:
        q = p.detach().clone().requires_grad_()
        optimizer = made(name, [q], **options)
        run(optimizer, [q], 0, 3)
        found.append(q.tolist())
        assert optimizer.param_groups[0].items() >= options.items()
    assert found == [found[0]] * len(found)


@pytest.mark.parametrize("name", OF_PYTORCH)
def test_a_step_that_gradients_flow_through_is_refused(name):
    text = f"{name}: differentiable=True asks that gradients flow through the steps"
    with pytest.raises(ArgumentError, match=text):
        made(name, [leaf(2)], differentiable=True)
    optimizer = made(name, [leaf(2)])
    with pytest.raises(ArgumentError, match=text):
        optimizer.add_param_group({"params": [leaf(3)], "differentiable": True})


@pytest.mark.parity
@pytest.mark.parametrize("name", OF_PYTORCH)
def test_arguments_are_pytorch_s_in_its_order(torch, name):
    mine, its = (inspect.signature(getattr(library.optim, name)).parameters for library in (mg, torch))
    places = [[p.name for p in given.values() if p.kind is p.POSITIONAL_OR_KEYWORD] for given in (mine, its)]
    assert places[0] == places[1]
    assert set(mine) == set(its)


REFUSALS = [
    (
        lambda p: mg.optim.Adam([p], foreach=True, fused=True),
        ArgumentError,
        "Adam: foreach=True and fused=True are two",
    ),
    (lambda p: mg.optim.SGD([p], lr=-1), ArgumentError, "SGD: lr=-1, and it must be 0 or more."),
    (lambda p: mg.optim.SGD([p], lr="fast"), DTypeError, "SGD: lr='fast' is not made of numbers."),
    (
        lambda p: mg.optim.Adam([p], betas=(0.9, 1.0)),
        ArgumentError,
        "Adam: betas=(0.9, 1.0), and it must be from 0 up to, and without, 1.",
    ),
    (lambda p: mg.optim.Lion([p], betas=0.9), ArgumentError, "Lion: betas=0.9, and there are two"),
    (lambda p: mg.optim.SGD([{"params": [p], "lr": -1}]), ArgumentError, "SGD: lr=-1, and it must be"),
    (lambda p: mg.optim.SGD([p], nesterov=True), ArgumentError, "SGD: nesterov=True looks ahead along the momentum"),
    (lambda p: mg.optim.SGD(p), DTypeError, "SGD: params is a Tensor, and not an iterable of tensors or dicts."),
    (lambda p: mg.optim.SGD([]), ArgumentError, "SGD: there are no parameters to update"),
    (lambda p: mg.optim.SGD([p, p]), ArgumentError, "SGD: a parameter of shape (2, 2) is given twice"),
    (
        lambda p: mg.optim.SGD([{"params": [p]}, {"params": [p]}]),
        ArgumentError,
        "SGD: a parameter of shape (2, 2) is given twice",
    ),
    (lambda p: mg.optim.SGD([p * 2]), ArgumentError, "SGD: a tensor of shape (2, 2) is no leaf"),
    (lambda p: mg.optim.SGD([1.0]), DTypeError, "SGD: it updates tensors, and got a float: 1.0."),
    (lambda p: mg.optim.SGD([{"lr": 1}]), DTypeError, 'SGD: a group is a dict with its tensors under "params"'),
    (lambda p: mg.optim.SGD([{"params": [p]}, leaf(2)]), DTypeError, "SGD: a group is a dict with its tensors under"),
    (lambda p: mg.optim.SGD([{"params": {p}}]), DTypeError, "SGD: the parameters of a group have an order"),
    (lambda p: mg.optim.Muon([leaf(3)]), ShapeError, "Muon: it updates matrices, and a parameter has shape (3,)."),
    (lambda p: mg.optim.Muon([p], adjust_lr_fn="x"), ArgumentError, "Muon: adjust_lr_fn='x'; there are"),
]


@merge_cases
@pytest.mark.parametrize(("make", "error", "text"), REFUSALS, ids=range(len(REFUSALS)))
def test_mistakes_are_named(make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make(leaf(2, 2))


def test_a_memory_that_no_longer_fits_is_named_before_anything_changes():
    p = leaf(2, 2)
    optimizer = mg.optim.Adam([p])
    run(optimizer, [p], 0, 1)
    before = p.tolist()
    optimizer.state[p]["exp_avg"] = mg.ones(3)
    with pytest.raises(ShapeError, match=re.escape("Adam.step: a parameter of shape (2, 2) and type float32")):
        optimizer.step()
    assert p.tolist() == before


# --- saved and loaded ---


@pytest.mark.parametrize("name", NAMES)
def test_training_resumed_equals_training_uninterrupted_to_the_bit(name):
    params = [leaf(3, 4), leaf(5, 2, seed=1)]
    optimizer = made(name, params)
    run(optimizer, params, 0, 5)
    saved = copy.deepcopy(optimizer.state_dict())
    again = [p.detach().clone().requires_grad_() for p in params]
    resumed = made(name, again, lr=0.5)
    resumed.load_state_dict(saved)
    run(optimizer, params, 5, 10)
    run(resumed, again, 5, 10)
    for p, q in zip(params, again, strict=True):
        assert (p == q).all()


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("Lion", "Muon")])
def test_a_state_of_pytorch_s_can_be_gone_on_from(torch, name):
    starts = [np.random.default_rng(k).normal(size=(4, 3)) for k in range(2)]
    twins = [torch.tensor(x).requires_grad_() for x in starts]
    twin = getattr(torch.optim, name)(twins, **KEPT.get(name, {}))

    def its(first, last):
        for k in range(first, last):
            for i, p in enumerate(twins):
                p.grad = torch.tensor(np.random.default_rng(100 * k + i).normal(size=(4, 3)))
            twin.step()

    its(0, 5)
    params = [mg.tensor(p.detach().numpy(), requires_grad=True) for p in twins]
    optimizer = made(name, params)
    optimizer.load_state_dict(twin.state_dict())
    its(5, 10)
    run(optimizer, params, 5, 10)
    tolerance = SINGLE if name == "NAdam" else TRAJECTORY
    for p, q in zip(params, twins, strict=True):
        assert abs(p.detach().numpy() - q.detach().numpy()).max() <= tolerance


def test_loading_what_does_not_fit_changes_nothing():
    p, q = leaf(2, 2), leaf(3, seed=1)
    optimizer = mg.optim.Adam([p, q])
    run(optimizer, [p, q], 0, 1)
    before = copy.deepcopy(optimizer.state_dict())
    other = mg.optim.Adam([leaf(2, 2)])
    swapped = mg.optim.Adam([q, p])
    text = "Adam.load_state_dict: here are groups of [2] parameters, and what is loaded has groups of [1]."
    with pytest.raises(ArgumentError, match=re.escape(text)):
        optimizer.load_state_dict(other.state_dict())
    text = "Adam.load_state_dict: exp_avg has shape (2, 2), and its parameter (3,)."
    with pytest.raises(ShapeError, match=re.escape(text)):
        swapped.load_state_dict(optimizer.state_dict())
    assert not swapped.state
    assert str(optimizer.state_dict()) == str(before)


def test_a_loaded_state_is_a_copy():
    p, q = leaf(2, 2), leaf(2, 2)
    first, second = mg.optim.Adam([p]), mg.optim.Adam([q])
    run(first, [p], 0, 1)
    second.load_state_dict(first.state_dict())
    kept = second.state[q]["exp_avg"].tolist()
    run(first, [p], 1, 2)
    assert second.state[q]["exp_avg"].tolist() == kept


@pytest.mark.parametrize(
    ("state", "given"), [({}, r"one with \[\]"), ("state", "a str"), ({"lr": 1}, r"one with \['lr'\]")]
)
def test_what_is_no_state_is_named(state, given):
    optimizer = mg.optim.SGD([mg.ones(2, requires_grad=True)], lr=0.1)
    with pytest.raises(DTypeError, match=rf"SGD\.load_state_dict: it takes a dict with .*, not {given}\."):
        optimizer.load_state_dict(state)


# --- options that are tensors, hooks, names ---


@pytest.mark.parity
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_options_may_be_tensors_as_in_pytorch(torch, name, jitted):
    """Each option as a tensor, which is halved after some steps, and another number after more."""
    for option, default in inspect.signature(getattr(mg.optim, name)).parameters.items():
        number = default.default
        if option == "ns_steps" or type(number) not in (float, int, tuple):
            continue
        found = []
        for library in (mg, torch):
            if library is torch and name in ("Lion", "Muon"):
                continue
            p = library.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
            given = tuple(map(library.tensor, number)) if type(number) is tuple else library.tensor(number or 0.3)
            momentum = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
            optimizer = getattr(library.optim, name)([p], **{**momentum, option: given})

            def step(optimizer=optimizer, p=p):
                optimizer.zero_grad()
                (p * p).sum().backward()
                optimizer.step()

            run_one = mg.jit(step) if jitted and library is mg else step
            for k in range(12):
                run_one()
                if k == 6 and type(number) is not tuple:
                    with library.no_grad():
                        given.mul_(0.5)
                if k == 9:
                    optimizer.param_groups[0][option] = number or 0.3
            found.append(p.detach().tolist())
        assert np.array(found[0]) == pytest.approx(np.array(found[-1]), rel=1e-4), option


def test_an_option_that_is_several_numbers_is_refused_before_anything_changes():
    p = leaf(2)
    with pytest.raises(ArgumentError, match=re.escape("SGD: lr is a tensor of shape (2,), and it is one number.")):
        mg.optim.SGD([p], lr=mg.ones(2))
    with pytest.raises(ArgumentError, match=re.escape("SGD: lr=tensor(-1.), and it must be 0 or more.")):
        mg.optim.SGD([p], lr=mg.tensor(-1.0))
    optimizer = mg.optim.SGD([p], lr=0.1)
    optimizer.param_groups[0]["lr"] = mg.ones(2)
    give([p], 0)
    before = p.tolist()
    with pytest.raises(ArgumentError, match="lr is a tensor of shape"):
        optimizer.step()
    assert p.tolist() == before


def test_a_loaded_option_that_is_a_tensor_is_a_copy():
    rate = mg.tensor(0.5)
    first, second = mg.optim.SGD([leaf(2)], lr=rate), mg.optim.SGD([leaf(2)], lr=0.1)
    second.load_state_dict(first.state_dict())
    rate.zero_()
    assert second.param_groups[0]["lr"].item() == 0.5


def test_a_recording_sees_hooks_of_an_optimizer_come_and_go():
    w = mg.tensor([8.0], requires_grad=True)
    optimizer, called = mg.optim.SGD([w], lr=0.5), []

    @mg.jit
    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    def halve(optimizer, args, kwargs):
        w.grad.mul_(0.5)

    for _ in range(3):
        step()
    halved = optimizer.register_step_pre_hook(halve)
    step()
    assert w.tolist() == [6.25]
    halved.remove()
    step()
    assert w.tolist() == [5.75]
    with mg.optim.optimizer.register_optimizer_step_post_hook(lambda o, args, kwargs: called.append(o)):
        step()
    assert called == [optimizer]
    assert w.tolist() == [5.25]


class Halving(mg.optim.Optimizer):
    """A step of its own, as optimizers of PyTorch's are written, that steps by that of its base class too."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.5})

    def update(self, p, grad, state, group):
        p.mul_(group["lr"])

    def step(self, closure=None):
        return super().step(closure)


@pytest.mark.parity
def test_hooks_are_called_when_pytorch_calls_them(torch):
    told = []
    for library in (mg, torch):
        p = library.ones(2).requires_grad_()
        optimizer, heard = library.optim.SGD([p], lr=0.5), []
        everywhere = importlib.import_module(f"{library.__name__}.optim.optimizer")
        handles = [
            everywhere.register_optimizer_step_pre_hook(lambda o, a, k, heard=heard: heard.append("all before")),
            everywhere.register_optimizer_step_post_hook(lambda o, a, k, heard=heard: heard.append("all after")),
        ]
        optimizer.register_step_post_hook(lambda o, a, k, heard=heard: heard.append(("after", len(k))))
        optimizer.register_step_pre_hook(lambda o, a, k, heard=heard: heard.append(("before", len(k))))
        optimizer.register_state_dict_pre_hook(lambda o, heard=heard: heard.append("saving"))
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
        optimizer.register_state_dict_post_hook(lambda o, s, heard=heard: heard.append(sorted(s)), prepend=True)
        optimizer.register_load_state_dict_pre_hook(lambda o, s, heard=heard: heard.append(s.pop("more")))
        optimizer.register_load_state_dict_post_hook(lambda o, heard=heard: heard.append("loaded"))
        optimizer.step(closure=lambda heard=heard: heard.append("closure"))
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
        heard.append(state["more"])
        for handle in handles:
            handle.remove()
        optimizer.step()
        told.append(heard)
    assert told[0] == told[1]


def test_hooks_are_called_once_for_a_step_that_calls_its_base_class():
    p, heard = leaf(2), []
    optimizer = Halving([p])
    give([p], 0)
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: heard.append((o is optimizer, args, kwargs)))
    optimizer.step(None)
    handle.remove()
    optimizer.step()
    assert heard == [(True, (None,), {})]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(DTypeError, match=re.escape("Halving.step: a hook before it returned an int, and it returns")):
        optimizer.step()
    assert optimizer.steps == 2


@pytest.mark.parity
def test_parameters_may_have_names_as_in_pytorch(torch):
    found = []
    for library in (mg, torch):
        model = library.nn.Linear(2, 1)
        optimizer = library.optim.SGD(model.named_parameters(), lr=0.5)
        state = optimizer.state_dict()
        nameless = library.optim.SGD(model.parameters(), lr=0.1)
        nameless.load_state_dict(state)
        group = nameless.param_groups[0]
        found.append((optimizer.param_groups[0]["param_names"], state["param_groups"][0]["param_names"], group["lr"]))
        assert optimizer.param_groups[0]["params"][0] is model.weight
        for bad in ([("a", model.weight), model.bias], [{"params": [("a", model.weight)]}, {"params": model.bias}]):
            with pytest.raises(ValueError, match=r"names|have a name"):
                library.optim.SGD(bad)
    assert found[0] == found[1]


def test_a_subclass_completes_the_groups_of_an_older_state():
    class Newer(Halving):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("momentum", 0.25)

    optimizer = Newer([leaf(2)])
    del optimizer.param_groups[0]["lr"]
    optimizer.load_state_dict(Halving([leaf(2)]).state_dict())
    assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]) == (0.5, 0.25)


def test_what_is_remembered_in_lists_and_of_no_parameter_is_saved_and_copied():
    p, q = leaf(2), leaf(2)
    first, second = Halving([p]), Halving([q])
    first.state[p]["old"] = [mg.ones(2), {"more": mg.zeros(2)}]
    first.state["rounds"] = {"count": 3}
    state = first.state_dict()
    assert state["state"]["rounds"] == {"count": 3}
    second.load_state_dict(state)
    first.state[p]["old"][0].zero_()
    assert second.state[q]["old"][0].tolist() == [1.0, 1.0]
    assert second.state["rounds"] == {"count": 3}
