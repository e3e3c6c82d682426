"""Covariances at the end of their divisor, and positions in a shape."""

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import DTypeError
from needs import needs
from parity import agree


@merge_cases
@pytest.mark.filterwarnings("ignore:cov")
@pytest.mark.parametrize("correction", [-1, 0, 1, 2, 3, 4])
@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 3), (2, 2), (2, 1), (1, 1)])
def test_cov_divides_by_0_where_the_correction_takes_all(correction, shape):
    needs("torch")
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape) ** 2.0
    agree(lambda F, x: F.cov(x, correction=correction), x)


def test_one_variable_has_a_number_for_covariance_and_correlation():
    row = mg.tensor([[1.0, 2.0, 4.0]])
    assert (row.cov().shape, row.corrcoef().item(), mg.cov(row[0]).item()) == ((), 1.0, row.cov().item())


def test_unravel_index_gives_int64_and_takes_integers_alone():
    for dtype in (mg.int32, mg.uint8):
        rows, columns = mg.unravel_index(mg.tensor([1, 5], dtype=dtype), (2, 300))
        assert (rows.tolist(), columns.tolist(), rows.dtype, columns.dtype) == ([0, 0], [1, 5], mg.int64, mg.int64)
    for wrong in (mg.ones(2), mg.ones(2) > 0):
        with pytest.raises(DTypeError, match=r"unravel_index: indices of (float32|bool) are not integers"):
            mg.unravel_index(wrong, (2, 3))
