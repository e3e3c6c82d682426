"""Taichi shared with the user's code, started before minigrad or after, and sources transformed for a GPU."""

import os
import platform
import re
import subprocess
import sys

import pytest

from minigrad.backends.taichi.runtime import buffers, driver
from minigrad.backends.taichi.runtime.transforms import add_offsets
from needs import needs

needs("taichi")


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_a_running_taichi_is_shared_with_our_compiler_options():
    """Otherwise fast_math would optimise away tests for nan, and vectors would be scalarised."""
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


def test_tensors_survive_a_restart_of_taichi():
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


def test_nothing_is_printed_by_taichi_in_a_notebook_either():
    """In a notebook Python's stdout differs from that of the process."""
    code = "import sys, io\nsys.stdout = io.StringIO()\nimport minigrad as mg\nmg.ones(2, device='cpu') + 1\n"
    code += "assert not sys.stdout.getvalue()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("names", [["HOME"], ["HOME", "TI_OFFLINE_CACHE_FILE_PATH"]])
def test_an_unwritable_cache_folder_warns_once(names, tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    others = "TI_OFFLINE_CACHE_FILE_PATH", "XDG_CACHE_HOME"
    environment = {name: value for name, value in os.environ.items() if name not in others}
    environment |= dict.fromkeys(names, str(file))
    code = "import minigrad as mg; print(mg.ones(3, device='cpu').exp().sum().item(), (mg.ones(2) * 2).tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "8.154845237731934 [2.0, 2.0]\n")
    assert done.stderr.count("UserWarning: Compiled kernels cannot be cached in ") == 1
    assert "), so each process compiles them again." in done.stderr
    assert "Traceback" not in done.stderr


def test_written_arrays_are_found_through_functions():
    text = """@ti.func
def put(y: ti.template(), x: ti.template(), at):
    y[at] = x[at]


@ti.kernel
def both_kernel(y_: ti.types.ndarray(dtype=ti.f32, ndim=1), x_: ti.types.ndarray(dtype=ti.i64, ndim=1), n: ti.i32):
    for i in range(n):
        put(y_, x_, i)
"""
    found = add_offsets(text, False)
    assert (found.element_types, found.is_written) == (("f32", "i64"), (True, False))
    assert "put(y_, y_base, x_, x_base, i)" in found.source
    assert "y[y_base + at] = x[x_base + at]" in found.source


def test_float64_becomes_float32_on_devices_without_it():
    text = """@ti.kernel
def sum_kernel(y_: ti.types.ndarray(dtype=ti.f64, ndim=1), n: ti.i32):
    s = ti.cast(0, ti.f64)
    y_[n] = ti.log(s)
"""
    found = add_offsets(text, True)
    assert found.element_types == ("f32",)
    assert "f64" not in found.source
    assert "log_scalar(s)" in found.source


@pytest.mark.parametrize(
    ("name", "dtype", "exact"), [("div", "f32", True), ("div", "f64", False), ("mul", "f32", False)]
)
def test_quotients_of_float32_are_computed_in_float64_for_cuda(name, dtype, exact):
    text = f"""@ti.kernel
def {name}_kernel(y_: ti.types.ndarray(dtype=ti.{dtype}, ndim=1), n: ti.i32):
    y_[n] = y_[n] / (y_[n] - 1)
"""
    quotient = "ti.f32(ti.f64(y_[y_base + n]) * (1.0 / ti.f64(y_[y_base + n] - 1)))"
    assert (quotient in add_offsets(text, False, cuda=True).source) is exact
    assert quotient not in add_offsets(text, False).source


def test_this_quotient_is_correctly_rounded():
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = (rng.integers(2**23, 2**24, 1_000_000).astype(np.float32) for _ in range(2))
    found = (a.astype(np.float64) * (1.0 / b.astype(np.float64))).astype(np.float32)
    np.testing.assert_array_equal(found, a / b)


def test_the_error_names_the_device_set_by_the_environment(monkeypatch):
    """Taichi takes the architecture from TI_ARCH, whichever is requested."""
    monkeypatch.setenv("TI_ARCH", "arm64" if platform.machine() in ("arm64", "aarch64") else "x64")
    said = run("""
import minigrad as mg
from minigrad.backends.taichi.runtime import buffers
from minigrad.backends.taichi.runtime import driver
driver.is_device_available = lambda name: True
try:
    mg.ones(2, device="vulkan")
except mg.errors.DeviceError as error:
    print(error)
print((mg.ones(2, device="cpu") + 1).tolist())
""")
    assert said[-3].startswith("vulkan: this process computes on cpu")
    assert said[-1] == "[2.0, 2.0]"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("CUDA Error CUDA_ERROR_OUT_OF_MEMORY: out of memory while calling malloc_async_impl", MemoryError),
        ("[gfx_program.cpp:allocate_memory_on_device@51] Assertion failure: res == RhiResult::success", MemoryError),
        ("CUDA Error CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", RuntimeError),
    ],
)
def test_only_out_of_memory_errors_become_memory_errors(said, kind, monkeypatch):
    class Program:
        def create_ndarray(self, *args, **options):
            raise RuntimeError(said)

    driver.start()
    monkeypatch.setattr(driver.state, "program", Program())
    monkeypatch.setattr(driver, "is_current", lambda: True)
    with pytest.raises(kind, match=re.escape(said)) as error:
        buffers.DeviceBuffer(64)
    assert error.type is kind


STEP = """
import minigrad as mg
mg.manual_seed(0)
model = mg.nn.Sequential(mg.nn.Linear(6, 32), mg.nn.ReLU(), mg.nn.Linear(32, 3))
optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
x, y = mg.randn(20, 6), mg.arange(20) % 3
@mg.jit
def step(x, y):
    optimizer.zero_grad()
    loss = mg.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
for _ in range(20):
    loss = step(x, y)
print(loss.item(), "merged into" in step.program)
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path, monkeypatch):
    """Taichi caches compiled kernels on disk, also merged ones of a jitted step, and finds all of them again."""
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path))
    stored = []
    for _ in range(2):
        assert run(STEP)[-1].endswith(" True")
        stored.append(sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.rglob("*.tic")))
    assert stored[0] == stored[1]
    assert len(stored[0]) > 5


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.needs("Linux")
def test_the_disk_cache_survives_concurrent_processes_and_damage(tmp_path):
    settings = {**os.environ, "TI_OFFLINE_CACHE_FILE_PATH": str(tmp_path), "MINIGRAD_DEVICE": "cpu"}

    def ran(processes):
        how = {"env": settings, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        children = [subprocess.Popen([sys.executable, "-c", STEP], **how) for _ in range(processes)]
        found = [(*child.communicate(), child.returncode) for child in children]
        assert all((error, code) == ("", 0) for _, error, code in found), found
        return {said for said, _, _ in found}

    (said,) = ran(2)
    assert said.endswith(" True\n")
    kept = sorted(tmp_path.rglob("*.ti*"))
    assert len(kept) > 5
    for k, path in enumerate(kept):
        data = path.read_bytes()
        path.write_bytes((b"", data[: len(data) // 2], bytes(len(data)))[k % 3])
    assert ran(1) == {said}
