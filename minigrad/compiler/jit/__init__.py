"""`jit`: trace a step once into a list of kernel calls, and replay them without the Python around them."""

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
    """Trace the kernel calls of `function`, such as a training step, at its first call, and replay them without Python.

    The trace covers the forward pass, the backward pass and the optimizer's update. The function reads and writes
    tensors from closure variables, globals and attributes in place, so parameters change. Float arguments, optimizer
    options such as ``group["lr"]``, step counts and random values are read at each call. Everything else that Python
    read is guarded: if it has changed, the function is retraced, so a replay computes what the function would.
    `Jitted.captures` lists the last 100 reasons for tracing. The results have no graph.

    Arguments and results may be nested containers: tuples, lists, dicts, dataclasses, other mappings, and classes
    registered with `register_pytree_node`. There is one trace per structure of the arguments; per shape, stride, dtype,
    device and `requires_grad` of each tensor; per value of integers and strings; and per identity of other objects.
    A float selects a trace only if Python reads its value, by ``if``, ``float()`` or a function of `math`. The cache
    holds the `max_traces` most recently used traces; when it is full, one UserWarning names the argument or guard
    that keeps changing. A step that changes its own inputs, such as a counter, is retraced at each call, and
    after `max_traces` of those runs eagerly.

    With `fullgraph`, as in ``torch.compile``, a graph break raises CaptureError: Python reads an element of a
    tensor, as in ``item()`` or ``if``; a shape depends on elements; the step reads an iterator, an open file, the
    clock or another source that cannot be guarded; a tensor from outside the step gets a graph; an argument has a
    graph, is a large NumPy array, or is mutated; a result hides tensors in other objects. Without it the function
    runs eagerly from then on, and one UserWarning gives the reason.

    `state` is a module or several to guard in addition to those that the function calls. Inside ``mg.record()``,
    ``mg.profile()`` or a tap the function runs eagerly. Threads that share a jitted function run it one at a time.
    Side effects such as ``print`` and logging happen only during tracing.

    On ``cpu`` and GPUs the second call records the launches of Taichi kernels, and later calls replay them. At the
    16th call on ``cpu``, elementwise launches are fused, with row reductions, and up to 1,024 launches are merged
    into a few kernels. That takes seconds, once, with a progress bar if tqdm is installed. `Jitted.program`
    shows the result and what prevented more. Kernel errors, such as an index out of range, are raised after the step.

    Raises ArgumentError unless `max_traces` is at least 1. May be used as a decorator.

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
    """A function wrapped by `jit`, with its cache of traces."""

    def __init__(
        self, function: Callable[..., Any], state: Any = (), fullgraph: bool = True, max_traces: int = 16
    ) -> None:
        check_function(function, "jit")
        check_flag(fullgraph, "jit: fullgraph")
        if not isinstance(max_traces, int):
            raise DTypeError(f"jit: expected max_traces to be an integer, but got {a_kind(max_traces)}.")
        if max_traces < 1:
            raise ArgumentError(f"jit: expected max_traces to be at least 1, but got {max_traces}.")
        update_wrapper(self, function)
        self.captures: list[str] = []
        """The reasons for the last 100 traces."""
        self.trace_count = 0
        """The number of times the function was traced."""
        self._function = function
        self._traces: list[StepRecording] = []  # most recently used first
        self._max_traces = max_traces
        self._last: StepRecording | None = None
        self._unkept: tuple[Any, str] | None = None  # key of the last trace that was discarded, and the reason
        self._unkept_count = 0
        self._fullgraph = fullgraph
        self._eager = ""  # the reason for running eagerly, "" while the function is traced
        self._misses = Misses(getattr(function, "__name__", "a step"), max_traces)
        self._lock = RLock()  # serialises threads, as kernels share buffers
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
        """Move a trace to the front of the cache."""
        if not self._traces or self._traces[0] is not trace:
            self._traces = [trace, *[x for x in self._traces if x is not trace]]
        self._last, self._unkept_count = trace, 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind the function as a method; the instance becomes an argument that selects a trace."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """Pickle or copy the function without its traces."""
        return Jitted, (self._function, self._watched, self._fullgraph, self._max_traces)

    def _refuse(self, error: CaptureError) -> None:
        """Raise the error with `fullgraph`, else run the function eagerly from now on."""
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
        reach = Reach()  # the state before the step runs
        reach.add(self._function, getattr(self._function, "__name__", "the step"))
        for x, what in (*[(x, type(x).__name__) for x in self._watched], *call.objects):
            reach.add(x, what)
        capture = Capture([x._array for x in call.tensors], reach, self._fullgraph)
        capture.trace_optimizers()
        inputs: list[float] = []
        args, kwargs = call.traced(capture.book, inputs)
        result = capture.run(lambda: self._function(*args, **kwargs))
        for x in call.tensors:
            if x._step is not None:  # an in-place write gave it a graph; a replay gives it none
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
        del result  # its graph references leaves that the step created
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
        """Record why the step was traced."""
        self.trace_count += 1
        self.captures.append(reason)
        del self.captures[:-100]
        self._misses.add(call, reason)

    @property
    def program(self) -> str:
        """The trace that the last call ran or recorded: one line per kernel call, then how it is executed and why.
        Empty if that trace was discarded."""
        return "" if self._last is None else str(self._last)

    @property
    def recording(self) -> StepRecording | None:
        """The trace that the last call ran or recorded, for `minigrad_viz.draw`; None if it was discarded."""
        return self._last

    @property
    def source(self) -> str:
        """The source of the kernels that the last call launched; empty if it ran call by call."""
        launched = None if self._last is None else self._last.launched
        return "" if launched is None else launched.source


def _check_read(chosen: Chosen) -> None:
    """Raise CaptureError if the step read something that cannot be guarded."""
    if chosen.refused:
        raise CaptureError(
            f"jit: the step reads {chosen.refused[0]}.\n"
            "  A replay would use the value from tracing time: read it outside of the step, and pass what you need\n"
            "  as an argument."
        )
