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

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, a_kind, check_function

__all__ = ["TreeSpec", "exact", "register_pytree_node", "tree_flatten", "tree_map", "tree_paths", "tree_unflatten"]

Leaves = list[Any]


class _Node(NamedTuple):
    """The flatten and unflatten functions of a container class: to (children, context), and back with the class."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    build: Callable[[type, list[Any], Any], Any]


class _Layout(NamedTuple):
    """The context of a built-in container, which must be equal in addition to the number of children."""

    keys: tuple[Any, ...] | None = None
    extra: Any = None
    """The `default_factory` of a defaultdict, the `maxlen` of a deque."""
    attributes: tuple[tuple[type | None, str], ...] = ()
    """Attribute names, each with the class that defines its slot, or None if it is in ``__dict__``."""


class TreeSpec:
    """The structure of a pytree: its containers without their leaves.

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
        same = self.context is other.context or exact(self.context) == exact(other.context)
        return same and self.children == other.children

    def __hash__(self) -> int:
        return hash((self.type, self.children))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"{self.type.__name__}({', '.join([f'{name}: {child!r}' for name, child in self._named()])})"

    def _named(self) -> Iterator[tuple[str, TreeSpec]]:
        """Yield each child with its access path."""
        layout = self.context if type(self.context) is _Layout else _Layout()
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
        raise ArgumentError(f"tree_flatten: {a_kind(tree)} is nested deeper than Python's recursion limit.") from None


def _flatten(x: Any, leaves: Leaves, is_leaf: Callable[[Any], bool] | None, above: set[int]) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(x) else _node_of(x)
    if node is None:
        leaves.append(x)
        return _LEAF
    if id(x) in above:
        raise ArgumentError(
            f"tree_flatten: {a_kind(x)} contains itself, so that it has infinitely many leaves.\n"
            "  Remove the circular reference."
        )
    above.add(id(x))
    children, context = node.flatten(x)
    found = tuple([_flatten(child, leaves, is_leaf, above) for child in children])
    above.discard(id(x))
    return TreeSpec(type(x), node.build, context, found)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Rebuild a pytree of the structure `treespec` from `leaves`; the inverse of `tree_flatten`.

    Raises ShapeError if the number of leaves does not match.

    >>> leaves, structure = tree_flatten({"w": [1.0, 2.0], "b": None})
    >>> tree_unflatten([10 * x for x in leaves], structure)
    {'w': [10.0, 20.0], 'b': None}
    """
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ShapeError(f"tree_unflatten: got {len(given)} leaves but expected {treespec.num_leaves}: {treespec!r}.")
    return _build(treespec, iter(given))


def _build(spec: TreeSpec, leaves: Iterator[Any]) -> Any:
    if spec.type is None:
        return next(leaves)
    return spec.build(spec.type, [_build(child, leaves) for child in spec.children], spec.context)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return `tree` with each leaf replaced by ``func(leaf, *corresponding leaves of rests)``.

    Raises ShapeError unless `rests` have the structure of `tree`.

    >>> tree_map(lambda x, y: x + y, {"w": [1, 2]}, {"w": [10, 20]})
    {'w': [11, 22]}
    """
    (leaves, spec), *others = [tree_flatten(x, is_leaf) for x in (tree, *rests)]
    for _, other in others:
        if other != spec:
            raise ShapeError(f"tree_map: the tree structures {spec!r} and {other!r} differ.")
    return _build(spec, map(func, leaves, *[found for found, _ in others]))


def tree_paths(treespec: TreeSpec, name: str = "") -> list[str]:
    """Return the access path of each leaf as an expression that starts with `name`.

    >>> tree_paths(tree_flatten({"w": [1.0, 2.0]})[1], "state")
    ["state['w'][0]", "state['w'][1]"]
    """
    if treespec.type is None:
        return [name]
    return [path for part, child in treespec._named() for path in tree_paths(child, name + part)]


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
) -> None:
    """Register `cls`, without its subclasses, as a container, as in PyTorch.

    ``flatten_fn(x)`` returns the children and a context, which is compared by ``==``; ``unflatten_fn(children,
    context)`` rebuilds an instance. `mg.jit` traces a function once for all arguments of equal structure, and rebuilds
    the containers that it returns on each call.

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
        raise DTypeError(f"register_pytree_node: {cls!r:.100} is {a_kind(cls)}; expected a class.")
    check_function(flatten_fn, "register_pytree_node")
    check_function(unflatten_fn, "register_pytree_node")
    if cls in _NODES or cls in _BASES:
        raise ArgumentError(f"register_pytree_node: {cls.__qualname__} is already registered as a pytree node.")
    _NODES[cls] = _Node(flatten_fn, lambda _, children, context: unflatten_fn(children, context))


def exact(x: Any) -> Any:
    """Return a key that compares equal only for objects of the same type and value.

    1, 1.0 and True differ, and so do 0.0 and -0.0; nan is equal to itself.

    >>> exact((1, 0.0)) == exact((True, 0.0)), exact(-0.0) == exact(0.0), exact(float("nan")) == exact(float("nan"))
    (False, False, True)
    """
    kind = type(x)
    if isinstance(x, tuple | list):
        return kind, tuple(map(exact, x))
    if kind in (int, str, bool, NoneType):
        return kind, x
    if isinstance(x, float | complex):
        return kind, pack("dd", x.real, x.imag)
    if isinstance(x, Number) and not isinstance(x, int):  # Decimals have trailing zeros, and their nans differ
        return (kind, x.as_tuple()) if hasattr(x, "as_tuple") else (kind, x, repr(x))
    return kind, frozenset(map(exact, x)) if kind is frozenset else x


# --- container types ---

# In the method resolution order a subclass precedes its base.
_BASES = frozenset((tuple, list, dict, OrderedDict, defaultdict, Counter, deque, set, frozenset))
_SCALARS = frozenset((int, float, bool, complex, str, bytes, type, FunctionType))  # fast path for most leaves


def _base_of(cls: type) -> Any:
    """Return the built-in container class that a class is or derives from, else object."""
    return cls if cls in _BASES else next((base for base in cls.__mro__ if base in _BASES), object)


def _node_of(x: Any) -> _Node | None:
    """Return the node type of `x`, None if it is a leaf."""
    cls = type(x)
    node = _NODES.get(cls)
    if node is not None or cls in _SCALARS or issubclass(cls, Enum):
        return node
    if _base_of(cls) is not object or is_dataclass(cls) or issubclass(cls, SimpleNamespace):
        return _OBJECT
    if isinstance(x, Mapping):
        return _OBJECT if hasattr(x, "__dict__") or any(_slots(cls)) else _BUILT
    return None


def _flatten_object(x: Any) -> tuple[list[Any], _Layout]:
    cls, keys, extra = type(x), None, None
    base = _base_of(cls)
    items: Iterable[Any] = ()
    if issubclass(base, dict):
        keys, items, extra = tuple(base.keys(x)), base.values(x), x.default_factory if base is defaultdict else None
    elif base is not object:
        items, extra = base.__iter__(x), x.maxlen if base is deque else None
    if cls is base:
        return list(items), _Layout(keys, extra)
    found: list[tuple[type | None, str, Any]] = [(None, *item) for item in getattr(x, "__dict__", {}).items()]
    for owner, name, slot in _slots(cls):
        try:
            found.append((owner, name, slot.__get__(x)))
        except AttributeError:  # unset slot
            continue
    names = tuple([(owner, name) for owner, name, _ in found])
    return [*items, *[value for _, _, value in found]], _Layout(keys, extra, names)


def _build_object(cls: type, children: list[Any], layout: _Layout) -> Any:
    base, count = _base_of(cls), len(children) - len(layout.attributes)
    items = children[:count]
    if base in (tuple, frozenset):
        made = base.__new__(cls, items)
    else:
        made = (SimpleNamespace if issubclass(cls, SimpleNamespace) else base).__new__(cls)
        if layout.keys is not None:
            for key, value in zip(layout.keys, items, strict=True):
                base.__setitem__(made, key, value)
            if base is defaultdict:
                made.default_factory = layout.extra
        elif base is not object:
            base.__init__(made, items, *([layout.extra] if base is deque else []))
    for (owner, name), value in zip(layout.attributes, children[count:], strict=True):
        if owner is None:
            vars(made)[name] = value
        else:
            vars(owner)[name].__set__(made, value)
    return made


def _slots(cls: type) -> Iterator[tuple[type, str, Any]]:
    """Yield the slots of a class: the defining class, the name, and the descriptor."""
    for owner in cls.__mro__:
        if "__slots__" in vars(owner):
            yield from ((owner, name, x) for name, x in vars(owner).items() if type(x) is MemberDescriptorType)


def _view(name: str) -> _Node:
    """Return the node type of a dict view, which copies the dict to be independent of later changes."""
    return _Node(lambda x: ([x.mapping.copy()], None), lambda _, children, __: getattr(children[0], name)())


_OBJECT = _Node(_flatten_object, _build_object)
_BUILT = _Node(  # a mapping of an extension module, without visible attributes
    lambda x: (list(x.values()), _Layout(tuple(x))),
    lambda cls, children, layout: cls(dict(zip(layout.keys, children, strict=True))),
)
_NODES: dict[type, _Node] = {
    tuple: _Node(lambda x: (x, None), lambda _, children, __: tuple(children)),
    list: _Node(lambda x: (x, None), lambda _, children, __: children),
    dict: _Node(
        lambda x: (x.values(), _Layout(tuple(x))),
        lambda _, children, layout: dict(zip(layout.keys, children, strict=True)),
    ),
    NoneType: _Node(lambda _: ((), None), lambda *_: None),
    slice: _Node(lambda x: ((x.start, x.stop, x.step), None), lambda _, children, __: slice(*children)),
    MappingProxyType: _Node(lambda x: ([x.copy()], None), lambda _, children, __: MappingProxyType(children[0])),
    **{
        type(getattr(kind(), name)()): _view(name)
        for kind in (dict, OrderedDict)
        for name in ("keys", "values", "items")
    },
}
