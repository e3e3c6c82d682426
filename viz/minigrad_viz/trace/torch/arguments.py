"""The tensors among the arguments and results of ATen operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch

from minigrad_viz.trace.torch.internals import is_plain, schema_of
from minigrad_viz.trace.torch.rows import TensorArgument

__all__ = ["memory_key", "returns_view", "tensors_in", "with_values", "written_arguments"]


def tensors_in(x: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested arguments or results, in order."""
    if isinstance(x, torch.Tensor):
        if is_plain(x):
            yield x
    elif isinstance(x, list | tuple):
        for part in x:
            yield from tensors_in(part)
    elif isinstance(x, dict):
        for part in x.values():
            yield from tensors_in(part)


def with_values(x: Any, value_by_id: Mapping[int, int]) -> Any:
    """Return arguments with a `TensorArgument` in place of each tensor."""
    if isinstance(x, torch.Tensor):
        return TensorArgument(value_by_id[id(x)]) if id(x) in value_by_id else None
    if isinstance(x, list | tuple):
        return tuple([with_values(part, value_by_id) for part in x])
    return x


def memory_key(x: torch.Tensor) -> Any:
    """Return what identifies a tensor while no other is created: its memory, shape and dtype."""
    if x.layout is not torch.strided:
        return id(x)
    return x.data_ptr(), x.shape, x.stride(), x.dtype


@cache
def returns_view(operation: Any) -> bool:
    """Whether an operation returns a view of its first argument."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in schema_of(operation).returns)


@cache
def _written_names(operation: Any) -> tuple[tuple[int, str], ...]:
    """Return the position and the name of each argument that an operation modifies."""
    arguments = enumerate(schema_of(operation).arguments)
    return tuple([(k, a.name) for k, a in arguments if a.alias_info is not None and a.alias_info.is_write])


def written_arguments(operation: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Return the tensors that an operation modifies, such as the first operand of ``add_``."""
    written: list[torch.Tensor] = []
    for position, name in _written_names(operation):
        written += tensors_in(args[position] if position < len(args) else kwargs.get(name))
    return written
