"""Repeat the tests that compute with tensors on each device other than the default.

They run in child processes, since Taichi supports one architecture per process. The claim includes that no test is
skipped because a device lacks a kernel.
"""

from pathlib import Path

import pytest

import minigrad as mg
from child_processes import group_files, run_on_device

TESTS = Path(__file__).parents[1]
DEVICES = [device for device in ("numpy",) if device != mg.get_default_device()]
FOLDERS = ["_jit", "autograd", "distributions", "functional", "io", "nn", "ops", "optim", "pytorch", "training"]
# Tests of Values, of declarations, or with explicit devices; all other files of these folders test tensors.
EXCLUDED = {"test_dtypes", "test_engine", "test_generators", "test_pytorch", "test_scalar", "test_tape", "test_value"}
FILES = [path for path in TESTS.glob("test_*.py") if path.stem not in EXCLUDED]
FILES += [path for folder in FOLDERS for path in (TESTS / folder).rglob("test_*.py") if path.stem not in EXCLUDED]
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
@pytest.mark.parametrize("files", group_files(NAMES, size=4))
@pytest.mark.parametrize("device", DEVICES)
def test_tensors_are_the_same_on_each_device(device, files):
    run_on_device(device, files)
