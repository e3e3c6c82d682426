"""Packed sequences equal PyTorch's, also through recurrent layers, with their gradients."""

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.nn.utils import rnn
from needs import needs
from parity import LACKS_FLOAT64, assert_close
from strategies import PARITY

DTYPE = "float32" if LACKS_FLOAT64 else "float64"
LENGTHS = [3, 5, 1, 5, 2]
TABLE = np.random.default_rng(0).normal(size=(5, 6, 4)).astype(DTYPE)  # (N, L, …), longer than the longest
PARTS = ("data", "batch_sizes", "sorted_indices", "unsorted_indices")


def check_packed(actual, expected):
    for name in PARTS:
        a, b = getattr(actual, name), getattr(expected, name)
        assert (a is None) == (b is None)
        assert a is None or (a.tolist(), a.dtype.name) == (b.tolist(), str(b.dtype)[6:])


@pytest.mark.parity
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("in_order", [True, False])
def test_packing_equals_pytorchs_and_round_trips(torch, batch_first, in_order):
    lengths = sorted(LENGTHS, reverse=True) if in_order else LENGTHS
    results = []
    for library in (mg, torch):
        rnn = library.nn.utils.rnn
        x = library.tensor(TABLE if batch_first else TABLE.swapaxes(0, 1).copy()).requires_grad_()
        packed = rnn.pack_padded_sequence(x, library.tensor(lengths), batch_first, enforce_sorted=in_order)
        back, counts = rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0, total_length=7)
        (back * back).sum().backward()
        results.append((packed, back, counts, x.grad))
    check_packed(results[0][0], results[1][0])
    for actual, expected in zip(results[0][1:], results[1][1:], strict=True):
        assert actual.tolist() == expected.tolist()


@pytest.mark.parity
def test_sequences_in_a_list_are_packed_and_unpacked_as_in_pytorch(torch):
    results = []
    for library in (mg, torch):
        rnn, rows = library.nn.utils.rnn, [library.tensor(TABLE[k, :n]) for k, n in enumerate(LENGTHS)]
        packed = rnn.pack_sequence(rows, enforce_sorted=False)
        results.append((packed, [x.tolist() for x in rnn.unpack_sequence(packed)]))
        assert results[-1][1] == [x.tolist() for x in rows]
    check_packed(results[0][0], results[1][0])


@pytest.mark.parity
@pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"bidirectional": True, "num_layers": 2}], ids=str)
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("has_state", [True, False], ids=["a state given", "no state"])
def test_recurrent_layers_of_packed_sequences_equal_pytorchs(torch, kind, options, has_state):
    torch_layer = getattr(torch.nn, kind)(4, 3, **options).to(getattr(torch, DTYPE))
    mg_layer = getattr(mg.nn, kind)(4, 3, **options).to(getattr(mg, DTYPE))
    mg_layer.load_state_dict({name: mg.tensor(x.detach().numpy()) for name, x in torch_layer.state_dict().items()})
    rows = options.get("num_layers", 1) * (2 if "bidirectional" in options else 1)
    start = np.random.default_rng(1).normal(size=(rows, 5, 3)).astype(DTYPE)
    results = []
    for library, layer in ((mg, mg_layer), (torch, torch_layer)):
        x = library.tensor(TABLE).requires_grad_()
        h = library.tensor(start).requires_grad_()
        packed = library.nn.utils.rnn.pack_padded_sequence(x, LENGTHS, True, enforce_sorted=False)
        output, last = layer(packed, ((h, h * 0.5) if kind == "LSTM" else h) if has_state else None)
        table, _ = library.nn.utils.rnn.pad_packed_sequence(output, True)
        last = last if kind == "LSTM" else (last,)
        loss = (table * table).sum()
        for k, state in enumerate(last):
            loss = loss + (state * state * (k + 2.0)).sum()
        loss.backward()
        grads = [x.grad, *([h.grad] if has_state else []), *[p.grad for p in layer.parameters()]]
        results.append([output.data.detach(), *[state.detach() for state in last], *grads])
    for actual, expected in zip(*results, strict=True):
        assert_close(actual.numpy(), expected.numpy(), 10 * PARITY[DTYPE])


def test_each_sequence_of_a_packed_batch_is_independent():
    layer = mg.nn.GRU(4, 3, bidirectional=True, batch_first=True)
    rows = [mg.tensor(TABLE[k, :n].astype("float32")) for k, n in enumerate(LENGTHS)]
    output, last = layer(rnn.pack_sequence(rows, enforce_sorted=False))
    for k, (row, read) in enumerate(zip(rows, rnn.unpack_sequence(output), strict=True)):
        alone, end = layer(row)
        assert_close(read.detach().numpy(), alone.detach().numpy(), PARITY["float32"])
        assert_close(last[:, k].detach().numpy(), end.detach().numpy(), PARITY["float32"])


def test_a_training_step_of_packed_sequences_can_be_jitted():
    mg.manual_seed(0)
    twins = [mg.nn.LSTM(4, 3), mg.nn.LSTM(4, 3)]
    twins[1].load_state_dict(twins[0].state_dict())
    losses = []
    for layer, wrap in zip(twins, (lambda step: step, mg.jit), strict=True):
        optimizer = mg.optim.SGD(layer.parameters(), lr=0.1)

        @wrap
        def step(x, lengths, layer=layer, optimizer=optimizer):
            optimizer.zero_grad()
            output, _ = layer(rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False))
            table, _ = rnn.pad_packed_sequence(output, True)
            loss = (table * table).mean()
            loss.backward()
            optimizer.step()
            return loss

        x = mg.tensor(TABLE.astype("float32"))
        losses.append([step(x, lengths).item() for lengths in (LENGTHS, LENGTHS, [1, 2, 3, 4, 5], LENGTHS)])
    assert losses[0] == losses[1]


def test_second_gradients_go_through_packed_sequences():
    if LACKS_FLOAT64:
        needs("float64")
    layer = mg.nn.LSTM(2, 2, bidirectional=True).to(mg.float64)

    def read(x):
        return layer(rnn.pack_padded_sequence(x, [1, 3], enforce_sorted=False))[0].data

    x = mg.tensor(TABLE[:3, :2, :2].astype("float64"))
    assert mg.gradcheck(read, [x], fast_mode=True)
    assert mg.gradgradcheck(read, [x], fast_mode=True)


def test_a_packed_sequence_is_a_tuple_that_can_be_converted():
    packed = rnn.pack_sequence([mg.tensor([1, 2]), mg.tensor([3])])
    data, sizes, order, back = packed
    assert (data.tolist(), sizes.tolist(), order, back) == ([1, 3, 2], [2, 1], None, None)
    converted = rnn.pack_sequence([mg.tensor([1]), mg.tensor([2, 3])], enforce_sorted=False).to(mg.float32)
    assert (converted.data.dtype, converted.unsorted_indices.tolist(), converted.is_cuda) == (
        mg.float32,
        [1, 0],
        data.is_cuda,
    )
    assert rnn.invert_permutation(mg.tensor([2, 0, 1])).tolist() == [1, 2, 0]


@merge_cases
@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda x: rnn.pack_padded_sequence(x, [1, 2], True),
            ArgumentError,
            r"lengths must be sorted in decreasing order, but got \[1, 2\].\n  Write enforce_sorted=False",
        ),
        (
            lambda x: rnn.pack_padded_sequence(x, [2, 0], True),
            ShapeError,
            "Leave out empty sequences: they cannot be packed",
        ),
        (lambda x: rnn.pack_padded_sequence(x, [4, 1], True), ShapeError, "batch_size=2, and lengths .* at most 3"),
        (lambda x: rnn.pack_padded_sequence(x, [3], True), ShapeError, r"but got lengths=\[3\]"),
        (lambda x: rnn.pack_padded_sequence(x[0, :, 0], [3]), ShapeError, r"input \(L, N, …\).*but got \(3,\)"),
        (lambda x: rnn.PackedSequence(x), ArgumentError, r"batch_sizes is missing.*\n  Write pack_sequence"),
        (lambda x: rnn.pad_packed_sequence(x), DTypeError, "expected a PackedSequence, but got Tensor"),
        (
            lambda x: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1], True), total_length=2),
            ShapeError,
            "total_length=2, but the longest sequence has length 3",
        ),
        (
            lambda x: mg.nn.RNN(5, 2)(rnn.pack_padded_sequence(x, [3, 1], True)),
            ShapeError,
            r"RNN: expected packed data \(sum of lengths, 5\), but got \(4, 4\)",
        ),
    ],
)
def test_invalid_arguments_raise(call, kind, text):
    with pytest.raises(kind, match=text):
        call(mg.ones(2, 3, 4))
