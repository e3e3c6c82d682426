"""A recording of a step: its program, what it holds for, and how it is run."""

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

JOINED = 16  # runs by launches until they are joined: compiling takes as long as thousands of launches
MOST = 1024  # launches of a step that are joined: 425 of a small GPT take half a minute to compile
MOST_ON_GPU = 256  # there nobody waits for a launch, and to compile takes longer
TRIES = 3  # runs until one is recorded: in the first ones tables are made that stay


class StepRecording:
    """One recording of a function: its program, what it holds for, and what becomes of what it computes."""

    def __init__(
        self, capture: Capture, results: Results, call: Arguments, key: Any, guards: TraceGuards, inputs: list[float]
    ) -> None:
        self.key, self.inputs = key, inputs
        """What it is for, see `Arguments.key`; and where the floats among the arguments of a call are written."""
        self.check: Check | None = None
        """What finds the tensors among arguments that have the key, see `compile_check`."""
        self.arguments = call.names
        """What the function calls the tensors that it is given."""
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
        """Whose change, and which of what the program gives they are then; None where there are none."""
        self.lock: Any = grad_lock if capture.grads or capture.grads_read else RLock()
        """Held from the check of the guards to the end of the replay, so that no other thread changes its gradients."""
        self._written = capture.written(tensors)
        self.program = Program(*made_of(capture.nodes, wanted), capture.buffers)
        self.launched: Launched | None = None
        self.why = "it ran once, and it is recorded when it runs again"
        """Why it is not `launched`."""
        self._tries, self._runs = TRIES, 0
        self._updates = [update for numbers in self._optimizers for update in numbers.updates]
        self._given = results.symbols
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
        """Why it does not hold any more, or ""; and the numbers that are read again."""
        reason = self._guards.broken(tensors)
        if reason:
            return reason, ()
        try:
            numbers, hold = self._numbers()
        except LookupError as error:
            return f"{error.args[0]}, an option of an optimizer, is no number any more", ()
        except (ArithmeticError, TypeError, ValueError) as error:  # behind an `if` that is not taken now, say
            return f"what it computes of floats raises {type(error).__name__} now", ()
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
        for one in self._optimizers:
            one.optimizer.steps += one.steps
        return self._results.replayed(arrays, values)

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
    changed = [
        (x, x._grad)
        for x, before, added in capture.grads.values()
        if x._grad is not before or (before is None and not added)  # None was assigned, where a gradient may be then
    ]
    return [(numbers.get(id(x), x), None if grad is None else noted(grad)) for x, grad in changed]
