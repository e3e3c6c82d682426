"""Results are bitwise independent of the number of cores, even those that a race would change."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from needs import needs
from taichi_device import in_memory

needs("taichi")

FAMILIES = ("indexing", "random", "sorting", "conv_tiles")


def digests() -> list[str]:
    """Return the digest of each kernel family, computed by its test module."""
    found = []
    for family in FAMILIES:
        spec = importlib.util.spec_from_file_location(f"of_{family}", Path(__file__).with_name(f"test_{family}.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(module.digest())
    return found


@in_memory
@pytest.mark.nightly
def test_one_core_gives_the_same_bits_as_all():
    """In a child process, since Taichi counts cores only when it starts."""
    one = subprocess.run(
        [sys.executable, "-c", "import minigrad.backends.taichi, test_kernels_cores as here; print(*here.digests())"],
        env=os.environ
        | {"TI_CPU_MAX_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert digests() == one.stdout.split()
