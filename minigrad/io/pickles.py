"""Safe unpickler for state dicts: it supports few opcodes, and never imports or calls anything that a file names.

A pickle is a program for a stack machine. Its opcodes GLOBAL and REDUCE import and call any function of any module, so
``pickle.load`` executes arbitrary code of the file's author. Here GLOBAL only looks names up in an allowlist, and
REDUCE only calls our own functions. ``pickletools``, which executes nothing, parses the opcodes; it and PEP 307
describe their semantics.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any

from minigrad.core.errors import FileFormatError, MinigradError, a_kind

__all__ = ["Named", "Refused", "read"]


class Refused(FileFormatError):
    """Raised for a pickle with unsupported content."""


class Named:
    """An allowed global of a pickle, which REDUCE may call if it has `call`."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any] | None = None) -> None:
        self.name = name
        self.call = call


def read(data: bytes, names: Mapping[str, Named], persistent: Callable[[Any], Any], kinds: tuple[type, ...]) -> Any:
    """Unpickle `data`, with the allowed globals `names`, and `persistent` to resolve persistent ids.

    The result consists of dicts, lists, tuples, Python scalars, strings, None and `kinds`. Raises Refused otherwise.
    """
    machine = _Machine(names, persistent)
    try:
        for instruction, argument, _ in pickletools.genops(data):
            machine.run(instruction.name, argument)
    except MinigradError:
        raise
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refused(
            f"load: the pickle in this file is truncated or corrupt: {type(error).__name__}: {error}."
        ) from None
    if len(machine.stack) != 1:
        raise Refused("load: the pickle in this file does not end with exactly one object on the stack.")
    _check_made_of(machine.stack[0], (dict, list, tuple, int, float, str, bool, type(None), *kinds))
    return machine.stack[0]


def _check_made_of(result: Any, kinds: tuple[type, ...]) -> None:
    """Raise Refused if `result` contains an object of another type, such as a global that was not called."""
    seen, open_ = set(), [result]
    while open_:
        x = open_.pop()
        if type(x) not in kinds:
            raise Refused(
                f"load: expected a tensor or plain data, but this file contains "
                f"{getattr(x, 'name', type(x).__name__)!r:.80}."
            )
        if id(x) not in seen and isinstance(x, dict | list | tuple):
            seen.add(id(x))
            open_ += x.values() if isinstance(x, dict) else x


_PUSHED = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_ARGUMENT = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}  # opcodes that push their own argument
_EMPTY: dict[str, type] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_SHORT = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_SILENT = {"PROTO", "FRAME", "STOP"}


class _Machine:
    """Pickle virtual machine: the stack, the positions of marks, and the memo."""

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
                raise Refused(f"load: unsupported pickle opcode {name}, which state dicts do not use; no code was run.")
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
        """Pop and return everything on the stack from position `start` on."""
        if not 0 <= start <= len(self.stack):
            raise IndexError("unpickling stack underflow")
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
            if type(key) is int and not -(2**63) <= key < 2**63:  # unlimited hash collisions: denial of service
                raise Refused("load: a dict in this file has an integer key that does not fit in 64 bits.")
            into[key] = value

    def _last(self, kind: type) -> Any:
        """Return the top of the stack, which must be exactly of type `kind`, not of a subclass."""
        if type(self.stack[-1]) is not kind:
            raise Refused(f"load: invalid pickle: expected a {kind.__name__}, got {type(self.stack[-1]).__name__}.")
        return self.stack[-1]

    # --- opcodes that execute code in pickle.load ---

    def _global(self, name: str) -> None:
        self._find(*name.split(" ", 1))

    def _stack_global(self, _: Any) -> None:
        module, name = self._taken(len(self.stack) - 2)
        if type(module) is not str or type(name) is not str:
            raise Refused("load: invalid pickle: STACK_GLOBAL requires strings.")
        self._find(module, name)

    def _find(self, module: str, name: str) -> None:
        found = self.names.get(f"{module}.{name}")
        if found is None:
            raise Refused(
                f"load: unsupported global '{module}.{name}', which is not part of a state dict; no code was run.\n"
                "  Save only tensors in PyTorch, torch.save(model.state_dict(), path)."
            )
        self.stack.append(found)

    def _reduce(self, _: Any) -> None:
        function, arguments = self._taken(len(self.stack) - 2)
        if type(function) is not Named or function.call is None or type(arguments) is not tuple:
            raise Refused("load: the pickle calls an unsupported function; no code was run.")
        self.stack.append(function.call(*arguments))

    def _build(self, _: Any) -> None:
        """Discard the attributes of a state dict, the versions of its modules, which are not needed."""
        self._taken(len(self.stack) - 1)
        self._last(dict)

    def _binpersid(self, _: Any) -> None:
        self.stack.append(self.persistent(self.stack.pop()))


_KNOWN = {
    *("BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"),
    *("MARK", "TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS"),
    *("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "BINPERSID"),
}
