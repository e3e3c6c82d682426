"""``minigrad lab`` and ``minigrad course``: copy the lessons to a folder of the user's, or to an nbgrader course."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from minigrad.cli.stop import Stop
from minigrad.core.errors import printable

__all__ = ["FOLDER", "course", "lab", "needed", "opened"]

FOLDER = Path("minigrad-lessons")
NOTE = ".minigrad.json"  # digests of copied files by name, to detect which the user has changed
STYLE = "lessons.mplstyle"
CONFIG = """# For nbgrader, in the folder of a course on minigrad. Lessons are assigned as they are, with open answers.
c = get_config()
c.CourseDirectory.course_id = "minigrad"
c.ClearSolutions.enabled = False  # an answer cell contains a stub, which students keep
c.Execute.timeout = 120  # seconds per cell: some train a network
"""


def lab(options: argparse.Namespace) -> int:
    """Copy the lessons and open them."""
    if options.copy:
        _copied(options.folder)
        return 0
    needed("minigrad lab")
    return opened(options.folder)


def needed(command: str) -> None:
    """Raise Stop if JupyterLab is not installed."""
    if find_spec("jupyterlab") is None:
        raise Stop(f"{command}: JupyterLab is missing; install it with: pip install 'seegrad[lab]'")


def opened(folder: Path) -> int:
    """Copy the lessons to a folder, and open the first in JupyterLab, on localhost with a token."""
    _copied(folder)
    first = min(name for name, _ in _lessons("minigrad lab") if name.endswith(".ipynb"))
    return subprocess.call([sys.executable, "-m", "jupyter", "lab", "--ip=localhost", str(folder / first)])


def course(options: argparse.Namespace) -> int:
    """Write an nbgrader course: one assignment per lesson, and its configuration."""
    made: Counter[str] = Counter()
    for name, data in _lessons("minigrad course"):
        if name.endswith(".ipynb"):
            assignment = options.folder / "source" / name.removesuffix(".ipynb")
            made[_put(assignment / name, data, "minigrad course")] += 1
            _put(assignment / STYLE, dict(_lessons("minigrad course"))[STYLE], "minigrad course")
    _put(options.folder / "nbgrader_config.py", CONFIG.encode(), "minigrad course")
    folder = printable(str(options.folder))
    print(f"{folder}: {made['new']} lessons added, {made['kept']} left unchanged.")
    print("In that folder, run for each lesson: nbgrader generate_assignment 01_one_neuron")
    return 0


def _lessons(command: str) -> Iterable[tuple[str, bytes]]:
    """Yield the name and contents of each lesson file."""
    shipped = files("minigrad.lessons").joinpath("notebooks")
    folder = shipped if shipped.is_dir() else Path(__file__).resolve().parents[2] / "notebooks"
    if not folder.is_dir():
        raise Stop(f"{command}: the lessons are missing from this installation; reinstall minigrad")
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        if one.name == STYLE or one.name.endswith(".ipynb"):
            yield one.name, one.read_bytes()


def _copied(folder: Path, command: str = "minigrad lab") -> None:
    """Update the files in a folder, except those that the user has changed, and print a summary."""
    note = folder / NOTE
    known = _known(note, command)
    states: dict[str, list[str]] = {}
    for name, data in _lessons(command):
        path, digest = folder / name, sha256(data).hexdigest()
        state = _put(path, data, command, known.get(name, ""))
        if state == "kept" and known.get(name) == digest:
            state = "yours"
        if state in ("new", "updated", "same"):
            known[name] = digest
        states.setdefault(state, []).append(name)
    _written(note, json.dumps(known, indent=1).encode(), command)
    counts = {state: len([name for name in names if name != STYLE]) for state, names in states.items()}
    words = {"new": "new", "updated": "updated", "same": "unchanged", "yours": "changed by you"}
    texts = [f"{counts[state]} {text}" for state, text in words.items() if counts.get(state)]
    print(f"{printable(str(folder.resolve()))}: {', '.join(texts) or 'nothing new'}.")
    if states.get("kept"):
        print(f"Changed by you, and newer in minigrad: {', '.join(states['kept'])}. Rename yours to get the new ones.")


def _known(note: Path, command: str) -> dict[str, str]:
    """Return the digests in a note; none if it is damaged."""
    if os.path.lexists(note) and (note.is_symlink() or not note.is_file()):
        raise Stop(f"{command}: {note} is a link, or not a file; minigrad stores its digests there: move it away")
    try:
        found = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
    except OSError as error:
        raise Stop(f"{command}: cannot read {note}: {error.strerror}") from None
    except (ValueError, RecursionError):
        found = {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: digest for name, digest in pairs if isinstance(digest, str)}


def _put(path: Path, data: bytes, command: str, before: str = "") -> str:
    """Write a file unless another one exists whose digest is not `before`. Return "new", "updated", "same" or "kept".

    Links, folders and pipes are never overwritten: they belong to the user, and writing to a pipe would block.
    """
    try:
        there = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError as error:
        raise Stop(f"{command}: cannot read {path}: {error.strerror}") from None
    if there == data:
        return "same"
    if os.path.lexists(path) and (there is None or sha256(there).hexdigest() != before):
        return "kept"
    _written(path, data, command)
    return "new" if there is None else "updated"


def _written(path: Path, data: bytes, command: str) -> None:
    from minigrad.io.whole import write_all

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_all(path, data)
    except OSError as error:
        raise Stop(f"{command}: cannot write {path}: {error.strerror}") from None
