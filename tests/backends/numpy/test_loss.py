"""Loss kernels, with arguments that no public function passes."""

import pytest

import minigrad as mg
from minigrad.core.op import OPS


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_unknown_reduction_raises_key_error(name, device):
    scores, target = mg.zeros(2, 3, device=device), mg.tensor([0, 1], device=device)
    with pytest.raises(KeyError, match="average"):
        OPS[name](scores, target, None, ignore_index=-100, reduction="average")
