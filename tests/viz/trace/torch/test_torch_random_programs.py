"""Random PyTorch programs: what is recorded is what they compute, and nothing of the user's is changed."""

import warnings

import numpy as np
import pytest

from minigrad_viz import to_trace
from tiers import mark_nightly
from torch_checks import assert_graph_is_true, assert_same_bits, gradient_sums
from torch_random import random_program

PROGRAMS_PER_TEST = 20


@pytest.mark.parametrize("first", mark_nightly(range(0, 2000, PROGRAMS_PER_TEST), (0, 1000)))
def test_a_recorded_program_has_true_edges_and_true_gradients(torch, first):
    from minigrad_viz.trace.torch.graph import build_graph
    from minigrad_viz.trace.torch.recorder import Recorder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of operations on tensors with too few elements
        for seed in range(first, first + PROGRAMS_PER_TEST):
            program = random_program(seed)
            expected_loss, expected_leaves = program(torch)
            try:
                expected_loss.backward()
                is_differentiable = True
            except RuntimeError:  # a saved tensor was modified in-place
                is_differentiable = False
            with Recorder():
                loss, leaves = program(torch)
            assert_same_bits(loss.detach().numpy(), expected_loss.detach().numpy(), f"loss of program {seed}")
            assert_graph_is_true(torch, build_graph([loss]))
            random_state = torch.get_rng_state()
            trace, indices = traced(loss)
            assert torch.equal(random_state, torch.get_rng_state())
            assert [leaf.grad for leaf in leaves] == [None] * len(leaves)
            if not is_differentiable:
                assert not trace.passes
                assert any("cannot be shown" in note.text for note in trace.notes)
                continue
            loss.backward()
            sums = gradient_sums(trace)
            for leaf, expected in zip(leaves, expected_leaves, strict=True):
                assert (leaf.grad is None) == (expected.grad is None)
                if leaf.grad is not None:
                    assert_same_bits(sums[indices[id(leaf)]], leaf.grad.numpy(), f"gradient of program {seed}")
                    np.testing.assert_allclose(leaf.grad, expected.grad, rtol=1e-5, atol=1e-6)
            observed = to_trace(loss).passes[0]
            assert observed.edge == trace.passes[0].edge
            for ours, theirs in zip(trace.passes[0].contribution, observed.contribution, strict=True):
                assert_same_bits(ours, theirs, f"contribution of program {seed}")


def traced(loss):
    from minigrad_viz.trace import trace_with_indices

    return trace_with_indices(loss)
