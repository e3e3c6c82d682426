"""What the reader calls each node: its label, or else a variable that holds it."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import minigrad as mg
from minigrad.graph import Event, Node
from minigrad_viz.notation import clean, subscript

__all__ = ["Namespaces", "callers", "holders", "names_of", "told_apart"]

Namespaces = Sequence[Mapping[str, Any]]

_HERE = os.path.dirname(os.path.abspath(__file__))
_NOT_OURS = {"In", "Out"}  # IPython's history
_DEEPEST = 2  # levels of containers: layers[0]['weight']
_LONGEST = 10_000  # a longer list is data, not a handful of named weights


def callers() -> Namespaces:
    """The variables of whoever called this package: locals, then globals."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    if frame.f_locals is frame.f_globals:
        return (frame.f_globals,)
    return (frame.f_locals, frame.f_globals)


def names_of(
    nodes: Sequence[Any], namespaces: Namespaces, label_of: Callable[[Any], str | None] | None = None
) -> dict[Any, str]:
    """A name for each of `nodes` that has one. A label wins; else the variable defined first, or its place in lists,
    tuples and dicts, as ``w[0]``; the node of a computed tensor is its ``grad_fn``. Variables that begin with an
    underscore do not count, nor do those that a local one of the same name hides, nor those that are called like the
    label of another node.

    >>> a, w = mg.Value(1.0), [mg.Value(2.0), mg.Value(3.0, "bias")]
    >>> names = names_of([a, *w], [{"a": a, "_a": a, "w": w}])
    >>> [names[x] for x in (a, *w)]
    ['a', 'w[0]', 'bias']
    """
    names: dict[Any, str] = {}
    for node in nodes:
        label = node._note("label") if label_of is None else label_of(node)
        if label is not None and (label := clean(label)).strip():
            names[node] = label
    wanted = set(nodes) - names.keys()
    taken = set(names.values())
    hidden: set[str] = set()
    for namespace in namespaces:
        for name, value in _variables(namespace, hidden):
            node = _node_of(value)
            if node in wanted and name not in taken:
                wanted.discard(node)
                taken.add(name)
                names[node] = name
        hidden.update(namespace)
    return names


def holders(namespaces: Namespaces) -> dict[Any, Any]:
    """The tensors among the variables, by their node."""
    found: dict[Any, Any] = {}
    for namespace in namespaces:
        for _, held in _variables(namespace, ()):
            if not isinstance(held, mg.Value):
                found.setdefault(_node_of(held), held)
    return found


def _node_of(held: Any) -> Any:
    """The place in the graph of a Value, or of a tensor: its step, if an operation made it."""
    step = None if isinstance(held, mg.Value) else held.grad_fn
    return held if step is None else step


def told_apart(names: Sequence[str | None], handles: Collection[str]) -> list[str | None]:
    """`names` with a number after those that several nodes have, or that are in `handles`, which are taken.

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
    """The Values and tensors in a namespace, in the order of definition, with those inside its containers."""
    for name, held in list(namespace.items()):
        if not (name.startswith("_") or name in _NOT_OURS or name in hidden) and name.isidentifier():
            yield from _found(name, held, _DEEPEST)


def _found(name: str, held: Any, levels: int) -> Iterator[tuple[str, Any]]:
    """`held`, if it is a Value or a tensor; if it is a list, tuple or dict, those in it, so many levels deep."""
    if isinstance(held, Event):
        return  # it tells of nodes, and gives none a name
    if _is_number(held):
        yield name, held
    elif levels and isinstance(held, list | tuple) and len(held) <= _LONGEST:
        wanted = (Node, list, tuple, dict) if levels > 1 else Node  # a data set has many numbers, and none to name
        for place, inner in enumerate(held):
            if isinstance(inner, wanted):
                yield from _found(f"{name}[{place}]", inner, levels - 1)
    elif levels and isinstance(held, dict) and len(held) <= _LONGEST:
        for key, inner in list(held.items()):
            if isinstance(key, str | int):
                yield from _found(clean(f"{name}[{key!r}]"), inner, levels - 1)


def _is_number(held: Any) -> bool:
    """Whether it is a Value or a tensor."""
    return isinstance(held, Node) and (isinstance(held, mg.Value) or hasattr(held, "grad_fn"))
