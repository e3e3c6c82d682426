"""Custom kernels: functions and snippets, also from notebook cells, and the errors of invalid ones."""

import functools
import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from lazy import import_lazily
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.op import ANY, OPS
from tiers import NIGHTLY

ti = import_lazily("taichi")


@pytest.fixture(autouse=True)
def swish(compiled_on_cpu):
    yield mg.Op(
        "swish",
        r"\operatorname{swish}\left({a}\right)",
        vjp=(lambda g, y, a: g * (y + mg.sigmoid(a) * (1.0 - y)),),
        domain=(ANY,),
        promotes="float",
    )
    OPS.pop("swish", None)


@functools.cache
def compiled():
    @ti.kernel
    def swish(a: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in ti.grouped(a):
            y[i] = a[i] / (1 + ti.exp(-a[i]))

    return swish


def swish_kernel(a, y):
    compiled()(a, y)


def run_taichi_kernel(a):
    y = np.empty_like(a)
    swish_kernel(a, y)
    return y


SNIPPET = "a / (1 + ti.exp(-a))"


def register(declaration):
    if declaration == "snippet":
        mg.kernel("swish", "cpu", SNIPPET)
    else:
        assert mg.kernel("swish", "cpu")(run_taichi_kernel) is run_taichi_kernel


DECLARATIONS = pytest.mark.parametrize("declaration", ["snippet", "function"])


@DECLARATIONS
def test_custom_kernel_supports_any_shape_layout_and_dtype(declaration, swish):
    register(declaration)
    x = mg.randn(6, 7)
    for one in (x, x.T, x[1:, ::2], x.double(), x[0, 0], mg.arange(-3, 3), mg.randn(300, 300), mg.zeros(0, 3)):
        y = swish(one)
        assert (y.shape, y.device) == (one.shape, "cpu")
        assert mg.allclose(y, one * mg.sigmoid(one), rtol=1e-5, atol=1e-7)


@DECLARATIONS
def test_custom_kernel_has_gradients_of_every_order(declaration, swish):
    register(declaration)
    x = mg.randn(2, 3, dtype=mg.float64, requires_grad=True)
    assert mg.gradcheck(swish, x)
    assert mg.gradgradcheck(swish, x)


@DECLARATIONS
def test_custom_kernel_source_is_shown_and_calls_are_profiled(declaration, swish):
    register(declaration)
    x = mg.randn(8)
    text = mg.kernel_source("swish", x)
    assert ("a / (ti.f32(1.0) + exp16(a * -ti.f32(1.0)))" if declaration == "snippet" else "swish_kernel(a, y)") in text
    with mg.profile() as p:
        swish(x)
    assert p.rows["swish", "cpu"].calls == 1


def test_custom_op_is_drawn_with_its_formula(swish):
    from minigrad_viz import to_text

    register("snippet")
    text = to_text(swish(mg.tensor([1.0, 2.0], requires_grad=True)))
    assert "swish" in text


def test_snippet_uses_operand_and_attribute_names_and_writes_in_place():
    op = mg.Op(
        "damped", "{t}", inputs=("t", "by"), attrs={"alpha": 0.5}, vjp=(None, None), domain=(ANY, ANY), promotes="float"
    )
    mg.kernel("damped", "cpu", "ti.select(t > 0, t, alpha * t) / by")
    t, by = mg.tensor([-4.0, 3.0]), mg.tensor([[2.0], [1.0]])
    assert op(t, by).tolist() == [[-1.0, 1.5], [-2.0, 3.0]]
    assert op(t, 2.0, alpha=2).tolist() == [-4.0, 1.5]
    out = mg.zeros(2)
    mg.dispatch("damped", "cpu", (t._array, 1.0), {"alpha": 0.0}, out=out._array)
    assert out.tolist() == [0.0, 3.0]
    OPS.pop("damped")


def test_vectors_in_a_custom_kernel_do_not_crash_the_process(swish):
    @ti.kernel
    def vectors(a: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in ti.grouped(a):
            v = -ti.exp(ti.Vector([a[i], -a[i]]))
            y[i] = v.sum()

    @mg.kernel("swish", "cpu")
    def _(a):
        y = np.empty_like(a)
        vectors(a, y)
        return y

    x = mg.tensor([0.0, 1.0])
    assert swish(x).tolist() == pytest.approx([-2.0, -2 * np.cosh(1.0)])
    assert mg.ones(64).exp().sum().item() == pytest.approx(64 * np.e)  # built-in kernels still run


def test_numpy_result_is_rejected_with_advice(swish):
    mg.kernel("swish", "cpu")(lambda a: np.zeros(a.shape, np.float32))
    with pytest.raises(DTypeError) as error:
        swish(mg.ones(3))
    assert str(error.value) == (
        "swish: expected its kernel for 'cpu' to return a CpuArray, an array of that device, but got numpy.ndarray.\n"
        "  Allocate it with y = np.empty_like(a), and let a Taichi kernel write to y."
    )


def test_tensor_and_none_results_are_rejected(swish):
    mg.kernel("swish", "cpu")(lambda a: mg.ones(3))
    with pytest.raises(DTypeError, match=r"but got minigrad.core.tensor.Tensor\.\n  Return its array, y._array."):
        swish(mg.ones(3))
    mg.kernel("swish", "cpu")(lambda a: None)
    with pytest.raises(DTypeError, match=r"but got builtins\.NoneType"):
        swish(mg.ones(3))


def test_result_of_wrong_shape_is_rejected(swish):
    mg.kernel("swish", "cpu")(lambda a: a[:2])
    with pytest.raises(ShapeError) as error:
        swish(mg.ones(3))
    assert str(error.value) == (
        "swish: its kernel for 'cpu' returned shape (2,), but the operands, of shapes (3,), broadcast to (3,)."
    )


def test_numpy_kernel_is_checked_and_may_return_a_scalar(swish):
    mg.kernel("swish", "numpy")(lambda a: a[:2])
    with pytest.raises(ShapeError, match="its kernel for 'numpy' returned shape"):
        swish(mg.ones(3, device="numpy"))
    mg.kernel("swish", "numpy")(lambda a: float(a / (1 + np.exp(-a))))
    assert swish(mg.tensor(1.0, device="numpy")).item() == pytest.approx(0.7310586)


@pytest.mark.parametrize(
    ("snippet", "why"),
    [
        ("a +", "is not a valid Python expression: invalid syntax"),
        ("x / 2", "uses the unknown name 'x'"),
        ("math.exp(a)", "calls 'math.exp(a)'"),
        ("ti.sigmoid(a)", "calls 'ti.sigmoid(a)'"),
        ("ti.max(a)", "calls 'ti.max(a)'"),
        ("a ** 2", "uses an unsupported operator in 'a ** 2'"),
        ("a if a > 0 else 0", "contains the unsupported 'a if a > 0 else 0'"),
        ("(a > 0) * a", "computes with 'a > 0', which is a bool"),
        ("ti.select(a, 1, 2)", "selects by 'a', which is not a comparison"),
        ("ti.exp(2)", "has '2' where an operand is required: write out the result"),
        ("a + 2 * 3", "contains the constant '2 * 3': write out its value"),
        ("a + 'b'", "contains the unsupported 'b'"),
        ("__import__('os').abort()", """calls "__import__('os').abort()\""""),
    ],
)
def test_unsupported_snippet_is_rejected_before_compilation(snippet, why):
    with pytest.raises(ArgumentError) as error:
        mg.kernel("swish", "cpu", snippet)
    first, advice, _ = str(error.value).splitlines()
    assert first.startswith(f"kernel: the snippet {snippet!r} of swish {why}")
    assert advice.startswith("  It may contain a, constants, + - * /, functions (ti.abs, ti.acos,")


def test_snippet_requires_a_declared_elementwise_op_and_a_taichi_device():
    with pytest.raises(ArgumentError, match="unheard_of is not a declared elementwise operation"):
        mg.kernel("unheard_of", "cpu", "a")
    with pytest.raises(ArgumentError, match="sum is not a declared elementwise operation"):
        mg.kernel("sum", "cpu", "a")
    with pytest.raises(ArgumentError, match=r"swish on 'numpy': Taichi compiles snippets only for 'cpu'"):
        mg.kernel("swish", "numpy", "a")


def random_snippet(r, depth, varies=False):
    """Return a random snippet that uses every supported construct."""
    from minigrad.backends.taichi.kernels import custom_kernels

    def condition(depth):
        if depth > 0 and r.random() < 0.3:
            return f"({condition(depth - 1)}) {r.choice('&|')} ({condition(depth - 1)})"
        if r.random() < 0.2:
            return f"{r.choice(custom_kernels._PREDICATES)}({random_snippet(r, depth - 1, True)})"
        return (
            f"{random_snippet(r, depth - 1, True)} {r.choice(['<', '<=', '>', '>=', '=='])} "
            f"{random_snippet(r, depth - 1)}"
        )

    kind = r.choice(["sum", "sum", "minus", "choice", "call", "call"]) if depth > 0 else "end"
    if kind == "end":
        constants = ["0", "1", "-1", "2.5", "3", "1e-3", "5000000000"]
        return r.choice(["a", "b", "alpha"] if varies or r.random() < 0.6 else constants)
    if kind == "sum":
        sides = [random_snippet(r, depth - 1, True), random_snippet(r, depth - 1)]
        return f" {r.choice('+-*/')} ".join(f"({one})" for one in r.sample(sides, 2))
    if kind == "minus":
        return f"-({random_snippet(r, depth - 1, varies)})"
    if kind == "choice":
        return (
            f"ti.select({condition(depth - 1)}, {random_snippet(r, depth - 1, varies)}, {random_snippet(r, depth - 1)})"
        )
    name = r.choice(
        [name for name in [*custom_kernels._TAICHI_FUNCTIONS, *custom_kernels._LIBRARY_FUNCTIONS] if name != "select"]
    )
    rest = [random_snippet(r, depth - 1) for _ in range(custom_kernels._TAICHI_FUNCTIONS.get(name, 1) - 1)]
    arguments = ", ".join([random_snippet(r, depth - 1, True), *rest])
    return f"{'ti.' * (name in custom_kernels._TAICHI_FUNCTIONS)}{name}({arguments})"


def run_in_child(snippets):
    """Run each snippet in a child process, vectorised, contiguous, strided and in float64; print a line for each."""
    mg.set_default_device("cpu")
    op = mg.Op("fuzzed", "{a}", vjp=(None, None), attrs={"alpha": 1.5}, domain=(ANY, ANY), promotes="float")
    a, b = mg.rand(64), mg.rand(64) + 0.1
    for snippet in snippets:
        mg.kernel("fuzzed", "cpu", snippet)
        vectors, scalars = op(a, b), op(a[:7], b[:7])
        op(a.double(), b.double()), op(a.view(8, 8).T, b.view(8, 8)), op(a, 2.0)
        print(
            json.dumps([snippet, bool(np.allclose(vectors.numpy()[:7], scalars.numpy(), 2e-3, 1e-4, equal_nan=True))])
        )
        sys.stdout.flush()


@pytest.mark.slow
def test_no_accepted_snippet_crashes_the_process():
    r = random.Random(0)
    snippets = [random_snippet(r, 3, True) for _ in range(24 if NIGHTLY else 1)]
    code = f"import test_custom; test_custom.run_in_child({snippets!r})"
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    done = [json.loads(line) for line in child.stdout.splitlines() if line.startswith('["')]
    assert [snippet for snippet, _ in done] == snippets, child.stderr[-2000:]
    assert [snippet for snippet, same in done if not same] == []


BOOK = f"""
import taichi as ti, numpy as np, minigrad as mg
mg.set_default_device("cpu")
swish = mg.Op("swish", r"\\operatorname{{swish}}({{a}})", domain=(mg.Domain(-3.0, 3.0),), promotes="float",
              vjp=(lambda g, y, a: g * (y + mg.sigmoid(a) * (1.0 - y)),))

@ti.kernel
def swish_kernel(a: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in ti.grouped(a):
        y[i] = a[i] / (1 + ti.exp(-a[i]))
@mg.kernel("swish", "cpu")
def _(a):
    y = np.empty_like(a)
    swish_kernel(a, y)
    return y

x = mg.tensor([[0.0, 2.0]], requires_grad=True, dtype=mg.float64)
print(round(swish(x)[0, 1].item(), 6), mg.gradcheck(swish, x))

mg.kernel("swish", "cpu", "{SNIPPET}")
print(round(swish(x)[0, 1].item(), 6), mg.gradcheck(swish, x))

mg.kernel_source(swish, x)

from minigrad_viz import draw
draw(swish(x))
"""


@pytest.mark.slow
def test_custom_kernels_work_in_notebook_cells():
    import nbclient
    import nbformat

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in BOOK.split("\n\n")])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    outputs = [cell["outputs"] for cell in book.cells]
    expected = "1.761594 True\n"
    assert outputs[2][-1]["text"] == outputs[3][-1]["text"] == expected
    (shown,) = outputs[4]
    assert shown["data"]["text/markdown"].startswith(
        "```python\n# swish on cpu: float64 (1, 2) -> float64 (1, 2)\n@ti.kernel"
    )
    assert "swish" in outputs[5][-1]["data"]["text/html"]


def test_kernel_must_be_callable():
    x = mg.ones(2)
    with pytest.raises(DTypeError, match="kernel: mul on 'numpy': 3 is an int; expected a callable"):
        mg.kernel("mul", "numpy")(3)
    assert (x * x).tolist() == [1.0, 1.0]
