"""Module: registration, recursive operations, and the scopes that it opens."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import nn
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from nn_models import Net, Tied


def test_parameters_buffers_and_modules_are_named_from_the_outside_in():
    model = Net()
    names = [name for name, _ in model.named_parameters()]
    assert names[:3] == ["blocks.0.norm.weight", "blocks.0.norm.bias", "blocks.0.fc.weight"]
    assert names[-2:] == ["out.weight", "out.bias"]
    assert [name for name, _ in model.named_buffers()] == ["steps", "cache"]
    assert [name for name, _ in model.named_modules()][:4] == ["", "blocks", "blocks.0", "blocks.0.norm"]
    assert [name for name, _ in model.named_children()] == ["blocks", "out"]
    assert [name for name, _ in model.named_parameters("net", recurse=False)] == []
    assert model.get_parameter("blocks.1.fc.weight") is model.blocks[1].fc.weight
    assert model.get_submodule("blocks.1") is model.blocks[1]
    assert model.get_buffer("steps") is model.steps


def test_a_shared_parameter_is_counted_once_and_saved_under_both_names():
    model = Tied()
    assert [name for name, _ in model.named_parameters()] == ["table.weight"]
    assert [name for name, _ in model.named_parameters(remove_duplicate=False)] == ["table.weight", "head.weight"]
    assert list(model.state_dict()) == ["table.weight", "head.weight"]
    assert repr(model).splitlines()[0] == "Tied(  # 15 parameters"
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.table.weight is not model.table.weight
    model.double()
    assert model.head.weight is model.table.weight


def test_assignment_moves_a_name_between_registries():
    module = nn.Module()
    module.x = 3
    module.x = nn.Parameter(mg.ones(2))
    assert list(module.state_dict()) == ["x"]
    module.x = None
    assert module.x is None
    assert list(module.state_dict()) == []
    module.x = nn.Linear(1, 1)
    assert [name for name, _ in module.named_parameters()] == ["x.weight", "x.bias"]
    del module.x
    assert not hasattr(module, "x")
    module.register_buffer("b", mg.zeros(1))
    module.b = mg.ones(2)
    assert module.state_dict()["b"].tolist() == [1.0, 1.0]


@merge_cases
@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (lambda m: setattr(m.out, "weight", mg.ones(2, 4)), DTypeError, "cannot assign a Tensor as parameter 'weight'"),
        (lambda m: setattr(m, "out", 3), DTypeError, "cannot assign an int as submodule 'out'"),
        (lambda m: setattr(m, "steps", 3), DTypeError, "cannot assign an int as buffer 'steps'"),
        (lambda m: m.register_buffer("a.b", mg.ones(1)), ArgumentError, r"""can't contain "\.\""""),
        (lambda m: m.register_parameter("forward", None), ArgumentError, "attribute 'forward' of Net already exists"),
        (lambda m: m.register_parameter("w", mg.ones(1)), DTypeError, r"Write nn.Parameter\(x\)"),
        (lambda m: m.get_submodule("blocks.7"), AttributeError, "ModuleList has no submodule '7'; it has 0, 1."),
        (lambda m: m.get_parameter("out.wieght"), AttributeError, "no parameter 'wieght'; it has weight, bias."),
        (lambda m: m.wieght, AttributeError, "'Net' object has no attribute 'wieght'"),
        (lambda m: m.to(mg.int64), DTypeError, "floating-point dtype, but got int64"),
        (lambda m: m.half(), DTypeError, "float16 is not supported"),
        (lambda m: m.train(1), DTypeError, "training mode is expected to be boolean, but got mode=1"),
        (lambda m: nn.Parameter(mg.tensor([1])), DTypeError, "only floating-point tensors can require gradients"),
        (lambda m: nn.Parameter([1.0]), DTypeError, r"Parameter: data must be a tensor, not a list\."),
        (lambda m: nn.Module()(1), NotImplementedError, 'Module is missing the required "forward"'),
    ],
)
def test_invalid_arguments_raise(act, kind, text):
    with pytest.raises(kind, match=text):
        act(Net())


def test_assignment_before_module_init_raises():
    class Hasty(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"before the Module.__init__\(\) call"):
        Hasty()


# --- recursive operations ---


def test_parameters_and_modules_survive_copies_and_pickle():
    model = Net()
    model(mg.ones(1, 4)).sum().backward()
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert isinstance(twin.out.weight, nn.Parameter)
        assert twin.out.weight is not model.out.weight
        assert (twin(mg.ones(1, 4)) == model(mg.ones(1, 4))).all()
    assert (copy.deepcopy(model).out.weight.grad == model.out.weight.grad).all()
    assert copy.copy(model.out.weight).requires_grad


def test_conversion_preserves_parameter_identity():
    model = Net()
    before = list(model.parameters())
    model(mg.ones(1, 4)).sum().backward()
    model.double()
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    assert {p.dtype for p in before} == {mg.float64} == {p.grad.dtype for p in before}
    assert (model.cache.dtype, model.steps.dtype) == (mg.float64, mg.int64)
    model.to(mg.ones(1, device="numpy", dtype=mg.float32))
    assert {(p.dtype, str(p.device)) for p in before} == {(mg.float32, "numpy")}
    assert model(mg.ones(1, 4, device="numpy")).device == "numpy"


def test_backward_raises_if_a_saved_parameter_was_converted():
    layer = nn.Linear(2, 1)
    loss = layer(mg.ones(1, 2, requires_grad=True)).sum()
    layer.double()
    with pytest.raises(GraphError, match="modified by an inplace operation: to, at"):
        loss.backward()


def test_mode_freezing_and_zero_grad_are_recursive():
    model = Net()
    assert model.training
    assert not any(module.training for module in model.eval().modules())
    assert model.train() is model
    model(mg.ones(1, 4)).sum().backward()
    model.zero_grad(set_to_none=False)
    assert all((p.grad == 0.0).all() for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    assert not any(p.requires_grad for p in model.requires_grad_(False).parameters())
    visited = []
    model.apply(lambda module: visited.append(type(module).__name__))
    assert visited == ["LayerNorm", "Linear", "Block", "LayerNorm", "Linear", "Block", "ModuleList", "Linear", "Net"]


# --- repr, scopes, errors ---


def test_the_tree_counts_parameters_and_folds_equal_modules_of_a_list():
    assert repr(Net()) == (
        "Net(  # 66 parameters\n"
        "  (blocks): ModuleList(  # 56 parameters\n"
        "    (0-1): 2 x Block(  # 28 parameters each\n"
        "      (norm): LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)  # 8 parameters\n"
        "      (fc): Linear(in_features=4, out_features=4, bias=True)  # 20 parameters\n"
        "    )\n"
        "  )\n"
        "  (out): Linear(in_features=4, out_features=2, bias=True)  # 10 parameters\n"
        ")"
    )


def test_while_tracing_each_call_is_a_scope_named_by_its_path():
    model = Net()
    with mg.record():
        y = model(mg.ones(1, 4))
    scopes = {str(step.scope) for step in mg.topological([y.grad_fn]) if hasattr(step, "next_functions")}
    assert scopes == {
        "Net/blocks.0",
        "Net/blocks.0/norm",
        "Net/blocks.0/fc",
        "Net/blocks.1",
        "Net/blocks.1/norm",
        "Net/blocks.1/fc",
        "Net/out",
    }
    assert model.blocks[0].fc.weight.label == "blocks.0.fc.weight"
    with mg.scope("outer"):
        assert model(mg.ones(1, 4)).scope == "outer/Net/out"


def test_a_module_called_by_itself_is_a_root_and_each_call_a_block():
    model = Tied()
    with mg.record():
        a, b = model.head(mg.ones(1, 3)), model.head(mg.ones(1, 3))
    assert (str(a.scope), str(b.scope)) == ("Linear", "Linear")
    assert a.scope is not b.scope


def test_nothing_is_recorded_without_a_tracer():
    model = Net()
    assert model(mg.ones(1, 4)).scope == ""
    with mg.no_grad():
        model(mg.ones(1, 4))
    assert not hasattr(model.out.weight, "label")


def test_an_error_names_its_location_in_the_model():
    model = nn.Sequential(Net(), nn.Linear(3, 1))
    with pytest.raises(ShapeError) as caught:
        model(mg.ones(1, 4))
    assert caught.value.__notes__ == ["  in Sequential: 1, Linear(in_features=3, out_features=1, bias=True)"]
    with pytest.raises(ShapeError) as caught:
        model(mg.ones(1, 5))
    assert caught.value.__notes__ == [
        "  in Sequential: 0.blocks.0.norm, LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)"
    ]


def test_without_numpy_only_scalar_networks_are_available():
    code = f"""
import sys
sys.path.insert(0, {str(Path(nn.__file__).parents[2])!r})
from importlib import util
find = util.find_spec
util.find_spec = lambda name, *more: None if name == "numpy" else find(name, *more)
import minigrad as mg
print(mg.nn.scalar.__name__, mg.nn.__all__)
try:
    mg.nn.Linear
except AttributeError as error:
    print(error)
"""
    child = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=300)
    assert child.stdout.splitlines() == [
        "minigrad.nn.scalar ['scalar']",
        "module 'minigrad.nn' has no attribute 'Linear'; its layers need NumPy, which is not installed",
    ], child.stderr


def test_a_rejected_batch_is_not_counted():
    for momentum in (0.1, None):
        norm = nn.BatchNorm1d(3, momentum=momentum)
        for x in (mg.ones(2, 4), mg.ones(1, 3)):
            with pytest.raises(ShapeError):
                norm(x)
        assert norm.num_batches_tracked.item() == 0
        norm(mg.tensor([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]))
        assert norm.num_batches_tracked.item() == 1


@merge_cases
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: nn.Linear("4", 3), "Linear: in_features='4' is a str, not an int"),
        (lambda: nn.Linear(4.0, 3), r"Linear: in_features=4\.0 is a float, not an int"),
        (lambda: nn.Dropout("half"), "Dropout: p='half' is a str, not a number"),
        (lambda: nn.Linear(2, 2).register_forward_hook(3), "hook: 3 is an int; expected a callable"),
        (lambda: nn.Linear(2, 2).requires_grad_("no"), "requires_grad_: expected True or False, but got 'no'"),
        (lambda: nn.init.zeros_([0.0]), r"init: input must be a tensor, not a list\."),
        (lambda: nn.utils.clip_grad_norm_([], "1"), "clip_grad_norm_: max_norm='1' is a str, not a number"),
    ],
)
def test_arguments_of_another_type_are_named(call, text):
    with pytest.raises(DTypeError, match=text):
        call()


def test_methods_overridden_by_a_submodule_are_called():
    """Moving, printing and copying call the methods that a submodule overrides."""

    class Grid(nn.Module):
        def __init__(self):
            super().__init__()
            self.grid = {"x": mg.ones(2)}

        def _apply(self, fn):
            self.grid = {name: fn(x) for name, x in self.grid.items()}
            return super()._apply(fn)

        def __repr__(self):
            return "a grid"

        def __setstate__(self, state):
            super().__setstate__(state)
            self.copied = True

    model = nn.Sequential(Grid()).double()
    assert model[0].grid["x"].dtype is mg.float64
    assert repr(model) == "Sequential(\n  (0): a grid\n)"
    assert copy.deepcopy(model)[0].copied
