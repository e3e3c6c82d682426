"""Texts as numbers: a file of UTF-8, and the characters of a text as a vocabulary."""

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
    """A file of UTF-8 as a text, with line breaks as ``\\n``. Raises FileFormatError for a file that is not text."""
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path}: it is not text in UTF-8: byte {error.start} is {data[error.start]:#04x}.\n"
            "  Write it again as UTF-8, with an editor for example."
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Vocabulary:
    """The different characters of a text, sorted, each with a number from 0.

    >>> words = Vocabulary("banana")
    >>> words.characters, words.encode("nab"), words.decode([1, 0, 2])
    ('abn', tensor([2, 0, 1]), 'ban')
    """

    def __init__(self, text: str | Iterable[str]) -> None:
        self.characters = "".join(sorted(set("".join(text))))
        if not self.characters:
            raise ArgumentError("Vocabulary: a text without characters has none to count.")
        self._number = {character: k for k, character in enumerate(self.characters)}

    def encode(self, text: str, device: str | None = None) -> Tensor:
        """The numbers of the characters of `text`, (n,) of int64. Raises ArgumentError for one that is not known."""
        try:
            return tensor([self._number[character] for character in text], dtype=int64, device=device)
        except KeyError as error:
            at = text.index(error.args[0])
            raise ArgumentError(
                f"encode: {error.args[0]!r}, at place {at}, is none of the {len(self)} characters of this vocabulary."
            ) from None

    def decode(self, numbers: Tensor | Iterable[Any]) -> str:
        """The text of a row of numbers. Raises ShapeError for a number that stands for no character, or for no row."""
        row = numbers.tolist() if isinstance(numbers, Tensor) else [int(number) for number in numbers]
        if not isinstance(row, list) or any(isinstance(number, list) for number in row):
            raise ShapeError("decode: it takes one row of numbers.\n  Write [v.decode(row) for row in x].")
        if wrong := [number for number in row if not 0 <= number < len(self)]:
            raise ShapeError(f"decode: no character has the number {wrong[0]}; they are from 0 to {len(self) - 1}.")
        return "".join([self.characters[int(number)] for number in row])

    def __len__(self) -> int:
        return len(self.characters)

    def __contains__(self, character: str) -> bool:
        return character in self._number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.characters == other.characters

    def __hash__(self) -> int:
        return hash(self.characters)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} characters: {self.characters!r})"
