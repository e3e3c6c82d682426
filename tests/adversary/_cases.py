"""Cases: a plan of calls and changes, run in two worlds, and its outcome."""

from __future__ import annotations

import contextvars
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import adversary
import minigrad as mg
from adversary import Kind, Scene, World
from adversary._snapshot import difference, snapshot
from minigrad.core.errors import CaptureError
from minigrad.core.modes import exit_all

__all__ = ["EQUAL", "RAISED", "REFUSED", "RETRACED", "STALE", "Case", "Outcome", "case_of_kind", "case_of_number"]

EQUAL, REFUSED = "equal", "refused"
STALE, RAISED, RETRACED = "stale", "raised", "retraced"  # failures
FINAL_CALLS = 4  # calls at the end without changes
SETTLED_CALLS = 2  # the last calls, which must not be captured again
MAX_CAPTURES = 3  # captures of a symbolic step: an optimizer creates its state in the first
ERROR = "what is raised"
LONG_CALLS = 18  # calls, the last of which run merged kernels that take a second to compile


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case: `verdict`, and an explanation."""

    verdict: str
    explanation: str = ""

    @property
    def failed(self) -> bool:
        """Whether the jitted step behaved differently from the plain function."""
        return self.verdict in (STALE, RAISED, RETRACED)


@dataclass(frozen=True)
class Case:
    """One scene and one plan, determined by a seed.

    Args:
        name: reproduces the case: ``python -m adversary --case NAME``.
        kinds: the kinds in the case.
        build: returns the scene in a world.
        seed: of the plan and of all random numbers.
        device: of the tensors.
        long: whether many calls precede the first change and follow the last, so that ``cpu`` merges kernels.
    """

    name: str
    kinds: tuple[Kind, ...]
    build: Callable[[World], Scene]
    seed: str
    device: str = "numpy"
    long: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(map(str, self.kinds))}; on {self.device}{', long' * self.long})"

    def run(self, **options: Any) -> Outcome:
        """Run the plan with the plain function and with the jitted one, and compare them after every call.

        `options` are those of `mg.jit`.
        """
        plain, jitted = _Run(self), _Run(self, jit=partial(mg.jit, **options))
        for k, (a, b) in enumerate(zip(plain.snapshots, jitted.snapshots, strict=False)):
            if difference_found := difference(a, b):
                raised = ERROR in b and ERROR not in a
                return Outcome(
                    RAISED if raised else STALE, f"{jitted.until(k)}: {b[ERROR] if raised else difference_found}"
                )
        if jitted.capture_error:
            return self._judge_error(jitted.capture_error)
        if any(kind.required for kind in self.kinds) and options.get("fullgraph", True):
            return Outcome(STALE, "it does not raise CaptureError")
        return self._judge_captures(jitted)

    def _judge_error(self, message: str) -> Outcome:
        names = [name for kind in self.kinds for name in kind.refused]
        if any(name in message for name in names):
            return Outcome(REFUSED, message)
        missing = f"CaptureError does not name {' or '.join(names)}: " if names else ""
        return Outcome(RAISED, f"{missing}{message}")

    def _judge_captures(self, jitted: _Run) -> Outcome:
        if any(kind.retraces for kind in self.kinds):
            return Outcome(EQUAL)
        counts = jitted.captures
        if counts[-1] > counts[-1 - SETTLED_CALLS]:
            return Outcome(RETRACED, f"captured again without a change: {jitted.reasons[-1]}")
        if all(kind.symbolic for kind in self.kinds) and counts[-1] > MAX_CAPTURES:
            return Outcome(RETRACED, f"captured {counts[-1]} times: {jitted.reasons[-1]}")
        return Outcome(EQUAL)

    def visible(self) -> bool:
        """Whether the changes of the plan alter what the plain function does, or the step must be rejected anyway."""
        changed, unchanged = _Run(self), _Run(self, unchanged=True)
        return changed.snapshots != unchanged.snapshots or any(kind.required for kind in self.kinds)

    def raising(self) -> bool:
        """Whether the plain function raises in one of the calls."""
        return any(ERROR in moment for moment in _Run(self).snapshots)


def case_of_kind(kind: Kind, seed: int = 0, device: str = "numpy", long: bool = False) -> Case:
    """Return the case of one kind, combined with the simplest kinds of the other families."""
    kinds_by_name = {one.name: one for one in adversary.kinds()}
    parts = {
        "route": kinds_by_name["a global variable" if kind.family == "wrapper" else "a closure variable"],
        "thing": kinds_by_name["a float"],
        "body": kinds_by_name["a formula"],
    }
    if kind.family == "scene":
        build: Callable[[World], Scene] = kind.build
    else:
        parts[kind.family] = kind
        build = lambda world: adversary.compose(world, **parts)  # noqa: E731
    return Case(f"{kind}#{seed}", (kind,), build, f"{kind}#{seed}", device, long)


def case_of_number(seed: int) -> Case:
    """Return the case of a number: one scene, two scenes in one step, or a combination of parts."""
    rng = adversary.rng_of("case", seed)
    device = "cpu" if rng.random() < 0.2 else "numpy"
    long = device == "cpu" and rng.random() < 0.1
    build: Callable[[World], Scene]
    shape = rng.choices(["parts", "scene", "two"], [5, 3, 2])[0]
    if shape == "parts":
        families = ("route", "thing", "body", "wrapper") if rng.random() < 0.5 else ("route", "thing", "body")
        parts = tuple([rng.choice(adversary.kinds(family)) for family in families])
        build = lambda world: adversary.compose(world, *parts)  # noqa: E731
    elif shape == "scene":
        parts = (rng.choice(adversary.kinds("scene")),)
        build = parts[0].build
    else:
        scenes = rng.sample(adversary.kinds("scene"), 2)
        helper = next(one for one in adversary.kinds("wrapper") if one.name == "a helper")  # the wrapper of both steps
        parts = (*scenes, helper)
        build = lambda world: adversary.join_scenes(world, *[one.build(world) for one in scenes])  # noqa: E731
    return Case(f"{seed}", parts, build, f"case {seed}", device, long)


class _Run:
    """A case in one world: a snapshot after each call, and the errors raised."""

    def __init__(self, case: Case, jit: Callable[..., Any] | None = None, unchanged: bool = False) -> None:
        self.snapshots: list[dict[str, str]] = []
        self.captures: list[int] = []
        self.capture_error = ""
        self.plan: list[str] = []
        self._jitted: list[Any] = []
        self._calls = 0
        defaults = mg.get_default_device(), mg.get_default_dtype(), mg.get_rng_state(), random.getstate()
        world = World(case.device, (lambda step: step) if jit is None else partial(self._capture, jit))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                contextvars.copy_context().run(self._run, case, world, unchanged)
        finally:
            exit_all()
            for close in world.cleanups:
                close()
            world.patch.undo()
            mg.set_default_device(defaults[0])
            mg.set_default_dtype(defaults[1])
            mg.set_rng_state(defaults[2])
            random.setstate(defaults[3])

    @property
    def reasons(self) -> list[str]:
        """The reasons of each capture in this world."""
        return [reason for one in self._jitted for reason in one.captures]

    def until(self, call: int) -> str:
        """Return the plan up to a call, as "2 calls, knob 0 = 1, 1 call"."""
        entries, calls = [], 0
        for text in self.plan:
            calls += text == "call"
            entries.append(text)
            if calls > call:
                break
        return ", ".join(entries).replace("call, call, call, call", "4 calls").replace("call, call, call", "3 calls")

    def _capture(self, jit: Callable[..., Any], step: Callable[..., Any]) -> Any:
        self._jitted.append(jit(step))
        return self._jitted[-1]

    def _run(self, case: Case, world: World, still: bool) -> None:
        mg.set_default_device(case.device)
        mg.manual_seed(5)
        random.seed(5)
        scene = case.build(world)
        step = scene.step if scene.jitted else world.jit(scene.step)
        watched = [*scene.compared, *world.compared, mg.default_generator]
        plan = _plan(adversary.rng_of(case.seed), scene.knobs, LONG_CALLS if case.long else 0)
        for knob, value in plan:
            if knob is not None:
                self.plan.append(f"knob {scene.knobs.index(knob)} = {value}")
                if not still:
                    knob.put(knob.values[value])
                continue
            self.plan.append("call")
            if not self._call(step, scene, watched):
                return

    def _call(self, step: Callable[..., Any], scene: Scene, watched: list[Any]) -> bool:
        args, kwargs = scene.arguments(self._calls)
        self._calls += 1
        try:
            entries = {f"the result{path}": text for path, text in snapshot(step(*args, **kwargs), state=False).items()}
        except CaptureError as error:
            self.capture_error = str(error)
            return False
        except Exception as error:  # noqa: BLE001 -- whatever the user's step raises
            entries = {ERROR: repr(error)}
        entries |= {f"state{path}": text for path, text in snapshot([args, kwargs, *watched], state=True).items()}
        self.snapshots.append(entries)
        self.captures.append(len(self.reasons))
        return True


def _plan(rng: random.Random, knobs: Sequence[adversary.Knob], extra_calls: int) -> list[tuple[Any, int]]:
    """Return calls, (None, 0), and changes, (knob, index of its value): every value of every knob, in random order.

    Sometimes two changes occur together, and sometimes one is undone immediately; in the end all are undone. There are
    `extra_calls` calls before the first change and after the last.
    """
    call = (None, 0)
    changes: list[tuple[Any, int]] = [(knob, k) for knob in knobs for k in range(1, len(knob.values))]
    rng.shuffle(changes)
    plan: list[tuple[Any, int]] = [call] * (extra_calls + rng.choice([1, 2, 2, 3, 4]))
    changed: dict[int, adversary.Knob] = {}
    while changes:
        batch = [changes.pop() for _ in range(min(len(changes), rng.choice([1, 1, 1, 2])))]
        plan += [*batch, *[call] * rng.choice([1, 1, 2, 3])]
        changed |= {id(knob): knob for knob, _ in batch if knob.undone}
        if not changes or rng.random() < 0.3:
            plan += [*[(knob, 0) for knob in changed.values()], *[call] * rng.choice([1, 2])]
            changed.clear()
    return [*plan, *[call] * (extra_calls + FINAL_CALLS)]
