"""``{measured} FILE``: what a benchmark measured, from `benchmarks/results.txt`, as a table for each of its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

__all__ = ["RESULTS", "Run", "runs", "setup"]

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results.txt"
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
        return [node for run in found[len(found) - last : len(found) - before] for node in _shown(run)]


def _shown(run: Run) -> list[nodes.Node]:
    said = nodes.paragraph("", "", nodes.literal(text=run.command), nodes.Text(f", {run.about[0]}."))
    more = [nodes.paragraph(text=f"{line[:1].upper()}{line[1:]}.") for line in [" ".join(run.about[1:])] if line]
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in HEAD), cols=len(HEAD))
    group += nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph(text=title)) for title in HEAD)))
    group += nodes.tbody("", *(nodes.row("", *_cells(row)) for row in run.rows))
    return [said, *more, nodes.table("", group, classes=["measured"])]


def _cells(row: list[str]) -> list[nodes.entry]:
    """What was measured, the rest below it in small letters; the figure; the bar; a bold word where it is missed."""
    what, figure, asked, held, more = row
    first = nodes.entry("", nodes.paragraph(text=what))
    if more:
        first += nodes.paragraph("", "", nodes.inline(text=more), classes=["more"])
    verdict: nodes.Node = nodes.strong(text="not held") if held == "NOT" else nodes.Text(held)
    others = [nodes.paragraph(text=figure), nodes.paragraph(text=asked), nodes.paragraph("", "", verdict)]
    return [first, *(nodes.entry("", one) for one in others)]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
