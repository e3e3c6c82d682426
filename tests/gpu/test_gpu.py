"""A GPU's memory: transfers, what stays on the device, and what NumPy computes on `cpu` meanwhile."""

import gc
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
import parity
from cases import run_cases
from minigrad.backends.taichi.runtime.array import block_of
from minigrad.core.dispatch import dispatch
from minigrad.core.errors import DeviceError, DTypeError
from minigrad.core.storage import transfers
from minigrad.core.tensor import wrap
from samples import all_samples

GPU = mg.get_default_device()


def transfer_counts(before):
    return tuple(transfers[direction].since(before[direction]).count for direction in ("up", "down"))


def test_elements_are_uploaded_once_and_results_stay_on_the_gpu():
    x = mg.tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    before = dict(transfers)
    y = x + 1
    for _ in range(5):
        y = (y * x).sin()
    assert transfer_counts(before) == (1, 0)
    assert y.shape == (2, 3)
    assert y.sum().item() == y.numpy().sum()
    assert transfer_counts(before) == (1, 2), "the sum and the elements were downloaded, each once"
    y.numpy(), y.tolist()
    assert transfer_counts(before) == (1, 2)


def test_an_epoch_of_mini_batches_uploads_each_array_once():
    generator = np.random.default_rng(0)
    images = mg.tensor(generator.normal(size=(256, 20)).astype(np.float32))
    labels = mg.tensor(generator.integers(0, 4, size=256))
    w = mg.tensor(generator.normal(size=(4, 20)).astype(np.float32), requires_grad=True)
    before, losses = dict(transfers), []
    for start in range(0, 256, 32):
        batch = slice(start, start + 32)
        loss = mg.functional.cross_entropy(images[batch] @ w.T, labels[batch])
        (gradient,) = mg.grad(loss, w)
        with mg.no_grad():
            w -= 0.1 * gradient
        losses.append(loss.detach())
    assert transfer_counts(before) == (3, 0), "uploads: images, labels and weights; no downloads"
    assert all(mg.isfinite(loss).item() for loss in losses)


def test_views_share_memory_on_the_device():
    x = mg.zeros(4, 6)
    before = dict(transfers)
    part = x[1:3, ::2]
    part += 5
    x.T[0, 0] = 7
    assert transfer_counts(before)[1] == 0
    expected = np.zeros((4, 6))
    expected[1:3, ::2] = 5
    expected[0, 0] = 7
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(part.numpy(), expected[1:3, ::2])


def test_numpy_returns_a_writable_copy():
    x = mg.ones(3)
    array = x.numpy()
    array[0] = 9
    x *= 2
    assert x.tolist() == [2, 2, 2]
    assert array.tolist() == [9, 1, 1]


def test_freed_buffers_are_reused():
    mg.empty_cache()
    x = mg.ones(1000)
    for _ in range(50):
        x = x + 1
    report = mg.memory()[GPU]
    assert x[0].item() == 51
    assert report.pooled + report.bytes <= 10 * 4096, report
    del x
    mg.empty_cache()
    assert mg.memory()[GPU].pooled == 0


def test_cpu_tensors_are_computed_by_numpy_and_profiled_so():
    mg.ones(3)  # Taichi runs on the GPU
    x = mg.ones(3, device="cpu")
    with mg.profile() as p:
        y = (x + mg.ones(3, device="cpu") * 2).sum()
        z = mg.ones(3) * 2
    assert (y.device, y.item(), z.device) == ("cpu", 9.0, GPU)
    assert {device for _, device in p.rows} == {"cpu by numpy", GPU}
    assert "cpu by numpy" in str(p)


def test_a_custom_cpu_kernel_runs_with_numpy():
    damped = mg.Op(
        "damped", "{a}", inputs=("a", "by"), attrs={"alpha": 0.5}, vjp=(None, None), domain=(mg.Domain(-3, 3),) * 2
    )
    mg.kernel("damped", "cpu", "ti.select(a > 0, a, alpha * a) / by")
    try:
        mg.ones(3)  # Taichi runs on the GPU
        a, by = mg.tensor([[-4.0], [3.0]], device="cpu"), mg.tensor([2.0, 1.0], device="cpu")
        y = damped(a, by, alpha=0.25)
        assert (y.device, y.tolist()) == ("cpu", [[-0.5, -1.0], [1.5, 3.0]])
        assert damped(a.T, 2.0).tolist() == [[-1.0, 1.5]]
        assert damped(mg.zeros(0, 2, device="cpu"), by).shape == (0, 2)
        out = mg.zeros(2, 1, device="cpu")
        dispatch("damped", "cpu", (a._array, 1.0), {"alpha": 0.0}, out=out._array)
        assert out.tolist() == [[0.0], [3.0]]
        if GPU != "cuda":
            with pytest.raises(DTypeError, match=f"damped: Taichi runs on {GPU}, which has no float64"):
                damped(a.double(), by.double())
    finally:
        mg.OPS.pop("damped")


def test_devices_do_not_mix_and_copies_work_both_ways():
    x, y = mg.ones(3), mg.ones(3, device="cpu")
    with pytest.raises(DeviceError, match="expected all tensors to be on the same device"):
        x + y
    assert (x + y.to(GPU)).tolist() == (x.cpu() + y).tolist() == [2, 2, 2]
    assert x.to(GPU, non_blocking=True) is x
    assert x.cpu().device == "cpu"


def test_gradients_flow_across_devices():
    x = mg.tensor([1.0, 2.0, 3.0], device="cpu", requires_grad=True)
    (x.to(GPU) ** 2).sum().backward()
    assert x.grad.device == "cpu"
    np.testing.assert_allclose(x.grad.numpy(), [2, 4, 6], rtol=1e-6)


def test_a_second_gpu_backend_raises():
    other = "metal" if GPU != "metal" else "cuda"
    with pytest.raises(DeviceError, match="Taichi supports one GPU per process"):
        mg.ones(3, device=other)


def test_float64_raises_where_unsupported():
    if GPU == "cuda":
        assert mg.ones(2, dtype=mg.float64).exp().dtype == mg.float64
        return
    for make in (lambda: mg.ones(2, dtype=mg.float64), lambda: mg.ones(2).double(), lambda: mg.tensor(np.ones(2))):
        with pytest.raises(DTypeError, match=f"float64: the device {GPU} does not support float64"):
            make()


def test_a_wrong_index_raises_on_the_host_or_at_the_next_download():
    x = mg.arange(5.0)
    with pytest.raises(IndexError, match="out of bounds"):
        x[mg.tensor([1, 7])]
    wrong = (mg.tensor([1, 3]) * 2)._array  # computed on the GPU, and not checked on the host
    y = wrap(dispatch("gather", GPU, (x._array, wrong), {"dim": 0}))
    with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 5"):
        y.tolist()
    assert x[mg.tensor([1, 3])].tolist() == [1, 3], "the error is not raised again"


def test_kernel_calls_are_timed_to_their_end():
    x = mg.rand(300, 300)
    with mg.profile() as p:
        x @ x
    assert p.rows["matmul", GPU].seconds > 0


def run(code):
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "GPU": GPU})
    assert child.returncode == 0, child.stderr[-2000:]
    return child.stdout.split()


def test_the_user_s_taichi_is_shared():
    """Taichi was started on this GPU with other settings: minigrad computes with it, and the user's field survives."""
    assert run("""
import os, taichi as ti
ti.init(arch=getattr(ti, os.environ["GPU"]), log_level="error", fast_math=True)
field = ti.field(ti.f32, shape=3)
field.fill(2)
import minigrad as mg
from minigrad.core.tensor import wrap
x = mg.ones(3, device=os.environ["GPU"]) + 1
print("ours", *x.tolist(), "theirs", *field.to_numpy(), mg.isnan(mg.log(-x)).all().item())
""")[-9:] == ["ours", "2.0", "2.0", "2.0", "theirs", "2.0", "2.0", "2.0", "True"]


def test_cpu_uses_numpy_if_the_user_s_taichi_runs_on_a_gpu():
    for before, after in (("ti.init(arch=gpu, log_level='error')", ""), ("", "ti.init(arch=gpu, log_level='error')")):
        assert run(f"""
import os, taichi as ti, minigrad as mg
gpu = getattr(ti, os.environ["GPU"])
{before}
x = mg.ones(3, device="cpu", requires_grad=True)
y = (x + 1) * x
{after}
(y + 1).sum().backward()
with mg.profile() as p:
    y = y.detach() @ y.detach()
print(y.item(), *x.grad.tolist(), *{{device for _, device in p.rows}})
""")[-7:] == ["12.0", "3.0", "3.0", "3.0", "cpu", "by", "numpy"]


def test_elements_lost_by_a_restart_of_taichi_raise():
    out = run("""
import os, taichi as ti, minigrad as mg
gpu = os.environ["GPU"]
x, kept = mg.ones(3, device=gpu) + 1, mg.ones(3, device=gpu) * 3
kept.tolist()
ti.init(arch=getattr(ti, gpu), log_level="error")
print((kept + 1).tolist(), (mg.ones(3, device=gpu) * 5).tolist())
try:
    x.tolist()
except mg.errors.DeviceError as error:
    print(error)
""")
    text = " ".join(out)
    assert "[4.0, 4.0, 4.0] [5.0, 5.0, 5.0]" in text
    assert "Taichi was restarted, by" in text


def test_training_steps_keep_memory_flat():
    generator = np.random.default_rng(1)
    x, y = (mg.tensor(generator.normal(size=(16, n)).astype(np.float32)) for n in (8, 1))
    w = mg.tensor(generator.normal(size=(1, 8)).astype(np.float32), requires_grad=True)

    def steps(count):
        for _ in range(count):
            loss = ((x @ w.T - y) ** 2).mean()
            loss.backward()
            with mg.no_grad():
                w.sub_(0.01 * w.grad)
            w.grad = None
        return mg.memory()[GPU]

    before, transferred = steps(20), dict(transfers)
    after = steps(200)
    assert (after.tensors, after.bytes, after.pooled, after.peak) == (
        before.tensors, before.bytes, before.pooled, before.peak,
    )  # fmt: skip
    assert transfer_counts(transferred) == (0, 0)


def test_a_first_random_draw_runs_on_the_gpu():
    """No array was created there that would have started the GPU."""
    assert run("""
import os, minigrad as mg
mg.set_default_device(os.environ["GPU"])
x = mg.randn(3)
from minigrad.backends.taichi.runtime import driver
print(x.device, driver.arch())
""") == [GPU, GPU]


def test_epochs_of_a_loader_upload_each_array_once():
    data = mg.data.TensorDataset(
        mg.tensor(np.arange(640.0, dtype=np.float32).reshape(64, 10), device="numpy"),
        mg.tensor(np.arange(64), device="numpy"),
    )
    before, rows = mg.memory().uploads, []
    loader = mg.data.DataLoader(data, batch_size=10, shuffle=True, generator=mg.Generator(0), device=GPU)
    epochs = [[(x + 0, y + 0) for x, y in loader] for _ in range(3)]
    assert mg.memory().uploads.since(before).count == 2, "images and labels; the order is drawn on the GPU"
    for epoch in epochs:
        rows = [k for _, y in epoch for k in y.tolist()]
        assert sorted(rows) == list(range(64)) != rows
        assert [x[0].item() for batch, _ in epoch for x in batch] == [10.0 * k for k in rows]


def test_a_jitted_step_becomes_one_kernel_and_equals_eager():
    F = mg.functional

    def train(wrap):
        with mg.random.fork_rng():
            mg.manual_seed(5)
            model = mg.nn.Sequential(mg.nn.Linear(7, 16), mg.nn.ReLU(), mg.nn.Dropout(0.2), mg.nn.Linear(16, 3))
            optimizer = mg.optim.Adam(model.parameters(), lr=0.1)

            def step(x, y):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                return loss

            function, losses = wrap(step), []
            for k in range(20):
                optimizer.param_groups[0]["lr"] = 0.1 / (k + 1)
                x = mg.randn(9, 7)
                losses.append(function(x, (x[:, 0] > 0).to(mg.int64)))
            return repr([[x.tolist() for x in losses], model.state_dict(), optimizer.state_dict()]), function

    (expected, _), (actual, function) = train(lambda step: step), train(mg.jit)
    assert actual == expected
    assert re.search(r" launches, merged into step_\w+ of \d+ launches", function.program)


def test_elementwise_operations_are_fused_into_one_launch():
    w = mg.randn(37, 5, requires_grad=True)
    optimizer = mg.optim.Adam([w])

    def chain(x):
        return 0.5 * x * (1.0 + mg.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) - x / 3

    def updated(x):
        optimizer.zero_grad()
        ((w * x).square() * 0.5 + w).sum().backward()
        optimizer.step()
        return w.grad * 2

    jitted, x = mg.jit(chain), mg.randn(37, 5)
    for _ in range(20):
        result = jitted(x)
    np.testing.assert_allclose(result.numpy(), chain(x).numpy(), rtol=1e-6, atol=1e-6)
    assert re.search(r" \d+ of which are fused into [12], merged into step_", jitted.program)

    step, start = mg.jit(updated), w.detach().numpy()
    for _ in range(20):
        step(x)
    result, w.data = w.detach().numpy(), mg.tensor(start)
    optimizer.state.clear()
    for _ in range(20):
        updated(x)
    np.testing.assert_allclose(result, w.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert re.search(r" of which are fused into \d, merged into step_", step.program)


def test_a_jitted_step_transfers_only_its_inputs():
    w = mg.tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3), requires_grad=True)

    @mg.jit
    def step(x):
        w.grad = None
        loss = (x @ w).sum()
        loss.backward()
        with mg.no_grad():
            w.sub_(0.1 * w.grad)
        return loss

    inputs = [mg.tensor(np.full((4, 2), k, np.float32)) for k in range(6)]
    for x in inputs[:3]:
        step(x)
    before = dict(transfers)
    losses = [step(x) for x in inputs[3:]]
    assert transfer_counts(before) == (3, 0)
    assert "launches, not merged" in step.program
    expected = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for k, loss in enumerate(losses, start=3):
        weights = expected - np.float32(0.1) * 4 * sum(range(k))
        assert loss.item() == pytest.approx(4 * k * weights.sum(), rel=1e-5)


def test_errors_of_a_jitted_step_raise_at_the_next_download():
    @mg.jit
    def step(x, y):
        return mg.functional.cross_entropy(x, y)

    x, right = mg.randn(4, 3), mg.tensor([0, 1, 2, 0])
    for _ in range(4):
        step(x, right)
    assert "launches" in step.program
    wrong = (right + 1) * 2  # known only on the GPU
    loss = step(x, wrong)
    with pytest.raises(IndexError, match="cross_entropy: target is out of bounds"):
        loss.item()
    assert step(x, right).item() == step(x, right).item() == mg.functional.cross_entropy(x, right).item()


def test_memory_in_a_reference_cycle_returns_to_the_pool():
    """The collector finalises a cycle in any order: a buffer must outlive the block that returns it to the pool."""
    mg.empty_cache()
    shapes = []
    for _ in range(3):
        x = mg.ones(3001) + 1
        cycle = [block_of(x._array)]
        cycle.append(cycle)
        shapes.append(cycle[0].buffer.raw.total_shape())
        del x, cycle
        gc.collect()
        assert mg.memory()[GPU].pooled > 0
        assert (mg.ones(3001) * 3).sum().item() == 9003.0
    assert shapes == [shapes[0]] * 3


@pytest.mark.filterwarnings("ignore")
def test_numpy_computes_every_sample_on_cpu():
    mg.ones(1).sum().item()  # on the GPU, so that Taichi compiles nothing for the CPU
    samples = all_samples()

    def check(key):
        results = []
        for device in ("cpu", "numpy"):
            with parity.default_device(device):
                mg.manual_seed(0)
                outputs, _ = parity.call_sample(
                    samples[key], mg.tensor, parity.minigrad_functions(), "float32", "contiguous"
                )
                results.append([x.detach().numpy() for x in outputs])
        for cpu_result, numpy_result in zip(*results, strict=True):
            np.testing.assert_array_equal(cpu_result, numpy_result)

    run_cases(check, [(key, key) for key in samples])
