"""`jit`: a step is recorded once, as the kernel calls that it makes, and then runs without the Python around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, update_wrapper
from typing import Any

from minigrad._jit.capture import Capture, View
from minigrad._jit.program import Program, made_of
from minigrad._tensor import Tensor, wrap
from minigrad._traced import Traced
from minigrad.dtypes import get_default_dtype
from minigrad.errors import CaptureError
from minigrad.graph import modes
from minigrad.kernels import tapped
from minigrad.storage import get_default_device, here, place_of

__all__ = ["Jitted", "jit"]


def jit(function: Callable[..., Any] | None = None, *, state: Any = ()) -> Any:
    """`function`, a step of training say, recorded when it is first called and run without Python after that.

    What is recorded are kernel calls: forward, backward and the optimizer's update alike. They are recorded for each
    combination of shapes, types and devices of the tensors among the arguments, and of the other arguments, which are
    part of the recording. Tensors that the function has from elsewhere are read, and written, where they are: so
    parameters change. Numbers of optimizers, ``group["lr"]`` and counts of steps, are read anew at each call, and
    random numbers are drawn anew. Any other state of Python's is as it was when the step was recorded: a list is not
    appended to, a counter does not count. What comes back has no graph.

    It is recorded again where a parameter was exchanged for another, a module was switched between training and
    evaluation, or gradients are there that were not. `state` names modules that are to be watched so, one or several;
    those that are called in the step are in any case. `Jitted.captures` tells how often, and why. While somebody looks
    on (`mg.record`, `mg.profile`, a tap) the function itself is called.

    Raises CaptureError where a value is read inside, as by ``item()``, an ``if`` or a print, and where a shape depends
    on numbers. May be used as a decorator.

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
    return partial(Jitted, state=state) if function is None else Jitted(function, state)


class Jitted:
    """A function that was given to `jit`."""

    def __init__(self, function: Callable[..., Any], state: Any = ()) -> None:
        update_wrapper(self, function)
        self.captures: list[str] = []
        """Why the function was recorded, each time that it was."""
        self._function = function
        self._recordings: dict[Any, _Recording] = {}
        self._watched = [state] if hasattr(state, "training") else [x for x in state if hasattr(x, "training")]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if here.capture is not None or tapped() or modes.recordings:
            return self._function(*args, **kwargs)
        tensors: list[Tensor] = []
        key = (_key((args, kwargs), tensors), modes.grad, get_default_dtype(), get_default_device(), modes.strict)
        recording = self._recordings.get(key)
        if recording is None:
            shapes = " and ".join(str(x.shape) for x in tensors)
            return self._record(key, tensors, args, kwargs, f"the first call with tensors of shapes {shapes}")
        reason, numbers = recording.outdated(tensors)
        if reason:
            return self._record(key, tensors, args, kwargs, reason)
        return recording.run(tensors, numbers)

    def _record(self, key: Any, tensors: list[Tensor], args: Any, kwargs: Any, reason: str) -> Any:
        for x in tensors:
            if x.grad_fn is not None:
                raise CaptureError(
                    f"jit: an argument of shape {x.shape} was computed, and a graph is behind it.\n"
                    "  Give x.detach(), or compute it inside the step."
                )
        capture = Capture([x._array for x in tensors])
        for module in self._watched:
            capture.called(module)
        result = capture.run(lambda: self._function(*args, **kwargs))
        self.captures.append(reason)
        if capture.unstable:
            self._recordings.pop(key, None)
        else:
            self._recordings[key] = _Recording(capture, result, tensors)
        return _rebuilt(result, lambda x: x.detach())

    @property
    def program(self) -> str:
        """What was recorded last, a line for each kernel call."""
        return str([*self._recordings.values()][-1].program) if self._recordings else ""


def _key(x: Any, tensors: list[Tensor]) -> Any:
    """What tells arguments apart; the tensors among them are gathered."""
    if isinstance(x, Tensor):
        known = [k for k, other in enumerate(tensors) if other is x]
        if known:
            return "again", known[0]
        tensors.append(x)
        return "tensor", x._array.shape, x._array.strides, x._array.dtype, place_of(x._array), x.requires_grad
    if isinstance(x, Mapping):
        return type(x), tuple([(name, _key(value, tensors)) for name, value in x.items()])
    if type(x) in (tuple, list):
        return (type(x), *[_key(value, tensors) for value in x])
    try:
        hash(x)
    except TypeError:
        raise CaptureError(
            f"jit: an argument is a {type(x).__name__}, which cannot be told from another.\n"
            "  Give tensors, numbers, texts, and tuples, lists or dicts of them."
        ) from None
    return type(x), x, str(x)


def _rebuilt(x: Any, made: Callable[[Tensor], Any]) -> Any:
    """The same tuples, lists and dicts with something made of each tensor in them."""
    if isinstance(x, Tensor):
        return made(x)
    if isinstance(x, Mapping):
        return type(x)((name, _rebuilt(value, made)) for name, value in x.items())  # type: ignore[call-arg]
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_rebuilt(value, made) for value in x])
    return type(x)(_rebuilt(value, made) for value in x) if type(x) in (tuple, list) else x


class _Place(int):
    """Which of the arrays that a program gives back is meant."""


class _Recording:
    """One recording of a function: its program, what it holds for, and what becomes of what it computes."""

    def __init__(self, capture: Capture, result: Any, tensors: list[Tensor]) -> None:
        self._draws, self._modules = list(capture.draws.values()), list(capture.modules.values())
        self._optimizers = list(capture.optimizers.values())
        wanted: list[View] = []

        def noted(x: Tensor) -> _Place:
            wanted.append(capture.view(x._array))
            return _Place(len(wanted) - 1)

        self._result = _rebuilt(result, noted)
        self._kept = [(where, name, x, x._array) for where, name, x in self._held()]
        self._grads, self._given = self._gradients(capture, tensors, noted)
        self._written = [x for _, _, x, array in self._kept if _is_written(capture, array)]
        self._written_arguments = [k for k, x in enumerate(tensors) if _is_written(capture, x._array)]
        self.program = Program(*made_of(capture.nodes, wanted), capture.buffers)
        self._updates = [update for numbers in self._optimizers for update in numbers.updates]
        asked = [*self.program.numbers, *[x for _, _, traced in self._updates for x in _parts(traced)]]
        self._names = [getattr(x, "name", "") for x in asked]
        self._numbers = capture.book.function(asked)
        self._conditions = capture.book.conditions
        for buffer in capture.buffers:
            buffer.forget()

    def _held(self) -> Iterator[tuple[dict[Any, Any], Any, Tensor]]:
        """The tensors that must be the same: a dict, the name in it, and the tensor."""
        for module, _ in self._modules:
            for kept in (module._parameters, module._buffers):
                yield from ((kept, name, x) for name, x in kept.items() if x is not None)
        for numbers in self._optimizers:
            for group in numbers.optimizer.param_groups:
                yield from (({"a parameter": x}, "a parameter", x) for x in group["params"])
            for memory in numbers.optimizer.state.values():
                yield from ((memory, name, x) for name, x in memory.items() if isinstance(x, Tensor))

    @staticmethod
    def _gradients(capture: Capture, tensors: list[Tensor], noted: Callable[[Tensor], _Place]) -> tuple[Any, Any]:
        """What becomes of gradients: (whose, what it is then); and what they must be before: (whose, it, its array).

        Whose is a tensor, or the number of an argument.
        """
        numbers = {id(x): k for k, x in enumerate(tensors)}
        used = {id(view.buffer) for node in capture.nodes for view in (*node.reads, *node.outs)}
        after: list[tuple[Any, Any]] = []
        given: list[tuple[Any, Any, Any]] = []
        for x, before, added in capture.grads.values():
            of = numbers.get(id(x), x)
            read = before is not None and id(capture.find(before._array)) in used
            if added or read:
                given.append((of, before, None if before is None else before._array))
            if x._grad is not before:
                after.append((of, None if x._grad is None else noted(x._grad)))
        return after, given

    def outdated(self, tensors: list[Tensor]) -> tuple[str, Any]:
        """Why it does not hold any more, or ""; and the numbers that are read anew."""
        for module, training in self._modules:
            if module.training is not training:
                return f"{type(module).__name__}.training is {module.training} now", ()
        for where, name, x, array in self._kept:
            now = where.get(name)
            if now is not x or now._array is not array:
                return f"{name} is another tensor now", ()
        for of, before, array in self._given:
            now = (tensors[of] if of.__class__ is int else of)._grad
            if now is not before or (now is not None and now._array is not array):
                return "gradients are there that were not, or the other way round", ()
        numbers, hold = self._numbers()
        for holds, about in zip(hold, self._conditions, strict=True):
            if not holds:
                return f"{about} is another now", ()
        return "", numbers

    def run(self, tensors: list[Tensor], numbers: tuple[Any, ...]) -> Any:
        """The result, from other arguments, and all that changes by the way."""
        values = dict(zip(self._names, numbers, strict=True))
        arrays = self.program.run([x._array for x in tensors], values)
        for x in (*self._written, *[tensors[k] for k in self._written_arguments]):
            x.storage.written("jit")
        for of, place in self._grads:
            x = tensors[of] if of.__class__ is int else of
            x._grad = None if place is None else wrap(arrays[place])
        for where, name, traced in self._updates:
            parts = [values[x.name] if type(x) is Traced else x for x in _parts(traced)]
            where[name] = parts[0] if type(traced) is Traced else tuple(parts)
        for draw in self._draws:
            draw.finish()
        for one in self._optimizers:
            one.optimizer.steps += one.steps
        return _rebuilt_from(self._result, arrays)


def _rebuilt_from(x: Any, arrays: list[Any]) -> Any:
    """The result in which a tensor is made of each array that is meant."""
    if type(x) is _Place:
        return wrap(arrays[x])
    if isinstance(x, Mapping):
        return type(x)((name, _rebuilt_from(value, arrays)) for name, value in x.items())  # type: ignore[call-arg]
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_rebuilt_from(value, arrays) for value in x])
    return type(x)(_rebuilt_from(value, arrays) for value in x) if type(x) in (tuple, list) else x


def _is_written(capture: Capture, array: Any) -> bool:
    buffer = capture.find(array)
    return buffer is not None and buffer.written


def _parts(traced: Any) -> tuple[Any, ...]:
    return (traced,) if type(traced) is Traced else traced
