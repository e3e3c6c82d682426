"""Living with Taichi in one process: a reader who starts it before us or after, and texts that are moved to a GPU."""

import subprocess
import sys

import pytest

pytest.importorskip("taichi")

from minigrad.backends.taichi.offsets import moved


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_a_reader_s_taichi_that_was_started_before_is_shared_and_compiles_ours_as_we_need_it():
    """fast_math would let nan be compared away, and vectors be taken apart."""
    assert run("""
import taichi as ti
ti.init(arch=ti.cpu, log_level="error", fast_math=True, default_fp=ti.f32)
field = ti.field(ti.f32, shape=4)
field.fill(3)
import minigrad as mg
x = mg.tensor([1.0, -1.0, float("nan")])
print(x.sqrt().isnan().tolist(), (x + 0.1).dtype, (mg.ones(1000) * 3).sum().item())
config = ti.lang.impl.current_cfg()
print(field.to_numpy().tolist(), config.fast_math, config.real_matrix_scalarize, ti.lang.impl.get_runtime().default_fp)
""")[-2:] == ["[False, True, True] minigrad.float32 3000.0", "[3.0, 3.0, 3.0, 3.0] True True f32"]


def test_tensors_outlive_a_start_of_taichi_after_ours():
    assert (
        run("""
import taichi as ti, minigrad as mg
x = mg.tensor([1.0, 2.0], requires_grad=True)
y = (x * x).sum()
ti.init(arch=ti.cpu, log_level="error")
y.backward()
ti.reset()
print((x.grad + x).tolist())
""")[-1]
        == "[3.0, 6.0]"
    )


def test_nothing_is_printed_by_taichi():
    assert run("import minigrad as mg; print((mg.ones(2) + 1).tolist())") == ["[2.0, 2.0]"]


def test_what_a_kernel_writes_is_known_also_through_functions():
    text = """@ti.func
def put(y: ti.template(), x: ti.template(), at):
    y[at] = x[at]


@ti.kernel
def both_kernel(y_: ti.types.ndarray(dtype=ti.f32, ndim=1), x_: ti.types.ndarray(dtype=ti.i64, ndim=1), n: ti.i32):
    for i in range(n):
        put(y_, x_, i)
"""
    found = moved(text, False)
    assert (found.arrays, found.written) == (("f32", "i64"), (True, False))
    assert "put(y_, y_from, x_, x_from, i)" in found.text
    assert "y[y_from + at] = x[x_from + at]" in found.text


def test_float64_of_a_kernel_s_own_is_float32_where_there_is_none():
    text = """@ti.kernel
def sum_kernel(y_: ti.types.ndarray(dtype=ti.f64, ndim=1), n: ti.i32):
    s = ti.cast(0, ti.f64)
    y_[n] = ti.log(s)
"""
    found = moved(text, True)
    assert found.arrays == ("f32",)
    assert "f64" not in found.text
    assert "log_alone(s)" in found.text
