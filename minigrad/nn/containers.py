"""Containers of modules and parameters, indexed like lists or dicts."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, describe_type
from minigrad.core.tensor import Tensor
from minigrad.nn.module import Module, Parameter

__all__ = ["Identity", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

Self = TypeVar("Self", bound="_IndexedContainer")


def _key_at(name: str, index: Any, length: int) -> str:
    """Return the key of the item at `index`, which may be negative."""
    try:
        position = operator.index(index)
    except TypeError:
        raise DTypeError(f"{name}: indices must be integers or slices, but got {index!r}.") from None
    if not -length <= position < length:
        raise ShapeError(f"{name}: index {position} is out of range for length {length}.")
    return str(position % length)


class _IndexedContainer(Module):
    """Base class of containers that name their modules "0", "1", …"""

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
            return self._from_modules(list(self)[index])
        return self._modules[_key_at(type(self).__name__, index, len(self))]

    def _from_modules(self, modules: list[Any]) -> Any:
        """Create a container of the same type that contains `modules`."""
        return type(self)(modules)  # type: ignore[call-arg]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, _key_at(type(self).__name__, index, len(self)), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index if isinstance(index, slice) else int(_key_at(type(self).__name__, index, len(self)))]
        self._replace_all(modules)

    def _replace_all(self, modules: Sequence[Any]) -> None:
        for k, module in enumerate(modules):  # check all modules before removing any
            self._check_child(module, f"{type(self).__name__}: {k}")
        self._modules.clear()
        self._modules.update({str(k): module for k, module in enumerate(modules)})

    def append(self: Self, module: Module) -> Self:
        """Append a module to the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: Self, modules: Iterable[Module]) -> Self:
        """Append modules to the end."""
        new_modules = list(modules)
        for k, module in enumerate(new_modules, len(self)):
            self._check_child(module, f"{type(self).__name__}: {k}")
        for module in new_modules:
            self.append(module)
        return self

    def insert(self: Self, index: int, module: Module) -> Self:
        """Insert a module before `index`, and renumber the modules after it."""
        modules = list(self)
        modules.insert(index, module)
        self._replace_all(modules)
        return self

    def pop(self, index: int) -> Any:
        """Remove and return the module at `index`, and renumber the modules after it."""
        module = self[index]
        del self[index]
        return module


class Sequential(_IndexedContainer):
    """A sequence of modules, each applied to the output of the previous module. A dict argument names the modules.

    >>> import minigrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.ReLU(), mg.nn.Linear(8, 3))
    >>> model(mg.ones(2, 4)).shape, len(model), model[-1].out_features
    ((2, 3), 3, 3)
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named_modules: Mapping[str, Module] = {str(k): module for k, module in enumerate(modules)}
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            named_modules = modules[0]
        for name, module in named_modules.items():
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """Return the output of the last module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def _from_modules(self, modules: list[Any]) -> Any:
        names = {id(module): name for name, module in self._modules.items()}
        has_default_names = all(name.isdigit() for name in self._modules)
        return (
            type(self)(*modules) if has_default_names else type(self)({names[id(module)]: module for module in modules})
        )

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._from_modules(list(self)[index])
        return list(self)[int(_key_at(type(self).__name__, index, len(self)))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._modules)[int(_key_at(type(self).__name__, index, len(self)))], module)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *self._check_sequential(other))

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(self._check_sequential(other))

    def _check_sequential(self, other: Any) -> list[Any]:
        if not isinstance(other, Sequential):
            raise DTypeError(
                f"Sequential: + expected a Sequential, but got {describe_type(other)}.\n  Write append(module)."
            )
        return list(other)

    def __mul__(self, times: int) -> Sequential:
        """Repeat the modules `times` times; the copies share their parameters."""
        return Sequential(*self._repeat(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(self._repeat(times)[len(self) :])

    def _repeat(self, times: Any) -> list[Any]:
        if isinstance(times, bool) or not isinstance(times, int):
            raise DTypeError(f"Sequential: * expected an int, but got {times!r:.40}.")
        if times < 1:
            raise ArgumentError(f"Sequential: * expected a factor of at least 1, but got {times}.")
        return list(self) * times


class ModuleList(_IndexedContainer):
    """A list of modules without a `forward` method, used as in ``for block in self.blocks: x = block(x)``."""

    _folds = True

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)


class _NamedContainer(Module):
    """Base class of containers of named modules or parameters, in insertion order."""

    _item_kind: str  # the kind of item, for error messages

    @property
    def _items(self) -> dict[str, Any]:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        if key not in self._items:
            name, existing = type(self).__name__, ", ".join(self._items) or "none"
            raise KeyError(f"{name} has no {self._item_kind} {key!r}; it has {existing}.")
        return self._items[key]

    def __delitem__(self, key: str) -> None:
        del self._items[key]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._items.keys()

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return self._items.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the (key, value) pairs."""
        return self._items.items()

    def pop(self, key: str) -> Any:
        """Remove `key` and return its value."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()


class ModuleDict(_NamedContainer):
    """A dict of modules, in insertion order."""

    _item_kind = "module"

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    @property
    def _items(self) -> dict[str, Any]:
        return self._modules

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or an iterable of (key, module) pairs."""
        new_items = list(modules.items() if hasattr(modules, "items") else modules)
        for name, module in new_items:
            self._check_child(module, f"ModuleDict: {name}")
        for name, module in new_items:
            self[name] = module


class ParameterList(Module):
    """A list of parameters. Converts tensors to parameters."""

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
        return self._parameters[_key_at("ParameterList", index, len(self))]

    def __setitem__(self, index: int, value: Any) -> None:
        self._parameters[_key_at("ParameterList", index, len(self))] = _as_parameter("ParameterList", value)

    def append(self, value: Any) -> ParameterList:
        """Append a parameter to the end."""
        self.register_parameter(str(len(self)), _as_parameter("ParameterList", value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Append parameters to the end."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return _describe_parameters(self._parameters)


class ParameterDict(_NamedContainer):
    """A dict of parameters, in insertion order. Converts tensors to parameters."""

    _item_kind = "parameter"

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    @property
    def _items(self) -> dict[str, Any]:
        return self._parameters

    def __setitem__(self, key: str, value: Any) -> None:
        self.register_parameter(key, None if value is None else _as_parameter("ParameterDict", value))

    def update(self, parameters: Any) -> None:
        """Add parameters from a mapping or an iterable of (key, parameter) pairs."""
        for name, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[name] = value

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._parameters)

    def __or__(self, other: Any) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Any) -> ParameterDict:
        return ParameterDict(other) | self

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a new `ParameterDict` with the same parameters."""
        return ParameterDict(dict(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter `key`, or `default` if it is missing."""
        return self._parameters.get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter `key`. If it is missing, set it to `default` first."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last (key, parameter) pair. Raises KeyError if empty."""
        return self._parameters.popitem()

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new `ParameterDict` that maps each of `keys` to `default`."""
        return ParameterDict(dict.fromkeys(keys, default))

    def extra_repr(self) -> str:
        return _describe_parameters(self._parameters)


class Identity(Module):
    """A placeholder module that returns its input. Accepts and ignores any constructor arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return `input`."""
        return input


def _as_parameter(name: str, value: Any) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if not isinstance(value, Tensor):
        raise DTypeError(f"{name}: expected a Parameter or Tensor, but got {describe_type(value)}.")
    return Parameter(value, value.dtype.is_floating_point)


def _describe_parameters(parameters: Mapping[str, Parameter | None]) -> str:
    present = {name: x for name, x in parameters.items() if x is not None}
    return "\n".join(f"({name}): Parameter of {x.dtype.name} {x.shape}" for name, x in present.items())
