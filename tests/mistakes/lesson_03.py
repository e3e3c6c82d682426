"""Wrong answers to the exercises of lesson 3, with the expected explanations."""

import minigrad as mg


def overwrite(events, value):
    return ([event.contribution for event in events if event.target is value] or [0.0])[-1]


def add_equals(events, value):
    return sum(event.contribution for event in events if event.target == value)


def add_all(events, value):
    return sum(event.contribution for event in events)


def add_totals(events, value):
    return sum(event.total for event in events if event.target is value)


def none_for_no_events(events, value):
    contributions = [event.contribution for event in events if event.target is value]
    return sum(contributions) if contributions else None


def descent(sign=-1.0, forget=True, move=True, extra=0):
    def descend(start, steps):
        x = mg.Value(start)
        for _ in range(steps + extra):
            if forget:
                x.grad = None
            (x * x - 4 * x).backward()
            if move:
                x.data += sign * 0.25 * x.grad
        return x.data

    return descend


FUNCTIONS = ["03.2", "03.3"]  # whose answer is a function

MISTAKES = [
    ("03.1", {"a": 12, "b": 9}, "a is used three times"),
    ("03.1", {"a": 6, "b": 9}, "along all three paths: 6 + 6 + 1"),
    ("03.1", {"a": 36, "b": 9}, "not multiplied: 6 + 6 + 1"),
    ("03.1", {"a": 13, "b": 3}, "its slope is a·a"),
    ("03.2", overwrite, "Add (+=), do not overwrite (=)"),
    ("03.2", add_equals, "`==` compares numbers"),
    ("03.2", add_all, "Take those that reach `value`"),
    ("03.2", add_totals, "`total` is a running sum already"),
    ("03.2", none_for_no_events, "Start your sum at 0.0"),
    ("03.3", descent(forget=False), "the gradients of earlier steps are still in there"),
    ("03.3", descent(sign=+1.0), "uphill. Subtract the gradient"),
    ("03.3", descent(move=False), "x has not moved"),
    ("03.3", descent(extra=1), "one step too many"),
    ("03.3", lambda start, steps: mg.Value(1.0), "take its .data"),
]  # fmt: skip
