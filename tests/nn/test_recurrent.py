"""Sequences of recurrent layers as one operation, compared with the composition of small operations."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import DTypeError
from minigrad.core.graph import topological

DEVICE = mg.get_default_device()
LAYERS = {
    "LSTM": lambda *sizes, **options: nn.LSTM(*sizes, **options),
    "GRU": lambda *sizes, **options: nn.GRU(*sizes, **options),
    "RNN": lambda *sizes, **options: nn.RNN(*sizes, **options),
    "RNN relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
}
CELLS = {"LSTM": nn.LSTMCell, "GRU": nn.GRUCell, "RNN": nn.RNNCell}


def operations(*outputs):
    return [node._op.name for node in topological([x.grad_fn for x in outputs]) if node._op is not None]


def run(kind, hidden_size, *, recorded, dtype=mg.float32, batch=5, length=4, uses="output and state", **options):
    """Return the outputs, and the gradients of the input, the initial states and the parameters."""
    mg.manual_seed(3)
    layer = LAYERS[kind](3, hidden_size, **options).to(dtype)
    x = mg.randn(length, batch, 3, dtype=dtype, requires_grad=True)
    rows = layer.num_layers * (2 if layer.bidirectional else 1)
    states = [mg.randn(rows, batch, hidden_size, dtype=dtype, requires_grad=True) for _ in range(layer._num_states)]
    with mg.record() if recorded else mg.scope(""):
        output, final = layer(x, tuple(states) if kind == "LSTM" else states[0])
        results = {"output": output, "state": final[0] if kind == "LSTM" else final}
        results |= {"cell": final[1]} if kind == "LSTM" else {}
        weights = [mg.randn(*r.shape, dtype=dtype) for r in results.values()]
        loss = sum((r * w).sum() for (name, r), w in zip(results.items(), weights, strict=True) if name in uses)
        loss.backward()
    grads = [x.grad, *[s.grad for s in states], *[p.grad for p in layer.parameters()]]
    return [r.detach().numpy() for r in results.values()], [None if g is None else g.numpy() for g in grads]


# 7 and 24 have partial vectors, 300 more than one block of the sum; 16 has full vectors.
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(
    "options",
    [
        {"hidden_size": 7, "num_layers": 2},
        {"hidden_size": 16, "bidirectional": True, "bias": False},
        {"hidden_size": 24, "batch": 17, "uses": "state"},
        {"hidden_size": 300, "batch": 3, "length": 2, "uses": "output"},
        {"hidden_size": 5, "batch": 1, "length": 1, "uses": "output and state and cell"},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_operation_equals_the_recorded_steps(kind, options, dtype):
    results, expected = [run(kind, dtype=getattr(mg, dtype), recorded=r, **options) for r in (False, True)]
    if DEVICE == "numpy" or (DEVICE == "cpu" and dtype == "float64"):
        assert all(map(np.array_equal, results[0], expected[0]))
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    for one, other in zip(results[0] + results[1], expected[0] + expected[1], strict=True):
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("shape", [(4, 3), (3,)], ids=["batch", "single"])
def test_a_cell_is_one_operation_that_equals_its_recorded_step(kind, shape):
    cell, x = CELLS[kind](3, 6), mg.randn(*shape)
    fused = cell(x)
    with mg.record():
        recorded = cell(x)
    pairs = zip(fused, recorded, strict=True) if kind == "LSTM" else [(fused, recorded)]
    for one, other in pairs:
        assert f"{kind.lower()}_sequence" in operations(one)
        assert f"{kind.lower()}_sequence" not in operations(other)
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=2e-6, atol=2e-7)


def test_a_layer_is_one_operation_per_layer_and_direction():
    layer = nn.GRU(3, 4, num_layers=2, bidirectional=True)
    assert operations(layer(mg.ones(5, 2, 3))[0]).count("gru_sequence") == 4


def test_record_shows_the_operations_of_every_step():
    layer = nn.LSTM(3, 4)
    with mg.record():
        output, _ = layer(mg.ones(5, 2, 3))
    names = operations(output)
    assert names.count("sigmoid") == 15
    assert "lstm_sequence" not in names


def test_projected_and_packed_sequences_stay_compositions():
    x = mg.ones(5, 2, 3)
    packed = nn.utils.rnn.pack_padded_sequence(x, mg.tensor([5, 3]))
    for output in (nn.LSTM(3, 4, proj_size=2)(x)[0], nn.LSTM(3, 4)(packed)[0].data):
        assert "lstm_sequence" not in operations(output)


@pytest.mark.parametrize("kind", CELLS)
def test_second_derivatives_of_a_layer_equal_those_of_its_recorded_steps(kind):
    def penalty(recorded):
        mg.manual_seed(3)
        layer, x = LAYERS[kind](3, 4).to(mg.float64), mg.randn(3, 2, 3, dtype=mg.float64, requires_grad=True)
        with mg.record() if recorded else mg.scope(""):
            (grad,) = mg.grad(layer(x)[0].square().sum(), x, create_graph=True)
            grad.square().sum().backward()
        return [x.grad.numpy(), *[p.grad.numpy() for p in layer.parameters()]]

    for one, other in zip(penalty(False), penalty(True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_gradients_flow_through_the_gates_that_an_operation_returns():
    x, h, c = [mg.randn(*shape, dtype=mg.float64, requires_grad=True) for shape in ((2, 3, 8), (3, 2), (3, 2))]
    w = mg.randn(8, 2, dtype=mg.float64, requires_grad=True)

    def gates(*operands):
        return mg.ops.lstm_sequence(*operands, None, reverse=True)[3:]

    assert mg.autograd.gradcheck(gates, (x, h, c, w))


def test_operands_of_other_dtypes_raise_as_in_the_composition():
    with pytest.raises(DTypeError, match="float64"):
        nn.GRU(3, 4)(mg.ones(5, 2, 3), mg.zeros(1, 2, 4, dtype=mg.float64))
