"""Modules that hold others, or parameters, under numbers or names."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, a_kind
from minigrad.core.tensor import Tensor
from minigrad.nn.module import Module, Parameter

__all__ = ["Identity", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

Self = TypeVar("Self", bound="_Numbered")


def _place(name: str, index: Any, count: int) -> str:
    """The name of the item at `index`, which may count from the end."""
    try:
        place = operator.index(index)
    except TypeError:
        raise DTypeError(f"{name}: {index!r} is neither an int nor a slice.") from None
    if not -count <= place < count:
        raise ShapeError(f"{name}: there is no item {place}: there are {count}.")
    return str(place % count)


class _Numbered(Module):
    """Modules under the names "0", "1", …"""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules.values()))

    @overload
    def __getitem__(self: Self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self)[index])
        return self._modules[_place(type(self).__name__, index, len(self))]

    def _of(self, modules: list[Any]) -> Any:
        """Another one of these modules."""
        return type(self)(modules)  # type: ignore[call-arg]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, _place(type(self).__name__, index, len(self)), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index if isinstance(index, slice) else int(_place(type(self).__name__, index, len(self)))]
        self._refill(modules)

    def _refill(self, modules: Sequence[Any]) -> None:
        for k, module in enumerate(modules):  # before any is taken out
            self._check_child(module, f"{type(self).__name__}: {k}")
        self._modules.clear()
        self._modules.update({str(k): module for k, module in enumerate(modules)})

    def append(self: Self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: Self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        given = list(modules)
        for k, module in enumerate(given, len(self)):
            self._check_child(module, f"{type(self).__name__}: {k}")
        for module in given:
            self.append(module)
        return self

    def insert(self: Self, index: int, module: Module) -> Self:
        """Put a module before the one at `index`; those after it get other names."""
        modules = list(self)
        modules.insert(index, module)
        self._refill(modules)
        return self

    def pop(self, index: int) -> Any:
        """Take a module out; those after it get other names."""
        module = self[index]
        del self[index]
        return module


class Sequential(_Numbered):
    """Modules one after the other: each is called with what the one before gave. Also of a dict, with names.

    >>> import minigrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.ReLU(), mg.nn.Linear(8, 3))
    >>> model(mg.ones(2, 4)).shape, len(model), model[-1].out_features
    ((2, 3), 3, 3)
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named: Mapping[str, Module] = {str(k): module for k, module in enumerate(modules)}
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            named = modules[0]
        for name, module in named.items():
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """The output of the last module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def _of(self, modules: list[Any]) -> Any:
        names = {id(module): name for name, module in self._modules.items()}
        numbered = all(name.isdigit() for name in self._modules)
        return type(self)(*modules) if numbered else type(self)({names[id(module)]: module for module in modules})

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self)[index])
        return list(self)[int(_place(type(self).__name__, index, len(self)))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._modules)[int(_place(type(self).__name__, index, len(self)))], module)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *self._checked(other))

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(self._checked(other))

    def _checked(self, other: Any) -> list[Any]:
        if not isinstance(other, Sequential):
            raise DTypeError(f"Sequential: + joins two of them, and this is {a_kind(other)}.\n  Write append(module).")
        return list(other)

    def __mul__(self, times: int) -> Sequential:
        """The same modules several times: they share their parameters."""
        return Sequential(*self._repeated(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(self._repeated(times)[len(self) :])

    def _repeated(self, times: Any) -> list[Any]:
        if isinstance(times, bool) or not isinstance(times, int):
            raise DTypeError(f"Sequential: * repeats it a whole number of times, not {times!r:.40}.")
        if times < 1:
            raise ArgumentError(f"Sequential: * repeats it once or more, not {times} times.")
        return list(self) * times


class ModuleList(_Numbered):
    """A list of modules, which are called by whoever has it: ``for block in self.blocks: x = block(x)``."""

    _folds = True

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)


class _Named(Module):
    """Modules or parameters by name, in the order in which they were put in."""

    _what: str  # it holds

    @property
    def _table(self) -> dict[str, Any]:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        if key not in self._table:
            name, here = type(self).__name__, ", ".join(self._table) or "none"
            raise KeyError(f"{name}: there is no {self._what} {key!r}; there are {here}.")
        return self._table[key]

    def __delitem__(self, key: str) -> None:
        del self._table[key]

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __contains__(self, key: object) -> bool:
        return key in self._table

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._table.keys()

    def values(self) -> Iterable[Any]:
        """What they name."""
        return self._table.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names, and what they name."""
        return self._table.items()

    def pop(self, key: str) -> Any:
        """Take out what is named `key`."""
        found = self[key]
        del self[key]
        return found

    def clear(self) -> None:
        """Take all out."""
        self._table.clear()


class ModuleDict(_Named):
    """Modules by name, in the order in which they were put in."""

    _what = "module"

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    @property
    def _table(self) -> dict[str, Any]:
        return self._modules

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def update(self, modules: Any) -> None:
        """Put in the modules of a dict, or of pairs."""
        given = list(modules.items() if hasattr(modules, "items") else modules)
        for name, module in given:
            self._check_child(module, f"ModuleDict: {name}")
        for name, module in given:
            self[name] = module


class ParameterList(Module):
    """A list of parameters; tensors that are put in become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._parameters.values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return self._parameters[_place("ParameterList", index, len(self))]

    def __setitem__(self, index: int, value: Any) -> None:
        self._parameters[_place("ParameterList", index, len(self))] = _parameter("ParameterList", value)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end."""
        self.register_parameter(str(len(self)), _parameter("ParameterList", value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return _shapes(self._parameters)


class ParameterDict(_Named):
    """Parameters by name; tensors that are put in become parameters."""

    _what = "parameter"

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    @property
    def _table(self) -> dict[str, Any]:
        return self._parameters

    def __setitem__(self, key: str, value: Any) -> None:
        self.register_parameter(key, None if value is None else _parameter("ParameterDict", value))

    def update(self, parameters: Any) -> None:
        """Put in the parameters of a dict, or of pairs."""
        for name, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[name] = value

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._parameters)

    def __or__(self, other: Any) -> ParameterDict:
        found = self.copy()
        found.update(other)
        return found

    def __ror__(self, other: Any) -> ParameterDict:
        return ParameterDict(other) | self

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters."""
        return ParameterDict(dict(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter `key`, or `default`."""
        return self._parameters.get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter `key`, which `default` becomes if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Take the last parameter out, with its name. Raises KeyError where there is none."""
        return self._parameters.popitem()

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another dict, in which `default` stands under each of `keys`."""
        return ParameterDict(dict.fromkeys(keys, default))

    def extra_repr(self) -> str:
        return _shapes(self._parameters)


class Identity(Module):
    """Its input. Takes any arguments, so that it can stand where another module stood."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """`input` itself."""
        return input


def _parameter(name: str, value: Any) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if not isinstance(value, Tensor):
        raise DTypeError(f"{name}: it holds parameters, and this is {a_kind(value)}.")
    return Parameter(value, value.dtype.is_floating_point)


def _shapes(parameters: Mapping[str, Parameter | None]) -> str:
    shown = {name: x for name, x in parameters.items() if x is not None}
    return "\n".join(f"({name}): Parameter of {x.dtype.name} {x.shape}" for name, x in shown.items())
