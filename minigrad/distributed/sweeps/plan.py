"""What a sweep tries: the values of each trial by its number, which follow from the plan alone."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from math import floor, isfinite, prod
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, DTypeError, a_kind

__all__ = ["Axis", "Halving", "Plan", "check_keys", "differences", "planned", "said"]

RESERVED = ("report", "folder")  # parameters of the function that are not swept
COLUMNS = ("trial", "state", "best_epoch", "last_epoch", "seconds", "error")  # of the table of results
SPAN = "{ from = 1e-4, to = 1e-1, log = true }"
DIGITS = 4  # of a number that is drawn, so that what is shown is what was used


class Halving(NamedTuple):
    """Early stopping by asynchronous successive halving, with the names that Ray Tune's ASHAScheduler gives them.

    Trials are compared after `grace_period` epochs, then after `reduction_factor` times as many, and so on: one that is
    not among the best ``1 / reduction_factor`` of those that came so far ends there. Li et al. 2020.
    """

    grace_period: int = 1
    reduction_factor: float = 4


@dataclass(frozen=True)
class Axis:
    """What the values of one parameter are taken from: `choices`, or the numbers from `low` to `high`."""

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    """Whether each ratio is as likely as another, and not each difference."""

    def draw(self, seed: int, sample: int) -> Any:
        """The value of a sample: it depends on the seed, the name and the sample's number alone.

        >>> [Axis("lr", low=1e-4, high=1e-1, log=True).draw(0, k) for k in range(3)]
        [0.002321, 0.005116, 0.0003144]
        >>> Axis("width", low=16, high=64).draw(0, 0), Axis("act", ("relu", "tanh")).draw(0, 0)
        (23, 'tanh')
        """
        share = random.Random(f"{seed} {self.name} {sample}").random()
        if self.choices:
            return self.choices[int(share * len(self.choices))]
        whole = isinstance(self.low, int)
        top = self.high + 1 if whole else self.high  # a whole number stands for all that is rounded down to it
        x = self.low * (top / self.low) ** share if self.log else self.low + share * (top - self.low)
        return min(floor(x), int(self.high)) if whole else min(max(float(f"{x:.{DIGITS}g}"), self.low), self.high)


@dataclass(frozen=True)
class Plan:
    """A sweep as it was asked for. Trials are numbered from 1: of each sample of `random` the whole `grid`."""

    goal: str
    mode: str
    grid: tuple[Axis, ...]
    random: tuple[Axis, ...]
    fixed: Mapping[str, Any]
    samples: int
    seed: int
    stop: Halving | None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is swept."""
        return self.grid + self.random

    def __len__(self) -> int:
        return self.samples * prod(len(axis.choices) for axis in self.grid)

    def values(self, number: int) -> dict[str, Any]:
        """The values of a trial."""
        points = list(product(*[axis.choices for axis in self.grid]))
        sample, point = divmod(number - 1, len(points))
        found = dict(zip([axis.name for axis in self.grid], points[point], strict=True))
        return found | {axis.name: axis.draw(self.seed, sample) for axis in self.random}

    def better(self, one: float, other: float) -> bool:
        """Whether one number of the goal is better than another."""
        return one < other if self.mode == "min" else one > other

    def state(self) -> dict[str, Any]:
        """What the results depend on, as JSON keeps it."""
        return {
            "goal": f"{self.mode} {self.goal}",
            "grid": {axis.name: list(axis.choices) for axis in self.grid},
            "random": {axis.name: _span(axis) for axis in self.random},
            "fixed": dict(self.fixed),
            "samples": self.samples,
            "seed": self.seed,
            "stop": None if self.stop is None else self.stop._asdict(),
        }


def _span(axis: Axis) -> Any:
    return list(axis.choices) if axis.choices else {"from": axis.low, "to": axis.high, "log": axis.log}


def planned(
    who: str,
    *,
    goal: Any,
    grid: Any = None,
    random: Any = None,
    fixed: Any = None,
    samples: Any = None,
    seed: Any = 0,
    stop: Any = None,
) -> Plan:
    """The plan that is asked for. Raises ArgumentError, DTypeError, in one sentence that `who` begins, for what cannot
    be.

    >>> plan = planned("sweep", goal="min val_loss", grid={"width": [16, 32]}, random={"seed": {"from": 0, "to": 9}},
    ...                samples=2)
    >>> [plan.values(k) for k in range(1, len(plan) + 1)]
    [{'width': 16, 'seed': 2}, {'width': 32, 'seed': 2}, {'width': 16, 'seed': 0}, {'width': 32, 'seed': 0}]
    """
    mode, name = _goal(who, goal)
    listed = tuple(
        Axis(key, _choices(who, f"grid.{key}", x)) for key, x in _table(who, "grid", grid, "width = [16, 32, 64]")
    )
    drawn = tuple(_drawn(who, key, x) for key, x in _table(who, "random", random, f"lr = {SPAN}"))
    kept = dict(_table(who, "fixed", fixed, "epochs = 20"))
    for axis in listed + drawn:
        if axis.name in (*COLUMNS, name):
            raise ArgumentError(f"{who}: {axis.name} is a column of the results already.\n  Take another name.")
    _apart(who, [axis.name for axis in listed], [axis.name for axis in drawn], list(kept))
    for key, x in kept.items():
        _value(who, f"fixed.{key}", x)
    if not listed and not drawn:
        raise ArgumentError(
            f"{who}: nothing is swept.\n  Write width = [16, 32, 64] under [grid], or lr = {SPAN} under [random]."
        )
    if drawn and samples is None:
        raise ArgumentError(f"{who}: random has no end of its own.\n  Write samples = 20: so often it is drawn.")
    if samples is not None and not drawn:
        raise ArgumentError(f"{who}: samples={samples!r} says how often random is drawn, and there is no [random].")
    count = 1 if samples is None else _whole(who, "samples", samples, 1)
    return Plan(name, mode, listed, drawn, kept, count, _whole(who, "seed", seed, 0), _halving(who, stop))


def check_keys(who: str, where: str, given: Mapping[str, Any], known: list[str]) -> None:
    """Raise ArgumentError for a key that is not known, with the one that it resembles."""
    for key in given:
        if key not in known:
            near = get_close_matches(key, known, 1, 0.5)
            advice = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
            raise ArgumentError(f"{who}: {where}{key} is not known.\n  {advice}")


def said(x: Any) -> str:
    """A value as tables and pictures show it."""
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _goal(who: str, goal: Any) -> tuple[str, str]:
    words = goal.split() if isinstance(goal, str) else []
    if len(words) != 2 or words[0] not in ("min", "max"):
        raise ArgumentError(
            f'{who}: goal={goal!r} does not say what is best.\n  Write goal = "min val_loss", or "max val_accuracy": '
            "a name that train reports."
        )
    return words[0], words[1]


def _table(who: str, what: str, given: Any, example: str) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise DTypeError(f"{who}: {what} is {a_kind(given)}, not a table.\n  Write [{what}], and below it {example}.")
    for key in given:
        if not isinstance(key, str) or not key.isidentifier():
            raise ArgumentError(f"{who}: {what}.{key} cannot be a parameter of a Python function.")
        if key in RESERVED:
            raise ArgumentError(f"{who}: {what}.{key}: the sweep itself gives train its {key}.\n  Take another name.")
    return list(given.items())


def _apart(who: str, *groups: list[str]) -> None:
    seen: dict[str, str] = {}
    for table, names in zip(("grid", "random", "fixed"), groups, strict=True):
        for name in names:
            if name in seen:
                raise ArgumentError(f"{who}: {name} is under [{seen[name]}] and under [{table}].\n  Take one away.")
            seen[name] = table


def _choices(who: str, where: str, given: Any) -> tuple[Any, ...]:
    name = where.partition(".")[2]
    if not isinstance(given, list | tuple):
        raise DTypeError(
            f"{who}: {where} is {given!r:.60}, not a list.\n  Write {name} = [{said(given):.40}], with all that is to "
            "be tried; or under [fixed] what is always the same."
        )
    if not given:
        raise ArgumentError(
            f"{who}: {where} is an empty list.\n  Write what is to be tried: {name} = [16, 32, 64], say."
        )
    for k, x in enumerate(given):
        _value(who, f"{where}[{k}]", x)
        if any(x == y and type(x) is type(y) for y in given[:k]):
            raise ArgumentError(f"{who}: {where} has {x!r:.60} twice.\n  To try it again, sweep over a seed.")
    return tuple(given)


def _value(who: str, where: str, x: Any) -> None:
    """Raise unless a value can be written down, and read again as it was."""
    if isinstance(x, float) and not isfinite(x):
        raise ArgumentError(f"{who}: {where} is {x}, which is no number to try.")
    if isinstance(x, list):
        for k, one in enumerate(x):
            _value(who, f"{where}[{k}]", one)
    elif x is not None and not isinstance(x, bool | int | float | str):
        raise DTypeError(
            f"{who}: {where} is {a_kind(x)}, and results are kept as numbers, flags and texts.\n"
            "  Give its name, a str, and let train look up what it stands for."
        )


def _drawn(who: str, name: str, given: Any) -> Axis:
    where = f"random.{name}"
    if isinstance(given, list | tuple):
        return Axis(name, _choices(who, where, given))
    if not isinstance(given, Mapping):
        raise DTypeError(
            f"{who}: {where} is {given!r:.60}, and it is what is drawn from.\n  Write {name} = {SPAN}, or a list."
        )
    check_keys(who, f"{where}.", given, ["from", "to", "log"])
    low: Any = given.get("from")
    high: Any = given.get("to")
    logs = given.get("log", False)
    for key, x in (("from", low), ("to", high)):
        if isinstance(x, bool) or not isinstance(x, int | float) or not isfinite(x):
            raise ArgumentError(f"{who}: {where}.{key} is {x!r}, not a number.\n  Write {name} = {SPAN}.")
    if not isinstance(logs, bool):
        raise DTypeError(f"{who}: {where}.log is {logs!r}, neither true nor false.")
    if not low < high:
        raise ArgumentError(f"{who}: {where} goes from {low} to {high}.\n  Let from be the smaller number.")
    if logs and low <= 0:
        raise ArgumentError(f"{who}: {where} has log = true from {low}, and 0 has no logarithm.\n  Begin above 0.")
    if isinstance(low, int) and isinstance(high, int):
        return Axis(name, (), low, high, logs)
    return Axis(name, (), float(low), float(high), logs)


def _whole(who: str, what: str, x: Any, least: int) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or x < least:
        raise ArgumentError(f"{who}: {what}={x!r} is not a whole number of {least} or more.")
    return x


def _halving(who: str, given: Any) -> Halving | None:
    if given is None or isinstance(given, Halving):
        rule = given
    elif isinstance(given, Mapping):
        check_keys(who, "stop.", given, list(Halving._fields))
        rule = Halving(**given)
    else:
        raise DTypeError(
            f"{who}: stop is {a_kind(given)}, not a table.\n  Write [stop], and below it grace_period = 1 and "
            "reduction_factor = 4; or leave it out: then each trial runs to its end."
        )
    if rule is not None:
        _whole(who, "stop.grace_period", rule.grace_period, 1)
        factor: Any = rule.reduction_factor
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not factor > 1 or not isfinite(factor):
            raise ArgumentError(
                f"{who}: stop.reduction_factor={factor!r} is not a number above 1: of so many trials one goes on."
            )
    return rule


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In words what has changed from one state of a plan to another, but for more samples."""
    found = []
    for key in ("train", "goal", "grid", "random", "fixed", "seed", "stop"):
        one, other = before.get(key), now.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping) and key != "stop":
            pairs = [(f"{key}.{name}", one.get(name), other.get(name)) for name in {**one, **other}]
        else:
            pairs = [(key, one, other)]
        found += [f"{name} was {_json(x)} and is {_json(y)}" for name, x, y in pairs if _json(x) != _json(y)]
    if now["samples"] < before["samples"]:
        found.append(f"samples was {before['samples']} and is {now['samples']}")
    return found


def _json(x: Any) -> str:
    return json.dumps(x)
