"""Hostile pickles are refused in words, and run nothing."""

import os
import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from archived import FLOATS, STORAGE, TENSOR, pt, read, tensor_of
from cases import merge_cases
from minigrad.core.errors import DTypeError, FileFormatError
from needs import needs

needs("safetensors")


# --- hostile files ---


class Calls:
    """Pickled, it asks to call a function with arguments: the usual way to run something where a pickle is loaded."""

    def __init__(self, function, *arguments):
        self.told = function, arguments

    def __reduce__(self):
        return self.told


HUGE = b"\x8a\x09" + b"\xff" * 8 + b"\x00"  # 2**64 - 1
SHORT = STORAGE.replace(b"K\x04tQ", b"K\x03tQ")
HOSTILE = {
    "os.system": (pickle.dumps(Calls(os.system, "touch TRACE"), 2), "system', which is no part of a state dict"),
    "eval": (pickle.dumps(Calls(eval, "open('TRACE', 'w')"), 2), "eval', which is no part of"),
    "eval by a newer protocol": (pickle.dumps(Calls(eval, "open('TRACE', 'w')"), 4), "'builtins.eval', which is no"),
    "getattr": (pickle.dumps(Calls(getattr, "a", "upper"), 2), "getattr', which is"),
    "open": (pickle.dumps({"a": [Calls(open, "TRACE", "w")]}, 2), "open', which is no part of a state dict"),
    "nested reduce": (pickle.dumps(Calls(print, Calls(os.system, "touch TRACE")), 2), "print', which is no part of"),
    "a name with dots": (b"\x80\x04\x8c\x0ctorch._utils\x8c\x0fos.system.thing\x93.", "'torch._utils.os.system.thing'"),
    "a dotted name that meets a known one": (b"\x80\x04\x8c\x05torch\x8c\x19_utils._rebuild_tensor_v3\x93.", "_v3'"),
    "a name that is no text": (b"\x80\x04]\x8c\x01a\x93.", "asks for something by what is not a name"),
    "inst": (b"\x80\x02(S'touch TRACE'\nios\nsystem\n.", "instruction STRING, which state dicts"),
    "obj": (b"\x80\x02(cos\nsystem\no.", "asks for 'os.system'"),
    "newobj": (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "instruction NEWOBJ"),
    "ext": (b"\x80\x02\x82\x01.", "instruction EXT1"),
    "build of a function": (b"\x80\x02ccollections\nOrderedDict\n}b.", "takes a Named for a dict"),
    "reduce of a type of storage": (b"\x80\x02ctorch\nFloatStorage\nK\x01\x85R.", "calls what is not a function"),
    "reduce of a list": (b"\x80\x02](R.", "cut off or damaged"),
    "reduce without a tuple": (b"\x80\x02ccollections\nOrderedDict\n]R.", "calls what is not a function"),
    "too many arguments": (tensor_of(rest=b"\x89}}}}"), "not made of a storage, sizes and strides"),
    "too few arguments": (b"\x80\x02" + TENSOR + b")R.", "cut off or damaged: TypeError"),
    "a dict that is made of pairs": (b"\x80\x02ccollections\nOrderedDict\n]\x85R.", "not made as PyTorch's are"),
    "a text for a storage": (tensor_of(storage=b"X\x01\x00\x00\x00a"), "not made of a storage"),
    "a list of sizes": (tensor_of(size=b"]K\x04a"), "not made of a storage"),
    "a fraction as a size": (tensor_of(size=b"G@\x10\x00\x00\x00\x00\x00\x00\x85"), "not made of a storage"),
    "sizes below 0": (tensor_of(size=b"J\xff\xff\xff\xff\x85"), "has the sizes (-1,) and strides (1,)"),
    "an offset below 0": (tensor_of(offset=b"J\xff\xff\xff\xff"), "has the sizes (4,) and strides (1,)"),
    "strides below 0": (tensor_of(stride=b"J\xff\xff\xff\xff\x85"), "and strides (-1,)"),
    "more sizes than strides": (tensor_of(size=b"K\x02K\x02\x86"), "sizes (2, 2) and strides (1,)"),
    "more numbers than the storage": (tensor_of(size=b"K\x05\x85"), "from 0 on is more than its storage of 4 numbers"),
    "an offset beyond the storage": (tensor_of(offset=b"K\x01"), "from 1 on is more than its storage"),
    "a stride beyond the storage": (tensor_of(stride=b"K\x02\x85"), "is more than its storage of 4 numbers"),
    "sizes without end": (tensor_of(size=HUGE + b"\x85", stride=b"K\x00\x85"), "is more than its storage"),
    "a parameter of a dict": (b"\x80\x02ctorch._utils\n_rebuild_parameter\n}\x88}\x87R.", "not made of a tensor"),
    "a storage alone": (b"\x80\x02" + STORAGE + b".", "holds '_Storage' where a tensor would be"),
    "a function alone": (b"\x80\x02}K\x01ccollections\nOrderedDict\ns.", "holds 'OrderedDict' where a tensor would be"),
    "a storage of no type": (tensor_of(storage=STORAGE.replace(b"Float", b"Quint")), "'torch.QuintStorage'"),
    "a storage that is not there": (tensor_of(storage=STORAGE.replace(b"0", b"7")), "'data/7' is missing"),
    "a storage outside": (tensor_of(storage=STORAGE.replace(b"\x010", b"\x02..")), "'data/..' is missing"),
    "a storage that lies": (tensor_of(storage=SHORT), "has 16 bytes, not 3 numbers of type F32"),
    "a storage of two types": (
        b"\x80\x02]" + tensor_of()[2:-1] + b"a" + STORAGE.replace(b"Float", b"Int") + b"a.",
        "storage '0' is said to be two different things",
    ),
    "an id that is no storage": (b"\x80\x02X\x07\x00\x00\x00storageQ.", "asks for something that is not a storage"),
    "a huge memo": (b"\x80\x02}r\xff\xff\xff\xff0.", "instruction POP"),
    "a memo that was never written": (b"\x80\x02h\x05.", "cut off or damaged: KeyError"),
    "a stack with nothing on it": (b"\x80\x02s.", "cut off or damaged: IndexError"),
    "a tuple below the stack": (b"\x80\x02K\x01\x87.", "cut off or damaged: IndexError"),
    "a mark that was never made": (b"\x80\x02K\x01t.", "cut off or damaged: IndexError"),
    "two things left": (b"\x80\x02K\x01K\x02.", "ends with more or less than one thing"),
    "a key and no value": (b"\x80\x02}(K\x01u.", "cut off or damaged: ValueError"),
    "a key that has any hash one likes": (b"\x80\x02}" + HUGE + b"K\x01s.", "a whole number beyond 64 bits as a key"),
    "a tuple as a key": (b"\x80\x02}K\x01\x85K\x01s.", "a dict in this file has a tuple as a key"),
    "a text of 2**62 bytes": (b"\x80\x04\x8d" + (2**62).to_bytes(8, "little") + b"a.", "cut off or damaged"),
    "a bytearray of 2**62 bytes": (b"\x80\x05\x96" + (2**62).to_bytes(8, "little") + b"a.", "cut off or damaged"),
    "no end": (b"\x80\x02}", "cut off or damaged: ValueError"),
    "no instruction": (b"\x80\x02\xff.", "cut off or damaged: ValueError"),
    "nothing": (b"", "cut off or damaged: ValueError"),
}  # fmt: skip


@merge_cases
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_pickle_is_refused_in_words_and_runs_nothing(case, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pickled, said = HOSTILE[case]
    with pytest.raises(FileFormatError, match=re.escape(said)):
        read(pt(pickled, n0=FLOATS))
    assert (os.listdir(tmp_path), capfd.readouterr().out) == ([], "")


def test_the_pieces_that_hostile_pickles_are_made_of_make_a_tensor_where_nothing_is_wrong():
    assert read(pt(tensor_of(), n0=FLOATS)).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert read(pt(tensor_of(size=b"K\x02K\x02\x86", stride=b"K\x02K\x01\x86"), n0=FLOATS)).tolist() == [[1.0, 1.0]] * 2
    assert read(pt(tensor_of(offset=b"K\x03", size=b")", stride=b")"), n0=FLOATS)).item() == 1.0
    assert read(pt(tensor_of(size=b"K\x00K\x03\x86", stride=b"K\x03K\x01\x86"), n0=FLOATS)).shape == (0, 3)


def test_tuples_that_double_a_hundred_times_take_no_time_to_refuse():
    doubled = b"\x80\x02]q\x00" + b"".join(b"h%c\x86q%c" % (k, k + 1) for k in range(100))
    assert len(read(pt(doubled + b"."))) == 2
    with pytest.raises(FileFormatError, match="takes a tuple for a dict"):
        read(pt(doubled + b"}b."))


# --- damaged files ---


@settings(max_examples=300)
@given(
    place=st.integers(0, 400),
    cut=st.integers(0, 8),
    put=st.binary(max_size=12) | st.sampled_from([TENSOR, STORAGE, b"cos\nsystem\n", b"\x81", b"R", b"b", b"Q"]),
)
def test_a_pickle_in_which_anything_is_put_is_refused_or_makes_plain_things(place, cut, put):
    pickled = tensor_of()
    place %= len(pickled)
    try:
        back = read(pt(pickled[:place] + put + pickled[place + cut :], n0=FLOATS), widen=True)
    except (FileFormatError, DTypeError):
        return
    assert type(back) in (mg.Tensor, dict, list, tuple, int, float, str, bool, type(None))
