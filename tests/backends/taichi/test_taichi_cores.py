"""Results that would depend on the order in which cores work, if they raced: the same bits on one core as on all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import test_indexing
import test_random
import test_sorting
import test_windows
from needs import needs
from places import in_memory

needs("taichi")

FAMILIES = (test_indexing, test_random, test_sorting, test_windows)


def digests() -> list[str]:
    return [family.digest() for family in FAMILIES]


@in_memory
@pytest.mark.nightly
def test_one_core_gives_the_bits_of_all():
    """In a process of its own, since Taichi counts cores once, when it starts."""
    one = subprocess.run(
        [sys.executable, "-c", "import minigrad.backends.taichi, test_taichi_cores as here; print(*here.digests())"],
        env=os.environ
        | {"TI_CPU_MAX_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert digests() == one.stdout.split()
