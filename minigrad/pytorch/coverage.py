"""The table of PyTorch's public names: which are here, which differ, and what to write instead of the others."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.resources import files
from inspect import signature
from typing import Any, NamedTuple

from minigrad.pytorch.advice import DIFFERS, REFUSED, advice

__all__ = ["Row", "markdown", "rows", "summary", "version"]

GIVEN_UP = {"orig_func", "reduce", "size_average"}  # which PyTorch has given up, or keeps for itself
STATES = ("yes", "differs", "no")


class Row(NamedTuple):
    """A name: PyTorch's family, whether it is here ("yes", "differs" or "no"), and how it differs or what to write."""

    family: str
    name: str
    state: str
    note: str


def version() -> str:
    """The version of PyTorch whose names these are."""
    return _lines()[0].split()[2].rstrip(":")


def rows() -> list[Row]:
    """Every public name of PyTorch, in the order of its families."""
    found = []
    for line in _lines()[1:]:
        family, _, names = line.partition(": ")
        place = _place(family)
        for token in names.split():
            name, _, taken = token.partition("(")
            asked = f"{family}.{name}"
            here = place is not None and hasattr(place, name) and asked not in REFUSED
            note = "" if here else advice(family, name)
            if here:
                without = _without(getattr(place, name), taken.rstrip(")").split(","))
                words = [DIFFERS.get(asked, ""), f"without {', '.join(without)}" if without else ""]
                note = "; ".join(filter(None, words))
            found.append(Row(family, name, ("differs" if note else "yes") if here else "no", note))
    return found


def _without(ours: Any, taken: Sequence[str]) -> list[str]:
    """The parameters of PyTorch's that ours has not, where both are known by name."""
    try:
        own = signature(ours).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL, p.POSITIONAL_ONLY) for p in own):
        return []
    return sorted({name for name in taken if name} - {p.name for p in own} - GIVEN_UP)


def summary(table: Sequence[Row]) -> list[tuple[str, int, int, int]]:
    """A family a line: how many of its names are here, how many differ, how many are not here."""
    families = dict.fromkeys(row.family for row in table)
    counts: dict[str, list[str]] = {family: [row.state for row in table if row.family == family] for family in families}
    return [(family, *(states.count(state) for state in STATES)) for family, states in counts.items()]  # type: ignore[misc]


def markdown() -> str:
    """The table as a page of the book."""
    table = rows()
    lines = [
        "# What of PyTorch is here",
        "",
        f"PyTorch {version()} has {len(table)} public names in its families. *Yes*: it is here and means what it",
        "means there. *Differs*: it is here, the note says how, or what it does not take. *No*: it is not here, and",
        "where something else can be written, the note says it. Written by `make torch`.",
        "",
        "| family | yes | differs | no | here |",
        "|---|---:|---:|---:|---:|",
    ]
    for family, yes, differs, no in summary(table):
        lines.append(f"| `{family}` | {yes} | {differs} | {no} | {(yes + differs) / (yes + differs + no):.0%} |")
    for family in dict.fromkeys(row.family for row in table):
        own = [row for row in table if row.family == family]
        lines += ["", f"## {family}", ""]
        lines += [f"**Yes:** {', '.join(f'`{row.name}`' for row in own if row.state == 'yes') or 'nothing'}.", ""]
        noted = [row for row in own if row.note]
        if noted:
            lines += ["| name | here | note |", "|---|---|---|"]
            lines += [f"| `{row.name}` | {row.state} | {row.note.replace('|', chr(92) + '|')} |" for row in noted]
            lines += [""]
        rest = [row for row in own if row.state == "no" and not row.note]
        if rest:
            lines += [f"**No:** {', '.join(f'`{row.name}`' for row in rest)}."]
    return "\n".join(lines).rstrip() + "\n"


def _lines() -> list[str]:
    return files("minigrad.pytorch").joinpath("names.txt").read_text(encoding="utf-8").splitlines()


def _place(family: str) -> Any:
    """What has here the names of a family of PyTorch's, or None."""
    place: Any = import_module("minigrad")
    for part in family.split(".")[1:]:
        try:
            place = getattr(place, part)
        except AttributeError:
            return None
    return place
