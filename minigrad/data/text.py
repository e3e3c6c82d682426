"""Text utilities: read UTF-8 files, and encode characters as indices."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from minigrad.core.dtypes import int64
from minigrad.core.errors import ArgumentError, FileFormatError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import tensor

__all__ = ["Vocabulary", "read_text"]


def read_text(path: str | PathLike[str]) -> str:
    """Read a UTF-8 file, converting line breaks to ``\\n``. Raises FileFormatError if decoding fails."""
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path}: cannot decode as UTF-8: byte {error.start} is {data[error.start]:#04x}.\n"
            "  Convert the file to UTF-8, for example with an editor."
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Vocabulary:
    """Character-level vocabulary: the distinct characters of a text, sorted and indexed from 0.

    >>> words = Vocabulary("banana")
    >>> words.characters, words.encode("nab"), words.decode([1, 0, 2])
    ('abn', tensor([2, 0, 1]), 'ban')
    """

    def __init__(self, text: str | Iterable[str]) -> None:
        self.characters = "".join(sorted(set("".join(text))))
        if not self.characters:
            raise ArgumentError("Vocabulary: expected a non-empty text.")
        self._index = {character: k for k, character in enumerate(self.characters)}

    def encode(self, text: str, device: str | None = None) -> Tensor:
        """Encode `text` as character indices, int64 of shape (n,). Raises ArgumentError for unknown characters."""
        try:
            return tensor([self._index[character] for character in text], dtype=int64, device=device)
        except KeyError as error:
            position = text.index(error.args[0])
            raise ArgumentError(
                f"encode: character {error.args[0]!r} at position {position} is not in this vocabulary of size "
                f"{len(self)}."
            ) from None

    def decode(self, numbers: Tensor | Iterable[Any]) -> str:
        """Decode a 1-D sequence of indices to a string. Raises ShapeError for other shapes or an index out of range."""
        index_list = numbers.tolist() if isinstance(numbers, Tensor) else [int(index) for index in numbers]
        if not isinstance(index_list, list) or any(isinstance(index, list) for index in index_list):
            raise ShapeError("decode: expected a 1-D sequence of indices.\n  Write [v.decode(row) for row in x].")
        if invalid := [index for index in index_list if not 0 <= index < len(self)]:
            raise ShapeError(f"decode: index {invalid[0]} is out of range: valid indices are 0 to {len(self) - 1}.")
        return "".join([self.characters[int(index)] for index in index_list])

    def __len__(self) -> int:
        return len(self.characters)

    def __contains__(self, character: str) -> bool:
        return character in self._index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.characters == other.characters

    def __hash__(self) -> int:
        return hash(self.characters)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} characters: {self.characters!r})"
