"""kernel_source returns the source that runs, on every device, and raises for a leaf."""

import subprocess
import sys

import pytest

import minigrad as mg
from minigrad.backends import arrays
from minigrad.core.errors import ArgumentError, DTypeError, GraphError
from needs import needs

needs("taichi")


pytestmark = pytest.mark.usefixtures("compiled_on_cpu")


def leaf(*shape, **options):
    return mg.rand(*shape, requires_grad=True, **options)


def titles(source):
    return [line[2:] for line in source.splitlines() if line.startswith("# ") and " on " in line]


def test_the_source_of_a_tensor_is_that_of_its_operation():
    x = leaf(3, 4)
    text = mg.kernel_source(x.softmax(1))
    assert titles(text) == ["softmax on cpu: float32 (3, 4), dim=1 -> float32 (3, 4)"]
    assert "def softmax_kernel(" in text
    assert "def tanh_kernel(" in mg.kernel_source(x.exp().tanh())


def test_the_source_depends_on_dtypes_and_layouts():
    x = leaf(8, 8)
    full, turned = mg.kernel_source(x + x), mg.kernel_source("add", x, x.T)
    assert "vector(16, ti.f32)" in full
    assert "vector(16" not in turned
    assert "a_: ti.types.ndarray(dtype=ti.f64" in mg.kernel_source("add", x.double(), 1.0)


def test_all_launches_of_an_operation_are_shown_in_order():
    text = mg.kernel_source(leaf(4, 5).var(0))
    assert titles(text) == [
        "var on cpu: float32 (4, 5), dim=(0,), correction=1, keepdim=False -> float32 (5,), in 5 launches"
    ]
    indices = []
    for k, name in enumerate(["var_reference", "var_relative_mean", "var_mean", "var_squares", "var"], 1):
        indices += [text.index(f"# {k} of 5: {name}\n"), text.index(f"def {name}_kernel(")]
    assert indices == sorted(indices)


def test_a_kernel_that_is_launched_twice_is_shown_twice():
    x = mg.rand(2, 3)
    x.T.contiguous()  # the same snippet
    assert mg.kernel_source(mg.functional.cat, [x, x]).count("def copy_kernel(") == 2


def test_a_function_shows_all_kernels_including_backward():
    x = leaf(4)
    text = mg.kernel_source(lambda: (x * x).sum().backward())
    assert [title.split()[0] for title in titles(text)][:2] == ["mul", "sum"]
    assert len(titles(text)) > 2
    assert x.grad is not None


def test_an_elementwise_operation_needs_no_operands():
    assert titles(mg.kernel_source("tanh")) == ["tanh on cpu: float32 (64,) -> float32 (64,)"]
    assert titles(mg.kernel_source(mg.OPS["atan2"])) == ["atan2 on cpu: float32 (64,), float32 (64,) -> float32 (64,)"]


def test_a_view_launches_nothing():
    assert mg.kernel_source(leaf(2, 3).T).splitlines()[1].startswith("# No kernel launched")


def test_on_numpy_it_is_the_kernel_function():
    x = leaf(2, device="numpy")
    assert mg.kernel_source(mg.functional.relu6(x)) == (
        "# relu6 on numpy: float32 (2,) -> float32 (2,)\n"
        '@kernel("relu6", DEVICE)\ndef relu6(a: Array) -> Array:\n    return np.clip(a, 0, 6)'
    )
    assert mg.kernel_source(x.tanh()).endswith("\nnumpy.tanh")


def test_for_a_value_it_is_the_float_kernel():
    assert mg.kernel_source(mg.Value(2.0) * 3.0) == "# mul on python: 2.0, 3.0 -> 6.0\noperator.mul"
    assert "def exp(a: float) -> float:" in mg.kernel_source(mg.Value(1.0).exp())


def test_for_one_of_several_outputs_it_is_that_of_the_operation():
    values, _ = leaf(6).sort()
    assert titles(mg.kernel_source(values))[0].startswith("sort on cpu: float32 (6,)")


def test_it_is_a_str_and_a_code_block_in_notebooks():
    text = mg.kernel_source("neg")
    assert isinstance(text, str)
    assert repr(text) == str(text)
    assert text._repr_markdown_() == f"```python\n{text}\n```"


def test_listeners_receive_launches_inside_the_block_only():
    x, log = mg.rand(3), []
    with arrays.on_launch(log.append):
        for _ in range(3):
            x.atan()
    x.atan()
    assert [outputs.name for outputs in log] == ["atan"] * 3
    assert len({launched.launch for launched in log}) == 1


def test_kernel_source_is_not_profiled():
    x = mg.rand(3)
    with mg.profile() as p:
        mg.kernel_source("tanh", x)
    assert p.events == []


def test_a_leaf_raises():
    with pytest.raises(GraphError, match="this tensor is a leaf, with no grad_fn"):
        mg.kernel_source(mg.ones(3))
    with pytest.raises(GraphError, match=r"Pass a result, mg.kernel_source\(x.exp\(\)\)"):
        mg.kernel_source(mg.Value(3.0))


def test_a_freed_operand_raises():
    assert mg.kernel_source(leaf(3) + mg.ones(3)).startswith("# add on ")
    y = leaf(5000) + mg.ones(5000)
    with pytest.raises(GraphError) as error:
        mg.kernel_source(y)
    assert str(error.value) == (
        "kernel_source: operand 1 of add, a large tensor that does not require grad, has been freed.\n"
        "  Pass the operands: mg.kernel_source('add', a, b)."
    )


def test_an_unknown_name_suggests_a_similar_one():
    with pytest.raises(ArgumentError, match="unknown operation 'tanhh'; did you mean 'tanh'"):
        mg.kernel_source("tanhh")
    with pytest.raises(ArgumentError, match=r"mg.kernel_source\('sum', a, dim=…, keepdim=…\)"):
        mg.kernel_source("sum")
    with pytest.raises(DTypeError, match="3 is an int; expected a tensor"):
        mg.kernel_source(3)


def test_a_custom_function_suggests_apply():
    class Twice(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return g * 2.0

    x = leaf(3)
    with pytest.raises(GraphError, match=r"mg.kernel_source\(Twice.apply, …\)"):
        mg.kernel_source(Twice.apply(x))
    assert "def mul_kernel(" in mg.kernel_source(Twice.apply, x)


def test_the_source_is_the_same_in_a_new_process():
    code = "import minigrad as mg; mg.set_default_device('cpu'); print(mg.kernel_source('silu'))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert child.stdout == f"{mg.kernel_source('silu')}\n", child.stderr
