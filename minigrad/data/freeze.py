"""Rebuild the text of `corpus` from the files of a clone: ``python -m minigrad.data.freeze``, or ``make corpus``.

Losses before and after a rebuild are not comparable, so run it deliberately. The text is minigrad's documents, lessons
and core, each file preceded by a line with its name, ordered by PARTS, then by name: the output is deterministic.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from datetime import date
from pathlib import Path

from minigrad.core.errors import ArgumentError

__all__ = ["MACHINE_PATH", "PARTS", "build_corpus", "main"]

PARTS = (
    "README.md",
    "CONTRIBUTING.md",
    "ROADMAP.md",
    "notebooks/[0-9]*.py",
    "notebooks/solutions/*.py",
    "minigrad/core/*.py",
    "minigrad/autograd/*.py",
    "minigrad/ops/*.py",
    "minigrad/nn/scalar.py",
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|tmp|Users|work|mnt)/\w|\b[A-Z]:\\\w")


def build_corpus(root: Path, date_: date) -> str:
    """Return the corpus of the clone at `root`, dated `date_`. Raises ArgumentError if a file contains an
    absolute path."""
    paths = [path for part in PARTS for path in sorted(root.glob(part))]
    if not paths:
        raise ArgumentError(f"freeze: {root} is not a clone of minigrad: none of the corpus files exist in it.")
    chunks = [f"minigrad: its own sources, documents and lessons, as of {date_.isoformat()}.\n"]
    for path in paths:
        text = path.read_text(encoding="utf-8").strip()
        if match := MACHINE_PATH.search(text):
            raise ArgumentError(f"freeze: {path.relative_to(root)} contains an absolute path: {match[0]!r}.")
        chunks.append(f"\n=== {path.relative_to(root).as_posix()} ===\n\n{text}\n")
    return "".join(chunks)


def main() -> None:
    """Write the corpus into this module's folder, and print its size and SHA-256."""
    folder = Path(__file__).parent
    text = build_corpus(folder.parents[1], date.today())
    data = text.encode("utf-8")
    compressed = gzip.compress(data, mtime=0)
    (folder / "corpus.txt.gz").write_bytes(compressed)
    print(f"{len(data):,} bytes, {len(compressed):,} compressed; {len(text):,} characters, {len(set(text))} distinct")
    print(f"SHA-256 {hashlib.sha256(data).hexdigest()}: copy it to tests/data/test_shipped.py")


if __name__ == "__main__":
    main()
