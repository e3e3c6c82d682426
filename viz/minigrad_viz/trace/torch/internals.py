"""The parts of PyTorch's autograd engine that it does not document, in one place.

They have existed since PyTorch 2.4: the sequence numbers with which its profiler relates forward to backward
operations, the metadata of gradients that AOTAutograd reads, and the schemas of ATen operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parameter import is_lazy

__all__ = [
    "call_after_backward",
    "disable_function_modes",
    "gradient_metadata",
    "graph_task_id",
    "has_hooks",
    "is_plain",
    "memory_version",
    "next_sequence_number",
    "saved_result",
    "schema_of",
    "sequence_number",
]

disable_function_modes = torch._C.DisableTorchFunctionSubclass
"""Context manager in which no `TorchFunctionMode` is called."""


def sequence_number(node: Any) -> int:
    """Return the number of an autograd node: nodes are numbered in each thread, in the order of their creation."""
    return int(node._sequence_nr())


def next_sequence_number() -> int:
    """Return the number of the autograd node that the current thread will create next."""
    return int(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]


def gradient_metadata(node: Any) -> list[Any]:
    """Return the ``shape``, ``dtype`` and ``device`` of the gradient of each output of an autograd node."""
    return list(node._input_metadata)


def graph_task_id() -> int:
    """Return the id of the backward pass that the engine is running in the current thread."""
    return int(torch._C._current_graph_task_id())


def saved_result(node: Any) -> torch.Tensor | None:
    """Return the output that an autograd node saved for the backward pass; None if it was freed."""
    try:
        return node._saved_result  # type: ignore[no-any-return]
    except RuntimeError:
        return None


def schema_of(operation: Any) -> Any:
    """Return the schema of an ATen operation: its name, its arguments and what it returns."""
    return operation._schema


def has_hooks(x: torch.Tensor | torch.nn.Module) -> bool:
    """Whether a hook was registered on the gradient of a tensor, or on the gradients of a module."""
    return bool(x._backward_hooks) or bool(getattr(x, "_backward_pre_hooks", None))


def is_plain(x: torch.Tensor) -> bool:
    """Whether `x` has elements of its own: it has a shape, is not nested, and is not the wrapper of `torch.func`."""
    return not (is_lazy(x) or x.is_nested or torch._C._functorch.is_functorch_wrapped_tensor(x))


def call_after_backward(function: Callable[[], None]) -> None:
    """Call `function` when the backward pass that the engine is running has finished without an error."""
    torch.autograd.Variable._execution_engine.queue_callback(function)


def memory_version(x: torch.Tensor) -> int:
    """Return the number of in-place operations on the memory of `x`; 0 for inference tensors, which have none."""
    return 0 if x.is_inference() else x._version
