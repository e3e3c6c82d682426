"""The exercises of lesson 3, Gradients add up."""

from __future__ import annotations

from typing import Any

from minigrad.autograd import events
from minigrad.core.value import Value
from minigrad.lessons.checking import Wrong, call, compare, compare_gradient, exercise

__all__: list[str] = []


@exercise("03.1", "three paths lead from a to y, and they add up: a·b + a·b + 1 = 13. From b there is one: a·a = 9.")
def _three_paths(answer: Any) -> None:
    three = "a is used three times. Add what arrives along all three paths: 6 + 6 + 1."
    by_a = [(36.0, "paths are added, not multiplied: 6 + 6 + 1."), *[(part, three) for part in (1.0, 6.0, 7.0, 12.0)]]
    by_b = [(3.0, "b is multiplied by a twice, so its slope is a·a.")]
    compare_gradient(answer, {"a": 13.0, "b": 9.0}, {"a": by_a, "b": by_b})


@exercise("03.2", "a gradient is the sum of all contributions that arrive at one value.")
def _sum_of_events(answer: Any) -> None:
    a, b, idle = Value(3.0, "a"), Value(3.0, "b"), Value(1.0, "c")
    all_events = events(a * a + a * b)
    for value, right in ((a, 9.0), (b, 3.0), (idle, 0.0)):
        if value is idle and (result := answer(all_events, value)) is None:
            raise Wrong("for a value that no event arrives at you give None: its gradient is 0. Start your sum at 0.0.")
        own_events = [event for event in all_events if event.target is value]
        mistakes = [
            (12.0, "those of a and b together: both hold 3, and `==` compares numbers. Ask `event.target is value`."),
            (
                sum(event.contribution for event in all_events),
                "these are all contributions. Take those that reach `value`.",
            ),
            (sum(event.total for event in own_events), "`total` is a running sum already. Add up `contribution`."),
            (
                own_events[-1].contribution if own_events else 0.0,
                "that is one contribution alone. Add (+=), do not overwrite (=).",
            ),
        ]
        result = call(answer, all_events, value)
        compare(f"for a * a + a * b with a = b = 3, the gradient of {value.label}", result, right, mistakes)


@exercise("03.3", "a fresh graph and a fresh gradient for each step, and then a step against the slope.")
def _descent(answer: Any) -> None:
    for start, steps, right in ((0.0, 1, 1.0), (0.0, 3, 1.75), (10.0, 2, 4.0)):
        stale, accumulated, up = start, 0.0, start
        for _ in range(steps):
            accumulated += 2 * stale - 4
            stale -= 0.25 * accumulated
            up += 0.25 * (2 * up - 4)
        mistakes = [
            (stale, "the gradients of earlier steps are still in there. Forget them before each backward()."),
            (up, "uphill. Subtract the gradient: x.data -= 0.25 * x.grad."),
            (start, "x has not moved. Write the new number into x.data."),
            (2 + (right - 2) * 2, "one step too few."),
            (2 + (right - 2) / 2, "one step too many."),
        ]
        compare(f"from {start:g}, after {steps} step(s), x", call(answer, start, steps), right, mistakes)
