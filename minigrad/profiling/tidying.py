"""Tidying up: `tidy` gives back, at the end of a block, the memory of the tensors that were made in it and not kept.

Python frees a tensor once nobody knows it. But a notebook knows much for long: ``_``, ``Out[3]``, the variables of a
cell that ran an hour ago, the traceback of its last error; and graphs in cycles wait for the collector.
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
    """What a tensor has in place of its numbers when they were given back: whoever asks is told so."""

    __slots__ = ("_what",)

    def __init__(self, x: Tensor, line: str) -> None:
        self._what = f"a {x.dtype.name} tensor of shape {x.shape} was freed by mg.tidy() at {line}"

    def __repr__(self) -> str:
        return f"<{self._what}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise TidiedError(
            f"{self._what}\n  Keep what you need after the block: y = mg.keep(y) in it, or return it from a function "
            "under @mg.tidy; of a single number, y.item()."
        )

    __class__ = property(lambda self: self.__getattr__("__class__"))  # which devices ask for


class _Here(threading.local):
    def __init__(self) -> None:
        self.blocks: list[_Block] = []  # that are open in this thread, the innermost last


_here = _Here()
_lock, _plain = threading.Lock(), tensor._new
_open = 0  # blocks, in all threads: while there are none, making a tensor costs nothing more


def _noted(kind: type[Tensor]) -> Tensor:
    """A new tensor, which the innermost block knows."""
    out = _plain(kind)
    if _here.blocks:
        _here.blocks[-1].note(out)
    return out


def tidy(function: Callable[..., Any] | None = None) -> Any:
    """A block, or a function that it decorates, which frees at its end what was made in it and is not kept.

    Kept are: what `keep` was given, what the function returns (also in lists, tuples and dicts), the `grad` of tensors
    from before, and what the graphs of all these need. Parameters and other tensors from before are left alone, and so
    are those of other threads. Where a freed one is used, TidiedError says where it was freed. An error that leaves the
    block tidies too. It costs a look at all objects of Python's, some milliseconds: do it for a cell or an epoch, and
    not for each step.

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
    """`x`, a tensor or lists, tuples and dicts of them, not to be freed by the blocks of `tidy` around here."""
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
        if len(self._made) > self._many:  # most are gone by now
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
    """Those that are the gradient of a tensor which was there before."""
    for holder in gc.get_referrers(*made.values()) if made else ():
        if issubclass(type(holder), Tensor) and id(holder) not in made and id(holder._grad) in made:
            yield holder._grad


def _needed(roots: Iterable[Tensor]) -> set[int]:
    """The identities of `roots` and of what these cannot do without: bases, gradients, what rules will read."""
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
