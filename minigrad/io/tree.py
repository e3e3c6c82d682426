"""Flatten nested containers into named tensors and a JSON-serialisable tree, and unflatten them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from minigrad.core.errors import ArgumentError, DTypeError, FileFormatError, a_kind
from minigrad.core.tensor import Tensor
from minigrad.nn.state import StateDict

__all__ = ["put_together", "taken_apart"]

DEEPEST = 100  # deeper nesting is assumed to be a cycle


def taken_apart(obj: Any) -> tuple[Any, dict[str, Tensor]]:
    """Flatten `obj` into a JSON-serialisable tree and a dict of the tensors that the tree refers to by name.

    >>> taken_apart({"a": (1, float("inf")), 2: None})
    ({'$dict': [['a', {'$tuple': [1, {'$float': 'inf'}]}], [2, None]]}, {})
    """
    tensors: dict[str, Tensor] = {}
    return _plain(obj, (), tensors), tensors


def _plain(x: Any, path: tuple[str, ...], tensors: dict[str, Tensor]) -> Any:
    if isinstance(x, Tensor):
        name = ".".join(path) or "tensor"
        while (
            name in tensors or name == "__metadata__"
        ):  # as in {"a.b": …, "a": {"b": …}}; safetensors reserves __metadata__
            name += "_"
        tensors[name] = x
        return {"$tensor": name}
    if x is None or isinstance(x, bool | int | str):
        return x
    if isinstance(x, float):
        return x if isfinite(x) else {"$float": str(float(x))}
    if len(path) > DEEPEST:
        raise ArgumentError(f"save: {_place(path[:3])} is nested deeper than {DEEPEST} levels, or contains itself.")
    if isinstance(x, list) or type(x) is tuple:
        inner = [_plain(one, (*path, str(k)), tensors) for k, one in enumerate(x)]
        return inner if isinstance(x, list) else {"$tuple": inner}
    if metadata := getattr(x, "_metadata", None):  # a state dict whose modules have versions
        return {"$state": [_plain(dict(x), path, tensors), _plain(metadata, (*path, "_metadata"), tensors)]}
    if isinstance(x, Mapping):
        pairs = [(_key(key, path), _plain(one, (*path, str(key)), tensors)) for key, one in x.items()]
        if all(isinstance(key, str) for key in x) and not any(key.startswith("$") for key in x):
            return dict(pairs)
        return {"$dict": [list(pair) for pair in pairs]}
    raise DTypeError(
        f"save: {_place(path)} is {a_kind(x)}; supported are tensors, Python scalars, strings, and dicts, lists and "
        f"tuples of them.\n  {_advice(x)}"
    )


def _key(key: Any, path: tuple[str, ...]) -> Any:
    small = isinstance(key, int) and -(2**63) <= key < 2**63
    if key is None or small or isinstance(key, str) or (isinstance(key, float) and isfinite(key)):
        return key
    raise DTypeError(
        f"save: {_place(path)} has the key {key!r:.80}; supported keys are strings, and numbers of up to 64 bits."
    )


def _place(path: tuple[str, ...]) -> str:
    return "this" if not path else "".join(["obj", *(f"[{key!r}]" for key in path)])


def _advice(x: Any) -> str:
    if hasattr(x, "state_dict"):
        return "Write save(x.state_dict(), path)."
    if hasattr(x, "_asdict"):
        return "Write x._asdict() for a named tuple."
    if hasattr(x, "tolist"):
        return "Write mg.tensor(x) for an array, x.item() for a scalar."
    return "Omit it, or save its contents as tensors and scalars."


def put_together(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Reverse `taken_apart`. Raises FileFormatError for an invalid tree."""
    try:
        return _nested(tree, tensors)
    except (ArithmeticError, KeyError, TypeError, ValueError, RecursionError):
        raise FileFormatError("load: this file is corrupt: its tree does not match its tensors.") from None


def _nested(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(tree, list):
        return [_nested(one, tensors) for one in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1 or not next(iter(tree)).startswith("$"):
        return {key: _nested(one, tensors) for key, one in tree.items()}
    ((kind, inner),) = tree.items()
    if kind == "$tensor":
        return tensors[inner]
    if kind == "$float":
        return float(inner)
    if kind == "$tuple":
        return tuple([_nested(one, tensors) for one in inner])
    if kind == "$state":
        state = StateDict(_nested(inner[0], tensors))
        state._metadata = _nested(inner[1], tensors)
        return state
    if kind == "$dict":
        if any(isinstance(key, int) and not -(2**63) <= key < 2**63 for key, _ in inner):
            raise ValueError("integer keys must fit in 64 bits, as larger ones allow unlimited hash collisions")
        return {key: _nested(one, tensors) for key, one in inner}
    raise KeyError(kind)
