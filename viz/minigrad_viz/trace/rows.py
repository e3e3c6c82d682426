"""The rows of a trace: its nodes, edges, blocks, notes, and what belongs to each, as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import minigrad as mg
from minigrad_viz.trace.renamed import renamed

__all__ = ["About", "Edge", "Note", "PassStep", "Rows", "Shaped", "TourStop", "TraceBlock", "TraceNode"]

T = TypeVar("T")

__getattr__ = renamed(__name__, {"Block": "TraceBlock", "Node": "TraceNode", "Step": "PassStep", "Stop": "TourStop"})


class Rows(Sequence[T], Generic[T]):
    """Columns as rows, each made when it is asked for."""

    __slots__ = ("_count", "_make")

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        place = range(self._count)[index]
        return self._make(place) if isinstance(place, int) else [self._make(i) for i in place]

    def __iter__(self) -> Iterator[T]:
        return map(self._make, range(self._count))


class Shaped(NamedTuple):
    """What a node that holds a tensor has beside: `array` are its numbers, as they were, or None if not known."""

    shape: tuple[int, ...]
    dtype: str
    array: Any


class TraceNode(NamedTuple):
    """A number or a tensor in the graph.

    What `grad` is, `state` says: "none" (not computed yet), "final", "blocked" (never), or "unknown" (a backward pass
    has freed it, and it cannot be computed again). Of a Value `value` is a float, `shape`, `dtype` and `array` are
    None, and `grad` is a float; of a tensor `value` is None, `array` a NumPy array, or None where the values are not
    known, and `grad` an array. A tensor operand that was a plain number is a constant with a `value`.
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
    """Whether an operand was given another number after this was computed."""
    block: int
    """Its place in `Trace.blocks`: the innermost one that it lies in."""
    attrs: Mapping[str, str]
    """The op's attributes, in text."""
    shape: tuple[int, ...] | None
    dtype: str | None
    array: Any


class TraceBlock(NamedTuple):
    """A part of the graph; `outer` is the number of the block around it, which comes before it, or -1.

    Block 0 is the graph, "scope" one entry of an `mg.scope`, "fold" alike blocks, "run" a stretch of a long list.
    """

    name: str
    outer: int
    kind: Literal["graph", "scope", "fold", "run"]
    copies: int = 0
    """How many alike blocks a fold holds."""
    module: Any = None
    """Whose call a scope is, if it is that of a module."""
    note: str = ""
    """What is to be known of it beside its name: which compiled kernel it is, or where on the tape a run lies."""


class About(NamedTuple):
    """What is known of the module whose call a block is; of a fold, of all in it together."""

    kind: str
    """What its class is called; "" where the name of the block says so."""
    parameters: int
    shared: tuple[str, ...]
    """What in it is not its own: "head.weight = tok.weight", or "called 3 times"."""


class Edge(NamedTuple):
    """`operand` is operand number `slot` of the operation that made `result`; both are places in `nodes`.

    `local` is the derivative of result by operand; None of tensors, where no gradient flows (`flows` is False), or
    where it is unknown.
    """

    operand: int
    result: int
    slot: int
    flows: bool
    local: float | None


class PassStep(NamedTuple):
    """One event of a backward pass: over edge number `edge`, ``upstream * local = contribution``; `total` so far.

    Of tensors these are arrays, and `local`, which would be a matrix, is None.
    """

    edge: int
    upstream: Any
    local: float | None
    contribution: Any
    total: Any


class Note(NamedTuple):
    """Something to be told about the graph; `node` is where, or None; `nodes` and `edges` all that it concerns."""

    kind: Literal[
        "overwritten", "nan", "inf", "gradient", "partial", "vanishing", "exploding", "dead", "saturated", "stale",
        "error", "freed", "hook", "replayed",
    ]  # fmt: skip
    node: int | None
    text: str
    nodes: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()


class TourStop(NamedTuple):
    """A stop of a tour: the position, what is said there, and what to look at, a node as "n3" or a block as "b2"."""

    at: int
    text: str
    look: str | None = None
