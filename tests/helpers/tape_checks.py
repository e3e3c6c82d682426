"""Compare tapes with the graphs from which they were compiled."""

import numpy as np

from needs import is_available
from strategies import ROUNDING

__all__ = ["ARRAY_DEVICES", "DEVICES", "as_list", "assert_close", "assert_matches_graph", "xor_loss"]

ARRAY_DEVICES = ["numpy", *(["cpu"] if is_available("taichi") else [])]
DEVICES = ["python", *ARRAY_DEVICES]


def as_list(results):
    """Return the results of a batch, an array or a list, as a list."""
    return results if isinstance(results, list) else results.tolist()


def assert_close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def assert_matches_graph(output, tape, tolerance=ROUNDING):
    """Assert that a tape with one output returns the graph's value and, for each leaf, its gradient."""
    output.zero_grad()
    output.backward()
    assert_close(tape.forward(), output.data, tolerance)
    tape.backward()
    expected = {leaf: leaf.grad for leaf in tape.inputs if leaf.grad is not None}
    assert list(tape.gradients) == list(expected)
    assert_close(list(tape.gradients.values()), list(expected.values()), tolerance)


def xor_loss(model, inputs=None):
    points = [(0.0, 0.0, -1.0), (0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, -1.0)]
    losses = [(model([x, y])[0] - target) ** 2 for x, y, target in points]
    return sum(losses) * 0.25
