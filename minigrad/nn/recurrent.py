"""Recurrent layers, and cells that compute one time step of a layer.

L is the sequence length, N the batch size, H the hidden size. Weights have PyTorch's names and shapes. The weights
of the gates are concatenated: input, forget, cell and output for an LSTM; reset, update and new for a GRU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.dtypes import DType
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, describe_type
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option, check_probability
from minigrad.functional.creation import empty
from minigrad.nn import init
from minigrad.nn.layer_utils import split_with_concat_grad
from minigrad.nn.module import Module, Parameter
from minigrad.nn.recurrent_steps import (
    SequenceFunction,
    State,
    StepFunction,
    can_fuse,
    gru_sequence,
    gru_step,
    lstm_sequence,
    lstm_step,
    rnn_sequence,
    rnn_step,
)
from minigrad.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


def _check_sizes(name: str, input_size: int, hidden_size: int) -> None:
    if min(input_size, hidden_size) < 1:
        raise ShapeError(f"{name}: {input_size=} and {hidden_size=} must be greater than zero.")


def _check_state(name: str, state: Any, shapes: Sequence[tuple[int, ...]]) -> State:
    """Validate that a user-supplied state has the given `shapes`, and return it as a tuple of tensors."""
    n = len(shapes)
    states = (state,) if n == 1 else state
    if not isinstance(states, tuple | list) or len(states) != n or not all(isinstance(x, Tensor) for x in states):
        raise DTypeError(f"{name}: expected hx to be {'a tensor' if n == 1 else 'a tuple (h, c) of tensors'}.")
    for x, shape in zip(states, shapes, strict=True):
        if x.shape != shape:
            raise ShapeError(f"{name}: expected hidden size {shape} for this input, but got {x.shape}.")
    return tuple(states)


def _permute_hidden(state: Tensor, order: Tensor | None) -> Tensor:
    """Reorder the sequences of a state, (layers, N, H)."""
    return state if order is None else state.index_select(1, order)


class _GatedModule(Module):
    """Base class of cells and layers, whose weights are initialised from U(-k, k), k = 1 / sqrt(hidden_size)."""

    _num_gates: int
    _num_states = 1
    _step: StepFunction
    _sequence: SequenceFunction
    nonlinearity = ""

    def reset_parameters(self) -> None:
        """Resample all weights."""
        for parameter in self.parameters():
            init.uniform_(parameter, -(self.hidden_size**-0.5), self.hidden_size**-0.5)


# --- cells ---


class RNNCellBase(_GatedModule):
    """Base class of cells, which compute one time step. Weights are from U(-k, k), k = 1 / sqrt(hidden_size)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        _check_sizes(type(self).__name__, input_size, hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self._num_gates * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _forward_cell(self, input: Tensor, hx: Any) -> State:
        name = type(self).__name__
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(f"{name}: expected input (N, {self.input_size}), or without N, but got {input.shape}.")
        shape = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            state: State = (input.new_zeros(shape),) * self._num_states
        else:
            state = _check_state(name, hx, [shape] * self._num_states)
        gates, weights = F.linear(input, self.weight_ih, self.bias_ih), (self.weight_hh, self.bias_hh)
        if not can_fuse(gates, state, *weights):
            return type(self)._step(self.nonlinearity, gates, state, *weights)
        rows = (1, -1, self._num_gates * self.hidden_size)
        batch = state if input.ndim == 2 else tuple([s.unsqueeze(0) for s in state])
        results = type(self)._sequence(self.nonlinearity, gates.reshape(rows), batch, *weights, False)[1:]
        return results if input.ndim == 2 else tuple([s.squeeze(0) for s in results])

    def extra_repr(self) -> str:
        bias = "" if self.bias else ", bias=False"
        nonlinearity = f", nonlinearity={self.nonlinearity}" if self.nonlinearity not in ("", "tanh") else ""
        return f"{self.input_size}, {self.hidden_size}{bias}{nonlinearity}"


class RNNCell(RNNCellBase):
    """Elman cell, ``tanh(W_ih x + b_ih + W_hh h + b_hh)`` or relu: (N, input_size), (N, H) to (N, H). Elman 1990."""

    _num_gates, _step, _sequence = 1, staticmethod(rnn_step), staticmethod(rnn_sequence)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        check_option(nonlinearity, ("tanh", "relu"), "RNNCell", "nonlinearity")
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        """Return the next state. `hx`, the previous state, defaults to zeros."""
        return self._forward_cell(input, hx)[0]


class LSTMCell(RNNCellBase):
    """One time step of an `LSTM`: from (N, input_size) and (h, c) to the next (h, c), each (N, H)."""

    _num_gates, _num_states = 4, 2
    _step, _sequence = staticmethod(lstm_step), staticmethod(lstm_sequence)

    def forward(self, input: Tensor, hx: Any = None) -> State:
        """Return the next (h, c). `hx`, the previous (h, c), defaults to zeros."""
        return self._forward_cell(input, hx)


class GRUCell(RNNCellBase):
    """One time step of a `GRU`: from (N, input_size) and (N, H) to (N, H)."""

    _num_gates, _step, _sequence = 3, staticmethod(gru_step), staticmethod(gru_sequence)

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        """Return the next state. `hx`, the previous state, defaults to zeros."""
        return self._forward_cell(input, hx)[0]


# --- layers ---


class _RNNBase(_GatedModule):
    """Base class of stacked recurrent layers over sequences."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        _check_sizes(name, input_size, hidden_size)
        check_probability(dropout, name, "dropout")
        if num_layers < 1:
            raise ShapeError(f"{name}: num_layers must be greater than zero, but got {num_layers}.")
        if proj_size and self._num_states == 1:
            raise ArgumentError(f"{name}: proj_size is only supported for LSTM.\n  Leave it out, and add a Linear.")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(f"{name}: {proj_size=} must be smaller than {hidden_size=}, or 0 to disable it.")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.proj_size, rows = proj_size, self._num_gates * hidden_size
        for layer in range(num_layers):
            in_size = input_size if layer == 0 else self._output_size * self._num_directions
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, in_size), "weight_hh": (rows, self._output_size)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in self._suffixes(layer):
                for kind, shape in shapes.items():
                    self.register_parameter(f"{kind}{suffix}", Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    @property
    def _output_size(self) -> int:
        """The number of output features of a layer, per direction."""
        return self.proj_size or self.hidden_size

    @property
    def _num_directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._num_directions]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        suffixes = [suffix for layer in range(self.num_layers) for suffix in self._suffixes(layer)]
        kinds = ["weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if self.bias else ())]
        kinds += ["weight_hr"] if self.proj_size else []
        return [[self.get_parameter(f"{kind}{suffix}") for kind in kinds] for suffix in suffixes]

    def flatten_parameters(self) -> None:
        """Do nothing. In PyTorch, this method compacts weights for cuDNN."""

    def _check_input(self, x: Any, packed: bool) -> None:
        name = type(self).__name__
        if not isinstance(x, Tensor):
            raise DTypeError(f"{name}: expected input to be a tensor or a PackedSequence, but got {describe_type(x)}.")
        shape_matches = x.ndim == 2 if packed else x.ndim in (2, 3)
        if not shape_matches or x.shape[-1] != self.input_size or 0 in x.shape:
            layout = "(N, L, " if self.batch_first else "(L, N, "
            expected = "expected packed data (sum of lengths, " if packed else f"expected input {layout}"
            raise ShapeError(f"{name}: {expected}{self.input_size}){'' if packed else ', or no N'}, but got {x.shape}.")

    def _forward_layers(self, input: Any, hx: Any) -> tuple[Any, State]:
        """Return the outputs of the last layer at all time steps, and the final states of all layers."""
        packed = isinstance(input, PackedSequence)
        x = input.data if packed else input
        self._check_input(x, packed)
        is_unbatched = not packed and x.ndim == 2
        if not packed:
            x = x.unsqueeze(1) if is_unbatched else x.transpose(0, 1) if self.batch_first else x
        sizes = input.sizes if packed else [x.shape[1]] * x.shape[0]
        num_states = self.num_layers * self._num_directions
        shapes = [(num_states, sizes[0], size) for size in (self._output_size, self.hidden_size)[: self._num_states]]
        if hx is None:
            initial_states: State = tuple([x.new_zeros(shape) for shape in shapes])
        else:
            user_shapes = [(num_states, shape[2]) if is_unbatched else shape for shape in shapes]
            pairs = zip(_check_state(type(self).__name__, hx, user_shapes), shapes, strict=True)
            order = input.sorted_indices if packed else None
            initial_states = tuple([_permute_hidden(s.reshape(shape), order) for s, shape in pairs])
        final_states: list[State] = []
        weights = self.all_weights
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            directions = range(layer * self._num_directions, (layer + 1) * self._num_directions)
            results = [
                self._run_direction(x, sizes, tuple([s[k] for s in initial_states]), weights[k], k > directions[0])
                for k in directions
            ]
            x = results[0][0] if len(results) == 1 else F.cat([output for output, _ in results], -1)
            final_states += [final_state for _, final_state in results]
        final = tuple([F.stack(states) for states in zip(*final_states, strict=True)])
        if packed:
            final = tuple([_permute_hidden(s, input.unsorted_indices) for s in final])
            return input.with_data(x), final
        if is_unbatched:
            return x[:, 0], tuple([s[:, 0] for s in final])
        return x.transpose(0, 1) if self.batch_first else x, final

    def _run_direction(
        self, x: Tensor, sizes: list[int], state: State, weights: list[Parameter], reverse: bool
    ) -> tuple[Tensor, State]:
        """Run one layer in one direction, and return h at each time step and the final state.

        `sizes` are the numbers of active sequences at each time step. The first sequences are active; the others have
        ended or, if `reverse`, not yet begun. `x` is (L, N, …), or packed data.
        """
        weight_ih, weight_hh = weights[:2]
        bias_ih, bias_hh = weights[2:4] if self.bias else (None, None)
        gates = F.linear(x, weight_ih, bias_ih)  # one large product over all time steps
        if x.ndim == 3 and not self.proj_size and can_fuse(gates, state, weight_hh, bias_hh):
            output, *final = type(self)._sequence(self.nonlinearity, gates, state, weight_hh, bias_hh, reverse)
            return output, tuple(final)
        if x.ndim == 2:
            steps = list(split_with_concat_grad(gates, sizes, 0))
        else:
            steps = [step_gates.squeeze(0) for step_gates in split_with_concat_grad(gates, len(sizes), 0)]
        initial_state, outputs, ended_states = state, [], []
        if reverse and sizes[-1] < sizes[0]:
            state = tuple([s[: sizes[-1]] for s in initial_state])
        for gate_inputs in reversed(steps) if reverse else steps:
            size, prev_size = gate_inputs.shape[0], state[0].shape[0]
            if size < prev_size:
                ended_states.append(tuple([s[size:] for s in state]))
                state = tuple([s[:size] for s in state])
            elif size > prev_size:
                state = tuple([F.cat([s, s0[prev_size:size]]) for s, s0 in zip(state, initial_state, strict=True)])
            state = type(self)._step(self.nonlinearity, gate_inputs, state, weight_hh, bias_hh)
            if self.proj_size:
                state = F.linear(state[0], weights[-1]), *state[1:]
            outputs.append(state[0])
        if ended_states:
            state = tuple([F.cat(ends) for ends in zip(state, *reversed(ended_states), strict=True)])
        outputs = outputs[::-1] if reverse else outputs
        return F.cat(outputs) if x.ndim == 2 else F.stack(outputs), state

    def extra_repr(self) -> str:
        defaults: dict[str, Any] = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        options = [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *options])


class RNN(_RNNBase):
    """Applies an Elman network along sequences: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``. Elman 1990.

    `nonlinearity` "relu" replaces tanh. The input is (L, N, input_size), (N, L, input_size) if `batch_first`, or
    (L, input_size), and `hx`, by default zeros, is (layers · directions, N, H). Returns the output of the last layer,
    (L, N, directions · H), and the final states. Each layer receives the output of the previous one, with `dropout` in
    training; if `bidirectional`, it runs in both directions. A `PackedSequence` yields a `PackedSequence` and the final
    state of each sequence; see `nn.utils.rnn`. Raises ShapeError for mismatched sizes, DTypeError for other inputs, and
    ArgumentError for `proj_size`, which only `LSTM` supports.
    """

    _num_gates, _step, _sequence = 1, staticmethod(rnn_step), staticmethod(rnn_sequence)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **options: Any,
    ) -> None:
        check_option(nonlinearity, ("tanh", "relu"), "RNN", "nonlinearity")
        super().__init__(input_size, hidden_size, num_layers, *args, **options)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """Return the outputs at all time steps, and the final state."""
        output, (last,) = self._forward_layers(input, hx)
        return output, last


class LSTM(_RNNBase):
    """Applies a long short-term memory: ``c = σ(f) c + σ(i) tanh(g)``, ``h = σ(o) tanh(c)``, with gates from x and h.

    Hochreiter and Schmidhuber 1997; Gers, Schmidhuber and Cummins 2000. See `RNN`; here the state is a tuple (h, c).

    With `proj_size` < H, h is projected to that size by W_hr, as is the output; c has size H. Sak, Senior and Beaufays
    2014. Raises ArgumentError for another `proj_size`.

    >>> import minigrad as mg
    >>> output, (h, c) = mg.nn.LSTM(4, 8, num_layers=2, batch_first=True)(mg.ones(3, 5, 4))
    >>> output.shape, h.shape, c.shape
    ((3, 5, 8), (2, 3, 8), (2, 3, 8))
    """

    _num_gates, _num_states = 4, 2
    _step, _sequence = staticmethod(lstm_step), staticmethod(lstm_sequence)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, State]:
        """Return h at all time steps, and the final (h, c)."""
        return self._forward_layers(input, hx)


class GRU(_RNNBase):
    """Applies a GRU: ``h = (1 - z) n + z h``, ``n = tanh(x_n + r h_n)``, gates r and z. Cho et al. 2014. See `RNN`."""

    _num_gates, _step, _sequence = 3, staticmethod(gru_step), staticmethod(gru_sequence)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """Return the outputs at all time steps, and the final state."""
        output, (last,) = self._forward_layers(input, hx)
        return output, last
