"""Capture: the kernel calls of one run of a step, with the buffers that they read and write.

While the step runs eagerly, a tap receives each kernel call, and allocations and reads of arrays are observed. Arrays
that existed before the step are identified by their memory, so a replayed call reads a parameter's current value.
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

UNKNOWN_SHAPE = ("nonzero",)  # operations whose output shape depends on the elements


class Capture(Effects):
    """Observer of the effects of a step. `arguments` are the arrays of its tensor arguments.

    Modules and hooks that the step calls are added to `reach`. Unless `fullgraph`, the first graph break is stored in
    `refused`, and the step continues eagerly.
    """

    def __init__(self, arguments: list[Any], reach: Reach, fullgraph: bool = True) -> None:
        self._reach, self._fullgraph = reach, fullgraph
        self.refused = ""
        self.nodes: list[KernelCall] = []
        self.book = Book()
        self.grads: dict[
            int, tuple[Any, Any, bool]
        ] = {}  # id -> tensor whose `grad` changed, its previous `grad`, whether it was accumulated into
        self.grads_read: dict[int, tuple[Any, Any]] = {}  # id -> tensor whose previous `grad` was read, and that `grad`
        self.optimizers: dict[int, Numbers] = {}
        self.hooked: dict[int, tuple[Any, tuple[Any, ...], str]] = {}  # id -> leaf, its hooks before the step, its name
        self.draws: dict[int, Draw] = {}
        self.buffers: list[Buffer] = []
        self.unstable = ""  # why a replay would differ: the step changed state that it also reads
        self._storages: dict[int, Any] = {}  # storages that the step wrote to
        self._options: dict[int, tuple[Any, str]] = {}  # tensors that hold an optimizer's option
        self._linked: list[Any] = []  # tensors that an in-place write gave another graph
        self._alive: list[Any] = []  # references that prevent the reuse of addresses and ids
        self._of_root: dict[int, Buffer] = {}
        self._of_argument = [(root_of(x), span_of(x), self._added(ARGUMENT, x, x)) for x in arguments]

    def _refuse(self, message: str) -> None:
        if self._fullgraph:
            raise CaptureError(message)
        self.refused = self.refused or message

    def trace_optimizers(self) -> None:
        """Make the options and counters of optimizers symbolic before the step, since it may read them itself."""
        for optimizer in filter(lambda one: one.traceable, self._reach.optimizers):
            self.optimizers[id(optimizer)] = Numbers(self.book, optimizer)

    def forget_own_leaves(self, known: set[int]) -> None:
        """Drop the gradients of leaves that the step created and that are dead: a replay creates others."""
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

    # --- observed effects ---

    def run(self, function: Callable[[], Any]) -> Any:
        """Run `function` under observation and return its result."""
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
                f"jit: the output shape of {call.op} depends on the elements{_line()}\n"
                "  Use mg.where(condition, x, 0) in place of x[condition], or call it outside of the step."
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
                return  # a view: no kernel ran
            outs = tuple([self.view(x, TEMPORARY) for x in arrays])
        step = modes.passing
        whose = (modes.scope, "") if step is None else (step.scope, step._op.name)
        self.nodes.append(
            KernelCall(call.op, call.device, inputs, dict(call.attrs), outs, call.out is not None, *whose)
        )

    def view(self, array: Any, kind: str = KEPT) -> View:
        """Return the view that describes an array; memory seen for the first time becomes a buffer of this kind."""
        buffer = self.find(array)
        if buffer is None:
            root = root_of(array)
            buffer = self._of_root[id(root)] = self._added(kind, root, array)
        self._alive.append(array)
        return View(buffer, start_of(array) - start_of(buffer.array), array.shape, array.strides, array.dtype)

    def find(self, array: Any) -> Buffer | None:
        """Return the buffer that contains an array, None if it is unknown."""
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
        """Return the allocator with its allocations recorded."""

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
        """Refuse a read of a tensor's elements."""
        self._refuse(_of_reading(caller_line()))

    def grad_changed(self, tensor: Any, added: bool) -> None:
        """Record that `grad` of a tensor is about to change, by a backward pass (`added`) or by assignment."""
        self.grads.setdefault(id(tensor), (tensor, tensor._grad, added))

    def grad_read(self, tensor: Any) -> None:
        """Record that `grad` of a tensor is read, which may date from before the step."""
        if id(tensor) not in self.grads:
            self.grads_read.setdefault(id(tensor), (tensor, tensor._grad))

    def generator_state_read(self, what: str) -> None:
        """Refuse a read of a generator's state, which differs between runs."""
        self._refuse(
            f"jit: {what} of a generator is read while the step is traced{_line()}\n"
            "  A replay would use the same value at each call: read it outside. manual_seed(k) may be called inside."
        )

    def graph_rebased(self, tensor: Any) -> None:
        """Record that an in-place write moved a tensor to another node of the graph."""
        self._linked.append(tensor)

    def metadata_changed(self, tensor: Any, name: str) -> None:
        """Refuse to make a tensor from outside the step a view of its old self, which a replay would not do."""
        buffer = self.find(tensor._array)
        if tensor._base is None and (buffer is None or buffer.kind in (ARGUMENT, KEPT)):
            self._refuse(
                f"jit: {name}_ changes the shape of a tensor from outside the step, of shape {tensor.shape}{_line()}\n"
                f"  It calls no kernel, so a replay would not do it: write y = x.{name}(…), or call it outside."
            )

    def _check_links(self) -> None:
        for x in self._linked:
            buffer = self.find(x._array)
            if x.grad_fn is not None and buffer is not None and buffer.kind == KEPT:
                self._refuse(
                    f"jit: the step writes a value that requires grad to a tensor of shape {x.shape} from outside the "
                    f"step, by {x.grad_fn.name}. Its graph would grow at each call, but a replay builds none.\n"
                    "  Write x.detach() into it, or inside mg.no_grad(); or return the new value."
                )

    def storage_written(self, storage: Any) -> None:
        """Record a write to a storage."""
        self._storages[id(storage)] = storage

    def written(self, tensors: list[Any]) -> list[Any]:
        """Return the storages that the step wrote to and that outlive it; arguments as indices into `tensors`."""
        of_arguments = [k for k, x in enumerate(tensors) if id(x.storage) in self._storages]
        buffers = [(storage, self.find(storage.array)) for storage in self._storages.values()]
        return of_arguments + [x for x, found in buffers if found is not None and found.kind == KEPT and found.written]

    def elements_drawn(self, generator: Any, first: int, count: int) -> tuple[Any, Any]:
        """Return the seed and offset of random values that the step draws, symbolic so that replays draw new ones."""
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
        """Record that the step seeds a generator: each replay draws the same values."""
        self.draws[id(generator)] = Draw(generator)

    def optimizer_stepping(self, optimizer: Any) -> None:
        """Make an optimizer's options and counters symbolic before it steps."""
        if id(optimizer) not in self.optimizers:
            self.optimizers[id(optimizer)] = Numbers(self.book, optimizer)
        self.optimizers[id(optimizer)].steps += 1

    def option_read(self, optimizer: Any, name: str, x: Any) -> Any:
        """Return a symbolic value for an optimizer's option stored in a tensor, which each replay reads again."""
        what = f"{name} of {optimizer.name}"
        self._options[id(x)] = x, what
        array = x._array
        number = self.book.source(lambda: memory(place_of(array)).host(array).reshape(-1)[0].item(), what)
        return number if optimizer.traceable else self.book.condition(number.name, number.value, what)

    def module_called(self, module: Any) -> None:
        """Guard a module that the step calls, as it may be unreachable otherwise."""
        self._reach.add(module, type(module).__name__)

    def hooks_read(self, node: Any) -> None:
        """Record and guard the hooks that the backward pass calls on a leaf, which may predate the step."""
        if node._op is None and isinstance(node, Tensor) and id(node) not in self.hooked:
            hooks = tuple(node._note("hooks", {}).values())
            self.hooked[id(node)] = node, hooks, "a leaf"
            for hook in hooks:
                self._reach.add(hook, "a hook of a leaf")


_BRANCHES = ("if", "elif", "while", "assert")


def _of_reading(line: str) -> str:
    """Return the message for a read of an element at a line of the user's code, with what to write instead."""
    text = line.rpartition(": ")[2].strip()
    keyword = text.split(" ")[0].split("(")[0]
    at = f", at {line}" if line else ""
    if keyword == "assert":
        return (
            f"jit: an assert reads a tensor while the step is traced{at}\n"
            "  A replay runs without Python and would check nothing: return the tensor, and assert outside."
        )
    if keyword in _BRANCHES or " if " in text:
        branch = keyword if keyword in _BRANCHES else "if"
        return (
            f"jit: data-dependent control flow: `{branch}` reads a tensor while the step is traced{at}\n"
            "  A replay would always take the branch taken while tracing: write mg.where(condition, a, b), or\n"
            "  decide outside of the step and pass the decision as an argument."
        )
    return (
        f"jit: an element of a tensor is read while the step is traced{at}\n"
        "  The step is traced once, and then runs without Python: return the tensor, and read it outside.\n"
        "  Inside, select by mg.where(condition, a, b)."
    )


def _line() -> str:
    line = caller_line()
    return f", at {line}" if line else "."
