"""Stores of fused kernels: results that exceed the caches bypass them, with the same bits."""

import pytest

import minigrad as mg
from minigrad.backends.taichi.codegen import source
from minigrad.compiler.jit import step_trace
from needs import needs
from tiers import mark_nightly

needs("numpy")

pytestmark = [pytest.mark.needs("the device cpu"), pytest.mark.usefixtures("merge_early")]

SIDE = 400  # a side that makes an array large for these tests, and needs more than one core


@pytest.fixture
def small_cache(monkeypatch):
    monkeypatch.setattr(source, "CACHE_BYPASS_ELEMENTS", SIDE * SIDE)


def exceeds_cache(test):
    """Mark a test in which SIDE * SIDE elements exceed the caches."""
    test = pytest.mark.needs("fused multiply-add")(test)
    return pytest.mark.usefixtures("small_cache")(test)


def assert_same_bytes(function, *arguments):
    """Like `same`, but compare bytes, which is faster for many elements."""
    jitted = mg.jit(function)
    for _ in range(3):
        found, expected = jitted(*arguments), function(*arguments)
        assert [x.numpy().tobytes() for x in found] == [x.numpy().tobytes() for x in expected]
    return jitted, jitted.program.partition("\n\n")[2]


def normed(x):
    x = x - x.mean(-1, keepdim=True)
    return (x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt(),)


def centred(x):
    y = x - x.mean(-1, keepdim=True)
    return y, y / ((y * y).mean(-1, keepdim=True) + 1e-5).sqrt()


def counts(x):
    y = (x * 3).tanh()
    z = y.cumsum(-1)
    return (z * y).tanh(), z * 2


LARGE = {  # with the number of results that bypass the cache, if contiguous; those of cumsum never do
    "a chain": (lambda x: ((x * x + 1).tanh(),), 1),
    "one launch": (lambda x: (x * 2,), 1),
    "two results": (lambda x: ((x * x).tanh(), x * x), 2),
    "rows": (normed, 1),
    "rows of which a later pass reads one result": (centred, 1),
    "rows and a number for each": (lambda x: (x.sum(-1), x * 2 - x.mean(-1, keepdim=True)), 1),
    "a bias": (lambda x: ((x + x[0]).tanh(),), 1),
    "what a launch of another kind reads in between": (counts, 3),
}


@exceeds_cache
@pytest.mark.parametrize("name", mark_nightly(LARGE, ["a chain", "one launch", "two results", "rows"]))
def test_only_large_results_bypass_the_cache(name):
    function, stores = LARGE[name]
    large, _ = assert_same_bytes(function, mg.randn(SIDE, SIDE))
    assert large.source.count("muladd.stream_store(") == stores
    assert "muladd.store_fence()" in large.source
    small, _ = assert_same_bytes(function, mg.randn(SIDE - 16, SIDE))
    assert "muladd.stream_store(" not in small.source


@exceeds_cache
def test_unmerged_launches_bypass_the_cache(monkeypatch):
    monkeypatch.setattr(step_trace, "MAX_MERGED_LAUNCHES", 0)
    jitted, how = assert_same_bytes(normed, mg.randn(SIDE, SIDE))
    assert "not merged" in how
    assert jitted.source.count("muladd.stream_store(") == 1


@exceeds_cache
@pytest.mark.parametrize("more", mark_nightly([1, 15, 16], [1]))
def test_unaligned_large_rows_have_the_same_bits(more):
    n = SIDE * SIDE
    x = mg.randn(n + more)
    for part in (x, x[more:], x[:-more]):
        assert_same_bytes(lambda x: ((x * x + 1).tanh(), x * 2), part)

    def inside(x):
        y = mg.zeros(n + more)
        y[more:] = (x * x + 1).tanh()
        return (y * 2, y)

    assert_same_bytes(inside, x[:-more])


@exceeds_cache
def test_in_place_results_do_not_bypass_the_cache():
    y = mg.randn(SIDE, SIDE)

    def function(x):
        y.mul_(0.5).add_(x)
        return y.sum()

    jitted, x = mg.jit(function), mg.ones(SIDE, SIDE)
    expected = mg.tensor(y.numpy().copy())
    for _ in range(5):
        assert jitted(x).item() == expected.mul_(0.5).add_(x).sum().item()
    assert "fused" in jitted.program
    assert "muladd.stream_store(" not in jitted.source
