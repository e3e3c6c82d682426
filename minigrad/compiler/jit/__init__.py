"""`jit`: capture a step once, as the kernel calls that it makes, and replay them without the Python around them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial, update_wrapper
from threading import RLock
from types import MethodType
from typing import Any

from minigrad.compiler.jit.arguments import Arguments
from minigrad.compiler.jit.capture import Capture
from minigrad.compiler.jit.checks import compile_check
from minigrad.compiler.jit.locks import Elsewhere, between_captures, exclusively
from minigrad.compiler.jit.misses import Misses
from minigrad.compiler.jit.reach import Chosen, Reach
from minigrad.compiler.jit.recording import StepRecording
from minigrad.compiler.jit.results import Results, eager
from minigrad.compiler.jit.trace_guards import TraceGuards
from minigrad.core.dispatch import tapped
from minigrad.core.errors import ArgumentError, CaptureError, DTypeError, a_kind, check_flag, check_function
from minigrad.core.graph import grad_listeners
from minigrad.core.modes import modes

__all__ = ["Jitted", "jit"]


def jit(
    function: Callable[..., Any] | None = None, *, state: Any = (), fullgraph: bool = True, max_traces: int = 16
) -> Any:
    """Capture the kernel calls of `function`, a training step say, at its first call, and replay them without Python.

    The forward pass, the backward pass and the optimizer's update are captured alike. Tensors that the function reaches
    as closure variables, globals or attributes are read and written in place, so parameters change. Floats among the
    arguments, options of optimizers such as ``group["lr"]``, counts of steps and random numbers are read at each call.
    Everything else that Python read is guarded: where it has changed, the function is traced again, so that a replay
    computes what the function would. `Jitted.captures` has the last 100 reasons. What comes back has no graph.

    Arguments and results may be nested containers: tuples, lists, dicts, dataclasses, other mappings, and classes that
    `register_pytree_node` names. There is a trace for each structure of arguments, for shapes, strides, dtypes, devices
    and `requires_grad` of tensors, for integers and strings by value, and for other objects by identity. Only where
    Python looks at the value of a float, by ``if``, ``float()`` or a function of `math`, a trace is for that answer
    alone. The `max_traces` traces used last are kept; where there are more, one UserWarning names the argument or the
    guard that keeps changing. A step that changes what it reads itself, a counter say, is traced at each call, and
    after `max_traces` of them runs eagerly.

    With `fullgraph`, as in ``torch.compile``, CaptureError is raised for what cannot be captured: elements of tensors
    that Python reads, as by ``item()`` or ``if``; shapes that depend on elements; iterators, open files, the clock and
    other sources of values that no guard can hold; a tensor from outside that is given a graph; arguments that have a
    graph, are large NumPy arrays, or are changed; results that hold tensors in other objects. Without it the function
    runs eagerly from then on, and one UserWarning says why.

    `state` names modules, one or several, to be guarded beside those that the function calls. Inside ``mg.record()``,
    ``mg.profile()`` or a tap the function itself runs. Threads that share a jitted function run it one after another.
    ``print`` and logging run when the function is captured.

    On ``cpu`` and GPUs the second call records the launches of Taichi's kernels, and replays launch them. At the 16th,
    launches that compute elementwise are fused on ``cpu``, with sums and extremes of rows, and up to 1,024 launches are
    merged into few kernels: that takes seconds, once, with a progress bar where tqdm is installed. `Jitted.program`
    says which, and why not. What a kernel finds wrong with elements, such as an index, is raised after the step.

    Raises ArgumentError unless `max_traces` is at least 1. May be used as a decorator.

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
    if function is None:
        return partial(Jitted, state=state, fullgraph=fullgraph, max_traces=max_traces)
    return Jitted(function, state, fullgraph, max_traces)


class Jitted:
    """A function that was given to `jit`."""

    def __init__(
        self, function: Callable[..., Any], state: Any = (), fullgraph: bool = True, max_traces: int = 16
    ) -> None:
        check_function(function, "jit")
        check_flag(fullgraph, "jit: fullgraph")
        if not isinstance(max_traces, int):
            raise DTypeError(f"jit: max_traces is {a_kind(max_traces)}, not an integer.")
        if max_traces < 1:
            raise ArgumentError(f"jit: max_traces is {max_traces}, and has to be at least 1.")
        update_wrapper(self, function)
        self.captures: list[str] = []
        """Why the function was traced, the last 100 times."""
        self.trace_count = 0
        """How many times the function was traced."""
        self._function = function
        self._traces: list[StepRecording] = []  # the last used first
        self._max_traces = max_traces
        self._last: StepRecording | None = None
        self._unkept: tuple[Any, str] | None = None  # what the last capture was for that no trace is left of, and why
        self._unkept_count = 0
        self._fullgraph = fullgraph
        self._eager = ""  # why the function is called without a trace, from some time on
        self._misses = Misses(getattr(function, "__name__", "a step"), max_traces)
        self._lock = RLock()  # threads run it one after the other, as kernels are
        self._watched = [state] if hasattr(state, "training") else [x for x in state if hasattr(x, "training")]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if tapped() or modes.gradient_passed or self._eager:
            return self._function(*args, **kwargs)
        with self._lock:
            return self._run(args, kwargs)

    def _run(self, args: Any, kwargs: Any) -> Any:
        last, reason = self._last, ""
        if last is not None and last.check is not None:
            tensors = last.check(args, kwargs)
            if tensors is not None:
                with last.lock:
                    if not grad_listeners:
                        reason, numbers = last.outdated(tensors)
                        if not reason:
                            return last.run(tensors, numbers)
        try:
            call = Arguments(self._function, args, kwargs)
        except CaptureError as error:
            self._refuse(error)
            return self._function(*args, **kwargs)
        key, tried = call.key, last if reason else None
        for trace in self._traces:
            if trace is not tried and trace.key == key:
                trace.inputs[:] = call.floats
                with between_captures(trace.lock):
                    failed, numbers = trace.outdated(call.tensors)
                    if not failed:
                        self._use(trace)
                        if trace.check is None:
                            trace.check = compile_check(call, trace.inputs)
                        return trace.run(call.tensors, numbers)
                reason = reason or failed
        with exclusively() as elsewhere:
            return self._record(call, key, reason, elsewhere)

    def _use(self, trace: StepRecording) -> None:
        """Make a trace the one used last."""
        if not self._traces or self._traces[0] is not trace:
            self._traces = [trace, *[x for x in self._traces if x is not trace]]
        self._last, self._unkept_count = trace, 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method, where it decorates a function in a class: the object is an argument, of which there are traces."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """A copy has no traces yet."""
        return Jitted, (self._function, self._watched, self._fullgraph, self._max_traces)

    def _refuse(self, error: CaptureError) -> None:
        """Raise the error, or from now on call the function without a trace."""
        if self._fullgraph:
            raise error
        self._run_eagerly(str(error).splitlines()[0].removesuffix("."))

    def _run_eagerly(self, why: str) -> None:
        self._eager = why
        warnings.warn(f"{why}.\n  It runs eagerly from now on.", UserWarning, stacklevel=5)

    def _record(self, call: Arguments, key: Any, reason: str, elsewhere: Elsewhere) -> Any:
        self._last = None
        if not reason and self._unkept is not None and self._unkept[0] == key:
            reason = self._unkept[1]
        reach = Reach()  # of everything as it is before the step runs
        reach.add(self._function, getattr(self._function, "__name__", "the step"))
        for x, what in (*[(x, type(x).__name__) for x in self._watched], *call.objects):
            reach.add(x, what)
        capture = Capture([x._array for x in call.tensors], reach, self._fullgraph)
        capture.trace_optimizers()
        inputs: list[float] = []
        args, kwargs = call.traced(capture.book, inputs)
        result = capture.run(lambda: self._function(*args, **kwargs))
        for x in call.tensors:
            if x._step is not None:  # by a write in place: when the recording runs it has no graph, so not here either
                x._step, x._requires_grad = None, False
        try:
            if capture.refused:
                raise CaptureError(capture.refused)
            call.check_unchanged(args, kwargs)
            chosen = reach.chosen(capture.watch, [x.optimizer for x in capture.optimizers.values() if x.steps])
            _check_read(chosen)
            results = Results(result, capture)
        except CaptureError as error:
            self._refuse(error)
            return eager(result)
        del result  # its graph holds leaves of the step's own
        self._note(call, reason or call.first_call())
        capture.forget_own_leaves({*chosen.tensors, *map(id, call.tensors)})
        guards = TraceGuards(capture, call.tensors, chosen)
        changed = capture.unstable or guards.changed()
        trace = None if changed else StepRecording(capture, results, call, key, guards, inputs)
        if {*capture.grads, *capture.grads_read} & {*elsewhere.changed}:
            changed = "a gradient was changed by another thread"
        if changed or trace is None:
            self._unkept, self._unkept_count = (key, f"in the step itself {changed}"), self._unkept_count + 1
        else:
            self._use(trace)
        if self._unkept_count > self._max_traces:
            self._run_eagerly(f"jit: in the step itself {changed}, at each of {self._unkept_count} calls")
        elif len(self._traces) > self._max_traces:
            del self._traces[self._max_traces :]
            self._misses.warn()
        return results.first()

    def _note(self, call: Arguments, reason: str) -> None:
        """Note why the step was captured."""
        self.trace_count += 1
        self.captures.append(reason)
        del self.captures[:-100]
        self._misses.add(call, reason)

    @property
    def program(self) -> str:
        """What the last call ran, or recorded, a line for each kernel call; then how that is run now, and why so. Empty
        where it was not kept."""
        return "" if self._last is None else str(self._last)

    @property
    def recording(self) -> StepRecording | None:
        """What the last call ran, or recorded, for `minigrad_viz.draw`; None where it was not kept."""
        return self._last

    @property
    def source(self) -> str:
        """The texts of the kernels that the last call launched; empty where it was run call by call."""
        launched = None if self._last is None else self._last.launched
        return "" if launched is None else launched.source


def _check_read(chosen: Chosen) -> None:
    """Raise CaptureError for what the step read that no guard can hold."""
    if chosen.refused:
        raise CaptureError(
            f"jit: the step reads {chosen.refused[0]}.\n"
            "  A replayed trace would use what was read when it was captured: read it outside of the step, and\n"
            "  pass what you need as an argument."
        )
