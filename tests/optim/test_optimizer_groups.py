"""Param groups, their options and names, and rejected arguments."""

import inspect
import re

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from optimizer_cases import NAMES, leaf, make_optimizer, run_steps, set_gradients


def test_groups_have_their_own_rates():
    p, q = leaf(2), leaf(2, seed=1)
    initial_values = p.tolist(), q.tolist()
    optimizer = mg.optim.SGD([{"params": [p], "lr": 0.5}, {"params": q}], lr=0.25)
    for x in (p, q):
        x.grad = mg.ones(2)
    optimizer.step()
    assert np.allclose(p.tolist(), np.array(initial_values[0]) - 0.5)
    assert np.allclose(q.tolist(), np.array(initial_values[1]) - 0.25)
    assert [group["momentum"] for group in optimizer.param_groups] == [0.0, 0.0]


def test_a_group_can_be_added_later():
    p, q = leaf(2), leaf(2, seed=1)
    optimizer = mg.optim.SGD([p], lr=0.25)
    optimizer.add_param_group({"params": [q], "momentum": 0.9})
    run_steps(optimizer, [p, q], 0, 1)
    assert "momentum_buffer" in optimizer.state[q]
    assert "momentum_buffer" not in optimizer.state[p]


def test_an_optimizer_prints_its_options():
    text = repr(mg.optim.Adagrad([leaf(2)], lr=0.5))
    assert text == (
        "Adagrad (\nParameter Group 0\n    differentiable: False\n    eps: 1e-10\n    foreach: None\n    fused: None\n"
        "    initial_accumulator_value: 0.0\n    lr: 0.5\n    lr_decay: 0.0\n    maximize: False\n"
        "    weight_decay: 0.0\n)"
    )


IMPLEMENTATION_OPTIONS = ("foreach", "fused", "capturable")
IN_PYTORCH = [name for name in NAMES if name not in ("Lion", "Muon")]


@pytest.mark.parametrize("name", IN_PYTORCH)
def test_implementation_options_have_no_effect(name):
    accepted = [
        option for option in IMPLEMENTATION_OPTIONS if option in inspect.signature(getattr(mg.optim, name)).parameters
    ]
    assert "foreach" in accepted
    p, results = leaf(3, 4), []
    for options in [{}, *({way: True} for way in accepted)]:
        q = p.detach().clone().requires_grad_()
        optimizer = make_optimizer(name, [q], **options)
        run_steps(optimizer, [q], 0, 3)
        results.append(q.tolist())
        assert optimizer.param_groups[0].items() >= options.items()
    assert results == [results[0]] * len(results)


@pytest.mark.parametrize("name", IN_PYTORCH)
def test_a_differentiable_step_raises(name):
    text = f"{name}: differentiable=True is not supported: steps update the parameters in place"
    with pytest.raises(ArgumentError, match=text):
        make_optimizer(name, [leaf(2)], differentiable=True)
    optimizer = make_optimizer(name, [leaf(2)])
    with pytest.raises(ArgumentError, match=text):
        optimizer.add_param_group({"params": [leaf(3)], "differentiable": True})


@pytest.mark.parity
@pytest.mark.parametrize("name", IN_PYTORCH)
def test_arguments_are_pytorch_s_in_its_order(torch, name):
    parameters, torch_parameters = (
        inspect.signature(getattr(library.optim, name)).parameters for library in (mg, torch)
    )
    positional = [
        [p.name for p in signature.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        for signature in (parameters, torch_parameters)
    ]
    assert positional[0] == positional[1]
    assert set(parameters) == set(torch_parameters)


INVALID = [
    (
        lambda p: mg.optim.Adam([p], foreach=True, fused=True),
        ArgumentError,
        "Adam: `fused` and `foreach` cannot be True together",
    ),
    (lambda p: mg.optim.SGD([p], lr=-1), ArgumentError, "SGD: invalid learning rate: lr=-1 must be 0 or more."),
    (lambda p: mg.optim.SGD([p], lr="fast"), DTypeError, "SGD: invalid lr='fast': expected int or float."),
    (
        lambda p: mg.optim.Adam([p], betas=(0.9, 1.0)),
        ArgumentError,
        "Adam: invalid beta parameter: betas=(0.9, 1.0) must be within [0, 1).",
    ),
    (
        lambda p: mg.optim.Lion([p], betas=0.9),
        ArgumentError,
        "Lion: expected two betas, such as (0.9, 0.999), but got betas=0.9",
    ),
    (
        lambda p: mg.optim.SGD([{"params": [p], "lr": -1}]),
        ArgumentError,
        "SGD: invalid learning rate: lr=-1 must be 0 or more.",
    ),
    (lambda p: mg.optim.SGD([p], nesterov=True), ArgumentError, "SGD: Nesterov momentum requires a momentum and zero"),
    (lambda p: mg.optim.SGD(p), DTypeError, "SGD: params should be an iterable of tensors or dicts, but got a Tensor."),
    (lambda p: mg.optim.SGD([]), ArgumentError, "SGD: got an empty parameter list"),
    (lambda p: mg.optim.SGD([p, p]), ArgumentError, "SGD: a parameter of shape (2, 2) appears more than once"),
    (
        lambda p: mg.optim.SGD([{"params": [p]}, {"params": [p]}]),
        ArgumentError,
        "SGD: a parameter of shape (2, 2) appears more than once",
    ),
    (lambda p: mg.optim.SGD([p * 2]), ArgumentError, "SGD: can't optimize a non-leaf tensor, of shape (2, 2)"),
    (
        lambda p: mg.optim.SGD([1.0]),
        DTypeError,
        "SGD: can only optimize tensors, but one of the params is a float: 1.0.",
    ),
    (
        lambda p: mg.optim.SGD([{"lr": 1}]),
        DTypeError,
        'SGD: param_group must be a dict with its tensors under "params"',
    ),
    (lambda p: mg.optim.SGD([{"params": [p]}, leaf(2)]), DTypeError, "SGD: param_group must be a dict with"),
    (lambda p: mg.optim.SGD([{"params": {p}}]), DTypeError, "SGD: parameters must be in an ordered collection"),
    (lambda p: mg.optim.Muon([leaf(3)]), ShapeError, "Muon: only supports 2D parameters, but found"),
    (lambda p: mg.optim.Muon([p], adjust_lr_fn="x"), ArgumentError, 'Muon: adjust_lr_fn must be "original"'),
]


@merge_cases
@pytest.mark.parametrize(("make", "error", "text"), INVALID, ids=range(len(INVALID)))
def test_invalid_arguments_raise(make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make(leaf(2, 2))


# --- options that are tensors, and names ---


@pytest.mark.parity
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_options_may_be_tensors_as_in_pytorch(torch, name, jitted):
    """Each option as a tensor, which is halved after some steps, and replaced by a float later."""
    for option, default in inspect.signature(getattr(mg.optim, name)).parameters.items():
        value = default.default
        if option == "ns_steps" or type(value) not in (float, int, tuple):
            continue
        results = []
        for library in (mg, torch):
            if library is torch and name in ("Lion", "Muon"):
                continue
            p = library.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
            tensors = tuple(map(library.tensor, value)) if type(value) is tuple else library.tensor(value or 0.3)
            momentum = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
            optimizer = getattr(library.optim, name)([p], **{**momentum, option: tensors})

            def step(optimizer=optimizer, p=p):
                optimizer.zero_grad()
                (p * p).sum().backward()
                optimizer.step()

            run_one = mg.jit(step) if jitted and library is mg else step
            for k in range(12):
                run_one()
                if k == 6 and type(value) is not tuple:
                    with library.no_grad():
                        tensors.mul_(0.5)
                if k == 9:
                    optimizer.param_groups[0][option] = value or 0.3
            results.append(p.detach().tolist())
        assert np.array(results[0]) == pytest.approx(np.array(results[-1]), rel=1e-4), option


def test_an_option_with_several_elements_raises_before_any_change():
    p = leaf(2)
    with pytest.raises(ArgumentError, match=re.escape("SGD: tensor lr must be 1-element, but got shape (2,).")):
        mg.optim.SGD([p], lr=mg.ones(2))
    with pytest.raises(ArgumentError, match=re.escape("SGD: invalid learning rate: lr=tensor(-1.) must be 0 or more.")):
        mg.optim.SGD([p], lr=mg.tensor(-1.0))
    optimizer = mg.optim.SGD([p], lr=0.1)
    optimizer.param_groups[0]["lr"] = mg.ones(2)
    set_gradients([p], 0)
    before = p.tolist()
    with pytest.raises(ArgumentError, match="tensor lr must be 1-element"):
        optimizer.step()
    assert p.tolist() == before


@pytest.mark.parity
def test_parameters_may_have_names_as_in_pytorch(torch):
    results = []
    for library in (mg, torch):
        model = library.nn.Linear(2, 1)
        optimizer = library.optim.SGD(model.named_parameters(), lr=0.5)
        state = optimizer.state_dict()
        nameless = library.optim.SGD(model.parameters(), lr=0.1)
        nameless.load_state_dict(state)
        group = nameless.param_groups[0]
        results.append((optimizer.param_groups[0]["param_names"], state["param_groups"][0]["param_names"], group["lr"]))
        assert optimizer.param_groups[0]["params"][0] is model.weight
        for bad in ([("a", model.weight), model.bias], [{"params": [("a", model.weight)]}, {"params": model.bias}]):
            with pytest.raises(ValueError, match=r"names|have a name"):
                library.optim.SGD(bad)
    assert results[0] == results[1]
