"""`jit`: a step is recorded once, as the kernel calls that it makes, and then runs without the Python around them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial, update_wrapper
from threading import RLock
from types import MethodType
from typing import Any, cast

from minigrad._jit.capture import Capture, View, span_of
from minigrad._jit.guards import is_value
from minigrad._jit.launched import Launched, recorded
from minigrad._jit.program import Program, made_of
from minigrad._jit.reach import Reach
from minigrad._jit.trace_guards import TraceGuards
from minigrad._tensor import Tensor, wrap
from minigrad._traced import Traced, plain, replaced, traced
from minigrad.dtypes import get_default_dtype
from minigrad.errors import CaptureError, a_kind, caller, check_flag, check_function
from minigrad.graph import modes
from minigrad.kernels import tapped
from minigrad.storage import get_default_device, place_of

__all__ = ["Jitted", "jit"]

JOINED = 16  # runs by launches until they are joined: compiling takes as long as thousands of launches
MOST = 1024  # launches of a step that are joined: 425 of a small GPT take half a minute to compile
MOST_ON_GPU = 256  # there nobody waits for a launch, and to compile takes longer
TRIES = 3  # runs until one is recorded: in the first ones tables are made that stay


def jit(function: Callable[..., Any] | None = None, *, state: Any = (), fullgraph: bool = True) -> Any:
    """`function`, a step of training say, recorded when it is first called and run without Python after that.

    What is recorded are kernel calls: forward, backward and the optimizer's update alike. They are recorded for each
    combination of shapes, types and devices of the tensors among the arguments, and of the other arguments, which are
    part of the recording. Tensors that the function has from elsewhere are read, and written, where they are: so
    parameters change. Numbers of optimizers, ``group["lr"]`` and counts of steps, are read anew at each call, and
    random numbers are drawn anew. Any other state of Python's is as it was when the step was recorded: a list is not
    appended to, an attribute of an object that is no module is not looked at. What comes back has no graph.

    It is recorded again where something else is behind a name that the function takes from around it, a number say;
    where a module has other parts, or attributes that are numbers, texts, `training` and the like; where an optimizer
    has other groups, options that are no numbers, or memories; and where gradients are there that were not. `state`
    names modules that are to be watched so, one or several; arguments and those that are called in the step are anyway.
    `Jitted.captures` tells how often, and why. While somebody looks on (`mg.record`, `mg.profile`, a tap) the function
    itself is called. Threads that share a step run it one after the other.

    On ``cpu`` and GPUs a step runs by the launches of Taichi's kernels that its calls come down to, which are recorded
    in its second run. After 16 of those, on ``cpu`` launches that compute number by number are fused where one reads
    what another has, with sums and extremes of rows; and all that are left, if they are no more than 1,024, become few
    kernels that do what all did: compiling them takes seconds, once, with a bar where tqdm is installed.
    `Jitted.program` says which, and why not. What a kernel finds wrong with numbers, a class that is not there, is
    raised when the step has run, so that what it updates has been; on a GPU when numbers next come down.

    Raises CaptureError where a value is read inside, as by ``item()``, an ``if`` or a print, where a shape depends on
    numbers, where a tensor from elsewhere is given a graph, and for arguments that have one. May be used as a
    decorator.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=0.5)
    >>> @mg.jit
    ... def step(x):
    ...     optimizer.zero_grad()
    ...     loss = (w * x).sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> [step(mg.ones(2)).item() for _ in range(3)], step.captures
    ([3.0, 2.0, 1.0], ['the first call with tensors of shapes (2,)'])
    """
    return partial(Jitted, state=state, fullgraph=fullgraph) if function is None else Jitted(function, state, fullgraph)


class Jitted:
    """A function that was given to `jit`."""

    def __init__(self, function: Callable[..., Any], state: Any = (), fullgraph: bool = True) -> None:
        check_function(function, "jit")
        check_flag(fullgraph, "jit: fullgraph")
        update_wrapper(self, function)
        self.captures: list[str] = []
        """Why the function was recorded, each time that it was."""
        self._function = function
        self._recordings: dict[Any, _Recording] = {}
        self._last: _Recording | None = None
        self._again: Callable[[Any], bool] = _never  # whether arguments have the key that the last ones had
        self._lock = RLock()  # threads run it one after the other, as kernels are
        self._fullgraph = fullgraph
        self._unstable: dict[Any, str] = {}  # why there is no trace of a key that was captured
        self._eager = ""  # why the step is run without a trace
        self._watched = [state] if hasattr(state, "training") else [x for x in state if hasattr(x, "training")]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if tapped() or modes.gradient_passed or self._eager:
            return self._function(*args, **kwargs)
        with self._lock:
            return self._run(args, kwargs)

    def _run(self, args: Any, kwargs: Any) -> Any:
        last = self._last
        if last is not None and not kwargs and self._again(args):
            reason, numbers = last.outdated(args)
            if not reason:
                return last.run(args, numbers)
        tensors: list[Tensor] = []
        given = _key((args, kwargs), tensors)
        for x in tensors:
            if x.grad_fn is not None:
                raise CaptureError(
                    f"jit: an argument of shape {x.shape} was computed, and a graph is behind it.\n"
                    "  Give x.detach(), or compute it inside the step."
                )
        key = given, _overlaps(tensors), modes.grad, get_default_dtype(), get_default_device(), modes.strict
        recording = self._recordings.get(key)
        if recording is None:
            why = self._unstable.get(key) or _first_call(self._function, args, kwargs, tensors)
            return self._record(key, tensors, args, kwargs, why)
        reason, numbers = recording.outdated(tensors)
        if reason:
            return self._record(key, tensors, args, kwargs, reason)
        self._last, self._again = recording, _alike(args, kwargs)
        return recording.run(tensors, numbers)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method, where it decorates a function in a class: there is a recording for each object."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """A copy records anew."""
        return Jitted, (self._function, self._watched, self._fullgraph)

    def _run_eagerly(self, why: str) -> None:
        """From now on call the function itself, and warn why."""
        self._eager = why
        text = "\n".join(why.splitlines()[:1])
        warnings.warn(f"{text}\n  The step runs eagerly from now on.", UserWarning, stacklevel=4)

    def _record(self, key: Any, tensors: list[Tensor], args: Any, kwargs: Any, reason: str) -> Any:
        self._last, self._again = None, _never
        reach = Reach()  # of everything as it is before the step runs
        reach.add(self._function, getattr(self._function, "__name__", "the step"))
        for x in (*self._watched, *_objects_in((args, kwargs))):
            reach.add(x, f"an argument, {a_kind(x)},")
        capture = Capture([x._array for x in tensors], reach, self._fullgraph)
        capture.trace_optimizers()
        result = capture.run(lambda: self._function(*args, **kwargs))
        result = _rebuilt(result, lambda x: x.detach() if isinstance(x, Tensor) else x)  # its graph holds leaves
        chosen = reach.chosen(capture.watch)
        for x in tensors:
            if x._step is not None:  # by a write in place: when the recording runs it has no graph, so not here either
                x._step, x._requires_grad = None, False
        self.captures.append(reason)
        capture.refuse_what_is_read(chosen)
        if capture.refused:
            self._run_eagerly(capture.refused)
        elif not capture.unstable:
            capture.forget_own_leaves({*chosen.tensors, *map(id, tensors)})
            called = _called(self._function, args, kwargs, tensors)
            guards = TraceGuards(capture, tensors, chosen)
            capture.unstable = guards.changed()
            if not capture.unstable:
                self._last = self._recordings[key] = _Recording(capture, result, tensors, guards, called)
        if capture.unstable:
            self._recordings.pop(key, None)
            self._unstable[key] = f"in the step itself {capture.unstable}"
        return _rebuilt(result, lambda x: x if isinstance(x, Tensor) else plain(x))

    @property
    def program(self) -> str:
        """What the last call ran, or recorded, a line for each kernel call; then how that is run now, and why so. Empty
        where it was not kept."""
        return "" if self._last is None else str(self._last)

    @property
    def recording(self) -> _Recording | None:
        """What the last call ran, or recorded, for `minigrad_viz.draw`; None where it was not kept."""
        return self._last

    @property
    def source(self) -> str:
        """The texts of the kernels that the last call launched; empty where it was run call by call."""
        launched = None if self._last is None else self._last.launched
        return "" if launched is None else launched.source


def _key(x: Any, tensors: list[Tensor]) -> Any:
    """What tells arguments apart; the tensors among them are gathered."""
    if isinstance(x, Tensor):
        for k, other in enumerate(tensors):
            if other is x:
                return "again", k
        tensors.append(x)
        array = x._array
        return "tensor", array.shape, array.strides, array.dtype, place_of(array), x.requires_grad
    if type(x) in (tuple, list):
        return (type(x), *[_key(value, tensors) for value in x])
    if type(x) is dict and not x:
        return dict
    if isinstance(x, Mapping):
        return type(x), tuple([(name, _key(value, tensors)) for name, value in x.items()])
    try:
        hash(x)
    except TypeError:
        raise CaptureError(
            f"jit: an argument is {a_kind(x)}, which cannot be told from another.\n"
            "  Give tensors, numbers, texts, and tuples, lists or dicts of them."
        ) from None
    return type(x), repr(x) if isinstance(x, float | complex) else x  # 0.0 is not -0.0, and nan is nan


def _objects_in(x: Any) -> list[Any]:
    """The objects among arguments that are told apart by what they are, not by what is in them."""
    if isinstance(x, Mapping):
        return [y for value in x.values() for y in _objects_in(value)]
    if type(x) in (tuple, list):
        return [y for value in x for y in _objects_in(value)]
    return [] if isinstance(x, Tensor) or is_value(x) else [x]


def _never(args: Any) -> bool:
    return False


def _alike(args: Any, kwargs: Any) -> Callable[[Any], bool]:
    """Whether other arguments have the key that these have, written out for what most steps are given: some tensors,
    each with memory of its own. False of others means that it is not known."""
    arrays: list[Any] = [x._array if x.__class__ is Tensor else None for x in args]
    starts = {getattr(x, "address", 0) for x in arrays}
    if kwargs or not args or len(args) > 8 or 0 in starts or len(starts) < len(args):
        return _never
    space: dict[str, Any] = {"Tensor": Tensor, "dtype": get_default_dtype, "device": get_default_device, "modes": modes}
    space |= {"dtype_": get_default_dtype(), "device_": get_default_device()}
    tests = [
        f"dtype() is dtype_ and device() == device_ and modes.grad is {modes.grad} and modes.strict is {modes.strict}"
    ]
    for k, (x, array) in enumerate(zip(args, arrays, strict=True)):
        space |= {f"kind{k}": type(array), f"shape{k}": array.shape, f"dtype{k}": array.dtype}
        tests.append(f"x{k}.__class__ is Tensor and x{k}._step is None and x{k}._requires_grad is {x._requires_grad}")
        tests.append(f"(a{k} := x{k}._array).__class__ is kind{k} and a{k}.address")
        tests.append(f"a{k}.shape == shape{k} and a{k}.dtype == dtype{k}")
    tests.append(f"len({{{', '.join(f'a{k}.address' for k in range(len(args)))}}}) == {len(args)}")
    names = ", ".join(f"x{k}" for k in range(len(args)))
    text = f"def alike(args):\n    if len(args) != {len(args)}:\n        return False\n    {names}, = args\n"
    exec(f"{text}    return bool({' and '.join(tests)})\n", space)
    found: Callable[[Any], bool] = space["alike"]
    return found


def _first_call(function: Any, args: Any, kwargs: Any, tensors: list[Tensor]) -> str:
    """Why a step is recorded of which there is no recording: with which tensors, and which numbers, it was called."""
    given = _bound(function, args, kwargs)
    shapes = [f"tensors of shapes {' and '.join([str(x.shape) for x in tensors])}"] if tensors else []
    others = [f"{name}={x!r}" for name, x in given.items() if type(x) in (bool, int, float, str)]
    text = ", ".join([*shapes, *others])
    return f"the first call with {text}" if text else "the first call"


def _bound(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments by the names that a function has for them."""
    try:
        return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):  # it would not say
        return {}


def _called(function: Any, args: Any, kwargs: Any, tensors: list[Tensor]) -> list[str]:
    """What a function calls the tensors among its arguments."""
    given = _bound(function, args, kwargs)
    names: dict[int, str] = {}

    def walk(name: str, x: Any) -> None:
        if isinstance(x, Tensor):
            names.setdefault(id(x), name)
        elif isinstance(x, Mapping) or type(x) in (tuple, list):
            for key, value in x.items() if isinstance(x, Mapping) else enumerate(x):
                walk(f"{name}[{key!r}]", value)

    for name, x in given.items():
        walk(name, x)
    return [names.get(id(x), f"argument {k}") for k, x in enumerate(tensors)]


def _overlaps(tensors: list[Tensor]) -> Any:
    """Which arguments lie in the memory of another, and how far from its beginning: to write to one changes both."""
    if len(tensors) < 2:
        return ()
    found, (last, start, reach) = [], (0, 0, 0)
    for first, end, k in sorted([(*span_of(x._array), k) for k, x in enumerate(tensors)]):
        if first < reach:
            found.append((k, last, first - start))
        if end > reach:
            last, start, reach = k, first, end
    return tuple(found)


def _rebuilt(x: Any, made: Callable[[Any], Any]) -> Any:
    """The same tuples, lists and dicts with ``made(leaf)`` in place of each thing in them."""
    if isinstance(x, Mapping):
        found = copy(x) if isinstance(x, dict) else {}
        found.update((name, _rebuilt(value, made)) for name, value in x.items())
        return found if isinstance(x, dict) else cast(Any, type(x))(found)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_rebuilt(value, made) for value in x])
    return type(x)(_rebuilt(value, made) for value in x) if type(x) in (tuple, list) else made(x)


def _check_result(x: Any) -> None:
    """Raise CaptureError for an object with tensors in it: it would come back as it is, with numbers of long ago."""
    inside = [*x] if isinstance(x, tuple | list | set | frozenset) else [*getattr(x, "__dict__", {}).values()]
    if any(isinstance(y, Tensor) for y in inside) and not hasattr(x, "training"):
        raise CaptureError(
            f"jit: what comes back is {a_kind(x)}, which has tensors in it that could not be made anew.\n"
            "  Return tensors, and tuples, lists or dicts of them."
        )


class _Place(int):
    """Which of the arrays that a program gives back is meant."""


class _Recording:
    """One recording of a function: its program, what it holds for, and what becomes of what it computes."""

    def __init__(
        self, capture: Capture, result: Any, tensors: list[Tensor], guards: TraceGuards, arguments: list[str]
    ) -> None:
        self.arguments = arguments
        """What the function calls the tensors that it is given."""
        self._draws, self._optimizers = list(capture.draws.values()), list(capture.optimizers.values())
        wanted: list[View] = []
        given: list[Traced] = []

        def noted(x: Any) -> Any:
            if not isinstance(x, Tensor):
                _check_result(x)
                given.extend(traced(x))
                return x
            wanted.append(capture.view(x._array))
            return _Place(len(wanted) - 1)

        self._result = _rebuilt(result, noted)
        self._guards = guards
        self.gradients = _gradients_after(capture, tensors, noted)
        """Whose change, and which of what the program gives they are then; None where there are none."""
        self._written = capture.written(tensors)
        self.program = Program(*made_of(capture.nodes, wanted), capture.buffers)
        self.launched: Launched | None = None
        self.why = "it ran once, and it is recorded when it runs again"
        """Why it is not `launched`."""
        self._tries, self._runs = TRIES, 0
        self._updates = [update for numbers in self._optimizers for update in numbers.updates]
        self._given = given
        self._book, self._lasting = capture.book, len(capture.book.conditions)
        self._ask()
        for buffer in capture.buffers:
            buffer.forget()

    @property
    def held(self) -> list[tuple[Tensor, str]]:
        """The tensors that must be the same as long as it holds, and what they are."""
        return self._guards.held

    @property
    def optimizers(self) -> list[Any]:
        """The optimizers that step in it."""
        return [one.optimizer for one in self._optimizers]

    @property
    def how(self) -> str:
        """How it is run."""
        return str(self.launched or f"Run call by call: {self.why}.")

    def __str__(self) -> str:
        return f"{self.program}\n\n{self.how}"

    def _ask(self) -> None:
        """Have the numbers read that are needed."""
        launched = self.launched.numbers if self.launched is not None else []
        asked = [*launched, *self.program.numbers, *traced([x for _, _, x in self._updates]), *self._given]
        self._names = [x.name for x in asked]
        self._numbers = self._book.function(asked)
        self._about = self._book.conditions

    def outdated(self, tensors: Sequence[Tensor]) -> tuple[str, Any]:
        """Why it does not hold any more, or ""; and the numbers that are read anew."""
        reason = self._guards.broken(tensors)
        if reason:
            return reason, ()
        try:
            numbers, hold = self._numbers()
        except LookupError as error:
            return f"{error.args[0]}, an option of an optimizer, is no number any more", ()
        if not all(hold):
            about = self._about[hold.index(False)]
            if hold.index(False) < self._lasting:
                return f"{about} is another now", ()
            self._unlaunch(f"{about} is another now")
            numbers, _ = self._numbers()
        return "", numbers

    def run(self, tensors: Sequence[Tensor], numbers: tuple[Any, ...]) -> Any:
        """The result, from other arguments, and all that changes by the way."""
        for of, _ in self.gradients:  # whose memory may serve again
            (tensors[of] if of.__class__ is int else of)._grad = None
        names = self._names  # which are others when the launches are recorded in this run
        arrays = self._computed([x._array for x in tensors], numbers)
        values = dict(zip(names, numbers, strict=True)) if self._updates or self._given else {}
        line = caller()
        for written in self._written:
            (tensors[written].storage if written.__class__ is int else written).written("jit", place=line)
        for of, place in self.gradients:
            x = tensors[of] if of.__class__ is int else of
            x._grad = None if place is None else wrap(arrays[place])
        for where, name, x in self._updates:
            where[name] = replaced(x, lambda number: values[number.name])
        for draw in self._draws:
            draw.finish()
        for one in self._optimizers:
            one.optimizer.steps += one.steps

        def made(x: Any) -> Any:
            return wrap(arrays[x]) if type(x) is _Place else replaced(x, lambda number: values[number.name])

        return _rebuilt(self._result, made)

    def _computed(self, arguments: list[Any], numbers: tuple[Any, ...]) -> list[Any]:
        """The arrays that are wanted, by launches where there are some, else call by call."""
        fitted = None if self.launched is None else self.launched.fitted(arguments)
        if self.launched is not None and fitted is not None:
            self._runs += 1
            if self._runs == JOINED:
                self.launched.join(MOST if self.launched.on_cpu else min(MOST, MOST_ON_GPU))
            return self.launched.run(arguments, fitted, numbers)
        values = dict(zip(self._names, numbers, strict=True))
        if self.launched is not None or not self._tries:
            return self.program.run(arguments, values)
        self._tries -= 1
        arrays, self.launched, self.why = recorded(self.program, self._book, arguments, values)
        if self.launched is None:
            self._unlaunch(self.why)
        self._ask()
        return arrays

    def _unlaunch(self, why: str) -> None:
        """Compute call by call again: what kernels asked of numbers does not hold now, or could not be recorded."""
        self.launched, self.why = None, why
        self._book.forget(self._lasting)
        self._ask()


def _gradients_after(capture: Capture, tensors: list[Tensor], noted: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """What becomes of gradients: whose, a tensor or the number of an argument, and what it is then."""
    numbers = {id(x): k for k, x in enumerate(tensors)}
    changed = [(x, x._grad) for x, before, added in capture.grads.values() if x._grad is not before or not added]
    return [(numbers.get(id(x), x), None if grad is None else noted(grad)) for x, grad in changed]
