"""`Recorder`: records the calls of PyTorch functions, the modules that make them, and the backward passes that follow.

Three mechanisms of PyTorch are combined, none of which changes the user's objects:

- a `TorchFunctionMode` is called for each function that the user calls, such as ``torch.nn.functional.linear``,
- a `TorchDispatchMode` is called for the ATen operations that this function runs, such as ``aten.addmm``, with their
  tensors; the sequence number of the autograd node that PyTorch has just created identifies its ``grad_fn``,
- global module hooks give the module in which the call is made.

A hook on each ``grad_fn`` records the user's own backward pass, whenever that is run. The recording contains no
autograd node, so it does not keep the graph alive; the graph's hooks keep the recording alive.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import torch
from torch.nn.modules import module as module_hooks
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from minigrad.core.grad_mode import Scope
from minigrad_viz.trace.torch.arguments import memory_key, returns_view, tensors_in, with_values, written_arguments
from minigrad_viz.trace.torch.backward import BackwardObserver
from minigrad_viz.trace.torch.internals import (
    graph_task_id,
    memory_version,
    next_sequence_number,
    sequence_number,
)
from minigrad_viz.trace.torch.rows import FunctionCall, FunctionFailure, OperationCall, TensorValue
from minigrad_viz.trace.torch.source_lines import caller_line
from minigrad_viz.trace.torch.summaries import copy_to_host, dtype_name, has_same_values

__all__ = ["RECORDINGS", "Recorder", "TorchRecording"]

RECORDINGS: weakref.WeakSet[TorchRecording] = weakref.WeakSet()
_NUMBERS = count()
_latest: TorchRecording | None = None
"""The latest recording, kept alive for results without a graph; the hooks of a graph keep the others alive."""


class TorchRecording:
    """The recorded calls and values, and the backward passes through them."""

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        self.functions: list[FunctionCall] = []
        self.calls: list[OperationCall] = []
        self.values: list[TensorValue] = []
        self.value_of_output: dict[tuple[int, int], int] = {}
        """The value of each output of an autograd node, by the node's sequence number and the index of the output."""
        self.call_of_node: dict[int, OperationCall] = {}
        """The call that created an autograd node, by sequence number."""
        self.observer = BackwardObserver(self)
        self.failure: FunctionFailure | None = None
        """The last call that raised an error."""
        self.tensors: dict[int, tuple[weakref.ref[torch.Tensor], int, Any, int | None]] = {}
        """By id of a tensor: the tensor, its value, the state of its memory, and the number of its ``grad_fn``."""
        self.in_place_calls: list[tuple[int, OperationCall]] = []
        """In-place operations, with the sequence number that follows them."""
        RECORDINGS.add(self)

    def value_of(self, x: torch.Tensor) -> TensorValue | None:
        """Return the recorded value of a tensor that still has it, or None."""
        entry = self.tensors.get(id(x))
        if entry is None or entry[0]() is not x:
            return None
        return self.values[entry[1]]


class Recorder:
    """Context manager that records what is computed in the current thread; use `minigrad_viz.record`."""

    def __init__(self) -> None:
        self.recording = TorchRecording()
        self._is_copying = False
        self._function = -1
        self._scope: Scope | None = None
        self._sequence_number = 0
        self._value_in_memory: dict[Any, int] = {}  # outputs of the current function, by memory and strides
        self._writes: dict[int, list[int]] = {}  # by address of a storage, the values of in-place operations
        self._module_paths: dict[int, tuple[Any, dict[int, str]]] = {}
        self._contexts: list[Any] = []

    def __enter__(self) -> TorchRecording:
        self._sequence_number = next_sequence_number()
        self._contexts = [*_without_compilation(), _FunctionMode(self), _DispatchMode(self)]
        for context in self._contexts:
            context.__enter__()
        self._handles = [
            module_hooks.register_module_forward_pre_hook(self._enter_module),
            module_hooks.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self.recording

    def __exit__(self, *error: Any) -> None:
        global _latest
        _latest = self.recording
        for handle in self._handles:
            handle.remove()
        for context in reversed(self._contexts):
            context.__exit__(*error)

    @property
    def _is_paused(self) -> bool:
        """Whether PyTorch is called by the recorder itself."""
        return self._is_copying or self.recording.observer.is_active

    @contextmanager
    def _copying(self) -> Iterator[None]:
        self._is_copying = True
        try:
            yield
        finally:
            self._is_copying = False

    # --- modules -----------------------------------------------------------------------------------------------------

    def _enter_module(self, module: torch.nn.Module, args: Any) -> None:
        outer = self._scope
        path = "" if outer is None else self._paths_in(outer.module).get(id(module), "")
        scope = Scope(path or type(module).__name__.lstrip("_"), outer)
        scope.module = module
        self._scope = scope

    def _leave_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        while self._scope is not None:  # a module whose call raised before its hooks ran is left as well
            scope, self._scope = self._scope, self._scope.outer
            if scope.module is module:
                break

    def _paths_in(self, module: Any) -> dict[int, str]:
        if id(module) not in self._module_paths:
            self._module_paths[id(module)] = module, {id(part): path for path, part in module.named_modules()}
        return self._module_paths[id(module)][1]

    # --- functions ---------------------------------------------------------------------------------------------------

    def call_function(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function of PyTorch, and record it if it runs an operation."""
        name = getattr(function, "__name__", "")
        if self._is_paused or name == "__get__":
            return function(*args, **kwargs)
        recording, outer_function = self.recording, self._function
        first_call = len(recording.calls)
        self._function = len(recording.functions)
        recording.functions.append(FunctionCall(name, [], None))
        self._value_in_memory.clear()
        arguments = list(tensors_in((args, kwargs)))
        try:
            output = function(*args, **kwargs)
            if len(recording.calls) > first_call:
                record = recording.functions[self._function]
                record.line = caller_line()
                record.arguments = [self._value_index(x, update=False) for x in arguments]
                for x in tensors_in(output):
                    self._value_index(x)
                    node, _ = _grad_fn(x)
                    if node is not None:
                        recording.observer.observe(node)
        except Exception as error:
            recording.failure = FunctionFailure(name, list(map(weakref.ref, arguments)), caller_line(), id(error))
            raise
        finally:
            self._function = outer_function
        return output

    # --- operations --------------------------------------------------------------------------------------------------

    def call_operation(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """Run an ATen operation and record it."""
        if self._is_paused or (graph_task_id() >= 0 and not torch.is_grad_enabled()):
            return operation(*args, **kwargs)  # a backward pass without a graph of its own is observed node by node
        operands = [(x, self._value_index(x)) for x in tensors_in((args, kwargs))]
        output = operation(*args, **kwargs)
        creates_node = torch.is_grad_enabled() and any(x.requires_grad for x, _ in operands)
        next_number = next_sequence_number()
        node = next_number - 1 if creates_node and next_number > self._sequence_number else None
        self._sequence_number = next_number
        recording = self.recording
        written = written_arguments(operation, args, kwargs)
        if node is None and creates_node and written and self._has_saved_copy(operands[0][1], next_number - 1):
            node = next_number - 2  # that of the copy follows it
        value_by_id = {id(x): value for x, value in operands}
        call = OperationCall(
            len(recording.calls),
            operation,
            with_values(args, value_by_id),
            {name: with_values(x, value_by_id) for name, x in kwargs.items()},
            [value for _, value in operands],
            node,
            self._function,
            self._scope,
        )
        recording.calls.append(call)
        if node is not None:
            recording.call_of_node[node] = call
        self._record_outputs(call, operands, output, written)
        return output

    def _has_saved_copy(self, operand: int, node: int) -> bool:
        """Whether autograd has just copied an operand that an in-place operation modifies, which created `node`."""
        calls = self.recording.calls
        return bool(calls) and calls[-1].name == "clone" and calls[-1].node == node and calls[-1].operands == [operand]

    def _record_outputs(
        self, call: OperationCall, operands: list[Any], output: Any, written: list[torch.Tensor]
    ) -> None:
        recording = self.recording
        is_view = bool(operands) and returns_view(call.operation)
        base = recording.values[operands[0][1]].values if is_view else None
        written_ids = {id(x) for x in written}
        for x in written:
            value = self._add_value(x, call, len(call.outputs))
            self._writes.setdefault(_storage_address(x), []).append(value)
            recording.tensors[id(x)] = weakref.ref(x), value, self._state(x, 1), call.node
            recording.in_place_calls.append((self._sequence_number, call))
        for x in tensors_in(output):
            if id(x) in written_ids:
                continue
            value = self._add_value(x, call, len(call.outputs), base)
            self._value_in_memory[memory_key(x)] = value
            if not is_view:  # autograd returns a view as another object
                recording.tensors[id(x)] = weakref.ref(x), value, self._state(x), call.node

    # --- values ------------------------------------------------------------------------------------------------------

    def _add_value(self, x: torch.Tensor, call: OperationCall | None, output: int, base: Any = None) -> int:
        recording = self.recording
        index = len(recording.values)
        with self._copying():
            is_uninitialised = call is not None and call.name.startswith(("empty", "new_empty"))
            values = None if is_uninitialised else copy_to_host(x, base)
        is_leaf = call is None and _grad_fn(x)[0] is None
        recording.values.append(
            TensorValue(index, tuple(x.shape), dtype_name(x.dtype), str(x.device), values, call, x if is_leaf else None)
        )
        if call is not None:
            call.outputs.append(index)
            if call.node is not None:
                recording.value_of_output[call.node, output] = index
        return index

    def _value_index(self, x: torch.Tensor, update: bool = True) -> int:
        """Return the index of the value that a tensor has now; add one if it was computed or modified unseen.

        With `update` False, return its last known value, as an operand may have been modified by the call.
        """
        recording = self.recording
        entry = recording.tensors.get(id(x))
        is_known = entry is not None and entry[0]() is x
        if is_known and not update:
            return entry[1]  # type: ignore[index]
        node, is_leaf = _grad_fn(x)
        if is_known and is_leaf and recording.values[entry[1]].tensor is None:  # type: ignore[index]
            is_known = False  # computed, and then made a leaf
        number, state = (None if node is None else sequence_number(node)), self._state(x)
        if is_known and (number is None or number == entry[3]) and self._is_unchanged(x, entry, state):  # type: ignore[index]
            return entry[1]  # type: ignore[index]
        if number is not None:
            index = recording.value_of_output.get((number, x.output_nr))
            is_modified = is_known and entry[2] != state and number == entry[3]  # type: ignore[index]
            if index is None or is_modified:
                index = self._add_value(x, None, 0)
                recording.values[index].scope = self._scope
                recording.values[index].is_modified = is_modified
            if not is_modified:
                recording.value_of_output[number, x.output_nr] = index
            recording.values[index].node = number, x.output_nr
        elif is_known and not is_leaf:  # modified through another tensor that shares its memory
            index = self._add_modified_value(x)
        else:
            index = -1 if is_leaf else self._value_in_memory.get(memory_key(x), -1)
            if index < 0 or recording.values[index].shape != tuple(x.shape):
                index = self._add_value(x, None, 0)
        recording.tensors[id(x)] = weakref.ref(x), index, state, number
        return index

    def _add_modified_value(self, x: torch.Tensor) -> int:
        index = self._add_value(x, None, 0)
        value, writes = self.recording.values[index], self._writes.get(_storage_address(x))
        if writes:
            value.tensor, value.written_by = None, writes[-1]
        return index

    def _is_unchanged(self, x: torch.Tensor, entry: Any, state: tuple[int, int]) -> bool:
        """Whether `x` has the values of its entry. An operation on the same storage may have modified other elements,
        as in an LSTM, whose gates share memory.
        """
        if entry[2] == state or entry[2][0] != state[0]:
            return bool(entry[2] == state)
        with self._copying():
            return has_same_values(copy_to_host(x), self.recording.values[entry[1]].values)

    def _state(self, x: torch.Tensor, coming_versions: int = 0) -> tuple[int, int]:
        """Return what changes when the memory of `x` is modified: its version, which counts the operations on its
        views too, and the number of recorded operations, which counts those on ``x.data`` too.
        """
        return memory_version(x) + coming_versions, len(self._writes.get(_storage_address(x), ()))


class _FunctionMode(TorchFunctionMode):
    """Passes the calls of PyTorch functions to a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._recorder.call_function(func, args, kwargs or {})


class _DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Passes the ATen operations that are run to a recorder."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # PyTorch would import its compiler, which takes seconds

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._recorder.call_operation(func, args, kwargs or {})


def _without_compilation() -> Iterator[Any]:
    """Yield a context in which functions that were compiled run eagerly, if the compiler was imported."""
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
        yield torch.compiler.set_stance("force_eager")


def _grad_fn(x: torch.Tensor) -> tuple[Any, bool]:
    """Return the ``grad_fn`` of a tensor, and whether it is a leaf that requires a gradient.

    For an output of ``unbind`` whose base was modified in-place, PyTorch raises an error when it is asked for either.
    """
    try:
        return x.grad_fn, x.requires_grad and x.is_leaf
    except RuntimeError:
        return None, False


def _storage_address(x: torch.Tensor) -> int:
    try:
        return x.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # sparse tensors have no storage
        return id(x)
