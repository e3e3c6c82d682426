"""Module: what it holds, its state, its hooks, what it says when something is wrong, and the scopes it opens."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import nn
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.fc = nn.Linear(size, size)

    def forward(self, x, scale=1.0):
        return x + self.fc(self.norm(x)).relu() * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4) for _ in range(2)])
        self.out = nn.Linear(4, 2)
        self.register_buffer("steps", mg.tensor(0))
        self.register_buffer("cache", mg.zeros(3), persistent=False)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.table(x))


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


def test_assignment_moves_a_name_between_the_tables():
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
        (lambda m: setattr(m.out, "weight", mg.ones(2, 4)), DTypeError, "weight is a parameter, and a Tensor cannot"),
        (lambda m: setattr(m, "out", 3), DTypeError, "out is a module, and an int cannot take its place"),
        (lambda m: setattr(m, "steps", 3), DTypeError, "steps is a buffer, and an int cannot take its place"),
        (lambda m: m.register_buffer("a.b", mg.ones(1)), ArgumentError, "dots separate modules"),
        (lambda m: m.register_parameter("forward", None), ArgumentError, "Net has an attribute forward already"),
        (lambda m: m.register_parameter("w", mg.ones(1)), DTypeError, r"Write nn.Parameter\(x\)"),
        (lambda m: m.get_submodule("blocks.7"), AttributeError, "ModuleList has no module '7'; it has 0, 1."),
        (lambda m: m.get_parameter("out.wieght"), AttributeError, "no parameter 'wieght'; it has weight, bias."),
        (lambda m: m.wieght, AttributeError, "'Net' object has no attribute 'wieght'"),
        (lambda m: m.to(mg.int64), DTypeError, "fractions, which int64 does not hold"),
        (lambda m: m.half(), DTypeError, "there is no float16 here"),
        (lambda m: m.train(1), DTypeError, "mode=1 is not True or False"),
        (lambda m: nn.Parameter(mg.tensor([1])), DTypeError, "only fractions have gradients"),
        (lambda m: nn.Parameter([1.0]), DTypeError, "data is a list, not a tensor"),
        (lambda m: nn.Module()(1), NotImplementedError, "Module has no forward"),
    ],
)
def test_what_cannot_be_is_said(act, kind, text):
    with pytest.raises(kind, match=text):
        act(Net())


def test_an_init_that_does_not_call_that_of_module_is_told_so():
    class Hasty(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"Begin its __init__ with super\(\).__init__\(\)"):
        Hasty()


# --- state ---


def test_state_is_loaded_into_the_same_tensors_and_converted():
    model, other = Net(), Net()
    kept = model.out.weight
    state = {name: x.detach().numpy().astype("float32") for name, x in other.state_dict().items()}
    state["steps"] = mg.tensor(7)
    assert repr(model.load_state_dict(state)) == "<All keys matched successfully>"
    assert model.out.weight is kept
    assert (model.out.weight == other.out.weight).all()
    assert model.steps.item() == 7


def test_a_state_that_does_not_fit_changes_nothing_and_all_that_is_wrong_is_said_at_once():
    model = Net()
    before = {name: x.tolist() for name, x in model.state_dict().items()}
    state = dict(Net().state_dict())
    state["out.bais"] = state.pop("out.bias")
    state["out.weight"] = mg.ones(2, 5)
    with pytest.raises(ArgumentError) as caught:
        model.load_state_dict(state)
    assert str(caught.value) == (
        "load_state_dict: this state does not fit Net; nothing was changed.\n"
        "  The state lacks out.bias.\n"
        "  The module has no out.bais (did you mean out.bias?).\n"
        "  Shapes differ: out.weight is (2, 4), and the state has (2, 5).\n"
        "  With strict=False what is missing stays as it is, and what is too much is left out."
    )
    with pytest.raises(ShapeError, match=r"out\.weight is"):
        model.load_state_dict(state, strict=False)
    with pytest.raises(DTypeError, match="steps is a str in the state"):
        model.load_state_dict({"steps": "seven"}, strict=False)
    with pytest.raises(DTypeError, match="it takes a dict"):
        model.load_state_dict([1])
    assert {name: x.tolist() for name, x in model.state_dict().items()} == before


def test_names_that_are_missing_and_too_many_are_told_where_not_strict():
    found = nn.Linear(2, 1).load_state_dict({"weight": mg.ones(1, 2), "scale": mg.ones(1)}, strict=False)
    assert found == (["bias"], ["scale"])


def test_a_prefix_on_all_names_is_seen():
    state = {f"module.{name}": x for name, x in nn.Linear(2, 1).state_dict().items()}
    with pytest.raises(ArgumentError, match=r"begin with 'module\.': take it off with name.removeprefix\('module.'\)"):
        nn.Linear(2, 1).load_state_dict(state)


def test_a_state_shares_memory_and_is_outside_the_graph_unless_asked_for():
    layer = nn.Linear(2, 1)
    state = layer.state_dict()
    assert not state["weight"].requires_grad
    assert layer.state_dict(prefix="a.", keep_vars=True)["a.weight"] is layer.weight
    with mg.no_grad():
        layer.weight.fill_(3.0)
    assert state["weight"].tolist() == [[3.0, 3.0]]


def test_parameters_and_modules_survive_copies_and_pickle():
    model = Net()
    model(mg.ones(1, 4)).sum().backward()
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert isinstance(twin.out.weight, nn.Parameter)
        assert twin.out.weight is not model.out.weight
        assert (twin(mg.ones(1, 4)) == model(mg.ones(1, 4))).all()
    assert (copy.deepcopy(model).out.weight.grad == model.out.weight.grad).all()
    assert copy.copy(model.out.weight).requires_grad


# --- for all that is in it ---


def test_conversion_keeps_each_parameter_the_tensor_that_it_was():
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


def test_a_graph_that_saved_a_parameter_refuses_its_converted_numbers():
    layer = nn.Linear(2, 1)
    loss = layer(mg.ones(1, 2, requires_grad=True)).sum()
    layer.double()
    with pytest.raises(GraphError, match="overwritten by to, at"):
        loss.backward()


def test_training_freezing_and_forgetting_reach_every_module():
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
    seen = []
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["LayerNorm", "Linear", "Block", "LayerNorm", "Linear", "Block", "ModuleList", "Linear", "Net"]


# --- hooks ---


def test_forward_hooks_see_and_replace_arguments_and_outputs_in_order():
    layer, seen = Block(4), []
    first = layer.register_forward_pre_hook(lambda m, args: (args[0] * 2.0,))
    layer.register_forward_pre_hook(lambda m, args: seen.append(args[0][0, 0].item()))
    layer.register_forward_hook(lambda m, args, output: output * 0.0)
    layer.register_forward_hook(lambda m, args, output: seen.append("first"), prepend=True)
    assert (layer(mg.ones(1, 4)) == 0.0).all()
    assert seen == [2.0, "first"]
    first.remove()
    layer(mg.ones(1, 4))
    assert seen[2:] == [1.0, "first"]


def test_hooks_with_keywords_see_and_replace_them():
    layer, seen = Block(4), []
    layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": 0.0}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kwargs, output: seen.append(kwargs), with_kwargs=True)
    x = mg.randn(1, 4)
    assert (layer(x, scale=5.0) == x).all()
    assert seen == [{"scale": 0.0}]


def hooked(library, make):
    """What backward hooks see of a module, and what becomes of the gradient that one replaces."""
    module, seen = make(library), []
    x = library.ones(2, 3, requires_grad=True)
    module.register_full_backward_pre_hook(lambda m, outputs: (outputs[0] * 2.0,))
    module.register_full_backward_hook(
        lambda m, inputs, outputs: seen.append([None if g is None else g.tolist() for g in (*inputs, *outputs)])
    )
    handle = module.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] * 10.0,))
    module(x).sum().backward()
    handle.remove()
    module(x.detach()).sum().backward()
    return seen, x.grad.tolist()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_backward_hooks_see_and_replace_what_pytorchs_do(torch):
    def make(library):
        layer = library.nn.Linear(3, 2)
        with library.no_grad():
            layer.weight.copy_(library.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
        return layer

    assert hooked(mg, make) == hooked(torch, make)


# --- text, scopes, errors ---


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


def test_while_recording_each_call_is_a_scope_named_by_its_path():
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


def test_nothing_is_noted_while_nobody_looks():
    model = Net()
    assert model(mg.ones(1, 4)).scope == ""
    with mg.no_grad():
        model(mg.ones(1, 4))
    assert not hasattr(model.out.weight, "label")


def test_an_error_says_where_in_the_model_it_arose():
    model = nn.Sequential(Net(), nn.Linear(3, 1))
    with pytest.raises(ShapeError) as caught:
        model(mg.ones(1, 4))
    assert caught.value.__notes__ == ["  in Sequential: 1, Linear(in_features=3, out_features=1, bias=True)"]
    with pytest.raises(ShapeError) as caught:
        model(mg.ones(1, 5))
    assert caught.value.__notes__ == [
        "  in Sequential: 0.blocks.0.norm, LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)"
    ]


def test_without_numpy_there_are_the_networks_of_values_and_the_rest_says_what_it_needs():
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
        "module 'minigrad.nn' has no attribute 'Linear'; its modules need NumPy, which is not installed",
    ], child.stderr


@pytest.mark.parity
def test_state_of_pytorch_loads_by_itself_and_gives_the_same(torch):
    model, twin = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
    model.load_state_dict(twin.state_dict())
    x = np.linspace(-1.0, 1.0, 6, dtype="float32").reshape(2, 3)
    np.testing.assert_allclose(
        model(mg.tensor(x)).detach().numpy(), twin(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6
    )


def test_a_batch_that_is_refused_is_not_counted():
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
        (lambda: nn.Linear(2, 2).register_forward_hook(3), "hook: 3 is an int, not a function"),
        (lambda: nn.Linear(2, 2).requires_grad_("no"), "requires_grad_: 'no' is neither True nor False"),
        (lambda: nn.init.zeros_([0.0]), "init: input is a list, not a tensor"),
        (lambda: nn.utils.clip_grad_norm_([], "1"), "clip_grad_norm_: max_norm='1' is a str, not a number"),
    ],
)
def test_arguments_of_another_type_are_named(call, text):
    with pytest.raises(DTypeError, match=text):
        call()


# --- what subclasses and hooks do when a state is saved and loaded ---


def kinds_of(library, told):
    """A module with every method that a subclass may write for its state, in another one."""
    base = library.nn.Module

    class Counting(base):
        _version = 3

        def __init__(self):
            super().__init__()
            self.w, self.n = library.nn.Parameter(library.ones(2)), 1

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

        def _load_from_state_dict(self, state, prefix, metadata, strict, missing, unexpected, errors):
            told.append((sorted(state), prefix, metadata.get("version"), strict))
            if f"{prefix}old" in state:
                state[f"{prefix}w"] = state.pop(f"{prefix}old")
            super()._load_from_state_dict(state, prefix, metadata, strict, missing, unexpected, errors)

    class Outer(base):
        def __init__(self):
            super().__init__()
            self.a, self.l = Counting(), library.nn.Linear(2, 1)
            self.register_buffer("b", library.zeros(3))
            self.register_buffer("t", library.zeros(3), persistent=False)

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[f"{prefix}more"] = library.ones(1)

    return Outer


@pytest.mark.parity
def test_subclasses_and_hooks_take_part_in_loading_as_in_pytorch(torch):
    found = []
    for library in (mg, torch):
        told = []
        kind = kinds_of(library, told)
        saved, loaded = kind(), kind()
        saved.a.n = 7
        saved.register_state_dict_pre_hook(lambda m, prefix, keep, told=told: told.append(("pre", prefix, keep)))
        saved.a.register_state_dict_post_hook(
            lambda m, s, prefix, meta, told=told: told.append((prefix, meta, sorted(s)))
        )
        saved._register_state_dict_hook(lambda m, s, prefix, meta: None)
        state = saved.state_dict()
        told += [list(state), state["a._extra_state"], dict(state._metadata)]

        def forgive(module, keys, told=told):
            told.append((list(keys.missing_keys), list(keys.unexpected_keys)))
            keys.unexpected_keys.clear()

        handle = loaded.register_load_state_dict_post_hook(forgive)
        loaded.l.register_load_state_dict_pre_hook(lambda m, s, prefix, *_, told=told: told.append((prefix, sorted(s))))
        loaded.l._register_load_state_dict_pre_hook(lambda s, prefix, *_, told=told: told.append(prefix))
        state["a.old"] = state.pop("a.w") * 5
        told += [repr(loaded.load_state_dict(state)), loaded.a.n, loaded.a.w.tolist()]
        handle.remove()
        with pytest.raises((ArgumentError, RuntimeError), match="more"):
            loaded.load_state_dict(state)
        told.append(tuple(kind().load_state_dict({"l.bias": library.zeros(1), "q.r": library.zeros(1)}, strict=False)))
        found.append([x if isinstance(x, str) else tuple(x) if isinstance(x, tuple) else x for x in told])
    assert found[0] == found[1]


def test_extra_state_goes_through_a_file_and_is_checked_before_anything_is_written(tmp_path):
    kind = kinds_of(mg, [])
    saved, loaded = kind(), kind()
    saved.a.n = 7
    state = {name: x for name, x in saved.state_dict().items() if name != "more"}
    mg.save(state, tmp_path / "x.safetensors")
    loaded.load_state_dict(mg.load(tmp_path / "x.safetensors"))
    assert loaded.a.n == 7
    told = []
    mg.save({"model": saved.state_dict()}, tmp_path / "v.safetensors")
    kinds_of(mg, told)().load_state_dict(mg.load(tmp_path / "v.safetensors")["model"], strict=False)
    assert told[0][2] == 3, "the version of the module goes through the file"
    with pytest.raises(ArgumentError, match=r"The state lacks l\.bias"):
        loaded.load_state_dict(
            {name: x * 0 if isinstance(x, mg.Tensor) else {"n": 9} for name, x in state.items() if name != "l.bias"}
        )
    assert (loaded.a.n, loaded.a.w.tolist()) == (7, [1.0, 1.0]), "a method of its own wrote, and it was taken back"

    class Half(nn.Module):
        def get_extra_state(self):
            return 1

    with pytest.raises(RuntimeError, match="Half has get_extra_state, so it needs set_extra_state too"):
        Half().set_extra_state(1)
    assert Half().state_dict() == {"_extra_state": 1}


@pytest.mark.parity
def test_assign_exchanges_the_tensors_as_in_pytorch(torch):
    found = []
    for library in (mg, torch):
        layer, norm = library.nn.Linear(2, 1), library.nn.BatchNorm1d(2)
        layer.weight.requires_grad_(False)
        w, mean, before = library.zeros(1, 2, dtype=library.float64), library.ones(2), layer.weight
        layer.load_state_dict({"weight": w, "bias": library.nn.Parameter(library.ones(1))}, assign=True)
        norm.load_state_dict({**norm.state_dict(), "running_mean": mean}, assign=True)
        w.add_(1)
        assert layer.weight is not before
        assert norm.running_mean is mean
        kinds = type(layer.weight).__name__, layer.weight.requires_grad, layer.bias.requires_grad
        found.append((layer.weight.tolist(), str(layer.weight.dtype).split(".")[-1], *kinds))
    assert found[0] == found[1] == ([[1.0, 1.0]], "float64", "Parameter", False, True)


def test_what_a_module_in_another_writes_of_its_own_is_called():
    """Moving, printing, copying: methods of the inner one."""

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


CIRCLES = {
    "attribute": lambda m: setattr(m, "a", m),
    "add_module": lambda m: m.add_module("a", m),
    "append": lambda m: m.append(m),
    "insert": lambda m: m.insert(0, m),
    "extend": lambda m: m.extend([mg.nn.ReLU(), m]),
    "+=": lambda m: m.__iadd__([mg.nn.ReLU(), m]),
    "item": lambda m: m.__setitem__(0, m),
    "around": lambda m: m.append(mg.nn.Sequential(m)),
    "far around": lambda m: m.append(mg.nn.ModuleDict({"a": mg.nn.Sequential(mg.nn.ReLU(), m)})),
    "within": lambda m: setattr(m[0], "a", m),
}


@pytest.mark.parametrize("add", CIRCLES.values(), ids=CIRCLES)
def test_a_module_is_no_part_of_itself(add):
    model = mg.nn.ModuleList([mg.nn.Linear(1, 1), mg.nn.ReLU()])
    shown, names = repr(model), list(model.state_dict())
    with pytest.raises(ArgumentError, match="there would be no end of modules in modules"):
        add(model)
    assert (repr(model), list(model.state_dict()), len(list(model.modules()))) == (shown, names, 3)


def test_a_module_dict_takes_all_or_none():
    model = mg.nn.ModuleDict({"a": mg.nn.ReLU()})
    for given in ({"b": mg.nn.ReLU(), "c": model}, {"b": mg.nn.ReLU(), "c": 3}):
        with pytest.raises((ArgumentError, DTypeError)):
            model.update(given)
        assert list(model) == ["a"]


def test_a_list_of_modules_is_as_it_was_after_something_else_is_put_in():
    model = mg.nn.ModuleList([mg.nn.Linear(1, 1), mg.nn.ReLU()])
    for add in (lambda: model.insert(0, "a"), lambda: model.extend([mg.nn.ReLU(), "a"])):
        with pytest.raises(DTypeError, match="is a str, not a module"):
            add()
        assert [type(module).__name__ for module in model] == ["Linear", "ReLU"]


def test_the_same_module_may_be_in_two_places():
    one = mg.nn.Linear(1, 1)
    model = mg.nn.Sequential(one, mg.nn.Sequential(one), one)
    assert len(list(model.parameters())) == 2
