"""Numbers that are many, large, small, or where a function has a corner: results keep their digits on each device."""

import math

import pytest

import minigrad as mg
from places import HERE

np = pytest.importorskip("numpy")

DEVICES = ["numpy", HERE]
INF = math.inf


@pytest.fixture(autouse=True, params=DEVICES)
def _device(request):
    before = mg.get_default_device()
    mg.set_default_device(request.param)
    yield
    mg.set_default_device(before)


def slopes(function, *numbers, dtype="float32"):
    """What the sum of the function's results gets from each of the numbers."""
    inputs = [mg.tensor(np.array(x, dtype), requires_grad=True) for x in numbers]
    y = function(*inputs)
    found = mg.grad(y, inputs, mg.ones_like(y))
    return [x.numpy() for x in found]


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "norm", "logsumexp", "prod", "cumsum", "cumprod"])
def test_columns_of_many_numbers_are_added_up_to_a_millionth(name):
    numbers = np.random.default_rng(0).normal(size=(300_000, 2))
    x = (numbers * 1e-3 + 1 if "prod" in name else numbers + (0 if name == "logsumexp" else 1e4)).astype(np.float32)
    wide = x.astype(np.float64)
    expected = {
        "var": lambda: wide.var(0, ddof=1),
        "std": lambda: wide.std(0, ddof=1),
        "norm": lambda: np.sqrt((wide * wide).sum(0)),
        "logsumexp": lambda: np.log(np.exp(wide).sum(0)),
    }.get(name, lambda: getattr(wide, name)(0))()
    np.testing.assert_allclose(getattr(mg.tensor(x), name)(dim=0).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_many_numbers_keeps_its_digits(name):
    x = np.random.default_rng(0).random((300_000, 2), dtype=np.float32)
    expected = np.exp(x.astype(np.float64))
    expected /= expected.sum(0)
    found = getattr(mg.tensor(x), name)(0).numpy()
    np.testing.assert_allclose(found, expected if name == "softmax" else np.log(expected), rtol=1e-6)


def test_a_bias_gets_the_sum_of_many_gradients():
    g = np.random.default_rng(0).random((300_000, 2), dtype=np.float32)
    bias = mg.zeros(2, requires_grad=True)
    (found,) = mg.grad(mg.tensor(g) + bias, bias, mg.tensor(g))
    np.testing.assert_allclose(found.numpy(), g.astype(np.float64).sum(0), rtol=1e-6)


def test_the_norm_of_large_numbers_is_finite_where_it_is_a_number_of_its_type():
    x = mg.tensor(np.full((3, 4), 1e20, np.float32), device="numpy")
    np.testing.assert_allclose(x.norm().item(), math.sqrt(12) * 1e20, rtol=1e-6)


def test_products_of_long_rows_keep_their_digits():
    a = np.random.default_rng(0).random((2, 1_000_001), dtype=np.float32)
    wide = a.astype(np.float64)
    np.testing.assert_allclose((mg.tensor(a) @ mg.tensor(a).T).numpy(), wide @ wide.T, rtol=1e-6)
    np.testing.assert_allclose(mg.einsum("ik,jk->ij", mg.tensor(a), mg.tensor(a)).numpy(), wide @ wide.T, rtol=1e-6)
    np.testing.assert_allclose((mg.tensor(a) @ mg.tensor(a)[0]).numpy(), wide @ wide[0], rtol=1e-6)


@pytest.mark.parametrize("far", [0.0, 1e4, 1e8, 1e30])
def test_the_gradient_of_soft_labels_does_not_depend_on_how_far_all_scores_are(far):
    scores = np.full((1, 40), far, np.float32)
    labels = mg.tensor(np.eye(40, dtype=np.float32)[:1])
    (found,) = slopes(lambda a: mg.nn.functional.cross_entropy(a, labels), scores)
    np.testing.assert_allclose(found, np.full((1, 40), 1 / 40) - np.eye(40)[:1], rtol=1e-6)
