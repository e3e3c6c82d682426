"""Recurrent layers, and cells that compute one time step of them.

L is the sequence length, N the batch size, H the hidden size. Weights have PyTorch's names and shapes. Those of the
gates are concatenated: input, forget, cell and output for an LSTM; reset, update and new for a GRU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.dtypes import DType
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, a_kind
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option, check_share
from minigrad.functional.creation import empty
from minigrad.nn import init
from minigrad.nn.layer import parts
from minigrad.nn.module import Module, Parameter
from minigrad.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]

State = tuple[Tensor, ...]


# --- one time step: from the input's part of the gates and the previous state ---


def _rnn_step(activation: str, x: Tensor, state: State, weight: Any, bias: Any) -> State:
    return (getattr(x + F.linear(state[0], weight, bias), activation)(),)


def _lstm_step(_: str, x: Tensor, state: State, weight: Any, bias: Any) -> State:
    before, cell = state
    i, f, g, o = parts(x + F.linear(before, weight, bias), 4)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru_step(_: str, x: Tensor, state: State, weight: Any, bias: Any) -> State:
    (before,) = state
    x_r, x_z, x_n = parts(x, 3)
    h_r, h_z, h_n = parts(F.linear(before, weight, bias), 3)
    z = (x_z + h_z).sigmoid()
    new = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return (new + z * (before - new),)


Step = Callable[[str, Tensor, State, Any, Any], State]


def _check_sizes(name: str, input_size: int, hidden_size: int) -> None:
    if min(input_size, hidden_size) < 1:
        raise ShapeError(f"{name}: {input_size=} and {hidden_size=} must be greater than zero.")


def _check_state(name: str, state: Any, shapes: Sequence[tuple[int, ...]]) -> State:
    """Validate a user-supplied state, and return it as a tuple of tensors of these `shapes`."""
    count = len(shapes)
    found = (state,) if count == 1 else state
    if not isinstance(found, tuple | list) or len(found) != count or not all(isinstance(x, Tensor) for x in found):
        raise DTypeError(f"{name}: expected hx to be {'a tensor' if count == 1 else 'a tuple (h, c) of tensors'}.")
    for x, shape in zip(found, shapes, strict=True):
        if x.shape != shape:
            raise ShapeError(f"{name}: expected hidden size {shape} for this input, but got {x.shape}.")
    return tuple(found)


def _in_order(state: Tensor, order: Tensor | None) -> Tensor:
    """Reorder the sequences of a state, (layers, N, H)."""
    return state if order is None else state.index_select(1, order)


class _Gated(Module):
    """Base class of cells and layers: gate weights initialised from U(-k, k), k = 1 / sqrt(hidden_size), and a step."""

    _gates: int
    _states = 1
    _step: Step
    nonlinearity = ""

    def reset_parameters(self) -> None:
        """Sample all weights again."""
        for parameter in self.parameters():
            init.uniform_(parameter, -(self.hidden_size**-0.5), self.hidden_size**-0.5)


# --- cells ---


class RNNCellBase(_Gated):
    """Base class of cells: weights initialised from U(-k, k), k = 1 / sqrt(hidden_size), and one time step."""

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
        rows = self._gates * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _stepped(self, input: Tensor, hx: Any) -> State:
        name = type(self).__name__
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(f"{name}: expected input (N, {self.input_size}), or without N, but got {input.shape}.")
        shape = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            state: State = (input.new_zeros(shape),) * self._states
        else:
            state = _check_state(name, hx, [shape] * self._states)
        gates = F.linear(input, self.weight_ih, self.bias_ih)
        return type(self)._step(self.nonlinearity, gates, state, self.weight_hh, self.bias_hh)

    def extra_repr(self) -> str:
        bias = "" if self.bias else ", bias=False"
        other = f", nonlinearity={self.nonlinearity}" if self.nonlinearity not in ("", "tanh") else ""
        return f"{self.input_size}, {self.hidden_size}{bias}{other}"


class RNNCell(RNNCellBase):
    """Elman cell, ``tanh(W_ih x + b_ih + W_hh h + b_hh)`` or relu: (N, input_size), (N, H) to (N, H). Elman 1990."""

    _gates, _step = 1, staticmethod(_rnn_step)

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
        """Return the next state. `hx`, the previous one, defaults to zeros."""
        return self._stepped(input, hx)[0]


class LSTMCell(RNNCellBase):
    """One time step of an `LSTM`: from (N, input_size) and (h, c) to the next (h, c), each (N, H)."""

    _gates, _states, _step = 4, 2, staticmethod(_lstm_step)

    def forward(self, input: Tensor, hx: Any = None) -> State:
        """Return the next (h, c). `hx`, the previous ones, default to zeros."""
        return self._stepped(input, hx)


class GRUCell(RNNCellBase):
    """One time step of a `GRU`: from (N, input_size) and (N, H) to (N, H)."""

    _gates, _step = 3, staticmethod(_gru_step)

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        """Return the next state. `hx`, the previous one, defaults to zeros."""
        return self._stepped(input, hx)[0]


# --- layers ---


class _Recurrent(_Gated):
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
        check_share(dropout, name, "dropout")
        if num_layers < 1:
            raise ShapeError(f"{name}: num_layers must be greater than zero, but got {num_layers}.")
        if proj_size and self._states == 1:
            raise ArgumentError(f"{name}: proj_size is only supported for LSTM.\n  Leave it out, and add a Linear.")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(f"{name}: {proj_size=} must be smaller than {hidden_size=}, or 0 to disable it.")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.proj_size, rows = proj_size, self._gates * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else self._width * self._ways
            for way in range(self._ways):
                end = self._end(layer, way)
                self.register_parameter(f"weight_ih{end}", Parameter(empty(rows, width, device=device, dtype=dtype)))
                self.register_parameter(
                    f"weight_hh{end}", Parameter(empty(rows, self._width, device=device, dtype=dtype))
                )
                for kind in ("ih", "hh") if bias else ():
                    self.register_parameter(f"bias_{kind}{end}", Parameter(empty(rows, device=device, dtype=dtype)))
                if proj_size:
                    projection = empty(proj_size, hidden_size, device=device, dtype=dtype)
                    self.register_parameter(f"weight_hr{end}", Parameter(projection))
        self.reset_parameters()

    @property
    def _width(self) -> int:
        """The output size of a layer at each time step, per direction."""
        return self.proj_size or self.hidden_size

    @property
    def _ways(self) -> int:
        return 2 if self.bidirectional else 1

    @staticmethod
    def _end(layer: int, way: int) -> str:
        return f"_l{layer}{'_reverse' if way else ''}"

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        ends = [self._end(layer, way) for layer in range(self.num_layers) for way in range(self._ways)]
        kinds = ["weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if self.bias else ())]
        kinds += ["weight_hr"] if self.proj_size else []
        return [[self.get_parameter(f"{kind}{end}") for kind in kinds] for end in ends]

    def flatten_parameters(self) -> None:
        """Do nothing. PyTorch compacts weights for cuDNN here."""

    def _check_input(self, x: Any, packed: bool) -> None:
        name = type(self).__name__
        if not isinstance(x, Tensor):
            raise DTypeError(f"{name}: expected input to be a tensor or a PackedSequence, but got {a_kind(x)}.")
        fits = x.ndim == 2 if packed else x.ndim in (2, 3)
        if not fits or x.shape[-1] != self.input_size or 0 in x.shape:
            order = "(N, L, " if self.batch_first else "(L, N, "
            asked = "expected packed data (sum of lengths, " if packed else f"expected input {order}"
            raise ShapeError(f"{name}: {asked}{self.input_size}){'' if packed else ', or no N'}, but got {x.shape}.")

    def _walked(self, input: Any, hx: Any) -> tuple[Any, State]:
        """Return the outputs of the last layer at all time steps, and the final states of all layers."""
        packed = isinstance(input, PackedSequence)
        x = input.data if packed else input
        self._check_input(x, packed)
        alone = not packed and x.ndim == 2
        if not packed:
            x = x.unsqueeze(1) if alone else x.transpose(0, 1) if self.batch_first else x
        sizes = input.sizes if packed else [x.shape[1]] * x.shape[0]
        count = self.num_layers * self._ways
        firsts = [(count, sizes[0], width) for width in (self._width, self.hidden_size)[: self._states]]
        if hx is None:
            starts: State = tuple([x.new_zeros(first) for first in firsts])
        else:
            found = _check_state(type(self).__name__, hx, [(count, s[2]) if alone else s for s in firsts])
            order = input.sorted_indices if packed else None
            starts = tuple([_in_order(s.reshape(first), order) for s, first in zip(found, firsts, strict=True)])
        ends: list[State] = []
        weights = self.all_weights
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            both = range(layer * self._ways, (layer + 1) * self._ways)
            walks = [self._one_way(x, sizes, tuple([s[k] for s in starts]), weights[k], k > both[0]) for k in both]
            x = walks[0][0] if len(walks) == 1 else F.cat([output for output, _ in walks], -1)
            ends += [end for _, end in walks]
        last = tuple([F.stack(states) for states in zip(*ends, strict=True)])
        if packed:
            last = tuple([_in_order(s, input.unsorted_indices) for s in last])
            return input.of(x), last
        if alone:
            return x[:, 0], tuple([s[:, 0] for s in last])
        return x.transpose(0, 1) if self.batch_first else x, last

    def _one_way(
        self, x: Tensor, sizes: list[int], state: State, weights: list[Parameter], backwards: bool
    ) -> tuple[Tensor, State]:
        """Run one layer in one direction, and return h at each time step and the final state.

        `sizes` are the batch sizes at each time step: the first sequences are active, the others have ended, or not yet
        begun if `backwards`. `x` is (L, N, …), or packed.
        """
        weight_ih, weight_hh = weights[:2]
        bias_ih, bias_hh = weights[2:4] if self.bias else (None, None)
        gates = F.linear(x, weight_ih, bias_ih)  # one large product over all time steps
        if x.ndim == 2:
            places = list(parts(gates, sizes, 0))
        else:
            places = [place.squeeze(0) for place in parts(gates, len(sizes), 0)]
        start, seen, ended = state, [], []
        if backwards and sizes[-1] < sizes[0]:
            state = tuple([s[: sizes[-1]] for s in start])
        for place in reversed(places) if backwards else places:
            here, before = place.shape[0], state[0].shape[0]
            if here < before:
                ended.append(tuple([s[here:] for s in state]))
                state = tuple([s[:here] for s in state])
            elif here > before:
                state = tuple([F.cat([s, s0[before:here]]) for s, s0 in zip(state, start, strict=True)])
            state = type(self)._step(self.nonlinearity, place, state, weight_hh, bias_hh)
            if self.proj_size:
                state = F.linear(state[0], weights[-1]), *state[1:]
            seen.append(state[0])
        if ended:
            state = tuple([F.cat(ends) for ends in zip(state, *reversed(ended), strict=True)])
        seen = seen[::-1] if backwards else seen
        return F.cat(seen) if x.ndim == 2 else F.stack(seen), state

    def extra_repr(self) -> str:
        usual: dict[str, Any] = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        parts = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *parts])


class RNN(_Recurrent):
    """Applies an Elman network along sequences: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``. Elman 1990.

    `nonlinearity` "relu" replaces tanh. The input is (L, N, input_size), (N, L, input_size) if `batch_first`, or
    (L, input_size), and `hx`, by default zeros, is (layers · directions, N, H). Returns the output of the last layer,
    (L, N, directions · H), and the final states. Each layer receives the output of the one before, with `dropout` in
    training; if `bidirectional`, in both directions. A `PackedSequence` yields a `PackedSequence` and the final state
    of each sequence; see `nn.utils.rnn`. Raises ShapeError for mismatched sizes, DTypeError for other inputs, and
    ArgumentError for `proj_size`, which only `LSTM` supports.
    """

    _gates, _step = 1, staticmethod(_rnn_step)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **more: Any,
    ) -> None:
        check_option(nonlinearity, ("tanh", "relu"), "RNN", "nonlinearity")
        super().__init__(input_size, hidden_size, num_layers, *args, **more)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """Return the outputs at all time steps, and the final state."""
        output, (last,) = self._walked(input, hx)
        return output, last


class LSTM(_Recurrent):
    """Applies a long short-term memory: ``c = σ(f) c + σ(i) tanh(g)``, ``h = σ(o) tanh(c)``, with gates from x and h.

    Hochreiter and Schmidhuber 1997; Gers, Schmidhuber and Cummins 2000. As `RNN`, but the state is a tuple (h, c).

    With `proj_size` < H, h is projected to that size by W_hr, as is the output; c has size H. Sak, Senior and Beaufays
    2014. Raises ArgumentError for another `proj_size`.

    >>> import minigrad as mg
    >>> output, (h, c) = mg.nn.LSTM(4, 8, num_layers=2, batch_first=True)(mg.ones(3, 5, 4))
    >>> output.shape, h.shape, c.shape
    ((3, 5, 8), (2, 3, 8), (2, 3, 8))
    """

    _gates, _states, _step = 4, 2, staticmethod(_lstm_step)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, State]:
        """Return h at all time steps, and the final (h, c)."""
        return self._walked(input, hx)


class GRU(_Recurrent):
    """Applies a GRU: ``h = (1 - z) n + z h``, ``n = tanh(x_n + r h_n)``, gates r and z. Cho et al. 2014. See `RNN`."""

    _gates, _step = 3, staticmethod(_gru_step)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """Return the outputs at all time steps, and the final state."""
        output, (last,) = self._walked(input, hx)
        return output, last
