"""Capture of the kernel calls of one run of a step, with the buffers that they read and write.

While the step runs eagerly, a tap receives each kernel call, and allocations and reads of arrays are observed. Arrays
that existed before the step are identified by their memory, so that a replayed call reads a parameter's current value.
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
    EXISTING,
    FULL,
    TEMPORARY,
    Buffer,
    CallNode,
    View,
    address_of,
    address_range,
    memory_owner,
)
from minigrad.compiler.jit.reach import Reach
from minigrad.compiler.jit.scalars import GeneratorDraws, OptimizerScalars
from minigrad.compiler.jit.watch import EntryWatch
from minigrad.core.dispatch import Call
from minigrad.core.effects import Effects, listen
from minigrad.core.errors import CaptureError, user_source_line
from minigrad.core.modes import modes
from minigrad.core.storage import DEVICE_BY_ARRAY_TYPE, Allocator, device_of, get_allocator
from minigrad.core.symbolic import SymbolicTrace, concrete
from minigrad.core.tensor import Tensor
from minigrad.random.generator import ROW_OFFSET

__all__ = ["DATA_DEPENDENT_OPS", "Capture"]

DATA_DEPENDENT_OPS = ("nonzero",)  # operations whose output shape depends on the elements


class Capture(Effects):
    """Observer of the effects of a step. `arguments` are the arrays of its tensor arguments.

    Modules and hooks that the step calls are added to `reach`. Unless `fullgraph`, the first graph break is stored in
    `graph_break`, and the step continues eagerly.
    """

    def __init__(self, arguments: list[Any], reach: Reach, fullgraph: bool = True) -> None:
        self._reach, self._fullgraph = reach, fullgraph
        self.graph_break = ""
        self.nodes: list[CallNode] = []
        self.symbols = SymbolicTrace()
        self.grads: dict[
            int, tuple[Any, Any, bool]
        ] = {}  # by id: the tensor, its previous `grad`, and whether a backward pass changed it
        self.grads_read: dict[int, tuple[Any, Any]] = {}  # by id: the tensor, and its `grad` before the step
        self.optimizers: dict[int, OptimizerScalars] = {}
        self.hooks_before: dict[
            int, tuple[Any, tuple[Any, ...], str]
        ] = {}  # by id: the leaf, its hooks before the step, and its name
        self.draws: dict[int, GeneratorDraws] = {}
        self.buffers: list[Buffer] = []
        self.instability = ""  # why a replay would differ, if the step changed state that it also reads
        self._written_storages: dict[int, Any] = {}  # storages that the step wrote to
        self._tensor_options: dict[int, tuple[Any, str]] = {}  # tensors that hold an optimizer's option
        self._rebased: list[Any] = []  # tensors that an in-place write moved to another graph node
        self._references: list[Any] = []  # references that prevent the reuse of addresses and ids
        self._buffer_of_root: dict[int, Buffer] = {}
        self._argument_buffers = [
            (memory_owner(x), address_range(x), self._add_buffer(ARGUMENT, x, x)) for x in arguments
        ]

    def _break_graph(self, message: str) -> None:
        if self._fullgraph:
            raise CaptureError(message)
        self.graph_break = self.graph_break or message

    def trace_optimizers(self) -> None:
        """Make the options and counters of optimizers symbolic before the step runs, since the step may read them."""
        for optimizer in filter(lambda one: one.traceable, self._reach.optimizers):
            self.optimizers[id(optimizer)] = OptimizerScalars(self.symbols, optimizer)

    def drop_dead_leaves(self, live_ids: set[int]) -> None:
        """Drop the recorded gradients of freed leaves that the step created, since a replay creates new leaves."""
        for optimizer in self.optimizers.values():
            live_ids |= {id(p) for group in optimizer.optimizer.param_groups for p in group["params"]}
        tables: tuple[dict[int, Any], ...] = self.grads, self.grads_read, self.hooks_before
        suspects = {key: weakref.ref(x[0]) for table in tables for key, x in table.items() if key not in live_ids}
        entries = [{key: x[1:] for key in suspects if (x := table.pop(key, None)) is not None} for table in tables]
        self._rebased.clear()
        x = None
        if any(suspect() is not None for suspect in suspects.values()):
            gc.collect()
        for table, entries_of_table in zip(tables, entries, strict=True):
            for key, entry in entries_of_table.items():
                if (alive := suspects[key]()) is not None:
                    table[key] = (alive, *entry)

    # --- observed effects ---

    def run(self, function: Callable[[], Any]) -> Any:
        """Run `function`, record its effects, and return its result."""
        try:
            with listen(self), EntryWatch(self._reach.enter) as self.entry_watch:
                result = function()
            self._check_rebased()
            return result
        finally:
            for optimizer_scalars in self.optimizers.values():
                self.instability = optimizer_scalars.restore_scalars() or self.instability
            self._reach.restore_scalars()
            for draw in self.draws.values():
                draw.record_state()
            for x, description in self._tensor_options.values():
                if id(x.storage) in self._written_storages:
                    self.instability = f"{description} was written to"

    def kernel_called(self, call: Call) -> None:
        if self.graph_break:
            return
        if call.op in DATA_DEPENDENT_OPS:
            self._break_graph(
                f"jit: the output shape of {call.op} depends on the elements{_location()}\n"
                "  Use mg.where(condition, x, 0) in place of x[condition], or call it outside of the step."
            )
        outputs = call.result if isinstance(call.result, tuple) else (call.result,)
        arrays = [x for x in outputs if x.__class__ in DEVICE_BY_ARRAY_TYPE]
        inputs = tuple([self.view(x) if x.__class__ in DEVICE_BY_ARRAY_TYPE else x for x in call.inputs])
        if call.out is not None:
            outs = tuple([self.view(x) for x in arrays])
            for view in outs:
                view.buffer.is_written = True
        else:
            if None not in map(self.find_buffer, arrays):
                return  # a view: no kernel ran
            outs = tuple([self.view(x, TEMPORARY) for x in arrays])
        step = modes.passing
        location = (modes.scope, "") if step is None else (step.scope, step._op.name)
        self.nodes.append(
            CallNode(call.op, call.device, inputs, dict(call.attrs), outs, call.out is not None, *location)
        )

    def view(self, array: Any, kind: str = EXISTING) -> View:
        """Return the view that describes an array. If its memory is unknown, add it as a buffer of this kind."""
        buffer = self.find_buffer(array)
        if buffer is None:
            root = memory_owner(array)
            buffer = self._buffer_of_root[id(root)] = self._add_buffer(kind, root, array)
        self._references.append(array)
        return View(buffer, address_of(array) - address_of(buffer.array), array.shape, array.strides, array.dtype)

    def find_buffer(self, array: Any) -> Buffer | None:
        """Return the buffer that contains an array, or None if the memory is unknown."""
        root = memory_owner(array)
        for owner, (first, end), buffer in self._argument_buffers:
            if owner is root:
                start, stop = address_range(array)
                if first <= start and stop <= end:
                    return buffer
        return self._buffer_of_root.get(id(root))

    def _add_buffer(self, kind: str, array: Any, sample: Any) -> Buffer:
        self.buffers.append(Buffer(kind, array, sample, len(self.buffers)))
        return self.buffers[-1]

    def memory_requested(self, allocator: Allocator) -> Allocator:
        """Return a wrapper of `allocator` that records its allocations."""

        def full(shape: tuple[int, ...], dtype: Any, value: Any) -> Any:
            array = allocator.full(shape, dtype, concrete(value))
            out = self.view(array, TEMPORARY)
            self.nodes.append(CallNode(FULL, device_of(array), (), {"value": value}, (out,), False))
            return array

        def empty(shape: tuple[int, ...], dtype: Any) -> Any:
            return full(shape, dtype, 0)

        def record_copy(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def copy(elements: Any) -> Any:
                array = make(elements)
                if self.find_buffer(array) is None:
                    out = self.view(array, TEMPORARY)
                    attrs = {"numbers": np.array(allocator.to_numpy(array))}
                    self.nodes.append(CallNode(CONSTANT, device_of(array), (), attrs, (out,), False))
                return array

            return copy

        return allocator._replace(full=full, empty=empty, copy=record_copy(allocator.copy))

    def values_read(self) -> None:
        """Break the graph, since the step reads elements of a tensor."""
        self._break_graph(_describe_read(user_source_line()))

    def grad_changed(self, tensor: Any, added: bool) -> None:
        """Record that `grad` of a tensor is about to change, by a backward pass (`added`) or by assignment."""
        self.grads.setdefault(id(tensor), (tensor, tensor._grad, added))

    def grad_read(self, tensor: Any) -> None:
        """Record that the step reads the `grad` of a tensor, which may date from before the step."""
        if id(tensor) not in self.grads:
            self.grads_read.setdefault(id(tensor), (tensor, tensor._grad))

    def generator_state_read(self, description: str) -> None:
        """Break the graph, since the step reads a generator's state, which differs between runs."""
        self._break_graph(
            f"jit: {description} of a generator is read while the step is traced{_location()}\n"
            "  A replay would use the same value at each call: read it outside. manual_seed(k) may be called inside."
        )

    def graph_rebased(self, tensor: Any) -> None:
        """Record that an in-place write moved a tensor to another node of the graph."""
        self._rebased.append(tensor)

    def metadata_changed(self, tensor: Any, name: str) -> None:
        """Break the graph if the step changes the shape of an outside tensor, which a replay would not repeat."""
        buffer = self.find_buffer(tensor._array)
        if tensor._base is None and (buffer is None or buffer.kind in (ARGUMENT, EXISTING)):
            self._break_graph(
                f"jit: {name}_ changes the shape of a tensor from outside the step, of shape "
                f"{tensor.shape}{_location()}\n"
                f"  It calls no kernel, so a replay would not do it: write y = x.{name}(…), or call it outside."
            )

    def _check_rebased(self) -> None:
        for x in self._rebased:
            buffer = self.find_buffer(x._array)
            if x.grad_fn is not None and buffer is not None and buffer.kind == EXISTING:
                self._break_graph(
                    f"jit: the step writes a value that requires grad to a tensor of shape {x.shape} from outside the "
                    f"step, by {x.grad_fn.name}. Its graph would grow at each call, but a replay builds none.\n"
                    "  Write x.detach() into it, or inside mg.no_grad(); or return the new value."
                )

    def storage_written(self, storage: Any) -> None:
        """Record a write to a storage."""
        self._written_storages[id(storage)] = storage

    def written_storages(self, tensors: list[Any]) -> list[Any]:
        """Return the storages that the step wrote to and that outlive the step. Storages of arguments are returned as
        indices into `tensors`."""
        argument_indices = [k for k, x in enumerate(tensors) if id(x.storage) in self._written_storages]
        buffers = [(storage, self.find_buffer(storage.array)) for storage in self._written_storages.values()]
        return argument_indices + [
            x for x, buffer in buffers if buffer is not None and buffer.kind == EXISTING and buffer.is_written
        ]

    def elements_drawn(self, generator: Any, first: int, count: int) -> tuple[Any, Any]:
        """Return the seed and offset of random values that the step draws. They are symbolic, so that replays draw new
        values."""
        draw = self.draws.get(id(generator))
        if draw is None:
            draw = self.draws[id(generator)] = GeneratorDraws(generator, self.symbols, generator._offset - count)
        offset = first - draw.first_offset  # includes the offset of `Generator.rows`
        if offset % ROW_OFFSET != draw.count:
            self.instability = "a generator was advanced by another thread"
        draw.count += count
        if draw.is_seeded:
            return generator._seed, first
        return draw.seed, draw.offset + offset if offset else draw.offset

    def generator_seeded(self, generator: Any) -> None:
        """Record that the step seeds a generator, so that each replay draws the same values."""
        self.draws[id(generator)] = GeneratorDraws(generator)

    def optimizer_stepping(self, optimizer: Any) -> None:
        """Make an optimizer's options and counters symbolic before it steps."""
        if id(optimizer) not in self.optimizers:
            self.optimizers[id(optimizer)] = OptimizerScalars(self.symbols, optimizer)
        self.optimizers[id(optimizer)].steps += 1

    def option_read(self, optimizer: Any, name: str, x: Any) -> Any:
        """Return a symbolic value for an optimizer's option stored in a tensor. Each replay reads the tensor again."""
        name_of_option = f"{name} of {optimizer.name}"
        self._tensor_options[id(x)] = x, name_of_option
        array = x._array
        symbol = self.symbols.add_input(
            lambda: get_allocator(device_of(array)).to_numpy(array).reshape(-1)[0].item(), name_of_option
        )
        return symbol if optimizer.traceable else self.symbols.add_guard(symbol.name, symbol.value, name_of_option)

    def module_called(self, module: Any) -> None:
        """Guard a module that the step calls, as it may be unreachable otherwise."""
        self._reach.add(module, type(module).__name__)

    def hooks_read(self, node: Any) -> None:
        """Record and guard the hooks that the backward pass calls on a leaf, which may predate the step."""
        if node._op is None and isinstance(node, Tensor) and id(node) not in self.hooks_before:
            hooks = tuple(node._get_extra("hooks", {}).values())
            self.hooks_before[id(node)] = node, hooks, "a leaf"
            for hook in hooks:
                self._reach.add(hook, "a hook of a leaf")


_BRANCH_KEYWORDS = ("if", "elif", "while", "assert")


def _describe_read(line: str) -> str:
    """Return the error message for reading an element at a line of the user's code, with an alternative."""
    source_line = line.rpartition(": ")[2].strip()
    keyword = source_line.split(" ")[0].split("(")[0]
    location = f", at {line}" if line else ""
    if keyword == "assert":
        return (
            f"jit: an assert reads a tensor while the step is traced{location}\n"
            "  A replay runs without Python and would check nothing: return the tensor, and assert outside."
        )
    if keyword in _BRANCH_KEYWORDS or " if " in source_line:
        branch = keyword if keyword in _BRANCH_KEYWORDS else "if"
        return (
            f"jit: data-dependent control flow: `{branch}` reads a tensor while the step is traced{location}\n"
            "  A replay would always take the branch taken while tracing: write mg.where(condition, a, b), or\n"
            "  decide outside of the step and pass the decision as an argument."
        )
    return (
        f"jit: an element of a tensor is read while the step is traced{location}\n"
        "  The step is traced once, and then runs without Python: return the tensor, and read it outside.\n"
        "  Inside, select by mg.where(condition, a, b)."
    )


def _location() -> str:
    line = user_source_line()
    return f", at {line}" if line else "."
