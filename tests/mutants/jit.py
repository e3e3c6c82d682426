"""Faults in recorded steps: guards that go stale, memory that is used too early, numbers that do not go on."""

from mutants._mutant import Mutant

__all__ = ["MUTANTS"]

MUTANTS = (
    Mutant(
        "no guard sees a hook that was added",
        "minigrad/_jit/conditions.py",
        'tests += [f"len({of(sized)}) == {size}" for sized, size, _ in self._sizes]',
        "tests += []",
        ("_jit/test_conditions.py",),
    ),
    Mutant(
        "no guard sees that a parameter was frozen",
        "minigrad/_jit/conditions.py",
        "is {of(array)} and {of(x)}.requires_grad is {requires_grad}",
        "is {of(array)}",
        ("_jit/test_conditions.py", "_jit/test_jit.py"),
    ),
    Mutant(
        "no guard sees a plain attribute of a module but training",
        "minigrad/_jit/capture.py",
        'isinstance(x, PLAIN) and name != "_hooks"',
        'isinstance(x, PLAIN) and name == "training"',
        ("_jit/test_conditions.py", "_jit/test_jit.py"),
    ),
    Mutant(
        "a step that draws twice advances the generator once",
        "minigrad/_jit/capture.py",
        "first - draw.place.value, draw.count + count",
        "first - draw.place.value, count",
        ("_jit/test_jit.py", "_jit/test_launched.py"),
    ),
    Mutant(
        "a captured step reads a value, and nobody says so",
        "minigrad/_jit/capture.py",
        '        raise CaptureError(\n            f"jit: a value is read while',
        '        CaptureError(\n            f"jit: a value is read while',
        ("_jit/test_jit.py",),
    ),
    Mutant(
        "the next step writes over a result that is still held",
        "minigrad/_jit/launched.py",
        "if one is None or one.counts() != one.alone:",
        "if one is None:",
        ("_jit/test_launched.py", "_jit/test_jit.py"),
    ),
    Mutant(
        "memory is used again by the launch that still reads it",
        "minigrad/_jit/launched.py",
        "if uses[j][0] <= last and first <= uses[j][1])",
        "if uses[j][0] <= last and first < uses[j][1])",
        ("_jit/test_launched.py", "_jit/test_jit.py"),
    ),
    Mutant(
        "the step count of an optimizer stands still in a recorded step",
        "minigrad/_jit/__init__.py",
        "            where[name] = replaced(x, lambda number: values[number.name])\n",
        "            pass\n",
        ("_jit/test_jit.py",),
    ),
    Mutant(
        "a tape computes nothing that reads one row twice",
        "minigrad/_program.py",
        "        for one in read:\n            users[one].append(k)",
        "        for one in set(read):\n            users[one].append(k)",
        ("test_tape.py",),
    ),
    Mutant(
        "a tape differentiates stale values after its step",
        "minigrad/tape.py",
        "attrs, self._value)\n        self._computed = False",
        "attrs, self._value)\n        self._computed = True",
        ("test_tape.py",),
    ),
)
