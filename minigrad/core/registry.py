"""The registry of tensor functions: the contents of `minigrad.functional`, and the methods of Tensor.

A decorator on each function declares how it is exposed. Methods, in-place methods, type stubs, the API reference and
the comparison with PyTorch are generated from these tables.

    @register                                        mg.one_hot
    @register(method=True)                           mg.gather, Tensor.gather
    @register(method=True, in_place=True)            mg.frac, Tensor.frac, Tensor.frac_
    @register(method=True, operator="matmul")        mg.matmul, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__
    @register_method("dim", "ndimension")            Tensor.dim, Tensor.ndimension
    @register_property("T")                          Tensor.T
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast, overload

from minigrad.core.modes import modes
from minigrad.core.views import check_writable

__all__ = [
    "FUNCTIONS",
    "METHODS",
    "TOPICS",
    "Topic",
    "accept_axis",
    "add_function",
    "inplace_by_copy",
    "register",
    "register_method",
    "register_property",
]

Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}
METHODS: dict[str, Any] = {}


class Topic(NamedTuple):
    """The names that one module registers. They form a section of the API reference."""

    functions: list[str]
    methods: list[str]


TOPICS: dict[str, Topic] = {}


@overload
def register(function: Function, /) -> Function: ...
@overload
def register(
    *,
    method: bool = False,
    in_place: bool | Callable[..., Any] = False,
    saves_operand: bool = True,
    operator: str = "",
    aliases: tuple[str, ...] = (),
) -> Callable[[Function], Function]: ...
def register(
    function: Any = None,
    /,
    *,
    method: bool = False,
    in_place: bool | Callable[..., Any] = False,
    saves_operand: bool = True,
    operator: str = "",
    aliases: tuple[str, ...] = (),
) -> Any:
    """Register a function under its name and `aliases`, and as a method of Tensor if `method`.

    If `in_place` is true, a method ``NAME_`` that overwrites the tensor with the result is added; `in_place` can also
    be that method itself. If `saves_operand` is false, no derivative reads the overwritten elements, so they are not
    cloned. `operator`, such as "matmul", also registers ``x @ y`` for a tensor on either side. The function is returned
    unchanged.
    """
    if function is None:
        return functools.partial(
            register, method=method, in_place=in_place, saves_operand=saves_operand, operator=operator, aliases=aliases
        )
    name, module = function.__name__, function.__module__
    public = accept_axis(function)
    write = inplace_by_copy(public, saves_operand) if in_place is True else in_place or None
    add_function(module, name, *aliases, function=public, method=public if method else None, in_place=write)
    if operator:
        METHODS[f"__{operator}__"] = public
        METHODS[f"__r{operator}__"] = lambda self, other: function(other, self)
        if write is not None:
            METHODS[f"__i{operator}__"] = write
    return function


def register_method(*names: str) -> Callable[[Function], Function]:
    """Register a function only as Tensor methods, under each of `names`."""

    def decorate(function: Function) -> Function:
        add_function(function.__module__, *names, method=accept_axis(function))
        return function

    return decorate


def register_property(name: str, setter: Callable[..., None] | None = None) -> Callable[[Function], Function]:
    """Register a function as a Tensor property with the setter `setter`."""

    def decorate(function: Function) -> Function:
        add_function(function.__module__, name, method=property(function, setter))
        return function

    return decorate


def add_function(
    module: str,
    *names: str,
    function: Callable[..., Any] | None = None,
    method: Any = None,
    in_place: Callable[..., Any] | None = None,
) -> None:
    """Add a function, a method and its in-place variant, if given, to the tables under each of `names`.

    Raises ValueError for a name that is already registered.
    """
    topic = TOPICS.setdefault(module, Topic([], []))
    for name in names:
        if function is not None:
            _add_entry(FUNCTIONS, name, function, topic.functions)
        if method is not None:
            _add_entry(METHODS, name, method, topic.methods)
        if in_place is not None:
            _add_entry(METHODS, f"{name}_", in_place, topic.methods)


def _add_entry(table: dict[str, Any], name: str, entry: Any, names: list[str]) -> None:
    if name in table:
        raise ValueError(f"{name} is registered twice.")
    table[name] = entry
    names.append(name)


def accept_axis(function: Function) -> Function:
    """Let a function with a parameter ``dim`` also accept NumPy's ``axis`` and ``keepdims``, as in PyTorch."""
    code = getattr(function, "__code__", None)
    if code is None or "dim" not in code.co_varnames[: code.co_argcount]:
        return function

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if keywords:
            for name, numpy_name in (("dim", "axis"), ("keepdim", "keepdims")):
                if numpy_name in keywords and name not in keywords:
                    keywords[name] = keywords.pop(numpy_name)
        return function(*args, **keywords)

    return cast(Function, call)


def inplace_by_copy(function: Callable[..., Any], saves_operand: bool = True) -> Callable[..., Any]:
    """Return a method that overwrites a tensor with the result of `function`, such as PyTorch's ``nan_to_num_``.

    It saves no memory compared to ``x = x.nan_to_num()``: the result is computed first and then copied, since a
    derivative may read the operand. The methods from `functional.methods` overwrite the operand directly.
    """
    name = f"{function.__name__}_"

    def write(self: Any, *args: Any, **options: Any) -> Any:
        operand = self.clone() if saves_operand and modes.grad else self
        result = function(operand, *args, **options)
        check_writable(self, result.shape, result.dtype.kind, name)
        return self.copy_(result)

    self_parameter, *other_parameters = inspect.signature(function).parameters.values()
    write.__name__, write.__qualname__, write.__module__ = name, f"Tensor.{name}", function.__module__
    write.__doc__ = f"In-place version of `{function.__name__}`."
    write.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [self_parameter.replace(name="self"), *other_parameters], return_annotation="Tensor"
    )
    return write
