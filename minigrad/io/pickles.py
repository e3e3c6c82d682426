"""Pickles read as data: the few instructions that state dicts are made of. Nothing is ever called that a file names.

A pickle is a program for a small machine with a stack. Its instructions GLOBAL and REDUCE get any function of any
module and call it, so that ``pickle.load`` runs what the author of the file likes. Here GLOBAL finds names in a list
only, and what REDUCE calls is ours. The parsing is that of ``pickletools``, which runs nothing; what the instructions
do is described there, and in PEP 307.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any

from minigrad.core.errors import FileFormatError, MinigradError, a_kind

__all__ = ["Named", "Refused", "read"]


class Refused(FileFormatError):
    """A pickle that says what state dicts do not say."""


class Named:
    """What a name in a pickle stands for here: something to call, if it has `call`."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any] | None = None) -> None:
        self.name = name
        self.call = call


def read(data: bytes, names: Mapping[str, Named], persistent: Callable[[Any], Any], kinds: tuple[type, ...]) -> Any:
    """What a pickle makes, where its names are in `names` and `persistent` knows what its ids stand for.

    The result is of dicts, lists, tuples, numbers, texts, bools, None and `kinds`. Raises Refused for all else.
    """
    machine = _Machine(names, persistent)
    try:
        for instruction, argument, _ in pickletools.genops(data):
            machine.run(instruction.name, argument)
    except MinigradError:
        raise
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refused(
            f"load: the pickle in this file is cut off or damaged: {type(error).__name__}: {error}."
        ) from None
    if len(machine.stack) != 1:
        raise Refused("load: the pickle in this file ends with more or less than one thing.")
    _check_made_of(machine.stack[0], (dict, list, tuple, int, float, str, bool, type(None), *kinds))
    return machine.stack[0]


def _check_made_of(result: Any, kinds: tuple[type, ...]) -> None:
    """Raise Refused if something in `result` is of another type: a name that nothing was done with, say."""
    seen, open_ = set(), [result]
    while open_:
        x = open_.pop()
        if type(x) not in kinds:
            raise Refused(
                f"load: this file holds {getattr(x, 'name', type(x).__name__)!r:.80} where a tensor would be."
            )
        if id(x) not in seen and isinstance(x, dict | list | tuple):
            seen.add(id(x))
            open_ += x.values() if isinstance(x, dict) else x


_PUSHED = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_ARGUMENT = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}  # what they push stands beside them
_EMPTY: dict[str, type] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_SHORT = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_SILENT = {"PROTO", "FRAME", "STOP"}


class _Machine:
    """The stack, the places in it that were marked, and what was remembered under a number."""

    def __init__(self, names: Mapping[str, Named], persistent: Callable[[Any], Any]) -> None:
        self.names = names
        self.persistent = persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, name: str, argument: Any) -> None:
        if name in _ARGUMENT:
            self.stack.append(argument)
        elif name in _PUSHED:
            self.stack.append(_PUSHED[name])
        elif name in _EMPTY:
            self.stack.append(_EMPTY[name]())
        elif name in _SHORT:
            self.stack.append(tuple(self._taken(len(self.stack) - _SHORT[name])))
        elif name not in _SILENT:
            does = getattr(self, f"_{name.lower()}", None) if name in _KNOWN else None
            if does is None:
                raise Refused(
                    f"load: this pickle has the instruction {name}, which state dicts have no use for; nothing was run."
                )
            does(argument)

    # --- the memo ---

    def _binput(self, number: int) -> None:
        self.memo[number] = self.stack[-1]

    _long_binput = _binput

    def _memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _binget(self, number: int) -> None:
        self.stack.append(self.memo[number])

    _long_binget = _binget

    # --- containers ---

    def _mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def _taken(self, start: int) -> list[Any]:
        """What is on the stack from `start` on, which is taken away."""
        if not 0 <= start <= len(self.stack):
            raise IndexError("the stack has too little on it")
        taken = self.stack[start:]
        del self.stack[start:]
        return taken

    def _tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._taken(self.marks.pop())))

    def _append(self, _: Any) -> None:
        value = self.stack.pop()
        self._last(list).append(value)

    def _appends(self, _: Any) -> None:
        values = self._taken(self.marks.pop())
        self._last(list).extend(values)

    def _setitem(self, _: Any) -> None:
        self._set(self._taken(len(self.stack) - 2))

    def _setitems(self, _: Any) -> None:
        self._set(self._taken(self.marks.pop()))

    def _set(self, pairs: list[Any]) -> None:
        into = self._last(dict)
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if type(key) not in (str, int, float, bool, type(None)):
                raise Refused(f"load: a dict in this file has {a_kind(key)} as a key.")
            if type(key) is int and not -(2**63) <= key < 2**63:  # any number of these can have one hash
                raise Refused("load: a dict in this file has a whole number beyond 64 bits as a key.")
            into[key] = value

    def _last(self, kind: type) -> Any:
        """The last on the stack, which is a list, say, and nothing that only looks like one."""
        if type(self.stack[-1]) is not kind:
            raise Refused(f"load: this pickle takes a {type(self.stack[-1]).__name__} for a {kind.__name__}.")
        return self.stack[-1]

    # --- what could run something ---

    def _global(self, name: str) -> None:
        self._find(*name.split(" ", 1))

    def _stack_global(self, _: Any) -> None:
        module, name = self._taken(len(self.stack) - 2)
        if type(module) is not str or type(name) is not str:
            raise Refused("load: this pickle asks for something by what is not a name.")
        self._find(module, name)

    def _find(self, module: str, name: str) -> None:
        found = self.names.get(f"{module}.{name}")
        if found is None:
            raise Refused(
                f"load: this file asks for '{module}.{name}', which is no part of a state dict; nothing was run.\n"
                "  Save numbers alone in PyTorch, torch.save(model.state_dict(), path), and load those."
            )
        self.stack.append(found)

    def _reduce(self, _: Any) -> None:
        function, arguments = self._taken(len(self.stack) - 2)
        if type(function) is not Named or function.call is None or type(arguments) is not tuple:
            raise Refused("load: this pickle calls what is not a function of state dicts; nothing was run.")
        self.stack.append(function.call(*arguments))

    def _build(self, _: Any) -> None:
        """The attributes of an object: a state dict has some, the versions of its modules, that nobody needs."""
        self._taken(len(self.stack) - 1)
        self._last(dict)

    def _binpersid(self, _: Any) -> None:
        self.stack.append(self.persistent(self.stack.pop()))


_KNOWN = {
    *("BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"),
    *("MARK", "TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS"),
    *("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "BINPERSID"),
}
