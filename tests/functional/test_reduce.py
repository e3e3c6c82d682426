"""Reductions and cumulative functions: values, dtypes, gradients to second order, and errors, against PyTorch."""

import numpy as np
import pytest

import minigrad as mg
import parity
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from minigrad.core.graph import propagate
from parity import FLOATS, INTS, default_device
from tiers import cross

# Relative to the largest element of a result, because sums cancel and the libraries add in different orders.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}

MULTI_DIM = {
    "sum": {},
    "mean": {},
    "amax": {},
    "amin": {},
    "var": {},
    "var, correction 0": {"correction": 0},
    "std": {},
    "logsumexp": {},
    "norm": {},
    "norm 1": {"p": 1},
    "norm 1.5": {"p": 1.5},
    "norm 3": {"p": 3},
    "norm inf": {"p": float("inf")},
    "norm -inf": {"p": -float("inf")},
    "norm 0": {"p": 0},
    "any": {},
    "all": {},
}
SINGLE_DIM = {"max": {}, "min": {}, "argmax": {}, "argmin": {}, "prod": {}}
CUMULATIVE = {"cumsum": {}, "cumprod": {}}
NEEDS_DIM = {"logsumexp", "cumsum", "cumprod"}
NO_GRADIENT = {"any", "all", "argmax", "argmin"}
SELECTING = {"amax", "amin", "max", "min", "argmax", "argmin", "norm inf", "norm -inf"}
FLOATS_ONLY = ("mean", "var", "std", "norm")
ALL_REDUCTIONS = MULTI_DIM | SINGLE_DIM | CUMULATIVE

SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (0,), (0, 3), (2, 0, 3)]


def dims_for(case, ndim):
    """Return the values of dim to test: from either end, and tuples if supported."""
    ones = [0, -1] if ndim < 2 else [0, -1, 1]
    if case in CUMULATIVE:
        return ones
    many = [] if case in SINGLE_DIM or not ndim else [(0, -1)] if ndim > 1 else [(0,)]
    return ones + many + ([] if case in NEEDS_DIM else [None])


def call_reduction(module, case, x, **keywords):
    name = case.split(",")[0].split(" ")[0]
    result = getattr(module, name)(x, **keywords, **ALL_REDUCTIONS[case])
    return result if isinstance(result, tuple) else (result,)


def calls(case, ndim):
    for dim in dims_for(case, ndim):
        for keepdim in (False, True):
            if case in CUMULATIVE:
                if not keepdim:
                    yield {"dim": dim}
            elif dim is not None:
                yield {"dim": dim, "keepdim": keepdim}
            elif not keepdim:
                yield {}
            elif case not in ("max", "min", "prod"):  # PyTorch has no keepdim without a dim for these
                yield {"dim": None if not case.startswith("am") else (), "keepdim": True}


def random_array(shape, dtype="float64", seed=0):
    generator = np.random.default_rng(seed)
    return np.round(generator.uniform(-3, 3, shape), 2).astype(dtype)


def assert_same(actual, expected, tolerance):
    assert (actual.dtype.name, actual.shape) == (str(expected.dtype)[6:], tuple(expected.shape))
    assert_close(actual.detach().numpy(), expected.numpy(force=True), tolerance)


def assert_close(a, b, tolerance):
    finite = np.abs(b[np.isfinite(b)]) if b.dtype.kind == "f" else np.abs(b.astype(float))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (1.0 + finite.max(initial=0.0)))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # PyTorch warns about degrees of freedom <= 0
@merge_cases(by="case")
@cross(1, case=ALL_REDUCTIONS, shape=SHAPES, dtype=["float64", "float32", "int64", "int32", "uint8", "bool"])
def test_values_dtypes_and_errors_match_pytorch(torch, case, shape, dtype):
    values = np.abs(random_array(shape)).astype(dtype) if dtype in ("uint8", "bool") else random_array(shape, dtype)
    for keywords in calls(case, len(shape)):
        try:
            expected = call_reduction(torch, case, torch.tensor(values), **keywords)
        except (IndexError, RuntimeError, NotImplementedError) as refusal:
            if "not support" in str(refusal) and dtype == "bool":  # minigrad supports argmax of bools
                continue
            with pytest.raises((ShapeError, DTypeError)):
                call_reduction(mg, case, mg.tensor(values), **keywords)
            continue
        for actual, torch_result in zip(call_reduction(mg, case, mg.tensor(values), **keywords), expected, strict=True):
            assert_same(actual, torch_result, TOLERANCE.get(dtype, TOLERANCE["float32"]))


LAYOUTS = {"transposed": lambda x: x.T, "sliced": lambda x: x[1:, ::2], "expanded": lambda x: x[:1].expand(3, 4)}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", ALL_REDUCTIONS)
def test_layouts_of_memory_do_not_matter(torch, case, layout):
    values = random_array((3, 4))
    x, t = LAYOUTS[layout](mg.tensor(values)), LAYOUTS[layout](torch.tensor(values))
    for actual, expected in zip(call_reduction(mg, case, x, dim=1), call_reduction(torch, case, t, dim=1), strict=True):
        assert_same(actual, expected, TOLERANCE["float64"])


CORNERS = {
    "nan": [1.0, np.nan, 3.0, np.nan],
    "infinite": [1.0, np.inf, -np.inf, 2.0],
    "inf": [1.0, np.inf, np.inf, 2.0],
    "-inf": [-np.inf, -np.inf],
    "ties": [2.0, -1.0, 2.0, -1.0],
    "zeros": [0.0, 0.0, 0.0],
    "a zero": [2.0, 0.0, -3.0],
    "two zeros": [2.0, 0.0, -3.0, 0.0, 4.0],
    "huge": [1e308, 1.0, 1e308],
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("case", ALL_REDUCTIONS)
def test_corners_have_pytorch_s_values_and_gradients(torch, case, corner):
    values = np.array(CORNERS[corner])
    x, t = mg.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    actual, expected = call_reduction(mg, case, x, dim=0)[0], call_reduction(torch, case, t, dim=0)[0]
    if case in ("norm", "norm 1.5", "norm 3") and corner == "huge":  # the powers overflow in PyTorch
        p = ALL_REDUCTIONS[case].get("p", 2)
        assert actual.item() == pytest.approx(1e308 * 2 ** (1 / p))
        return
    assert_same(actual, expected, TOLERANCE["float64"])
    if case in NO_GRADIENT:
        assert not actual.requires_grad
        return
    actual.backward(mg.tensor(np.full(actual.shape, 2.0)))
    if case in ("norm inf", "norm -inf") and corner == "nan":  # like PyTorch's amax, unlike its norm
        assert np.isnan(x.grad.numpy()).all()
        return
    expected.backward(torch.full_like(expected, 2.0))
    if case in ("prod", "cumprod") and "inf" in corner:
        return  # PyTorch divides the product by each element, and inf/inf is nan; minigrad does not divide
    if t.grad is None:  # PyTorch returns None for zero
        assert_zero(x.grad)
    else:
        assert_same(x.grad, t.grad, TOLERANCE["float64"])


def test_gradient_of_a_nan_maximum_of_all_elements_is_nan():
    x = mg.tensor([1.0, float("nan")], requires_grad=True)
    mg.max(x).backward()
    assert np.isnan(x.grad.numpy()).all()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@merge_cases(by="case")
@cross(
    1,
    case=[case for case in ALL_REDUCTIONS if case not in NO_GRADIENT],
    shape=[(), (1,), (5,), (3, 4), (2, 3, 4), (0, 3)],
    dtype=["float64", "float32"],
)
def test_gradients_are_pytorch_s_to_second_order(torch, case, shape, dtype):
    values = random_array(shape, dtype, seed=1)
    for keywords in calls(case, len(shape)):
        t = torch.tensor(values, requires_grad=True)
        try:
            torch_result = call_reduction(torch, case, t, **keywords)[0]
        except (IndexError, RuntimeError):
            continue  # raises, which is tested above
        x = mg.tensor(values, requires_grad=True)
        result = call_reduction(mg, case, x, **keywords)[0]
        outer = random_array(result.shape, dtype, seed=2)
        x_outer, t_outer = mg.tensor(outer, requires_grad=True), torch.tensor(outer, requires_grad=True)
        first = gradients(result, x_outer, [x])[0]
        (t_first,) = torch.autograd.grad(torch_result, t, t_outer, create_graph=True, allow_unused=True)
        if t_first is None:  # PyTorch returns None for zero
            assert_zero(first)
            continue
        assert_same(first, t_first, TOLERANCE[dtype])
        if not values.size:
            continue  # an empty mean gives nan (0/0) or 0 (an empty sum), depending on the order of the rules
        inner = random_array(shape, dtype, seed=3)
        if not t_first.requires_grad:
            assert not first.requires_grad
            continue
        second = gradients(first, mg.tensor(inner), [x, x_outer])
        t_second = torch.autograd.grad(t_first, [t, t_outer], torch.tensor(inner), allow_unused=True)
        for b, twin in zip(second, t_second, strict=True):
            if twin is not None and b is not None:
                assert_same(b, twin, TOLERANCE[dtype] * 10)  # quotients accumulate the rounding errors of each factor
            else:
                assert_zero(b), assert_zero(twin)


def assert_zero(x):
    if x is not None:
        array = x.detach().numpy() if isinstance(x, mg.Tensor) else x.numpy(force=True)
        assert not array[~np.isnan(array)].any()


def gradients(output, weight, inputs):
    """Return differentiable gradients of the weighted `output` for `inputs`, None where there is none."""
    totals = propagate({output._edge(): weight}, create_graph=True)
    return [totals.get(x) for x in inputs]


@pytest.mark.parametrize("name", ["cumprod", "prod"])
@pytest.mark.parametrize("values", [[2.0, 0.0, -3.0, 1.5], [0.0, 2.0, 0.0, 3.0], [0.5, -2.0, 3.0, 1.0]], ids=str)
def test_products_have_third_derivatives_at_zeros(name, values):
    weight, steps = mg.tensor([1.0, -2.0, 0.5, 3.0], dtype=mg.float64), [1e-4, -1e-4]

    def second(shifted):
        """Return the gradient of a weighted sum of the gradient of the product."""
        x = mg.tensor(shifted, dtype=mg.float64, requires_grad=True)
        y = getattr(mg, name)(x, dim=0)
        y = y if name == "prod" else mg.sum(y * weight)
        first = gradients(y, mg.tensor(1.0, dtype=mg.float64), [x])[0]
        return x, gradients(mg.sum(first * weight), mg.tensor(1.0, dtype=mg.float64), [x])[0]

    x, gradient = second(values)
    third = gradients(mg.sum(gradient * weight), mg.tensor(1.0, dtype=mg.float64), [x])[0].detach().numpy()
    for k in range(4):
        ends = [
            float((second([v + h * (i == k) for i, v in enumerate(values)])[1] * weight).detach().numpy().sum())
            for h in steps
        ]
        # A product is linear in each factor, so third differences are pure rounding error, 1e-16/1e-4.
        assert third[k] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-9, abs=1e-9)


def test_the_gradient_of_max_over_a_dim_goes_to_the_index_and_that_of_amax_to_all_ties():
    values = [[1.0, 3.0, 3.0]]
    for function, expected in (
        (lambda x: mg.max(x, 1).values, [0.0, 1.0, 0.0]),
        (lambda x: mg.amax(x, 1), [0.0, 0.5, 0.5]),
    ):
        x = mg.tensor(values, requires_grad=True)
        function(x).backward()
        assert x.grad.tolist() == [expected]


def test_pick_along_and_put_along_are_adjoint():
    x, at = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), mg.tensor([1, 0])
    picked = mg.OPS["pick_along"](x, at, dim=1, keepdim=False)
    picked.backward(mg.tensor([5.0, 7.0]))
    assert (picked.tolist(), x.grad.tolist()) == ([2.0, 3.0], [[0.0, 5.0], [7.0, 0.0]])


def test_products_of_infinities_have_infinite_gradients():
    x = mg.tensor([1.0, float("inf"), 2.0], requires_grad=True)
    mg.prod(x).backward()
    assert x.grad.tolist() == [np.inf, 2.0, np.inf]


def test_functions_are_methods_too_and_max_takes_a_tensor():
    x = mg.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert x.sum(0).tolist() == [8.0, 7.0]
    assert x.mean().item() == 3.75
    assert x.min(dim=-1).indices.tolist() == [0, 1]
    assert x.max(x.T).tolist() == [[1.0, 7.0], [7.0, 2.0]]
    assert mg.sum(mg.tensor([True, True]), dtype=mg.float64).dtype is mg.float64


@merge_cases
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (
            lambda x: x.sum(2),
            ShapeError,
            r"sum: dimension out of range \(expected to be in range of \[-2, 1\], but got 2\) for a 2-d tensor",
        ),
        (lambda x: x.sum((0, -2)), ShapeError, r"sum: a dim appears multiple times .*, dim=\(0, -2\)"),
        (lambda x: x.sum(0.5), DTypeError, r"sum: dim must be an int or a tuple of ints, not 0\.5\."),
        (lambda x: x.prod((0, 1)), DTypeError, r"prod: dim must be a single int, not \(0, 1\)\."),
        (
            lambda x: x.to(mg.int64).mean(),
            DTypeError,
            r"mean: expected input to be a floating-point tensor, but got int64\.",
        ),
        (
            lambda x: x.to(mg.int64).std(),
            DTypeError,
            r"std: expected input to be a floating-point tensor, but got int64\.",
        ),
        (
            lambda x: x[:0].amax(0),
            ShapeError,
            r"amax: expected dimension 0 to have non-zero size, but got shape \(0, 3\)\.",
        ),
        (
            lambda x: x[:, :0].max(),
            ShapeError,
            r"amax: expected dimension 1 to have non-zero size, but got shape \(2, 0\)\.",
        ),
        (
            lambda x: x[:0].argmin(),
            ShapeError,
            r"argmin: expected dimension 0 to have non-zero size, but got shape \(0,\)\.",
        ),
        (lambda x: x.max(keepdim=True), ArgumentError, r"max: keepdim requires a dim\."),
        (
            lambda x: x.norm("nuc"),
            ArgumentError,
            r"""norm: order p='nuc' is not supported; expected a scalar, inf or "fro"\.""",
        ),
        (lambda x: mg.sum([1.0]), DTypeError, r"sum: input must be a tensor, not a list\."),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_invalid_calls_raise(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong(mg.ones(2, 3))


def test_overwriting_the_saved_index_of_max_raises():
    x = mg.tensor([[1.0, 5.0], [7.0, 2.0]], requires_grad=True)
    values, indices = mg.max(x, dim=1)
    indices.mul_(0)
    with pytest.raises(GraphError, match=r"max saved its result of shape \(2,\), .* operation: mul_"):
        values.backward(mg.ones(2))
    assert x.grad is None


def test_a_rule_may_differentiate_through_one_of_several_outputs():
    """An op with outputs (a, 2a) and a rule that reads the first output: g0 y0 / a = g0."""
    twice = mg.Op("test_twice", "{a}", vjp=(lambda g, y, a: g[0] * mg.ops.div(y[0], a),), outputs=2)
    try:
        mg.kernel("test_twice", mg.get_default_device())(lambda a: (a * 1.0, a * 2.0))
        x = mg.tensor([3.0], dtype=mg.float64, requires_grad=True)
        (twice(x)[0] * 1.0).backward(create_graph=True)
        gradient, x.grad = x.grad, None
        assert gradient.item() == 1.0
        gradient.backward()  # y0 / a is 1 everywhere, so the gradients through y0 and a cancel
        assert x.grad.item() == pytest.approx(0.0, abs=1e-15)
    finally:
        del mg.OPS["test_twice"]


def test_unbiased_and_correction_are_exclusive():
    with pytest.raises(ArgumentError, match=r"std: got both unbiased=True and correction=0; give only one\."):
        mg.ones(3).std(unbiased=True, correction=0)


def test_non_numeric_correction_raises():
    with pytest.raises(DTypeError, match="var: correction='no' is a str, not a number"):
        mg.ones(2).var(correction="no")


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_first_of_ties_is_selected_on_each_device(device):
    x = mg.tensor([[2.0, 7.0, 7.0], [1.0, 1.0, 0.0]], device=device)
    assert (x.argmax(1).tolist(), x.argmin(1).tolist()) == ([1, 0], [0, 2])
    assert (x.max(1).indices.tolist(), (-x).min(1).indices.tolist()) == ([1, 0], [1, 0])


AS = {
    "sum": lambda F, x, t: (F.sum(x, dtype=t), x.sum(-1, True, dtype=t)),
    "prod": lambda F, x, t: (F.prod(x, dtype=t), x.prod(-1, True, dtype=t)),
    "nansum": lambda F, x, t: (F.nansum(x, dtype=t), x.nansum(-1, True, dtype=t)),
    "cumsum": lambda F, x, t: (F.cumsum(x, 0, dtype=t), F.cumprod(x, 0, dtype=t)),
    "mean": lambda F, x, t: (F.mean(x, dtype=t), F.nanmean(x, dtype=t)),
}


@merge_cases
@pytest.mark.parametrize("name", AS)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("result_dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_requested_dtype_is_that_of_the_result(torch, name, dtype, result_dtype, device):
    if (name == "mean" and not dtype[0] == result_dtype[0] == "f") or (name == "cumsum" and result_dtype == "bool"):
        return  # PyTorch raises for these
    x = np.array([200, 2, 7]).astype(dtype)  # the sum and product wrap around in uint8
    with default_device(device):
        results = AS[name](mg, mg.tensor(x), getattr(mg, result_dtype))
    for result, torch_result in zip(
        results, AS[name](torch, torch.tensor(x), getattr(torch, result_dtype)), strict=True
    ):
        parity.assert_same(result, torch_result, result_dtype)


def test_in_place_cumulative_result_has_the_requested_dtype():
    x = mg.tensor([200, 100], dtype=mg.uint8)
    assert (x.cumsum_(0, dtype=mg.uint8).tolist(), x.dtype) == ([200, 44], mg.uint8)
