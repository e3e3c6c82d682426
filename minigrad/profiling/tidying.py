"""Tidying: `tidy` frees, at the end of a block, the memory of the tensors that were created in it and not kept.

Python frees a tensor when its last reference is dropped. But a notebook holds many references: ``_``, ``Out[3]``, the
variables of old cells, the traceback of the last error; and graphs with reference cycles wait for the collector.
"""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from minigrad.core import tensor
from minigrad.core.errors import TidiedError, caller_line
from minigrad.core.graph import topological
from minigrad.core.step import Step
from minigrad.core.tensor import Tensor

__all__ = ["Freed", "keep", "tidy"]


class Freed:
    """Placeholder for the array of a freed tensor; any access raises TidiedError."""

    __slots__ = ("_what",)

    def __init__(self, x: Tensor, line: str) -> None:
        self._what = f"a {x.dtype.name} tensor of shape {x.shape} was freed by mg.tidy() at {line}"

    def __repr__(self) -> str:
        return f"<{self._what}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise TidiedError(
            f"{self._what}\n  Keep what you need after the block: y = mg.keep(y) in it, or return it from a function "
            "under @mg.tidy; for a scalar, y.item()."
        )

    __class__ = property(lambda self: self.__getattr__("__class__"))  # read when the device is looked up


class _Here(threading.local):
    def __init__(self) -> None:
        self.blocks: list[_Block] = []  # the open blocks of this thread, innermost last


_here = _Here()
_lock, _plain = threading.Lock(), tensor._new
_open = 0  # open blocks in all threads: while there are none, creating a tensor has no overhead


def _noted(kind: type[Tensor]) -> Tensor:
    """Return a new tensor that is tracked by the innermost block."""
    out = _plain(kind)
    if _here.blocks:
        _here.blocks[-1].note(out)
    return out


def tidy(function: Callable[..., Any] | None = None) -> Any:
    """Context manager or decorator that frees on exit the tensors that were created in it and not kept.

    Kept are: tensors passed to `keep`, the return value of the function (also in lists, tuples and dicts), the `grad`
    of older tensors, and what the graphs of these need. Tensors from before, such as parameters, and those of other
    threads are not affected. Using a freed tensor raises TidiedError with the line of the block. Tensors are also freed
    if an exception leaves the block. It inspects all Python objects, which takes some milliseconds: use it per cell or
    epoch, not per step.

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
        return _Block()

    @functools.wraps(function)
    def inside(*args: Any, **keywords: Any) -> Any:
        with _Block() as block:
            result = function(*args, **keywords)
            block.kept += _tensors_in(result)
        return result

    return inside


def keep(x: Any) -> Any:
    """Exclude `x`, a tensor or nested lists, tuples and dicts, from the enclosing `tidy` blocks, and return it."""
    found = list(_tensors_in(x))
    for block in _here.blocks:
        block.kept += found
    return x


class _Block:
    def __init__(self) -> None:
        self.kept: list[Tensor] = []
        self._made: list[weakref.ref[Tensor]] = []
        self._many = 1024

    def note(self, x: Tensor) -> None:
        self._made.append(weakref.ref(x))
        if len(self._made) > self._many:  # drop the dead references, usually most of them
            self._made = [one for one in self._made if one() is not None]
            self._many = 2 * len(self._made) + 1024

    def __enter__(self) -> _Block:
        global _open
        with _lock:
            _open += 1
            tensor._new = _noted  # type: ignore[assignment]
        _here.blocks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        global _open
        _here.blocks.remove(self)
        with _lock:
            _open -= 1
            if not _open:
                tensor._new = _plain
        made = {id(x): x for one in self._made if (x := one()) is not None}
        kept = _needed([*self.kept, *_gradients(made)])
        line = caller_line()
        for name, x in made.items():
            if name not in kept:
                _free(x, line)
            elif _here.blocks:
                _here.blocks[-1].note(x)
        self.kept, self._made = [], []


def _free(x: Tensor, line: str) -> None:
    x._array = Freed(x, line)
    x._storage = x._step = x._base = x._grad = None


def _gradients(made: Mapping[int, Tensor]) -> Iterator[Tensor]:
    """Yield the tensors that are the gradient of an older tensor."""
    for holder in gc.get_referrers(*made.values()) if made else ():
        if issubclass(type(holder), Tensor) and id(holder) not in made and id(holder._grad) in made:
            yield holder._grad


def _needed(roots: Iterable[Tensor]) -> set[int]:
    """Return the ids of `roots` and of all tensors that they depend on: bases, gradients, saved tensors."""
    found: dict[int, Tensor] = {}
    waiting = list(roots)
    while waiting:
        x = waiting.pop()
        if id(x) in found:
            continue
        found[id(x)] = x
        waiting += _tensors_in((x._base, x._grad))
        for node in topological([x._step] if x._step is not None else []):
            if isinstance(node, Step):
                waiting += _tensors_in((node._saved, dict(node._kept)))
            elif isinstance(node, Tensor):
                waiting.append(node)
    return set(found)


def _tensors_in(x: Any) -> Iterator[Tensor]:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, Mapping):
        yield from _tensors_in(list(x.values()))
    elif isinstance(x, list | tuple | set):
        for one in x:
            yield from _tensors_in(one)
