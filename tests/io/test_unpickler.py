"""Malicious pickles are rejected with a message, and no code runs."""

import os
import pickle
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import minigrad as mg
from cases import merge_cases
from checkpoint_files import FLOATS, STORAGE, TENSOR, load_bytes, pickle_tensor, torch_file
from minigrad.core.errors import DTypeError, FileFormatError
from needs import needs

needs("safetensors")


# --- malicious files ---


class CallsFunction:
    """Object that calls a function when unpickled, the usual way to execute code with a pickle."""

    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


HUGE = b"\x8a\x09" + b"\xff" * 8 + b"\x00"  # 2**64 - 1
SHORT = STORAGE.replace(b"K\x04tQ", b"K\x03tQ")
MALICIOUS = {
    "os.system": (pickle.dumps(CallsFunction(os.system, "touch TRACE"), 2), "system', which is not part of a"),
    "eval": (pickle.dumps(CallsFunction(eval, "open('TRACE', 'w')"), 2), "eval', which is not part of"),
    "eval by a newer protocol": (pickle.dumps(CallsFunction(eval, "open('TRACE', 'w')"), 4), "'builtins.eval', which"),
    "getattr": (pickle.dumps(CallsFunction(getattr, "a", "upper"), 2), "getattr', which is not"),
    "open": (pickle.dumps({"a": [CallsFunction(open, "TRACE", "w")]}, 2), "open', which is not part of a state dict"),
    "nested reduce": (pickle.dumps(CallsFunction(print, CallsFunction(os.system, "touch TRACE")), 2), "print', which"),
    "a name with dots": (b"\x80\x04\x8c\x0ctorch._utils\x8c\x0fos.system.thing\x93.", "'torch._utils.os.system.thing'"),
    "a dotted name like an allowed one": (b"\x80\x04\x8c\x05torch\x8c\x19_utils._rebuild_tensor_v3\x93.", "_v3'"),
    "a name that is not a string": (b"\x80\x04]\x8c\x01a\x93.", "STACK_GLOBAL requires strings"),
    "inst": (b"\x80\x02(S'touch TRACE'\nios\nsystem\n.", "opcode STRING, which state dicts"),
    "obj": (b"\x80\x02(cos\nsystem\no.", "unsupported global 'os.system'"),
    "newobj": (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "opcode NEWOBJ"),
    "ext": (b"\x80\x02\x82\x01.", "opcode EXT1"),
    "build of a function": (b"\x80\x02ccollections\nOrderedDict\n}b.", "expected a dict, got"),
    "reduce of a storage type": (b"\x80\x02ctorch\nFloatStorage\nK\x01\x85R.", "calls an unsupported function"),
    "reduce of a list": (b"\x80\x02](R.", "truncated or corrupt"),
    "reduce without a tuple": (b"\x80\x02ccollections\nOrderedDict\n]R.", "calls an unsupported function"),
    "too many arguments": (pickle_tensor(rest=b"\x89}}}}"), "expected a storage, an offset, sizes and strides"),
    "too few arguments": (b"\x80\x02" + TENSOR + b")R.", "truncated or corrupt: TypeError"),
    "a dict with arguments": (b"\x80\x02ccollections\nOrderedDict\n]\x85R.", "has constructor arguments"),
    "a string for a storage": (pickle_tensor(storage=b"X\x01\x00\x00\x00a"), "expected a storage"),
    "a list of sizes": (pickle_tensor(size=b"]K\x04a"), "expected a storage"),
    "a float as a size": (pickle_tensor(size=b"G@\x10\x00\x00\x00\x00\x00\x00\x85"), "expected a storage"),
    "sizes below 0": (pickle_tensor(size=b"J\xff\xff\xff\xff\x85"), "sizes (-1,) and strides (1,)"),
    "an offset below 0": (pickle_tensor(offset=b"J\xff\xff\xff\xff"), "sizes (4,) and strides (1,)"),
    "strides below 0": (pickle_tensor(stride=b"J\xff\xff\xff\xff\x85"), "and strides (-1,)"),
    "more sizes than strides": (pickle_tensor(size=b"K\x02K\x02\x86"), "sizes (2, 2) and strides (1,)"),
    "more elements than the storage": (pickle_tensor(size=b"K\x05\x85"), "offset 0 is out of bounds for storage"),
    "an offset beyond the storage": (pickle_tensor(offset=b"K\x01"), "offset 1 is out of bounds for storage"),
    "a stride beyond the storage": (pickle_tensor(stride=b"K\x02\x85"), "out of bounds for storage of size 4"),
    "huge sizes": (pickle_tensor(size=HUGE + b"\x85", stride=b"K\x00\x85"), "out of bounds for storage"),
    "a parameter of a dict": (b"\x80\x02ctorch._utils\n_rebuild_parameter\n}\x88}\x87R.", "invalid parameter"),
    "a storage alone": (b"\x80\x02" + STORAGE + b".", "this file contains '_Storage'"),
    "a function alone": (b"\x80\x02}K\x01ccollections\nOrderedDict\ns.", "this file contains 'OrderedDict'"),
    "a storage of unknown type": (pickle_tensor(storage=STORAGE.replace(b"Float", b"Quint")), "'torch.QuintStorage'"),
    "a missing storage": (pickle_tensor(storage=STORAGE.replace(b"0", b"7")), "failed finding file 'data/7'"),
    "a storage outside": (pickle_tensor(storage=STORAGE.replace(b"\x010", b"\x02..")), "failed finding file 'data/..'"),
    "a storage of wrong length": (pickle_tensor(storage=SHORT), "has 16 bytes, but expected 3 elements of F32"),
    "a storage of two types": (
        b"\x80\x02]" + pickle_tensor()[2:-1] + b"a" + STORAGE.replace(b"Float", b"Int") + b"a.",
        "storage '0' is declared with two different types or lengths",
    ),
    "an id of no storage": (b"\x80\x02X\x07\x00\x00\x00storageQ.", "unsupported persistent id"),
    "a huge memo": (b"\x80\x02}r\xff\xff\xff\xff0.", "opcode POP"),
    "a memo that was never written": (b"\x80\x02h\x05.", "truncated or corrupt: KeyError"),
    "an empty stack": (b"\x80\x02s.", "truncated or corrupt: IndexError"),
    "a tuple below the stack": (b"\x80\x02K\x01\x87.", "truncated or corrupt: IndexError"),
    "a missing mark": (b"\x80\x02K\x01t.", "truncated or corrupt: IndexError"),
    "two objects left": (b"\x80\x02K\x01K\x02.", "does not end with exactly one object"),
    "a key and no value": (b"\x80\x02}(K\x01u.", "truncated or corrupt: ValueError"),
    "a key with a chosen hash": (b"\x80\x02}" + HUGE + b"K\x01s.", "an integer key that does not fit in 64 bits"),
    "a tuple as a key": (b"\x80\x02}K\x01\x85K\x01s.", "a dict in this file has a tuple as a key"),
    "a string of 2**62 bytes": (b"\x80\x04\x8d" + (2**62).to_bytes(8, "little") + b"a.", "truncated or corrupt"),
    "a bytearray of 2**62 bytes": (b"\x80\x05\x96" + (2**62).to_bytes(8, "little") + b"a.", "truncated or corrupt"),
    "no STOP": (b"\x80\x02}", "truncated or corrupt: ValueError"),
    "unknown opcode": (b"\x80\x02\xff.", "truncated or corrupt: ValueError"),
    "nothing": (b"", "truncated or corrupt: ValueError"),
}  # fmt: skip


@merge_cases
@pytest.mark.parametrize("case", MALICIOUS)
def test_malicious_pickles_raise_and_run_nothing(case, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pickled, message = MALICIOUS[case]
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_bytes(torch_file(pickled, n0=FLOATS))
    assert (os.listdir(tmp_path), capfd.readouterr().out) == ([], "")


def test_the_building_blocks_of_malicious_pickles_form_a_valid_tensor():
    assert load_bytes(torch_file(pickle_tensor(), n0=FLOATS)).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert (
        load_bytes(torch_file(pickle_tensor(size=b"K\x02K\x02\x86", stride=b"K\x02K\x01\x86"), n0=FLOATS)).tolist()
        == [[1.0, 1.0]] * 2
    )
    assert load_bytes(torch_file(pickle_tensor(offset=b"K\x03", size=b")", stride=b")"), n0=FLOATS)).item() == 1.0
    assert load_bytes(torch_file(pickle_tensor(size=b"K\x00K\x03\x86", stride=b"K\x03K\x01\x86"), n0=FLOATS)).shape == (
        0,
        3,
    )


def test_exponentially_nested_tuples_raise_quickly():
    doubled = b"\x80\x02]q\x00" + b"".join(b"h%c\x86q%c" % (k, k + 1) for k in range(100))
    assert len(load_bytes(torch_file(doubled + b"."))) == 2
    with pytest.raises(FileFormatError, match="expected a dict, got tuple"):
        load_bytes(torch_file(doubled + b"}b."))


# --- corrupt files ---


@settings(max_examples=300)
@example(offset=3, cut=1, put=b"\\")  # an invalid escape sequence
@given(
    offset=st.integers(0, 400),
    cut=st.integers(0, 8),
    put=st.binary(max_size=12) | st.sampled_from([TENSOR, STORAGE, b"cos\nsystem\n", b"\x81", b"R", b"b", b"Q"]),
)
def test_mutated_pickles_raise_or_give_plain_data(offset, cut, put):
    pickled = pickle_tensor()
    offset %= len(pickled)
    try:
        back = load_bytes(torch_file(pickled[:offset] + put + pickled[offset + cut :], n0=FLOATS), widen=True)
    except (FileFormatError, DTypeError):
        return
    assert type(back) in (mg.Tensor, dict, list, tuple, int, float, str, bool, type(None))
