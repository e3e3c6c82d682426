"""Threads of Taichi are pinned when a parallel loop needs them, and not before."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("taichi", "free cores")

PROGRAM = """
import os
import minigrad as mg
from minigrad.backends.taichi.runtime import driver

def pinned_cores():
    affinities = [os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")]
    return sorted(core for cores in affinities if len(cores) == 1 for core in cores)

x = mg.ones(2, device="cpu") * 2
print(pinned_cores(), x.tolist())
{use_threads}
print(pinned_cores() == sorted(os.sched_getaffinity(0)))
"""


@pytest.mark.parametrize(
    "use_threads",
    ["mg.ones(1 << 20, device='cpu') * 2", "with driver.user_kernels('cpu'): pass"],
    ids=["parallel loop", "custom kernel"],
)
def test_threads_are_pinned_before_their_first_use_only(use_threads):
    """Finding the threads takes a kernel of its own, which a program of small operations does not pay for."""
    code = PROGRAM.format(use_threads=use_threads)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[] [2.0, 2.0]\nTrue\n", "")
