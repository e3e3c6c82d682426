"""Run test files in child processes, since Taichi supports one architecture per process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tiers

TESTS = Path(__file__).parents[1]


def run_on_device(device, files):
    """Run test files in one child process with `device` as the default device. Starting a child takes seconds."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:nbval"]
    child = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(str(TESTS / file) for file in files)],
        cwd=TESTS.parent,
        env={**os.environ, "MINIGRAD_DEVICE": device, "MINIGRAD_NIGHTLY": tiers.child_tier()},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert child.returncode == 0, f"{child.stdout[-12000:]}\n{child.stderr[-2000:]}"  # other skips fail
    assert re.search(r"\b[1-9]\d* passed\b", child.stdout), child.stdout


def group_files(files, size):
    """Split files into groups of `size`, one for each child, as parameters with readable ids."""
    groups = [files[k : k + size] for k in range(0, len(files), size)]
    return [pytest.param(group, id=f"{group[0]} to {group[-1]}") for group in groups]
