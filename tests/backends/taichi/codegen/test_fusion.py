"""Fusion: elementwise calls become one launch, which stores only results that others read."""

import math
import re

import pytest

import minigrad as mg
from minigrad.backends.taichi.codegen.source import CORES, MAX_SERIAL_VECTOR_ELEMENTS
from minigrad.compiler.jit import step_trace
from needs import needs
from tiers import mark_nightly

needs("numpy")

F = mg.functional

pytestmark = [pytest.mark.needs("the device cpu"), pytest.mark.usefixtures("merge_early")]


def assert_same_bits(function, *arguments):
    """Assert that jitting preserves the bits; return the jitted function, and how it reports that it is executed."""
    jitted = mg.jit(function)
    for _ in range(5):
        found, expected = jitted(*arguments), function(*arguments)
        assert repr([x.tolist() for x in found]) == repr([x.tolist() for x in expected])
    return jitted, jitted.program.partition("\n\n")[2]


def test_a_chain_is_one_launch_with_one_load_and_one_store():
    def gelu(x):
        return (0.5 * x * (1.0 + mg.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),)

    jitted, how = assert_same_bits(gelu, mg.randn(64, 48))
    assert how.startswith("Replayed as 9 launches, 9 of which are fused into 1, merged into step_")
    assert "Memory: 0 bytes of temporaries, 12,288 bytes of results." in how
    loop = jitted.source.rpartition("for l0_i in")[2]
    assert (len(re.findall(r"= A1\[", loop)), len(re.findall(r"A0\[.*\] = ", loop))) == (1, 1)


def test_operands_of_other_launches_are_stored():
    _, how = assert_same_bits(lambda x: ((x.tanh() * 2), x.tanh().cumsum(-1)), mg.randn(8, 64))
    assert how.startswith("Replayed as 3 launches, 2 of which are fused into 1,")
    assert "Memory: 2,048 bytes of temporaries" in how


@pytest.mark.parametrize("shape", [(48,), (64, 1), (1, 48), ()], ids=str)
def test_broadcast_operands_are_fused(shape):
    _, how = assert_same_bits(lambda x, b: (((x + b).tanh() * x).sigmoid(),), mg.randn(64, 48), mg.randn(*shape))
    assert how.startswith("Replayed as 4 launches, 4 of which are fused into 1,")


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "log1p"])
def test_functions_of_row_sums_compile_on_every_cpu(name):
    """On AVX-512, LLVM vectorised scalar exponentials in a merged source to a vector type that does not exist."""
    assert_same_bits(lambda x: (getattr(mg, name)(x.sum(1)),), mg.rand(32, 32))


def test_in_place_writes_stay_in_order():
    def function(x):
        y = x * 3
        z = y + 1
        y.mul_(z)
        z.sub_(y)
        y.add_(z)
        return y, z

    _, how = assert_same_bits(function, mg.randn(4, 32))
    assert how.startswith("Replayed as 5 launches, 5 of which are fused into 1,")
    assert "Memory: 0 bytes of temporaries, 1,024 bytes of results." in how


def test_a_write_does_not_move_across_a_read():
    def function(x):
        y = x * 3
        total = y.sum()
        y.mul_(2)
        return y, total, y.sum()

    _, how = assert_same_bits(function, mg.randn(4, 32))
    assert how.startswith("Replayed as 4 launches, 2 of which are fused into 1, merged")
    assert how.count("of 3 launches") == 1


def test_an_earlier_loop_is_fused_with_a_later_one():
    w = mg.randn(3, 5)
    _, how = assert_same_bits(lambda x: ((x.exp() * w.sum()),), mg.randn(4, 32))
    assert how.startswith("Replayed as 3 launches, 2 of which are fused into 1,")


def test_different_views_of_one_array_are_not_fused():
    def function(x):
        y = x * 2
        y[:2] += y[2:] * 3
        return (y * 0.5,)

    assert_same_bits(function, mg.randn(4, 32))


def test_sizes_that_are_not_multiples_of_a_vector():
    w = mg.randn(5, 7, requires_grad=True)

    def function(x):
        w.grad = None
        ((w * x).tanh() * x.sigmoid() + w).square().sum().backward()
        return (w.grad,)

    _, how = assert_same_bits(function, mg.randn(5, 7))
    assert re.match(r"Replayed as \d+ launches, ([5-9]|\d\d) of which are fused into [1-9],", how)


def test_a_step_too_long_to_be_merged_is_fused(monkeypatch):
    monkeypatch.setattr(step_trace, "MAX_MERGED_LAUNCHES", 1)
    jitted, how = assert_same_bits(lambda x: ((x.exp() + 1).cumsum(-1), (x.tanh() * 2).cumsum(-1)), mg.randn(8, 64))
    assert how.startswith(
        "Replayed as 6 launches, 4 of which are fused into 1, not merged: more than 1 launches take too long to compile"
    )
    assert jitted.source.count("def fused_") == 1


def test_long_chains_are_split_and_compile_errors_fall_back(monkeypatch):
    def many(x):
        for k in range(30):
            x = (x * (1 + k)).tanh()
        return (x,)

    _, how = assert_same_bits(many, mg.randn(64))
    assert how.startswith("Replayed as 60 launches, 60 of which are fused into 3, merged")

    from minigrad.backends.taichi.runtime.kernel import Kernel

    def refuse(kernel):
        raise mg.errors.DeviceError(f"{kernel.name}: no\n  more")

    monkeypatch.setattr(Kernel, "prepare", refuse)
    _, how = assert_same_bits(lambda x: (x.exp() + 1,), mg.randn(64))
    assert re.match(r"Replayed as 2 launches, not merged: step_\w+: no\.", how)


def norm(x):
    x = x - x.mean(-1, keepdim=True)
    return (x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt(),)


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return (e / e.sum(-1, keepdim=True),)


@pytest.mark.parametrize(
    ("function", "launches", "passes"), [(norm, 7, 3), (softmax, 5, 3)], ids=lambda x: getattr(x, "__name__", None)
)
@pytest.mark.parametrize(
    "shape", mark_nightly([(64, 64), (2, 32, 48), (128, 1024), (4096, 96)], [(64, 64), (2, 32, 48)]), ids=str
)  # serial, and on all cores
def test_row_reductions_need_one_pass_per_dependency(function, launches, passes, shape):
    x = mg.randn(*shape)
    jitted, how = assert_same_bits(function, x)
    assert how.startswith(f"Replayed as {launches} launches, {launches} of which are fused into 1, merged into step_")
    loop = jitted.source.rpartition("l0_i = l0_t")[2]
    assert len(re.findall(r"for l0_k in", loop)) == passes
    assert len(re.findall(r"(?:\+|\() *l0_k\)\] = ", loop)) == 2  # the result, and a row that the last pass reads
    cores = CORES if x.numel() > MAX_SERIAL_VECTOR_ELEMENTS else 1
    assert f"Memory: {shape[-1] * 4 * cores:,} bytes of temporaries" in how


def test_row_results_are_returned_and_reused():
    def function(x, b):
        top, total = x.amax(-1), (x * b).sum(-1)
        scaled = (x - top[:, None]) * total[:, None]
        return top, total, scaled, scaled.sum(0), total * 2 + top

    _, how = assert_same_bits(function, mg.randn(64, 32), mg.randn(32))
    assert re.match(r"Replayed as 8 launches, 7 of which are fused into 1,", how), how


def test_extremes_of_nan_and_infinities():
    x = mg.randn(64, 32)
    with mg.no_grad():
        x[3, 7], x[5, 0], x[9] = float("nan"), float("inf"), float("-inf")
    assert_same_bits(lambda x: (x.amax(-1, keepdim=True) + x, x.amin(-1, keepdim=True) * x), x)


def test_overwritten_operands_prevent_row_fusion():
    def function(x):
        y = x * 3
        z = y - y.mean(-1, keepdim=True)
        y.mul_(2)
        return y, z

    assert_same_bits(function, mg.randn(64, 32))


ROW_FUNCTIONS = {
    "exp": lambda x: x.sum(1).exp(),
    "of a largest": lambda x: x.amax(1).exp(),
    "sigmoid": lambda x: x.mean(1).sigmoid(),
    "softplus": lambda x: mg.nn.functional.softplus(x.sum(1)),
    "clamp": lambda x: x.sum(1).clamp(-1, 1) * 2,
}


@pytest.mark.parametrize("name", ROW_FUNCTIONS)
def test_functions_of_row_results_compile_with_avx_512(name):
    x = mg.randn(32, 32)
    x[0, 0], x[1, 1] = math.nan, math.inf
    _, how = assert_same_bits(lambda x: (ROW_FUNCTIONS[name](x),), x)
    assert "merged into step_" in how


@pytest.mark.nightly
def test_few_long_rows_are_not_fused_by_row():
    _, how = assert_same_bits(norm, mg.randn(2, 65536 * 8))
    assert "7 of which are fused" not in how


SHAPES = mark_nightly(
    [(24, 64, 32), (40, 300, 48), (300, 520, 96), (700, 600, 208)], [(24, 64, 32), (40, 300, 48), (300, 520, 96)]
)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_product_has_an_elementwise_epilogue(shape):
    """Cover sums in one block and several, on one core and all; results that nothing else reads are not stored."""
    rows, inner, columns = shape
    x, w, b, residual = mg.randn(rows, inner), mg.randn(columns, inner), mg.randn(columns), mg.randn(rows, columns)

    def function(x):
        hidden = F.linear(x, w, b)
        return hidden, F.gelu(hidden) * 0.5 + residual

    jitted, how = assert_same_bits(function, x)
    assert ", 4 of which are fused into 1, merged into step_" in how
    tile = jitted.source.rpartition("for l")[2]
    assert len(re.findall(r"A\d+\[.*\] = ", tile)) == 1, "the gelu and its half stay in registers"


def test_a_batched_product_has_an_in_place_epilogue():
    a, b = mg.randn(5, 24, 40), mg.randn(5, 40, 32)

    def function(a):
        y = a @ b
        y.mul_(2)
        y.relu_()
        return (y,)

    _, how = assert_same_bits(function, a)
    assert ", 3 of which are fused into 1, merged into step_" in how


def test_epilogues_do_not_overwrite_operands_or_change_layout():
    w = mg.randn(32, 32)

    def function(x):
        h = x * 1
        y = h @ w
        h.copy_(y * 2)  # while other tiles read it
        return h, y, y + y.T, (y + 1).T.contiguous() * y

    assert_same_bits(function, mg.randn(32, 32))


def activated(x, w, b, residual):
    return (F.relu(F.conv2d(x, w, b, padding=1)),)


def residual(x, w, b, residual):
    return (F.relu(F.conv2d(x, w, b, padding=1) * 0.5 + residual),)


IMAGES = [(64, 1, 8, 16), (64, 16, 8, 32), (8, 4, 16, 20)]


@pytest.mark.parametrize("shape", mark_nightly(IMAGES, [(64, 16, 8, 32)]), ids=str)
@pytest.mark.parametrize(
    ("function", "launches"), [(activated, 2), (residual, 4)], ids=lambda x: getattr(x, "__name__", "")
)
def test_a_convolution_has_an_elementwise_epilogue(function, launches, shape):
    n, channels, size, count = shape
    x, w = mg.randn(n, channels, size, size), mg.randn(count, channels, 3, 3)
    jitted, how = assert_same_bits(function, x, w, mg.randn(count), mg.randn(n, count, size, size))
    assert how.startswith(f"Replayed as {launches} launches, {launches} of which are fused into 1, merged into step_")
    tile = jitted.source.rpartition("for l")[2]
    assert "ti.max(" in tile or "ti.select(" in tile


@pytest.mark.nightly
def test_exponentials_and_partial_vectors_are_no_epilogue_of_a_convolution():
    """Its vectors have eight elements, those of exponentials sixteen."""
    x, w = mg.randn(64, 16, 8, 8), mg.randn(32, 16, 3, 3)
    _, how = assert_same_bits(lambda x: (F.gelu(F.conv2d(x, w, padding=1)),), x)
    assert how.startswith("Replayed as 2 launches, merged into")
    assert_same_bits(lambda x: (F.relu(F.conv2d(x, w)),), x[:3])


def train(make, jit):
    """Return losses and parameters after some steps that use a weight and a bias twice."""
    mg.manual_seed(0)
    w, b, x = mg.randn(48, 48, requires_grad=True), mg.randn(48, requires_grad=True), mg.randn(32, 48)
    optimizer = make([w, b])

    def step(x):
        optimizer.zero_grad()
        loss = F.linear(F.linear(x, w, b).tanh(), w, b).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    function = mg.jit(step) if jit else step
    return [function(x).item() for _ in range(6)], w.tolist(), b.tolist(), jit and function


UPDATES = {
    "SGD": lambda p: mg.optim.SGD(p, lr=0.1),
    "momentum": lambda p: mg.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "ascent": lambda p: mg.optim.SGD(p, lr=1e-3, momentum=0.5, maximize=True, weight_decay=0.1),
    "Adam": mg.optim.Adam,
    "AMSGrad": lambda p: mg.optim.Adam(p, amsgrad=True),
    "AdamW": mg.optim.AdamW,
    "NAdam": mg.optim.NAdam,
    "Adamax": mg.optim.Adamax,
    "RMSprop": lambda p: mg.optim.RMSprop(p, momentum=0.9, centered=True),
    "Adagrad": mg.optim.Adagrad,
    "Adadelta": mg.optim.Adadelta,
    "Lion": mg.optim.Lion,
}


@pytest.mark.parametrize("name", mark_nightly(UPDATES, ["SGD", "AdamW"]))
def test_gradient_accumulation_is_fused_with_the_update(name):
    """The weight's gradient fuses with the product that is its second term, the bias's with the update alone."""
    found, expected = train(UPDATES[name], True), train(UPDATES[name], False)
    assert found[:3] == expected[:3]
    assert "14 of which are fused into 5" in found[3].program, found[3].program


def test_other_readers_get_the_gradient_before_its_sign_changes():
    w = mg.randn(64, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.5, maximize=True)

    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return w.grad * 3

    jitted, x = mg.jit(step), mg.randn(64)
    for _ in range(5):
        assert (jitted(x) == x * 3).all()
    assert "fused into 1" in jitted.program
