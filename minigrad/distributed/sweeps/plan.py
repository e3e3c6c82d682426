"""Search spaces of sweeps: `Plan.values` maps a trial number to its hyperparameters, deterministically."""

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

RESERVED = ("report", "folder")  # arguments that the sweep passes to the function itself
COLUMNS = ("trial", "state", "best_epoch", "last_epoch", "seconds", "error")  # of the results table
SPAN = "{ from = 1e-4, to = 1e-1, log = true }"
DIGITS = 4  # significant digits of drawn values, so that the values in tables are exact


class Halving(NamedTuple):
    """Early stopping with asynchronous successive halving (ASHA). The names are those of Ray Tune's ASHAScheduler.

    Trials are compared at rungs after `grace_period` epochs, then `reduction_factor` times as many, and so on. A trial
    outside the top ``1 / reduction_factor`` of those that have reached the rung is stopped. Li et al. 2020.
    """

    grace_period: int = 1
    reduction_factor: float = 4


@dataclass(frozen=True)
class Axis:
    """Search space of one parameter: a list of `choices`, or the range from `low` to `high`."""

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    """Whether to sample log-uniformly instead of uniformly."""

    def draw(self, seed: int, sample: int) -> Any:
        """Draw the value of a sample, which depends only on the seed, the name and the sample's index.

        >>> [Axis("lr", low=1e-4, high=1e-1, log=True).draw(0, k) for k in range(3)]
        [0.002321, 0.005116, 0.0003144]
        >>> Axis("width", low=16, high=64).draw(0, 0), Axis("act", ("relu", "tanh")).draw(0, 0)
        (23, 'tanh')
        """
        share = random.Random(f"{seed} {self.name} {sample}").random()
        if self.choices:
            return self.choices[int(share * len(self.choices))]
        whole = isinstance(self.low, int)
        top = self.high + 1 if whole else self.high  # floor() maps [n, n + 1) to the int n
        x = self.low * (top / self.low) ** share if self.log else self.low + share * (top - self.low)
        return min(floor(x), int(self.high)) if whole else min(max(float(f"{x:.{DIGITS}g}"), self.low), self.high)


@dataclass(frozen=True)
class Plan:
    """The configuration of a sweep. Trials are numbered from 1: the full `grid` for each sample of `random`."""

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
        """The swept parameters."""
        return self.grid + self.random

    def __len__(self) -> int:
        return self.samples * prod(len(axis.choices) for axis in self.grid)

    def values(self, number: int) -> dict[str, Any]:
        """Return the hyperparameters of a trial."""
        points = list(product(*[axis.choices for axis in self.grid]))
        sample, point = divmod(number - 1, len(points))
        found = dict(zip([axis.name for axis in self.grid], points[point], strict=True))
        return found | {axis.name: axis.draw(self.seed, sample) for axis in self.random}

    def better(self, one: float, other: float) -> bool:
        """Return whether one value of the goal is better than another."""
        return one < other if self.mode == "min" else one > other

    def state(self) -> dict[str, Any]:
        """Return everything that determines the results, in JSON types."""
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
    """Validate the arguments and return a plan. Raises ArgumentError or DTypeError, with messages prefixed by `who`.

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
            raise ArgumentError(f"{who}: parameter {axis.name} conflicts with a column of the results.\n  Rename it.")
    _apart(who, [axis.name for axis in listed], [axis.name for axis in drawn], list(kept))
    for key, x in kept.items():
        _value(who, f"fixed.{key}", x)
    if not listed and not drawn:
        raise ArgumentError(
            f"{who}: nothing is swept.\n  Write width = [16, 32, 64] under [grid], or lr = {SPAN} under [random]."
        )
    if drawn and samples is None:
        raise ArgumentError(f"{who}: random requires the number of samples to draw.\n  Write samples = 20.")
    if samples is not None and not drawn:
        raise ArgumentError(f"{who}: samples={samples!r} has no effect without [random].")
    count = 1 if samples is None else _whole(who, "samples", samples, 1)
    return Plan(name, mode, listed, drawn, kept, count, _whole(who, "seed", seed, 0), _halving(who, stop))


def check_keys(who: str, where: str, given: Mapping[str, Any], known: list[str]) -> None:
    """Raise ArgumentError for an unknown key, with the closest known key."""
    for key in given:
        if key not in known:
            near = get_close_matches(key, known, 1, 0.5)
            advice = f"Did you mean {near[0]}?" if near else f"Valid keys are {', '.join(known)}."
            raise ArgumentError(f"{who}: unknown key {where}{key}.\n  {advice}")


def said(x: Any) -> str:
    """Format a value for tables and plots."""
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _goal(who: str, goal: Any) -> tuple[str, str]:
    words = goal.split() if isinstance(goal, str) else []
    if len(words) != 2 or words[0] not in ("min", "max"):
        raise ArgumentError(
            f'{who}: goal={goal!r} is invalid.\n  Write goal = "min val_loss" or "max val_accuracy", with a metric '
            "that train reports."
        )
    return words[0], words[1]


def _table(who: str, what: str, given: Any, example: str) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise DTypeError(
            f"{who}: expected {what} to be a table, but got {a_kind(given)}.\n"
            f"  Write a table [{what}] with entries such as {example}."
        )
    for key in given:
        if not isinstance(key, str) or not key.isidentifier():
            raise ArgumentError(f"{who}: {what}.{key} is not a valid Python identifier.")
        if key in RESERVED:
            raise ArgumentError(f"{who}: {what}.{key} is reserved: the sweep passes {key} to train.\n  Rename it.")
    return list(given.items())


def _apart(who: str, *groups: list[str]) -> None:
    seen: dict[str, str] = {}
    for table, names in zip(("grid", "random", "fixed"), groups, strict=True):
        for name in names:
            if name in seen:
                raise ArgumentError(f"{who}: {name} is in both [{seen[name]}] and [{table}].\n  Remove one of them.")
            seen[name] = table


def _choices(who: str, where: str, given: Any) -> tuple[Any, ...]:
    name = where.partition(".")[2]
    if not isinstance(given, list | tuple):
        raise DTypeError(
            f"{who}: expected {where} to be a list, but got {given!r:.60}.\n  Write {name} = [{said(given):.40}] with "
            "all values to try, or move a constant to [fixed]."
        )
    if not given:
        raise ArgumentError(
            f"{who}: {where} is an empty list.\n  Write the values to try, such as {name} = [16, 32, 64]."
        )
    for k, x in enumerate(given):
        _value(who, f"{where}[{k}]", x)
        if any(x == y and type(x) is type(y) for y in given[:k]):
            raise ArgumentError(f"{who}: {where} contains {x!r:.60} twice.\n  To repeat trials, sweep over a seed.")
    return tuple(given)


def _value(who: str, where: str, x: Any) -> None:
    """Raise unless a value survives a round trip through JSON."""
    if isinstance(x, float) and not isfinite(x):
        raise ArgumentError(f"{who}: {where} should be finite, but got {x}.")
    if isinstance(x, list):
        for k, one in enumerate(x):
            _value(who, f"{where}[{k}]", one)
    elif x is not None and not isinstance(x, bool | int | float | str):
        raise DTypeError(
            f"{who}: {where} should be a number, bool, string or list, but got {a_kind(x)}.\n"
            "  Pass its name as a string, and look up the object in train."
        )


def _drawn(who: str, name: str, given: Any) -> Axis:
    where = f"random.{name}"
    if isinstance(given, list | tuple):
        return Axis(name, _choices(who, where, given))
    if not isinstance(given, Mapping):
        raise DTypeError(
            f"{who}: expected {where} to be a range or a list, but got {given!r:.60}.\n"
            f"  Write {name} = {SPAN}, or a list."
        )
    check_keys(who, f"{where}.", given, ["from", "to", "log"])
    low: Any = given.get("from")
    high: Any = given.get("to")
    logs = given.get("log", False)
    for key, x in (("from", low), ("to", high)):
        if isinstance(x, bool) or not isinstance(x, int | float) or not isfinite(x):
            raise ArgumentError(f"{who}: {where}.{key} should be a number, but got {x!r}.\n  Write {name} = {SPAN}.")
    if not isinstance(logs, bool):
        raise DTypeError(f"{who}: {where}.log should be true or false, but got {logs!r}.")
    if not low < high:
        raise ArgumentError(f"{who}: {where} should have from < to, but got from = {low}, to = {high}.")
    if logs and low <= 0:
        raise ArgumentError(f"{who}: {where} with log = true requires from > 0, but got {low}.")
    if isinstance(low, int) and isinstance(high, int):
        return Axis(name, (), low, high, logs)
    return Axis(name, (), float(low), float(high), logs)


def _whole(who: str, what: str, x: Any, least: int) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or x < least:
        raise ArgumentError(f"{who}: {what} should be an int >= {least}, but got {what}={x!r}.")
    return x


def _halving(who: str, given: Any) -> Halving | None:
    if given is None or isinstance(given, Halving):
        rule = given
    elif isinstance(given, Mapping):
        check_keys(who, "stop.", given, list(Halving._fields))
        rule = Halving(**given)
    else:
        raise DTypeError(
            f"{who}: expected stop to be a table, but got {a_kind(given)}.\n  Write a table [stop] with grace_period = "
            "1 and reduction_factor = 4, or omit it to disable early stopping."
        )
    if rule is not None:
        _whole(who, "stop.grace_period", rule.grace_period, 1)
        factor: Any = rule.reduction_factor
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not factor > 1 or not isfinite(factor):
            raise ArgumentError(f"{who}: stop.reduction_factor should be a number greater than 1, but got {factor!r}.")
    return rule


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """List the changes from one plan state to another in words; additional samples do not count."""
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
