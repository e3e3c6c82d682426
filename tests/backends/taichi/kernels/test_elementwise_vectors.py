"""Snippets vectorised by 16 agree with scalar evaluation, in every corner case and for every alignment and size."""

import os
import subprocess
import sys

import numpy as np
import pytest

from cases import merge_cases
from minigrad.backends.taichi.codegen import snippets, source
from minigrad.backends.taichi.kernels import elementwise
from minigrad.backends.taichi.runtime import array, kernel
from minigrad.core.dispatch import get_kernels
from minigrad.core.op import OPS
from needs import needs
from strategies import ATTRS
from taichi_device import in_memory
from tiers import cross

needs("taichi")

pytestmark = in_memory

CORNERS = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, -1e-40, 1e-38, -1e-38, 1e-20, 1e-8, -1e-8, 0.5, -0.5,
    1.0, -1.0, 2.0, 3.92, -3.92, 9.0, -9.1, 20.0, -20.0, 87.4, -87.3, 88.72, 88.73, -100.0, -103.9, -104.5, 3e38, -3e38,
]  # fmt: skip
rng = np.random.default_rng(0)
MANY = np.concatenate(
    [CORNERS, rng.normal(size=4000) * 3, np.exp(rng.uniform(-87, 88, 4000)), rng.uniform(-87, 88, 4003)]
).astype(np.float32)
# The largest error in units of the last place, where the result is not denormal and nothing cancels.
ULPS = {"exp": 1.5, "log": 1.5, "tanh": 6.0, "erf": 6.0, "sigmoid": 2.5, "softplus": 3.0, "expm1": 3.0, "log1p": 3.0}
PAIRS = ("add", "sub", "mul", "div", "maximum", "minimum", "mse_loss", "hinge_loss")


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def on_cpu(op, *inputs, **options):
    return get_kernels(op)["cpu"](*inputs, **options, **ATTRS.get(op, {}))


def snippet_kernels(op, count):
    """Return the float32 kernel family of an operation."""
    key = (op, snippets.SNIPPETS[op], *[np.dtype(np.float32)] * (count + 1))
    return elementwise._families[key]


def host(x):
    return x.view(np.ndarray)


def assert_same_class(a, b):
    """Check that both are nan, the same infinity, or finite, and that zeros have the same sign."""
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    np.testing.assert_array_equal(a[np.isinf(a) | np.isinf(b)], b[np.isinf(a) | np.isinf(b)])
    zeros = (a == 0) & (b == 0)
    np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(b[zeros]))


@pytest.mark.parametrize("op", ULPS)
def test_function_is_accurate_to_a_few_ulps(op):
    y = host(on_cpu(op, array.copy_to_device(MANY)))
    assert snippet_kernels(op, 1).vectorisable
    exact = np.asarray(get_kernels(op)["numpy"](MANY.astype(np.float64)))
    rounded = exact.astype(np.float32)
    assert_same_class(y, rounded)
    normal = np.isfinite(rounded) & (abs(rounded) >= 1.2e-38)
    assert (abs(y - exact)[normal] <= ULPS[op] * np.spacing(abs(rounded[normal]))).all()
    assert (abs(y - exact)[np.isfinite(rounded) & ~normal] <= 3e-45).all()  # two units in the last place of a denormal


ONE = [op for op, s in snippets.SNIPPETS.items() if len(OPS[op].inputs) == 1 and source.has_vector_form(s)]


@merge_cases
@pytest.mark.parametrize("op", ONE)
def test_vectorised_result_matches_scalar_result(op):
    shifted = array.empty((len(MANY) + 1,), np.float32)[1:]  # misaligned, which prevents vector loads
    host(shifted)[:] = MANY
    wide, scalar_result = host(on_cpu(op, array.copy_to_device(MANY))), host(on_cpu(op, shifted))
    assert_same_class(wide, scalar_result)
    fine = np.isfinite(scalar_result)
    np.testing.assert_allclose(wide[fine], scalar_result[fine], rtol=1e-6, atol=1.2e-38 if op not in GELUS else 1e-6)


GELUS = {"gelu", "gelu_tanh"}  # 1 + erf and 1 + tanh cancel far below 0, in either form


@merge_cases
@pytest.mark.parametrize("op", PAIRS)
@pytest.mark.parametrize(
    "size",
    [1, 15, 16, 17, 1023, 1024, 1025, source.MAX_SERIAL_VECTOR_ELEMENTS - 1, source.MAX_SERIAL_VECTOR_ELEMENTS + 17],
)
def test_every_element_is_computed_and_none_past_the_end(op, size):
    x, y = rng.normal(size=(2, size)).astype(np.float32)
    x[: len(CORNERS)] = CORNERS[:size]
    x[-len(CORNERS) :] = CORNERS[-size:]
    out = host(on_cpu(op, array.copy_to_device(x), array.copy_to_device(y)))
    assert snippet_kernels(op, 2).vectorisable
    np.testing.assert_array_equal(out, get_kernels(op)["numpy"](x, y))


@pytest.mark.parametrize(("start", "stop"), [(0, 100), (1, 101), (16, 116), (16, 128), (32, 96), (3, 3)])
def test_write_to_a_view_stops_at_its_end(start, stop):
    memory = array.copy_to_device(np.zeros(160, np.float32))
    x = array.copy_to_device(np.arange(160, dtype=np.float32))
    on_cpu("add", x[start:stop], 1.0, out=memory[start:stop])
    expected = np.zeros(160, np.float32)
    expected[start:stop] = np.arange(start, stop) + 1
    np.testing.assert_array_equal(host(memory), expected)


@pytest.mark.parametrize("offset", [0, 4, 64])
@pytest.mark.parametrize("size", [31, 32, 16])
def test_read_of_numpy_memory_stops_at_its_end(offset, size):
    raw = np.zeros(512, np.uint8)
    raw = raw[-raw.ctypes.data % 64 + offset :][: 4 * size].view(np.float32)
    raw[:] = np.arange(size)
    np.testing.assert_array_equal(host(on_cpu("square", raw.view(array.CpuArray))), np.arange(size) ** 2)


def test_transposed_arrays_of_equal_layout_run_contiguously():
    x = array.copy_to_device(rng.normal(size=(33, 40)).astype(np.float32))
    y = on_cpu("exp", x.T)
    assert y.strides == x.T.strides
    np.testing.assert_array_equal(host(y), host(on_cpu("exp", x)).T)


ROWS = {
    "row": ((40, 48), (48,)),
    "column": ((40, 48), (40, 1)),
    "number": ((40, 48), ()),
    "both": ((40, 1), (1, 48)),
    "row of each of several": ((3, 5, 64), (3, 1, 64)),
    "column of each of several": ((3, 5, 64), (3, 5, 1)),
    "rows that are not whole": ((40, 50), (50,)),
    "rows of half a vector": ((40, 24), (24,)),
    "columns of a quarter of one": ((40, 100), (40, 1)),
    "long rows": ((3, 4800), (4800,)),
    "long rows that are not whole": ((3, 2500), (3, 1)),
    "many": ((300, 1600), (1600,)),
}


@merge_cases
@pytest.mark.parametrize("shapes", ROWS.values(), ids=ROWS)
@cross(1, op=["add", "div", "maximum"], dtype=["float32", "float64"])
def test_broadcast_operands_are_vectorised_along_rows(op, shapes, dtype):
    x, y = (np.asarray(rng.normal(size=shape)).astype(dtype) for shape in shapes)
    for a, b in ((x, y), (y, x)):
        out = host(on_cpu(op, array.copy_to_device(a), array.copy_to_device(b)))
        np.testing.assert_array_equal(out, get_kernels(op)["numpy"](a, b))


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(8, 16), (200, 200), (3, 40, 64), (5, 6, 12), (7, 9), (130, 1000)], ids=str)
def test_copies_agree_for_any_unit(shape, dtype):
    x = np.asarray(100 * rng.normal(size=shape)).astype(dtype)
    for key in (np.s_[1:], np.s_[:, :8], np.s_[:, 4:], np.s_[::2], np.s_[:, ::2], np.s_[:, ::-1], np.s_[..., 1:]):
        np.testing.assert_array_equal(host(on_cpu("contiguous", array.copy_to_device(x)[key])), x[key])
        y, z = array.copy_to_device(x), x.copy()
        elementwise.copy_into(y[key], array.copy_to_device(x[key] // 2))
        z[key] = x[key] // 2
        np.testing.assert_array_equal(host(y), z)
    turned = on_cpu("contiguous", array.copy_to_device(x).swapaxes(0, 1))
    np.testing.assert_array_equal(host(turned), x.swapaxes(0, 1))


@pytest.mark.parametrize("key", [np.s_[:, :16], np.s_[:, 16:], np.s_[:, 1:17], np.s_[::2], np.s_[::-1], np.s_[:, ::-1]])
def test_slices_are_read_and_written_in_place(key):
    x, y = rng.normal(size=(2, 6, 48)).astype(np.float32)
    a, b = array.copy_to_device(x), array.copy_to_device(y)
    on_cpu("mul", a[key], b[key], out=a[key])
    elementwise.evaluate("fill", "value", (), np.float32, b[key], {"value": 2.5})
    x[key] *= y[key]
    y[key] = 2.5
    np.testing.assert_array_equal(host(a), x)
    np.testing.assert_array_equal(host(b), y)


def test_functions_take_scalars_and_per_row_values():
    x, b = rng.normal(size=(2, 40, 48)).astype(np.float32)
    column, wide = b[:, :1], np.broadcast_to(b[:, :1], b.shape)
    expanded = np.broadcast_to(array.copy_to_device(column), b.shape, subok=True)
    for op, inputs, given in (
        ("exp", (expanded,), (wide,)),
        ("gelu_backward", (array.copy_to_device(x), array.copy_to_device(column)), (x, column)),
        ("gelu_backward", (array.copy_to_device(x), 0.75), (x, np.float32(0.75))),
    ):
        expected = get_kernels(op)["numpy"](*given)
        np.testing.assert_allclose(host(on_cpu(op, *inputs)), expected, rtol=2e-6, atol=1e-6)


def test_scalar_operands_are_not_rounded():
    x = rng.normal(size=50).astype(np.float32)
    np.testing.assert_array_equal(host(on_cpu("sub", 2, array.copy_to_device(x))), np.float32(2) - x)
    np.testing.assert_array_equal(host(on_cpu("div", array.copy_to_device(x), 3.0)), x / np.float32(3))


def test_an_array_may_be_updated_in_place():
    x = rng.normal(size=70000).astype(np.float32)
    a = array.copy_to_device(x)
    assert on_cpu("mul", a, a, out=a) is a
    np.testing.assert_array_equal(host(a), x * x)


def test_starting_taichi_preserves_numpy_denormals():
    on_cpu("add", array.copy_to_device(MANY), 1.0)
    assert (np.array([1e-45], np.float32) * np.float32(1))[0] > 0


FORKED = """
import os
import minigrad as mg
from cases import merge_cases
mg.set_default_device("cpu")
x = mg.tensor([1.0])
x + x
pid = os.fork()
if pid == 0:
    try:
        x + x
    except mg.errors.DeviceError as error:
        os._exit(7 if "spawn" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.needs("fork")
def test_a_forked_child_raises_for_a_kernel_that_its_parent_had_launched():
    path = os.pathsep.join(sys.path)
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert (done.stdout.strip(), done.returncode) == ("7", 0), done.stderr


@pytest.mark.needs("fused multiply-add")
@pytest.mark.parametrize("more", [0, 1, 15])
def test_large_result_uses_non_temporal_stores(monkeypatch, more):
    """If it is cache-line aligned and aliases no operand."""
    monkeypatch.setattr(source, "CACHE_BYPASS_ELEMENTS", 1 << 18)
    a, b = (array.copy_to_device(rng.normal(size=(1 << 18) + more).astype(np.float32)) for _ in range(2))
    texts = []
    with kernel.observe_launches(lambda made: texts.append(made.source)):
        y = on_cpu("add", a, b)
        on_cpu("add", a[: 1 << 17], b[: 1 << 17])
        part = on_cpu("mul", a[1:], b[1:])
        expected = host(y) + host(b)
        on_cpu("add", y, b, out=y)
    np.testing.assert_array_equal(host(y), expected)
    np.testing.assert_array_equal(host(part), host(a)[1:] * host(b)[1:])
    assert ["muladd.stream_store(" in text for text in texts] == [True, False, False, False]
