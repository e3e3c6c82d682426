"""`tidy`, which frees at the end of a block the memory of the tensors that were created in it and not kept.

Python frees a tensor when its last reference is dropped. But a notebook keeps many references: ``_``, ``Out[3]``, the
variables of old cells, the traceback of the last error; and graphs with reference cycles wait for the garbage
collector.
"""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from minigrad.core import tensor
from minigrad.core.errors import TidiedError, user_source_line
from minigrad.core.graph import topological
from minigrad.core.step import Step
from minigrad.core.tensor import Tensor

__all__ = ["Freed", "keep", "tidy"]


class Freed:
    """Placeholder for the array of a freed tensor; any access raises TidiedError."""

    __slots__ = ("_message",)

    def __init__(self, x: Tensor, line: str) -> None:
        self._message = f"a {x.dtype.name} tensor of shape {x.shape} was freed by mg.tidy() at {line}"

    def __repr__(self) -> str:
        return f"<{self._message}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise TidiedError(
            f"{self._message}\n  Keep what you need after the block: y = mg.keep(y) in it, or return it from a "
            "function under @mg.tidy; for a scalar, y.item()."
        )

    __class__ = property(lambda self: self.__getattr__("__class__"))  # read to determine the device


class _TidyState(threading.local):
    def __init__(self) -> None:
        self.blocks: list[_TidyBlock] = []  # active blocks of this thread, innermost last


_tidy_state = _TidyState()
_lock, _new_untracked = threading.Lock(), tensor._new_tensor
_open_count = 0  # Number of active blocks in all threads. If it is 0, creating a tensor has no overhead.


def _new_tracked(cls: type[Tensor]) -> Tensor:
    """Create a tensor that is tracked by the innermost `tidy` block."""
    out = _new_untracked(cls)
    if _tidy_state.blocks:
        _tidy_state.blocks[-1].track(out)
    return out


def tidy(function: Callable[..., Any] | None = None) -> Any:
    """Context manager or decorator that frees on exit the tensors that were created in it and not kept.

    The following are kept: tensors passed to `keep`, the return value of the function (also in lists, tuples and
    dicts), the `grad` of older tensors, and the tensors that their graphs need. Tensors created before the block, such
    as parameters, and those of other threads are not affected. Using a freed tensor raises TidiedError with the line of
    the block. Tensors are also freed if an exception leaves the block. Exiting inspects all Python objects, which takes
    some milliseconds: use `tidy` per cell or epoch, not per step.

    >>> import minigrad as mg
    >>> w = mg.ones(3, requires_grad=True)
    >>> with mg.tidy():
    ...     h = w * 2.0
    ...     loss = mg.keep((h * h).sum())
    >>> loss.backward()
    >>> w.grad, h
    (tensor([8., 8., 8.]), tensor([2., 2., 2.], grad_fn=<MulBackward>))
    """
    if function is None:
        return _TidyBlock()

    @functools.wraps(function)
    def call_in_block(*args: Any, **keywords: Any) -> Any:
        with _TidyBlock() as block:
            result = function(*args, **keywords)
            block.kept_tensors += _tensors_in(result)
        return result

    return call_in_block


def keep(x: Any) -> Any:
    """Exclude `x`, a tensor or nested lists, tuples and dicts, from the enclosing `tidy` blocks, and return it."""
    tensors = list(_tensors_in(x))
    for block in _tidy_state.blocks:
        block.kept_tensors += tensors
    return x


class _TidyBlock:
    def __init__(self) -> None:
        self.kept_tensors: list[Tensor] = []
        self._created: list[weakref.ref[Tensor]] = []
        self._prune_limit = 1024

    def track(self, x: Tensor) -> None:
        self._created.append(weakref.ref(x))
        if len(self._created) > self._prune_limit:  # Remove the dead references, usually the majority.
            self._created = [reference for reference in self._created if reference() is not None]
            self._prune_limit = 2 * len(self._created) + 1024

    def __enter__(self) -> _TidyBlock:
        global _open_count
        with _lock:
            _open_count += 1
            tensor._new_tensor = _new_tracked  # type: ignore[assignment]
        _tidy_state.blocks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        global _open_count
        _tidy_state.blocks.remove(self)
        with _lock:
            _open_count -= 1
            if not _open_count:
                tensor._new_tensor = _new_untracked
        created = {id(x): x for reference in self._created if (x := reference()) is not None}
        kept_ids = _reachable_ids([*self.kept_tensors, *_gradients(created)])
        line = user_source_line()
        for name, x in created.items():
            if name not in kept_ids:
                _free(x, line)
            elif _tidy_state.blocks:
                _tidy_state.blocks[-1].track(x)
        self.kept_tensors, self._created = [], []


def _free(x: Tensor, line: str) -> None:
    x._array = Freed(x, line)
    x._storage = x._step = x._base = x._grad = None


def _gradients(created: Mapping[int, Tensor]) -> Iterator[Tensor]:
    """Yield the tensors in `created` that are the gradient of an older tensor."""
    for holder in gc.get_referrers(*created.values()) if created else ():
        if issubclass(type(holder), Tensor) and id(holder) not in created and id(holder._grad) in created:
            yield holder._grad


def _reachable_ids(roots: Iterable[Tensor]) -> set[int]:
    """Return the ids of `roots` and, recursively, of their bases, gradients, and the tensors in their graphs."""
    reachable: dict[int, Tensor] = {}
    stack = list(roots)
    while stack:
        x = stack.pop()
        if id(x) in reachable:
            continue
        reachable[id(x)] = x
        stack += _tensors_in((x._base, x._grad))
        for node in topological([x._step] if x._step is not None else []):
            if isinstance(node, Step):
                stack += _tensors_in((node._saved, dict(node._static_args)))
            elif isinstance(node, Tensor):
                stack.append(node)
    return set(reachable)


def _tensors_in(x: Any) -> Iterator[Tensor]:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, Mapping):
        yield from _tensors_in(list(x.values()))
    elif isinstance(x, list | tuple | set):
        for item in x:
            yield from _tensors_in(item)
