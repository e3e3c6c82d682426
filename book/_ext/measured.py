"""Tables of figures that are committed.

``{measured} FILE`` has what a benchmark measured, from `benchmarks/results.txt`, a table for each of its runs;
``{tried} THEME`` has how often it was tried to break something, from `tests/torture/results.txt`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

__all__ = ["RESULTS", "TORTURE", "Run", "campaigns", "runs", "setup"]

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results.txt"
TORTURE = Path(__file__).resolve().parents[2] / "tests" / "torture" / "results.txt"
HEAD = ("what", "measured", "asked for", "held?")


class Run(NamedTuple):
    """A run of a benchmark: how it was called, when and where, and its lines, each of five texts."""

    command: str
    about: list[str]
    rows: list[list[str]]


def runs(text: str) -> list[Run]:
    """The runs in `results.txt`, in order. Raises ValueError for a line that is not of its form.

    >>> runs("# bench_tape.py\\n# 2026-11-22\\na row | 5.5 ns | at most 8 | held\\n")[0].rows
    [['a row', '5.5 ns', 'at most 8', 'held', '']]
    """
    found = []
    for part in text.split("\n\n"):
        lines = [line for line in part.split("\n") if line.strip()]
        about = [line.removeprefix("# ") for line in lines if line.startswith("#")]
        if not about:
            continue  # what is said at the top
        rows = [line.split(" | ") for line in lines if not line.startswith("#")]
        if any(len(row) not in (4, 5) for row in rows):
            raise ValueError(f"{about[0]}: a line is: what | figure | what was asked for | held or NOT | more")
        found.append(Run(about[0], about[1:], [[*row, ""][:5] for row in rows]))
    return found


class Measured(SphinxDirective):
    """All runs of a benchmark on a device; with ``:last: 2`` the last two of them, with ``:before: 2`` all others."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012 -- as docutils has it
        "last": directives.positive_int,
        "before": directives.positive_int,
        "device": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RESULTS))
        asked, device = self.arguments[0], self.options.get("device", "cpu")
        found = [run for run in runs(RESULTS.read_text(encoding="utf-8")) if run.command.split()[0] == asked]
        found = [run for run in found if ("--device cuda" in run.command) == (device == "cuda")]
        if not found:
            raise ExtensionError(f"measured: {RESULTS.name} has no run of {asked!r} on {device}.")
        last, before = self.options.get("last", len(found)), self.options.get("before", 0)
        if not before < last <= len(found):
            raise ExtensionError(f"measured: of {asked!r} on {device} {RESULTS.name} has {len(found)} runs, no more.")
        return [node for run in found[len(found) - last : len(found) - before] for node in _shown(run)]


def _shown(run: Run) -> list[nodes.Node]:
    said = nodes.paragraph("", "", nodes.literal(text=run.command), nodes.Text(f", {run.about[0]}."))
    more = [nodes.paragraph(text=f"{line[:1].upper()}{line[1:]}.") for line in [" ".join(run.about[1:])] if line]
    return [said, *more, _table(HEAD, [_cells(row) for row in run.rows])]


def _table(head: tuple[str, ...], rows: list[list[nodes.entry]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph(text=title)) for title in head)))
    group += nodes.tbody("", *(nodes.row("", *row) for row in rows))
    return nodes.table("", group, classes=["measured"])


def _cells(row: list[str]) -> list[nodes.entry]:
    """What was measured, the rest below it in small letters; the figure; the bar; a bold word where it is missed."""
    what, figure, asked, held, more = row
    verdict: nodes.Node = nodes.strong(text="not held") if held == "NOT" else nodes.Text(held)
    others = [nodes.paragraph(text=figure), nodes.paragraph(text=asked), nodes.paragraph("", "", verdict)]
    return [_named(what, more), *(nodes.entry("", one) for one in others)]


def _named(what: str, more: str) -> nodes.entry:
    """The first cell of a row."""
    found = nodes.entry("", nodes.paragraph(text=what))
    if more:
        found += nodes.paragraph("", "", nodes.inline(text=more), classes=["more"])
    return found


def campaigns(text: str, theme: str) -> tuple[str, list[list[str]]]:
    """When and where a theme was tried; its campaigns: name, what, cases, how many not there, how many failed.

    >>> campaigns("# files, 2026-11-24\\nidx | IDX files with bytes changed | 10,000 | 0 | 0\\n", "files")
    ('2026-11-24', [['idx', 'IDX files with bytes changed', '10,000', '0', '0']])
    """
    for part in text.split("\n\n"):
        head, *lines = part.strip().split("\n")
        if head.startswith(f"# {theme}, "):
            return head.removeprefix(f"# {theme}, "), [line.split(" | ") for line in lines]
    raise ExtensionError(f"tried: {TORTURE.name} has no theme {theme!r}.")


class Tried(SphinxDirective):
    """The campaigns of a theme, as a table."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(TORTURE))
        about, found = campaigns(TORTURE.read_text(encoding="utf-8"), self.arguments[0])
        rows = []
        for name, what, tried, skipped, failed in found:
            others = "" if skipped == "0" else f"; {skipped} of these need what the machine did not have"
            first = _named(f"{what[:1].upper()}{what[1:]}".replace("`", ""), f"{name}{others}")
            rows.append([first, *(nodes.entry("", nodes.paragraph(text=number)) for number in (tried, failed))])
        table = _table(("what was tried", "cases", "failed"), rows)
        table["classes"].append("tried")  # whose two figures are narrow: a phone has room for all of it
        command = nodes.literal(text=f"python -m torture --only {self.arguments[0]}")
        return [table, nodes.paragraph("", "", command, nodes.Text(f", {about}."), classes=["more"])]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("measured", Measured)
    app.add_directive("tried", Tried)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
