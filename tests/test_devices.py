"""The tests that compute with tensors, once more with tensors on each device that is not the default one.

They run in child processes, since a process has one architecture of Taichi's. That nothing is left out on a
device for want of a kernel is part of the claim.
"""

from pathlib import Path

import pytest

import minigrad as mg
from children import handfuls, on_device

HERE = Path(__file__).parent

DEVICES = [device for device in ("numpy",) if device != mg.get_default_device()]
# Of Values, of files and declarations, or with devices of their own; each other file is about tensors.
APART = {
    "architecture",
    "cli",
    "cli_lessons",
    "devices",
    "distributed_cluster",
    "distributed_faults",
    "dtypes",
    "engine",
    "generators",
    "help",
    "grading",
    "lessons",
    "lessons_elsewhere",
    "notebooks",
    "on_gpu",
    "pytorch",
    "readme",
    "stubs",
    "sweep",
    "tape",
    "torture",
    "value",
}
FILES = sorted(path.name for path in HERE.glob("test_*.py") if path.stem.removeprefix("test_") not in APART)
FILES += [f"data/test_{name}.py" for name in ("collate", "dataset", "loader", "sampler", "toys", "transforms")]
FILES += ["optim/test_optimizer.py", "optim/test_trajectories.py"]
FILES += [f"nn/{path.name}" for path in sorted((HERE / "nn").glob("test_*.py")) if path.stem != "test_scalar"]
FILES += ["viz/test_alarms.py", "viz/test_tensors.py", "viz/test_tensors_drawn.py"]  # the viewer looks into arrays


@pytest.mark.nightly
@pytest.mark.parametrize("files", handfuls(FILES, of=4))
@pytest.mark.parametrize("device", DEVICES)
def test_tensors_are_the_same_on_each_device(device, files):
    on_device(device, files)
