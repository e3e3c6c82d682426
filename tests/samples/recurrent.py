"""Samples of whole sequences of recurrent layers."""

from minigrad.core.op import OPS
from samples import distinct_floats, sample


def sequence_sample(name, gates, *states, bias=True, **attrs):
    """Return a sample that calls the operation of a sequence: 3 steps of 2 rows, with H = 2."""
    operands = [
        distinct_floats(3, 2, gates * 2),
        *states,
        distinct_floats(gates * 2, 2, seed=1),
        *([distinct_floats(gates * 2, seed=2)] if bias else []),
    ]

    def call(F, *x):
        # the layers use only h of all time steps and the final states
        return OPS[name](*x, *([] if bias else [None]), **attrs)[: 1 + len(states)]

    options = " ".join([f"{value}" for value in attrs.values()] + ["" if bias else "without bias"])
    return sample(f"{name}, {options}", call, *operands, parity=False)


def gradient_call(name, *operands, **attrs):
    """Return a sample that calls the operation of a gradient, which has no derivative."""
    return sample(name, lambda F, *x: OPS[name](*x, **attrs), *operands, parity=False)


h, c = distinct_floats(2, 2, seed=3), distinct_floats(2, 2, seed=4)
states, gates, w = distinct_floats(3, 2, 2), distinct_floats(3, 2, 8, low=0, high=1), distinct_floats(8, 2)

SAMPLES = [
    sequence_sample("lstm_sequence", 4, h, c, reverse=False),
    sequence_sample("lstm_sequence", 4, h, c, bias=False, reverse=True),
    sequence_sample("gru_sequence", 3, h, reverse=False),
    sequence_sample("gru_sequence", 3, h, bias=False, reverse=True),
    sequence_sample("rnn_sequence", 1, h, activation="tanh", reverse=False),
    sequence_sample("rnn_sequence", 1, h, bias=False, activation="relu", reverse=True),
    gradient_call("lstm_sequence_backward", states, h, c, gates, states, c, w, reverse=False),
    gradient_call("gru_sequence_backward", states, h, states, gates[..., :6], states, h, w[:6], reverse=True),
    gradient_call("rnn_sequence_backward", states, h, states, w[:2], activation="tanh", reverse=False),
]
