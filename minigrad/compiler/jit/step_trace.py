"""A trace of a step: its program, its guards, and how it is replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from minigrad.compiler.jit.argument_checks import Check
from minigrad.compiler.jit.arguments import Arguments
from minigrad.compiler.jit.capture import Capture
from minigrad.compiler.jit.nodes import View
from minigrad.compiler.jit.program import Program, optimize_calls
from minigrad.compiler.jit.replay import LaunchReplay, record_launches
from minigrad.compiler.jit.results import Results
from minigrad.compiler.jit.scalars import GeneratorDraws
from minigrad.compiler.jit.trace_guards import TraceGuards
from minigrad.core.errors import user_frame
from minigrad.core.graph import grad_lock
from minigrad.core.symbolic import map_symbolic, symbolic_scalars_in
from minigrad.core.tensor import Tensor, wrap

__all__ = ["StepTrace"]

# Number of replays before the launches are merged. Compiling the merged kernel takes as long as thousands of launches.
MERGE_AFTER_REPLAYS = 16
MAX_MERGED_LAUNCHES = 1024  # compiling the 425 launches of a small GPT takes half a minute
MAX_MERGED_LAUNCHES_ON_GPU = 256  # launches are asynchronous on a GPU, and compiling takes longer
# Maximum number of attempts to record a run. The first runs may fail, since they allocate persistent tables.
RECORDING_ATTEMPTS = 3


class StepTrace:
    """A trace of a function: its program, guards and cache key, and the results and side effects of a replay."""

    def __init__(
        self, capture: Capture, results: Results, call: Arguments, key: Any, guards: TraceGuards, inputs: list[float]
    ) -> None:
        self.key, self.inputs = key, inputs
        """The cache key, see `Arguments.key`; and the list that receives the float arguments of a call."""
        self.check: Check | None = None
        """Function that returns the tensors among arguments that match the key; see `compile_check`."""
        self.arguments = call.names
        """Parameter names of the tensor arguments."""
        self._draws, self._optimizers = list(capture.draws.values()), list(capture.optimizers.values())
        tensors = call.tensors
        result_views: list[View] = []

        def add_result(x: Tensor) -> int:
            result_views.append(capture.view(x._array))
            return len(result_views) - 1

        self._results = results
        for x in (*results.tensors, *[grad for _, grad in results.grads]):
            add_result(x)
        self._guards = guards
        self.gradients = _changed_gradients(capture, tensors, add_result)
        """Each tensor whose gradient changes, with the index of its new gradient in the program's results, or None."""
        self.lock: Any = grad_lock if capture.grads or capture.grads_read else RLock()
        """The lock that prevents other threads from changing gradients during guard checks and a replay."""
        self._written_storages = capture.written_storages(tensors)
        self.program = Program(*optimize_calls(capture.nodes, result_views), capture.buffers)
        self.replay: LaunchReplay | None = None
        self.unrecorded_reason = "it ran once, and its launches are recorded at the next call"
        """Reason that no launches are recorded."""
        self._attempts_left, self._runs = RECORDING_ATTEMPTS, 0
        self._updates = [update for scalars in self._optimizers for update in scalars.updates]
        self._result_symbols = results.symbols
        self._symbols, self._condition_count = capture.symbols, len(capture.symbols.guards)
        self._compile_scalar_reader()
        for buffer in capture.buffers:
            buffer.release()

    @property
    def guarded_tensors(self) -> list[tuple[Tensor, str]]:
        """The tensors that must be identical at each replay, and their names."""
        return self._guards.guarded_tensors

    @property
    def optimizers(self) -> list[Any]:
        """The optimizers that update parameters in the trace."""
        return [one.optimizer for one in self._optimizers]

    @property
    def execution(self) -> str:
        """A description of how the trace is executed."""
        return str(self.replay or f"Replayed call by call: {self.unrecorded_reason}.")

    def __str__(self) -> str:
        return f"{self.program}\n\n{self.execution}"

    def _compile_scalar_reader(self) -> None:
        """Compile the function that reads the symbolic scalars a replay needs."""
        launched = self.replay.symbols if self.replay is not None else []
        needed = [
            *launched,
            *self.program.symbols,
            *symbolic_scalars_in([x for _, _, x in self._updates]),
            *self._result_symbols,
        ]
        self._scalar_names = [x.name for x in needed]
        self._read_scalars = self._symbols.compile_reader(needed)
        self._conditions = self._symbols.guards

    def check_guards(self, tensors: Sequence[Tensor]) -> tuple[str, Any]:
        """Return the reason that the trace may not be replayed, or "", and the values of the symbolic scalars."""
        reason = self._guards.find_failed(tensors)
        if reason:
            return reason, ()
        try:
            scalars, conditions_hold = self._read_scalars()
        except LookupError as error:
            return f"{error.args[0]}, an option of an optimizer, is no longer a Python scalar", ()
        except (ArithmeticError, TypeError, ValueError) as error:  # for example behind an `if` that is not taken now
            return f"a computation with floats now raises {type(error).__name__}", ()
        if not all(conditions_hold):
            condition = self._conditions[conditions_hold.index(False)]
            if conditions_hold.index(False) < self._condition_count:
                return f"{condition} changed", ()
            self._discard_replay(f"{condition} changed")
            scalars, _ = self._read_scalars()
        if self._draws and not GeneratorDraws.reserve(self._draws):
            return self.check_guards(tensors)
        return "", scalars

    def run(self, tensors: Sequence[Tensor], scalars: tuple[Any, ...]) -> Any:
        """Return the result for other arguments, and repeat the side effects of the step."""
        for owner, _ in self.gradients:  # release the memory for reuse
            (tensors[owner] if owner.__class__ is int else owner)._grad = None
        names = self._scalar_names  # this run may record launches, which replaces the names
        arrays = self._compute_results([x._array for x in tensors], scalars)
        values = dict(zip(names, scalars, strict=True)) if self._updates or self._result_symbols else {}
        line = user_frame()
        for storage in self._written_storages:
            (tensors[storage].storage if storage.__class__ is int else storage).mark_written("jit", location=line)
        for owner, index in self.gradients:
            x = tensors[owner] if owner.__class__ is int else owner
            x._grad = None if index is None else wrap(arrays[index])
        for table, name, x in self._updates:
            table[name] = map_symbolic(x, lambda scalar: values[scalar.name])
        for optimizer_scalars in self._optimizers:
            optimizer_scalars.optimizer.steps += optimizer_scalars.steps
        return self._results.build_results(arrays, values)

    def _compute_results(self, arguments: list[Any], scalars: tuple[Any, ...]) -> list[Any]:
        """Run the program and return its results. Recorded launches are replayed; otherwise calls run one by one."""
        fitted = None if self.replay is None else self.replay.fit_arguments(arguments)
        if self.replay is not None and fitted is not None:
            self._runs += 1
            if self._runs == MERGE_AFTER_REPLAYS:
                self.replay.merge_launches(
                    MAX_MERGED_LAUNCHES if self.replay.on_cpu else min(MAX_MERGED_LAUNCHES, MAX_MERGED_LAUNCHES_ON_GPU)
                )
            return self.replay.run(arguments, fitted, scalars)
        values = dict(zip(self._scalar_names, scalars, strict=True))
        if self.replay is not None or not self._attempts_left:
            return self.program.run(arguments, values)
        self._attempts_left -= 1
        arrays, self.replay, self.unrecorded_reason = record_launches(self.program, self._symbols, arguments, values)
        if self.replay is None:
            self._discard_replay(self.unrecorded_reason)
        self._compile_scalar_reader()
        return arrays

    def _discard_replay(self, reason: str) -> None:
        """Revert to running call by call, since launches cannot be recorded or depend on changed scalars."""
        self.replay, self.unrecorded_reason = None, reason
        self._symbols.truncate_guards(self._condition_count)
        self._compile_scalar_reader()


def _changed_gradients(
    capture: Capture, tensors: list[Tensor], add_result: Callable[[Any], Any]
) -> list[tuple[Any, Any]]:
    """Return the tensors whose gradient changes, each with the result index of its new gradient or None. Arguments are
    returned as indices into `tensors`."""
    argument_indices = {id(x): k for k, x in enumerate(tensors)}
    changed = [
        (x, x._grad)
        for x, before, is_accumulated in capture.grads.values()
        if x._grad is not before
        or (before is None and not is_accumulated)  # None was assigned, and may replace a gradient
    ]
    return [(argument_indices.get(id(x), x), None if grad is None else add_result(grad)) for x, grad in changed]
