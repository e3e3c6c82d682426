"""LLVM functions that kernels call: fused multiply-add, sums of lanes, and spin barriers."""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.backends.taichi.codegen import barrier, source
from minigrad.backends.taichi.runtime.kernel import Kernel
from minigrad.compiler.jit import step_trace
from needs import needs

needs("taichi")

pytestmark = pytest.mark.needs("fused multiply-add", "the device cpu")

TEXT = """@ti.kernel
def check_{of}_kernel(y_: {vector}, a_: {vector}, b_: {vector}, s_: {number}):
    ti.loop_config(serialize=True)
    for i in range(1):
        one = s_[0]
        a = a_[0]
        b = b_[0]
        c = y_[0]
        muladd.{of}(c, one, b)
        y_[1] = c
        c = y_[0]
        muladd.{of}_vectors(c, a, b)
        y_[2] = c
        muladd.{of}_sum(one, b)
        s_[1] = one
"""


def aligned_array(count, dtype):
    """Return an array that is aligned to a cache line."""
    room = np.zeros(count + 16, dtype)
    return room[(-room.ctypes.data % 64) // room.itemsize :][:count]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_once_and_lanes_are_summed_by_halves(dtype):
    lanes = 64 // np.dtype(dtype).itemsize
    rng = np.random.default_rng(0)
    y, a, b, s = (aligned_array(size, dtype) for size in (3 * lanes, lanes, lanes, 2))
    a[:], b[:], s[0] = rng.normal(size=lanes), rng.normal(size=lanes), 1 / 3
    y[:lanes] = -(a * b)  # leaves the rounding error of the product
    factor = s[0]
    vector, number = (source.array_annotation(dtype, n) for n in (lanes, 1))
    kernel = Kernel(
        f"check_{source.TAICHI_NAMES[dtype]}",
        TEXT.format(of=source.TAICHI_NAMES[dtype], vector=vector, number=number),
        "aaaa",
    )
    kernel(*[(x.ctypes.data, 1, 64) for x in (y, a, b, s)])
    for row, left in ((1, np.full(lanes, factor)), (2, a)):
        exact = [
            Fraction(float(p)) * Fraction(float(q)) + Fraction(float(c)) for p, q, c in zip(left, b, y, strict=False)
        ]
        assert y[row * lanes : (row + 1) * lanes].tolist() == [float(np.dtype(dtype).type(float(x))) for x in exact]
    assert np.abs(y[2 * lanes :]).max() > 0  # with two roundings it would be 0
    total = b
    while len(total) > 1:
        low, high = np.split(total, 2)
        total = low + high
    assert s[1] == total[0]


FUNCTIONS_OF_FLOATS = """@ti.kernel
def check_floats_kernel(y_: {vector}, a_: {vector}, b_: {vector}, s_: {number}):
    ti.loop_config(serialize=True)
    for i in range(1):
        factor, addend = s_[0], s_[1]
        a = a_[0]
        c = a_[0]
        muladd.f32_affine(c, factor, addend)
        y_[0] = c
        muladd.f32_horner(c, a, factor)
        y_[1] = c
        b = b_[0]
        c = a_[0]
        muladd.f32_ldexp(c, b)
        y_[2] = c
        c = ti.max(y_[2], y_[2] * ti.f32(-1.0))
        muladd.f32_frexp(c, b)
        y_[3] = c
        y_[4] = b
"""


def test_polynomials_use_fma_and_powers_of_two_are_exact():
    rng = np.random.default_rng(0)
    y, a, b, s = (aligned_array(size, "float32") for size in (80, 16, 16, 2))
    a[:], b[:], s[:] = rng.normal(size=16), rng.integers(-100, 100, size=16), (1 / 3, -1 / 7)
    vector, number = (source.array_annotation("float32", n) for n in (16, 1))
    kernel = Kernel("check_floats", FUNCTIONS_OF_FLOATS.format(vector=vector, number=number), "aaaa")
    kernel(*[(x.ctypes.data, 1, 64) for x in (y, a, b, s)])
    line, following, scaled, left, power = y.reshape(5, 16)

    def rounded(p, q, r):
        return np.float32(float(Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r))))

    assert line.tolist() == [rounded(x, s[0], s[1]) for x in a]
    assert following.tolist() == [rounded(p, x, s[0]) for p, x in zip(line, a, strict=True)]
    assert scaled.tolist() == np.ldexp(a, b.astype(int)).tolist()
    assert np.ldexp(left, power.astype(int)).tolist() == np.abs(scaled).tolist()
    assert np.sqrt(0.5) <= left.min()
    assert left.max() < np.sqrt(2)


PARTIAL_VECTORS = """@ti.kernel
def check_partial_kernel(y_: ti.i64, a_: ti.i64):
    ti.loop_config(serialize=True)
    for n in range({lanes} + 2):
        vector = ti.Vector([ti.{scalar}(7.0) for _ in range({lanes})])
        count = n
        address = a_ + n * {itemsize}
        muladd.{scalar}_load(vector, address, count)
        vector = vector * ti.{scalar}(2.0)
        address = y_ + n * {room} * {itemsize}
        muladd.{scalar}_store(address, vector, count)
        address = y_ + (n * {room} + 20) * {itemsize}
        count = {lanes}
        muladd.{scalar}_store(address, vector, count)
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loads_and_stores_of_the_first_elements_of_a_vector(dtype):
    itemsize, scalar, room = np.dtype(dtype).itemsize, source.TAICHI_NAMES[dtype], 41  # at all alignments
    lanes = 64 // itemsize
    a, y = np.arange(1, 60, dtype=dtype), np.full((lanes + 2, room), -1, dtype)
    text = PARTIAL_VECTORS.format(lanes=lanes, scalar=scalar, itemsize=itemsize, room=room)
    Kernel("check_partial", text, "pp")(*[(x.ctypes.data, x.size, x.nbytes) for x in (y, a)])
    for n in range(lanes + 2):
        count = min(n, lanes)
        expected = np.full(room, -1, dtype)
        expected[:count] = expected[20 : 20 + count] = 2 * a[n : n + count]
        expected[20 + count : 20 + lanes] = 0
        assert y[n].tolist() == expected.tolist()


def train(jit):
    """Return losses and weights after steps of a perceptron that is large enough for all cores, and the step."""
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(784, 256), mg.nn.ReLU(), mg.nn.Linear(256, 10))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    x, y = mg.randn(256, 784), mg.randint(0, 10, (256,))

    def step():
        optimizer.zero_grad()
        loss = mg.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step = mg.jit(step) if jit else step
    losses = [step().item() for _ in range(40)]
    return losses, [p.tolist() for p in model.parameters()], step


needs_barriers = pytest.mark.needs("free cores")


@pytest.mark.nightly
@needs_barriers
def test_a_merged_step_has_barriers_and_the_bits_of_eager(monkeypatch):
    monkeypatch.setattr(step_trace, "MERGE_AFTER_REPLAYS", 1)
    losses, weights, step = train(jit=True)
    assert (losses, weights) == train(jit=False)[:2]
    text = step.source
    assert text.count("muladd.barrier_wait(") > 2
    shared = [line for line in text.splitlines() if line.startswith("    for ") and "512)" in line]
    assert len(shared) == 1  # all parallel loops are merged


def test_parallel_loops_are_merged_from_first_to_last():
    one = barrier.KernelLoop(barrier.SERIAL, "pass\n", "k")
    each = barrier.KernelLoop(barrier.PARALLEL, "pass\n", "i", "n")
    other = barrier.KernelLoop(barrier.STATEMENT, "x = 1\n")
    text = barrier.insert_barriers([one, each, one, one, each, one], "counter")
    assert text.count("muladd.barrier_wait(") == 2  # none between serial loops
    assert text.count("for k in range(1)") == 2  # before and after
    order = [
        text.index(x)
        for x in ("for k in", "muladd.barrier_reset", "for i in", "muladd.barrier_wait", "if core_id == 0")
    ]
    assert order == sorted(order)
    assert "muladd" not in barrier.insert_barriers(
        [one, each, one], "counter"
    )  # a single parallel loop needs no barrier
    assert "muladd" not in barrier.insert_barriers([each, other, each], "counter")
    assert "muladd" not in barrier.insert_barriers([each, each], "")


@needs_barriers
@pytest.mark.nightly
def test_processes_that_share_cores_do_not_deadlock():
    """Each spins for threads that the scheduler may have put behind those of the other."""
    code = "import test_muladd as here; print(sum(here.train(True)[0]))"
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", code]
    children = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = {child.communicate(timeout=300)[0] for child in children}
    assert len(printed) == 1
    assert float(printed.pop()) > 0
