"""The limits of a device, in elements and in bytes, and of its memory pool."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.backends.limits import MOST, obtained
from minigrad.core.errors import ArgumentError, OutOfMemoryError, ShapeError
from minigrad.core.storage import pool_of
from needs import needs

needs("taichi")

LONG = 2**16


pytestmark = pytest.mark.usefixtures("compiled_on_cpu")


@pytest.fixture(autouse=True)
def _same_limit():
    limit = pool_of("cpu").limit
    yield
    pool_of("cpu").limit = limit


REFUSED = {
    "zeros": lambda: mg.zeros(LONG, LONG),
    "ones": lambda: mg.ones(MOST + 1),
    "empty": lambda: mg.empty(LONG, LONG, dtype=mg.uint8),
    "full": lambda: mg.full((LONG, LONG), 1.0),
    "eye": lambda: mg.eye(LONG),
    "arange": lambda: mg.arange(MOST + 1),
    "linspace": lambda: mg.linspace(0, 1, MOST + 1),
    "randn": lambda: mg.randn(LONG, LONG),
    "broadcasting": lambda: mg.ones(LONG, 1) + mg.ones(LONG),
    "comparing": lambda: mg.ones(LONG, 1) < mg.ones(LONG),
    "matmul": lambda: mg.ones(LONG, 1) @ mg.ones(1, LONG),
    "cat": lambda: mg.functional.cat([mg.ones(1).expand(2**30)] * 2),
    "repeat": lambda: mg.ones(LONG).repeat(LONG),
    "pad": lambda: mg.functional.pad(mg.ones(2), (0, MOST)),
    "expand": lambda: mg.ones(1).expand(MOST + 1),
    "as_strided": lambda: mg.ones(1).as_strided((LONG, LONG), (0, 0)),
    "indexing": lambda: mg.ones(1, LONG)[mg.arange(LONG) * 0],
}


@pytest.mark.parametrize("what", REFUSED)
def test_more_numbers_than_can_be_counted_are_refused_before_memory_is_taken(what):
    mg.empty_cache()
    used = pool_of("cpu").used
    with pytest.raises(ShapeError) as error:
        REFUSED[what]()
    first, advice = str(error.value).splitlines()
    assert first.endswith("elements, but a tensor on the device 'cpu' has at most 2,147,418,112.")
    assert advice == '  Use several smaller tensors, or device="numpy".'
    assert pool_of("cpu").used - used < 4_000_000  # the memory of the operands


def test_the_most_that_can_be_counted_is_taken_and_numpy_takes_more():
    assert mg.ones(1).expand(MOST).shape == (MOST,)
    assert mg.ones(1, device="numpy").expand(LONG, LONG).shape == (LONG, LONG)


def test_memory_of_numpys_that_reaches_too_far_is_copied():
    far = np.zeros(2**32, np.uint8)[:: 2**31 + 2**20]  # uses no physical memory until written
    far[1] = 7
    assert (mg.from_numpy(far) + 1).tolist() == [1, 8]


def test_memory_that_the_pool_keeps_is_given_back_when_the_device_refuses():
    x = mg.ones(100_000)
    del x
    pool, calls = pool_of("cpu"), []

    def make():
        calls.append(pool.held)
        if pool.held:
            raise MemoryError
        return "memory"

    assert obtained(make, 10, pool, "cpu") == "memory"
    assert calls[0] > 0
    assert calls[1] == 0


def test_memory_in_cycles_is_given_back_too():
    gc.collect()
    cycle = [mg.ones(100_000)]
    cycle.append(cycle)
    pool, used = pool_of("cpu"), []
    del cycle

    def make():
        used.append(pool.used)
        if len(used) == 1:
            raise MemoryError

    obtained(make, 10, pool, "cpu")
    assert used[0] - used[1] >= 400_000


def in_a_child(code: str) -> str:
    """Run code in a process that may allocate one GiB beyond what it uses after starting Taichi."""
    begin = (
        "import resource, minigrad as mg\n"
        "mg.set_default_device('cpu')\n"
        "x = mg.ones(1000, 1000) + 1\n"
        "taken = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30), -1))\n"
    )
    child = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr
    return child.stdout


@pytest.mark.needs("Linux")
def test_out_of_memory_says_what_was_asked_held_and_kept_and_leaves_a_usable_state():
    said = in_a_child(
        "try:\n    mg.ones(1).expand(2**29) + 1.0\nexcept mg.errors.OutOfMemoryError as error:\n    print(error)\n"
        "y = x @ x\nprint(y[0, 0].item())"
    )
    first, advice, result = said.splitlines()
    assert first.startswith("add: out of memory on the device 'cpu': tried to allocate 2.0 GiB. Tensors hold 4.0 MiB ")
    assert first.endswith("of cached memory have been released.")
    assert advice.startswith("  Free tensors (del x, with mg.tidy():), compute in mg.no_grad()")
    assert result == "4000.0"


@pytest.mark.needs("Linux")
def test_numpy_out_of_memory_is_the_same_error():
    said = in_a_child(
        "try:\n    mg.ones(1, device='numpy').expand(2**29) + 1.0\nexcept MemoryError as error:\n"
        "    print(type(error).__name__, error)"
    )
    assert said.startswith("OutOfMemoryError add: Unable to allocate 2.00 GiB for an array with shape (536870912,)")


def test_out_of_memory_is_a_memory_error():
    def make():
        raise MemoryError

    with pytest.raises(MemoryError) as error:
        obtained(make, 5 << 30, pool_of("cpu"), "cpu")
    assert isinstance(error.value, OutOfMemoryError)
    assert str(error.value).startswith("out of memory on the device 'cpu': tried to allocate 5.0 GiB. ")


def test_a_pool_keeps_no_more_than_its_limit():
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


def test_a_limit_that_is_none_is_refused():
    with pytest.raises(ArgumentError, match="set_pool_limit: expected a nonnegative number of bytes, but got -1"):
        mg.set_pool_limit(-1)
    with pytest.raises(ArgumentError, match=r"the device 'numpy' has no memory pool; cpu.* have one"):
        mg.set_pool_limit(1, "numpy")


def test_what_is_very_large_takes_no_more_memory_than_it_needs():
    pool = pool_of("cpu")
    sizes = [1, 64, 65, 5000, 1 << 32, (1 << 32) + 1, MOST * 8]
    taken = [pool.size_of(size) for size in sizes]
    assert all(size <= got and got % 64 == 0 for size, got in zip(sizes, taken, strict=True))
    assert taken[-1] - sizes[-1] < 1 << 16
    assert taken[-1] // 8 < 2**31, "the length must fit into a 32-bit integer of a GPU buffer"
