"""Flatten nested containers into named tensors and a JSON-serialisable tree, and unflatten them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from minigrad.core.errors import ArgumentError, DTypeError, FileFormatError, describe_type
from minigrad.core.tensor import Tensor
from minigrad.nn.state import StateDict

__all__ = ["flatten_tree", "unflatten_tree"]

MAX_DEPTH = 100  # deeper nesting is assumed to be a cycle


def flatten_tree(obj: Any) -> tuple[Any, dict[str, Tensor]]:
    """Flatten `obj` into a JSON-serialisable tree and a dict of the tensors that the tree refers to by name.

    >>> flatten_tree({"a": (1, float("inf")), 2: None})
    ({'$dict': [['a', {'$tuple': [1, {'$float': 'inf'}]}], [2, None]]}, {})
    """
    tensors: dict[str, Tensor] = {}
    return _encode(obj, (), tensors), tensors


def _encode(x: Any, path: tuple[str, ...], tensors: dict[str, Tensor]) -> Any:
    if isinstance(x, Tensor):
        name = ".".join(path) or "tensor"
        while (
            name in tensors or name == "__metadata__"
        ):  # names may collide: {"a.b": …, "a": {"b": …}}; safetensors reserves __metadata__
            name += "_"
        tensors[name] = x
        return {"$tensor": name}
    if x is None or isinstance(x, bool | int | str):
        return x
    if isinstance(x, float):
        return x if isfinite(x) else {"$float": str(float(x))}
    if len(path) > MAX_DEPTH:
        raise ArgumentError(
            f"save: {_format_path(path[:3])} is nested deeper than {MAX_DEPTH} levels, or contains itself."
        )
    if isinstance(x, list) or type(x) is tuple:
        items = [_encode(item, (*path, str(k)), tensors) for k, item in enumerate(x)]
        return items if isinstance(x, list) else {"$tuple": items}
    if metadata := getattr(x, "_metadata", None):  # a state dict that records module versions
        return {"$state": [_encode(dict(x), path, tensors), _encode(metadata, (*path, "_metadata"), tensors)]}
    if isinstance(x, Mapping):
        pairs = [(_check_key(key, path), _encode(one, (*path, str(key)), tensors)) for key, one in x.items()]
        if all(isinstance(key, str) for key in x) and not any(key.startswith("$") for key in x):
            return dict(pairs)
        return {"$dict": [list(pair) for pair in pairs]}
    raise DTypeError(
        f"save: {_format_path(path)} is {describe_type(x)}; supported are tensors, Python scalars, strings, and dicts, "
        f"lists and tuples of them.\n  {_save_advice(x)}"
    )


def _check_key(key: Any, path: tuple[str, ...]) -> Any:
    fits_int64 = isinstance(key, int) and -(2**63) <= key < 2**63
    if key is None or fits_int64 or isinstance(key, str) or (isinstance(key, float) and isfinite(key)):
        return key
    raise DTypeError(
        f"save: {_format_path(path)} has the key {key!r:.80}; supported keys are strings, and numbers of up to 64 bits."
    )


def _format_path(path: tuple[str, ...]) -> str:
    return "this" if not path else "".join(["obj", *(f"[{key!r}]" for key in path)])


def _save_advice(x: Any) -> str:
    if hasattr(x, "state_dict"):
        return "Write save(x.state_dict(), path)."
    if hasattr(x, "_asdict"):
        return "Write x._asdict() for a named tuple."
    if hasattr(x, "tolist"):
        return "Write mg.tensor(x) for an array, x.item() for a scalar."
    return "Omit it, or save its contents as tensors and scalars."


def unflatten_tree(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Rebuild the object that `flatten_tree` flattened. Raises FileFormatError for an invalid tree."""
    try:
        return _decode(tree, tensors)
    except (ArithmeticError, KeyError, TypeError, ValueError, RecursionError):
        raise FileFormatError("load: this file is corrupt: its tree does not match its tensors.") from None


def _decode(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(tree, list):
        return [_decode(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1 or not next(iter(tree)).startswith("$"):
        return {key: _decode(one, tensors) for key, one in tree.items()}
    ((kind, inner),) = tree.items()
    if kind == "$tensor":
        return tensors[inner]
    if kind == "$float":
        return float(inner)
    if kind == "$tuple":
        return tuple([_decode(one, tensors) for one in inner])
    if kind == "$state":
        state = StateDict(_decode(inner[0], tensors))
        state._metadata = _decode(inner[1], tensors)
        return state
    if kind == "$dict":
        if any(isinstance(key, int) and not -(2**63) <= key < 2**63 for key, _ in inner):
            raise ValueError("integer keys must fit in 64 bits, as larger ones allow unlimited hash collisions")
        return {key: _decode(one, tensors) for key, one in inner}
    raise KeyError(kind)
