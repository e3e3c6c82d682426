"""save and load: objects and entire models round-trip; invalid objects and corrupt files are rejected."""

import io
import json
import os
import pickle
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from checkpoint_files import FLOATS, is_identical, load_bytes, pickle_tensor, save_bytes, torch_file
from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, FileFormatError, MissingPackageError
from needs import needs
from strategies import PARITY

needs("safetensors")

NESTED = {
    "model": {"layer.weight": [[1.5, -2.0], [0.0, 3.0]], "layer.bias": [0.1, 0.2]},
    "whole": [1, 2**40],
}


def nested():
    """Return a checkpoint with tensors of every dtype and rank, and all other supported types."""
    return {
        "model": {"layer.weight": mg.tensor(NESTED["model"]["layer.weight"]), "layer.bias": mg.tensor([0.1, 0.2])},
        "optimizer": {"state": {0: {"step": mg.tensor(3.0)}, 1: {}}, "groups": [{"betas": (0.9, 0.999), "lr": 1e-3}]},
        "types": [mg.tensor(True), mg.tensor([1, 2**40]), mg.tensor([7], dtype=mg.int32)],
        "bytes": mg.arange(16, dtype=mg.uint8).view(4, 4).T,
        "empty": (mg.zeros(0, 3), (), [], {}),
        "numbers": [None, True, -0.0, 1 / 3, 2**70, float("inf"), "text\n\u00fc"],
        "$odd": {"$tensor": "no tensor", 1.5: "a"},
    }


# --- round trips ---


def test_checkpoints_round_trip_bit_for_bit(tmp_path):
    mg.save(nested(), tmp_path / "checkpoint.safetensors")
    assert is_identical(mg.load(tmp_path / "checkpoint.safetensors"), nested())
    assert os.listdir(tmp_path) == ["checkpoint.safetensors"]


@pytest.mark.parametrize(
    "obj", [mg.tensor([1.0, 2.0]), {}, [1, (2,)], None, "text", {"a.b": mg.ones(1), "a": {"b": mg.zeros(2)}}]
)
def test_nested_containers_round_trip(obj):
    assert is_identical(load_bytes(save_bytes(obj)), obj)


def test_nan_and_low_bits_round_trip():
    values = [float("nan"), float("-inf"), 5e-324, 1.0000000000000002]
    x = mg.tensor(values, dtype=mg.float64, device="numpy")
    back = load_bytes(save_bytes({"x": x, "y": values}), map_location="numpy")
    assert back["x"].numpy().tobytes() == x.numpy().tobytes()
    assert list(map(repr, back["y"])) == list(map(repr, values))


def test_loaded_tensors_are_leaves_on_the_requested_device():
    x = mg.ones(2, requires_grad=True)
    (back, on_numpy) = (
        load_bytes(save_bytes({"x": x * 2}), map_location=location)["x"] for location in (None, "numpy")
    )
    assert (back.requires_grad, back.is_leaf, back.device) == (False, True, mg.get_default_device())
    assert on_numpy.device == "numpy"
    back.add_(1.0)
    assert (back.tolist(), on_numpy.tolist()) == ([3.0, 3.0], [2.0, 2.0])


def test_views_are_saved_by_value():
    x = mg.arange(6.0).view(2, 3)
    back = load_bytes(save_bytes({"turned": x.T, "row": x[1], "every other": x[:, ::2], "one": x[1, 2]}))
    assert {name: y.tolist() for name, y in back.items()} == {
        "turned": [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]],
        "row": [3.0, 4.0, 5.0],
        "every other": [[0.0, 2.0], [3.0, 5.0]],
        "one": 5.0,
    }


def test_files_are_compatible_with_safetensors():
    from safetensors import numpy

    data = save_bytes({"model": {"layer.weight": mg.ones(1, 2)}, "groups": [{"momentum": mg.tensor([3])}]})
    arrays = numpy.load(data)
    assert {name: x.tolist() for name, x in arrays.items()} == {
        "model.layer.weight": [[1.0, 1.0]],
        "groups.0.momentum": [3],
    }
    back = load_bytes(numpy.save({"b.weight": np.ones((2, 1), "f4"), "a": np.array(True)}, {"format": "np"}))
    assert {name: x.tolist() for name, x in back.items()} == {"b.weight": [[1.0], [1.0]], "a": True}


def test_the_layout_matches_its_description():
    data = save_bytes({"model": {"w": mg.zeros(1)}, 2: (float("nan"),)})
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata = header.pop("__metadata__")
    assert header == {"model.w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    assert (sorted(metadata), metadata["minigrad"], len(metadata["sha256"])) == (
        ["minigrad", "sha256", "tree"],
        "1",
        64,
    )
    assert json.loads(metadata["tree"]) == {
        "$dict": [["model", {"w": {"$tensor": "model.w"}}], [2, {"$tuple": [{"$float": "nan"}]}]]
    }


# --- unsupported objects ---


class Thing:
    def state_dict(self):
        return {}


CYCLE = []
CYCLE.append(CYCLE)
UNSUPPORTED = {
    "a model": (lambda: {"a": {3: Thing()}}, DTypeError, "obj['a']['3'] is a Thing; .*\n  Write save(x.state_dict()"),
    "a function": (lambda: [print], DTypeError, "save: obj['0'] is a builtin_function_or_method; "),
    "an array": (lambda: np.zeros(2), DTypeError, "save: this is a ndarray; .*\n  Write mg.tensor(x) for an array"),
    "a named tuple": (lambda: mg.tensor([1.0, 2.0]).max(0), DTypeError, "Write x._asdict() for a named tuple."),
    "a key": (lambda: {"a": {(1, 2): 3}}, DTypeError, "save: obj['a'] has the key (1, 2); supported keys are strings"),
    "a cycle": (lambda: CYCLE, ArgumentError, "is nested deeper than 100 levels, or contains itself."),
}  # fmt: skip


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_unsupported_objects_raise_before_writing(case, tmp_path):
    make, error, message = UNSUPPORTED[case]
    path = tmp_path / "old"
    path.write_bytes(b"old")
    pattern = ".*".join(map(re.escape, message.split(".*")))
    with pytest.raises(error, match=f"(?s){pattern}"):
        mg.save(make(), path)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["old"])


INVALID = {
    "a number as a file to write": (lambda: mg.save({}, 3), DTypeError, "a path or a file, but got int 3."),
    "a text file to write": (lambda: mg.save({}, io.StringIO()), DTypeError, "Write open(path, 'wb')"),
    "a text file": (lambda: mg.load(io.StringIO("a")), DTypeError, "Write open(path, 'rb')"),
    "a number as a file": (lambda: mg.load(3), DTypeError, "in binary mode, but got int 3."),
    "no file": (lambda: mg.load("nowhere.safetensors"), FileNotFoundError, "nowhere.safetensors"),
    "a map": (lambda: load_bytes(save_bytes({}), map_location={}), ArgumentError, "map_location to be a device string"),
    "no device": (lambda: load_bytes(save_bytes({}), map_location="abacus"), DeviceError, "device 'abacus' is not"),
    "nothing": (lambda: load_bytes(b""), FileFormatError, "neither safetensors nor a PyTorch .pt file"),
    "a text": (lambda: load_bytes(b"a line of text"), FileFormatError, "neither safetensors nor a PyTorch .pt file"),
    "a pickle": (lambda: load_bytes(pickle.dumps({})), FileFormatError, "neither safetensors nor a PyTorch .pt file"),
}  # fmt: skip


@pytest.mark.parametrize("case", INVALID)
def test_invalid_arguments_and_files_raise(case):
    call, error, message = INVALID[case]
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_without_safetensors_the_error_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(MissingPackageError, match=r'Run: pip install "safetensors>=0\.5"$') as raised:
        mg.save({"a": mg.ones(1)}, io.BytesIO())
    assert isinstance(raised.value, ImportError)


# --- entire models ---


def cnn(library):
    """Return a convolutional network with normalisation; `library` is torch or minigrad."""
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, stride=2),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(8, 10),
    )


def gpt(library):
    """Return a decoder-only transformer with tied input and output embeddings."""
    nn = library.nn

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(11, 16), nn.Embedding(8, 16)
            layer = nn.TransformerEncoderLayer(
                16, 2, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 11, bias=False)
            self.head.weight = self.tokens.weight
            self.register_buffer("mask", library.ones(8, 8).triu(1).bool())

        def forward(self, x):
            x = self.tokens(x) + self.positions(library.arange(x.shape[1]))
            return self.head(self.norm(self.layers(x, mask=self.mask)))

    return GPT()


MODELS = {"CNN": (cnn, lambda: np.random.default_rng(0).normal(size=(5, 1, 6, 6)).astype("f4")),
          "GPT": (gpt, lambda: np.random.default_rng(0).integers(0, 11, (3, 8)))}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["pt", "safetensors"])
@pytest.mark.parametrize("name", MODELS)
def test_state_dicts_are_exchangeable_with_pytorch(torch, name, kind, tmp_path):
    from safetensors.torch import load_file, save_file

    make, data = MODELS[name]
    torch.manual_seed(0)
    torch_model, model, x = make(torch), make(mg), data()
    torch_model(torch.from_numpy(x))  # updates the running statistics
    path = tmp_path / f"model.{kind}"
    if kind == "pt":
        torch.save(torch_model.state_dict(), path)
    else:
        save_file({name: value.clone() for name, value in torch_model.state_dict().items()}, path)
    assert not model.load_state_dict(mg.load(path)).missing_keys
    expected = torch_model.eval()(torch.from_numpy(x)).detach().numpy()
    output = model.eval()(mg.tensor(x))
    np.testing.assert_allclose(output.detach().numpy(), expected, atol=PARITY["float32"], rtol=0)
    mg.save(model.state_dict(), tmp_path / "back.safetensors")
    again = make(torch)
    again.load_state_dict(load_file(tmp_path / "back.safetensors"))
    assert torch.equal(again.eval()(torch.from_numpy(x)), torch_model(torch.from_numpy(x)))


@pytest.mark.parity
def test_training_resumes_from_pytorch_checkpoints(torch, tmp_path):
    def steps(library, model, optimizer, count):
        x = library.linspace(-1.0, 1.0, 12).reshape(4, 3)
        for _ in range(count):
            optimizer.zero_grad()
            (model(x) ** 2).mean().backward()
            optimizer.step()

    torch.manual_seed(0)
    torch_model, mg_model = torch.nn.Linear(3, 2), mg.nn.Linear(3, 2)
    torch_optimizer = torch.optim.AdamW(torch_model.parameters(), lr=0.01)
    steps(torch, torch_model, torch_optimizer, 3)
    torch.save(
        {"model": torch_model.state_dict(), "optimizer": torch_optimizer.state_dict(), "epoch": 3}, tmp_path / "c.pt"
    )
    checkpoint = mg.load(tmp_path / "c.pt")
    mg_optimizer = mg.optim.AdamW(mg_model.parameters(), lr=1.0)
    mg_model.load_state_dict(checkpoint["model"])
    mg_optimizer.load_state_dict(checkpoint["optimizer"])
    steps(torch, torch_model, torch_optimizer, 5)
    steps(mg, mg_model, mg_optimizer, 5)
    np.testing.assert_allclose(
        mg_model.weight.detach().numpy(), torch_model.weight.detach().numpy(), atol=PARITY["float32"], rtol=0
    )


@pytest.mark.parametrize("name", MODELS)
def test_corrupt_or_mismatched_files_do_not_change_the_model(name, tmp_path):
    make, _ = MODELS[name]
    model, other = make(mg), make(mg)
    before = {key: x.numpy().tobytes() for key, x in model.state_dict().items()}
    state = other.state_dict()
    data = save_bytes(state)
    lacking, wrong = dict(list(state.items())[1:]), {**state, list(state)[-1]: mg.zeros(3, 1, 4)}
    broken = [
        data[: len(data) // 2],
        data[:-1],
        data[:-1] + bytes([data[-1] ^ 1]),
        save_bytes(lacking),
        save_bytes(wrong),
    ]
    for bad in [*broken, save_bytes({**state, "more": mg.zeros(1)}), save_bytes([1])]:
        with pytest.raises(mg.errors.MinigradError):
            model.load_state_dict(load_bytes(bad))
        assert {key: x.numpy().tobytes() for key, x in model.state_dict().items()} == before
    model.load_state_dict(load_bytes(data))
    assert is_identical(model.state_dict(), other.state_dict())


# --- corrupt files ---


def layers():
    return {"w": mg.tensor([[1.0, 2.0], [3.0, 4.0]]), "b": mg.tensor([5.0, 6.0])}


FILES = {
    "ours": save_bytes({"model": layers(), "epoch": 3}),
    "PyTorch's": torch_file(
        b"\x80\x02}(X\x01\x00\x00\x00w" + pickle_tensor()[2:-1] + b"X\x01\x00\x00\x00bK\x02u.", n0=FLOATS
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_truncated_files_raise(kind):
    for length in range(len(FILES[kind])):
        with pytest.raises(FileFormatError):
            load_bytes(FILES[kind][:length])


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=300)
@given(flips=st.dictionaries(st.integers(0, 4096), st.integers(1, 255), min_size=1, max_size=3))
def test_flipped_bytes_raise_or_read_correctly(kind, flips):
    data = bytearray(FILES[kind])
    for offset, flip in flips.items():
        data[offset % len(data)] ^= flip
    try:
        back = load_bytes(bytes(data))
    except (FileFormatError, DTypeError):
        return
    if (
        kind == "ours" and "model" not in back
    ):  # the key "__metadata__" was flipped: the same tensors without tree and checksum
        assert len(flips) > 1 or {name: x.tolist() for name, x in back.items()} == {
            f"model.{name}": x.tolist() for name, x in layers().items()
        }
        return
    assert is_identical(back, load_bytes(FILES[kind]))
