"""Run cases that differ in their data in one test, or merge those of a parametrised test into one.

pytest collects an item for each case, in each process of pytest-xdist, and sets up and reports each of them: for a case
of one millisecond that costs more than the case. ``@merge_cases`` above ``@pytest.mark.parametrize`` runs all cases in
one test, which names every case that fails and why. With ``MINIGRAD_SEPARATE_CASES=1`` each case is a test again, so
that ``-k`` can select one.
"""

import functools
import inspect
import itertools
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import minigrad as mg
from minigrad.core.storage import get_default_device
from needs import missing_package, reason

SEPARATE = bool(os.environ.get("MINIGRAD_SEPARATE_CASES"))
TESTS = Path(__file__).parents[1]
MAX_LINES = 6  # of an error's message
_ParameterSet = type(pytest.param())


def merge_cases(test: Callable[..., None] | None = None, *, by: str | None = None) -> Callable[..., Any]:
    """Return `test` as one test that runs each case of the ``parametrize`` marks below this decorator.

    The test fails after its last case: the message names each failing case, and the traceback is that of the first.
    It is skipped where nothing failed and at least one case was skipped. Its fixtures are set up once for all cases.
    Other marks apply to the merged test; a ``parametrize`` above this decorator makes one test for each of its cases.
    ``@merge_cases(by="name")`` makes one test for each value of that argument.
    """
    if test is None:
        return functools.partial(merge_cases, by=by)
    function = test
    marks = getattr(function, "pytestmark", [])
    axes = [mark for mark in marks if mark.name == "parametrize"]
    if not axes:
        raise TypeError(f"merge_cases: {function.__name__} has no parametrize mark below the decorator")
    if SEPARATE:
        return function
    # Once: equal values of an argument are then the same object.
    precomputed = None if by is None else list(_cases(axes))

    @functools.wraps(function)
    def merged(**fixtures: Any) -> None:
        __tracebackhide__ = True
        cases = _cases(axes) if precomputed is None else [one for one in precomputed if one[1][by] is fixtures[by]]
        if not (cases := list(cases)):
            raise AssertionError("there are no cases")
        run_cases(lambda arguments: function(**{**fixtures, **arguments}), cases)

    merged.pytestmark = [mark for mark in marks if mark.name != "parametrize"]
    signature, bound = inspect.signature(function), {name for axis in axes for name in _names(axis)} - {by}
    unbound = [parameter for name, parameter in signature.parameters.items() if name not in bound]
    merged.__signature__ = signature.replace(parameters=unbound)
    if precomputed is None:
        return merged
    values = {id(case[by]): case[by] for _, case in precomputed}
    return pytest.mark.parametrize(by, list(values.values()))(merged)


def run_cases(check: Callable[[Any], None], cases: Iterable[tuple[str, Any]]) -> None:
    """Call `check` with each case, a name and an argument; fail after the last one, naming each that failed and why."""
    __tracebackhide__ = True
    failed: dict[str, BaseException] = {}
    skipped: dict[str, str] = {}
    count = 0
    for name, case in cases:
        count += 1
        try:
            check(case)
        except pytest.skip.Exception as skip:
            skipped[name] = str(skip)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 -- reported below
            if refuses_float64(error):
                skipped[name] = reason("float64")
            elif package := missing_package(error):
                skipped[name] = reason(package)
            else:
                failed[name] = error
    if failed:
        raise AssertionError(_report(failed, count)) from next(iter(failed.values()))
    if skipped:
        name, cause = next(iter(skipped.items()))
        pytest.skip(f"{len(skipped)} of {count} cases, the first being {name}: {cause}")


def refuses_float64(error: BaseException) -> bool:
    """Whether `error` reports that the default device, a GPU, does not support float64."""
    text = f"float64: the device {get_default_device()} does not support float64."
    return isinstance(error, mg.errors.DTypeError) and str(error).startswith(text)


def _cases(axes: Sequence[pytest.Mark]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the arguments of each case: the product of the marks, the outermost varying slowest."""
    for rows in itertools.product(*map(_rows, reversed(axes))):
        yield "-".join(name for name, _ in reversed(rows)), {k: v for _, row in rows for k, v in row.items()}


def _rows(axis: pytest.Mark) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and the arguments of each case of one mark."""
    _, values, *rest = axis.args
    ids = rest[0] if rest else axis.kwargs.get("ids")
    if rest[1:] or axis.kwargs.keys() - {"ids"}:
        raise TypeError(f"merge_cases: {sorted(axis.kwargs)} of parametrize cannot be merged")
    explicit_ids, names, rows = None if ids is None or callable(ids) else list(ids), _names(axis), []
    for index, value in enumerate(values):
        name = None if explicit_ids is None else explicit_ids[index]
        row = value.values if isinstance(value, _ParameterSet) else (value,) if len(names) == 1 else tuple(value)
        if isinstance(value, _ParameterSet):
            if value.marks:
                raise TypeError("merge_cases: a case with its own marks cannot be merged")
            name = name or value.id
        if name is None:
            name = "-".join(_name(x, ids) or f"{parameter}{index}" for parameter, x in zip(names, row, strict=True))
        rows.append((str(name), dict(zip(names, row, strict=True))))
    return rows


def _names(axis: pytest.Mark) -> list[str]:
    names = axis.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _name(x: Any, ids: Callable[[Any], Any] | None) -> str:
    """Return what to call an argument in the name of a case, or an empty string."""
    if ids is not None and (name := ids(x)) is not None:
        return str(name)
    if isinstance(x, str | int | float | complex | None):
        return str(x)
    return getattr(x, "__name__", "").replace("<lambda>", "")


def _report(failed: dict[str, BaseException], count: int) -> str:
    """Return the message of a failing test: each failing case, where the tests raised its error, and the error."""
    lines = [f"{len(failed)} of {count} cases fail; MINIGRAD_SEPARATE_CASES=1 makes tests of merged cases:"]
    for name, error in failed.items():
        frames = traceback.extract_tb(error.__traceback__)
        own_frames = [f for f in frames if TESTS in Path(f.filename).parents and f.filename != __file__]
        last = (own_frames or frames)[-1]
        first, *rest = f"{type(error).__name__}: {error}".splitlines()[:MAX_LINES]
        lines += [f"{name}: {Path(last.filename).name}:{last.lineno}: {first}", *(f"    {line}" for line in rest)]
    return "\n".join(lines)
