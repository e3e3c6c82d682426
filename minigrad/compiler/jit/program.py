"""A program: a step's kernel calls, without duplicates and dead code, and the code that runs them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.compiler.jit.nodes import (
    CONSTANT,
    FULL,
    KEPT,
    TEMPORARY,
    Buffer,
    KernelCall,
    View,
    root_of,
    start_of,
    whole_of,
)
from minigrad.core.dispatch import dispatch
from minigrad.core.storage import memory
from minigrad.core.symbolic import Traced, replaced, traced

__all__ = ["Extent", "Memories", "Program", "made_of"]


def made_of(nodes: Sequence[KernelCall], wanted: Sequence[View]) -> tuple[list[KernelCall], list[View]]:
    """Return the calls that `wanted` and lasting writes depend on, deduplicated, and the new views of `wanted`."""
    once, instead = _each_once(nodes)
    found = [_moved(view, instead) for view in wanted]
    return _needed(once, found), found


def _each_once(nodes: Sequence[KernelCall]) -> tuple[list[KernelCall], dict[int, Buffer]]:
    """Eliminate common subexpressions: drop calls that repeat an earlier one, unless their buffers are written to.

    Return the remaining calls, and the replacement for each dropped buffer."""
    known: dict[Any, KernelCall] = {}
    instead: dict[int, Buffer] = {}
    kept = []
    for node in nodes:
        inputs = tuple([_moved(x, instead) if isinstance(x, View) else x for x in node.inputs])
        node = node._replace(inputs=inputs, outs=tuple([_moved(x, instead) for x in node.outs]))
        key = _key(node)
        first = known.get(key) if key is not None else None
        if first is None:
            kept.append(node)
            if key is not None:
                known[key] = node
        else:
            instead.update({id(a.buffer): b.buffer for a, b in zip(node.outs, first.outs, strict=True)})
    return kept, instead


def _moved(view: View, instead: Mapping[int, Buffer]) -> View:
    buffer = instead.get(id(view.buffer))
    return view if buffer is None else view._replace(buffer=buffer)


def _key(node: KernelCall) -> Any:
    """Return a key that equal calls share, None if the call has to be repeated."""
    views = (*node.reads, *node.outs)
    if node.writes or any(view.buffer.written for view in views) or node.op == CONSTANT:
        return None
    layouts = tuple([(x.offset, x.shape, x.strides, x.dtype) for x in node.outs])
    key = (node.op, node.device, *map(_told, node.inputs), _told(node.attrs), layouts)
    try:
        hash(key)
    except TypeError:  # an attribute is an array
        return None
    return key


def _told(x: Any) -> Any:
    if isinstance(x, View):
        return ("view", id(x.buffer), *x[1:])
    if type(x) is Traced:
        return "traced", x.name
    if isinstance(x, Mapping):
        return tuple([(name, _told(y)) for name, y in x.items()])
    if type(x) in (tuple, list):
        return (type(x), *map(_told, x))
    return type(x), x, str(x)  # 0.0 is not -0.0


def _needed(nodes: Sequence[KernelCall], wanted: Iterable[View]) -> list[KernelCall]:
    """Eliminate dead calls, whose results are never read."""
    read = {id(view.buffer) for view in wanted}
    kept = []
    for node in reversed(nodes):
        lasting = node.writes and any(view.buffer.kind != TEMPORARY for view in node.outs)
        if lasting or any(id(view.buffer) in read for view in node.outs):
            kept.append(node)
            read.update(id(view.buffer) for view in node.reads)
            if node.writes:
                read.update(id(view.buffer) for view in node.outs)
    return kept[::-1]


class Extent(NamedTuple):
    """A piece of memory as a flat byte array, the offset of a buffer in it, the type of its arrays, and the array that
    owns the allocation: kernels may read and write the rest of that array's last cache line."""

    flat: Any
    start: int
    array: type
    whole: Any

    @staticmethod
    def of(buffer: Buffer) -> Extent:
        """Return the memory of an allocated buffer."""
        return Extent(_flat(root_of(buffer.array)), 0, buffer.of, buffer.whole)

    @staticmethod
    def around(array: Any, offset: int = 0) -> Extent:
        """Return the memory of an array that lies at a byte offset in a buffer."""
        root = root_of(array)
        return Extent(_flat(root), start_of(array) - start_of(root) - offset, type(array), whole_of(array))

    def at(self, view: View) -> Any:
        """Return the array at a view."""
        offset, memory = self.start + view.offset, self.flat if self.whole is None else self.whole
        found: Any = np.ndarray.__new__(self.array, view.shape, view.dtype, memory, offset, view.strides)
        if self.whole is not None and found.nbytes == self.whole.nbytes and found.flags.c_contiguous:
            found.address = self.whole.address
        return found


def _flat(root: Any) -> Any:
    """Return all bytes of an array that owns its memory, as a flat array."""
    return root if hasattr(root, "address") else root.ravel(order="K").view(np.uint8)


class _MadeArray:
    """An array that a call returned, at a byte offset in its buffer. Most later calls read the array itself; others
    read views of its memory."""

    __slots__ = ("_memory", "array", "offset")

    def __init__(self, array: Any, offset: int) -> None:
        self.array, self.offset = array, offset
        self._memory: Extent | None = None

    def at(self, view: View) -> Any:
        """Return the array at a view."""
        if self._memory is None:
            self._memory = Extent.around(self.array, self.offset)
        return self._memory.at(view)


Memories = dict[int, Extent]


class Program:
    """Kernel calls in order: the reference that any other way of running a step is checked against."""

    def __init__(self, nodes: Sequence[KernelCall], wanted: Sequence[View], buffers: Sequence[Buffer]) -> None:
        self.nodes, self.wanted = list(nodes), list(wanted)
        self.fixed: Memories = {b.number: Extent.of(b) for b in buffers if b.kind == KEPT}
        self._arrays: dict[Any, Any] = {}  # one per view, so that a kernel recognises in-place operands
        self._made = {view.buffer.number: view[1:] for x in nodes if not x.writes for view in x.outs}
        self._make_constants()
        self._calls = [self._call(node) for node in self.nodes]
        self.results = [self._found(view) for view in wanted]
        self._frees = self._last_uses()
        self.numbers = [x for node in self.nodes for x in traced((node.inputs, node.attrs))]

    def _make_constants(self) -> None:
        """Store constant arrays that are never written to, and drop the calls that create them."""
        returned = {id(view.buffer) for view in self.wanted}
        kept = []
        for node in self.nodes:
            buffer = node.outs[0].buffer
            lasting = not buffer.written and id(buffer) not in returned and not traced(node.attrs)
            if node.op in (FULL, CONSTANT) and lasting:
                self.fixed[buffer.number] = Extent.of(buffer)
            else:
                kept.append(node)
        self.nodes = kept

    def _last_uses(self) -> list[list[int]]:
        """Return, for each call, the buffers that are dead after it."""
        last: dict[int, int] = {}
        for k, node in enumerate(self.nodes):
            last.update({view.buffer.number: k for view in (*node.reads, *node.outs)})
        for number in [*self.fixed, *[view.buffer.number for view in self.wanted]]:
            last.pop(number, None)
        frees: list[list[int]] = [[] for _ in self.nodes]
        for number, k in last.items():
            frees[k].append(number)
        return frees

    def _found(self, view: View) -> Callable[[dict[int, Any]], Any]:
        """Return a function that returns the array at a view."""
        number = view.buffer.number
        if number in self.fixed:
            key = number, *view[1:]
            array = self._arrays[key] = self._arrays.get(key, self.fixed[number].at(view))
            return lambda memories: array
        if self._made.get(number) == view[1:]:
            return lambda memories: memories[number].array
        return lambda memories: memories[number].at(view)

    def _call(self, node: KernelCall) -> Callable[[dict[int, Any], Mapping[str, Any]], None]:
        inputs = [(True, self._found(x)) if isinstance(x, View) else (False, x) for x in node.inputs]
        outs = [self._found(x) for x in node.outs] if node.writes else []
        changing = {name: x for name, x in node.attrs.items() if traced(x)}
        operands_change = bool(traced(node.inputs))

        def call(memories: dict[int, Any], numbers: Mapping[str, Any]) -> None:
            attrs = {**node.attrs, **replaced(changing, lambda x: numbers[x.name])} if changing else node.attrs
            given = tuple([x(memories) if found else x for found, x in inputs])
            if operands_change:
                given = replaced(given, lambda x: numbers[x.name])
            if node.op == FULL:
                result = memory(node.device).full(node.outs[0].shape, node.outs[0].dtype, attrs["value"])
            elif node.op == CONSTANT:
                result = memory(node.device).copied(attrs["numbers"])
            elif node.writes:
                targets = tuple([x(memories) for x in outs])
                dispatch(node.op, node.device, given, attrs, targets if len(targets) > 1 else targets[0])
                return
            else:
                result = dispatch(node.op, node.device, given, attrs)
            arrays = [x for x in result if isinstance(x, np.ndarray)] if isinstance(result, tuple) else [result]
            for view, array in zip(node.outs, arrays, strict=True):
                if view.buffer.number not in self.fixed:
                    memories[view.buffer.number] = _MadeArray(array, view.offset)

        return call

    around = staticmethod(Extent.around)

    def run(
        self, arguments: Sequence[Any], numbers: Mapping[str, Any], before: Callable[[int], None] | None = None
    ) -> list[Any]:
        """Return the results, computed from `arguments`; `numbers` are the traced scalars by name. `before` is
        called with the index of each call before it runs."""
        memories: dict[int, Any] = {k: Extent.around(array) for k, array in enumerate(arguments)}
        for k, (call, frees) in enumerate(zip(self._calls, self._frees, strict=True)):
            if before is not None:
                before(k)
            call(memories, numbers)
            for number in frees:
                memories.pop(number, None)
        return [found(memories) for found in self.results]

    def __str__(self) -> str:
        return "\n".join(map(_line, self.nodes))


def _line(node: KernelCall) -> str:
    """Return a call as one line, such as ``t7:float32[32, 10] = matmul(a0:float32[32, 64], k3:float32[64, 10])``."""
    attrs = [f"{name}={_short(x)}" for name, x in node.attrs.items()]
    given = ", ".join([*map(_short, node.inputs), *attrs])
    return f"{', '.join(map(repr, node.outs))} {'<-' if node.writes else '='} {node.op}({given})"


def _short(x: Any) -> str:
    if type(x) is Traced:
        return f"<{x.what}>"
    text = f"array{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x)
    return text if len(text) <= 60 else f"{text[:57]}..."
