"""The table of PyTorch's public names: whether they are available, how they differ, and replacements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cache
from importlib import import_module
from importlib.resources import files
from inspect import Parameter, signature
from types import ModuleType
from typing import Any, NamedTuple

from minigrad.pytorch.advice import DIFFERENCES, UNSUPPORTED_METHODS, UNSUPPORTED_OPTIONS, replacement_for

__all__ = ["CoverageRow", "look_up", "markdown", "minigrad_counterpart", "names", "rows", "summary", "version"]

STATES = ("yes", "differs", "no")
# Parameters that the rows of the table do not mention; and the deprecated parameters of PyTorch's losses.
UNIVERSAL_OPTIONS = {"layout", "memory_format", "orig_func", "pin_memory"}
DEPRECATED_OPTIONS = {"reduce", "size_average"}


class CoverageRow(NamedTuple):
    """Coverage of a PyTorch name: its module or class, its name, "yes", "differs" or "no", and a note."""

    family: str
    name: str
    state: str
    note: str


@cache
def names(kind: str = "") -> dict[str, dict[str, str]]:
    """Return, for each family (module or class of PyTorch), its names in ``names.txt`` with their annotations.

    `kind` selects the lines: "" for the families of the table, annotated with call signatures; "." for the members of
    their classes, likewise; and "+" for other modules, annotated with the family that has the same object under that
    name, or "." for a module.
    """
    families = {}
    for line in _names_file_lines()[1:]:
        family, _, listed = line.partition(": ")
        if (family[0] if family[0] in ".+" else "") == kind:
            tokens = [token.partition("(") if "(" in token else token.partition("=") for token in listed.split()]
            families[family.removeprefix(kind)] = {name: rest.rstrip(")") for name, _, rest in tokens}
    return families


def version() -> str:
    """Return the version of PyTorch whose names are listed."""
    return _names_file_lines()[0].split()[2].rstrip(":")


def rows() -> list[CoverageRow]:
    """Return a row for every name, in the order of the families."""
    return [_coverage_row(*token) for token in _listed_names("")]


def look_up(queries: Set[str]) -> list[CoverageRow]:
    """Return the rows of names such as ``Linear`` or ``nn.Linear``, or of families such as ``nn``.

    If no row matches, search the members of the classes in the table and all other modules.
    """
    for kinds in ("",), (".", "+"):
        tokens = [token for kind in kinds for token in _listed_names(kind) if queries & _spellings(*token[:2])]
        if tokens:
            return [_coverage_row(*token) for token in tokens]
    return []


def _listed_names(kind: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield tuples of family, name, call signatures, and the family that defines the name."""
    for family, listed in names(kind).items():
        for name, rest in listed.items():
            home = (rest.strip(".") if kind == "+" else "") or family
            yield family, name, names().get(home, {}).get(name, "") if kind == "+" else rest, home


def _spellings(family: str, name: str) -> set[str]:
    return {name, family[6:], f"{family}.{name}"[6:]}


def _coverage_row(family: str, name: str, forms: str, home: str) -> CoverageRow:
    owner, qualified_name = minigrad_counterpart(home), f"{home}.{name}"
    if owner is None or not hasattr(owner, name) or qualified_name in UNSUPPORTED_METHODS:
        return CoverageRow(family, name, "no", replacement_for(home, name))
    implementation = getattr(owner, name)
    missing = _missing_options(implementation, forms, isinstance(owner, type)) + [
        f"`{option}=`" for option in UNSUPPORTED_OPTIONS.get(qualified_name, ())
    ]
    missing += _missing_members(qualified_name, implementation)
    is_partial_module = (
        isinstance(implementation, ModuleType) and qualified_name in names("+") and qualified_name not in names()
    )
    words = [
        DIFFERENCES.get(qualified_name, "those of its names that are here" if is_partial_module else ""),
        f"without {', '.join(missing)}" if missing else "",
    ]
    note = "; ".join(filter(None, words))
    return CoverageRow(family, name, "differs" if note else "yes", note)


def _missing_options(implementation: Any, forms: str, bound: bool) -> list[str]:
    """Return the options of PyTorch's function that `implementation` lacks; if `bound`, `self` is ignored.

    Operands are not compared by name if there are several signatures, or if the operands are positional-only.
    """
    try:
        parameters = list(signature(implementation).parameters.values())[bound:]
    except (TypeError, ValueError):
        return []
    if not forms or any(p.kind is Parameter.VAR_KEYWORD for p in parameters):
        return []
    forms_parsed = [{x.rstrip("="): x.endswith("=") for x in form.split(",") if x} for form in forms.split("|")]
    has_positional = any(p.kind in (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL) for p in parameters)
    ignored = (
        {p.name for p in parameters}
        | UNIVERSAL_OPTIONS
        | (DEPRECATED_OPTIONS if forms_parsed[0].keys() >= DEPRECATED_OPTIONS else set())
    )
    options = {
        x
        for form in forms_parsed
        for x, option in form.items()
        if option or (len(forms_parsed) == 1 and not has_positional)
    }
    return sorted(f"`{x}=`" for x in options - ignored)


def _missing_members(qualified_name: str, implementation: Any) -> list[str]:
    """Return the methods that the class `implementation` lacks, and the options that its other methods lack."""
    missing = []
    for name, forms in names(".").get(qualified_name, {}).items():
        label = OPERATORS.get(name.strip("_")) if name.startswith("__") else f"{name}()"
        if not hasattr(implementation, name) or f"{qualified_name}.{name}" in UNSUPPORTED_METHODS:
            missing.append(f"`{label or name}`")
        elif not label or name[0] == "_":
            continue  # operators take positional operands
        elif options := _missing_options(getattr(implementation, name), forms, bound=True):
            missing.append(f"{', '.join(options)} of `{label or name}`")
    return missing


OPERATORS = {
    "add": "+", "radd": "+", "iadd": "+=", "mul": "*", "rmul": "*", "imul": "*=", "or": "|", "ror": "|", "ior": "|=",
}  # fmt: skip


def summary(table: Sequence[CoverageRow]) -> list[tuple[str, int, int, int]]:
    """Return, for each family, the numbers of names that are available, differ, and are missing."""
    families = dict.fromkeys(row.family for row in table)
    counts: dict[str, list[str]] = {family: [row.state for row in table if row.family == family] for family in families}
    return [(family, *(states.count(state) for state in STATES)) for family, states in counts.items()]  # type: ignore[misc]


def markdown() -> str:
    """Return the table as a Markdown page for the book."""
    table = rows()
    lines = [
        "# PyTorch coverage",
        "",
        f"PyTorch {version()} has {len(table)} public names in these families. *Yes*: the name is available with the",
        "same meaning. *Differs*: it is available, and the note describes the difference or lists missing options and",
        "methods. *No*: it is not available, and the note gives a replacement if there is one. `make torch` writes",
        "this page by comparing signatures. `minigrad torch NAME` also covers PyTorch's other modules.",
        "",
        "No function takes `out=`, `layout=`, `memory_format=`, `pin_memory=` of a tensor, or the names of named",
        "tensors. Where PyTorch raises `RuntimeError`, the error here is a subclass of it and of",
        "`ShapeError`, `DTypeError` or `ArgumentError`; see the [errors](reference/errors.md).",
        "",
        "| family | yes | differs | no | available |",
        "|---|---:|---:|---:|---:|",
    ]
    for family, yes, differs, no in summary(table):
        lines.append(f"| `{family}` | {yes} | {differs} | {no} | {(yes + differs) / (yes + differs + no):.0%} |")
    for family in dict.fromkeys(row.family for row in table):
        family_rows = [row for row in table if row.family == family]
        lines += ["", f"## {family}", ""]
        lines += [
            f"**Yes:** {', '.join(f'`{row.name}`' for row in family_rows if row.state == 'yes') or 'nothing'}.",
            "",
        ]
        noted = [row for row in family_rows if row.note]
        if noted:
            lines += ["| name | available | note |", "|---|---|---|"]
            lines += [f"| `{row.name}` | {row.state} | {row.note.replace('|', chr(92) + '|')} |" for row in noted]
            lines += [""]
        unlisted = [row for row in family_rows if row.state == "no" and not row.note]
        if unlisted:
            lines += [f"**No:** {', '.join(f'`{row.name}`' for row in unlisted)}."]
    return "\n".join(lines).rstrip() + "\n"


def _names_file_lines() -> list[str]:
    return files("minigrad.pytorch").joinpath("names.txt").read_text(encoding="utf-8").splitlines()


def minigrad_counterpart(family: str) -> Any:
    """Return the module or class that corresponds to a module or class of PyTorch; None if there is none."""
    owner: Any = import_module("minigrad")
    for part in family.split(".")[1:]:
        try:
            owner = getattr(owner, part)
        except AttributeError:
            return None
    return owner
