"""The rows of a trace: nodes, edges, blocks, notes and related records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import minigrad as mg
from minigrad.core.deprecation import deprecated_names

__all__ = ["Edge", "ModuleInfo", "Note", "PassStep", "Rows", "TensorData", "TourStop", "TraceBlock", "TraceNode"]

T = TypeVar("T")

__getattr__ = deprecated_names(
    __name__,
    {
        "About": "ModuleInfo",
        "Block": "TraceBlock",
        "Node": "TraceNode",
        "Shaped": "TensorData",
        "Step": "PassStep",
        "Stop": "TourStop",
    },
)


class Rows(Sequence[T], Generic[T]):
    """Columns presented as rows; each row is created when accessed."""

    __slots__ = ("_build", "_count")

    def __init__(self, count: int, build: Callable[[int], T]) -> None:
        self._count, self._build = count, build

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        indices = range(self._count)[index]
        return self._build(indices) if isinstance(indices, int) else [self._build(i) for i in indices]

    def __iter__(self) -> Iterator[T]:
        return map(self._build, range(self._count))


class TensorData(NamedTuple):
    """The tensor data of a node. `array` contains the values at trace time, or is None if they are unknown."""

    shape: tuple[int, ...]
    dtype: str
    array: Any


class TraceNode(NamedTuple):
    """A scalar or a tensor in the graph.

    `state` describes `grad`: "none" (not computed yet), "final", "blocked" (never), or "unknown" (freed by a backward
    pass and not recomputable). For a Value, `value` and `grad` are floats and `shape`, `dtype` and `array` are None.
    For a tensor, `value` is None, `array` is a NumPy array, or None if unknown, and `grad` an array. A Python scalar
    operand of a tensor operation is a constant with a `value`.
    """

    kind: Literal["leaf", "op", "constant", "broken"]
    op: mg.Op | None
    name: str | None
    value: Any
    state: Literal["none", "final", "blocked", "unknown"]
    grad: Any
    scope: str
    line: str | None
    stale: bool
    """Whether an operand was modified after this node was computed."""
    block: int
    """The index in `Trace.blocks` of the innermost block that contains the node."""
    attrs: Mapping[str, str]
    """The op's attributes as strings."""
    shape: tuple[int, ...] | None
    dtype: str | None
    array: Any


class TraceBlock(NamedTuple):
    """A part of the graph. `outer` is the index of the enclosing block, which precedes it, or -1.

    Block 0 is the graph. Other blocks are of the kinds "scope", an entry of an `mg.scope`, "fold", a group of similar
    blocks, and "run", a section of a long sequence.
    """

    name: str
    outer: int
    kind: Literal["graph", "scope", "fold", "run"]
    copies: int = 0
    """The number of similar blocks in a fold."""
    module: Any = None
    """The module if the scope is a module call, otherwise None."""
    note: str = ""
    """Additional information: the compiled kernel, or the tape range of a run."""


class ModuleInfo(NamedTuple):
    """Information about the module whose call is a block, or about all modules in a fold."""

    kind: str
    """The name of the module's class; empty if the block has the same name."""
    parameters: int
    shared: tuple[str, ...]
    """Notes on shared parameters, as in "head.weight = tok.weight", or on several calls, as in "called 3 times"."""


class Edge(NamedTuple):
    """An edge from `operand` to `result`, which are indices into `nodes`, for operand `slot` of the operation.

    `local` is the derivative of the result with respect to the operand. It is None for tensors, if no gradient flows
    (`flows` is False), or if it is unknown.
    """

    operand: int
    result: int
    slot: int
    flows: bool
    local: float | None


class PassStep(NamedTuple):
    """One event of a backward pass, over `edge`: ``upstream * local = contribution``; `total` is the sum so far.

    For tensors, the gradients are arrays, and `local`, which would be a matrix, is None.
    """

    edge: int
    upstream: Any
    local: float | None
    contribution: Any
    total: Any


class Note(NamedTuple):
    """A message about the graph at `node`, which may be None. `nodes` and `edges` are all that the message concerns."""

    kind: Literal[
        "overwritten", "nan", "inf", "gradient", "partial", "vanishing", "exploding", "dead", "saturated", "stale",
        "error", "freed", "hook", "replayed",
    ]  # fmt: skip
    node: int | None
    text: str
    nodes: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()


class TourStop(NamedTuple):
    """A stop of a tour, with a position, a caption, and the selected node or block, such as "n3" or "b2"."""

    at: int
    text: str
    look: str | None = None
