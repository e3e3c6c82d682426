"""A trace of a step: its program, its guards, and how it is replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from minigrad.compiler.jit.arguments import Arguments
from minigrad.compiler.jit.capture import Capture
from minigrad.compiler.jit.checks import Check
from minigrad.compiler.jit.launched import Launched, recorded
from minigrad.compiler.jit.nodes import View
from minigrad.compiler.jit.program import Program, made_of
from minigrad.compiler.jit.results import Results
from minigrad.compiler.jit.scalars import Draw
from minigrad.compiler.jit.trace_guards import TraceGuards
from minigrad.core.errors import caller
from minigrad.core.graph import grad_lock
from minigrad.core.symbolic import replaced, traced
from minigrad.core.tensor import Tensor, wrap

__all__ = ["StepRecording"]

JOINED = 16  # replays by separate launches before they are merged: compiling takes as long as thousands of launches
MOST = 1024  # maximum number of launches to merge: the 425 of a small GPT take half a minute to compile
MOST_ON_GPU = 256  # launches are asynchronous there, and compiling takes longer
TRIES = 3  # runs in which recording is attempted: the first ones allocate tables that persist


class StepRecording:
    """A trace of a function: its program, guards and cache key, and the results and side effects of a replay."""

    def __init__(
        self, capture: Capture, results: Results, call: Arguments, key: Any, guards: TraceGuards, inputs: list[float]
    ) -> None:
        self.key, self.inputs = key, inputs
        """The cache key, see `Arguments.key`; and the list that receives the float arguments of a call."""
        self.check: Check | None = None
        """A function that returns the tensors among arguments that have the key, see `compile_check`."""
        self.arguments = call.names
        """The function's names for its tensor arguments."""
        self._draws, self._optimizers = list(capture.draws.values()), list(capture.optimizers.values())
        tensors = call.tensors
        wanted: list[View] = []

        def noted(x: Tensor) -> int:
            wanted.append(capture.view(x._array))
            return len(wanted) - 1

        self._results = results
        for x in (*results.tensors, *[grad for _, grad in results.grads]):
            noted(x)
        self._guards = guards
        self.gradients = _gradients_after(capture, tensors, noted)
        """Each tensor whose gradient changes, with the index of its new gradient in the program's results, or None."""
        self.lock: Any = grad_lock if capture.grads or capture.grads_read else RLock()
        """Lock from the check of the guards to the end of the replay, so that no other thread changes its gradients."""
        self._written = capture.written(tensors)
        self.program = Program(*made_of(capture.nodes, wanted), capture.buffers)
        self.launched: Launched | None = None
        self.why = "it ran once, and its launches are recorded at the next call"
        """Why there are no recorded launches."""
        self._tries, self._runs = TRIES, 0
        self._updates = [update for numbers in self._optimizers for update in numbers.updates]
        self._given = results.symbols
        self._book, self._lasting = capture.book, len(capture.book.conditions)
        self._ask()
        for buffer in capture.buffers:
            buffer.forget()

    @property
    def held(self) -> list[tuple[Tensor, str]]:
        """The tensors that must be identical at each replay, and their names."""
        return self._guards.held

    @property
    def optimizers(self) -> list[Any]:
        """The optimizers that step in the trace."""
        return [one.optimizer for one in self._optimizers]

    @property
    def how(self) -> str:
        """A description of how the trace is executed."""
        return str(self.launched or f"Replayed call by call: {self.why}.")

    def __str__(self) -> str:
        return f"{self.program}\n\n{self.how}"

    def _ask(self) -> None:
        """Compile the function that reads the symbolic scalars a replay needs."""
        launched = self.launched.numbers if self.launched is not None else []
        asked = [*launched, *self.program.numbers, *traced([x for _, _, x in self._updates]), *self._given]
        self._names = [x.name for x in asked]
        self._numbers = self._book.function(asked)
        self._about = self._book.conditions

    def outdated(self, tensors: Sequence[Tensor]) -> tuple[str, Any]:
        """Return why the trace may not be replayed, or ""; and the values of the symbolic scalars."""
        reason = self._guards.broken(tensors)
        if reason:
            return reason, ()
        try:
            numbers, hold = self._numbers()
        except LookupError as error:
            return f"{error.args[0]}, an option of an optimizer, is no longer a Python scalar", ()
        except (ArithmeticError, TypeError, ValueError) as error:  # for example behind an `if` that is not taken now
            return f"a computation with floats now raises {type(error).__name__}", ()
        if not all(hold):
            about = self._about[hold.index(False)]
            if hold.index(False) < self._lasting:
                return f"{about} changed", ()
            self._unlaunch(f"{about} changed")
            numbers, _ = self._numbers()
        if self._draws and not Draw.reserve(self._draws):
            return self.outdated(tensors)
        return "", numbers

    def run(self, tensors: Sequence[Tensor], numbers: tuple[Any, ...]) -> Any:
        """Return the result for other arguments, and repeat the side effects of the step."""
        for of, _ in self.gradients:  # release the memory for reuse
            (tensors[of] if of.__class__ is int else of)._grad = None
        names = self._names  # this run may record launches, which replaces the names
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
        for one in self._optimizers:
            one.optimizer.steps += one.steps
        return self._results.replayed(arrays, values)

    def _computed(self, arguments: list[Any], numbers: tuple[Any, ...]) -> list[Any]:
        """Return the results of the program, as a sequence of launches if they are recorded, else call by call."""
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
        """Return to running call by call: launches could not be recorded, or depend on scalars that have changed."""
        self.launched, self.why = None, why
        self._book.forget(self._lasting)
        self._ask()


def _gradients_after(capture: Capture, tensors: list[Tensor], noted: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Return the tensors whose gradient changes, or argument indices, with the index of the new gradient in results."""
    numbers = {id(x): k for k, x in enumerate(tensors)}
    changed = [
        (x, x._grad)
        for x, before, added in capture.grads.values()
        if x._grad is not before or (before is None and not added)  # None was assigned, and may replace a gradient
    ]
    return [(numbers.get(id(x), x), None if grad is None else noted(grad)) for x, grad in changed]
