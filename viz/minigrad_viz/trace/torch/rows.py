"""The rows of a recording: functions that the user called, ATen operations, and the values of tensors."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

from minigrad.core.grad_mode import Scope
from minigrad_viz.trace.torch.internals import schema_of

__all__ = ["FunctionCall", "FunctionFailure", "OperationCall", "TensorArgument", "TensorValue"]


@dataclass(slots=True)
class TensorValue:
    """A tensor at one moment: an in-place operation gives the tensor another value."""

    index: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    values: Any
    """The elements, as `copy_to_host` returns them."""
    call: OperationCall | None
    """The operation that computed it; None for a leaf, and for an output of an autograd node that no call created."""
    tensor: Any
    """The tensor itself if it is a leaf, else None."""
    node: tuple[int, int] | None = None
    """The sequence number of its ``grad_fn`` and its index among that node's outputs, once known."""
    scope: Scope | None = None
    is_modified: bool = False
    """Whether it is the output of a node, modified through a detached tensor that shares its memory."""
    written_by: int = -1
    """The value whose in-place computation modified the memory of this tensor; -1 if there is none."""


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """The place of a tensor in the arguments of a `OperationCall`."""

    value: int


@dataclass(slots=True)
class FunctionCall:
    """One call of a PyTorch function by the user: its name, and the values of its tensor arguments."""

    name: str
    arguments: list[int]
    line: str | None


@dataclass(slots=True)
class FunctionFailure:
    """A call of a PyTorch function that raised an error.

    It refers to the tensors weakly: the hooks of their graph refer to the recording, and Python's garbage collector
    finds no cycle through autograd nodes. The traceback of the error keeps the tensors alive.
    """

    name: str
    tensors: list[weakref.ref[Any]]
    line: str | None
    error: int
    """The id of the error."""


@dataclass(slots=True, eq=False)
class OperationCall:
    """One ATen operation, with its arguments, in which `TensorArgument` stands for a tensor."""

    index: int
    operation: Any
    args: Any
    kwargs: dict[str, Any]
    operands: list[int]
    """The values of its tensor arguments, in order."""
    node: int | None
    """The sequence number of the autograd node that was created for it, or None."""
    function: int
    """The index of the user's function call, or -1."""
    scope: Scope | None
    outputs: list[int] = field(default_factory=list)
    """The values that it computed, those of modified arguments first."""

    @property
    def name(self) -> str:
        """The name of the operation without its namespace and overload, such as "addmm"."""
        return str(schema_of(self.operation).name).rpartition("::")[2]
