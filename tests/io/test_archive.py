"""PyTorch's zip format: state dicts load without PyTorch, and other zip files are rejected."""

import io
import re
import zipfile

import pytest

import minigrad as mg
from checkpoint_files import FLOATS, edit_zip, load_bytes, pickle_tensor, torch_file, torch_save_bytes
from minigrad.core.errors import DTypeError, FileFormatError
from needs import needs

needs("safetensors")


# --- files written by PyTorch ---


@pytest.mark.parity
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pytorch_state_dicts_load_without_pytorch(torch, protocol):
    torch.manual_seed(0)
    base = torch.arange(12.0).view(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    obj = {
        "model": model.state_dict(),
        "views": [base.T, base[1:, ::2], base[1], base[2, 3], torch.zeros(0, 3), torch.empty(())],
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
        "types": [torch.tensor([1, 2**40]), torch.tensor([7], dtype=torch.int32), torch.tensor([True, False])],
        "double": torch.tensor([1 / 3], dtype=torch.float64),
        "plain": (1, 2.5, "text", None, True, -(2**70), {3: "a"}, 300, 70000),
    }
    obj["views"][-1] = torch.tensor(2.5)
    back = load_bytes(torch_save_bytes(torch, obj, pickle_protocol=protocol), map_location="numpy")
    assert list(back["model"]) == list(obj["model"])

    def plain(x):
        if isinstance(x, torch.Tensor | mg.Tensor):
            return x.tolist(), tuple(x.shape), str(x.dtype).split(".")[-1]
        if isinstance(x, dict):
            return {key: plain(one) for key, one in x.items()}
        return type(x)(map(plain, x)) if isinstance(x, list | tuple) else x

    assert plain(back) == plain(obj)


@pytest.mark.parity
def test_tensor_metadata_is_read_or_rejected(torch):
    z = torch.tensor([1 + 2j, 3 - 4j])
    negated = z.conj().imag
    saved = {"x": negated, "more": [negated, negated[1:], z.imag, z.conj().real], "empty": negated[:0]}
    loaded = load_bytes(torch_save_bytes(torch, saved))
    assert loaded["x"].tolist() == [-2.0, 4.0]
    assert [x.tolist() for x in loaded["more"]] == [[-2.0, 4.0], [4.0], [2.0, -4.0], [1.0, 3.0]]
    assert loaded["empty"].shape == (0,)
    needing = {
        "leaf": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "plain": torch.ones(2),
    }
    loaded = load_bytes(torch_save_bytes(torch, needing))
    assert [(x.requires_grad, x.is_leaf) for x in loaded.values()] == [
        (True, True),
        (True, True),
        (False, True),
        (False, True),
    ]
    for flags, text in (
        ({"new": True}, "{'new': True}"),
        ({"neg": 1.5}, "{'neg': 1.5}"),
        ({"neg": True, "conj": True}, "conj"),
    ):
        with pytest.raises(FileFormatError, match=rf"has the flags .*{re.escape(text)}"):
            mg.io.archive._rebuild_tensor(mg.io.archive._Storage("F32", mg.ones(2)), 0, (2,), (1,), False, {}, flags)


@pytest.mark.parity
def test_shared_storages_stay_shared(torch):
    whole = torch.arange(6.0)
    back = load_bytes(torch_save_bytes(torch, {"whole": whole, "part": whole[2:4], "turned": whole.view(2, 3).T}))
    back["part"].fill_(-1.0)
    assert back["whole"].tolist() == [0.0, 1.0, -1.0, -1.0, 4.0, 5.0]
    assert back["turned"].tolist() == [[0.0, -1.0], [1.0, 4.0], [-1.0, 5.0]]


NARROW = ["float16", "bfloat16", "int8", "int16"]


@pytest.mark.parity
@pytest.mark.parametrize("kind", [*NARROW, "uint16", "uint32"])
def test_unsupported_dtypes_raise_or_widen(torch, kind):
    from safetensors.torch import save

    x = torch.tensor([0, 1, 100, 127]).to(getattr(torch, kind))
    if kind in ("float16", "bfloat16"):
        x = torch.tensor([1.5, -0.0, float("inf"), 1e-5, 65280.0, float("nan")]).to(getattr(torch, kind))
    files = [save({"x": x}), *([torch_save_bytes(torch, {"x": x})] if kind in NARROW else [])]
    wider = {"float16": "float32", "bfloat16": "float32", "uint32": "int64"}.get(kind, "int32")
    for data in files:
        with pytest.raises(DTypeError, match=f"has dtype {kind}, which is not supported.\n.*widen=True.* to {wider}"):
            load_bytes(data)
        back = load_bytes(data, widen=True)["x"]
        assert (back.dtype.name, repr(back.tolist())) == (wider, repr(x.to(getattr(torch, wider)).tolist()))


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["complex64", "float8_e4m3fn", "uint64"])
def test_unrepresentable_dtypes_raise(torch, kind):
    from safetensors.torch import save

    x = torch.ones(2).to(getattr(torch, kind))
    with pytest.raises(DTypeError, match=r"'x' has dtype .*, which is not supported"):
        load_bytes(save({"x": x}), widen=True)
    with pytest.raises(FileFormatError, match="is not part of a state dict; no code was run"):
        load_bytes(torch_save_bytes(torch, {"x": x}), widen=True)


@pytest.mark.parity
def test_pickled_models_and_legacy_formats_raise_with_advice(torch):
    with pytest.raises(
        FileFormatError, match=r"unsupported global 'torch.nn.modules.linear.Linear'.*\n.*model.state_dict\(\), path"
    ):
        load_bytes(torch_save_bytes(torch, torch.nn.Linear(1, 1)))
    with pytest.raises(
        FileFormatError,
        match=r"of PyTorch before 1.6.*\n.*torch.save\(torch.load\(old, weights_only=True\), new\)",
    ):
        load_bytes(torch_save_bytes(torch, {"a": torch.ones(2)}, _use_new_zipfile_serialization=False))
    with pytest.raises(
        FileFormatError, match=r"out of bounds for storage of size 1\.\n  If it was expanded, call x\.contiguous"
    ):
        load_bytes(torch_save_bytes(torch, {"a": torch.ones(1).expand(5)}))


@pytest.mark.parity
def test_big_endian_files_are_read(torch):
    data = torch_save_bytes(
        torch,
        {
            "f": torch.tensor([1.5, -2.0]),
            "h": torch.tensor([1.5], dtype=torch.bfloat16),
            "b": torch.tensor([True, False]),
        },
    )
    turned = edit_zip(
        data,
        {"byteorder": lambda _: b"big", "data/0": lambda x: swap_bytes(x, 4), "data/1": lambda x: swap_bytes(x, 2)},
    )
    back = load_bytes(turned, widen=True)
    assert {name: x.tolist() for name, x in back.items()} == {"f": [1.5, -2.0], "h": [1.5], "b": [True, False]}


def swap_bytes(data, size):
    return b"".join(data[k : k + size][::-1] for k in range(0, len(data), size))


# --- hostile files ---


ZIPS = {
    "a bomb": (
        lambda: edit_zip(torch_file(pickle_tensor(), n0=b"\0" * 2**24), {}, zipfile.ZIP_DEFLATED),
        "is compressed or encrypted",
    ),
    "wrong sizes": (lambda: oversized_archive(), "declares more than its size"),
    "two pickles": (lambda: make_zip("a/data.pkl", "b/data.pkl"), "was not written by torch.save"),
    "TorchScript": (
        lambda: make_zip("a/data.pkl", "a/constants.pkl"),
        "was not written by torch.save (TorchScript archives",
    ),
    "images": (lambda: make_zip("a/picture.png"), "was not written by torch.save"),
    "duplicate names": (lambda: make_zip("a/data.pkl", "a/data.pkl"), "declares more than its size"),
}


def oversized_archive():
    """Return a zip archive whose central directory declares an entry of 4 GB."""
    data = bytearray(torch_file(pickle_tensor(), n0=FLOATS))
    offset = data.rindex(b"PK\x01\x02")
    data[offset + 20 : offset + 28] = b"\xf0\xff\xff\xff" * 2
    return bytes(data)


def make_zip(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, b"\x80\x02}.")
    return out.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", ZIPS)
def test_other_zip_files_raise(case):
    make, message = ZIPS[case]
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_bytes(make())
