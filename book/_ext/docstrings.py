"""Conversion of docstrings, which are plain text with code in backticks, to reStructuredText for Sphinx."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

__all__ = ["EMPHASIS", "first", "restructured"]

_CODE = re.compile(r"(``.+?``|(?<![\w:`])`[^`]+`(?!`))", re.DOTALL)
EMPHASIS = r"(?<![\w*])(\*[A-Za-z][\w ]*\*)(?![\w*])"
_SPECIAL = re.compile(EMPHASIS + r"|\\|\*|\||(?<=\w)_(?!\w)|(?<!\w)_(?=\w)")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+\.)\s")
_ERROR = re.compile(r"(?<![\w.])[A-Z]\w*Error\b")

Link = Callable[[str], str | None]


def restructured(lines: Iterable[str], link: Link) -> list[str]:
    """Convert the lines of a docstring to reStructuredText.

    Markup outside code is escaped. An indented block after a colon is code, and so is text in backticks, which becomes
    a link if `link` returns a target for it.
    """
    out: list[str] = []
    paragraph: list[str] = []
    kept = False  # in a verbatim block: an example, code or a table

    def flush() -> None:
        out.extend(_plain("\n".join(paragraph), link).split("\n") if paragraph else [])
        paragraph.clear()

    for line in lines:
        if kept and line.strip() and not line.startswith(" ") and not _starts_example(line) and not _of_example(out):
            kept = False
        if not line.strip():
            flush()
            kept = kept and not _of_example(out)
            out.append(line)
        elif kept:
            out.append(line)
        elif _starts_example(line):
            flush()
            kept = True
            out.append(line)
        elif line.startswith("    ") and not paragraph and _introduced(out):
            kept = True
            _as_code(out)
            out.append(line)
        else:
            paragraph.append(line)
    flush()
    return out


def _starts_example(line: str) -> bool:
    return line.lstrip().startswith(">>> ")


def _of_example(out: list[str]) -> bool:
    """Return whether the last block of `out` is a doctest, which an empty line ends."""
    for line in reversed(out):
        if not line.strip():
            return False
        if _starts_example(line):
            return True
    return False


def _introduced(out: list[str]) -> bool:
    """Return whether the block that follows `out` comes after a line that ends in a colon."""
    said = [line for line in out[-2:] if line.strip()]
    return len(out) > 1 and not out[-1].strip() and bool(said) and said[-1].rstrip().endswith(":")


def _as_code(out: list[str]) -> None:
    out[-2] = f"{out[-2].rstrip()}:"


def _plain(text: str, link: Link) -> str:
    parts = _CODE.split(text)
    return "".join(_code(part, link) if k % 2 else _escaped(part, link) for k, part in enumerate(parts))


def _escaped(text: str, link: Link) -> str:
    rows = []
    for row in text.split("\n"):
        bullet = _BULLET.match(row)
        start = bullet.end() if bullet else 0
        said = _SPECIAL.sub(lambda match: match[1] or f"\\{match[0]}", row[start:])
        rows.append(row[:start] + _ERROR.sub(lambda match: _error(match[0], link), said))
    return "\n".join(rows)


def _error(name: str, link: Link) -> str:
    target = link(f"errors.{name}")
    return f":py:obj:`{name} <{target}>`" if target else name


def _code(part: str, link: Link) -> str:
    inside = " ".join(part.strip("`").split())
    target = link(inside) if not part.startswith("``") else None
    return f":py:obj:`{inside} <{target}>`" if target else f"``{inside}``"


def first(text: str) -> str:
    """Return the first paragraph of a docstring."""
    return text.strip().partition("\n\n")[0]
