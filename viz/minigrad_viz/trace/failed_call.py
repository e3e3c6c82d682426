"""The trace of a failed computation: the graph built so far. Its last node is the call that raised, without a value."""

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
from minigrad_viz.trace.graph import trace_graph
from minigrad_viz.trace.modules import modules_of
from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.notation import sanitize
from minigrad_viz.trace.positions import find_node
from minigrad_viz.trace.rows import Note, TraceBlock
from minigrad_viz.trace.trace import Trace

__all__ = ["FailedCall", "add_call_node", "failing_call", "trace_failure", "user_frames"]

MINIGRAD_FOLDER, VIEWER_FOLDER = Path(mg.__file__).parent, Path(__file__).parents[1]


class FailedCall(NamedTuple):
    """A call into minigrad that raised: the operation's name, its arguments, and the calling frame.

    If the viewer called a model, `line` is the user's line that requested the call.
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
    layer_frame = None
    for (outer, _), (inner, _) in zip(reversed(frames[:-1]), reversed(frames[1:]), strict=True):
        if (
            layer_frame is None
            and _is_minigrad_frame(inner)
            and not _is_layer_frame(inner)
            and (_is_layer_frame(outer) or not _is_minigrad_frame(outer))
        ):
            layer_frame = inner  # a layer counts as user code
        if _is_minigrad_frame(inner) and not _is_minigrad_frame(outer):
            inner = layer_frame or inner
            name = str(error).partition(":")[0] if isinstance(error, MinigradError) else ""
            op = name if name.isidentifier() else inner.f_code.co_name.strip("_")
            user_frame, lines = outer, dict(frames)
            while _is_viewer_frame(user_frame) and user_frame.f_back is not None:
                user_frame = user_frame.f_back
            return FailedCall(
                op, _operands(op, inner), outer, _source_line(user_frame, lines.get(user_frame, user_frame.f_lineno))
            )
    return None


def _operands(op: str, frame: FrameType) -> list[Any]:
    """Return the Values and tensors passed to the call of `frame`, and other arguments in operand positions.

    The 4 of ``x.view(4)`` is not an operand, nor is a default such as a loss's ``ignore_index``.
    """
    argument_info = inspect.getargvalues(frame)
    is_init = frame.f_code.co_name == "__init__"
    call_arguments = [argument_info.locals[name] for name in argument_info.args[is_init:]]
    if argument_info.varargs:
        call_arguments += argument_info.locals[argument_info.varargs]
    operand_count = len(OPS[op].inputs) if op in OPS else 0
    return [
        x for position, x in enumerate(_flatten(call_arguments)) if position < operand_count or isinstance(x, GraphNode)
    ]


def user_frames(error: BaseException, cell_globals: Mapping[str, Any]) -> list[tuple[FrameType, int]]:
    """Return the frames, with line numbers, from the cell with globals `cell_globals` to the point where `error` was
    raised, without frames of minigrad and this package.
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    while frames and frames[0][0].f_globals is not cell_globals:
        del frames[0]
    return [(frame, line) for frame, line in frames if not _is_minigrad_frame(frame) and not _is_viewer_frame(frame)]


def _source_line(frame: FrameType, line: int) -> str:
    file = frame.f_code.co_filename
    return f"{Path(file).name}:{line}: {getline(file, line).strip()}"


def trace_failure(error: BaseException, namespaces: Namespaces, built_nodes: list[Any]) -> Trace | None:
    """Return the graph of the failed call's arguments, with the call as its last node. If no argument is a node, return
    the graph of `built_nodes`, or None if there are none.
    """
    call = failing_call(error)
    operands = [] if call is None else [x for x in call.operands if isinstance(x, GraphNode)]
    location = getattr(error, "__notes__", ()) if isinstance(error, MinigradError) else ()
    text = " ".join(sanitize(" ".join([f"{type(error).__name__}: {error}", *location])).split()).removesuffix(":")
    if call is None or not operands:
        if not built_nodes:
            return None
        trace = trace_graph(_same_kind(built_nodes), namespaces)[0]
        location = "" if call is not None else _location_phrase(error, namespaces)
        trace.notes.append(Note("error", None, text + location))
        return trace
    roots = dict.fromkeys(_same_kind(operands))
    call_locals = {} if _is_viewer_frame(call.frame) else call.frame.f_locals
    trace, indices = trace_graph(roots, (*namespaces, call_locals))
    operand_nodes = []
    for x in call.operands:
        if isinstance(x, GraphNode):
            operand_nodes += [find_node(trace, indices, x, "trace")] if x in roots else []
        elif isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < 1e308:
            operand_nodes.append(add_call_node(trace, "c", None, float(x), []))
    at = add_call_node(trace, "x", call.op, None, operand_nodes)
    trace.block[at] = _block_of(trace, indices, getattr(error, "minigrad_scope", ""))
    for end in operand_nodes:  # move the parameters of a failed layer to its block
        if isinstance(next((x for x, index in indices.items() if index == end), None), mg.nn.Parameter):
            trace.block[end] = trace.block[at] if trace.operand.count(end) == 1 else trace.block[end]
    trace.lines[at] = sanitize(call.line)
    trace.outputs, trace.passes = [at], []
    trace.notes.append(Note("error", at, text))
    return trace


def _same_kind(nodes: list[Any]) -> list[Any]:
    """Return the nodes of the same kind as the first, since no graph mixes Values and tensors."""
    scalar = isinstance(nodes[0], mg.Value)
    return [x for x in nodes if isinstance(x, mg.Value) == scalar]


def _location_phrase(error: BaseException, namespaces: Namespaces) -> str:
    """Return the line of user code that raised, formatted as " (at file:line: source)"."""
    frames = user_frames(error, namespaces[0]) if namespaces else []
    return f" (at {sanitize(_source_line(*frames[-1]))})" if frames else ""


def add_call_node(trace: Trace, kind: str, name: str | None, value: float | None, operands: list[int]) -> int:
    """Append a node with these operands, and return its index."""
    at, operand_count = len(trace.kinds), len(operands)
    trace.kinds.append(kind)
    trace.op.append(-1)
    trace.names.append(name)
    trace.values.append(value)
    trace.states.append("b")
    trace.block.append(0)
    trace.operand += operands
    trace.result += [at] * operand_count
    trace.slot += range(operand_count)
    trace.flows += [False] * operand_count
    trace.local += [None] * operand_count
    trace.start.append(len(trace.operand))
    return at


def _block_of(trace: Trace, indices: Mapping[Any, int], scope: Any) -> int:
    """Return the block of `scope`, in which the call was made; create the block if it contains no node."""
    if not scope:
        return 0
    nodes_in_scope = (
        (at, levels_up)
        for node, at in indices.items()
        if (levels_up := _scope_distance(getattr(node, "scope", None), scope)) >= 0
    )
    if (first := next(nodes_in_scope, None)) is None:
        outer = _block_of(trace, indices, scope.outer)
        trace.blocks.append(TraceBlock(sanitize(scope.name), outer, "scope", module=scope.module))
        trace.modules = modules_of(trace.blocks)
        trace.scopes.append("/".join(filter(None, (trace.scopes[outer], sanitize(scope.name)))))
        return len(trace.blocks) - 1
    block, levels_up = trace.block[first[0]], first[1]
    while levels_up or trace.blocks[block].kind != "scope":
        levels_up -= trace.blocks[block].kind == "scope"
        block = trace.blocks[block].outer
    return block


def _scope_distance(scope: Any, outer: Any) -> int:
    """Return the number of levels from `scope` up to `outer`; -1 if `outer` does not enclose `scope`."""
    levels_up = 0
    while scope:
        if scope is outer:
            return levels_up
        scope, levels_up = getattr(scope, "outer", None), levels_up + 1
    return -1


def _is_layer_frame(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(MINIGRAD_FOLDER / "nn")


def _is_minigrad_frame(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(MINIGRAD_FOLDER)


def _is_viewer_frame(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(VIEWER_FOLDER)


def _flatten(arguments: list[Any]) -> Iterator[Any]:
    """Yield the arguments, with lists and tuples flattened, such as those passed to `cat`."""
    for x in arguments:
        if isinstance(x, list | tuple):
            yield from _flatten(list(x))
        else:
            yield x
