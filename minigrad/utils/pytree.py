"""Pytrees: flatten nested containers into a list of leaves, and rebuild the same structure around other leaves.

The functions have the names and signatures of ``torch.utils._pytree``. Containers are

- tuples, named tuples, lists, deques, dicts, OrderedDicts, defaultdicts, Counters, sets, frozensets and slices, and
  instances of subclasses, with their attributes; views of dicts, and None, which has no leaves;
- instances of dataclasses, SimpleNamespaces and mappings of any other class, through their attributes, slots and
  fields outside of ``__init__`` included. Neither ``__init__`` nor ``__new__`` is called to build them;
- instances of the classes that `register_pytree_node` names.

Everything else is a leaf, members of enumerations too. A set is flattened in the order in which it iterates.
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
    """How instances of a class are flattened into (children, context), and built from (class, children, context)."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    build: Callable[[type, list[Any], Any], Any]


class _Layout(NamedTuple):
    """The context of a built-in container: what has to be equal beside the number of its children."""

    keys: tuple[Any, ...] | None = None
    extra: Any = None
    """The `default_factory` of a defaultdict, the `maxlen` of a deque."""
    attributes: tuple[tuple[type | None, str], ...] = ()
    """Names of attributes, each with the class that has a slot for it, or None of one in ``__dict__``."""


class TreeSpec:
    """The structure of a pytree: its containers without their leaves.

    Two are equal if they have containers of the same types with the same keys in the same order, by type and value:
    keys 1, 1.0 and True differ, and so do 0.0 and -0.0.
    """

    __slots__ = ("build", "children", "context", "num_leaves", "type")

    def __init__(
        self, type: type | None = None, build: Any = None, context: Any = None, children: tuple[TreeSpec, ...] = ()
    ) -> None:
        self.type, self.build, self.context, self.children = type, build, context, children
        self.num_leaves: int = 1 if type is None else sum([child.num_leaves for child in children])
        """How many leaves the structure has."""

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
        """Each child, and how to get at it."""
        layout = self.context if type(self.context) is _Layout else _Layout()
        count = len(self.children) - len(layout.attributes)
        keys: Iterable[Any] = range(count) if layout.keys is None else layout.keys
        names = [f".{name}" for name in getattr(self.type, "_fields", ())[:count]] or [f"[{key!r}]" for key in keys]
        yield from zip([*names, *[f".{name}" for _, name in layout.attributes]], self.children, strict=True)


_LEAF = TreeSpec()


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[Leaves, TreeSpec]:
    """Return the leaves of a pytree, and its structure. What `is_leaf` is true of is not looked into.

    An object that is there twice is flattened twice. Raises ArgumentError for a container that is inside of itself.

    >>> tree_flatten({"w": [1.0, 2.0], "b": None})
    ([1.0, 2.0], dict(['w']: list([0]: *, [1]: *), ['b']: NoneType()))
    """
    leaves: Leaves = []
    try:
        return leaves, _flatten(tree, leaves, is_leaf, set())
    except RecursionError:
        raise ArgumentError(
            f"tree_flatten: {a_kind(tree)} has more containers in one another than Python goes into."
        ) from None


def _flatten(x: Any, leaves: Leaves, is_leaf: Callable[[Any], bool] | None, above: set[int]) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(x) else _node_of(x)
    if node is None:
        leaves.append(x)
        return _LEAF
    if id(x) in above:
        raise ArgumentError(
            f"tree_flatten: {a_kind(x)} is inside of itself, so that its leaves have no end.\n"
            "  Take the reference back to it out of the structure."
        )
    above.add(id(x))
    children, context = node.flatten(x)
    found = tuple([_flatten(child, leaves, is_leaf, above) for child in children])
    above.discard(id(x))
    return TreeSpec(type(x), node.build, context, found)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Build a pytree of the structure `treespec` around `leaves`, in the order of `tree_flatten`; its inverse.

    Raises ShapeError unless there are as many leaves as the structure has.

    >>> leaves, structure = tree_flatten({"w": [1.0, 2.0], "b": None})
    >>> tree_unflatten([10 * x for x in leaves], structure)
    {'w': [10.0, 20.0], 'b': None}
    """
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ShapeError(f"tree_unflatten: {len(given)} leaves for a structure of {treespec.num_leaves}: {treespec!r}.")
    return _build(treespec, iter(given))


def _build(spec: TreeSpec, leaves: Iterator[Any]) -> Any:
    if spec.type is None:
        return next(leaves)
    return spec.build(spec.type, [_build(child, leaves) for child in spec.children], spec.context)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return `tree` with each leaf replaced by ``func(leaf, *leaves of the others there)``.

    Raises ShapeError unless `rests` have the structure of `tree`.

    >>> tree_map(lambda x, y: x + y, {"w": [1, 2]}, {"w": [10, 20]})
    {'w': [11, 22]}
    """
    (leaves, spec), *others = [tree_flatten(x, is_leaf) for x in (tree, *rests)]
    for _, other in others:
        if other != spec:
            raise ShapeError(f"tree_map: the structures {spec!r} and {other!r} differ.")
    return _build(spec, map(func, leaves, *[found for found, _ in others]))


def tree_paths(treespec: TreeSpec, name: str = "") -> list[str]:
    """Return an expression for each leaf of a structure that `name` stands for.

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
    """Register `cls`, not its subclasses, as a container, as in PyTorch.

    ``flatten_fn(x)`` returns what is in an instance, and a context, which is compared by ``==``;
    ``unflatten_fn(children, context)`` builds one. `mg.jit` traces a step once for all arguments of equal structure,
    and builds the containers that a step returns at each call.

    Raises DTypeError if `cls` is no class, or the others are no functions; ArgumentError if it is a container already.

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
        raise DTypeError(f"register_pytree_node: {cls!r:.100} is {a_kind(cls)}, not a class.")
    check_function(flatten_fn, "register_pytree_node")
    check_function(unflatten_fn, "register_pytree_node")
    if cls in _NODES or cls in _BASES:
        raise ArgumentError(f"register_pytree_node: {cls.__qualname__} is a container already.")
    _NODES[cls] = _Node(flatten_fn, lambda _, children, context: unflatten_fn(children, context))


def exact(x: Any) -> Any:
    """Return what is equal, by ``==``, for objects of the same type and value.

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
    if isinstance(x, Number) and not isinstance(x, int):  # a Decimal has zeros at its end; its nan is none of another
        return (kind, x.as_tuple()) if hasattr(x, "as_tuple") else (kind, x, repr(x))
    return kind, frozenset(map(exact, x)) if kind is frozenset else x


# --- what is a container ---

# A container that another derives from comes after it, in the order of methods.
_BASES = frozenset((tuple, list, dict, OrderedDict, defaultdict, Counter, deque, set, frozenset))
_SCALARS = frozenset(
    (int, float, bool, complex, str, bytes, type, FunctionType)
)  # so that most leaves are known at once


def _base_of(cls: type) -> Any:
    """The built-in container that a class is, or derives from; else object."""
    return cls if cls in _BASES else next((base for base in cls.__mro__ if base in _BASES), object)


def _node_of(x: Any) -> _Node | None:
    """How `x` is flattened, None if it is a leaf."""
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
        except AttributeError:  # it is empty
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
    """The slots of instances: the class of each, its name there, and what reads and writes it."""
    for owner in cls.__mro__:
        if "__slots__" in vars(owner):
            yield from ((owner, name, x) for name, x in vars(owner).items() if type(x) is MemberDescriptorType)


def _view(name: str) -> _Node:
    """Views of a dict: of a copy of it, so that they outlive changes to the one that they are of."""
    return _Node(lambda x: ([x.mapping.copy()], None), lambda _, children, __: getattr(children[0], name)())


_OBJECT = _Node(_flatten_object, _build_object)
_BUILT = _Node(  # a mapping without attributes that Python sees, of an extension
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
