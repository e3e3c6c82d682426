"""PyTorch's zip format: state dicts load without PyTorch, and other zip files are rejected."""

import io
import re
import zipfile

import pytest

import minigrad as mg
from archived import FLOATS, changed, of_torch, pt, read, tensor_of
from minigrad.core.errors import DTypeError, FileFormatError
from needs import needs

needs("safetensors")


# --- files written by PyTorch ---


@pytest.mark.parity
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_state_dicts_of_pytorch_are_read_without_it(torch, protocol):
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
    back = read(of_torch(torch, obj, pickle_protocol=protocol), map_location="numpy")
    assert list(back["model"]) == list(obj["model"])

    def plain(x):
        if isinstance(x, torch.Tensor | mg.Tensor):
            return x.tolist(), tuple(x.shape), str(x.dtype).split(".")[-1]
        if isinstance(x, dict):
            return {key: plain(one) for key, one in x.items()}
        return type(x)(map(plain, x)) if isinstance(x, list | tuple) else x

    assert plain(back) == plain(obj)


@pytest.mark.parity
def test_what_pytorch_notes_beside_the_numbers_of_a_tensor_is_read_or_refused(torch):
    z = torch.tensor([1 + 2j, 3 - 4j])
    negated = z.conj().imag
    kept = {"x": negated, "more": [negated, negated[1:], z.imag, z.conj().real], "empty": negated[:0]}
    found = read(of_torch(torch, kept))
    assert found["x"].tolist() == [-2.0, 4.0]
    assert [x.tolist() for x in found["more"]] == [[-2.0, 4.0], [4.0], [2.0, -4.0], [1.0, 3.0]]
    assert found["empty"].shape == (0,)
    needing = {
        "leaf": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "plain": torch.ones(2),
    }
    found = read(of_torch(torch, needing))
    assert [(x.requires_grad, x.is_leaf) for x in found.values()] == [
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
            mg.io.archive._tensor(mg.io.archive._Storage("F32", mg.ones(2)), 0, (2,), (1,), False, {}, flags)


@pytest.mark.parity
def test_tensors_that_share_a_storage_in_the_file_share_it_here(torch):
    whole = torch.arange(6.0)
    back = read(of_torch(torch, {"whole": whole, "part": whole[2:4], "turned": whole.view(2, 3).T}))
    back["part"].fill_(-1.0)
    assert back["whole"].tolist() == [0.0, 1.0, -1.0, -1.0, 4.0, 5.0]
    assert back["turned"].tolist() == [[0.0, -1.0], [1.0, 4.0], [-1.0, 5.0]]


NARROW = ["float16", "bfloat16", "int8", "int16"]


@pytest.mark.parity
@pytest.mark.parametrize("kind", [*NARROW, "uint16", "uint32"])
def test_types_that_are_not_here_are_refused_or_read_as_the_type_that_holds_them_all(torch, kind):
    from safetensors.torch import save

    x = torch.tensor([0, 1, 100, 127]).to(getattr(torch, kind))
    if kind in ("float16", "bfloat16"):
        x = torch.tensor([1.5, -0.0, float("inf"), 1e-5, 65280.0, float("nan")]).to(getattr(torch, kind))
    files = [save({"x": x}), *([of_torch(torch, {"x": x})] if kind in NARROW else [])]
    wider = {"float16": "float32", "bfloat16": "float32", "uint32": "int64"}.get(kind, "int32")
    for data in files:
        with pytest.raises(DTypeError, match=f"has dtype {kind}, which is not supported.\n.*widen=True.* to {wider}"):
            read(data)
        back = read(data, widen=True)["x"]
        assert (back.dtype.name, repr(back.tolist())) == (wider, repr(x.to(getattr(torch, wider)).tolist()))


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["complex64", "float8_e4m3fn", "uint64"])
def test_types_that_no_type_here_can_hold_are_refused(torch, kind):
    from safetensors.torch import save

    x = torch.ones(2).to(getattr(torch, kind))
    with pytest.raises(DTypeError, match=r"'x' has dtype .*, which is not supported"):
        read(save({"x": x}), widen=True)
    with pytest.raises(FileFormatError, match="is not part of a state dict; no code was run"):
        read(of_torch(torch, {"x": x}), widen=True)


@pytest.mark.parity
def test_models_old_formats_and_programs_are_refused_with_what_to_write(torch):
    with pytest.raises(
        FileFormatError, match=r"unsupported global 'torch.nn.modules.linear.Linear'.*\n.*model.state_dict\(\), path"
    ):
        read(of_torch(torch, torch.nn.Linear(1, 1)))
    with pytest.raises(
        FileFormatError,
        match=r"of PyTorch before 1.6.*\n.*torch.save\(torch.load\(old, weights_only=True\), new\)",
    ):
        read(of_torch(torch, {"a": torch.ones(2)}, _use_new_zipfile_serialization=False))
    with pytest.raises(
        FileFormatError, match=r"out of bounds for storage of size 1\.\n  If it was expanded, call x\.contiguous"
    ):
        read(of_torch(torch, {"a": torch.ones(1).expand(5)}))


@pytest.mark.parity
def test_numbers_of_a_machine_with_the_other_byte_order_are_read(torch):
    data = of_torch(
        torch,
        {
            "f": torch.tensor([1.5, -2.0]),
            "h": torch.tensor([1.5], dtype=torch.bfloat16),
            "b": torch.tensor([True, False]),
        },
    )
    turned = changed(
        data, {"byteorder": lambda _: b"big", "data/0": lambda x: swapped(x, 4), "data/1": lambda x: swapped(x, 2)}
    )
    back = read(turned, widen=True)
    assert {name: x.tolist() for name, x in back.items()} == {"f": [1.5, -2.0], "h": [1.5], "b": [True, False]}


def swapped(data, size):
    return b"".join(data[k : k + size][::-1] for k in range(0, len(data), size))


# --- hostile files ---


ZIPS = {
    "a bomb": (
        lambda: changed(pt(tensor_of(), n0=b"\0" * 2**24), {}, zipfile.ZIP_DEFLATED),
        "is compressed or encrypted",
    ),
    "wrong sizes": (lambda: lying(), "declares more than its size"),
    "two pickles": (lambda: joined("a/data.pkl", "b/data.pkl"), "was not written by torch.save"),
    "TorchScript": (
        lambda: joined("a/data.pkl", "a/constants.pkl"),
        "was not written by torch.save (TorchScript archives",
    ),
    "images": (lambda: joined("a/picture.png"), "was not written by torch.save"),
    "duplicate names": (lambda: joined("a/data.pkl", "a/data.pkl"), "declares more than its size"),
}


def lying():
    """Return a zip archive whose central directory declares an entry of 4 GB."""
    data = bytearray(pt(tensor_of(), n0=FLOATS))
    place = data.rindex(b"PK\x01\x02")
    data[place + 20 : place + 28] = b"\xf0\xff\xff\xff" * 2
    return bytes(data)


def joined(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, b"\x80\x02}.")
    return out.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", ZIPS)
def test_a_zip_file_that_is_not_pytorchs_is_refused_in_words(case):
    make, said = ZIPS[case]
    with pytest.raises(FileFormatError, match=re.escape(said)):
        read(make())
