"""Run the lessons and store their outputs; with --check, only verify the stored lessons.

A lesson is a notebook and its .py twin (jupytext's percent format) for review. The one that was modified last wins:
build.py copies its cells to the other, runs them, and normalises the outputs, so that rebuilding an unchanged lesson
changes nothing.

    python notebooks/build.py            all lessons
    python notebooks/build.py 02         lessons whose names start with 02
    python notebooks/build.py --check    list stored lessons that are not normalised, and exit with code 1
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import re
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
WIDGET = "application/vnd.jupyter.widget-view+json"
YOU_SHOULD_SEE = r"[Yy]ou\s+should\s+see,?\s+((?:.|\n)+?)(?:\n\n|$)"
MAX_ALT_LENGTH = 320
MARKUP_RULES = {
    r"\[([^]]*)\]\([^)]*\)": r"\1",  # links
    r"\*+|[`$]": "",
    r"\\t?frac(\d)(\d)": r"\1/\2",
    r"\\t?frac\s*\{?(\w+)\}?\s*\{?(\w+)\}?": r"\1/\2",
    r"\\cdot": "·",
    r"\\beta": "β",
    r"\\theta": "θ",
    r"\\bar ": "",
    r"\\(tanh|ln|sqrt)": r"\1",
    r"^(below |above )?that (?!list)": "",
    r"^(below|above),? ": "",
    r"^why: ": "",
}
METADATA = {
    "jupytext": {"formats": "ipynb,py:percent", "notebook_metadata_filter": "-all", "cell_metadata_filter": "tags"},
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
}


def find_lessons(prefixes: list[str]) -> list[Path]:
    """Return the notebooks whose names start with one of `prefixes`, or all, including those that only have a twin."""
    names = {path.stem for suffix in ("ipynb", "py") for path in HERE.glob(f"[0-9]*.{suffix}")}
    return [HERE / f"{name}.ipynb" for name in sorted(names) if name.startswith(tuple(prefixes or [""]))]


def sanitise(text: str) -> str:
    """Replace what differs between runs, by the rules of sanitize.cfg."""
    rules = (HERE / "sanitize.cfg").read_text(encoding="utf-8")
    for rule, replacement in re.findall(r"^regex: (.*)\nreplace: (.*)$", rules, re.MULTILINE):
        text = re.sub(rule, replacement, text)
    return text


def normalise(notebook: Any) -> Any:
    """Remove metadata that depends on the time, machine or version of the run."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    count, counts = 0, Counter[str]()
    for position, cell in enumerate(notebook.cells):
        # A hash of the source, so that inserting a cell does not change the ids of others.
        counts[cell.source] += 1
        cell.id = hashlib.sha256(f"{counts[cell.source]} {cell.source}".encode()).hexdigest()[:8]
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in ("tags",) if key in cell.metadata})
        mark_for_grading(notebook.cells, position)
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = [output for output in cell.outputs if not is_widget_only(output)]
            for output in cell.outputs:
                normalise_output(output, count)
                if "image/png" in output.get("data", ()):
                    output.metadata["image/png"] = {"alt": alt_text(notebook.cells, position)}
    return notebook


def alt_text(cells: list[Any], position: int) -> str:
    """Return the alternative text of a figure: the first sentences of "You should see …" in a neighbouring cell."""
    neighbours = [neighbour for neighbour in (position + 1, position - 1, position - 2) if 0 <= neighbour < len(cells)]
    # At the start of a cell it describes the figure above; further down, the next one.
    patterns = [YOU_SHOULD_SEE if other > position else r"(?s).+" + YOU_SHOULD_SEE for other in neighbours]
    for other, pattern in [
        *zip(neighbours, patterns, strict=True),
        *((other, f"(?s).*{YOU_SHOULD_SEE}") for other in neighbours),
    ]:
        match = re.match(pattern, cells[other].source)
        if match and cells[other].cell_type == "markdown":
            return shorten(strip_markup(" ".join(match[1].split())))
    return ""


def strip_markup(text: str) -> str:
    """Strip the markup of Markdown and LaTeX from `text`, and leading words such as "below"."""
    for pattern, replacement in MARKUP_RULES.items():
        text = re.sub(pattern, replacement, text)
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+\b(?!\^)", text) else text


def shorten(text: str) -> str:
    """Return the leading sentences of `text` that fit into `MAX_ALT_LENGTH` characters, with balanced parentheses."""
    sentences = re.split(r"(?<=[.?!:]) ", text)
    while len(sentences) > 1 and (len(" ".join(sentences)) > MAX_ALT_LENGTH or sentences[-1].endswith(":")):
        sentences.pop()
    while len(sentences) > 1 and " ".join(sentences).count("(") != " ".join(sentences).count(")"):
        sentences.pop()
    return re.sub(r":$", ".", " ".join(sentences))


def mark_for_grading(cells: list[Any], position: int) -> None:
    """Add nbgrader metadata to a check, worth one point, and to the answer cell before it."""
    check = re.match(r'lessons\.check\("(\d+)\.(\d+)"', cells[position].source)
    if check is None or cells[position].cell_type != "code":
        return
    exercise = f"{check[1]}-{check[2]}"
    common = {"schema_version": 3, "task": False}
    answer = {"grade": False, "grade_id": f"answer-{exercise}", "locked": False, "solution": True, **common}
    grade = {"grade": True, "grade_id": f"check-{exercise}", "locked": True, "points": 1, "solution": False, **common}
    cells[position - 1].metadata["nbgrader"] = nbformat.from_dict(answer)
    cells[position].metadata["nbgrader"] = nbformat.from_dict(grade)


def without_grading(notebook: Any) -> Any:
    """Return a copy without nbgrader metadata, for the twin."""
    duplicate = copy.deepcopy(notebook)
    for cell in duplicate.cells:
        cell.metadata.pop("nbgrader", None)
    return duplicate


def is_widget_only(output: Any) -> bool:
    """Return whether an output is a widget that needs its kernel, such as a slider; players have a static drawing."""
    return WIDGET in output.get("data", ()) and "<figure" not in output.data.get("text/html", "")


def normalise_output(output: Any, count: int) -> None:
    if "execution_count" in output:
        output.execution_count = count
    if "metadata" in output:
        output.metadata = nbformat.from_dict({})
    if "text" in output:
        output.text = sanitise(output.text)
    output.get("data", {}).pop(WIDGET, None)  # a stored one displays "Error displaying widget" instead of the drawing
    for kind, content in output.get("data", {}).items():
        if isinstance(content, str) and not kind.startswith("image/"):
            output.data[kind] = sanitise(content)


def cell_contents(notebook: Any) -> list[tuple[str, str, list[str]]]:
    """Return type, source and tags of each cell, which a notebook and its twin share."""
    return [(cell.cell_type, cell.source, list(cell.metadata.get("tags", []))) for cell in notebook.cells]


def build(path: Path) -> None:
    """Synchronise a notebook with its twin, run it, and store both."""
    twin = path.with_suffix(".py")
    source = max((p for p in (path, twin) if p.exists()), key=lambda p: p.stat().st_mtime)
    notebook = nbformat.from_dict(jupytext.read(source))
    notebook.metadata = nbformat.from_dict(METADATA)
    # Silence ipykernel's warning about unencrypted TCP.
    quiet = ["--log-level=ERROR"]
    # Output arrives in arbitrary chunks; store it as one.
    NotebookClient(
        notebook, timeout=120, coalesce_streams=True, extra_arguments=quiet, resources={"metadata": {"path": str(HERE)}}
    ).execute()
    twin.write_text(jupytext.writes(without_grading(normalise(notebook)), fmt="py:percent"), encoding="utf-8")
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def find_problems(path: Path) -> list[str]:
    """Return the problems of a stored lesson."""
    twin = path.with_suffix(".py")
    if missing := [f"{half.name} is missing" for half in (path, twin) if not half.exists()]:
        return missing
    problems, stored = [], path.read_text(encoding="utf-8")
    notebook = nbformat.reads(stored, as_version=4)
    if cell_contents(notebook) != cell_contents(jupytext.read(twin)):
        problems.append(f"{path.name} and {twin.name} differ")
    if stored != nbformat.writes(normalise(notebook)) + "\n":
        problems.append(f"{path.name} is not normalised")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the lessons and store their outputs.")
    parser.add_argument("--check", action="store_true", help="only verify the stored lessons")
    parser.add_argument("lessons", nargs="*", help="prefixes of their names (default: all)")
    arguments = parser.parse_args()
    if arguments.check:
        found = [line for path in find_lessons(arguments.lessons) for line in find_problems(path)]
        if found:
            print(*found, "To fix this, run: make notebooks", sep="\n")
        return 1 if found else 0
    for path in find_lessons(arguments.lessons):
        start = perf_counter()
        build(path)
        print(f"{path.name:<36}{perf_counter() - start:5.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
