"""Names of nodes: their labels, or else the variables that hold them."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import FunctionType, MethodType, ModuleType
from typing import Any

import minigrad as mg
from minigrad.core.graph import Event, Node, Recording
from minigrad.core.snapshot import node_of
from minigrad_viz.trace.notation import clean, subscript

__all__ = ["Namespaces", "callers", "holders", "names_of", "told_apart"]

Namespaces = Sequence[Mapping[str, Any]]

_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_NOT_OURS = {"In", "Out"}  # IPython's history
_DEEPEST = 6  # nesting of containers and objects: model.layers[0].attention.query.weight
_LONGEST = 10_000  # a longer list is data, not a handful of named weights
_MOST = 2_000  # containers and objects searched per variable
_PLAIN = (int, float, str, bool, type(None))  # contain no nodes
_NO_MODELS = (
    str,
    type,
    ModuleType,
    FunctionType,
    MethodType,
    Event,
    Recording,
)  # not searched for nodes


def callers() -> Namespaces:
    """Return the variables of the caller of this package: locals, then globals."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame.f_locals is frame.f_globals:
        return (frame.f_globals,)
    return (frame.f_locals, frame.f_globals)


def names_of(
    nodes: Sequence[Any], namespaces: Namespaces, label_of: Callable[[Any], str | None] | None = None
) -> dict[Any, str]:
    """Return the names of those `nodes` that have one. A label has priority; then the path in a module's
    ``state_dict``, prefixed with the module's name if the graph has several; then the variable defined first, or a path
    through lists, tuples, dicts and objects such as ``w[0]`` and ``model.w``. The node of a computed tensor is its
    ``grad_fn``. Variables and attributes with a leading underscore, shadowed globals, and variables named like another
    node's label are skipped.

    >>> a, w = mg.Value(1.0), [mg.Value(2.0), mg.Value(3.0, "bias")]
    >>> names = names_of([a, *w], [{"a": a, "_a": a, "w": w}])
    >>> [names[x] for x in (a, *w)]
    ['a', 'w[0]', 'bias']
    """
    names: dict[Any, str] = {}
    for node in nodes:
        label = getattr(node, "label", None) if label_of is None else label_of(node)
        if label is not None and (label := clean(label)).strip():
            names[node] = label
    wanted = set(nodes) - names.keys()
    taken = set(names.values())
    hidden: set[str] = set()
    found: list[tuple[str, Any]] = []
    for namespace in namespaces:
        found += _variables(namespace, hidden)
        hidden.update(namespace)
    modules = [(name, held) for name, held in found if _is_module(held)]
    others = [(name, node_of(held)) for name, held in found if not _is_module(held)]
    for name, node in (*_in_modules(modules, wanted), *others):
        if node in wanted and name not in taken:
            wanted.discard(node)
            taken.add(name)
            names[node] = name
    return names


def _in_modules(modules: Sequence[tuple[str, Any]], wanted: set[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parameters and buffers of `modules`, named by their paths in the outermost modules."""
    inner = {id(part) for _, module in modules for part in module.modules() if part is not module}
    outer: dict[int, tuple[str, Any]] = {}
    for name, module in modules:
        if id(module) not in inner:
            outer.setdefault(id(module), (name, module))
    named = [(name, [*module.named_parameters(), *module.named_buffers()]) for name, module in outer.values()]
    used = [(name, parts) for name, parts in named if any(x in wanted for _, x in parts)]
    for name, parts in used:
        yield from ((f"{name}.{path}" if len(used) > 1 else path, x) for path, x in parts)


def holders(namespaces: Namespaces) -> dict[Any, Any]:
    """Return the tensors among the variables, by node."""
    found: dict[Any, Any] = {}
    for namespace in namespaces:
        for _, held in _variables(namespace, ()):
            if not (isinstance(held, mg.Value) or _is_module(held)):
                found.setdefault(node_of(held), held)
    return found


def told_apart(names: Sequence[str | None], handles: Collection[str]) -> list[str | None]:
    """Append a subscript to each of `names` that is used by several nodes or reserved in `handles`.

    >>> told_apart(["w", "b", None, "w", "v₂"], {"v₂"})
    ['w₁', 'b', None, 'w₂', 'v₂₁']
    """
    counts = Counter([*filter(None, names), *handles])
    taken = set(counts)
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(1))
    apart = list(names)
    for place, name in enumerate(names):
        if name is not None and counts[name] > 1:
            apart[place] = next(longer for n in numbers[name] if (longer := name + subscript(n)) not in taken)
            taken.add(apart[place] or "")
    return apart


def _variables(namespace: Mapping[str, Any], hidden: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield Values, tensors and modules in a namespace and its containers, in definition order."""
    for name, held in list(namespace.items()):
        if not (name.startswith("_") or name in _NOT_OURS or name in hidden) and name.isidentifier():
            yield from _found(name, held)


def _found(name: str, held: Any) -> Iterator[tuple[str, Any]]:
    """Yield `held` if it is a Value, tensor or module, and those inside it, breadth first."""
    waiting, seen = deque([(name, held, 0)]), set[int]()
    while waiting:
        name, held, depth = waiting.popleft()
        if _is_number(held):
            yield name, held
        elif depth < _DEEPEST and id(held) not in seen and len(seen) < _MOST:
            seen.add(id(held))
            if _is_module(held):
                yield name, held
            waiting += [(inner, x, depth + 1) for inner, x in _parts(name, held) if x.__class__ not in _PLAIN]


def _parts(name: str, held: Any) -> Iterable[tuple[str, Any]]:
    """Return the contents of a list, tuple, dict or object, each named as a user writes it."""
    if isinstance(held, _NO_MODELS):
        return ()
    if isinstance(held, list | tuple | dict):
        if len(held) > _LONGEST:
            return ()
        if hasattr(held, "_fields"):  # a named tuple
            return [(f"{name}.{key}", x) for key, x in zip(held._fields, held, strict=True)]
        items = list(held.items()) if isinstance(held, dict) else enumerate(held)
        return [(clean(f"{name}[{key!r}]"), x) for key, x in items if isinstance(key, str | int)]
    if not hasattr(held, "__dict__"):
        return ()
    parts = {**vars(held), **(held._modules if _is_module(held) else {})}
    return [(f"{name}.{key}", x) for key, x in parts.items() if not str(key).startswith("_")]


def _is_module(held: Any) -> bool:
    """Whether `held` is an `nn.Module`."""
    return isinstance(held, getattr(sys.modules.get("minigrad.nn.module"), "Module", ()))


def _is_number(held: Any) -> bool:
    """Whether `held` is a Value or a tensor."""
    return isinstance(held, Node) and (isinstance(held, mg.Value) or hasattr(held, "grad_fn"))
