"""The cache of a jitted step: it is bounded, one warning names what keeps changing, and evicted traces are freed."""

import gc
import json
import math
import os
import re
import subprocess
import sys
import warnings
import weakref
from collections import Counter, namedtuple
from dataclasses import dataclass

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError
from minigrad.core.storage import get_pool


def run_calls(function, *calls, **options):
    """Return a jitted step after some calls, and its warnings."""
    step = mg.jit(function, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in calls:
            call(step)
    assert all(one.category is UserWarning for one in caught)
    return step, [str(one.message) for one in caught]


class Object:
    pass


def sqrt_of_float(x, by):
    return x * math.sqrt(by)


def with_tree(tree, x):
    return x * 1


CACHE_ADVICE = (
    "\n  The cache holds the last 16 traces used (max_traces=16); a retrace takes longer than to call the function."
)
CHANGING = {
    "an integer": (
        lambda x, n: x * n,
        lambda k: lambda step: step(mg.ones(2), k),
        r"<lambda> was traced for 17 different values of the argument `n` \(…, 14, 15, 16\)\. A float or a tensor",
    ),
    "a string in a dict": (
        lambda x, d: x * 1,
        lambda k: lambda step: step(mg.ones(2), {"a": [f"{k}"]}),
        r"17 different values of the argument `d\['a'\]\[0\]` \(…, '14', '15', '16'\)",
    ),
    "a shape": (
        lambda x: x.sum(),
        lambda k: lambda step: step(mg.ones(k + 1)),
        r"17 different shapes of the argument `x` \(…, float32\[15\], float32\[16\], float32\[17\]\)\. Pad tensors",
    ),
    "an object": (
        lambda x, o: x * 1,
        lambda k: lambda step: step(mg.ones(1), Object()),
        r"17 different objects of the argument `o` \(…, <Object at \w+>, .*\)\. Pass the same object each time",
    ),
    "a float that is looked at": (
        sqrt_of_float,
        lambda k: lambda step: step(mg.ones(1), k + 0.5),
        r"sqrt_of_float was traced for 17 different values of the argument `by` \(…, 14\.5, 15\.5, 16\.5\)\. The step",
    ),
    "a structure": (
        with_tree,
        lambda k: lambda step: step({f"{j}": mg.ones(1) for j in range(k)}, mg.ones(1)),
        r"with_tree was traced for \d+ different structures of the argument `tree",
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_one_warning_names_the_argument_that_keeps_changing(name):
    function, make, words = CHANGING[name]
    step, messages = run_calls(function, *map(make, range(16)))
    assert (messages, step.trace_count) == ([], 16)
    step, messages = run_calls(function, *map(make, range(40)))
    assert len(messages) == 1
    assert re.search(f"^jit: {words}" if words.startswith(("<", "sqrt_of_float")) else words, messages[0]), messages[0]
    assert messages[0].endswith(CACHE_ADVICE)
    assert step.trace_count == 40


def test_the_warning_points_to_the_calling_line():
    step = mg.jit(lambda x, n: x * n, max_traces=1)
    step(mg.ones(1), 1)
    with pytest.warns(UserWarning, match="2 different values of the argument `n`") as caught:
        step(mg.ones(1), 2)
    assert caught[0].filename == __file__


def test_one_warning_names_the_guard_that_keeps_failing():
    model = mg.nn.Linear(1, 1)

    def exchange(k):
        def call(step):
            model.weight = mg.nn.Parameter(mg.ones(1, 1))
            step(mg.ones(1, 1))

        return call

    _, messages = run_calls(lambda x: model(x), *map(exchange, range(20)))
    assert len(messages) == 1
    assert re.search("was traced 17 times, the last time because weight of Linear .*Keep it unchanged", messages[0])


def test_a_step_that_changes_its_own_options_runs_eagerly():
    w = mg.ones(1, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.5

    step, messages = run_calls(step, *[lambda step: step(mg.ones(1))] * 20)
    assert len(messages) == 1
    assert (
        "jit: in the step itself lr of SGD was set, at each of 17 calls.\n  It runs eagerly from now on." in messages[0]
    )


def test_captures_has_the_last_hundred_reasons():
    step, messages = run_calls(
        lambda x, n: x * n, *[lambda step, n=n: step(mg.ones(1), n) for n in range(150)], max_traces=3
    )
    assert (step.trace_count, len(step.captures), len(messages)) == (150, 100, 1)
    assert step.captures[-1] == "the first call with tensors of shapes (1,), n=149"
    assert "(max_traces=3)" in messages[0]


def test_the_least_recently_used_trace_is_freed():
    step = mg.jit(lambda x, model: model(x), max_traces=2)
    models = [mg.nn.Linear(1, 1) for _ in range(3)]
    freed = [weakref.ref(model.weight) for model in models]
    x = mg.ones(1, 1)
    for k in (0, 1, 0):
        step(x, models[k])
    assert step.trace_count == 2
    with pytest.warns(UserWarning, match="3 different objects of the argument `model`"):
        step(x, models[2])
    for k in (0, 2, 0, 2):
        step(x, models[k])
    assert step.trace_count == 3
    step(x, models[1])
    assert step.trace_count == 4
    del models
    gc.collect()
    assert [one() is None for one in freed] == [True, False, False]


def test_a_step_that_goes_back_and_forth_between_two_states_is_traced_twice():
    first, second = mg.nn.Linear(2, 2), mg.nn.Linear(2, 2)
    net, dropout = mg.nn.Sequential(first), mg.nn.Dropout(0.5)
    exchanged, switched = mg.jit(lambda x: net(x)), mg.jit(lambda x: dropout(x))
    w, gradient = mg.ones(2, requires_grad=True), mg.ones(2)
    graded = mg.jit(lambda: None if w.grad is None else w.grad * 2)
    x = mg.ones(1, 2)
    for k in range(12):
        net[0] = (first, second)[k % 2]
        dropout.train(k % 3 == 0)
        w.grad = gradient if k % 2 else None
        assert exchanged(x).tolist() == net(x).tolist()
        mg.manual_seed(k)
        expected = dropout(x).tolist()
        mg.manual_seed(k)
        assert switched(x).tolist() == expected
        graded()
    assert (exchanged.trace_count, switched.trace_count, graded.trace_count) == (2, 2, 2)


def test_a_variable_that_the_step_changes_back_is_changed_at_each_call():
    def run(wrap):
        flag, count = False, 0

        @wrap
        def step(x):
            nonlocal flag, count
            flag, count = not flag, count + 1
            return x * 2 if flag else x * 3

        results = [step(mg.ones(1)).item() for _ in range(6)]
        count = 0
        results += [step(mg.ones(1)).item() for _ in range(2)]
        return results, flag, count

    assert run(mg.jit) == run(lambda step: step)


def test_max_traces_is_a_positive_integer():
    with pytest.raises(ArgumentError, match="jit: expected max_traces to be at least 1, but got 0"):
        mg.jit(lambda x: x, max_traces=0)
    with pytest.raises(DTypeError, match="jit: expected max_traces to be an integer, but got a float"):
        mg.jit(lambda x: x, max_traces=2.0)

    @mg.jit(max_traces=1)
    def step(x):
        return x * 2

    assert step(mg.ones(1)).item() == 2.0


# --- no leaks over thousands of calls ---

WARM, GROWTH = 5_000, 6 << 20  # calls until memory is stable; bytes that 20,000 more calls may add: 300 per call
Batch = namedtuple("Batch", "x y")


@dataclass(frozen=True)
class Frozen:
    x: object
    scale: float


def named_tuples(mg):
    step = mg.jit(lambda batch: batch.x * batch.y)
    return step, lambda k: step(Batch(mg.ones(2), mg.ones(2)))


def dataclasses(mg):
    step = mg.jit(lambda batch: batch.x * batch.scale)
    return step, lambda k: step(Frozen(mg.ones(2), k + 0.5))


def floats(mg):
    step = mg.jit(lambda x, by: x * by)
    return step, lambda k: step(mg.ones(2), k + 0.5)


def floats_that_are_read(mg):
    step = mg.jit(lambda x, by: x * float(by))
    return step, lambda k: step(mg.ones(2), k + 0.5)


def integers(mg):
    step = mg.jit(lambda x, n: x * n)
    return step, lambda k: step(mg.ones(2), k)


def strings_in_dicts(mg):
    step = mg.jit(lambda x, d: x * 1)
    return step, lambda k: step(mg.ones(2), {f"{k}": k})


def shapes(mg):
    step = mg.jit(lambda x: x.sum())
    return step, lambda k: step(mg.ones(k % 50 + 1))


def objects(mg):
    step = mg.jit(lambda x, o: x * 1)
    return step, lambda k: step(mg.ones(2), Object())


def modules_among_the_arguments(mg):
    step = mg.jit(lambda x, model: model(x))
    return step, lambda k: step(mg.ones(1, 2), mg.nn.Linear(2, 2))


def modules_in_a_module(mg):
    net = mg.nn.Sequential(mg.nn.Linear(2, 2))
    step = mg.jit(lambda x: net(x))

    def call(k):
        net[0] = mg.nn.Linear(2, 2)
        return step(mg.ones(1, 2))

    return step, call


def alternating_modules(mg):
    models = mg.nn.Linear(2, 2), mg.nn.Linear(2, 2)
    step = mg.jit(lambda x, model: model(x))
    return step, lambda k: step(mg.ones(1, 2), models[k % 2])


def alternating_gradients(mg):
    w = mg.ones(2, requires_grad=True)
    step = mg.jit(lambda x: (w * x).sum().backward())

    def call(k):
        if k % 2:
            w.grad = None
        step(mg.ones(2))

    return step, call


def leaves_created_inside(mg):
    def create_leaf(x):
        leaf = x.detach().clone().requires_grad_()
        (leaf * leaf).sum().backward()
        return leaf.grad

    step = mg.jit(create_leaf)
    return step, lambda k: step(mg.ones(2))


LEAK_CASES = {
    case.__name__: case
    for case in (
        *(named_tuples, dataclasses, floats, floats_that_are_read, integers, strings_in_dicts, shapes, objects),
        *(modules_among_the_arguments, modules_in_a_module, alternating_modules, alternating_gradients),
        leaves_created_inside,
    )
}
EXPECTED_TRACES = {"named_tuples": 1, "dataclasses": 1, "floats": 1, "alternating_modules": 2}


def count_live_objects():
    """Return the count of live objects of each class of minigrad and of this module, without the caches of the device,
    which keep free memory."""
    if (pool := get_pool(mg.get_default_device())) is not None:
        from minigrad.backends.taichi.runtime import launch_plans

        launch_plans._thread_plans.by_key.clear()
        gc.collect()
        pool.clear()
    gc.collect()
    return Counter(
        f"{type(x).__module__}.{type(x).__name__}"
        for x in gc.get_objects()
        if str(type(x).__module__).startswith("minigrad") or issubclass(type(x), Object | Frozen | Batch)
    )


@pytest.mark.parametrize("name", LEAK_CASES)
def test_evicted_traces_leave_no_objects(name):
    import minigrad as mg

    gc.freeze()  # neither collect nor count the million objects of a long test run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        step, call = LEAK_CASES[name](mg)
        for k in range(60):
            call(k)
        before = count_live_objects()
        for k in range(60, 160):
            call(k)
    assert count_live_objects() == before
    assert len(step._traces) <= 16
    if name in EXPECTED_TRACES:
        assert step.trace_count == EXPECTED_TRACES[name]


def print_memory_growth(name, device, calls):
    """Print, in a child process, the bytes of the process before and after `calls` calls."""
    import minigrad as mg

    warnings.simplefilter("ignore", UserWarning)
    mg.set_default_device(device)
    _, call = LEAK_CASES[name](mg)
    sizes = []
    for k in range(WARM + calls + 1):
        call(k)
        if k in (WARM, WARM + calls):
            gc.collect()
            with open("/proc/self/statm") as file:
                sizes.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    print(json.dumps(sizes))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.needs("Linux")
@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.needs("taichi"))])
@pytest.mark.parametrize("name", LEAK_CASES)
def test_the_process_does_not_grow_over_20_000_calls(name, device):
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import test_cache_misses; test_cache_misses.print_memory_growth({name!r}, {device!r}, 20_000)",
        ],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    before, after = json.loads(child.stdout)
    assert after - before < GROWTH
