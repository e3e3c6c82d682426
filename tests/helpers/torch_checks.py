"""Check a recorded graph of PyTorch: run each operation again on its operands, and sum contributions to gradients."""

import numpy as np

__all__ = ["assert_graph_is_true", "assert_same_bits", "gradient_sums"]

RANDOM = {
    "bernoulli_",
    "native_dropout",
    "rand",
    "randn",
    "normal_",
    "uniform_",
    "randint",
    "randperm",
    "multinomial",
    "randn_like",
    "rand_like",
}
EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}


def assert_same_bits(actual, expected, what=""):
    """Assert that two arrays have the same shape and the same elements, NaN included."""
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    assert np.array_equal(actual, expected, equal_nan=actual.dtype.kind in "fc"), (what, actual, expected)


def assert_graph_is_true(torch, graph):
    """Assert that each recorded operation computes its output from the operands at the other ends of its edges."""
    from minigrad_viz.trace.torch.summaries import copy_to_host

    checked = 0
    for step in graph.steps.values():
        if step.call is None or step.call.name in RANDOM | EMPTY:
            continue
        values = {}
        for index, operand in zip(step.call.operands, step.operands, strict=False):
            array = _values_of(graph, operand.source)
            dtype = None if operand.value is None else getattr(torch, operand.value.dtype)
            values[index] = None if array is None else torch.from_numpy(np.array(array)).to(dtype)
        if any(x is None for x in values.values()) or any(_is_modified(graph, x) for x in step.operands):
            continue
        with torch.no_grad():
            args = _with_tensors(step.call.args, values)
            kwargs = {name: _with_tensors(x, values) for name, x in step.call.kwargs.items()}
            try:
                result = step.call.operation(*args, **kwargs)
            except RuntimeError:  # the operand has other strides than in the program
                continue
        results = result if isinstance(result, (list, tuple)) else [result]
        for output, value in step.outputs.items():
            if value.call is step.call and output < len(results) and isinstance(value.values, np.ndarray):
                actual = copy_to_host(results[output])
                assert actual.shape == value.values.shape, (step.call.name, actual.shape, value.values.shape)
                np.testing.assert_allclose(actual, value.values, rtol=1e-6, atol=1e-6, err_msg=step.call.name)
                checked += 1
    return checked


def _values_of(graph, source):
    if source.key in graph.leaves:
        value = graph.values.get(source.key)
        return value.values if value is not None else graph.leaves[source.key].detach().numpy()
    value = graph.steps[source.key].outputs.get(source.output)
    return None if value is None else value.values


def _is_modified(graph, operand):
    """Whether an operand is a leaf that was modified after the operation, or was modified unseen by autograd."""
    if operand.value is not None and operand.value.is_modified:
        return True
    return operand.value is not None and operand.value is not graph.values.get(operand.source.key, operand.value)


def _with_tensors(x, values):
    if hasattr(x, "value"):
        return values[x.value].clone()
    return [_with_tensors(part, values) for part in x] if isinstance(x, tuple) else x


def gradient_sums(trace, run=0):
    """Return the sums of the contributions to each node in the order of a pass, by node."""
    sums = {}
    events = trace.passes[run]
    for edge, contribution in zip(events.edge, events.contribution, strict=True):
        node = trace.operand[edge]
        sums[node] = contribution if node not in sums else sums[node] + contribution
    return sums
