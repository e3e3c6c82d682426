"""`jit` traces a step once into a list of kernel calls, and replays these calls without Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial, update_wrapper
from threading import RLock
from types import MethodType
from typing import Any

from minigrad.compiler.jit.argument_checks import compile_check
from minigrad.compiler.jit.arguments import Arguments
from minigrad.compiler.jit.cache_misses import CacheMisses
from minigrad.compiler.jit.capture import Capture
from minigrad.compiler.jit.locks import GradChangeObserver, hold_capture_lock, wait_for_captures
from minigrad.compiler.jit.reach import Reach, ReadSet
from minigrad.compiler.jit.results import Results, concrete_results
from minigrad.compiler.jit.step_trace import StepTrace
from minigrad.compiler.jit.trace_guards import TraceGuards
from minigrad.core.dispatch import is_tapped
from minigrad.core.errors import ArgumentError, CaptureError, DTypeError, check_callable, check_flag, describe_type
from minigrad.core.graph import global_grad_listeners
from minigrad.core.modes import modes

__all__ = ["Jitted", "jit"]


def jit(
    function: Callable[..., Any] | None = None, *, state: Any = (), fullgraph: bool = True, max_traces: int = 16
) -> Any:
    """Trace the kernel calls of `function`, such as a training step, at its first call, and replay them without Python.

    The trace covers the forward pass, the backward pass and the optimizer's update. Tensors in closure variables,
    globals and attributes are read and written in place, so parameters change. Float arguments, optimizer options such
    as ``group["lr"]``, step counts and random values are read at each call. Everything else that Python read is
    guarded: if it has changed, the function is retraced, so that a replay computes what the function would.
    `Jitted.captures` lists the last 100 reasons for tracing. The results have no graph.

    Arguments and results may be nested containers: tuples, lists, dicts, dataclasses, other mappings, and classes
    registered with `register_pytree_node`. There is one trace per structure of the arguments; per shape, stride, dtype,
    device and `requires_grad` of each tensor; per value of integers and strings; and per identity of other objects.
    A float selects a trace only if Python reads its value, by ``if``, ``float()`` or a function of `math`. The cache
    holds the `max_traces` most recently used traces; when it is full, one UserWarning names the argument or guard
    that keeps changing. A step that changes its own inputs, such as a counter, is retraced at each call, and
    after `max_traces` of those runs eagerly.

    With `fullgraph`, as in ``torch.compile``, a graph break raises CaptureError. A graph breaks if Python reads an
    element of a tensor, as in ``item()`` or ``if``; a shape depends on elements; the step reads an iterator, an open
    file, the clock or another source that cannot be guarded; a tensor from outside the step gets a graph; an argument
    has a graph, is a large NumPy array, or is mutated; or a result contains tensors in objects that are not containers.
    Without `fullgraph` the function runs eagerly from then on, and one UserWarning states the reason.

    `state` is a module or a sequence of modules to guard in addition to those that the function calls. Inside
    ``mg.record()``, ``mg.profile()`` or a tap the function runs eagerly. Threads that share a jitted function run it
    one at a time. Side effects such as ``print`` and logging happen only during tracing.

    On ``cpu`` and GPUs the second call records the launches of Taichi kernels, and later calls replay them. At the 16th
    call on ``cpu``, elementwise launches are fused, with row reductions, and up to 1,024 launches are merged into a few
    kernels. Compiling these takes seconds, once, with a progress bar if tqdm is installed. `Jitted.program` shows the
    result and why launches were not merged. Kernel errors, such as an index out of range, are raised after the step.

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
        check_callable(function, "jit")
        check_flag(fullgraph, "jit: fullgraph")
        if not isinstance(max_traces, int):
            raise DTypeError(f"jit: expected max_traces to be an integer, but got {describe_type(max_traces)}.")
        if max_traces < 1:
            raise ArgumentError(f"jit: expected max_traces to be at least 1, but got {max_traces}.")
        update_wrapper(self, function)
        self.captures: list[str] = []
        """The reasons for the last 100 traces."""
        self.trace_count = 0
        """The number of times the function was traced."""
        self._function = function
        self._traces: list[StepTrace] = []  # most recently used first
        self._max_traces = max_traces
        self._last: StepTrace | None = None
        self._discarded: tuple[Any, str] | None = None  # key of the last trace that was discarded, and the reason
        self._discard_count = 0
        self._fullgraph = fullgraph
        self._eager_reason = ""  # the reason for running eagerly, or "" while the function is traced
        self._misses = CacheMisses(getattr(function, "__name__", "a step"), max_traces)
        self._lock = RLock()  # serialises threads, as kernels share buffers
        self._guarded_modules = [state] if hasattr(state, "training") else [x for x in state if hasattr(x, "training")]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tapped() or modes.gradient_passed or self._eager_reason:
            return self._function(*args, **kwargs)
        with self._lock:
            return self._run(args, kwargs)

    def _run(self, args: Any, kwargs: Any) -> Any:
        last, reason = self._last, ""
        if last is not None and last.check is not None:
            tensors = last.check(args, kwargs)
            if tensors is not None:
                with last.lock:
                    if not global_grad_listeners:
                        reason, scalars = last.check_guards(tensors)
                        if not reason:
                            return last.run(tensors, scalars)
        try:
            call = Arguments(self._function, args, kwargs)
        except CaptureError as error:
            self._handle_graph_break(error)
            return self._function(*args, **kwargs)
        key, rejected = call.key, last if reason else None
        for trace in self._traces:
            if trace is not rejected and trace.key == key:
                trace.inputs[:] = call.floats
                with wait_for_captures(trace.lock):
                    failed_guard, scalars = trace.check_guards(call.tensors)
                    if not failed_guard:
                        self._move_to_front(trace)
                        if trace.check is None:
                            trace.check = compile_check(call, trace.inputs)
                        return trace.run(call.tensors, scalars)
                reason = reason or failed_guard
        with hold_capture_lock() as elsewhere:
            return self._capture(call, key, reason, elsewhere)

    def _move_to_front(self, trace: StepTrace) -> None:
        if not self._traces or self._traces[0] is not trace:
            self._traces = [trace, *[x for x in self._traces if x is not trace]]
        self._last, self._discard_count = trace, 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind the function as a method; the instance becomes an argument that selects a trace."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """Pickle or copy the function without its traces."""
        return Jitted, (self._function, self._guarded_modules, self._fullgraph, self._max_traces)

    def _handle_graph_break(self, error: CaptureError) -> None:
        """Raise the error with `fullgraph`, else run the function eagerly from now on."""
        if self._fullgraph:
            raise error
        self._run_eagerly(str(error).splitlines()[0].removesuffix("."))

    def _run_eagerly(self, reason: str) -> None:
        self._eager_reason = reason
        warnings.warn(f"{reason}.\n  It runs eagerly from now on.", UserWarning, stacklevel=5)

    def _capture(self, call: Arguments, key: Any, reason: str, observer: GradChangeObserver) -> Any:
        self._last = None
        if not reason and self._discarded is not None and self._discarded[0] == key:
            reason = self._discarded[1]
        reach = Reach()  # the state before the step runs
        reach.add(self._function, getattr(self._function, "__name__", "the step"))
        for x, path in (*[(x, type(x).__name__) for x in self._guarded_modules], *call.guarded_objects):
            reach.add(x, path)
        capture = Capture([x._array for x in call.tensors], reach, self._fullgraph)
        capture.trace_optimizers()
        inputs: list[float] = []
        args, kwargs = call.with_symbolic_floats(capture.symbols, inputs)
        result = capture.run(lambda: self._function(*args, **kwargs))
        for x in call.tensors:
            if x._step is not None:  # an in-place operation recorded a graph node; a replay does not record one
                x._step, x._requires_grad = None, False
        try:
            if capture.graph_break:
                raise CaptureError(capture.graph_break)
            call.check_unmutated(args, kwargs)
            read_set = reach.select_read(
                capture.entry_watch, [x.optimizer for x in capture.optimizers.values() if x.steps]
            )
            _raise_unguardable(read_set)
            results = Results(result, capture)
        except CaptureError as error:
            self._handle_graph_break(error)
            return concrete_results(result)
        del result  # its graph references leaves that the step created
        self._record_reason(call, reason or call.describe_first_call())
        capture.drop_dead_leaves({*read_set.tensors, *map(id, call.tensors)})
        guards = TraceGuards(capture, call.tensors, read_set)
        changed = capture.instability or guards.find_changed()
        trace = None if changed else StepTrace(capture, results, call, key, guards, inputs)
        if {*capture.grads, *capture.grads_read} & {*observer.changed}:
            changed = "a gradient was changed by another thread"
        if changed or trace is None:
            self._discarded, self._discard_count = (key, f"in the step itself {changed}"), self._discard_count + 1
        else:
            self._move_to_front(trace)
        if self._discard_count > self._max_traces:
            self._run_eagerly(f"jit: in the step itself {changed}, at each of {self._discard_count} calls")
        elif len(self._traces) > self._max_traces:
            del self._traces[self._max_traces :]
            self._misses.warn()
        return results.take_results()

    def _record_reason(self, call: Arguments, reason: str) -> None:
        self.trace_count += 1
        self.captures.append(reason)
        del self.captures[:-100]
        self._misses.add(call, reason)

    @property
    def program(self) -> str:
        """The text of the trace that the last call ran or recorded: one line per kernel call, then how the trace is
        executed and why. Empty if the trace was discarded."""
        return "" if self._last is None else str(self._last)

    @property
    def recording(self) -> StepTrace | None:
        """The trace that the last call ran or recorded, for `minigrad_viz.draw`; None if the trace was discarded."""
        return self._last

    @property
    def source(self) -> str:
        """The source of the kernels that the last call launched; empty if the trace was executed call by call."""
        replay = None if self._last is None else self._last.replay
        return "" if replay is None else replay.source


def _raise_unguardable(read_set: ReadSet) -> None:
    """Raise CaptureError if the step read something that cannot be guarded."""
    if read_set.unguardable:
        raise CaptureError(
            f"jit: the step reads {read_set.unguardable[0]}.\n"
            "  A replay would use the value from tracing time: read it outside of the step, and pass what you need\n"
            "  as an argument."
        )
