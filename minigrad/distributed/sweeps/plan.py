"""Search spaces of sweeps: `SweepPlan.values` maps a trial number to its hyperparameters, deterministically."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from math import floor, isfinite, prod
from typing import Any, NamedTuple

from minigrad.core.deprecation import deprecated_names
from minigrad.core.errors import ArgumentError, DTypeError, describe_type

__all__ = ["Halving", "SearchAxis", "SweepPlan", "check_keys", "format_value", "make_plan", "plan_differences"]

__getattr__ = deprecated_names(__name__, {"Axis": "SearchAxis", "Plan": "SweepPlan"})

RESERVED_ARGUMENTS = ("report", "folder")  # arguments that the sweep passes to the function itself
RESULT_COLUMNS = ("trial", "state", "best_epoch", "last_epoch", "seconds", "error")  # columns of the results table
EXAMPLE_RANGE = "{ from = 1e-4, to = 1e-1, log = true }"
SIGNIFICANT_DIGITS = 4  # drawn values are rounded to this many significant digits, so that tables show exact values


class Halving(NamedTuple):
    """Early stopping with asynchronous successive halving (ASHA). Options are named as in Ray Tune's ASHAScheduler.

    Trials are compared at rungs after `grace_period` epochs, then `reduction_factor` times as many, and so on. A trial
    outside the top ``1 / reduction_factor`` of those that have reached the rung is stopped. Li et al. 2020.
    """

    grace_period: int = 1
    reduction_factor: float = 4


@dataclass(frozen=True)
class SearchAxis:
    """Search space of one parameter: a list of `choices`, or the range from `low` to `high`."""

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    """Whether to sample log-uniformly instead of uniformly."""

    def draw(self, seed: int, sample: int) -> Any:
        """Draw the value of a sample, which depends only on the seed, the name and the sample's index.

        >>> [SearchAxis("lr", low=1e-4, high=1e-1, log=True).draw(0, k) for k in range(3)]
        [0.002321, 0.005116, 0.0003144]
        >>> SearchAxis("width", low=16, high=64).draw(0, 0), SearchAxis("act", ("relu", "tanh")).draw(0, 0)
        (23, 'tanh')
        """
        quantile = random.Random(f"{seed} {self.name} {sample}").random()
        if self.choices:
            return self.choices[int(quantile * len(self.choices))]
        is_int = isinstance(self.low, int)
        upper = self.high + 1 if is_int else self.high  # floor() maps [n, n + 1) to the int n
        x = self.low * (upper / self.low) ** quantile if self.log else self.low + quantile * (upper - self.low)
        return (
            min(floor(x), int(self.high))
            if is_int
            else min(max(float(f"{x:.{SIGNIFICANT_DIGITS}g}"), self.low), self.high)
        )


@dataclass(frozen=True)
class SweepPlan:
    """The configuration of a sweep. Trials, numbered from 1, combine each sample of `random` with all of `grid`."""

    goal: str
    mode: str
    grid: tuple[SearchAxis, ...]
    random: tuple[SearchAxis, ...]
    fixed: Mapping[str, Any]
    samples: int
    seed: int
    stop: Halving | None

    @property
    def axes(self) -> tuple[SearchAxis, ...]:
        """The swept parameters."""
        return self.grid + self.random

    def __len__(self) -> int:
        return self.samples * prod(len(axis.choices) for axis in self.grid)

    def values(self, number: int) -> dict[str, Any]:
        """Return the hyperparameters of a trial."""
        points = list(product(*[axis.choices for axis in self.grid]))
        sample, point = divmod(number - 1, len(points))
        values = dict(zip([axis.name for axis in self.grid], points[point], strict=True))
        return values | {axis.name: axis.draw(self.seed, sample) for axis in self.random}

    def is_better(self, value: float, reference: float) -> bool:
        """Return whether `value` of the goal is better than `reference`."""
        return value < reference if self.mode == "min" else value > reference

    def state(self) -> dict[str, Any]:
        """Return the settings that determine the results, as JSON types."""
        return {
            "goal": f"{self.mode} {self.goal}",
            "grid": {axis.name: list(axis.choices) for axis in self.grid},
            "random": {axis.name: _axis_state(axis) for axis in self.random},
            "fixed": dict(self.fixed),
            "samples": self.samples,
            "seed": self.seed,
            "stop": None if self.stop is None else self.stop._asdict(),
        }


def _axis_state(axis: SearchAxis) -> Any:
    return list(axis.choices) if axis.choices else {"from": axis.low, "to": axis.high, "log": axis.log}


def make_plan(
    prefix: str,
    *,
    goal: Any,
    grid: Any = None,
    random: Any = None,
    fixed: Any = None,
    samples: Any = None,
    seed: Any = 0,
    stop: Any = None,
) -> SweepPlan:
    """Validate the arguments and return a plan. Raises ArgumentError or DTypeError, with messages prefixed by `prefix`.

    >>> plan = make_plan("sweep", goal="min val_loss", grid={"width": [16, 32]}, random={"seed": {"from": 0, "to": 9}},
    ...                samples=2)
    >>> [plan.values(k) for k in range(1, len(plan) + 1)]
    [{'width': 16, 'seed': 2}, {'width': 32, 'seed': 2}, {'width': 16, 'seed': 0}, {'width': 32, 'seed': 0}]
    """
    mode, name = _parse_goal(prefix, goal)
    grid_axes = tuple(
        SearchAxis(key, _parse_choices(prefix, f"grid.{key}", x))
        for key, x in _parse_table(prefix, "grid", grid, "width = [16, 32, 64]")
    )
    random_axes = tuple(
        _parse_random_axis(prefix, key, x) for key, x in _parse_table(prefix, "random", random, f"lr = {EXAMPLE_RANGE}")
    )
    constants = dict(_parse_table(prefix, "fixed", fixed, "epochs = 20"))
    for axis in grid_axes + random_axes:
        if axis.name in (*RESULT_COLUMNS, name):
            raise ArgumentError(
                f"{prefix}: parameter {axis.name} conflicts with a column of the results.\n  Rename it."
            )
    _check_disjoint(prefix, [axis.name for axis in grid_axes], [axis.name for axis in random_axes], list(constants))
    for key, x in constants.items():
        _check_value(prefix, f"fixed.{key}", x)
    if not grid_axes and not random_axes:
        raise ArgumentError(
            f"{prefix}: nothing is swept.\n  Write width = [16, 32, 64] under [grid], or lr = {EXAMPLE_RANGE} under "
            "[random]."
        )
    if random_axes and samples is None:
        raise ArgumentError(f"{prefix}: random requires the number of samples to draw.\n  Write samples = 20.")
    if samples is not None and not random_axes:
        raise ArgumentError(f"{prefix}: samples={samples!r} has no effect without [random].")
    count = 1 if samples is None else _check_int(prefix, "samples", samples, 1)
    return SweepPlan(
        name,
        mode,
        grid_axes,
        random_axes,
        constants,
        count,
        _check_int(prefix, "seed", seed, 0),
        _parse_halving(prefix, stop),
    )


def check_keys(prefix: str, path: str, mapping: Mapping[str, Any], valid: list[str]) -> None:
    """Raise ArgumentError for a key that is not in `valid`. The message suggests the closest valid key."""
    for key in mapping:
        if key not in valid:
            closest = get_close_matches(key, valid, 1, 0.5)
            advice = f"Did you mean {closest[0]}?" if closest else f"Valid keys are {', '.join(valid)}."
            raise ArgumentError(f"{prefix}: unknown key {path}{key}.\n  {advice}")


def format_value(x: Any) -> str:
    """Format a value for tables and plots."""
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _parse_goal(prefix: str, goal: Any) -> tuple[str, str]:
    words = goal.split() if isinstance(goal, str) else []
    if len(words) != 2 or words[0] not in ("min", "max"):
        raise ArgumentError(
            f'{prefix}: goal={goal!r} is invalid.\n  Write goal = "min val_loss" or "max val_accuracy", with a metric '
            "that train reports."
        )
    return words[0], words[1]


def _parse_table(prefix: str, table_name: str, value: Any, example: str) -> list[tuple[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise DTypeError(
            f"{prefix}: expected {table_name} to be a table, but got {describe_type(value)}.\n"
            f"  Write a table [{table_name}] with entries such as {example}."
        )
    for key in value:
        if not isinstance(key, str) or not key.isidentifier():
            raise ArgumentError(f"{prefix}: {table_name}.{key} is not a valid Python identifier.")
        if key in RESERVED_ARGUMENTS:
            raise ArgumentError(
                f"{prefix}: {table_name}.{key} is reserved: the sweep passes {key} to train.\n  Rename it."
            )
    return list(value.items())


def _check_disjoint(prefix: str, *groups: list[str]) -> None:
    table_of: dict[str, str] = {}
    for table, names in zip(("grid", "random", "fixed"), groups, strict=True):
        for name in names:
            if name in table_of:
                raise ArgumentError(
                    f"{prefix}: {name} is in both [{table_of[name]}] and [{table}].\n  Remove one of them."
                )
            table_of[name] = table


def _parse_choices(prefix: str, path: str, values: Any) -> tuple[Any, ...]:
    name = path.partition(".")[2]
    if not isinstance(values, list | tuple):
        raise DTypeError(
            f"{prefix}: expected {path} to be a list, but got {values!r:.60}.\n"
            f"  Write {name} = [{format_value(values):.40}] with "
            "all values to try, or move a constant to [fixed]."
        )
    if not values:
        raise ArgumentError(
            f"{prefix}: {path} is an empty list.\n  Write the values to try, such as {name} = [16, 32, 64]."
        )
    for k, x in enumerate(values):
        _check_value(prefix, f"{path}[{k}]", x)
        if any(x == y and type(x) is type(y) for y in values[:k]):
            raise ArgumentError(f"{prefix}: {path} contains {x!r:.60} twice.\n  To repeat trials, sweep over a seed.")
    return tuple(values)


def _check_value(prefix: str, path: str, x: Any) -> None:
    """Raise ArgumentError or DTypeError unless a value can be stored as JSON without changes."""
    if isinstance(x, float) and not isfinite(x):
        raise ArgumentError(f"{prefix}: {path} should be finite, but got {x}.")
    if isinstance(x, list):
        for k, item in enumerate(x):
            _check_value(prefix, f"{path}[{k}]", item)
    elif x is not None and not isinstance(x, bool | int | float | str):
        raise DTypeError(
            f"{prefix}: {path} should be a number, bool, string or list, but got {describe_type(x)}.\n"
            "  Pass its name as a string, and look up the object in train."
        )


def _parse_random_axis(prefix: str, name: str, spec: Any) -> SearchAxis:
    path = f"random.{name}"
    if isinstance(spec, list | tuple):
        return SearchAxis(name, _parse_choices(prefix, path, spec))
    if not isinstance(spec, Mapping):
        raise DTypeError(
            f"{prefix}: expected {path} to be a range or a list, but got {spec!r:.60}.\n"
            f"  Write {name} = {EXAMPLE_RANGE}, or a list."
        )
    check_keys(prefix, f"{path}.", spec, ["from", "to", "log"])
    low: Any = spec.get("from")
    high: Any = spec.get("to")
    log = spec.get("log", False)
    for key, x in (("from", low), ("to", high)):
        if isinstance(x, bool) or not isinstance(x, int | float) or not isfinite(x):
            raise ArgumentError(
                f"{prefix}: {path}.{key} should be a number, but got {x!r}.\n  Write {name} = {EXAMPLE_RANGE}."
            )
    if not isinstance(log, bool):
        raise DTypeError(f"{prefix}: {path}.log should be true or false, but got {log!r}.")
    if not low < high:
        raise ArgumentError(f"{prefix}: {path} should have from < to, but got from = {low}, to = {high}.")
    if log and low <= 0:
        raise ArgumentError(f"{prefix}: {path} with log = true requires from > 0, but got {low}.")
    if isinstance(low, int) and isinstance(high, int):
        return SearchAxis(name, (), low, high, log)
    return SearchAxis(name, (), float(low), float(high), log)


def _check_int(prefix: str, key: str, x: Any, minimum: int) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or x < minimum:
        raise ArgumentError(f"{prefix}: {key} should be an int >= {minimum}, but got {key}={x!r}.")
    return x


def _parse_halving(prefix: str, value: Any) -> Halving | None:
    if value is None or isinstance(value, Halving):
        halving = value
    elif isinstance(value, Mapping):
        check_keys(prefix, "stop.", value, list(Halving._fields))
        halving = Halving(**value)
    else:
        raise DTypeError(
            f"{prefix}: expected stop to be a table, but got {describe_type(value)}.\n"
            "  Write a table [stop] with grace_period = "
            "1 and reduction_factor = 4, or omit it to disable early stopping."
        )
    if halving is not None:
        _check_int(prefix, "stop.grace_period", halving.grace_period, 1)
        factor: Any = halving.reduction_factor
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not factor > 1 or not isfinite(factor):
            raise ArgumentError(
                f"{prefix}: stop.reduction_factor should be a number greater than 1, but got {factor!r}."
            )
    return halving


def plan_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Describe the changes from one plan state to another, ignoring additional samples."""
    changes = []
    for key in ("train", "goal", "grid", "random", "fixed", "seed", "stop"):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping) and key != "stop":
            pairs = [(f"{key}.{name}", old.get(name), new.get(name)) for name in {**old, **new}]
        else:
            pairs = [(key, old, new)]
        changes += [f"{name} was {_json(x)} and is {_json(y)}" for name, x, y in pairs if _json(x) != _json(y)]
    if after["samples"] < before["samples"]:
        changes.append(f"samples was {before['samples']} and is {after['samples']}")
    return changes


def _json(x: Any) -> str:
    return json.dumps(x)
