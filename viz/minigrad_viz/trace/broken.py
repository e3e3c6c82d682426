"""The trace of a failed computation: the graph built so far, and the call that raised as a last node without a
value.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator, Mapping
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import minigrad as mg
from minigrad.core.errors import MinigradError
from minigrad.core.graph import Node as GraphNode
from minigrad.core.op import OPS
from minigrad_viz.trace.graph import of_graph
from minigrad_viz.trace.modules import modules_of
from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.notation import clean
from minigrad_viz.trace.positions import find
from minigrad_viz.trace.rows import Note, TraceBlock
from minigrad_viz.trace.trace import Trace

__all__ = ["FailedCall", "failing_call", "to_broken_trace", "user_frames"]

_MINIGRAD, _VIEWER = Path(mg.__file__).parent, Path(__file__).parents[1]


class FailedCall(NamedTuple):
    """A call into minigrad that raised: the operation's name, its arguments, and the calling frame.

    If the viewer called a model, `line` is the user's line that asked for it.
    """

    op: str
    operands: list[Any]
    frame: FrameType
    line: str


def failing_call(error: BaseException) -> FailedCall | None:
    """Return the last call from user code into minigrad in the traceback of `error`, or None.

    >>> try:
    ...     mg.Value(2.0) * "three"
    ... except mg.errors.DTypeError as error:
    ...     failing_call(error)[:2]
    ('mul', [Value(2.0), 'three'])
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    found = None
    for (outer, _), (inner, _) in zip(reversed(frames[:-1]), reversed(frames[1:]), strict=True):
        if found is None and _is_ours(inner) and not _is_layer(inner) and (_is_layer(outer) or not _is_ours(outer)):
            found = inner  # a layer counts as user code
        if _is_ours(inner) and not _is_ours(outer):
            inner = found or inner
            name = str(error).partition(":")[0] if isinstance(error, MinigradError) else ""
            op = name if name.isidentifier() else inner.f_code.co_name.strip("_")
            asked, lines = outer, dict(frames)
            while _is_of_viewer(asked) and asked.f_back is not None:
                asked = asked.f_back
            return FailedCall(op, _operands(op, inner), outer, _line_of(asked, lines.get(asked, asked.f_lineno)))
    return None


def _operands(op: str, frame: FrameType) -> list[Any]:
    """Return the Values and tensors passed to the call of `frame`, and other arguments in operand positions.

    The 4 of ``x.view(4)`` is not an operand, nor is a default such as a loss's ``ignore_index``.
    """
    arguments = inspect.getargvalues(frame)
    half_made = frame.f_code.co_name == "__init__"
    given = [arguments.locals[name] for name in arguments.args[half_made:]]
    if arguments.varargs:
        given += arguments.locals[arguments.varargs]
    room = len(OPS[op].inputs) if op in OPS else 0
    return [x for place, x in enumerate(_flat(given)) if place < room or isinstance(x, GraphNode)]


def user_frames(error: BaseException, space: Mapping[str, Any]) -> list[tuple[FrameType, int]]:
    """Return the traceback of `error` from the cell with globals `space` to where it was raised, without frames of
    minigrad and this package: each frame with its line number.
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    while frames and frames[0][0].f_globals is not space:
        del frames[0]
    return [(frame, line) for frame, line in frames if not _is_ours(frame) and not _is_of_viewer(frame)]


def _line_of(frame: FrameType, line: int) -> str:
    file = frame.f_code.co_filename
    return f"{Path(file).name}:{line}: {getline(file, line).strip()}"


def to_broken_trace(error: BaseException, namespaces: Namespaces, built: list[Any]) -> Trace | None:
    """Return the graph of the failing call's arguments, with a last node for the call; or of `built`, if it took no
    nodes.

    None if there is nothing to draw.
    """
    call = failing_call(error)
    operands = [] if call is None else [x for x in call.operands if isinstance(x, GraphNode)]
    where = getattr(error, "__notes__", ()) if isinstance(error, MinigradError) else ()
    text = " ".join(clean(" ".join([f"{type(error).__name__}: {error}", *where])).split()).removesuffix(":")
    if call is None or not operands:
        if not built:
            return None
        trace = of_graph(_of_one_kind(built), namespaces)[0]
        where = "" if call is not None else _raised_at(error, namespaces)
        trace.notes.append(Note("error", None, text + where))
        return trace
    drawn = dict.fromkeys(_of_one_kind(operands))
    known = {} if _is_of_viewer(call.frame) else call.frame.f_locals
    trace, places = of_graph(drawn, (*namespaces, known))
    ends = []
    for x in call.operands:
        if isinstance(x, GraphNode):
            ends += [find(trace, places, x, "trace")] if x in drawn else []
        elif isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < 1e308:
            ends.append(_add(trace, "c", None, float(x), []))
    at = _add(trace, "x", call.op, None, ends)
    trace.block[at] = _block_of(trace, places, getattr(error, "minigrad_scope", ""))
    for end in ends:  # parameters of a failed layer
        if isinstance(next((x for x, place in places.items() if place == end), None), mg.nn.Parameter):
            trace.block[end] = trace.block[at] if trace.operand.count(end) == 1 else trace.block[end]
    trace.lines[at] = clean(call.line)
    trace.outputs, trace.passes = [at], []
    trace.notes.append(Note("error", at, text))
    return trace


def _of_one_kind(nodes: list[Any]) -> list[Any]:
    """Return the nodes of the same kind as the first, since no graph mixes Values and tensors."""
    scalar = isinstance(nodes[0], mg.Value)
    return [x for x in nodes if isinstance(x, mg.Value) == scalar]


def _raised_at(error: BaseException, namespaces: Namespaces) -> str:
    """Return where user code raised, as " (at file:line: source)"."""
    frames = user_frames(error, namespaces[0]) if namespaces else []
    return f" (at {clean(_line_of(*frames[-1]))})" if frames else ""


def _add(trace: Trace, kind: str, name: str | None, value: float | None, operands: list[int]) -> int:
    """Append a node with these operands, and return its index."""
    at, many = len(trace.kinds), len(operands)
    trace.kinds.append(kind)
    trace.op.append(-1)
    trace.names.append(name)
    trace.values.append(value)
    trace.states.append("b")
    trace.block.append(0)
    trace.operand += operands
    trace.result += [at] * many
    trace.slot += range(many)
    trace.flows += [False] * many
    trace.local += [None] * many
    trace.start.append(len(trace.operand))
    return at


def _block_of(trace: Trace, places: Mapping[Any, int], scope: Any) -> int:
    """Return the block of this scope entry, in which the call was made; create it if no node is in it."""
    if not scope:
        return 0
    inside = ((at, up) for node, at in places.items() if (up := _levels(getattr(node, "scope", None), scope)) >= 0)
    if (first := next(inside, None)) is None:
        outer = _block_of(trace, places, scope.outer)
        trace.blocks.append(TraceBlock(clean(scope.name), outer, "scope", module=scope.module))
        trace.modules = modules_of(trace.blocks)
        trace.scopes.append("/".join(filter(None, (trace.scopes[outer], clean(scope.name)))))
        return len(trace.blocks) - 1
    block, up = trace.block[first[0]], first[1]
    while up or trace.blocks[block].kind != "scope":
        up -= trace.blocks[block].kind == "scope"
        block = trace.blocks[block].outer
    return block


def _levels(scope: Any, outer: Any) -> int:
    """Return how many scopes `outer` is above `scope`; -1 if it does not enclose it."""
    up = 0
    while scope:
        if scope is outer:
            return up
        scope, up = getattr(scope, "outer", None), up + 1
    return -1


def _is_layer(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(_MINIGRAD / "nn")


def _is_ours(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(_MINIGRAD)


def _is_of_viewer(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(_VIEWER)


def _flat(given: list[Any]) -> Iterator[Any]:
    """Yield the arguments, with lists and tuples flattened, as `cat` takes them."""
    for x in given:
        if isinstance(x, list | tuple):
            yield from _flat(list(x))
        else:
            yield x
