"""Trees of saved things that no save wrote are refused, though their checksums are right."""

import hashlib
import json

import pytest

from archived import read, written
from minigrad.core.errors import DTypeError, FileFormatError
from needs import needs

needs("safetensors")


def ours(tree, shape=(0,), **about):
    """A file with a tree, and with the checksum of that: whoever wants to can compute it."""
    data = {"minigrad": "1", "tree": tree, **about}
    entry = json.dumps(["w", "F32", list(shape)]).encode()
    data["sha256"] = hashlib.sha256(data["tree"].encode() + entry).hexdigest()
    data = {name: text for name, text in data.items() if text}
    header = {"__metadata__": data, "w": {"dtype": "F32", "shape": list(shape), "data_offsets": [0, 0]}}
    return len(text := json.dumps(header).encode()).to_bytes(8, "little") + text


TREES = {
    "no tree": "",
    "no JSON": "{",
    "nested without end": "[" * 100_000,
    "a number of any length": "1" * 5000,
    "a float beyond all": '{"$float": 1' + "0" * 400 + "}",
    "a key that has any hash one likes": json.dumps({"$dict": [[2**63, 0]]}),
    "a tensor that is not there": '{"$tensor": "a"}',
}


@pytest.mark.parametrize("case", TREES)
def test_a_tree_that_goes_with_its_checksum_and_means_nothing_is_refused(case):
    with pytest.raises(FileFormatError, match="damaged"):
        read(ours(TREES[case]))


def test_more_dimensions_than_an_array_can_have_are_refused():
    assert read(ours('{"$tensor": "w"}', (0, 3))).shape == (0, 3)
    with pytest.raises(FileFormatError, match="maximum supported dimension"):
        read(ours('{"$tensor": "w"}', (0,) * 65))


def test_a_key_that_could_not_be_read_again_is_not_saved():
    assert read(written({-(2**63): 1})) == {-(2**63): 1}
    with pytest.raises(DTypeError, match="has the key 9223372036854775808; keys are texts, or numbers of at most 64"):
        written({2**63: 1})
