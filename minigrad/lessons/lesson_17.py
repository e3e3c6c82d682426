"""The exercises of lesson 17, Gradients add up, again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from minigrad.lessons.checking import (
    Mistakes,
    Wrong,
    as_number,
    as_numbers,
    call,
    check_keys,
    compare,
    compare_flags,
    exercise,
)

__all__: list[str] = []


def _entries(answer: Any, right: Mapping[str, tuple[float, Mistakes]]) -> None:
    """Compare a dict of floats, which the learner may have rounded to three digits."""
    check_keys(answer, *right)
    for name, (expected, mistakes) in right.items():
        value = as_number(answer[name], name)
        near = min([expected, *[wrong for wrong, _ in mistakes]], key=lambda x: abs(x - value))
        compare(name, near if abs(value - near) < 0.004 * near else value, expected, mistakes)


# --- 17.1: three shards ----------------------------------------------------------------------------------------------

_SHARDS: dict[str, tuple[float, Mistakes]] = {
    "mean": (
        1.5,
        [
            (14 / 3, "that is the plain mean. A shard is weighted by its samples: 4, 3 and 1."),
            (14.0, "that is the sum of the three. Weigh them by 4, 3 and 1, and divide by all eight."),
            (12.0, "that is the derivative of the sum over the samples. Divide by their count."),
            (4.0, "divide by the eight samples, and not by the three shards."),
            (9.5, "the weights are the wrong way round: the shard of 4 counts four times, and the one of 1 once."),
            (5.5, "the sign of −4 is lost."),
        ],
    ),
    "sum": (
        12.0,
        [
            (14.0, "these are derivatives of *means*. Those of the sums are 4, 3 and 1 times as large."),
            (1.5, "that is the derivative of the mean. That of the sum over eight samples is eight times as large."),
            (96.0, "once too often: 4 · 2 + 3 · (−4) + 1 · 16 is the derivative of the sum already."),
            (112.0, "each shard is weighted by its samples, and not by eight."),
            (36.0, "the derivative of the mean over all samples, times their count: eight, not 24."),
            (44.0, "the sign of −4 is lost."),
        ],
    ),
    "times": (
        4.0,
        [
            (0.25, "upside down: the sample that is alone counts more."),
            (1.0, "the shards count equally, a third each. But four samples share the first third."),
            (3.0, "that is relative to a sample of the second shard. Four share the first."),
            (8.0, "among eight it should be 1/8, and is 1/3. But a sample of the first shard has not 1/8 either."),
            (8 / 3, "that is relative to its right weight, 1/8. An sample of the first shard has 1/12 then."),
            (1 / 3, "that is how much it counts. An sample of the first shard counts 1/12."),
        ],
    ),
}


@exercise(
    "17.1",
    "(4 · 2 − 3 · 4 + 1 · 16) / 8; times 8 for the sum; and a third for one sample is 4 times a third for four.",
)
def _shards(answer: Any) -> None:
    _entries(answer, _SHARDS)


# --- 17.2: still the same? -------------------------------------------------------------------------------------------

_STILL = {
    "A": (True, "a layer norm takes its mean over one sample, independent of all others."),
    "B": (False, "a batch norm takes its mean over the shard, so that a sample depends on the others in it."),
    "C": (True, "momentum is computed from gradients. These are the same on all replicas, and so is it."),
    "D": (False, "the mean of clipped gradients is not the clipped mean: long ones count less than they should."),
    "E": (True, "one process clips the gradient of the full batch, and that is what each replica has then."),
    "F": (False, "a root is taken of the mean over the shard, and the mean of two roots is not the root of the mean."),
    "G": (False, "the gradient is not wrong, but one process would have drawn another mask for these samples."),
}


@exercise("17.2", "operations on one sample, or on the gradient of all, may stay; those on a shard may not.")
def _still(answer: Any) -> None:
    check_keys(answer, *_STILL)
    compare_flags(answer, _STILL, "does give the same", "does not give the same")


# --- 17.3: in fewer steps --------------------------------------------------------------------------------------------


def _steps(values: Sequence[float], partner: Callable[[int, int], int], add: bool = True) -> list[list[float]]:
    """Return the values after each step, if in step k worker r gets that of `partner(r, k)`, added or not."""
    current, history, step = list(values), [], 0
    while 2**step < len(values):
        received = [current[partner(rank, step) % len(current)] for rank in range(len(current))]
        current = [(value if add else 0.0) + other for value, other in zip(current, received, strict=True)]
        history.append(current)
        step += 1
    return history


def _farthest(half: int, rank: int, step: int) -> int:
    """Return the partner for those who begin with the farthest one."""
    return rank ^ (half >> step)


def _at_once(values: Sequence[float]) -> list[list[float]]:
    """Return the same, if each value is overwritten before its partner has read it."""
    current, history, step = list(values), [], 0
    while 2**step < len(values):
        for rank in range(len(current)):
            current[rank] += current[rank ^ 2**step]
        history.append(list(current))
        step += 1
    return history


@exercise("17.3", "each step doubles the number of terms: 10 steps for 1,024 workers, where a ring has 2,046.")
def _doubling(answer: Any) -> None:
    for values in ([1.0, 10.0], [1.0, 10.0, 100.0, 1000.0], [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]):
        passed, half = list(values), len(values) // 2
        result, right = call(answer, passed), _steps(values, lambda r, k: r ^ 2**k)
        case = f"for {[f'{x:g}' for x in values]}".replace("'", "")
        if passed != values:
            raise Wrong(f"{case}, your function changes the list that it got. Return a new one.")
        history = _tables(case, result, len(values), len(right))
        if history == right:
            continue
        known: list[tuple[list[list[float]], str]] = [
            (_at_once(values), "a worker adds what its partner has added already. Read all first, then write."),
            (_steps(values, lambda r, k: r ^ 2**k, add=False), "they swap. Each has to add the received value."),
            (_steps(values, lambda r, k: r ^ (k + 1)), "the partners are r ^ 1, r ^ 2, r ^ 4: 2**k in step k."),
            (_steps(values, lambda r, k: r ^ 1), "the partner is r ^ 1 in each step. It should be r ^ 2**k."),
            (
                _steps(values, lambda r, k: r + 2**k),
                "that gets there too, but one sends and another answers. Here the partner is r ^ 2**k, and both swap.",
            ),
            (_steps(values, lambda r, k: r + 1), "they add what the next one has, each time. It should be r ^ 2**k."),
            (
                _steps(values, partial(_farthest, half)),
                "that is right in the end, but it begins with those who are farthest. Begin with r ^ 1.",
            ),
        ]  # fmt: skip
        for wrong, cause in known:
            if history == wrong:
                raise Wrong(f"{case}: {cause}")
        step = next(k for k, (a, b) in enumerate(zip(history, right, strict=True)) if a != b)
        rank = next(r for r, (a, b) in enumerate(zip(history[step], right[step], strict=True)) if a != b)
        raise Wrong(
            f"{case}, worker {rank} has {history[step][rank]:g} after step {step}. It should be {right[step][rank]:g}, "
            f"what workers {rank} and {rank ^ 2**step} had before, together."
        )


def _tables(case: str, result: Any, workers: int, steps: int) -> list[list[float]]:
    """Return the answer as lists of floats, one for each step."""
    if not isinstance(result, Sequence) or isinstance(result, str):
        raise Wrong(f"{case}, return a list of lists; this is a {type(result).__name__}.")
    if result and not any(isinstance(row, Sequence) for row in result):
        raise Wrong(f"{case}, return the values after *each* step, a list of lists; this is one list of numbers.")
    if len(result) == steps + 1:
        raise Wrong(
            f"{case} there are {steps} step(s), and this has {steps + 1} lists. Is the one before them too many?"
        )
    if len(result) != steps:
        raise Wrong(
            f"{case} there are {steps} step(s), until 2**k is the number of workers; this has {len(result)} lists."
        )
    names = [f"worker {rank}" for rank in range(workers)]
    return [as_numbers(list(row), names, f"{case}, the values after step {k}") for k, row in enumerate(result)]


# --- 17.4: what a sum costs ------------------------------------------------------------------------------------------

_COSTS: dict[str, tuple[float, Mistakes]] = {
    "bytes": (
        175e6,
        [
            (43.75e6, "these are elements. Each has four bytes."),
            (87.5e6, "that is one way around, in which pieces are added. There is a second, in which they are copied."),
            (200e6, "in 2 · 8 steps one would send that. There are 2 · 7."),
            (100e6, "that is all of the gradient. In 2 · 7 steps a worker sends an eighth of it each."),
            (700e6, "that is what worker 0 sends in a star. In a ring each sends an eighth in a step."),
            (1400e6, "that is what all send together. Give it for one of the eight."),
            (12.5e6, "that is one piece. A worker sends one in each of 2 · 7 steps."),
            (175.0, "give it in bytes, not in megabytes."),
        ],
    ),
    "ring": (
        0.147,
        [
            (0.14, "that is for the bytes. 14 messages have a latency, too, each half a thousandth of a second."),
            (0.1405, "each of the 14 messages has the latency, and not only one."),
            (0.0735, "that is one way around. There is a second, in which pieces are copied."),
            (0.168, "in 2 · 8 steps it would take that. There are 2 · 7."),
            (0.007, "that is the latency of 14 messages. Their bytes take longer."),
            (1.127, "that is the star. In the ring each message has an eighth of the array."),
            (147.0, "give it in seconds, not in thousandths."),
        ],
    ),
    "star": (
        1.127,
        [
            (1.12, "that is for the bytes. 14 messages have a latency, too."),
            (0.5635, "that is the way to worker 0. It sends the sum back to seven, too."),
            (0.161, "seven arrays arrive one after the other at worker 0, over its one link, and seven leave."),
            (1.288, "worker 0 sends nothing to itself: seven arrays come, and seven go."),
            (0.147, "that is the ring. In the star each message has the full array."),
            (1127.0, "give it in seconds, not in thousandths."),
        ],
    ),
}


@exercise(
    "17.4",
    "both send 14 messages in sequence, the ring of an eighth of the array, the star of all of it: 0.14 s or 1.12.",
)
def _costs(answer: Any) -> None:
    _entries(answer, _COSTS)


# --- 17.5: efficiency ------------------------------------------------------------------------------------------------

_ROWS = 1024


def _time(workers: int, rows: float) -> float:
    """Return the milliseconds of a step, with other parameters than in the lesson."""
    return 5.0 + 0.125 * rows / workers + 2 * (workers - 1) * (0.0625 + 4.0 / workers)


@exercise(
    "17.5",
    "the speedup divided by the number of workers; in weak scaling each has the work of one, so that "
    "only the time counts.",
)
def _efficiency(answer: Any) -> None:
    one = _time(1, _ROWS)
    for workers in (1, 8, 100, 1000):
        shared, scaled = _time(workers, _ROWS), _time(workers, _ROWS * workers)
        strong, weak = one / (workers * shared), one / scaled
        turned = "upside down: the time of many is the denominator, and that of one the numerator."
        for flag in (False, True):
            right = weak if flag else strong
            mistakes = [
                (100 * right, "that is in percent. Leave out the 100: 1 is all."),
                (1 / right, turned),
                *(
                    [
                        (workers * weak, "that is the speedup in samples a second. Divide by workers."),
                        (weak / workers, "in the same step n workers learn from n times the samples. Do not divide."),
                        (strong, "that is with 1,024 rows for all. If weak, the full batch has 1,024 for each."),
                        (one / shared, "the rows are those of the full batch, and if weak each has 1,024 of them."),
                    ]
                    if flag
                    else [
                        (one / shared, "that is the speedup. Divide by the number of workers."),
                        (shared / one, turned),
                        (weak, "that is with 1,024 rows for each. Unless weak, there are 1,024 for all together."),
                        (one / (workers * scaled), "unless weak, the full batch has 1,024 rows, for any workers."),
                    ]
                ),
            ]
            result = call(answer, _time, workers, flag)
            compare(f"with {workers} worker{'s' * (workers > 1)} and weak={flag}, it", result, right, mistakes)
