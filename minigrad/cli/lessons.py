"""``minigrad lab`` and ``minigrad course``: copy the lessons to one of the user's folders, or to an nbgrader course."""

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

from minigrad.cli.errors import CommandError
from minigrad.core.errors import printable

__all__ = ["FOLDER", "course", "lab", "open_lessons", "require_jupyterlab"]

FOLDER = Path("minigrad-lessons")
DIGESTS_FILE = ".minigrad.json"  # contains digests of copied files by name, to detect changes by the user
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
        _copy_lessons(options.folder)
        return 0
    require_jupyterlab("minigrad lab")
    return open_lessons(options.folder)


def require_jupyterlab(command: str) -> None:
    """Raise CommandError if JupyterLab is not installed."""
    if find_spec("jupyterlab") is None:
        raise CommandError(f"{command}: JupyterLab is missing; install it with: pip install 'seegrad[lab]'")


def open_lessons(folder: Path) -> int:
    """Copy the lessons to a folder, and open the first in JupyterLab, on localhost with a token."""
    _copy_lessons(folder)
    first = min(name for name, _ in _lesson_files("minigrad lab") if name.endswith(".ipynb"))
    return subprocess.call([sys.executable, "-m", "jupyter", "lab", "--ip=localhost", str(folder / first)])


def course(options: argparse.Namespace) -> int:
    """Write an nbgrader course: one assignment per lesson, and its configuration."""
    counts: Counter[str] = Counter()
    for name, data in _lesson_files("minigrad course"):
        if name.endswith(".ipynb"):
            assignment = options.folder / "source" / name.removesuffix(".ipynb")
            counts[_update_file(assignment / name, data, "minigrad course")] += 1
            _update_file(assignment / STYLE, dict(_lesson_files("minigrad course"))[STYLE], "minigrad course")
    _update_file(options.folder / "nbgrader_config.py", CONFIG.encode(), "minigrad course")
    folder = printable(str(options.folder))
    print(f"{folder}: {counts['new']} lessons added, {counts['kept']} left unchanged.")
    print("In that folder, run for each lesson: nbgrader generate_assignment 01_one_neuron")
    return 0


def _lesson_files(command: str) -> Iterable[tuple[str, bytes]]:
    """Yield the name and contents of each lesson file."""
    shipped = files("minigrad.lessons").joinpath("notebooks")
    folder = shipped if shipped.is_dir() else Path(__file__).resolve().parents[2] / "notebooks"
    if not folder.is_dir():
        raise CommandError(f"{command}: the lessons are missing from this installation; reinstall minigrad")
    for path in sorted(folder.iterdir(), key=lambda one: one.name):
        if path.name == STYLE or path.name.endswith(".ipynb"):
            yield path.name, path.read_bytes()


def _copy_lessons(folder: Path, command: str = "minigrad lab") -> None:
    """Copy or update the lessons in a folder, except those that the user has changed, and print a summary."""
    digests_file = folder / DIGESTS_FILE
    digests = _read_digests(digests_file, command)
    states: dict[str, list[str]] = {}
    for name, data in _lesson_files(command):
        path, digest = folder / name, sha256(data).hexdigest()
        state = _update_file(path, data, command, digests.get(name, ""))
        if state == "kept" and digests.get(name) == digest:
            state = "yours"
        if state in ("new", "updated", "same"):
            digests[name] = digest
        states.setdefault(state, []).append(name)
    _write_file(digests_file, json.dumps(digests, indent=1).encode(), command)
    counts = {state: len([name for name in names if name != STYLE]) for state, names in states.items()}
    words = {"new": "new", "updated": "updated", "same": "unchanged", "yours": "changed by you"}
    parts = [f"{counts[state]} {label}" for state, label in words.items() if counts.get(state)]
    print(f"{printable(str(folder.resolve()))}: {', '.join(parts) or 'nothing new'}.")
    if states.get("kept"):
        print(f"Changed by you, and newer in minigrad: {', '.join(states['kept'])}. Rename yours to get the new ones.")


def _read_digests(digests_file: Path, command: str) -> dict[str, str]:
    """Return the digests by file name. Return an empty dict if the file is missing or damaged."""
    if os.path.lexists(digests_file) and (digests_file.is_symlink() or not digests_file.is_file()):
        raise CommandError(
            f"{command}: {digests_file} is a link, or not a file; minigrad stores its digests there: move it away"
        )
    try:
        digests = json.loads(digests_file.read_text(encoding="utf-8")) if digests_file.exists() else {}
    except OSError as error:
        raise CommandError(f"{command}: cannot read {digests_file}: {error.strerror}") from None
    except (ValueError, RecursionError):
        digests = {}
    pairs = digests.items() if isinstance(digests, dict) else ()
    return {name: digest for name, digest in pairs if isinstance(digest, str)}


def _update_file(path: Path, data: bytes, command: str, previous_digest: str = "") -> str:
    """Write a file, unless an existing file has different contents and a digest other than `previous_digest`. Return
    "new", "updated", "same" or "kept".

    Links, folders and pipes are never overwritten: they belong to the user, and writing to a pipe would block.
    """
    try:
        existing = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError as error:
        raise CommandError(f"{command}: cannot read {path}: {error.strerror}") from None
    if existing == data:
        return "same"
    if os.path.lexists(path) and (existing is None or sha256(existing).hexdigest() != previous_digest):
        return "kept"
    _write_file(path, data, command)
    return "new" if existing is None else "updated"


def _write_file(path: Path, data: bytes, command: str) -> None:
    from minigrad.io.atomic import write_all

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_all(path, data)
    except OSError as error:
        raise CommandError(f"{command}: cannot write {path}: {error.strerror}") from None
