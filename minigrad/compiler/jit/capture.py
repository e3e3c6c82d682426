"""Capture: what one run of a step computed, as a list of kernel calls on places in memory.

While the step runs as always, a tap hears each kernel call, and the ways by which arrays come about and are read are
watched. What was there before the step is known by its memory; so a call that reads a parameter will read whatever is
there when the step runs again.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.compiler.jit.nodes import (
    ARGUMENT,
    CONSTANT,
    FULL,
    KEPT,
    TEMPORARY,
    Buffer,
    KernelCall,
    View,
    root_of,
    span_of,
    start_of,
)
from minigrad.compiler.jit.reach import Reach
from minigrad.compiler.jit.scalars import Draw, Numbers
from minigrad.compiler.jit.watch import EntryWatch
from minigrad.core.dispatch import Call
from minigrad.core.effects import Effects, listen
from minigrad.core.errors import CaptureError, caller_line
from minigrad.core.modes import modes
from minigrad.core.storage import PLACES, Allocator, memory, place_of
from minigrad.core.symbolic import Book, plain
from minigrad.core.tensor import Tensor
from minigrad.random.generator import FAR

__all__ = ["UNKNOWN_SHAPE", "Capture"]

UNKNOWN_SHAPE = ("nonzero",)  # whose results have a shape that depends on the numbers


class Capture(Effects):
    """Listens to the effects of a step. `arguments` are the arrays of its tensor arguments.

    Modules and hooks that are called are added to `reach`. Unless `fullgraph`, what cannot be captured is noted in
    `refused`, and the step continues eagerly.
    """

    def __init__(self, arguments: list[Any], reach: Reach, fullgraph: bool = True) -> None:
        self._reach, self._fullgraph = reach, fullgraph
        self.refused = ""
        self.nodes: list[KernelCall] = []
        self.book = Book()
        self.grads: dict[
            int, tuple[Any, Any, bool]
        ] = {}  # id -> a tensor whose `grad` changed, what it was, if added to
        self.grads_read: dict[int, tuple[Any, Any]] = {}  # id -> a tensor whose `grad` of before is read, and that
        self.optimizers: dict[int, Numbers] = {}
        self.hooked: dict[int, tuple[Any, tuple[Any, ...], str]] = {}  # id -> a leaf, its hooks before, what it is
        self.draws: dict[int, Draw] = {}
        self.buffers: list[Buffer] = []
        self.unstable = ""  # why the next run will be another: what was made in this one, and stays
        self._storages: dict[int, Any] = {}  # those that somebody writes to
        self._options: dict[int, tuple[Any, str]] = {}  # tensors whose element an optimizer takes for an option
        self._linked: list[Any] = []  # tensors that a write in place gave another graph
        self._alive: list[Any] = []  # so that no memory is used twice, and no id either
        self._of_root: dict[int, Buffer] = {}
        self._of_argument = [(root_of(x), span_of(x), self._added(ARGUMENT, x, x)) for x in arguments]

    def _refuse(self, message: str) -> None:
        if self._fullgraph:
            raise CaptureError(message)
        self.refused = self.refused or message

    def trace_optimizers(self) -> None:
        """Make the numbers of optimizers symbolic whose groups the step reads itself, before it steps."""
        for optimizer in filter(lambda one: one.traceable, self._reach.optimizers):
            self.optimizers[id(optimizer)] = Numbers(self.book, optimizer)

    def forget_own_leaves(self, known: set[int]) -> None:
        """Forget gradients of leaves that the step made itself, and that are gone: the next run makes others."""
        for optimizer in self.optimizers.values():
            known |= {id(p) for group in optimizer.optimizer.param_groups for p in group["params"]}
        tables: tuple[dict[int, Any], ...] = self.grads, self.grads_read, self.hooked
        suspects = {key: weakref.ref(x[0]) for table in tables for key, x in table.items() if key not in known}
        kept = [{key: x[1:] for key in suspects if (x := table.pop(key, None)) is not None} for table in tables]
        self._linked.clear()
        x = None
        if any(suspect() is not None for suspect in suspects.values()):
            gc.collect()
        for table, rest in zip(tables, kept, strict=True):
            for key, more in rest.items():
                if (alive := suspects[key]()) is not None:
                    table[key] = (alive, *more)

    # --- what is listened to ---

    def run(self, function: Callable[[], Any]) -> Any:
        """What `function` returns, while everything is noted."""
        try:
            with listen(self), EntryWatch(self._reach.enter) as self.watch:
                result = function()
            self._check_links()
            return result
        finally:
            for numbers in self.optimizers.values():
                self.unstable = numbers.settle() or self.unstable
            self._reach.settle()
            for draw in self.draws.values():
                draw.settle()
            for x, what in self._options.values():
                if id(x.storage) in self._storages:
                    self.unstable = f"{what} was written to"

    def kernel_called(self, call: Call) -> None:
        if self.refused:
            return
        if call.op in UNKNOWN_SHAPE:
            self._refuse(
                f"jit: {call.op} makes a tensor whose shape depends on the numbers{_line()}\n"
                "  Use mg.where(condition, x, 0) in place of x[condition], or leave it outside of the step."
            )
        found = call.result if isinstance(call.result, tuple) else (call.result,)
        arrays = [x for x in found if x.__class__ in PLACES]
        inputs = tuple([self.view(x) if x.__class__ in PLACES else x for x in call.inputs])
        if call.out is not None:
            outs = tuple([self.view(x) for x in arrays])
            for view in outs:
                view.buffer.written = True
        else:
            if None not in map(self.find, arrays):
                return  # a view: nothing was computed
            outs = tuple([self.view(x, TEMPORARY) for x in arrays])
        step = modes.passing
        whose = (modes.scope, "") if step is None else (step.scope, step._op.name)
        self.nodes.append(
            KernelCall(call.op, call.device, inputs, dict(call.attrs), outs, call.out is not None, *whose)
        )

    def view(self, array: Any, kind: str = KEPT) -> View:
        """Where an array lies; memory that was not seen before is of this kind."""
        buffer = self.find(array)
        if buffer is None:
            root = root_of(array)
            buffer = self._of_root[id(root)] = self._added(kind, root, array)
        self._alive.append(array)
        return View(buffer, start_of(array) - start_of(buffer.array), array.shape, array.strides, array.dtype)

    def find(self, array: Any) -> Buffer | None:
        """The buffer that an array lies in, if that is known."""
        root = root_of(array)
        for owner, (first, end), buffer in self._of_argument:
            if owner is root:
                start, stop = span_of(array)
                if first <= start and stop <= end:
                    return buffer
        return self._of_root.get(id(root))

    def _added(self, kind: str, array: Any, like: Any) -> Buffer:
        self.buffers.append(Buffer(kind, array, like, len(self.buffers)))
        return self.buffers[-1]

    def memory_requested(self, found: Allocator) -> Allocator:
        """The same way of making arrays, which is noted."""

        def full(shape: tuple[int, ...], dtype: Any, value: Any) -> Any:
            array = found.full(shape, dtype, plain(value))
            out = self.view(array, TEMPORARY)
            self.nodes.append(KernelCall(FULL, place_of(array), (), {"value": value}, (out,), False))
            return array

        def empty(shape: tuple[int, ...], dtype: Any) -> Any:
            return full(shape, dtype, 0)

        def noted(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def made(numbers: Any) -> Any:
                array = make(numbers)
                if self.find(array) is None:
                    out = self.view(array, TEMPORARY)
                    attrs = {"numbers": np.array(found.host(array))}
                    self.nodes.append(KernelCall(CONSTANT, place_of(array), (), attrs, (out,), False))
                return array

            return made

        return found._replace(full=full, empty=empty, copied=noted(found.copied))

    def values_read(self) -> None:
        """Somebody asks for the numbers of a tensor."""
        self._refuse(_of_reading(caller_line()))

    def grad_changed(self, tensor: Any, added: bool) -> None:
        """The `grad` of a tensor is about to change: a backward pass adds to it, or somebody assigns to it."""
        self.grads.setdefault(id(tensor), (tensor, tensor._grad, added))

    def grad_read(self, tensor: Any) -> None:
        """Somebody reads the `grad` of a tensor, which may be of before the step."""
        if id(tensor) not in self.grads:
            self.grads_read.setdefault(id(tensor), (tensor, tensor._grad))

    def generator_state_read(self, what: str) -> None:
        """Somebody asks a generator for what differs from run to run."""
        self._refuse(
            f"jit: {what} is asked of a generator while the step is captured{_line()}\n"
            "  The answer would be the same whenever the step runs: ask outside of it. manual_seed(k) may be inside."
        )

    def graph_rebased(self, tensor: Any) -> None:
        """A write in place gives a tensor another place in the graph."""
        self._linked.append(tensor)

    def metadata_changed(self, tensor: Any, name: str) -> None:
        """A tensor is about to become a view of what it was: one from elsewhere would when this is recorded alone."""
        buffer = self.find(tensor._array)
        if tensor._base is None and (buffer is None or buffer.kind in (ARGUMENT, KEPT)):
            self._refuse(
                f"jit: {name}_ gives a tensor from elsewhere, of shape {tensor.shape}, another shape{_line()}\n"
                f"  The numbers stay, so a recording has nothing to do: write y = x.{name}(…), or do it outside."
            )

    def _check_links(self) -> None:
        for x in self._linked:
            buffer = self.find(x._array)
            if x.grad_fn is not None and buffer is not None and buffer.kind == KEPT:
                self._refuse(
                    f"jit: the step writes to a tensor of shape {x.shape}, from elsewhere, what has a gradient: by "
                    f"{x.grad_fn.name}. Its graph would grow with each step, and that of a recording does not.\n"
                    "  Write x.detach() into it, or inside mg.no_grad(); or return what it should be next."
                )

    def storage_written(self, storage: Any) -> None:
        """A write to a storage was counted."""
        self._storages[id(storage)] = storage

    def written(self, tensors: list[Any]) -> list[Any]:
        """The storages that are there after the step and are written to in it; those of arguments as their numbers."""
        of_arguments = [k for k, x in enumerate(tensors) if id(x.storage) in self._storages]
        buffers = [(storage, self.find(storage.array)) for storage in self._storages.values()]
        return of_arguments + [x for x, found in buffers if found is not None and found.kind == KEPT and found.written]

    def elements_drawn(self, generator: Any, first: int, count: int) -> tuple[Any, Any]:
        """The key and the place of numbers that were drawn, as they will be whenever the step runs."""
        draw = self.draws.get(id(generator))
        if draw is None:
            draw = self.draws[id(generator)] = Draw(generator, self.book, generator._drawn - count)
        offset = first - draw.first  # with the offset of `Generator.rows`
        if offset % FAR != draw.count:
            self.unstable = "a generator was advanced by another thread"
        draw.count += count
        if draw.seeded:
            return generator._seed, first
        return draw.seed, draw.place + offset if offset else draw.place

    def generator_seeded(self, generator: Any) -> None:
        """A generator begins the numbers of a seed: they are the same whenever the step runs."""
        self.draws[id(generator)] = Draw(generator)

    def optimizer_stepping(self, optimizer: Any) -> None:
        """An optimizer is about to step: from here on its numbers are traced."""
        if id(optimizer) not in self.optimizers:
            self.optimizers[id(optimizer)] = Numbers(self.book, optimizer)
        self.optimizers[id(optimizer)].steps += 1

    def option_read(self, optimizer: Any, name: str, x: Any) -> Any:
        """The element of a tensor that is an option of an optimizer, which is read again at each call."""
        what = f"{name} of {optimizer.name}"
        self._options[id(x)] = x, what
        array = x._array
        number = self.book.source(lambda: memory(place_of(array)).host(array).reshape(-1)[0].item(), what)
        return number if optimizer.traceable else self.book.condition(number.name, number.value, what)

    def module_called(self, module: Any) -> None:
        """A module is called: it may be one that nothing else leads to."""
        self._reach.add(module, type(module).__name__)

    def hooks_read(self, node: Any) -> None:
        """The backward pass calls the hooks of a node, of which a leaf may be from before the step."""
        if node._op is None and isinstance(node, Tensor) and id(node) not in self.hooked:
            hooks = tuple(node._note("hooks", {}).values())
            self.hooked[id(node)] = node, hooks, "a leaf"
            for hook in hooks:
                self._reach.add(hook, "a hook of a leaf")


_BRANCHES = ("if", "elif", "while", "assert")


def _of_reading(line: str) -> str:
    """Why an element cannot be read at a line of the user's, and what to write instead."""
    text = line.rpartition(": ")[2].strip()
    keyword = text.split(" ")[0].split("(")[0]
    at = f", at {line}" if line else ""
    if keyword == "assert":
        return (
            f"jit: an assert reads a tensor while the step is captured{at}\n"
            "  A replayed trace runs without Python, so it would check nothing: return the tensor, and assert outside."
        )
    if keyword in _BRANCHES or " if " in text:
        branch = keyword if keyword in _BRANCHES else "if"
        return (
            f"jit: data-dependent control flow: `{branch}` reads a tensor while the step is captured{at}\n"
            "  A replayed trace would always take the branch that was captured: write mg.where(condition, a, b), or\n"
            "  decide outside of the step and pass the decision as an argument."
        )
    return (
        f"jit: a value is read while the step is captured{at}\n"
        "  The step is captured once, and then runs without Python: return the tensor, and read it outside.\n"
        "  Inside, choose by mg.where(condition, a, b)."
    )


def _line() -> str:
    line = caller_line()
    return f", at {line}" if line else "."
