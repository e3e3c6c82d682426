"""Arguments of a call, divided into the part that selects a trace and the part that the trace reads at each call.

A trace reads tensors and floats at each call. Everything else is part of its cache key: the structure of containers,
the layout of tensors, scalars by type and value, and all other objects by identity.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from numbers import Number
from typing import Any

import numpy as np

from minigrad.compiler.jit.guards import is_value
from minigrad.compiler.jit.nodes import address_range
from minigrad.core.dtypes import DType, get_default_dtype
from minigrad.core.errors import ArgumentError, CaptureError, describe_type
from minigrad.core.modes import modes
from minigrad.core.storage import device_of, get_default_device
from minigrad.core.symbolic import SymbolicTrace
from minigrad.core.tensor import Tensor
from minigrad.utils.pytree import TreeSpec, tree_flatten, tree_paths, type_sensitive_key

__all__ = ["Arguments", "IdentityKey", "find_overlaps", "is_leaf", "is_module", "rebuild_tree"]

MAX_COMPARED_ELEMENTS = 16  # maximum number of elements of a NumPy array that is compared by value
_IMMUTABLE_MODULES = frozenset((*sys.stdlib_module_names, "numpy"))  # modules whose hashable objects are immutable


class IdentityKey:
    """Cache key of an object by identity and class."""

    __slots__ = ("target", "target_type")

    def __init__(self, x: Any) -> None:
        self.target, self.target_type = x, type(x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.target is other.target and self.target_type is other.target_type

    def __hash__(self) -> int:
        return id(self.target)


def is_module(x: Any) -> bool:
    """Return whether `x` is an `nn.Module`, which is guarded rather than flattened."""
    return hasattr(type(x), "named_modules") and hasattr(x, "training")


def is_leaf(x: Any) -> bool:
    """Return whether `x` is a leaf of the tree, even if its class derives from a container."""
    return isinstance(x, Tensor | DType) or is_module(x)


def rebuild_tree(spec: TreeSpec, leaves: Iterator[Any]) -> Any:
    """Like `tree_unflatten`, but raise a CaptureError that names the container if it cannot be built."""
    if spec.type is None:
        return next(leaves)
    children = [rebuild_tree(child, leaves) for child in spec.children]
    try:
        return spec.build(spec.type, children, spec.context)
    except Exception as error:
        raise CaptureError(
            f"jit: a {spec.type.__name__} cannot be rebuilt from its children: {type(error).__name__}: {error}.\n"
            f"  Register functions for it: mg.register_pytree_node({spec.type.__name__}, flatten, unflatten)."
        ) from error


class Arguments:
    """Arguments of a call, flattened to leaves. A trace reads `tensors` and `floats`; `leaf_keys` contains the key of
    each leaf.

    Raises CaptureError for leaves that cannot be compared between calls, and for tensors that have a graph.
    """

    __slots__ = ("_args", "_function", "_kwargs", "floats", "leaf_keys", "leaves", "spec", "tensors")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs
        try:
            self.leaves, self.spec = tree_flatten((args, kwargs), is_leaf)
        except ArgumentError as error:
            raise CaptureError(str(error).replace("tree_flatten: ", "jit: of the arguments, ")) from None
        self.tensors: list[Tensor] = []
        self.floats: list[float] = []
        indices: dict[int, int] = {}  # id -> index into `tensors`
        self.leaf_keys = tuple([self._leaf_key(k, x, indices) for k, x in enumerate(self.leaves)])

    def _leaf_key(self, k: int, x: Any, indices: dict[int, int]) -> Any:
        kind = type(x)
        if isinstance(x, Tensor):
            if id(x) in indices:
                return "again", indices[id(x)]
            if x.grad_fn is not None:
                raise CaptureError(
                    f"jit: the argument `{self.paths[k]}`, of shape {x.shape}, has a grad_fn, so it is not a leaf.\n"
                    "  Pass x.detach(), or compute it inside the step."
                )
            indices[id(x)] = len(self.tensors)
            self.tensors.append(x)
            array = x._array
            return kind, array.shape, array.strides, array.dtype, device_of(array), x.requires_grad
        if kind is float:
            self.floats.append(x)
            return kind
        if kind in (int, bool, str):
            return kind, x
        reason = "" if is_module(x) else _unreadable_reason(x)
        if reason:
            raise CaptureError(f"jit: the argument `{self.paths[k]}` is {reason}")
        return _static_key(x)

    @property
    def guarded_objects(self) -> list[tuple[Any, str]]:
        """The arguments compared by identity, with their paths. All values that a step reads from them are guarded."""
        pairs = zip(self.leaves, self.paths, strict=True)
        return [(x, path) for x, path in pairs if not isinstance(x, Tensor) and not is_value(x)]

    @property
    def key(self) -> tuple[Any, ...]:
        """The cache key: a trace may be replayed for arguments with an equal key if its guards hold."""
        overlaps = find_overlaps(self.tensors)
        return self.leaf_keys, overlaps, modes.grad, get_default_dtype(), get_default_device(), modes.strict, self.spec

    @property
    def named_specs(self) -> list[tuple[str, TreeSpec]]:
        """The parameter name and the structure of each argument."""
        positional, keywords = self.spec.children
        names, rest = _parameters(self._function)
        names = [*names, *[f"{rest}[{k}]" for k in range(len(self._args))]][: len(self._args)]
        return list(zip((*names, *self._kwargs), (*positional.children, *keywords.children), strict=True))

    @property
    def paths(self) -> list[str]:
        """An expression for each leaf, in terms of the function's parameter names."""
        return [path for name, spec in self.named_specs for path in tree_paths(spec, name)]

    @property
    def names(self) -> list[str]:
        """The path of each tensor."""
        paths = {id(x): path for x, path in reversed([*zip(self.leaves, self.paths, strict=True)])}
        return [paths[id(x)] for x in self.tensors]

    def with_symbolic_floats(self, book: SymbolicTrace, inputs: list[float]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with floats replaced by symbolic floats, whose values `book` reads from `inputs`.

        `inputs` is initialised with the floats of this call. An argument without floats stays the same object."""
        inputs[:] = self.floats
        for k, path in enumerate(self.paths):
            if self.leaf_keys[k] is float:
                read = partial(inputs.__getitem__, self.leaf_keys[:k].count(float))
                self.leaves[k] = book.add_input(read, f"the argument `{path}`")
        leaves, arguments, start = iter(self.leaves), [], 0
        for x, (_, spec) in zip((*self._args, *self._kwargs.values()), self.named_specs, strict=True):
            is_unchanged = float not in self.leaf_keys[start : start + spec.num_leaves]
            start += spec.num_leaves
            rebuilt = rebuild_tree(spec, leaves) if not is_unchanged else [next(leaves) for _ in range(spec.num_leaves)]
            arguments.append(x if is_unchanged else rebuilt)
        count = len(self._args)
        return tuple(arguments[:count]), dict(zip(self._kwargs, arguments[count:], strict=True))

    def check_unmutated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise CaptureError if the step mutated a container among the arguments that `with_symbolic_floats`
        returned."""
        start = 0
        for x, (name, spec) in zip((*args, *kwargs.values()), self.named_specs, strict=True):
            leaves, spec_after = tree_flatten(x, is_leaf)
            leaves_before = self.leaves[start : start + spec.num_leaves]
            start += spec.num_leaves
            if spec_after != spec or any(a is not b for a, b in zip(leaves, leaves_before, strict=True)):
                raise CaptureError(
                    f"jit: the step mutates its argument `{name}`, {describe_type(x)}, and a replay would not.\n"
                    "  Return the new contents, and assign them outside; tensors may be written in place."
                )

    def describe_first_call(self) -> str:
        """Return the reason for a trace with a new key: the shapes and values of the arguments."""
        shapes = [f"tensors of shapes {' and '.join([str(x.shape) for x in self.tensors])}"] if self.tensors else []
        leaves = [(path, x) for path, x in zip(self.paths, self.leaves, strict=True) if type(x) in (bool, int, str)]
        description = ", ".join([*shapes, *[f"{path}={x!r}" for path, x in leaves]])
        return f"the first call with {description}" if description else "the first call"


def _parameters(function: Callable[..., Any]) -> tuple[list[str], str]:
    """Return the names of a function's positional parameters, and the name of its variadic one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a C function, for example
        return [], "arguments"
    names = [x.name for x in parameters if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]
    return names, next((x.name for x in parameters if x.kind is x.VAR_POSITIONAL), "arguments")


def _unreadable_reason(x: Any) -> str:
    """Return why a replay cannot read an argument's elements, with advice for the user, or "" if it can."""
    if isinstance(x, np.ndarray | np.generic):
        if x.size <= MAX_COMPARED_ELEMENTS and not x.dtype.hasobject:
            return ""
        return (
            f"a NumPy array of shape {x.shape}, whose elements a replay would not read.\n"
            "  Convert it to a tensor: mg.tensor(x), or mg.from_numpy(x), which shares its memory."
        )
    if hasattr(type(x), "__next__"):
        return f"{describe_type(x)}, and a replay would not call next() on it.\n  Call it outside: step(next(items))."
    if hasattr(type(x), "__dlpack__") or hasattr(type(x), "__array__"):
        return f"{describe_type(x)}, whose elements a replay would not read.\n  Convert it to a tensor: mg.tensor(x)."
    try:
        writable = not memoryview(x).readonly
    except TypeError:
        return ""
    return f"{describe_type(x)}, whose bytes a replay would not read.\n  Pass bytes, or a tensor." if writable else ""


def _static_key(x: Any) -> Any:
    """Return the cache key of an argument without tensors: its value, or its identity."""
    kind: Any = type(x)
    if isinstance(x, np.ndarray | np.generic):
        return kind, x.dtype, x.shape, x.tobytes()
    if getattr(x, "__dict__", None):
        return IdentityKey(x)
    is_by_value = (
        isinstance(x, Hashable)
        and kind.__eq__ is not object.__eq__
        and kind.__module__.split(".")[0] in _IMMUTABLE_MODULES
    )
    return type_sensitive_key(x) if is_by_value or isinstance(x, Number | str | bytes) else IdentityKey(x)


def find_overlaps(tensors: list[Tensor]) -> Any:
    """Return the pairs of arguments that overlap in memory, with byte offsets, since a write to one changes both."""
    if len(tensors) < 2:
        return ()
    overlaps, (last, start, reach) = [], (0, 0, 0)
    for first, end, k in sorted([(*address_range(x._array), k) for k, x in enumerate(tensors)]):
        if first < reach:
            overlaps.append((k, last, first - start))
        if end > reach:
            last, start, reach = k, first, end
    return tuple(overlaps)
