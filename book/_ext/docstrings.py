"""Conversion of docstrings, which are plain text with code in backticks, to reStructuredText for Sphinx."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

__all__ = ["EMPHASIS", "first_paragraph", "to_rst"]

_CODE = re.compile(r"(``.+?``|(?<![\w:`])`[^`]+`(?!`))", re.DOTALL)
EMPHASIS = r"(?<![\w*])(\*[A-Za-z][\w ]*\*)(?![\w*])"
_SPECIAL = re.compile(EMPHASIS + r"|\\|\*|\||(?<=\w)_(?!\w)|(?<!\w)_(?=\w)")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+\.)\s")
_ERROR = re.compile(r"(?<![\w.])[A-Z]\w*Error\b")

Link = Callable[[str], str | None]


def to_rst(lines: Iterable[str], link: Link) -> list[str]:
    """Convert the lines of a docstring to reStructuredText.

    Markup outside code is escaped. An indented block after a colon is code, and so is text in backticks, which becomes
    a link if `link` returns a target for it.
    """
    lines_out: list[str] = []
    paragraph: list[str] = []
    verbatim = False  # in a verbatim block: an example, code or a table

    def flush() -> None:
        lines_out.extend(_convert_markup("\n".join(paragraph), link).split("\n") if paragraph else [])
        paragraph.clear()

    for line in lines:
        if (
            verbatim
            and line.strip()
            and not line.startswith(" ")
            and not _starts_example(line)
            and not _ends_in_example(lines_out)
        ):
            verbatim = False
        if not line.strip():
            flush()
            verbatim = verbatim and not _ends_in_example(lines_out)
            lines_out.append(line)
        elif verbatim:
            lines_out.append(line)
        elif _starts_example(line):
            flush()
            verbatim = True
            lines_out.append(line)
        elif line.startswith("    ") and not paragraph and _follows_colon(lines_out):
            verbatim = True
            _mark_as_code(lines_out)
            lines_out.append(line)
        else:
            paragraph.append(line)
    flush()
    return lines_out


def _starts_example(line: str) -> bool:
    return line.lstrip().startswith(">>> ")


def _ends_in_example(out: list[str]) -> bool:
    """Return whether the last block of `lines_out` is a doctest, which an empty line ends."""
    for line in reversed(out):
        if not line.strip():
            return False
        if _starts_example(line):
            return True
    return False


def _follows_colon(out: list[str]) -> bool:
    """Return whether the block that follows `lines_out` comes after a line that ends in a colon."""
    preceding = [line for line in out[-2:] if line.strip()]
    return len(out) > 1 and not out[-1].strip() and bool(preceding) and preceding[-1].rstrip().endswith(":")


def _mark_as_code(out: list[str]) -> None:
    out[-2] = f"{out[-2].rstrip()}:"


def _convert_markup(text: str, link: Link) -> str:
    parts = _CODE.split(text)
    return "".join(_convert_code(part, link) if k % 2 else _escape_markup(part, link) for k, part in enumerate(parts))


def _escape_markup(text: str, link: Link) -> str:
    rows = []
    for row in text.split("\n"):
        bullet = _BULLET.match(row)
        start = bullet.end() if bullet else 0
        escaped = _SPECIAL.sub(lambda match: match[1] or f"\\{match[0]}", row[start:])
        rows.append(row[:start] + _ERROR.sub(lambda match: _link_error(match[0], link), escaped))
    return "\n".join(rows)


def _link_error(name: str, link: Link) -> str:
    target = link(f"errors.{name}")
    return f":py:obj:`{name} <{target}>`" if target else name


def _convert_code(part: str, link: Link) -> str:
    content = " ".join(part.strip("`").split())
    target = link(content) if not part.startswith("``") else None
    return f":py:obj:`{content} <{target}>`" if target else f"``{content}``"


def first_paragraph(text: str) -> str:
    """Return the first paragraph of a docstring."""
    return text.strip().partition("\n\n")[0]
