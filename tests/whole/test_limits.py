"""The limits of a device, in elements and in bytes, and of its memory pool."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.backends.limits import MAX_ELEMENTS, allocate_with_retry
from minigrad.core.errors import ArgumentError, OutOfMemoryError, ShapeError
from minigrad.core.storage import get_pool
from needs import needs

needs("taichi")

SIDE = 2**16


pytestmark = pytest.mark.usefixtures("compiled_on_cpu")


@pytest.fixture(autouse=True)
def _restore_limit():
    limit = get_pool("cpu").limit
    yield
    get_pool("cpu").limit = limit


TOO_LARGE = {
    "zeros": lambda: mg.zeros(SIDE, SIDE),
    "ones": lambda: mg.ones(MAX_ELEMENTS + 1),
    "empty": lambda: mg.empty(SIDE, SIDE, dtype=mg.uint8),
    "full": lambda: mg.full((SIDE, SIDE), 1.0),
    "eye": lambda: mg.eye(SIDE),
    "arange": lambda: mg.arange(MAX_ELEMENTS + 1),
    "linspace": lambda: mg.linspace(0, 1, MAX_ELEMENTS + 1),
    "randn": lambda: mg.randn(SIDE, SIDE),
    "broadcasting": lambda: mg.ones(SIDE, 1) + mg.ones(SIDE),
    "comparing": lambda: mg.ones(SIDE, 1) < mg.ones(SIDE),
    "matmul": lambda: mg.ones(SIDE, 1) @ mg.ones(1, SIDE),
    "cat": lambda: mg.functional.cat([mg.ones(1).expand(2**30)] * 2),
    "repeat": lambda: mg.ones(SIDE).repeat(SIDE),
    "pad": lambda: mg.functional.pad(mg.ones(2), (0, MAX_ELEMENTS)),
    "expand": lambda: mg.ones(1).expand(MAX_ELEMENTS + 1),
    "as_strided": lambda: mg.ones(1).as_strided((SIDE, SIDE), (0, 0)),
    "indexing": lambda: mg.ones(1, SIDE)[mg.arange(SIDE) * 0],
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_too_many_elements_raise_before_allocation(case):
    mg.empty_cache()
    used = get_pool("cpu").used_bytes
    with pytest.raises(ShapeError) as error:
        TOO_LARGE[case]()
    first, advice = str(error.value).splitlines()
    assert first.endswith("elements, but a tensor on the device 'cpu' has at most 2,147,418,112.")
    assert advice == '  Use several smaller tensors, or device="numpy".'
    assert get_pool("cpu").used_bytes - used < 4_000_000  # the memory of the operands


def test_the_largest_size_is_accepted_and_numpy_accepts_more():
    assert mg.ones(1).expand(MAX_ELEMENTS).shape == (MAX_ELEMENTS,)
    assert mg.ones(1, device="numpy").expand(SIDE, SIDE).shape == (SIDE, SIDE)


def test_numpy_memory_with_a_large_extent_is_copied():
    far = np.zeros(2**32, np.uint8)[:: 2**31 + 2**20]  # uses no physical memory until written
    far[1] = 7
    assert (mg.from_numpy(far) + 1).tolist() == [1, 8]


def test_pooled_memory_is_released_when_an_allocation_fails():
    x = mg.ones(100_000)
    del x
    pool, calls = get_pool("cpu"), []

    def make():
        calls.append(pool.free_bytes)
        if pool.free_bytes:
            raise MemoryError
        return "memory"

    assert allocate_with_retry(make, 10, pool, "cpu") == "memory"
    assert calls[0] > 0
    assert calls[1] == 0


def test_memory_in_reference_cycles_is_released_too():
    gc.collect()
    cycle = [mg.ones(100_000)]
    cycle.append(cycle)
    pool, used = get_pool("cpu"), []
    del cycle

    def make():
        used.append(pool.used_bytes)
        if len(used) == 1:
            raise MemoryError

    allocate_with_retry(make, 10, pool, "cpu")
    assert used[0] - used[1] >= 400_000


def run_with_memory_limit(code: str) -> str:
    """Run code in a process that may allocate one GiB beyond what it uses after starting Taichi."""
    preamble = (
        "import resource, minigrad as mg\n"
        "mg.set_default_device('cpu')\n"
        "x = mg.ones(1000, 1000) + 1\n"
        "taken = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30), -1))\n"
    )
    child = subprocess.run([sys.executable, "-c", preamble + code], capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr
    return child.stdout


@pytest.mark.needs("Linux")
def test_out_of_memory_reports_sizes_and_leaves_a_usable_state():
    output = run_with_memory_limit(
        "try:\n    mg.ones(1).expand(2**29) + 1.0\nexcept mg.errors.OutOfMemoryError as error:\n    print(error)\n"
        "y = x @ x\nprint(y[0, 0].item())"
    )
    first, advice, result = output.splitlines()
    assert first.startswith("add: out of memory on the device 'cpu': tried to allocate 2.0 GiB. Tensors hold 4.0 MiB ")
    assert first.endswith("of cached memory have been released.")
    assert advice.startswith("  Free tensors (del x, with mg.tidy():), compute in mg.no_grad()")
    assert result == "4000.0"


@pytest.mark.needs("Linux")
def test_numpy_out_of_memory_is_the_same_error():
    output = run_with_memory_limit(
        "try:\n    mg.ones(1, device='numpy').expand(2**29) + 1.0\nexcept MemoryError as error:\n"
        "    print(type(error).__name__, error)"
    )
    assert output.startswith("OutOfMemoryError add: Unable to allocate 2.00 GiB for an array with shape (536870912,)")


def test_out_of_memory_is_a_memory_error():
    def make():
        raise MemoryError

    with pytest.raises(MemoryError) as error:
        allocate_with_retry(make, 5 << 30, get_pool("cpu"), "cpu")
    assert isinstance(error.value, OutOfMemoryError)
    assert str(error.value).startswith("out of memory on the device 'cpu': tried to allocate 5.0 GiB. ")


def test_a_pool_never_exceeds_its_limit():
    mg.empty_cache()
    mg.set_pool_limit(0)
    x = mg.ones(10_000)
    del x
    assert mg.memory()["cpu"].pooled == 0
    mg.set_pool_limit(50_000, "cpu")
    x, y = mg.ones(10_000), mg.ones(10_000)
    del x, y
    assert 40_000 <= mg.memory()["cpu"].pooled <= 50_000
    mg.set_pool_limit(100)
    assert mg.memory()["cpu"].pooled == 0


def test_an_invalid_limit_raises():
    with pytest.raises(ArgumentError, match="set_pool_limit: expected a nonnegative number of bytes, but got -1"):
        mg.set_pool_limit(-1)
    with pytest.raises(ArgumentError, match=r"the device 'numpy' has no memory pool; cpu.* have one"):
        mg.set_pool_limit(1, "numpy")


def test_large_sizes_are_rounded_up_only_slightly():
    pool = get_pool("cpu")
    sizes = [1, 64, 65, 5000, 1 << 32, (1 << 32) + 1, MAX_ELEMENTS * 8]
    rounded = [pool.size_of(size) for size in sizes]
    assert all(size <= got and got % 64 == 0 for size, got in zip(sizes, rounded, strict=True))
    assert rounded[-1] - sizes[-1] < 1 << 16
    assert rounded[-1] // 8 < 2**31, "the length must fit into a 32-bit integer of a GPU buffer"
