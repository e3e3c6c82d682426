"""What the process is doing: memory, profile, default device; and what a device refuses."""

import gc
import json
import multiprocessing
import threading

import numpy as np
import pytest

import minigrad as mg

pytest.importorskip("taichi", reason="needs Taichi, which has wheels for most machines")


@pytest.fixture(autouse=True)
def _on_cpu():
    before = mg.get_default_device()
    mg.set_default_device("cpu")
    yield
    mg.set_default_device(before)


def cpu(*shape):
    return mg.zeros(*shape, device="cpu")


def test_memory_counts_tensors_and_the_bytes_of_views_once():
    before = mg.memory()["cpu"]
    x = cpu(16, 16)
    views = [x[3], x.T, x.view(-1)]
    after = mg.memory()["cpu"]
    assert after.tensors - before.tensors == 1 + len(views)
    assert after.bytes - before.bytes == 1024


def test_memory_that_is_given_back_is_used_again():
    gc.collect()
    mg.empty_cache()
    x = cpu(1000)
    address = x.numpy().ctypes.data
    assert address % 64 == 0
    del x
    assert mg.memory()["cpu"].pooled >= 4000
    again = cpu(1000)
    assert again.numpy().ctypes.data == address
    del again
    mg.empty_cache()
    assert mg.memory()["cpu"].pooled == 0


def test_the_peak_is_the_most_that_was_in_use_at_once():
    x = cpu(1 << 20)
    y = x + 1
    peak = mg.memory()["cpu"].peak
    del x, y
    assert peak >= 8 << 20
    assert mg.memory()["cpu"].peak == peak


def test_moves_are_counted_where_they_happen():
    before = mg.memory()
    x = mg.ones(10, device="numpy").to("cpu")
    assert x.device == "cpu"
    assert x.to("cpu") is x
    assert x.to("numpy").tolist() == [1.0] * 10
    after = mg.memory()
    assert after.uploads.since(before.uploads) == (1, 40)
    assert after.downloads.since(before.downloads) == (1, 40)


def test_a_gradient_goes_back_to_the_device_it_came_from():
    x = mg.tensor([1.0, 2.0], device="numpy", requires_grad=True)
    (x.to("cpu") * mg.tensor([3.0, 4.0], device="cpu")).sum().backward()
    assert (x.grad.device, x.grad.tolist()) == ("numpy", [3.0, 4.0])


def test_a_second_gradient_goes_back_too():
    x = mg.tensor([1.0, 2.0], device="numpy", requires_grad=True)
    (first,) = mg.autograd.grad((x.to("cpu") ** 3).sum(), [x], create_graph=True)
    (second,) = mg.autograd.grad(first.sum(), [x])
    assert (first.device, first.tolist()) == ("numpy", [3.0, 12.0])
    assert (second.device, second.tolist()) == ("numpy", [6.0, 12.0])


def test_profile_names_kernels_calls_bytes_and_times(tmp_path):
    x = mg.ones(8, device="cpu", requires_grad=True)
    with mg.profile() as p:
        (x * x).sum().backward()
        x.detach().to("numpy")
    row = p.rows["mul", "cpu"]
    assert row.calls >= 1
    assert row.seconds > 0
    assert p.rows["sum", "cpu"].written == 4
    assert (p.downloads, p.uploads) == ((1, 32), (0, 0))
    assert str(p).splitlines()[0].split() == ["kernel", "device", "calls", "ms", "read", "written"]
    p.export(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == [event[0] for event in p.events]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)


def test_tensors_of_two_devices_do_not_mix():
    with pytest.raises(mg.errors.DeviceError, match="add: one tensor is on the device 'cpu', another on 'numpy'"):
        cpu(2) + mg.zeros(2, device="numpy")
    with pytest.raises(mg.errors.DeviceError, match="add_: one tensor is on the device 'cpu', another on 'numpy'"):
        cpu(2).add_(mg.zeros(2, device="numpy"))
    with pytest.raises(mg.errors.DeviceError, match="there is no device 'tpu'"):
        mg.zeros(2, device="tpu")


def test_the_default_device_is_where_tensors_are_made():
    made = [mg.zeros(2), mg.tensor([1.0]), mg.rand(2), mg.arange(3), mg.from_numpy(np.ones(2)), mg.eye(2)]
    assert {x.device for x in made} == {"cpu"}
    mg.set_default_device("numpy")
    assert mg.zeros(2).device == mg.zeros(2, device="cpu").device == "numpy"
    mg.set_default_device("cpu")
    assert mg.zeros(2).device == mg.zeros(2, device="cpu").device == "cpu"


def test_memory_of_numpy_is_shared_and_memory_of_cpu_seen_by_it():
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
def test_a_forked_child_is_told_to_spawn_and_does_not_hang():
    cpu(4) + 1.0  # this process computes on the device
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(queue,))
    child.start()
    said = queue.get(timeout=30)
    child.join(30)
    assert said.startswith("Taichi does not survive a fork")


def test_threads_may_compute_at_once():
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
