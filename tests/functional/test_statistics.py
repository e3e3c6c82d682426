"""Edge cases of covariance: divisors of 0, one variable, one observation."""

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from needs import needs
from parity import assert_agree


@merge_cases
@pytest.mark.filterwarnings("ignore:cov")
@pytest.mark.parametrize("correction", [-1, 0, 1, 2, 3, 4])
@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 3), (2, 2), (2, 1), (1, 1)])
def test_cov_divides_by_0_if_correction_exceeds_the_count(correction, shape):
    needs("torch")
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape) ** 2.0
    assert_agree(lambda F, x: F.cov(x, correction=correction), x)


def test_cov_and_corrcoef_of_one_variable_are_0d():
    row = mg.tensor([[1.0, 2.0, 4.0]])
    assert (row.cov().shape, row.corrcoef().item(), mg.cov(row[0]).item()) == ((), 1.0, row.cov().item())


def test_cov_accepts_a_0d_fweights_for_one_observation(torch):
    counted = [
        library.cov(library.tensor(2.5), correction=0, fweights=library.tensor(3)).tolist() for library in (mg, torch)
    ]
    assert counted == [0.0, 0.0]
    with pytest.raises(mg.errors.ShapeError, match=r"observations, 2, but got shape \(\)"):
        mg.cov(mg.tensor([2.5, 1.0]), fweights=mg.tensor(3))
