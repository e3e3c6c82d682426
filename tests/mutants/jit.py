"""Faults in recorded steps: guards that go stale, memory that is used too early, numbers that do not go on."""

from mutants._mutant import Mutant

__all__ = ["MUTANTS"]

MUTANTS = (
    Mutant(
        "an object that says it is equal passes for the one that a step was traced for",
        "minigrad/_jit/arguments.py",
        "self.of is other.of and",
        "self.of == other.of and",
        ("_jit/test_arguments.py",),
    ),
    Mutant(
        "a step that changes a list among its arguments is recorded",
        "minigrad/_jit/arguments.py",
        "if now != spec or any(a is not b for a, b in zip(leaves, before, strict=True)):",
        "if False:",
        ("_jit/test_arguments.py",),
    ),
    Mutant(
        "an object in a list in an object comes back with tensors of long ago",
        "minigrad/_jit/results.py",
        "found += gc.get_referents(x)",
        "found += []",
        ("_jit/test_results.py",),
    ),
    Mutant(
        "traces are kept without an end",
        "minigrad/_jit/__init__.py",
        "            del self._traces[self._max_traces :]\n",
        "            pass\n",
        ("_jit/test_misses.py",),
    ),
    Mutant(
        "a tensor in the memory of another passes the check for two apart",
        "minigrad/_jit/checks.py",
        "            self._tests.append(known)\n",
        "            pass\n",
        ("_jit/test_checks.py",),
    ),
    Mutant(
        "keys that are 1, 1.0 and True are of one structure",
        "minigrad/pytree.py",
        "exact(self.context) == exact(other.context)",
        "self.context == other.context",
        ("test_pytree.py",),
    ),
    Mutant(
        "a scalar that was looked at may be 0.0 where it was -0.0",
        "minigrad/_traced.py",
        'return f"repr({text}) == {repr(value)!r}"',
        'return f"{text} == {value!r}"',
        ("test_traced.py",),
    ),
    Mutant(
        "no guard sees a hook that was added",
        "minigrad/_jit/modules.py",
        '        found.own(entries(registry, f"the hooks of {of}"))\n',
        "",
        ("_jit/test_trace_guards.py",),
    ),
    Mutant(
        "no guard sees that a parameter was frozen",
        "minigrad/_jit/trace_guards.py",
        'f"{{0}}.{flag} is {x.requires_grad}"',
        '"True"',
        ("_jit/test_trace_guards.py", "_jit/test_jit.py"),
    ),
    Mutant(
        "no guard sees a plain attribute of a module but training",
        "minigrad/_jit/modules.py",
        'read = {"training", *rest}',
        'read = {"training"}',
        ("_jit/test_trace_guards.py", "_jit/test_jit.py"),
    ),
    Mutant(
        "an equal value of another type passes a guard",
        "minigrad/_jit/guards.py",
        "    if type(now) is not type(before):\n",
        "    if now != before:\n",
        ("_jit/test_guards.py", "_jit/test_jit_mutations.py"),
    ),
    Mutant(
        "a step that draws twice advances the generator once",
        "minigrad/_jit/capture.py",
        "        draw.count += count\n",
        "        draw.count = count\n",
        ("_jit/test_jit.py", "_jit/test_launched.py"),
    ),
    Mutant(
        "a captured step reads a value, and nobody says so",
        "minigrad/_jit/capture.py",
        "        self._refuse(_of_reading(caller_line()))\n",
        "        _of_reading(caller_line())\n",
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
