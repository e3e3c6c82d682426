"""Pytrees: flatten nested containers into a list of leaves, and rebuild the same structure around other leaves.

The functions have the names and signatures of ``torch.utils._pytree``. Containers are

- tuples, named tuples, lists, deques, dicts, OrderedDicts, defaultdicts, Counters, sets, frozensets and slices, and
  instances of subclasses, with their attributes; views of dicts, and None, which has no leaves;
- instances of dataclasses, SimpleNamespaces and any other mapping class, through their attributes, including slots and
  fields outside ``__init__``. They are rebuilt without calling ``__init__`` or ``__new__``;
- instances of classes registered with `register_pytree_node`.

Everything else is a leaf, including enum members. A set is flattened in its iteration order.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from numbers import Number
from struct import pack
from types import FunctionType, MappingProxyType, MemberDescriptorType, NoneType, SimpleNamespace
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, check_callable, describe_type

__all__ = [
    "TreeSpec",
    "register_pytree_node",
    "tree_flatten",
    "tree_map",
    "tree_paths",
    "tree_unflatten",
    "type_sensitive_key",
]

Leaves = list[Any]


class _NodeType(NamedTuple):
    """The functions of a container class: `flatten` returns the children and a context, `build` is its inverse."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    build: Callable[[type, list[Any], Any], Any]


class _ContainerContext(NamedTuple):
    """Context of a built-in container: the data, besides its children, by which structures are compared."""

    keys: tuple[Any, ...] | None = None
    extra: Any = None
    """The `default_factory` of a defaultdict or the `maxlen` of a deque."""
    attributes: tuple[tuple[type | None, str], ...] = ()
    """The name of each attribute, with the class that defines its slot, or None if it is in ``__dict__``."""


class TreeSpec:
    """The structure of a pytree, that is, its containers without the leaves.

    Specs are equal if their containers have the same types and the same keys in the same order. Keys are compared by
    type and value: 1, 1.0 and True differ, and so do 0.0 and -0.0.
    """

    __slots__ = ("build", "children", "context", "num_leaves", "type")

    def __init__(
        self, type: type | None = None, build: Any = None, context: Any = None, children: tuple[TreeSpec, ...] = ()
    ) -> None:
        self.type, self.build, self.context, self.children = type, build, context, children
        self.num_leaves: int = 1 if type is None else sum([child.num_leaves for child in children])
        """The number of leaves."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec) or self.type is not other.type or len(self.children) != len(other.children):
            return False
        same = self.context is other.context or type_sensitive_key(self.context) == type_sensitive_key(other.context)
        return same and self.children == other.children

    def __hash__(self) -> int:
        return hash((self.type, self.children))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return (
            f"{self.type.__name__}({', '.join([f'{name}: {child!r}' for name, child in self._children_with_paths()])})"
        )

    def _children_with_paths(self) -> Iterator[tuple[str, TreeSpec]]:
        """Yield each child with the expression that accesses it, such as ``[0]`` or ``.name``."""
        layout = self.context if type(self.context) is _ContainerContext else _ContainerContext()
        count = len(self.children) - len(layout.attributes)
        keys: Iterable[Any] = range(count) if layout.keys is None else layout.keys
        names = [f".{name}" for name in getattr(self.type, "_fields", ())[:count]] or [f"[{key!r}]" for key in keys]
        yield from zip([*names, *[f".{name}" for _, name in layout.attributes]], self.children, strict=True)


_LEAF = TreeSpec()


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[Leaves, TreeSpec]:
    """Return the leaves of a pytree and its structure. Nodes for which `is_leaf` returns true are leaves.

    An object that occurs twice is flattened twice. Raises ArgumentError for a container that contains itself.

    >>> tree_flatten({"w": [1.0, 2.0], "b": None})
    ([1.0, 2.0], dict(['w']: list([0]: *, [1]: *), ['b']: NoneType()))
    """
    leaves: Leaves = []
    try:
        return leaves, _flatten(tree, leaves, is_leaf, set())
    except RecursionError:
        raise ArgumentError(
            f"tree_flatten: {describe_type(tree)} is nested deeper than Python's recursion limit."
        ) from None


def _flatten(x: Any, leaves: Leaves, is_leaf: Callable[[Any], bool] | None, ancestors: set[int]) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(x) else _node_type_of(x)
    if node is None:
        leaves.append(x)
        return _LEAF
    if id(x) in ancestors:
        raise ArgumentError(
            f"tree_flatten: {describe_type(x)} contains itself, so that it has infinitely many leaves.\n"
            "  Remove the circular reference."
        )
    ancestors.add(id(x))
    children, context = node.flatten(x)
    children_specs = tuple([_flatten(child, leaves, is_leaf, ancestors) for child in children])
    ancestors.discard(id(x))
    return TreeSpec(type(x), node.build, context, children_specs)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Build a pytree with the structure `treespec` from `leaves`. It is the inverse of `tree_flatten`.

    Raises ShapeError if the number of leaves does not match.

    >>> leaves, structure = tree_flatten({"w": [1.0, 2.0], "b": None})
    >>> tree_unflatten([10 * x for x in leaves], structure)
    {'w': [10.0, 20.0], 'b': None}
    """
    leaf_list = list(leaves)
    if len(leaf_list) != treespec.num_leaves:
        raise ShapeError(
            f"tree_unflatten: got {len(leaf_list)} leaves but expected {treespec.num_leaves}: {treespec!r}."
        )
    return _build(treespec, iter(leaf_list))


def _build(spec: TreeSpec, leaves: Iterator[Any]) -> Any:
    if spec.type is None:
        return next(leaves)
    return spec.build(spec.type, [_build(child, leaves) for child in spec.children], spec.context)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Apply `func` to each leaf of `tree` and the corresponding leaves of `rests`; return a pytree of the results.

    Raises ShapeError unless `rests` have the structure of `tree`.

    >>> tree_map(lambda x, y: x + y, {"w": [1, 2]}, {"w": [10, 20]})
    {'w': [11, 22]}
    """
    (leaves, spec), *other_trees = [tree_flatten(x, is_leaf) for x in (tree, *rests)]
    for _, other_spec in other_trees:
        if other_spec != spec:
            raise ShapeError(f"tree_map: the tree structures {spec!r} and {other_spec!r} differ.")
    return _build(spec, map(func, leaves, *[other_leaves for other_leaves, _ in other_trees]))


def tree_paths(treespec: TreeSpec, name: str = "") -> list[str]:
    """Return, for each leaf, the expression that accesses it in a variable `name`.

    >>> tree_paths(tree_flatten({"w": [1.0, 2.0]})[1], "state")
    ["state['w'][0]", "state['w'][1]"]
    """
    if treespec.type is None:
        return [name]
    return [
        path for child_path, child in treespec._children_with_paths() for path in tree_paths(child, name + child_path)
    ]


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
) -> None:
    """Register `cls`, but not its subclasses, as a container, as in PyTorch.

    ``flatten_fn(x)`` returns the children and a context, which is compared by ``==``; ``unflatten_fn(children,
    context)`` rebuilds an instance. `mg.jit` traces a function once for all arguments of equal structure, and on each
    call rebuilds the containers that the function returns.

    Raises DTypeError if `cls` is not a class or the functions are not callable, ArgumentError if it is registered
    already.

    >>> import minigrad as mg
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> mg.register_pytree_node(Pair, lambda x: ([x.first, x.second], None), lambda children, _: Pair(*children))
    >>> step = mg.jit(lambda pair: Pair(pair.first + pair.second, pair.first))
    >>> step(Pair(mg.tensor(1.0), mg.tensor(2.0))).first
    tensor(3.)
    """
    if not isinstance(cls, type):
        raise DTypeError(f"register_pytree_node: {cls!r:.100} is {describe_type(cls)}; expected a class.")
    check_callable(flatten_fn, "register_pytree_node")
    check_callable(unflatten_fn, "register_pytree_node")
    if cls in _NODE_TYPES or cls in _CONTAINER_TYPES:
        raise ArgumentError(f"register_pytree_node: {cls.__qualname__} is already registered as a pytree node.")
    _NODE_TYPES[cls] = _NodeType(flatten_fn, lambda _, children, context: unflatten_fn(children, context))


def type_sensitive_key(x: Any) -> Any:
    """Return a key that compares equal only for objects of the same type and value.

    1, 1.0 and True differ, and so do 0.0 and -0.0; nan is equal to itself.

    >>> pairs = ((1, 0.0), (True, 0.0)), (-0.0, 0.0), (float("nan"), float("nan"))
    >>> [type_sensitive_key(a) == type_sensitive_key(b) for a, b in pairs]
    [False, False, True]
    """
    cls = type(x)
    if isinstance(x, tuple | list):
        return cls, tuple(map(type_sensitive_key, x))
    if cls in (int, str, bool, NoneType):
        return cls, x
    if isinstance(x, float | complex):
        return cls, pack("dd", x.real, x.imag)
    if isinstance(x, Number) and not isinstance(x, int):  # Equal Decimals may differ in trailing zeros.
        return (cls, x.as_tuple()) if hasattr(x, "as_tuple") else (cls, x, repr(x))
    return cls, frozenset(map(type_sensitive_key, x)) if cls is frozenset else x


# --- container types ---

# `_container_base` returns the first of these in the method resolution order, where a subclass precedes its base.
_CONTAINER_TYPES = frozenset((tuple, list, dict, OrderedDict, defaultdict, Counter, deque, set, frozenset))
_SCALARS = frozenset((int, float, bool, complex, str, bytes, type, FunctionType))  # fast path for most leaves


def _container_base(cls: type) -> Any:
    """Return `cls` or its first base that is a built-in container, or `object` if there is none."""
    return cls if cls in _CONTAINER_TYPES else next((base for base in cls.__mro__ if base in _CONTAINER_TYPES), object)


def _node_type_of(x: Any) -> _NodeType | None:
    """Return the node type of `x`, or None if `x` is a leaf."""
    cls = type(x)
    node = _NODE_TYPES.get(cls)
    if node is not None or cls in _SCALARS or issubclass(cls, Enum):
        return node
    if _container_base(cls) is not object or is_dataclass(cls) or issubclass(cls, SimpleNamespace):
        return _OBJECT_NODE
    if isinstance(x, Mapping):
        return _OBJECT_NODE if hasattr(x, "__dict__") or any(_slots(cls)) else _MAPPING_NODE
    return None


def _flatten_object(x: Any) -> tuple[list[Any], _ContainerContext]:
    cls, keys, extra = type(x), None, None
    base = _container_base(cls)
    items: Iterable[Any] = ()
    if issubclass(base, dict):
        keys, items, extra = tuple(base.keys(x)), base.values(x), x.default_factory if base is defaultdict else None
    elif base is not object:
        items, extra = base.__iter__(x), x.maxlen if base is deque else None
    if cls is base:
        return list(items), _ContainerContext(keys, extra)
    attributes: list[tuple[type | None, str, Any]] = [(None, *item) for item in getattr(x, "__dict__", {}).items()]
    for owner, name, slot in _slots(cls):
        try:
            attributes.append((owner, name, slot.__get__(x)))
        except AttributeError:  # unset slot
            continue
    names = tuple([(owner, name) for owner, name, _ in attributes])
    return [*items, *[value for _, _, value in attributes]], _ContainerContext(keys, extra, names)


def _build_object(cls: type, children: list[Any], layout: _ContainerContext) -> Any:
    base, count = _container_base(cls), len(children) - len(layout.attributes)
    items = children[:count]
    if base in (tuple, frozenset):
        instance = base.__new__(cls, items)
    else:
        instance = (SimpleNamespace if issubclass(cls, SimpleNamespace) else base).__new__(cls)
        if layout.keys is not None:
            for key, value in zip(layout.keys, items, strict=True):
                base.__setitem__(instance, key, value)
            if base is defaultdict:
                instance.default_factory = layout.extra
        elif base is not object:
            base.__init__(instance, items, *([layout.extra] if base is deque else []))
    for (owner, name), value in zip(layout.attributes, children[count:], strict=True):
        if owner is None:
            vars(instance)[name] = value
        else:
            vars(owner)[name].__set__(instance, value)
    return instance


def _slots(cls: type) -> Iterator[tuple[type, str, Any]]:
    """Yield each slot of a class and its bases, as the class that defines it, its name, and its descriptor."""
    for owner in cls.__mro__:
        if "__slots__" in vars(owner):
            yield from ((owner, name, x) for name, x in vars(owner).items() if type(x) is MemberDescriptorType)


def _dict_view_node(name: str) -> _NodeType:
    """Return the node type of a dict view. Flattening copies the dict, so that later changes have no effect."""
    return _NodeType(lambda x: ([x.mapping.copy()], None), lambda _, children, __: getattr(children[0], name)())


_OBJECT_NODE = _NodeType(_flatten_object, _build_object)
_MAPPING_NODE = _NodeType(  # for mappings of extension modules, which have no accessible attributes
    lambda x: (list(x.values()), _ContainerContext(tuple(x))),
    lambda cls, children, layout: cls(dict(zip(layout.keys, children, strict=True))),
)
_NODE_TYPES: dict[type, _NodeType] = {
    tuple: _NodeType(lambda x: (x, None), lambda _, children, __: tuple(children)),
    list: _NodeType(lambda x: (x, None), lambda _, children, __: children),
    dict: _NodeType(
        lambda x: (x.values(), _ContainerContext(tuple(x))),
        lambda _, children, layout: dict(zip(layout.keys, children, strict=True)),
    ),
    NoneType: _NodeType(lambda _: ((), None), lambda *_: None),
    slice: _NodeType(lambda x: ((x.start, x.stop, x.step), None), lambda _, children, __: slice(*children)),
    MappingProxyType: _NodeType(lambda x: ([x.copy()], None), lambda _, children, __: MappingProxyType(children[0])),
    **{
        type(getattr(kind(), name)()): _dict_view_node(name)
        for kind in (dict, OrderedDict)
        for name in ("keys", "values", "items")
    },
}
