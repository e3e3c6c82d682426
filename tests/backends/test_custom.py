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


def by_hand(a):
    y = np.empty_like(a)
    swish_kernel(a, y)
    return y


SNIPPET = "a / (1 + ti.exp(-a))"


def register(how):
    if how == "snippet":
        mg.kernel("swish", "cpu", SNIPPET)
    else:
        assert mg.kernel("swish", "cpu")(by_hand) is by_hand


HOW = pytest.mark.parametrize("how", ["snippet", "function"])


@HOW
def test_it_computes_on_any_shape_layout_and_type(how, swish):
    register(how)
    x = mg.randn(6, 7)
    for one in (x, x.T, x[1:, ::2], x.double(), x[0, 0], mg.arange(-3, 3), mg.randn(300, 300), mg.zeros(0, 3)):
        y = swish(one)
        assert (y.shape, y.device) == (one.shape, "cpu")
        assert mg.allclose(y, one * mg.sigmoid(one), rtol=1e-5, atol=1e-7)


@HOW
def test_it_has_gradients_of_every_order(how, swish):
    register(how)
    x = mg.randn(2, 3, dtype=mg.float64, requires_grad=True)
    assert mg.gradcheck(swish, x)
    assert mg.gradgradcheck(swish, x)


@HOW
def test_its_text_can_be_looked_at_and_its_calls_are_profiled(how, swish):
    register(how)
    x = mg.randn(8)
    text = mg.kernel_source("swish", x)
    assert ("a / (ti.f32(1.0) + exp16(a * -ti.f32(1.0)))" if how == "snippet" else "swish_kernel(a, y)") in text
    with mg.profile() as p:
        swish(x)
    assert p.rows["swish", "cpu"].calls == 1


def test_it_is_drawn_with_its_formula(swish):
    from minigrad_viz import to_text

    register("snippet")
    text = to_text(swish(mg.tensor([1.0, 2.0], requires_grad=True)))
    assert "swish" in text


def test_a_snippet_may_name_operands_and_attributes_and_be_written_in_place():
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


def test_vectors_in_a_kernel_by_hand_do_not_end_the_process(swish):
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


def test_a_result_of_numpy_is_refused_with_what_to_write(swish):
    mg.kernel("swish", "cpu")(lambda a: np.zeros(a.shape, np.float32))
    with pytest.raises(DTypeError) as error:
        swish(mg.ones(3))
    assert str(error.value) == (
        "swish: expected its kernel for 'cpu' to return a CpuArray, an array of that device, but got numpy.ndarray.\n"
        "  Allocate it with y = np.empty_like(a), and let a Taichi kernel write to y."
    )


def test_a_tensor_is_refused_and_so_is_nothing(swish):
    mg.kernel("swish", "cpu")(lambda a: mg.ones(3))
    with pytest.raises(DTypeError, match=r"but got minigrad.core.tensor.Tensor\.\n  Return its array, y._array."):
        swish(mg.ones(3))
    mg.kernel("swish", "cpu")(lambda a: None)
    with pytest.raises(DTypeError, match=r"but got builtins\.NoneType"):
        swish(mg.ones(3))


def test_a_result_of_another_shape_is_refused(swish):
    mg.kernel("swish", "cpu")(lambda a: a[:2])
    with pytest.raises(ShapeError) as error:
        swish(mg.ones(3))
    assert str(error.value) == (
        "swish: its kernel for 'cpu' returned shape (2,), but the operands, of shapes (3,), broadcast to (3,)."
    )


def test_a_kernel_on_numpy_is_checked_too_and_may_return_a_number(swish):
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
def test_a_snippet_of_anything_else_is_refused_before_taichi_sees_it(snippet, why):
    with pytest.raises(ArgumentError) as error:
        mg.kernel("swish", "cpu", snippet)
    first, advice, _ = str(error.value).splitlines()
    assert first.startswith(f"kernel: the snippet {snippet!r} of swish {why}")
    assert advice.startswith("  It may contain a, constants, + - * /, functions (ti.abs, ti.acos,")


def test_a_snippet_is_for_a_declared_elementwise_operation_on_a_device_that_compiles():
    with pytest.raises(ArgumentError, match="unheard_of is not a declared elementwise operation"):
        mg.kernel("unheard_of", "cpu", "a")
    with pytest.raises(ArgumentError, match="sum is not a declared elementwise operation"):
        mg.kernel("sum", "cpu", "a")
    with pytest.raises(ArgumentError, match=r"swish on 'numpy': Taichi compiles snippets only for 'cpu'"):
        mg.kernel("swish", "numpy", "a")


def written(r, depth, varies=False):
    """Return a random snippet that uses every supported construct."""
    from minigrad.backends.taichi.kernels import own

    def truth(depth):
        if depth > 0 and r.random() < 0.3:
            return f"({truth(depth - 1)}) {r.choice('&|')} ({truth(depth - 1)})"
        if r.random() < 0.2:
            return f"{r.choice(own._TRUTHS)}({written(r, depth - 1, True)})"
        return f"{written(r, depth - 1, True)} {r.choice(['<', '<=', '>', '>=', '=='])} {written(r, depth - 1)}"

    kind = r.choice(["sum", "sum", "minus", "choice", "call", "call"]) if depth > 0 else "end"
    if kind == "end":
        numbers = ["0", "1", "-1", "2.5", "3", "1e-3", "5000000000"]
        return r.choice(["a", "b", "alpha"] if varies or r.random() < 0.6 else numbers)
    if kind == "sum":
        sides = [written(r, depth - 1, True), written(r, depth - 1)]
        return f" {r.choice('+-*/')} ".join(f"({one})" for one in r.sample(sides, 2))
    if kind == "minus":
        return f"-({written(r, depth - 1, varies)})"
    if kind == "choice":
        return f"ti.select({truth(depth - 1)}, {written(r, depth - 1, varies)}, {written(r, depth - 1)})"
    name = r.choice([name for name in [*own._OF_TAICHI, *own._OURS] if name != "select"])
    rest = [written(r, depth - 1) for _ in range(own._OF_TAICHI.get(name, 1) - 1)]
    return f"{'ti.' * (name in own._OF_TAICHI)}{name}({', '.join([written(r, depth - 1, True), *rest])})"


def computed_in_a_child(snippets):
    """Run each snippet in a child process, vectorised, contiguous, strided and in float64; print a line for each."""
    mg.set_default_device("cpu")
    op = mg.Op("fuzzed", "{a}", vjp=(None, None), attrs={"alpha": 1.5}, domain=(ANY, ANY), promotes="float")
    a, b = mg.rand(64), mg.rand(64) + 0.1
    for snippet in snippets:
        mg.kernel("fuzzed", "cpu", snippet)
        wide, narrow = op(a, b), op(a[:7], b[:7])
        op(a.double(), b.double()), op(a.view(8, 8).T, b.view(8, 8)), op(a, 2.0)
        print(json.dumps([snippet, bool(np.allclose(wide.numpy()[:7], narrow.numpy(), 2e-3, 1e-4, equal_nan=True))]))
        sys.stdout.flush()


@pytest.mark.slow
def test_no_snippet_that_is_taken_ends_the_process():
    r = random.Random(0)
    snippets = [written(r, 3, True) for _ in range(24 if NIGHTLY else 1)]
    code = f"import test_custom; test_custom.computed_in_a_child({snippets!r})"
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
def test_all_of_it_works_from_cells_of_a_notebook():
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


def test_a_kernel_is_a_function():
    x = mg.ones(2)
    with pytest.raises(DTypeError, match="kernel: mul on 'numpy': 3 is an int; expected a callable"):
        mg.kernel("mul", "numpy")(3)
    assert (x * x).tolist() == [1.0, 1.0]
