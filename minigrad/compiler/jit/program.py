"""Programs: the kernel calls of a step, without duplicate and dead calls, and the code that runs these calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.compiler.jit.nodes import (
    CONSTANT,
    EXISTING,
    FULL,
    TEMPORARY,
    Buffer,
    CallNode,
    View,
    address_of,
    allocation_of,
    memory_owner,
)
from minigrad.core.dispatch import dispatch
from minigrad.core.storage import get_allocator
from minigrad.core.symbolic import SymbolicScalar, map_symbolic, symbolic_scalars_in

__all__ = ["Extent", "Extents", "Program", "optimize_calls"]


def optimize_calls(nodes: Sequence[CallNode], results: Sequence[View]) -> tuple[list[CallNode], list[View]]:
    """Eliminate duplicate and dead calls. Return the remaining calls, and the views of `results` in their buffers."""
    unique_calls, replacements = _eliminate_common_calls(nodes)
    views = [_replace_buffer(view, replacements) for view in results]
    return _eliminate_dead_calls(unique_calls, views), views


def _eliminate_common_calls(nodes: Sequence[CallNode]) -> tuple[list[CallNode], dict[int, Buffer]]:
    """Eliminate common subexpressions: drop calls that repeat an earlier one, unless their buffers are written to.

    Return the remaining calls, and the replacement for each dropped buffer."""
    first_calls: dict[Any, CallNode] = {}
    replacements: dict[int, Buffer] = {}
    remaining = []
    for node in nodes:
        inputs = tuple([_replace_buffer(x, replacements) if isinstance(x, View) else x for x in node.inputs])
        node = node._replace(inputs=inputs, outs=tuple([_replace_buffer(x, replacements) for x in node.outs]))
        key = _call_key(node)
        first = first_calls.get(key) if key is not None else None
        if first is None:
            remaining.append(node)
            if key is not None:
                first_calls[key] = node
        else:
            replacements.update({id(a.buffer): b.buffer for a, b in zip(node.outs, first.outs, strict=True)})
    return remaining, replacements


def _replace_buffer(view: View, replacements: Mapping[int, Buffer]) -> View:
    buffer = replacements.get(id(view.buffer))
    return view if buffer is None else view._replace(buffer=buffer)


def _call_key(node: CallNode) -> Any:
    """Return a key that is the same for equal calls; None if the call must always run."""
    views = (*node.reads, *node.outs)
    if node.is_in_place or any(view.buffer.is_written for view in views) or node.op == CONSTANT:
        return None
    layouts = tuple([(x.offset, x.shape, x.strides, x.dtype) for x in node.outs])
    key = (node.op, node.device, *map(_operand_key, node.inputs), _operand_key(node.attrs), layouts)
    try:
        hash(key)
    except TypeError:  # an attribute is an array
        return None
    return key


def _operand_key(x: Any) -> Any:
    if isinstance(x, View):
        return ("view", id(x.buffer), *x[1:])
    if type(x) is SymbolicScalar:
        return "traced", x.name
    if isinstance(x, Mapping):
        return tuple([(name, _operand_key(y)) for name, y in x.items()])
    if type(x) in (tuple, list):
        return (type(x), *map(_operand_key, x))
    return type(x), x, str(x)  # 0.0 is not -0.0


def _eliminate_dead_calls(nodes: Sequence[CallNode], results: Iterable[View]) -> list[CallNode]:
    """Eliminate dead calls, whose results are never read."""
    read = {id(view.buffer) for view in results}
    live_calls = []
    for node in reversed(nodes):
        has_lasting_write = node.is_in_place and any(view.buffer.kind != TEMPORARY for view in node.outs)
        if has_lasting_write or any(id(view.buffer) in read for view in node.outs):
            live_calls.append(node)
            read.update(id(view.buffer) for view in node.reads)
            if node.is_in_place:
                read.update(id(view.buffer) for view in node.outs)
    return live_calls[::-1]


class Extent(NamedTuple):
    """Memory region of a buffer: a flat byte array, the offset of the buffer in it, the array type, and the array that
    owns the allocation. Kernels may also access the rest of the owner's last cache line."""

    flat: Any
    start: int
    array_type: type
    owner: Any

    @staticmethod
    def from_buffer(buffer: Buffer) -> Extent:
        """Return the extent of an allocated buffer."""
        return Extent(_flat(memory_owner(buffer.array)), 0, buffer.array_type, buffer.owner)

    @staticmethod
    def from_array(array: Any, offset: int = 0) -> Extent:
        """Return the extent of a buffer in which `array` starts at byte `offset`."""
        root = memory_owner(array)
        return Extent(_flat(root), address_of(array) - address_of(root) - offset, type(array), allocation_of(array))

    def array_at(self, view: View) -> Any:
        """Return the array that `view` describes."""
        offset, memory = self.start + view.offset, self.flat if self.owner is None else self.owner
        array: Any = np.ndarray.__new__(self.array_type, view.shape, view.dtype, memory, offset, view.strides)
        if self.owner is not None and array.nbytes == self.owner.nbytes and array.flags.c_contiguous:
            array.address = self.owner.address
        return array


def _flat(root: Any) -> Any:
    """Return all bytes of an array that owns its memory, as a flat array."""
    return root if hasattr(root, "address") else root.ravel(order="K").view(np.uint8)


class _ComputedArray:
    """Array returned by a call, with its byte offset in the buffer. Most later calls read the array itself; others read
    views of its memory."""

    __slots__ = ("_memory", "array", "offset")

    def __init__(self, array: Any, offset: int) -> None:
        self.array, self.offset = array, offset
        self._memory: Extent | None = None

    def array_at(self, view: View) -> Any:
        """Return the array that `view` describes."""
        if self._memory is None:
            self._memory = Extent.from_array(self.array, self.offset)
        return self._memory.array_at(view)


Extents = dict[int, Extent]


class Program:
    """Kernel calls of a step, in order. This is the reference for all other ways of running the step."""

    def __init__(self, nodes: Sequence[CallNode], results: Sequence[View], buffers: Sequence[Buffer]) -> None:
        self.nodes, self.result_views = list(nodes), list(results)
        self.fixed: Extents = {b.index: Extent.from_buffer(b) for b in buffers if b.kind == EXISTING}
        self._arrays: dict[Any, Any] = {}  # one array per view, so that a kernel detects in-place operands
        self._computed_views = {view.buffer.index: view[1:] for x in nodes if not x.is_in_place for view in x.outs}
        self._hoist_constants()
        self._calls = [self._compile_call(node) for node in self.nodes]
        self.results = [self._array_getter(view) for view in results]
        self._dead_buffers = self._find_last_uses()
        self.symbols = [x for node in self.nodes for x in symbolic_scalars_in((node.inputs, node.attrs))]

    def _hoist_constants(self) -> None:
        """Store constant arrays that are never written to, and drop the calls that create them."""
        returned = {id(view.buffer) for view in self.result_views}
        remaining = []
        for node in self.nodes:
            buffer = node.outs[0].buffer
            is_constant = not buffer.is_written and id(buffer) not in returned and not symbolic_scalars_in(node.attrs)
            if node.op in (FULL, CONSTANT) and is_constant:
                self.fixed[buffer.index] = Extent.from_buffer(buffer)
            else:
                remaining.append(node)
        self.nodes = remaining

    def _find_last_uses(self) -> list[list[int]]:
        """Return, for each call, the buffers that are dead after it."""
        last: dict[int, int] = {}
        for k, node in enumerate(self.nodes):
            last.update({view.buffer.index: k for view in (*node.reads, *node.outs)})
        for index in [*self.fixed, *[view.buffer.index for view in self.result_views]]:
            last.pop(index, None)
        frees: list[list[int]] = [[] for _ in self.nodes]
        for index, k in last.items():
            frees[k].append(index)
        return frees

    def _array_getter(self, view: View) -> Callable[[dict[int, Any]], Any]:
        """Return a function that maps the memories of the buffers to the array that `view` describes."""
        index = view.buffer.index
        if index in self.fixed:
            key = index, *view[1:]
            array = self._arrays[key] = self._arrays.get(key, self.fixed[index].array_at(view))
            return lambda memories: array
        if self._computed_views.get(index) == view[1:]:
            return lambda memories: memories[index].array
        return lambda memories: memories[index].array_at(view)

    def _compile_call(self, node: CallNode) -> Callable[[dict[int, Any], Mapping[str, Any]], None]:
        inputs = [(True, self._array_getter(x)) if isinstance(x, View) else (False, x) for x in node.inputs]
        outs = [self._array_getter(x) for x in node.outs] if node.is_in_place else []
        traced_attrs = {name: x for name, x in node.attrs.items() if symbolic_scalars_in(x)}
        has_traced_operands = bool(symbolic_scalars_in(node.inputs))

        def call(memories: dict[int, Any], scalars: Mapping[str, Any]) -> None:
            attrs = (
                {**node.attrs, **map_symbolic(traced_attrs, lambda x: scalars[x.name])} if traced_attrs else node.attrs
            )
            operands = tuple([x(memories) if is_view else x for is_view, x in inputs])
            if has_traced_operands:
                operands = map_symbolic(operands, lambda x: scalars[x.name])
            if node.op == FULL:
                result = get_allocator(node.device).full(node.outs[0].shape, node.outs[0].dtype, attrs["value"])
            elif node.op == CONSTANT:
                result = get_allocator(node.device).copy(attrs["numbers"])
            elif node.is_in_place:
                targets = tuple([x(memories) for x in outs])
                dispatch(node.op, node.device, operands, attrs, targets if len(targets) > 1 else targets[0])
                return
            else:
                result = dispatch(node.op, node.device, operands, attrs)
            arrays = [x for x in result if isinstance(x, np.ndarray)] if isinstance(result, tuple) else [result]
            for view, array in zip(node.outs, arrays, strict=True):
                if view.buffer.index not in self.fixed:
                    memories[view.buffer.index] = _ComputedArray(array, view.offset)

        return call

    extent_of = staticmethod(Extent.from_array)

    def run(
        self, arguments: Sequence[Any], scalars: Mapping[str, Any], on_call: Callable[[int], None] | None = None
    ) -> list[Any]:
        """Run the calls on `arguments` and return the results. `scalars` are the traced scalars by name. `on_call` is
        called with the index of each call before it runs."""
        memories: dict[int, Any] = {k: Extent.from_array(array) for k, array in enumerate(arguments)}
        for k, (call, frees) in enumerate(zip(self._calls, self._dead_buffers, strict=True)):
            if on_call is not None:
                on_call(k)
            call(memories, scalars)
            for index in frees:
                memories.pop(index, None)
        return [get_array(memories) for get_array in self.results]

    def __str__(self) -> str:
        return "\n".join(map(_format_call, self.nodes))


def _format_call(node: CallNode) -> str:
    """Return a call as one line, such as ``t7:float32[32, 10] = matmul(a0:float32[32, 64], k3:float32[64, 10])``."""
    attrs = [f"{name}={_shorten(x)}" for name, x in node.attrs.items()]
    operands = ", ".join([*map(_shorten, node.inputs), *attrs])
    return f"{', '.join(map(repr, node.outs))} {'<-' if node.is_in_place else '='} {node.op}({operands})"


def _shorten(x: Any) -> str:
    if type(x) is SymbolicScalar:
        return f"<{x.description}>"
    text = f"array{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x)
    return text if len(text) <= 60 else f"{text[:57]}..."
