"""The state of a module is loaded into the same tensors or rejected, with subclasses and hooks taking part."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from nn_models import Net


def test_state_is_loaded_into_the_same_tensors_and_converted():
    model, other = Net(), Net()
    weight = model.out.weight
    state = {name: x.detach().numpy().astype("float32") for name, x in other.state_dict().items()}
    state["steps"] = mg.tensor(7)
    assert repr(model.load_state_dict(state)) == "<All keys matched successfully>"
    assert model.out.weight is weight
    assert (model.out.weight == other.out.weight).all()
    assert model.steps.item() == 7


def test_a_mismatched_state_changes_nothing_and_reports_all_errors():
    model = Net()
    before = {name: x.tolist() for name, x in model.state_dict().items()}
    state = dict(Net().state_dict())
    state["out.bais"] = state.pop("out.bias")
    state["out.weight"] = mg.ones(2, 5)
    with pytest.raises(ArgumentError) as caught:
        model.load_state_dict(state)
    assert str(caught.value) == (
        "load_state_dict: error(s) in loading state_dict for Net; nothing was changed.\n"
        "  Missing key(s) in state_dict: out.bias.\n"
        "  Unexpected key(s) in state_dict: out.bais (did you mean out.bias?).\n"
        "  size mismatch for out.weight: (2, 5) in state_dict, (2, 4) in the module.\n"
        "  strict=False ignores missing and unexpected keys."
    )
    with pytest.raises(ShapeError, match=r"size mismatch for out\.weight"):
        model.load_state_dict(state, strict=False)
    with pytest.raises(DTypeError, match="expected a tensor for steps, but got a str"):
        model.load_state_dict({"steps": "seven"}, strict=False)
    with pytest.raises(DTypeError, match="expected state_dict to be dict-like"):
        model.load_state_dict([1])
    assert {name: x.tolist() for name, x in model.state_dict().items()} == before


def test_missing_and_unexpected_keys_are_returned_if_not_strict():
    keys = nn.Linear(2, 1).load_state_dict({"weight": mg.ones(1, 2), "scale": mg.ones(1)}, strict=False)
    assert keys == (["bias"], ["scale"])


def test_a_common_prefix_is_reported():
    state = {f"module.{name}": x for name, x in nn.Linear(2, 1).state_dict().items()}
    with pytest.raises(ArgumentError, match=r"begin with 'module\.': remove it by key.removeprefix\('module.'\)"):
        nn.Linear(2, 1).load_state_dict(state)


def test_a_state_shares_memory_and_is_detached_by_default():
    layer = nn.Linear(2, 1)
    state = layer.state_dict()
    assert not state["weight"].requires_grad
    assert layer.state_dict(prefix="a.", keep_vars=True)["a.weight"] is layer.weight
    with mg.no_grad():
        layer.weight.fill_(3.0)
    assert state["weight"].tolist() == [[3.0, 3.0]]


@pytest.mark.parity
def test_a_pytorch_state_loads_directly(torch):
    model, twin = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
    model.load_state_dict(twin.state_dict())
    x = np.linspace(-1.0, 1.0, 6, dtype="float32").reshape(2, 3)
    np.testing.assert_allclose(
        model(mg.tensor(x)).detach().numpy(), twin(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6
    )


# --- subclasses and hooks ---


def make_module_class(library, calls):
    """Return a module class that overrides every state method, with another such module as a submodule."""
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
            calls.append((sorted(state), prefix, metadata.get("version"), strict))
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
    records = []
    for library in (mg, torch):
        record = []
        kind = make_module_class(library, record)
        saved, loaded = kind(), kind()
        saved.a.n = 7
        saved.register_state_dict_pre_hook(lambda m, prefix, keep, record=record: record.append(("pre", prefix, keep)))
        saved.a.register_state_dict_post_hook(
            lambda m, s, prefix, meta, record=record: record.append((prefix, meta, sorted(s)))
        )
        saved._register_state_dict_hook(lambda m, s, prefix, meta: None)
        state = saved.state_dict()
        record += [list(state), state["a._extra_state"], dict(state._metadata)]

        def forgive(module, keys, record=record):
            record.append((list(keys.missing_keys), list(keys.unexpected_keys)))
            keys.unexpected_keys.clear()

        handle = loaded.register_load_state_dict_post_hook(forgive)
        loaded.l.register_load_state_dict_pre_hook(
            lambda m, s, prefix, *_, record=record: record.append((prefix, sorted(s)))
        )
        loaded.l._register_load_state_dict_pre_hook(lambda s, prefix, *_, record=record: record.append(prefix))
        state["a.old"] = state.pop("a.w") * 5
        record += [repr(loaded.load_state_dict(state)), loaded.a.n, loaded.a.w.tolist()]
        handle.remove()
        with pytest.raises((ArgumentError, RuntimeError), match="more"):
            loaded.load_state_dict(state)
        record.append(
            tuple(kind().load_state_dict({"l.bias": library.zeros(1), "q.r": library.zeros(1)}, strict=False))
        )
        records.append([x if isinstance(x, str) else tuple(x) if isinstance(x, tuple) else x for x in record])
    assert records[0] == records[1]


def test_extra_state_is_saved_and_validated_before_loading(tmp_path):
    kind = make_module_class(mg, [])
    saved, loaded = kind(), kind()
    saved.a.n = 7
    state = {name: x for name, x in saved.state_dict().items() if name != "more"}
    mg.save(state, tmp_path / "x.safetensors")
    loaded.load_state_dict(mg.load(tmp_path / "x.safetensors"))
    assert loaded.a.n == 7
    record = []
    mg.save({"model": saved.state_dict()}, tmp_path / "v.safetensors")
    make_module_class(mg, record)().load_state_dict(mg.load(tmp_path / "v.safetensors")["model"], strict=False)
    assert record[0][2] == 3, "the file stores the version of the module"
    with pytest.raises(ArgumentError, match=r"Missing key\(s\) in state_dict: l\.bias"):
        loaded.load_state_dict(
            {name: x * 0 if isinstance(x, mg.Tensor) else {"n": 9} for name, x in state.items() if name != "l.bias"}
        )
    assert (loaded.a.n, loaded.a.w.tolist()) == (7, [1.0, 1.0]), "the write of an overridden method was undone"

    class Half(nn.Module):
        def get_extra_state(self):
            return 1

    with pytest.raises(RuntimeError, match="Half overrides get_extra_state, so it must override set_extra_state too"):
        Half().set_extra_state(1)
    assert Half().state_dict() == {"_extra_state": 1}


@pytest.mark.parity
def test_assign_replaces_the_tensors_as_in_pytorch(torch):
    results = []
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
        results.append((layer.weight.tolist(), str(layer.weight.dtype).split(".")[-1], *kinds))
    assert results[0] == results[1] == ([[1.0, 1.0]], "float64", "Parameter", False, True)
