"""Test files in child processes: a process has one architecture of Taichi's."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def on_device(device, file):
    """Run the tests of a file with tensors on a device."""
    child = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / file)],
        cwd=HERE.parent,
        env={**os.environ, "MINIGRAD_DEVICE": device},
        capture_output=True,
        text=True,
        timeout=900,
    )
    tail = f"{child.stdout[-6000:]}\n{child.stderr[-2000:]}"
    left_out = [line for line in child.stdout.splitlines() if line.startswith("SKIPPED")]
    assert (child.returncode, [line for line in left_out if not re.search("needs the extra|needs float64", line)]) == (
        0,
        [],
    ), tail
    if not re.search(r"\b[1-9]\d* passed\b", child.stdout):
        assert left_out, tail
        pytest.skip(left_out[0])
