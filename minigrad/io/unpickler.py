"""Safe unpickler for state dicts. It supports few opcodes, and never imports or calls an object named by a file.

A pickle is a program for a stack machine. Its opcodes GLOBAL and REDUCE import and call any function of any module, so
``pickle.load`` executes arbitrary code of the file's author. Here GLOBAL only looks names up in an allowlist, and
REDUCE only calls our own functions. The opcodes are parsed by ``pickletools``, which executes no code. Their semantics
are described there and in PEP 307.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any

from minigrad.core.errors import FileFormatError, MinigradError, describe_type

__all__ = ["AllowedGlobal", "UnsupportedPickleError", "unpickle"]


class UnsupportedPickleError(FileFormatError):
    """Raised for a pickle with unsupported content."""


class AllowedGlobal:
    """A global that a pickle may refer to. REDUCE calls `call`, and raises if it is None."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any] | None = None) -> None:
        self.name = name
        self.call = call


def unpickle(
    data: bytes,
    allowed_globals: Mapping[str, AllowedGlobal],
    persistent_load: Callable[[Any], Any],
    leaf_types: tuple[type, ...],
) -> Any:
    """Unpickle `data`. Only globals in `allowed_globals` may occur; `persistent_load` resolves persistent ids.

    The result may contain only dicts, lists, tuples, Python scalars, strings, None and objects of `leaf_types`. Raises
    UnsupportedPickleError otherwise.
    """
    unpickler = _Unpickler(allowed_globals, persistent_load)
    try:
        for instruction, argument, _ in pickletools.genops(data):
            unpickler.execute(instruction.name, argument)
    except MinigradError:
        raise
    except (ArithmeticError, DeprecationWarning, LookupError, RecursionError, TypeError, ValueError) as error:
        # If warnings are errors, an invalid escape sequence in a string raises a DeprecationWarning.
        raise UnsupportedPickleError(
            f"load: the pickle in this file is truncated or corrupt: {type(error).__name__}: {error}."
        ) from None
    if len(unpickler.stack) != 1:
        raise UnsupportedPickleError("load: the pickle in this file does not end with exactly one object on the stack.")
    _check_types(unpickler.stack[0], (dict, list, tuple, int, float, str, bool, type(None), *leaf_types))
    return unpickler.stack[0]


def _check_types(result: Any, allowed_types: tuple[type, ...]) -> None:
    """Raise UnsupportedPickleError if `result` contains another type, such as a global that was not called."""
    visited, pending = set(), [result]
    while pending:
        x = pending.pop()
        if type(x) not in allowed_types:
            raise UnsupportedPickleError(
                f"load: expected a tensor or plain data, but this file contains "
                f"{getattr(x, 'name', type(x).__name__)!r:.80}."
            )
        if id(x) not in visited and isinstance(x, dict | list | tuple):
            visited.add(id(x))
            pending += x.values() if isinstance(x, dict) else x


_CONSTANT_OPCODES = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_ARGUMENT_OPCODES = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}  # opcodes that push their own argument
_EMPTY_OPCODES: dict[str, type] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLE_OPCODES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED_OPCODES = {"PROTO", "FRAME", "STOP"}


class _Unpickler:
    """Virtual machine for pickles, with a stack, the positions of marks, and a memo."""

    def __init__(self, allowed_globals: Mapping[str, AllowedGlobal], persistent_load: Callable[[Any], Any]) -> None:
        self.allowed_globals = allowed_globals
        self.persistent_load = persistent_load
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def execute(self, name: str, argument: Any) -> None:
        if name in _ARGUMENT_OPCODES:
            self.stack.append(argument)
        elif name in _CONSTANT_OPCODES:
            self.stack.append(_CONSTANT_OPCODES[name])
        elif name in _EMPTY_OPCODES:
            self.stack.append(_EMPTY_OPCODES[name]())
        elif name in _TUPLE_OPCODES:
            self.stack.append(tuple(self._pop_from(len(self.stack) - _TUPLE_OPCODES[name])))
        elif name not in _IGNORED_OPCODES:
            handler = getattr(self, f"_{name.lower()}", None) if name in _METHOD_OPCODES else None
            if handler is None:
                raise UnsupportedPickleError(
                    f"load: unsupported pickle opcode {name}, which state dicts do not use; no code was run."
                )
            handler(argument)

    # --- the memo ---

    def _binput(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    _long_binput = _binput

    def _memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _binget(self, index: int) -> None:
        self.stack.append(self.memo[index])

    _long_binget = _binget

    # --- containers ---

    def _mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def _pop_from(self, start: int) -> list[Any]:
        """Pop and return the items of the stack from position `start` to the top."""
        if not 0 <= start <= len(self.stack):
            raise IndexError("unpickling stack underflow")
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._pop_from(self.marks.pop())))

    def _append(self, _: Any) -> None:
        value = self.stack.pop()
        self._top(list).append(value)

    def _appends(self, _: Any) -> None:
        values = self._pop_from(self.marks.pop())
        self._top(list).extend(values)

    def _setitem(self, _: Any) -> None:
        self._set_items(self._pop_from(len(self.stack) - 2))

    def _setitems(self, _: Any) -> None:
        self._set_items(self._pop_from(self.marks.pop()))

    def _set_items(self, pairs: list[Any]) -> None:
        target = self._top(dict)
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if type(key) not in (str, int, float, bool, type(None)):
                raise UnsupportedPickleError(f"load: a dict in this file has {describe_type(key)} as a key.")
            if type(key) is int and not -(2**63) <= key < 2**63:  # larger ints permit denial of service by collisions
                raise UnsupportedPickleError(
                    "load: a dict in this file has an integer key that does not fit in 64 bits."
                )
            target[key] = value

    def _top(self, kind: type) -> Any:
        """Return the top of the stack, which must be exactly of type `kind`, not of a subclass."""
        if type(self.stack[-1]) is not kind:
            raise UnsupportedPickleError(
                f"load: invalid pickle: expected a {kind.__name__}, got {type(self.stack[-1]).__name__}."
            )
        return self.stack[-1]

    # --- opcodes that execute code in pickle.load ---

    def _global(self, name: str) -> None:
        self._push_global(*name.split(" ", 1))

    def _stack_global(self, _: Any) -> None:
        module, name = self._pop_from(len(self.stack) - 2)
        if type(module) is not str or type(name) is not str:
            raise UnsupportedPickleError("load: invalid pickle: STACK_GLOBAL requires strings.")
        self._push_global(module, name)

    def _push_global(self, module: str, name: str) -> None:
        allowed = self.allowed_globals.get(f"{module}.{name}")
        if allowed is None:
            raise UnsupportedPickleError(
                f"load: unsupported global '{module}.{name}', which is not part of a state dict; no code was run.\n"
                "  Save only tensors in PyTorch, torch.save(model.state_dict(), path)."
            )
        self.stack.append(allowed)

    def _reduce(self, _: Any) -> None:
        function, arguments = self._pop_from(len(self.stack) - 2)
        if type(function) is not AllowedGlobal or function.call is None or type(arguments) is not tuple:
            raise UnsupportedPickleError("load: the pickle calls an unsupported function; no code was run.")
        self.stack.append(function.call(*arguments))

    def _build(self, _: Any) -> None:
        """Discard the attributes of a state dict. They contain the module versions, which are not needed."""
        self._pop_from(len(self.stack) - 1)
        self._top(dict)

    def _binpersid(self, _: Any) -> None:
        self.stack.append(self.persistent_load(self.stack.pop()))


_METHOD_OPCODES = {
    *("BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"),
    *("MARK", "TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS"),
    *("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "BINPERSID"),
}
