"""Invalid trees are rejected, even with a valid checksum."""

import hashlib
import json

import pytest

from checkpoint_files import load_bytes, save_bytes
from minigrad.core.errors import DTypeError, FileFormatError
from needs import needs

needs("safetensors")


def file_with_tree(tree, shape=(0,), **about):
    """Return a file with the given tree and its valid checksum, as an attacker could create."""
    data = {"minigrad": "1", "tree": tree, **about}
    entry = json.dumps(["w", "F32", list(shape)]).encode()
    data["sha256"] = hashlib.sha256(data["tree"].encode() + entry).hexdigest()
    data = {name: text for name, text in data.items() if text}
    header = {"__metadata__": data, "w": {"dtype": "F32", "shape": list(shape), "data_offsets": [0, 0]}}
    return len(text := json.dumps(header).encode()).to_bytes(8, "little") + text


TREES = {
    "no tree": "",
    "no JSON": "{",
    "deeply nested": "[" * 100_000,
    "a number of any length": "1" * 5000,
    "a float that overflows": '{"$float": 1' + "0" * 400 + "}",
    "a key with a chosen hash": json.dumps({"$dict": [[2**63, 0]]}),
    "a missing tensor": '{"$tensor": "a"}',
}


@pytest.mark.parametrize("case", TREES)
def test_invalid_trees_with_valid_checksums_raise(case):
    with pytest.raises(FileFormatError, match="corrupt"):
        load_bytes(file_with_tree(TREES[case]))


def test_too_many_dimensions_raise():
    assert load_bytes(file_with_tree('{"$tensor": "w"}', (0, 3))).shape == (0, 3)
    with pytest.raises(FileFormatError, match="maximum supported dimension"):
        load_bytes(file_with_tree('{"$tensor": "w"}', (0,) * 65))


def test_keys_beyond_64_bits_raise():
    assert load_bytes(save_bytes({-(2**63): 1})) == {-(2**63): 1}
    with pytest.raises(
        DTypeError, match="has the key 9223372036854775808; supported keys are strings, and numbers of up to 64"
    ):
        save_bytes({2**63: 1})
