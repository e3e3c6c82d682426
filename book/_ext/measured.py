"""Figures from committed files, so that no page can contradict another.

``{measured} FILE`` shows the runs of a benchmark in `benchmarks/results.txt`, one table per run; ``{result}`` quotes
one of their figures in a sentence. ``{campaign} THEME`` shows a theme of `tests/torture/results.txt`.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective, SphinxRole

__all__ = ["RESULTS", "TORTURE", "Run", "find_result", "parse_campaigns", "parse_runs", "setup"]

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results.txt"
TORTURE = Path(__file__).resolve().parents[2] / "tests" / "torture" / "results.txt"
TABLE_HEAD = ("benchmark", "result", "target", "met")
VERDICTS = {"held": "yes", "NOT": "no"}
CLAIMS = {"<": operator.lt, ">": operator.gt}


class Run(NamedTuple):
    """A run of a benchmark: its command line, date and machine, and rows of five strings."""

    command: str
    notes: list[str]
    rows: list[list[str]]


def parse_runs(text: str) -> list[Run]:
    """Parse `results.txt` into runs, in file order. Raises ValueError for a malformed line.

    >>> runs("# bench_tape.py\\n# 2026-11-22\\na row | 5.5 ns | at most 8 | held\\n")[0].rows
    [['a row', '5.5 ns', 'at most 8', 'held', '']]
    """
    parsed = []
    for section in text.split("\n\n"):
        lines = [line for line in section.split("\n") if line.strip()]
        about = [line.removeprefix("# ") for line in lines if line.startswith("#")]
        if not about:
            continue  # the introduction of the file
        rows = [line.split(" | ") for line in lines if not line.startswith("#")]
        if any(len(row) not in (4, 5) for row in rows):
            raise ValueError(f"{about[0]}: expected 'name | result | target | held or NOT | details' on each line")
        parsed.append(Run(about[0], about[1:], [[*row, ""][:5] for row in rows]))
    return parsed


def _runs_on(runs: list[Run], benchmark: str, device: str) -> list[Run]:
    """Return the runs of a benchmark on "cpu" or "cuda", oldest first."""
    benchmark_runs = [run for run in runs if run.command.split()[0] == benchmark]
    return [run for run in benchmark_runs if ("--device cuda" in run.command) == (device == "cuda")]


def find_result(text: str, key: str) -> list[str]:
    """Return the row of `results.txt` that `key` selects: five strings (name, figure, target, verdict, details).

    `key` is a benchmark and parts of a row's name, separated by semicolons. The newest run that has a matching row
    counts; a first part ``cuda`` selects the runs on that device. A last part ``< 1`` or ``> 1`` states what the
    sentence claims, so that a later run that contradicts it fails the build. Raises ExtensionError unless exactly one
    row matches and the claim holds.

    >>> text = "# b.py\\n# 2026-11-22\\nGPT, by JAX's time | 0.59 | – | –\\nGPT, by PyTorch's time | 0.85 | – | –\\n"
    >>> result(text, "b.py; GPT; PyTorch; < 1")[1]
    '0.85'
    """
    benchmark, *parts = (part.strip() for part in key.split(";"))
    device = parts.pop(0) if parts[:1] == ["cuda"] else "cpu"
    claim = parts.pop() if parts and parts[-1][:1] in CLAIMS else ""
    for run in reversed(_runs_on(parse_runs(text), benchmark, device)):
        if matches := [row for row in run.rows if all(part in row[0] for part in parts)]:
            break
    else:
        raise ExtensionError(f"result: {RESULTS.name} has no row for {key!r}.")
    if len(matches) > 1:
        raise ExtensionError(f"result: {key!r} is ambiguous; it matches: {'; '.join(row[0] for row in matches)}.")
    if claim and not CLAIMS[claim[0]](_parse_figure(matches[0][1]), float(claim[1:])):
        raise ExtensionError(f"result: {key!r} claims {claim}, but the newest run has {matches[0][1]}.")
    return matches[0]


def _parse_figure(figure: str) -> float:
    return float(figure.split()[0].replace(",", ""))


class ResultRole(SphinxRole):
    """``{result}`KEY` ``: the figure of one row; see `find_result`."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        self.env.note_dependency(str(RESULTS))
        row = find_result(RESULTS.read_text(encoding="utf-8"), self.text)
        return [nodes.inline("", row[1], classes=["result"])], []


class MeasuredDirective(SphinxDirective):
    """The runs of a benchmark on a device; ``:last: 2`` selects the last two, ``:before: 2`` the others."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012 -- as in docutils
        "last": directives.positive_int,
        "before": directives.positive_int,
        "device": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RESULTS))
        benchmark, device = self.arguments[0], self.options.get("device", "cpu")
        selected = _runs_on(parse_runs(RESULTS.read_text(encoding="utf-8")), benchmark, device)
        if not selected:
            raise ExtensionError(f"measured: {RESULTS.name} has no run of {benchmark!r} on {device}.")
        last, before = self.options.get("last", len(selected)), self.options.get("before", 0)
        if not before < last <= len(selected):
            raise ExtensionError(
                f"measured: {RESULTS.name} has only {len(selected)} runs of {benchmark!r} on {device}."
            )
        return [node for run in selected[len(selected) - last : len(selected) - before] for node in _render_run(run)]


def _render_run(run: Run) -> list[nodes.Node]:
    heading = nodes.paragraph("", "", nodes.literal(text=run.command), nodes.Text(f", {run.notes[0]}."))
    notes = [nodes.paragraph(text=f"{line[:1].upper()}{line[1:]}.") for line in [" ".join(run.notes[1:])] if line]
    return [heading, *notes, _table(TABLE_HEAD, [_row_cells(row) for row in run.rows])]


def _table(head: tuple[str, ...], rows: list[list[nodes.entry]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph(text=title)) for title in head)))
    group += nodes.tbody("", *(nodes.row("", *row) for row in rows))
    return nodes.table("", group, classes=["measured"])


def _row_cells(row: list[str]) -> list[nodes.entry]:
    """Return the cells of a result: its name with the details below, figure, target, and "no" in bold if missed."""
    name, figure, target, verdict_text, details = row
    label = VERDICTS.get(verdict_text, verdict_text)
    verdict: nodes.Node = nodes.strong(text=label) if verdict_text == "NOT" else nodes.Text(label)
    cells = [nodes.paragraph(text=figure), nodes.paragraph(text=target), nodes.paragraph("", "", verdict)]
    return [_name_cell(name, details), *(nodes.entry("", one) for one in cells)]


def _name_cell(name: str, details: str) -> nodes.entry:
    """Return the first cell of a row: a name, with details in small type."""
    cell = nodes.entry("", nodes.paragraph(text=name))
    if details:
        cell += nodes.paragraph("", "", nodes.inline(text=details), classes=["more"])
    return cell


def parse_campaigns(text: str, theme: str) -> tuple[str, list[list[str]]]:
    """Return date and machine of a theme's run, and its campaigns: name, description, cases, skipped, failed.

    >>> campaigns("# files, 2026-11-24\\nidx | IDX files with bytes changed | 10,000 | 0 | 0\\n", "files")
    ('2026-11-24', [['idx', 'IDX files with bytes changed', '10,000', '0', '0']])
    """
    for part in text.split("\n\n"):
        head, *lines = part.strip().split("\n")
        if head.startswith(f"# {theme}, "):
            return head.removeprefix(f"# {theme}, "), [line.split(" | ") for line in lines]
    raise ExtensionError(f"tried: {TORTURE.name} has no theme {theme!r}.")


class CampaignDirective(SphinxDirective):
    """The campaigns of a theme, as a table."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(TORTURE))
        date, rows_found = parse_campaigns(TORTURE.read_text(encoding="utf-8"), self.arguments[0])
        rows = []
        for name, description, cases, skipped, failed in rows_found:
            suffix = "" if skipped == "0" else f"; {skipped} skipped for a missing dependency"
            first = _name_cell(f"{description[:1].upper()}{description[1:]}".replace("`", ""), f"{name}{suffix}")
            rows.append([first, *(nodes.entry("", nodes.paragraph(text=count)) for count in (cases, failed))])
        table = _table(("campaign", "cases", "failed"), rows)
        table["classes"].append("tried")  # its two narrow columns fit on a phone
        command = nodes.literal(text=f"python -m torture --only {self.arguments[0]}")
        return [table, nodes.paragraph("", "", command, nodes.Text(f", {date}."), classes=["more"])]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("measured", MeasuredDirective)
    app.add_directive("campaign", CampaignDirective)
    app.add_role("result", ResultRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
