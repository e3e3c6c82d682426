"""Text: encoding characters as indices, decoding them, and reading files."""

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, FileFormatError, ShapeError
from minigrad.data import Vocabulary, corpus, read_text


def test_text_round_trips():
    words = Vocabulary(corpus())
    tokens = words.encode(corpus()[:2000])
    assert (tokens.shape, tokens.dtype) == ((2000,), mg.int64)
    assert words.decode(tokens) == corpus()[:2000]
    assert tokens.max().item() < len(words) == len(set(corpus()))


def test_characters_are_indexed_in_order():
    words = Vocabulary(["ba", "cé"])
    assert words.characters == "abcé"
    assert words.encode("éa", device="numpy").tolist() == [3, 0]
    assert ("c" in words, "x" in words, len(words)) == (True, False, 4)
    assert words == Vocabulary("éabc") != Vocabulary("abc")
    assert repr(words) == "Vocabulary(4 characters: 'abcé')"


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        (
            lambda v: v.encode("abx"),
            ArgumentError,
            "encode: character 'x' at position 2 is not in this vocabulary of size 2",
        ),
        (lambda v: v.decode([0, 2]), ShapeError, "index 2 is out of range: valid indices are 0 to 1"),
        (lambda v: v.decode([-1]), ShapeError, "index -1 is out of range"),
        (lambda v: v.decode(mg.tensor([[0]])), ShapeError, "expected a 1-D sequence of indices"),
        (lambda v: Vocabulary(""), ArgumentError, "expected a non-empty text"),
    ],
)
def test_unknown_characters_and_indices_raise(act, kind, message):
    with pytest.raises(kind, match=message):
        act(Vocabulary("ab"))


def test_a_file_is_read_as_utf8_with_plain_line_breaks(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffé\r\nb\rc\n".encode())
    assert read_text(path) == "é\nb\nc\n"
    path.write_bytes(b"ab\xff")
    with pytest.raises(FileFormatError, match=r"cannot decode as UTF-8: byte 2 is 0xff"):
        read_text(path)
