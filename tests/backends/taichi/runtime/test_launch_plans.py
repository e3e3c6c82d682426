"""A planned call computes what the call itself computes, bit for bit."""

import threading

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.backends.taichi.runtime import array as arrays
from minigrad.backends.taichi.runtime import launch_plans
from minigrad.backends.taichi.runtime.kernel import observe_launches
from minigrad.core.errors import MinigradError, ShapeError
from parity import call_sample, float_cases, minigrad_functions
from samples import all_samples
from tiers import NIGHTLY, choose_cases

pytestmark = pytest.mark.usefixtures("compiled_on_cpu")
SAMPLES = list(all_samples().items()) if NIGHTLY else choose_cases(list(all_samples().items()), "launch plans", 250)


def cpu(array):
    return mg.tensor(array, device="cpu")


def unplanned(run):
    """Return the result of `run` while launches are observed, so that no call is planned."""
    with observe_launches(lambda kernel: None):
        return run()


def bits(x):
    return (x.dtype.name, x.shape, x.detach().numpy().tobytes())


def sample_bits(sample, dtype, layout):
    """Return the results and gradients of a sample, as bits, or the error that it raises."""
    mg.manual_seed(0)
    try:
        outputs, leaves = call_sample(sample, cpu, minigrad_functions(), dtype, layout)
        outputs = [y for y in outputs if isinstance(y, mg.Tensor)]
        results = [*map(bits, outputs)]
        roots = [y for y in outputs if y.requires_grad]
        if roots:
            sum((y * (0.5 + 0.25 * k)).sum() for k, y in enumerate(roots)).backward()
        return results + [None if x.grad is None else bits(x.grad) for x in leaves]
    except MinigradError as error:
        return str(error)


@merge_cases
@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[name for name, _ in SAMPLES])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_repeated_samples_have_equal_bits(name, sample):
    for dtype, layout in float_cases(name):
        expected = unplanned(lambda dtype=dtype, layout=layout: sample_bits(sample, dtype, layout))
        for _ in range(3):
            assert sample_bits(sample, dtype, layout) == expected, (dtype, layout)


def test_a_training_step_is_planned():
    model = mg.nn.Sequential(
        mg.nn.Conv2d(1, 4, 3),
        mg.nn.BatchNorm2d(4),
        mg.nn.ReLU(),
        mg.nn.MaxPool2d(2),
        mg.nn.Flatten(),
        mg.nn.Linear(36, 5),
    )
    x, y = mg.randn(8, 1, 8, 8), mg.arange(8) % 5
    for _ in range(4):
        mg.functional.cross_entropy(model(x), y).backward()
    planned = {key[0] for key, plan in launch_plans._thread_plans.by_key.items() if callable(plan)}
    names = ("conv2d", "max_pool", "linear", "cross_entropy", "cross_entropy_backward", "matmul", "sum_to")
    assert {mg.core.dispatch.get_kernels(name)["cpu"] for name in names} <= planned


def plan_of(kernel_name):
    """Return the plans of this thread for calls of the kernel of `kernel_name`."""
    kernel = mg.core.dispatch.get_kernels(kernel_name)["cpu"]
    return [plan for key, plan in launch_plans._thread_plans.by_key.items() if key[0] is kernel]


def test_the_third_call_makes_the_launches_of_its_plan():
    x, w = cpu(np.full((5, 7), 0.5, np.float32)), cpu(np.full((3, 7), 2.0, np.float32))
    calls = []
    kernel = mg.core.dispatch.get_kernels("linear")["cpu"]

    def counted(*args):
        calls.append(args)
        return kernel(*args)

    launch_plans.allow_plans((counted,))
    for _ in range(5):
        y = launch_plans.call_planned(counted, (x._array, w._array, None), {})
        assert y.host.tolist() == [[7.0] * 3] * 5
    assert len(calls) == 2, "the first call, and the second, which is recorded"
    launch_plans.call_planned(counted, (w._array, w._array, None), {})
    assert len(calls) == 3, "another shape has another plan"


@pytest.mark.parametrize("holder", ["array", "view", "numpy", "reshaped", "block"])
def test_a_plan_reuses_a_result_when_nobody_refers_to_it(monkeypatch, holder):
    monkeypatch.setattr(launch_plans, "_thread_plans", launch_plans._ThreadPlans())
    kernel = mg.core.dispatch.get_kernels("matmul")["cpu"]
    x, y = cpu(np.eye(6, dtype=np.float32))._array, cpu(np.ones((6, 6), np.float32))._array
    hold = {
        "array": lambda result: result,
        "view": lambda result: result[2:].T,
        "numpy": lambda result: result.view(np.ndarray),
        "reshaped": lambda result: arrays.reshape_owned(result, (36,)),
        "block": arrays.block_of,
    }[holder]

    def multiply():
        return launch_plans.call_planned(kernel, (x, y), {})

    for _ in range(4):
        multiply()
    assert all(map(callable, plan_of("matmul")))
    addresses = [multiply().address for _ in range(4)]
    assert addresses == addresses[:1] * 4
    held, address = hold(multiply()), addresses[0]
    assert all(multiply().address != address for _ in range(20))
    del held
    assert multiply().address == address


def test_plans_keep_few_and_small_results(monkeypatch):
    monkeypatch.setattr(launch_plans, "_thread_plans", launch_plans._ThreadPlans())
    kernel, size = mg.core.dispatch.get_kernels("matmul")["cpu"], 40 * 40 * 4
    monkeypatch.setattr(launch_plans, "MAX_KEPT_BYTES", launch_plans.MAX_KEPT_RESULTS * 2 * size)
    used = arrays.cpu_pool.used_bytes
    for rows in range(30, 40):
        x = cpu(np.ones((rows, 40), np.float32))._array
        y = cpu(np.ones((40, 40), np.float32))._array
        results = [launch_plans.call_planned(kernel, (x, y), {}) for _ in range(30)]
        del results, x, y
    assert size < arrays.cpu_pool.used_bytes - used <= launch_plans.MAX_KEPT_BYTES
    launch_plans._thread_plans.by_key.clear()
    assert arrays.cpu_pool.used_bytes == used


def test_results_of_a_plan_have_their_own_memory():
    x = cpu(np.eye(20, dtype=np.float32))
    results = [x @ x for _ in range(5)]
    for k, y in enumerate(results):
        y.mul_(float(k))
    assert [y.sum().item() for y in results] == [0.0, 20.0, 40.0, 60.0, 80.0]


def test_0_and_minus_0_and_1_and_true_have_separate_plans():
    seen = []

    def kernel(a, *, value):
        seen.append(value)
        return a

    launch_plans.allow_plans((kernel,))
    x = cpu(np.ones(3, np.float32))._array
    for value in (0.0, -0.0, 0, False, 1, True, 1.0):
        launch_plans.call_planned(kernel, (x,), {"value": value})
    assert list(map(repr, seen)) == ["0.0", "-0.0", "0", "False", "1", "True", "1.0"]


def test_an_invalid_class_raises_in_a_planned_call_and_the_next_call_succeeds():
    scores, valid = cpu(np.zeros((4, 3), np.float32)), [0, 1, 2, 0]
    losses = [mg.functional.cross_entropy(scores, cpu(np.array(valid))).item() for _ in range(4)]
    assert losses == [pytest.approx(np.log(3))] * 4
    assert any(map(callable, plan_of("cross_entropy")))
    with pytest.raises(ShapeError, match="target 3 is out of bounds"):
        mg.functional.cross_entropy(scores, cpu(np.array([0, 1, 3, 0])))
    assert mg.functional.cross_entropy(scores, cpu(np.array(valid))).item() == losses[0]


def test_a_kernel_that_reads_elements_has_no_plan():
    for values in ([1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0]):
        assert mg.nonzero(cpu(np.array(values))).tolist() == np.argwhere(values).tolist()
    assert not any(map(callable, plan_of("nonzero") if "nonzero" in mg.core.op.OPS else []))


def test_threads_have_their_own_plans():
    x, results = cpu(np.linspace(-1, 1, 60, dtype=np.float32).reshape(6, 10)), []

    def work():
        for _ in range(20):
            results.append(bits(mg.softmax(x, 1) @ x.T))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    assert set(results) == {unplanned(lambda: bits(mg.softmax(x, 1) @ x.T))}


def test_a_kernel_whose_calls_never_repeat_is_not_planned_any_more(monkeypatch):
    monkeypatch.setattr(launch_plans, "MAX_UNREPEATED", 4)

    def kernel(a, *, value):
        return a

    launch_plans.allow_plans((kernel,))
    x = cpu(np.ones(3, np.float32))._array
    for value in range(6):
        launch_plans.call_planned(kernel, (x,), {"value": value})
    assert kernel not in launch_plans._kernels
