"""Weight initialisation: bounds, moments, fans and orthogonality, with a fixed seed.

The mean of n uniform samples is within 6 / sqrt(n) standard deviations of the centre except with negligible
probability; the fixed seed makes the result reproducible.
"""

import math

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import nn
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.nn import init

SHAPE = (200, 150)
COUNT = 200 * 150
TOLERANCE = 6 / math.sqrt(COUNT)


def filled(fill, *args, shape=SHAPE, **keywords):
    """Return a tensor filled by `fill` with a fixed seed."""
    mg.manual_seed(3)
    x = mg.full(shape, 99.0)
    assert fill(x, *args, **keywords) is x
    return x


def check_uniform(x, bound):
    assert 0.999 * bound < x.abs().max().item() <= bound
    assert abs(x.mean().item()) < TOLERANCE * bound
    assert x.std().item() == pytest.approx(bound / math.sqrt(3), rel=TOLERANCE)


def check_normal(x, std):
    assert abs(x.mean().item()) < TOLERANCE * std
    assert x.std().item() == pytest.approx(std, rel=TOLERANCE)
    assert (x.abs() < std).to(mg.float32).mean().item() == pytest.approx(math.erf(1 / math.sqrt(2)), abs=TOLERANCE)


def test_linear_starts_by_kaiming_uniform_whose_bound_for_784_inputs_is_one_over_28():
    mg.manual_seed(0)
    layer = nn.Linear(784, 128)
    assert 1 / 28 == 0.03571428571428571
    check_uniform(layer.weight.detach(), 1 / 28)
    assert layer.bias.abs().max().item() <= 1 / 28
    mg.manual_seed(0)
    assert (nn.Linear(784, 128).weight == layer.weight).all()


def test_fan_in_of_a_convolution_counts_kernel_and_group_channels():
    mg.manual_seed(0)
    check_uniform(nn.Conv2d(32, 64, 5, groups=4).weight.detach(), (8 * 25) ** -0.5)


def test_uniform_normal_and_constants():
    check_uniform(filled(init.uniform_, -2.0, 2.0), 2.0)
    check_normal(filled(init.normal_, 0.0, 0.3), 0.3)
    assert (filled(init.constant_, 0.25) == 0.25).all()
    assert (filled(init.ones_) == 1.0).all()
    assert (filled(init.zeros_) == 0.0).all()


def test_xavier_and_kaiming_scale_by_their_fans():
    check_uniform(filled(init.xavier_uniform_, 2.0), 2.0 * math.sqrt(6 / 350))
    check_normal(filled(init.xavier_normal_), math.sqrt(2 / 350))
    check_uniform(filled(init.kaiming_uniform_, nonlinearity="relu"), math.sqrt(6 / 150))
    check_uniform(filled(init.kaiming_uniform_, math.sqrt(5), "fan_out"), math.sqrt(1 / 200))
    check_normal(filled(init.kaiming_normal_, mode="fan_out", nonlinearity="linear"), math.sqrt(1 / 200))
    check_normal(filled(init.kaiming_normal_, shape=(40, 30, 5, 5)), math.sqrt(2 / 750))


def test_a_truncated_normal_stays_inside_its_bounds_and_has_its_shape_there():
    x = filled(init.trunc_normal_, 1.0, 2.0, 0.0, 2.0)
    assert (x.min().item(), x.max().item()) == pytest.approx((0.0, 2.0), abs=0.01)
    assert x.mean().item() == pytest.approx(1.0, abs=TOLERANCE)
    inside = math.erf(0.25 / math.sqrt(2)) / math.erf(0.5 / math.sqrt(2))
    assert ((x - 1.0).abs() < 0.5).to(mg.float32).mean().item() == pytest.approx(inside, abs=TOLERANCE)
    check_normal(filled(init.trunc_normal_, 0.0, 0.1), 0.1)


@pytest.mark.parametrize("shape", [(20, 30), (30, 20), (8, 3, 2, 2), (1, 1)])
def test_orthogonal_rows_or_columns_are_orthonormal_times_the_gain(shape):
    x = filled(init.orthogonal_, 2.0, shape=shape).flatten(1)
    matrix = x if x.shape[0] <= x.shape[1] else x.T
    assert (matrix @ matrix.T - 4.0 * mg.eye(matrix.shape[0])).abs().max().item() < 1e-5
    assert (x != filled(init.orthogonal_, 2.0, shape=shape).flatten(1)).sum().item() == 0


def test_orthogonal_signs_are_drawn_too():
    mg.manual_seed(0)
    signs = {init.orthogonal_(mg.empty(1, 1)).item() for _ in range(20)}
    assert signs == {1.0, -1.0}


def test_eye_dirac_and_sparse_follow_their_definitions():
    assert filled(init.eye_, shape=(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    x = mg.randn(2, 4, 5, 5)
    weight = filled(init.dirac_, shape=(4, 4, 3, 3))
    assert (mg.functional.conv2d(x, weight, padding=1) == x).all()
    weight = filled(init.dirac_, 2, shape=(4, 2, 3, 3))
    assert (mg.functional.conv2d(x, weight, padding=1, groups=2) == x).all()
    assert (filled(init.sparse_, 0.3, shape=(10, 6)) == 0.0).sum(0).tolist() == [3] * 6


@pytest.mark.parity
def test_gains_are_pytorchs(torch):
    plain = ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu")
    for name, param in (*((name, None) for name in plain), ("leaky_relu", math.sqrt(5))):
        assert init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)


def test_an_explicit_generator_leaves_the_default_one_unchanged():
    mg.manual_seed(5)
    expected = mg.rand(3).tolist()
    mg.manual_seed(5)
    a = init.normal_(mg.empty(4), generator=mg.Generator(1))
    b = init.normal_(mg.empty(4), generator=mg.Generator(1))
    assert a.tolist() == b.tolist()
    assert mg.rand(3).tolist() == expected


def test_parameters_are_filled_in_place_outside_the_graph():
    layer = nn.Linear(3, 2)
    weight = layer.weight
    init.normal_(weight)
    assert weight.is_leaf
    assert weight.requires_grad
    assert layer.weight is weight


@merge_cases
@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: init.kaiming_uniform_(mg.empty(3)),
            ShapeError,
            r"fan in and fan out can not be computed .* shape \(3,\)",
        ),
        (
            lambda: init.kaiming_normal_(mg.empty(3, 2), mode="fan"),
            ArgumentError,
            r"kaiming: expected mode to be one of 'fan_in', 'fan_out', but got 'fan'\.",
        ),
        (
            lambda: init.calculate_gain("swish"),
            ArgumentError,
            "calculate_gain: expected nonlinearity to be one of 'linear', 'sigmoid', 'conv1d',",
        ),
        (lambda: init.orthogonal_(mg.empty(3)), ShapeError, "fan in and fan out"),
        (lambda: init.eye_(mg.empty(3)), ShapeError, "eye_: only tensors with 2 dimensions are supported"),
        (lambda: init.dirac_(mg.empty(3, 3)), ShapeError, "only tensors with 3, 4, or 5 dimensions"),
        (
            lambda: init.sparse_(mg.empty(3, 3), 2.0),
            ArgumentError,
            r"sparse_: sparsity has to be between 0 and 1, but got 2\.0\.",
        ),
        (
            lambda: init.trunc_normal_(mg.empty(3), mean=9.0),
            ArgumentError,
            r"only 0.00% of a normal .* lies within \[-2.0, 2.0\]",
        ),
    ],
)
def test_invalid_arguments_raise(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
