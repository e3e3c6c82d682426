"""Memory report, profiler, default device, and device errors."""

import functools
import gc
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
import parity
from cases import merge_cases
from needs import is_available, needs
from samples import all_samples

needs("taichi")


SAMPLES = all_samples()


pytestmark = pytest.mark.usefixtures("on_cpu")


def cpu(*shape):
    return mg.zeros(*shape, device="cpu")


def test_memory_counts_tensors_and_the_bytes_of_views_once():
    initial = mg.memory()["cpu"]
    x = cpu(16, 16)
    views = [x[3], x.T, x.view(-1)]
    after = mg.memory()["cpu"]
    assert after.tensors - initial.tensors == 1 + len(views)
    assert after.bytes - initial.bytes == 1024


def test_released_memory_is_reused():
    gc.collect()
    mg.empty_cache()
    x = cpu(1000)
    address = x.numpy().ctypes.data
    assert address % 64 == 0
    del x
    assert mg.memory()["cpu"].pooled >= 4000
    second = cpu(1000)
    assert second.numpy().ctypes.data == address
    del second
    mg.empty_cache()
    assert mg.memory()["cpu"].pooled == 0


def test_the_peak_is_the_most_that_was_in_use_at_once():
    x = cpu(1 << 20)
    y = x + 1
    peak = mg.memory()["cpu"].peak
    del x, y
    assert peak >= 8 << 20
    assert mg.memory()["cpu"].peak == peak


def test_moves_between_processor_devices_are_not_transfers():
    initial = mg.memory()
    x = mg.ones(10, device="numpy").to("cpu")
    assert x.device == "cpu"
    assert x.to("cpu") is x
    assert x.to("numpy").tolist() == [1.0] * 10
    after = mg.memory()  # no transfer between devices of the processor
    assert after.uploads.since(initial.uploads) == after.downloads.since(initial.downloads) == (0, 0)


def test_a_gradient_is_on_the_device_of_its_tensor():
    x = mg.tensor([1.0, 2.0], device="numpy", requires_grad=True)
    (x.to("cpu") * mg.tensor([3.0, 4.0], device="cpu")).sum().backward()
    assert (x.grad.device, x.grad.tolist()) == ("numpy", [3.0, 4.0])


def test_a_second_order_gradient_is_on_the_device_of_its_tensor():
    x = mg.tensor([1.0, 2.0], device="numpy", requires_grad=True)
    (first,) = mg.autograd.grad((x.to("cpu") ** 3).sum(), [x], create_graph=True)
    (second,) = mg.autograd.grad(first.sum(), [x])
    assert (first.device, first.tolist()) == ("numpy", [3.0, 12.0])
    assert (second.device, second.tolist()) == ("numpy", [6.0, 12.0])


@pytest.mark.usefixtures("compiled_on_cpu")
def test_profile_names_kernels_calls_bytes_and_times():
    x = mg.ones(8, device="cpu", requires_grad=True)
    with mg.profile() as p:
        (x * x).sum().backward()
        x.detach().to("numpy")
    row = p.rows["mul", "cpu"]
    assert row.calls >= 1
    assert row.seconds > 0
    assert p.rows["sum", "cpu"].written == 4
    assert (p.downloads, p.uploads) == ((0, 0), (0, 0))
    heads, *_, up, down = str(p).splitlines()
    assert heads.split() == ["kernel", "device", "calls", "ms", "read", "written", "new", "tensors"]
    assert (up, down) == ("uploads: 0, 0 B", "downloads: 0, 0 B")


def test_profile_counts_new_tensors_and_neither_views_nor_what_is_written_in_place():
    x = cpu(8)
    with mg.profile() as p:
        y = x.view(2, 4).T
        y.add_(1.0)
        (x + x).sort()
    new = {op: row.new for (op, _), row in p.rows.items()}
    assert new == {"reshape": 0, "permute": 0, "add": 1, "sort": 2}
    assert p.new_tensors == 3


@pytest.mark.usefixtures("compiled_on_cpu")
def test_profile_exports_the_trace_event_format(tmp_path):
    with mg.profile() as p:
        x = cpu(8) + 1.0
        x.to("numpy").exp()
    p.export(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    names = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    calls = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["name"], names[event["tid"]]) for event in calls] == [(e.op, e.device) for e in p.events]
    assert {"numpy", "cpu"} == set(names.values())
    for event in calls:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0
        assert event["dur"] >= 0
    assert calls[0]["args"] == {"bytes read": 32, "bytes written": 32, "new tensors": 1}


def test_an_empty_profile_is_a_table_and_a_trace_too(tmp_path):
    with mg.profile() as p:
        pass
    assert str(p).splitlines()[1:] == ["uploads: 0, 0 B", "downloads: 0, 0 B"]
    p.export(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"] == []


def test_mixing_devices_raises():
    with pytest.raises(
        mg.errors.DeviceError,
        match=r"^add: expected all tensors to be on the same device, but found at least two devices, 'cpu' and 'numpy'",
    ):
        cpu(2) + mg.zeros(2, device="numpy")
    with pytest.raises(mg.errors.DeviceError, match="add_: expected all tensors to be on the same device"):
        cpu(2).add_(mg.zeros(2, device="numpy"))
    with pytest.raises(mg.errors.DeviceError, match="device 'tpu' is not available"):
        mg.zeros(2, device="tpu")


def test_tensors_are_created_on_the_default_device():
    outputs = [mg.zeros(2), mg.tensor([1.0]), mg.rand(2), mg.arange(3), mg.from_numpy(np.ones(2)), mg.eye(2)]
    assert {x.device for x in outputs} == {"cpu"}
    mg.set_default_device("numpy")
    assert (mg.zeros(2).device, mg.zeros(2, device="cpu").device) == ("numpy", "cpu")
    mg.set_default_device(None)
    assert mg.zeros(2).device == mg.zeros(2, device="cpu:0").device == "cpu"


@merge_cases
@pytest.mark.parametrize("key", [key for key, sample in SAMPLES.items() if sample.inputs])
def test_results_and_gradients_are_on_the_device_of_the_operands(key):
    sample = SAMPLES[key]
    outputs, leaves = parity.call_sample(
        sample, functools.partial(mg.tensor, device="numpy"), parity.minigrad_functions(), "float64", "contiguous"
    )
    ends = [x for x in outputs if x.requires_grad]
    grads = []
    if ends:
        ones, expected = [mg.ones_like(x) for x in ends], [x for x in leaves if x.requires_grad]
        grads = mg.grad(ends, expected, ones, create_graph=True, allow_unused=True)
    assert {x.device for x in (*outputs, *grads) if isinstance(x, mg.Tensor)} == {"numpy"}


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_a_tensor_is_unpickled_on_its_device(device):
    x = pickle.loads(pickle.dumps(mg.ones(2, device=device, requires_grad=True)))
    assert (x.device, x.tolist(), x.requires_grad) == (device, [1.0, 1.0], True)


def test_a_tensor_is_unpickled_on_the_default_device_if_its_own_is_unavailable():
    pickled = pickle.dumps(mg.ones(2)).replace(b"\x03cpu", b"\x03tpu")
    assert pickle.loads(pickled).device == "cpu"


def test_repr_shows_a_non_default_device():
    x = mg.tensor([1.0, 2.0], dtype=mg.float64, device="numpy")
    assert (repr(x), repr(cpu(1))) == ("tensor([1., 2.], device='numpy', dtype=minigrad.float64)", "tensor([0.])")


def test_a_gradient_from_another_device_raises():
    x = mg.ones(2, device="numpy", requires_grad=True)
    with pytest.raises(mg.errors.DeviceError, match="gradient: expected all tensors to be on the same device"):
        (x * x).backward(cpu(2))
    with pytest.raises(mg.errors.DeviceError, match="grad: expected all tensors to be on the same device"):
        x.grad = cpu(2)


def test_numpy_and_cpu_share_memory():
    array = np.zeros(3, np.float32)
    x = mg.from_numpy(array)
    x.add_(2.0)
    assert array.tolist() == [2.0] * 3
    y = cpu(3)
    y.numpy()[1] = 5.0
    assert y.tolist() == [0.0, 5.0, 0.0]


def _in_a_child(queue):
    try:
        cpu(4) + 1.0
        queue.put("computed")
    except mg.errors.DeviceError as error:
        queue.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("compiled_on_cpu")
def test_a_forked_child_raises_instead_of_hanging():
    cpu(4) + 1.0  # this process uses the device
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(queue,))
    child.start()
    message = queue.get(timeout=30)
    child.join(30)
    assert message.startswith("Taichi does not survive a fork")


def test_threads_may_compute_concurrently():
    results = []

    def work(k):
        x = mg.full((500,), float(k), device="cpu")
        for _ in range(50):
            x = x * 1.0 + 1.0
        results.append((k, x.tolist()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(k for k, _ in results) == list(range(4))
    assert all(x == [k + 50.0] * 500 for k, x in results)


def test_threads_may_all_be_the_first_to_compute():
    """Taichi requires that the thread that started it creates what its first kernel needs."""
    code = (
        "import threading, minigrad as mg\nmg.set_default_device('cpu')\nbarrier, found = threading.Barrier(6), []\n"
        "def work():\n    barrier.wait()\n    found.append(mg.softmax(mg.zeros(2, 2), 1).sum().item())\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "[thread.start() for thread in threads]\n[thread.join() for thread in threads]\nprint(*found)"
    )
    for _ in range(3):
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
        assert (child.stdout.split(), child.stderr) == (["2.0"] * 6, "")


def test_the_limit_of_a_pool_must_be_an_integer():
    with pytest.raises(
        mg.errors.ArgumentError, match="set_pool_limit: expected a nonnegative number of bytes, but got 'big'"
    ):
        mg.set_pool_limit("big")
    others = "; cpu, cuda, vulkan, metal have one" if is_available("taichi") else ", nor has any other"
    message = f"^set_pool_limit: the device 'tpu' has no memory pool{others}"
    with pytest.raises(mg.errors.ArgumentError, match=message):
        mg.set_pool_limit(10, "tpu")
