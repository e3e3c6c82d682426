"""The trace of forty PyTorch models: PyTorch's values, its contributions to each gradient, and nothing changed."""

import numpy as np
import pytest

from minigrad_viz import record
from minigrad_viz.trace import trace_with_indices
from torch_checks import assert_graph_is_true, assert_same_bits, gradient_sums
from torch_models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_contributions_sum_to_the_gradients_of_pytorch(torch, name):
    torch.manual_seed(0)
    expected_loss, _ = MODELS[name](torch)
    torch.manual_seed(0)
    with record():
        loss, parameters = MODELS[name](torch)
    assert_same_bits(loss.detach().numpy(), expected_loss.detach().numpy())
    random_state = torch.get_rng_state()
    trace, indices = trace_with_indices(loss)
    assert torch.equal(random_state, torch.get_rng_state())
    assert [p.grad for p in parameters] == [None] * len(parameters)
    assert not [note.text for note in trace.notes if note.kind in ("freed", "overwritten", "error")]
    loss.backward()
    observed = trace_with_indices(loss)[0]
    assert observed.passes[0].edge == trace.passes[0].edge
    for run in (trace, observed):
        sums = gradient_sums(run)
        for p in parameters:
            if p.grad is not None and p.numel() <= 10_000:
                assert_same_bits(sums[indices[id(p)]], p.grad.numpy(), name)
    assert {indices[id(p)] for p in parameters if p.grad is not None} <= sums.keys()


@pytest.mark.parametrize("name", MODELS)
def test_each_operation_computes_its_value_from_its_operands(torch, name):
    from minigrad_viz.trace.torch.graph import build_graph

    torch.manual_seed(0)
    with record():
        loss, _ = MODELS[name](torch)
    assert assert_graph_is_true(torch, build_graph([loss])) > 0
    assert np.isfinite(loss.item())
