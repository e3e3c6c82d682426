"""Conditions: what a recording of a step holds for, and how it is known that something is another now."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

from minigrad._jit.capture import PLAIN, Capture, root_of, start_of
from minigrad._tensor import Tensor
from minigrad.optim.hooks import everywhere

__all__ = ["Conditions", "Name", "names_of"]

Place = tuple[dict[Any, Any], Any, Any, str]  # a dict, a name in it, what is there, and how the reader calls that


class Name(NamedTuple):
    """A variable of another function, or of a module of Python's, that a function uses, and what it was."""

    text: str
    now: Callable[[], Any]
    value: Any


def names_of(function: Any) -> list[Name]:
    """The variables from elsewhere that `function` itself uses, functions inside of it included."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        return []
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    readers = [(text, partial(_content, cell)) for text, cell in cells]
    there = function.__globals__
    readers += [(text, partial(there.get, text)) for text in _globals_in(function.__code__) if text in there]
    return [Name(text, now, now()) for text, now in readers]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


def _globals_in(code: CodeType) -> set[str]:
    read = {x.argval for x in dis.get_instructions(code) if x.opname == "LOAD_GLOBAL"}
    return read.union(*[_globals_in(x) for x in code.co_consts if isinstance(x, CodeType)])


class Conditions:
    """Which variables, modules, parameters, groups and gradients were there when a step was recorded.

    A recording reads and writes memory, so a parameter must be the same tensor in the same memory; and it has the
    calls that Python made then, so modules must have the same parts, and an optimizer the same groups and memories.
    """

    def __init__(self, capture: Capture, tensors: list[Tensor], names: list[Name]) -> None:
        self._names = names
        called = list(capture.modules.values())
        self._attributes = [(module, name, x) for module, plain in called for name, x in plain.items()]
        modules = {id(part): part for module, _ in called for part in module.modules()}
        optimizers = [numbers.optimizer for numbers in capture.optimizers.values()]
        self._places = [*_in_modules(modules.values()), *_in_optimizers(optimizers)]
        sized = [*_sized_of_modules(modules.values()), *_sized_of_optimizers(optimizers)]
        self._sizes = [(x, len(x), what) for x, what in sized]
        named = {id(x): (x, about) for _, _, x, about in self._places if isinstance(x, Tensor)}
        for optimizer in optimizers:
            parameters = [x for group in optimizer.param_groups for x in group["params"]]
            named = {id(x): (x, f"a parameter of {optimizer.name}") for x in parameters} | named
        named |= {id(name.value): (name.value, name.text) for name in names if isinstance(name.value, Tensor)}
        self._tensors = [(x, x._array, x.requires_grad, about) for x, about in named.values()]
        self._arguments = [(k, x, named[id(x)][1]) for k, x in enumerate(tensors) if id(x) in named]
        self._shared = [
            (k, start_of(x._array), about)
            for k, x in enumerate(tensors)
            for y, about in named.values()
            if y is not x and root_of(y._array) is root_of(x._array)
        ]
        self._grads = _gradients_before(capture, tensors)
        self.held = [(x, about) for x, about in named.values()]
        """The tensors that must be the same, and what they are."""
        self._hold = self._written_out()

    def broken(self, tensors: Sequence[Tensor]) -> str:
        """Which of them does not hold for a call with these arguments, or ""."""
        return "" if self._hold(tensors) else self._first_broken(tensors)

    def _written_out(self) -> Callable[[Sequence[Tensor]], bool]:
        """Whether all is the very same, as one expression: a loop over so many would take longer than the step."""
        space: dict[str, Any] = {"start_of": start_of}
        known: dict[int, str] = {}

        def of(x: Any) -> str:
            name = known.setdefault(id(x), f"x{len(known)}")
            space[name] = x
            return name

        tests = [f"{of(now)}() is {of(value)}" for _, now, value in self._names]
        tests += [f"{of(x)}.__dict__.get({name!r}) is {of(value)}" for x, name, value in self._attributes]
        tests += [f"{of(where)}.get({of(name)}) is {of(what)}" for where, name, what, _ in self._places]
        tests += [f"len({of(sized)}) == {size}" for sized, size, _ in self._sizes]
        for x, array, requires_grad, _ in self._tensors:
            tests.append(f"{of(x)}._array is {of(array)} and {of(x)}.requires_grad is {requires_grad}")
        tests += [f"tensors[{k}] is {of(x)}" for k, x, _ in self._arguments]
        tests += [f"start_of(tensors[{k}]._array) == {start}" for k, start, _ in self._shared]
        for whose, before, array in self._grads:
            grad = f"{f'tensors[{whose}]' if whose.__class__ is int else of(whose)}._grad"
            if before is None or array is None:
                tests.append(f"{grad} is{'' if before is None else ' not'} None")
            else:
                tests.append(f"{grad} is {of(before)} and {grad}._array is {of(array)}")
        exec(f"def hold(tensors):\n    return ({' and '.join(tests) or True})\n", space)
        hold: Callable[[Sequence[Tensor]], bool] = space["hold"]
        return hold

    def _first_broken(self, tensors: Sequence[Tensor]) -> str:
        """Which is not the very same, and not an equal number or text either."""
        for text, now, value in self._names:
            found = now()
            if found is not value and not _equal(found, value):
                return f"{text} is another now"
        for module, name, value in self._attributes:
            now = module.__dict__.get(name)
            if now is not value and not _equal(now, value):
                return f"{type(module).__name__}.{name} is {now!r} now"
        for where, name, what, about in self._places:
            if where.get(name) is not what:
                return f"{about} is another now"
        for sized, size, about in self._sizes:
            if len(sized) != size:
                return f"there are {'more' if len(sized) > size else 'fewer'} {about} now"
        for x, array, requires_grad, about in self._tensors:
            if x._array is not array:
                return f"the memory of {about} is another now"
            if x.requires_grad is not requires_grad:
                return f"requires_grad of {about} is {x.requires_grad} now"
        for k, x, about in self._arguments:
            if tensors[k] is not x:
                return f"an argument was {about}, and is another tensor now"
        for k, start, about in self._shared:
            if start_of(tensors[k]._array) != start:
                return f"an argument is another part now of the memory that it has with {about}"
        for of, before, array in self._grads:
            grad = (tensors[of] if of.__class__ is int else of)._grad
            if (grad is None) is not (before is None):
                return "gradients are there that were not, or the other way round"
            if array is not None and (grad is not before or grad._array is not array):
                return "a gradient from before the step is another tensor now, or has other memory"
        return ""


def _equal(now: Any, value: Any) -> bool:
    """Whether two things that are not the same are equal numbers or texts; tuples may have tensors in them."""
    return isinstance(now, PLAIN) and not isinstance(now, tuple) and type(now) is type(value) and now == value


def _in_modules(modules: Iterable[Any]) -> Iterator[Place]:
    for module in modules:
        of = type(module).__name__
        yield vars(module), "_hooks", module._hooks, f"the table of hooks of {of}"
        for table in (module._parameters, module._buffers, module._modules):
            yield from ((table, name, x, f"{name} of {of}") for name, x in table.items())


def _in_optimizers(optimizers: Iterable[Any]) -> Iterator[Place]:
    for optimizer in optimizers:
        has = vars(optimizer)
        yield from ((has, name, has.get(name), f"{name.strip('_')} of {optimizer.name}") for name in _TABLES)
        for group in optimizer.param_groups:
            for name, x in group.items():
                whole = isinstance(x, tuple) and Tensor in map(type, x)
                if whole or x is None or isinstance(x, bool | str | list | Tensor):  # numbers are read anew
                    yield group, name, x, f"{name} of {optimizer.name}"
        for p, kept in optimizer.state.items():
            yield optimizer.state, p, kept, f"what {optimizer.name} keeps of a parameter"
            yield from (
                (kept, name, x, f"{name} of {optimizer.name}") for name, x in kept.items() if isinstance(x, Tensor)
            )


_TABLES = ("param_groups", "state", "_hooks")


def _sized_of_modules(modules: Iterable[Any]) -> Iterator[tuple[Sized, str]]:
    """What nothing may be added to, and what it is full of."""
    for module in modules:
        of = type(module).__name__
        for name in ("parameters", "buffers", "modules"):
            yield vars(module)[f"_{name}"], f"{name} in {of}"
        if module._hooks is not None:
            yield from ((hooks, f"hooks of {of}") for hooks in vars(module._hooks).values())


def _sized_of_optimizers(optimizers: Iterable[Any]) -> Iterator[tuple[Sized, str]]:
    for optimizer in optimizers:
        yield optimizer.param_groups, f"groups in {optimizer.name}"
        yield optimizer.state, f"memories in {optimizer.name}"
        for hooks in (*vars(optimizer).get("_hooks", {}).values(), *everywhere.values()):
            yield hooks, f"hooks of {optimizer.name}"
        yield from ((group["params"], f"parameters in a group of {optimizer.name}") for group in optimizer.param_groups)


def _gradients_before(capture: Capture, tensors: list[Tensor]) -> list[tuple[Any, Any, Any]]:
    """What gradients must be before, where that is read: (whose, it, its array). Whose is a tensor, or the number of
    an argument; without an array there only has to be one."""
    numbers = {id(x): k for k, x in enumerate(tensors)}
    used = {id(view.buffer) for node in capture.nodes for view in (*node.reads, *node.outs)}
    found = []
    changed = [(x, before, added) for x, before, added in capture.grads.values()]
    for x, before, added in [*changed, *[(x, before, None) for x, before in capture.grads_read.values()]]:
        same = before is not None and (added or id(capture.find(before._array)) in used)
        if same or added is not False:
            found.append((numbers.get(id(x), x), before, before._array if same else None))
    return found
