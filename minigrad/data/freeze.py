"""Make the text that `corpus` returns again, from a clone: ``python -m minigrad.data.freeze``, or ``make corpus``.

On purpose only: losses of before cannot be compared with those of after. The text is minigrad's documents, lessons and
core, each file under a line with its name, in the order of PARTS and of the names: the same files give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from datetime import date
from pathlib import Path

from minigrad.core.errors import ArgumentError

__all__ = ["MACHINE_PATH", "PARTS", "frozen", "main"]

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


def frozen(root: Path, day: date) -> str:
    """The text of a clone at `root`, as of `day`. Raises ArgumentError where a file names a place on a disk."""
    paths = [path for part in PARTS for path in sorted(root.glob(part))]
    if not paths:
        raise ArgumentError(f"freeze: {root} is no clone of minigrad: the text is made of its files.")
    pieces = [f"minigrad: its own sources, documents and lessons, as of {day.isoformat()}.\n"]
    for path in paths:
        text = path.read_text(encoding="utf-8").strip()
        if found := MACHINE_PATH.search(text):
            raise ArgumentError(f"freeze: {path.relative_to(root)} names a place on a machine: {found[0]!r}.")
        pieces.append(f"\n=== {path.relative_to(root).as_posix()} ===\n\n{text}\n")
    return "".join(pieces)


def main() -> None:
    """Write the text beside this module, and print its size and SHA-256."""
    here = Path(__file__).parent
    text = frozen(here.parents[1], date.today())
    data = text.encode("utf-8")
    packed = gzip.compress(data, mtime=0)
    (here / "corpus.txt.gz").write_bytes(packed)
    print(f"{len(data):,} bytes, packed {len(packed):,}; {len(text):,} characters, {len(set(text))} different")
    print(f"SHA-256 {hashlib.sha256(data).hexdigest()}: put it into tests/data/test_shipped.py")


if __name__ == "__main__":
    main()
