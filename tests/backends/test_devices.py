"""Device names are defined in a single list."""

import re
from pathlib import Path

import minigrad as mg
from minigrad.backends.devices import DEVICES, GPUS, NO_FLOAT64
from minigrad.cli.doctor import DRIVERS
from minigrad.core import storage
from needs import needs

ROOT = Path(mg.__file__).parents[1]


def test_every_device_has_an_allocator():
    needs("taichi")
    assert all(storage.get_allocator(name) for name in DEVICES)


def test_gpu_lists_are_consistent():
    assert set(NO_FLOAT64) < set(GPUS) < set(DEVICES)
    assert tuple(DRIVERS) == GPUS


def test_no_other_file_lists_the_devices():
    again = re.compile(r'"(cuda|vulkan)",\s*"(vulkan|metal)"')
    files = [path for folder in ("minigrad", "tests", "examples", "viz") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in files if again.search(path.read_text(encoding="utf-8"))] == ["devices.py"]
