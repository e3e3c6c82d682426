"""Names of nodes. A node is named by its label, or else by the variable that contains it."""

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
from minigrad.core.snapshot import get_node
from minigrad_viz.trace.notation import sanitize, subscript

__all__ = ["Namespaces", "caller_namespaces", "disambiguate", "is_torch", "names_of", "tensors_by_node"]

Namespaces = Sequence[Mapping[str, Any]]

PACKAGE_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
IPYTHON_HISTORY = {"In", "Out"}  # IPython's history
MAX_DEPTH = 6  # maximum nesting of containers and objects, as in model.layers[0].attention.query.weight
MAX_CONTAINER_LENGTH = 10_000  # maximum length of a list that is searched for named weights; longer lists are data
MAX_OBJECTS = 2_000  # maximum number of containers and objects searched per variable
LEAF_TYPES = (int, float, str, bool, type(None))  # types of objects that contain no nodes
OPAQUE_TYPES = (
    str,
    type,
    ModuleType,
    FunctionType,
    MethodType,
    Event,
    Recording,
)  # types of objects that are not searched for nodes


def caller_namespaces() -> Namespaces:
    """Return the local variables, then the global variables, of the function that called this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        frame = frame.f_back
    if frame.f_locals is frame.f_globals:
        return (frame.f_globals,)
    return (frame.f_locals, frame.f_globals)


def names_of(
    nodes: Sequence[Any],
    namespaces: Namespaces,
    label_of: Callable[[Any], str | None] | None = None,
    node_of: Callable[[Any], Any] | None = None,
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
        if label is not None and (label := sanitize(label)).strip():
            names[node] = label
    unnamed = set(nodes) - names.keys()
    used_names = set(names.values())
    hidden: set[str] = set()
    variables: list[tuple[str, Any]] = []
    for namespace in namespaces:
        variables += _variables(namespace, hidden)
        hidden.update(namespace)
    modules = [(name, value) for name, value in variables if _is_module(value)]
    node_of = _node_of if node_of is None else node_of
    non_modules = [(name, node_of(value)) for name, value in variables if not _is_module(value)]
    for name, node in (*_named_in_modules(modules, unnamed), *non_modules):
        if node in unnamed and name not in used_names:
            unnamed.discard(node)
            used_names.add(name)
            names[node] = name
    return names


def _named_in_modules(modules: Sequence[tuple[str, Any]], unnamed: set[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parameters and buffers of `modules`, named by their paths in the outermost modules."""
    inner = {id(part) for _, module in modules for part in module.modules() if part is not module}
    outer: dict[int, tuple[str, Any]] = {}
    for name, module in modules:
        if id(module) not in inner:
            outer.setdefault(id(module), (name, module))
    named = [(name, [*module.named_parameters(), *module.named_buffers()]) for name, module in outer.values()]
    used = [(name, parts) for name, parts in named if any(x in unnamed for _, x in parts)]
    for name, parts in used:
        yield from ((f"{name}.{path}" if len(used) > 1 else path, x) for path, x in parts)


def tensors_by_node(namespaces: Namespaces) -> dict[Any, Any]:
    """Return the tensors in variables, by node."""
    tensors: dict[Any, Any] = {}
    for namespace in namespaces:
        for _, value in _variables(namespace, ()):
            if isinstance(value, Node) and not isinstance(value, mg.Value):
                tensors.setdefault(get_node(value), value)
    return tensors


def disambiguate(names: Sequence[str | None], handles: Collection[str]) -> list[str | None]:
    """Append a subscript to each name that is used by several nodes or reserved in `handles`.

    >>> disambiguate(["w", "b", None, "w", "v₂"], {"v₂"})
    ['w₁', 'b', None, 'w₂', 'v₂₁']
    """
    counts = Counter([*filter(None, names), *handles])
    used_names = set(counts)
    counters: dict[str, Iterator[int]] = defaultdict(lambda: count(1))
    unique_names = list(names)
    for position, name in enumerate(names):
        if name is not None and counts[name] > 1:
            unique_names[position] = next(
                candidate for n in counters[name] if (candidate := name + subscript(n)) not in used_names
            )
            used_names.add(unique_names[position] or "")
    return unique_names


def _variables(namespace: Mapping[str, Any], hidden: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield Values, tensors and modules in a namespace and its containers, in definition order."""
    for name, value in list(namespace.items()):
        if not (name.startswith("_") or name in IPYTHON_HISTORY or name in hidden) and name.isidentifier():
            yield from _search(name, value)


def _search(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the Values, tensors and modules in an object, including the object itself, breadth first."""
    queue, visited = deque([(name, value, 0)]), set[int]()
    while queue:
        name, value, depth = queue.popleft()
        if _is_value_or_tensor(value):
            yield name, value
        elif depth < MAX_DEPTH and id(value) not in visited and len(visited) < MAX_OBJECTS:
            visited.add(id(value))
            if _is_module(value):
                yield name, value
            queue += [(inner, x, depth + 1) for inner, x in _children(name, value) if x.__class__ not in LEAF_TYPES]


def _children(name: str, container: Any) -> Iterable[tuple[str, Any]]:
    """Return the contents of a list, tuple, dict or object, named as in user code."""
    if isinstance(container, OPAQUE_TYPES):
        return ()
    if isinstance(container, list | tuple | dict):
        if len(container) > MAX_CONTAINER_LENGTH:
            return ()
        if hasattr(container, "_fields"):  # a named tuple
            return [(f"{name}.{key}", x) for key, x in zip(container._fields, container, strict=True)]
        items = list(container.items()) if isinstance(container, dict) else enumerate(container)
        return [(sanitize(f"{name}[{key!r}]"), x) for key, x in items if isinstance(key, str | int)]
    if not hasattr(container, "__dict__"):
        return ()
    parts = {**vars(container), **(container._modules if _is_module(container) else {})}
    return [(f"{name}.{key}", x) for key, x in parts.items() if not str(key).startswith("_")]


def _is_module(x: Any) -> bool:
    """Whether `x` is an `nn.Module`, of minigrad or of PyTorch."""
    return isinstance(x, (_class_of("minigrad.nn.module", "Module"), _class_of("torch.nn", "Module")))


def _is_value_or_tensor(x: Any) -> bool:
    """Whether `x` is a Value or a tensor, of minigrad or of PyTorch."""
    if isinstance(x, Node):
        return isinstance(x, mg.Value) or hasattr(x, "grad_fn")
    return isinstance(x, _class_of("torch", "Tensor"))


def is_torch(x: Any) -> bool:
    """Whether `x` is a tensor or a module of PyTorch, or a list of tensors of PyTorch. Does not import PyTorch."""
    if isinstance(x, list | tuple):
        return bool(x) and all(map(is_torch, x))
    return isinstance(x, (_class_of("torch", "Tensor"), _class_of("torch.nn", "Module")))


def _node_of(x: Any) -> Any:
    """Return the node of a Value or a tensor of minigrad; None for a tensor of PyTorch."""
    return get_node(x) if isinstance(x, Node) else None


def _class_of(module: str, name: str) -> Any:
    """Return a class of a module that has been imported, or else an empty tuple, of which nothing is an instance."""
    return getattr(sys.modules.get(module), name, ())
