"""Edge cases of sorting: ties, nan, infinity, 0-d tensors, and errors."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from parity import assert_agree, default_device

NAN, INF = float("nan"), float("inf")


@pytest.mark.parity
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [[3.0, NAN, 1.0, NAN, 3.0], [INF, -INF, NAN, 0.0, INF]],
        [[2, 1, 2, 1, 0], [5, 5, 5, 5, 5]],
        [[True, False, True, False, True], [False, False, False, False, False]],
    ],
    ids=["nans", "ints", "bools"],
)
def test_ties_and_nans_come_in_pytorch_s_stable_order(torch, values, descending):
    for dim in (0, 1):
        actual = mg.sort(mg.tensor(values), dim, descending)
        expected = torch.sort(torch.tensor(values), dim=dim, descending=descending, stable=True)
        np.testing.assert_array_equal(actual.values.numpy(), expected.values.numpy())
        assert actual.indices.tolist() == expected.indices.tolist()
        assert mg.argsort(mg.tensor(values), dim, descending).tolist() == expected.indices.tolist()


@pytest.mark.parametrize("largest", [True, False])
def test_topk_is_a_prefix_of_a_stable_sort(largest):
    x = mg.tensor([[2.0, 1.0, NAN, 2.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0]])
    for k in range(6):
        top, whole = mg.topk(x, k, largest=largest), mg.sort(x, descending=largest)
        np.testing.assert_array_equal(top.values.numpy(), whole.values[:, :k].numpy())
        assert top.indices.tolist() == whole.indices[:, :k].tolist()


@pytest.mark.parity
@pytest.mark.parametrize("values", [[3.0, NAN, 1.0, NAN], [4.0, 1.0, 3.0, 2.0], [5.0, INF, -INF]], ids=str)
def test_the_median_is_the_smaller_middle_or_the_first_nan(torch, values):
    actual, expected = mg.tensor(values).median(0), torch.tensor(values).median(0)
    np.testing.assert_array_equal(actual.values.numpy(), expected.values.numpy())
    assert actual.indices.item() == expected.indices.item()
    np.testing.assert_array_equal(mg.tensor(values).median().numpy(), torch.tensor(values).median().numpy())


def test_gradient_of_ties_goes_to_the_first():
    x = mg.tensor([2.0, 1.0, 2.0, 1.0], requires_grad=True)
    mg.topk(x, 1).values.backward()
    mg.kthvalue(x, 1).values.backward()
    mg.median(x, 0).values.backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 1.0]


def test_infinite_gradients_stay_where_they_belong():
    x = mg.tensor([2.0, 3.0, 1.0], requires_grad=True)
    mg.sort(x).values.backward(mg.tensor([INF, 0.0, NAN]))
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, NAN, INF])


def test_sorting_a_0d_tensor_returns_0d():
    x = mg.tensor(3.0)
    for result in (x.sort(), x.topk(1), x.kthvalue(1), x.median(0), x.median(0, keepdim=True)):
        assert (result.values.item(), result.values.shape, result.indices.item()) == (3.0, (), 0)
    assert mg.argsort(x).shape == mg.median(x).shape == ()


def test_results_are_named_tuples():
    assert mg.sort(mg.tensor([2.0, 1.0]))._fields == ("values", "indices")
    assert mg.sort(mg.tensor([2.0, 1.0])).indices.dtype is mg.int64


REFUSED = {
    "sort, no such dimension": (lambda x: mg.sort(x, 2), ShapeError, "sort: dimension out of range"),
    "topk, too many": (
        lambda x: x.topk(4),
        ShapeError,
        r"topk: selected index k=4 out of range for dimension 1 of shape \(2, 3\), with 3 elements",
    ),
    "topk, negative": (lambda x: x.topk(-1), ShapeError, "topk: selected index k=-1"),
    "topk of nothing": (lambda x: x[0, 0].topk(0), ShapeError, "topk: selected index k=0"),
    "kthvalue, 0": (lambda x: x.kthvalue(0), ShapeError, "kthvalue: selected number k=0 out of range .* 1 to 3"),
    "kthvalue, too many": (lambda x: x.kthvalue(3, 0), ShapeError, "kthvalue: selected number k=3 out .* 1 to 2"),
    "median of nothing": (
        lambda x: x[:0].median(0),
        ShapeError,
        r"median: expected dimension 0 to have non-zero size, but got shape \(0, 3\)\.",
    ),
    "median of nothing at all": (
        lambda x: x[:0].median(),
        ShapeError,
        r"median: expected dimension 0 to have non-zero size, but got shape \(0,\)\.",
    ),
    "median, keepdim": (lambda x: mg.median(x, keepdim=True), ArgumentError, "median: keepdim requires a dim"),
    "a list": (lambda x: mg.sort([2.0, 1.0]), DTypeError, r"sort: input must be a tensor, not a list\."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_calls_raise(name):
    wrong, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        wrong(mg.ones(2, 3))


def test_k_must_be_an_int():
    for call in (lambda: mg.ones(3).topk(1.5), lambda: mg.ones(3).kthvalue(1.5)):
        with pytest.raises(DTypeError, match=r"k=1\.5 is a float, not an int"):
            call()


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_nan_sorts_last(device):
    with default_device(device):
        rising, x = mg.tensor([1.0, 3.0, 3.0]), mg.tensor([NAN, 3.0, 0.0, INF])
        assert mg.searchsorted(rising, x).tolist() == [3, 1, 0, 3]
        assert mg.searchsorted(rising, x, right=True).tolist() == [3, 3, 0, 3]
        assert mg.bucketize(x, mg.tensor([1, 2])).tolist() == [2, 2, 0, 2]
        assert (mg.bucketize(NAN, rising).item(), mg.searchsorted(rising, NAN, out_int32=True).dtype) == (3, mg.int32)
        assert mg.searchsorted(mg.tensor([[1.0, 2.0], [0.0, INF]]), mg.tensor([[NAN], [NAN]])).tolist() == [[2], [2]]
        assert mg.searchsorted(mg.tensor([1.0, NAN, NAN]), mg.tensor([1.0, 2.0, NAN])).tolist() == [0, 1, 3]


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_quantile_next_to_infinity_is_infinite(device):
    with default_device(device):
        x = mg.tensor([-INF, 1.0, 2.0, INF])
        assert mg.quantile(x, mg.tensor([0.0, 0.2, 0.5, 1.0])).tolist() == [-INF, -INF, 1.5, INF]
        assert mg.nanquantile(mg.tensor([NAN, 1.0, INF]), 0.75).item() == INF


@pytest.mark.parity
@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("values", [[3.0, 1.0, 1.0, 2.0], [2.0] * 3, [INF, INF, 1.0], [-INF, -INF, 3.0], [-INF, INF]])
def test_ties_of_the_median_divide_its_gradient(name, values):
    assert_agree(lambda F, x: (getattr(F, name)(x), getattr(F, name)(x.reshape(-1, 1))), np.array(values))
    assert_agree(lambda F, x: getattr(F, name)(x, 0)[0].detach(), np.array(values))
