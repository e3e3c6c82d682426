"""Fusion: elementwise calls become one launch, which stores only results that others read."""

import math
import re

import pytest

import minigrad as mg
from minigrad.backends.taichi.codegen.source import CORES, SERIAL_WIDE
from minigrad.compiler.jit import recording
from needs import needs
from tiers import mark_nightly

needs("numpy")

F = mg.functional

pytestmark = [pytest.mark.needs("the device cpu"), pytest.mark.usefixtures("soon")]


def same(function, *arguments):
    """Assert that jitting preserves the bits; return the jitted function, and how it reports that it is executed."""
    jitted = mg.jit(function)
    for _ in range(5):
        found, expected = jitted(*arguments), function(*arguments)
        assert repr([x.tolist() for x in found]) == repr([x.tolist() for x in expected])
    return jitted, jitted.program.partition("\n\n")[2]


def test_a_chain_is_one_launch_that_reads_once_and_stores_once():
    def gelu(x):
        return (0.5 * x * (1.0 + mg.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),)

    jitted, how = same(gelu, mg.randn(64, 48))
    assert how.startswith("Replayed as 9 launches, 9 of which are fused into 1, merged into step_")
    assert "Memory: 0 bytes of temporaries, 12,288 bytes of results." in how
    loop = jitted.source.rpartition("for l0_i in")[2]
    assert (len(re.findall(r"= A1\[", loop)), len(re.findall(r"A0\[.*\] = ", loop))) == (1, 1)


def test_what_a_launch_of_another_kind_reads_is_stored_too():
    _, how = same(lambda x: ((x.tanh() * 2), x.tanh().cumsum(-1)), mg.randn(8, 64))
    assert how.startswith("Replayed as 3 launches, 2 of which are fused into 1,")
    assert "Memory: 2,048 bytes of temporaries" in how


@pytest.mark.parametrize("shape", [(48,), (64, 1), (1, 48), ()], ids=str)
def test_operands_that_are_broadcast_along_rows_or_to_them_go_along(shape):
    _, how = same(lambda x, b: (((x + b).tanh() * x).sigmoid(),), mg.randn(64, 48), mg.randn(*shape))
    assert how.startswith("Replayed as 4 launches, 4 of which are fused into 1,")


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "log1p"])
def test_functions_of_sums_of_rows_are_compiled_on_every_processor(name):
    """On AVX-512, LLVM vectorised scalar exponentials in a merged source to a vector type that does not exist."""
    same(lambda x: (getattr(mg, name)(x.sum(1)),), mg.rand(32, 32))


def test_writes_in_place_are_in_turn():
    def function(x):
        y = x * 3
        z = y + 1
        y.mul_(z)
        z.sub_(y)
        y.add_(z)
        return y, z

    _, how = same(function, mg.randn(4, 32))
    assert how.startswith("Replayed as 5 launches, 5 of which are fused into 1,")
    assert "Memory: 0 bytes of temporaries, 1,024 bytes of results." in how


def test_nothing_goes_past_a_launch_that_reads_what_it_overwrites():
    def function(x):
        y = x * 3
        total = y.sum()
        y.mul_(2)
        return y, total, y.sum()

    _, how = same(function, mg.randn(4, 32))
    assert how.startswith("Replayed as 4 launches, 2 of which are fused into 1, merged")
    assert how.count("of 3 launches") == 1


def test_what_comes_first_waits_for_what_it_goes_with():
    w = mg.randn(3, 5)
    _, how = same(lambda x: ((x.exp() * w.sum()),), mg.randn(4, 32))
    assert how.startswith("Replayed as 3 launches, 2 of which are fused into 1,")


def test_parts_of_one_memory_that_are_not_the_same_are_apart():
    def function(x):
        y = x * 2
        y[:2] += y[2:] * 3
        return (y * 0.5,)

    same(function, mg.randn(4, 32))


def test_sizes_that_are_no_whole_vectors_and_gradients():
    w = mg.randn(5, 7, requires_grad=True)

    def function(x):
        w.grad = None
        ((w * x).tanh() * x.sigmoid() + w).square().sum().backward()
        return (w.grad,)

    _, how = same(function, mg.randn(5, 7))
    assert re.match(r"Replayed as \d+ launches, ([5-9]|\d\d) of which are fused into [1-9],", how)


def test_a_step_too_long_to_be_joined_is_fused_all_the_same(monkeypatch):
    monkeypatch.setattr(recording, "MOST", 1)
    jitted, how = same(lambda x: ((x.exp() + 1).cumsum(-1), (x.tanh() * 2).cumsum(-1)), mg.randn(8, 64))
    assert how.startswith(
        "Replayed as 6 launches, 4 of which are fused into 1, not merged: more than 1 launches take too long to compile"
    )
    assert jitted.source.count("def fused_") == 1


def test_many_are_several_launches_and_what_cannot_be_compiled_stays_as_it_was(monkeypatch):
    def many(x):
        for k in range(30):
            x = (x * (1 + k)).tanh()
        return (x,)

    _, how = same(many, mg.randn(64))
    assert how.startswith("Replayed as 60 launches, 60 of which are fused into 3, merged")

    from minigrad.backends.taichi.runtime.kernel import Kernel

    def refuse(kernel):
        raise mg.errors.DeviceError(f"{kernel.name}: no\n  more")

    monkeypatch.setattr(Kernel, "prepare", refuse)
    _, how = same(lambda x: (x.exp() + 1,), mg.randn(64))
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
def test_what_is_made_of_rows_and_computed_with_that_goes_through_each_once_more(function, launches, passes, shape):
    x = mg.randn(*shape)
    jitted, how = same(function, x)
    assert how.startswith(f"Replayed as {launches} launches, {launches} of which are fused into 1, merged into step_")
    loop = jitted.source.rpartition("l0_i = l0_t")[2]
    assert len(re.findall(r"for l0_k in", loop)) == passes
    assert len(re.findall(r"(?:\+|\() *l0_k\)\] = ", loop)) == 2  # the result, and a row that the last pass reads
    cores = CORES if x.numel() > SERIAL_WIDE else 1
    assert f"Memory: {shape[-1] * 4 * cores:,} bytes of temporaries" in how


def test_numbers_of_rows_are_given_back_and_shared_by_what_else_reads_them():
    def function(x, b):
        top, total = x.amax(-1), (x * b).sum(-1)
        scaled = (x - top[:, None]) * total[:, None]
        return top, total, scaled, scaled.sum(0), total * 2 + top

    _, how = same(function, mg.randn(64, 32), mg.randn(32))
    assert re.match(r"Replayed as 8 launches, 7 of which are fused into 1,", how), how


def test_extremes_of_what_is_no_number_and_of_infinities():
    x = mg.randn(64, 32)
    with mg.no_grad():
        x[3, 7], x[5, 0], x[9] = float("nan"), float("inf"), float("-inf")
    same(lambda x: (x.amax(-1, keepdim=True) + x, x.amin(-1, keepdim=True) * x), x)


def test_what_is_overwritten_is_not_waited_with():
    def function(x):
        y = x * 3
        z = y - y.mean(-1, keepdim=True)
        y.mul_(2)
        return y, z

    same(function, mg.randn(64, 32))


OF_A_ROW = {
    "exp": lambda x: x.sum(1).exp(),
    "of a largest": lambda x: x.amax(1).exp(),
    "sigmoid": lambda x: x.mean(1).sigmoid(),
    "softplus": lambda x: mg.nn.functional.softplus(x.sum(1)),
    "clamp": lambda x: x.sum(1).clamp(-1, 1) * 2,
}


@pytest.mark.parametrize("name", OF_A_ROW)
def test_a_function_of_one_number_a_row_is_compiled_for_processors_with_avx_512_too(name):
    x = mg.randn(32, 32)
    x[0, 0], x[1, 1] = math.nan, math.inf
    _, how = same(lambda x: (OF_A_ROW[name](x),), x)
    assert "merged into step_" in how


@pytest.mark.nightly
def test_few_long_rows_stay_with_all_cores():
    _, how = same(norm, mg.randn(2, 65536 * 8))
    assert "7 of which are fused" not in how


SHAPES = mark_nightly(
    [(24, 64, 32), (40, 300, 48), (300, 520, 96), (700, 600, 208)], [(24, 64, 32), (40, 300, 48), (300, 520, 96)]
)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_computed_of_a_product_goes_with_it_tile_by_tile(shape):
    """Cover sums in one block and several, on one core and all; results that nothing else reads are not stored."""
    rows, inner, columns = shape
    x, w, b, residual = mg.randn(rows, inner), mg.randn(columns, inner), mg.randn(columns), mg.randn(rows, columns)

    def function(x):
        hidden = F.linear(x, w, b)
        return hidden, F.gelu(hidden) * 0.5 + residual

    jitted, how = same(function, x)
    assert ", 4 of which are fused into 1, merged into step_" in how
    tile = jitted.source.rpartition("for l")[2]
    assert len(re.findall(r"A\d+\[.*\] = ", tile)) == 1, "the gelu and its half stay in registers"


def test_a_product_of_each_of_a_batch_and_what_is_overwritten():
    a, b = mg.randn(5, 24, 40), mg.randn(5, 40, 32)

    def function(a):
        y = a @ b
        y.mul_(2)
        y.relu_()
        return (y,)

    _, how = same(function, a)
    assert ", 3 of which are fused into 1, merged into step_" in how


def test_a_product_does_not_wait_for_what_overwrites_its_operands_or_lies_otherwise():
    w = mg.randn(32, 32)

    def function(x):
        h = x * 1
        y = h @ w
        h.copy_(y * 2)  # while other tiles read it
        return h, y, y + y.T, (y + 1).T.contiguous() * y

    same(function, mg.randn(32, 32))


def activated(x, w, b, residual):
    return (F.relu(F.conv2d(x, w, b, padding=1)),)


def residual(x, w, b, residual):
    return (F.relu(F.conv2d(x, w, b, padding=1) * 0.5 + residual),)


IMAGES = [(64, 1, 8, 16), (64, 16, 8, 32), (8, 4, 16, 20)]


@pytest.mark.parametrize("shape", mark_nightly(IMAGES, [(64, 16, 8, 32)]), ids=str)
@pytest.mark.parametrize(
    ("function", "launches"), [(activated, 2), (residual, 4)], ids=lambda x: getattr(x, "__name__", "")
)
def test_what_is_computed_of_a_convolution_goes_with_it_tile_by_tile(function, launches, shape):
    n, channels, size, count = shape
    x, w = mg.randn(n, channels, size, size), mg.randn(count, channels, 3, 3)
    jitted, how = same(function, x, w, mg.randn(count), mg.randn(n, count, size, size))
    assert how.startswith(f"Replayed as {launches} launches, {launches} of which are fused into 1, merged into step_")
    tile = jitted.source.rpartition("for l")[2]
    assert "ti.max(" in tile or "ti.select(" in tile


@pytest.mark.nightly
def test_exponentials_and_places_that_are_no_whole_vectors_stay_apart_from_a_convolution():
    """Its vectors have eight elements, those of exponentials sixteen."""
    x, w = mg.randn(64, 16, 8, 8), mg.randn(32, 16, 3, 3)
    _, how = same(lambda x: (F.gelu(F.conv2d(x, w, padding=1)),), x)
    assert how.startswith("Replayed as 2 launches, merged into")
    same(lambda x: (F.relu(F.conv2d(x, w)),), x[:3])


def updated(make, jit):
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
def test_a_gradient_is_added_up_and_used_by_the_update_in_one_launch(name):
    """The weight's gradient fuses with the product that is its second term, the bias's with the update alone."""
    found, expected = updated(UPDATES[name], True), updated(UPDATES[name], False)
    assert found[:3] == expected[:3]
    assert "14 of which are fused into 5" in found[3].program, found[3].program


def test_what_a_gradient_was_before_the_update_changed_its_sign_is_what_others_read():
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
