"""The tests that compute with tensors, once more with tensors on each device that is not the default one.

They run in child processes, since a process has one architecture of Taichi's. That nothing is left out on a
device for want of a kernel is part of the claim.
"""

from pathlib import Path

import pytest

import minigrad as mg
from children import handfuls, on_device

TESTS = Path(__file__).parents[1]
DEVICES = [device for device in ("numpy",) if device != mg.get_default_device()]
ROOMS = ["_jit", "autograd", "distributions", "functional", "io", "nn", "ops", "optim", "pytorch", "training"]
# Of Values, of declarations, or with devices of their own; each other file of these rooms is about tensors.
APART = {"test_dtypes", "test_engine", "test_generators", "test_pytorch", "test_scalar", "test_tape", "test_value"}
FILES = [path for path in TESTS.glob("test_*.py") if path.stem not in APART]
FILES += [path for room in ROOMS for path in (TESTS / room).rglob("test_*.py") if path.stem not in APART]
FILES += [
    TESTS / "data" / f"test_{name}.py" for name in ["collate", "dataset", "loader", "sampler", "toys", "transforms"]
]
FILES += [
    TESTS / "viz" / f"{name}.py"
    for name in ["trace/test_alarms", "trace/test_tensors", "pictures/test_drawing_tensors"]
]
FILES += [TESTS / "whole" / f"test_{name}.py" for name in ["lasting", "limits", "programs"]]
FILES += [TESTS / "backends" / "taichi" / "test_fusing.py", TESTS / "distributed" / "test_distributed.py"]
NAMES = sorted(path.relative_to(TESTS).as_posix() for path in FILES)


@pytest.mark.nightly
@pytest.mark.parametrize("files", handfuls(NAMES, of=4))
@pytest.mark.parametrize("device", DEVICES)
def test_tensors_are_the_same_on_each_device(device, files):
    on_device(device, files)
