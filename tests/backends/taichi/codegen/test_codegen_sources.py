"""Every kernel source that the generators emit compiles without a crash: in a child process, for the CPU, and for a GPU
if Vulkan finds one, such as Mesa's lavapipe.

Taichi may abort rather than raise if it cannot lower a source. So the sources are collected without compilation, from
each call of the samples, which cover every operation of the table, on each dtype, and from snippets in other layouts.
Then child processes compile them and report progress, so that a source that crashes its process is identified.
"""

import contextlib
import json
import math
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from needs import needs
from tiers import NIGHTLY

needs("taichi")


CORES = 2


def enlarged_shapes(shape: tuple[int, ...], dim) -> list[tuple[int, ...]]:
    """Return shapes of at least 2**16 elements: larger in all dimensions, and in those of a reduction."""
    along = set(range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim)
    shapes = []
    for dims in (set(range(len(shape))), {k % len(shape) for k in along} if shape else set()):
        new = shape
        while dims and math.prod(new) < 2**16:
            new = tuple(2 * n if k in dims else n for k, n in enumerate(new))
        shapes.append(new)
    return shapes


def large_calls(floats):
    """Yield calls for kernels that the small samples do not reach."""
    import minigrad as mg

    large, steep = mg.empty(1100, 1000), mg.empty(1024, 1024)
    for x in (large, steep):
        for dim in (0, 1):
            for op in (mg.argmax, mg.argmin, mg.amax, mg.amin, mg.sum, mg.softmax):
                yield lambda op=op, x=x, dim=dim: op(x, dim)
    for op in (mg.amax, mg.amin, mg.sum):
        yield lambda op=op: op(large)
    rows = mg.zeros(1100, dtype=mg.int64)
    for x in (large, steep, mg.empty(1100, 1001), mg.empty(1100, 1000, dtype=mg.int64)):
        places = mg.zeros(*x.shape, dtype=mg.int64)
        yield lambda x=x: x.index_select(0, rows)
        yield lambda x=x: x.index_copy(0, rows[: len(x)], x)
        yield lambda x=x: x.index_add(0, rows[: len(x)], x)
        yield lambda x=x, places=places: x.gather(0, places)
        yield lambda x=x, places=places: x.scatter(1, places, x)
    for x in (mg.empty(4, 32), steep):
        weight = mg.empty(x.shape[1])
        for given in ((), (weight,), (weight, weight)):
            yield lambda x=x, given=given: mg.functional.layer_norm(x, x.shape[1:], *given)
            yield lambda x=x, given=given: mg.functional.rms_norm(x, x.shape[1:], *given[:1])
    for dtype in floats:
        for m, depth, n in ((8, 64, 16), (64, 64, 64), (512, 512, 512), (1000, 600, 10), (8, 30, 20), (100, 50, 30)):
            a, b = mg.empty(m, depth, dtype=dtype), mg.empty(depth, n, dtype=dtype)
            for x in (a, mg.empty(depth, m, dtype=dtype).T):
                for y in (b, mg.empty(n, depth, dtype=dtype).T):
                    yield lambda x=x, y=y: x @ y
    for dtype in floats:
        for op in (mg.det, mg.cholesky):
            yield lambda op=op, dtype=dtype: op(mg.empty(800, 800, dtype=dtype))  # too large for one thread
    for dtype in floats:
        for channels, width, out in ((1, 12, 16), (3, 12, 16), (5, 11, 9), (16, 12, 32)):
            for images in (4, 80):
                x, w = mg.empty(images, channels, 12, width, dtype=dtype), mg.empty(out, channels, 3, 3, dtype=dtype)
                x, w = x.requires_grad_(), w.requires_grad_()
                yield lambda x=x, w=w: mg.functional.conv2d(x, w, padding=1).sum().backward()
    for dtype in floats:
        for x in (mg.empty(8, dtype=dtype), mg.empty(1 << 18, dtype=dtype)):
            yield from updates(x, x)
    yield from updates(mg.empty(4, 8), mg.empty(8, 4).T)
    yield from updates(mg.empty(128, 64), mg.empty(64, 128).T)


def updates(p, grad):
    """Yield all parameter updates, with and without weight decay."""
    import parity
    from samples.optim import UPDATES, update_call

    for name, memory, attrs in UPDATES:
        for change in ({}, {"weight_decay": 0.0}, {"maximize": True}):
            call = update_call(name, memory, {**attrs, **change})
            yield lambda call=call: call(parity.minigrad_functions(), p, grad)


def collect_kernels(device: str) -> list[tuple[str, str, str]]:
    """Return name, source and argument kinds of all kernels of a device, from calls without launches; for a child
    process."""
    import minigrad as mg
    import parity
    from minigrad.backends.taichi.codegen import copy, strided_walk
    from minigrad.backends.taichi.kernels import elementwise
    from minigrad.backends.taichi.runtime import array, buffers, driver, kernel, muladd
    from minigrad.core.dispatch import get_kernels
    from minigrad.core.errors import DeviceError
    from minigrad.core.storage import set_default_device
    from samples import all_samples

    driver.start(device)
    found = {}
    larger = []

    def zeroing(take):
        def emptied(pool, count):
            block = take(pool, count)
            block[...], block.on_host = 0, True
            return block

        return emptied

    def on_call(call):
        if "keepdim" in call.attrs and len(call.inputs) == 1 and call.inputs[0].size:
            larger.append(call)

    for pool in (array.Pool, buffers.GpuPool):
        pool.allocate = zeroing(pool.allocate)  # memory that no kernel computes is 0
    kernel.Kernel._compile_and_launch = lambda self, *args: found.update(
        {self.source: (self.name, self.source, self.kinds)}
    )
    warnings.simplefilter("ignore")
    set_default_device(device)
    for sample in all_samples().values():
        for dtype in (*parity.FLOATS, *parity.INTS):
            try:
                with mg.tap(on_call):
                    outputs, leaves = parity.call_sample(
                        sample, mg.tensor, parity.minigrad_functions(), dtype, "contiguous"
                    )
                    roots = [x for x in outputs if x.requires_grad]
                    inputs = [x for x in leaves if x.requires_grad]
                    if roots:
                        weights = [mg.ones(*x.shape, dtype=x.dtype) for x in roots]
                        grads = mg.grad(roots, inputs, weights, create_graph=True, allow_unused=True)
                        behind = [g for g in grads if g is not None and g.requires_grad]
                        if behind:
                            mg.grad(
                                behind, inputs, [mg.ones(*g.shape, dtype=g.dtype) for g in behind], allow_unused=True
                            )
            except Exception:  # noqa: BLE001 -- unsupported dtype, or a check fails on elements that are all 0
                continue
    for call in larger:
        for shape in enlarged_shapes(call.inputs[0].shape, call.attrs["dim"]):
            with contextlib.suppress(DeviceError):  # exceeds the iterations of a thread on this device
                get_kernels(call.op)[device](array.empty(shape, call.inputs[0].dtype), **call.attrs)
    for call in large_calls((mg.float32,) if device in driver.NO_FLOAT64 else (mg.float32, mg.float64)):
        call()
    for family in list(elementwise._families.values()):
        forms = [(0, device == "cpu"), (2, False)]
        if family.vectorisable:
            arrays = sum(one.kind == "a" for one in family._params)
            mixed = [1] * (arrays - 1) + [0] * (arrays > 0)  # one element per row for the last array
            forms += [(elementwise.VECTORISED, True), (elementwise.VECTORISED, False)]
            forms += [(elementwise.NON_TEMPORAL, False)] * muladd.FUSED
            forms += [((n, 2, *mixed), False) for n in (strided_walk.WIDTHS if family.any_width else (16,))]
        for form in forms:
            text, kinds = family.generate_source(*form)
            found[text] = (family._name, text, kinds)
    for unit in copy.COPY_UNITS if device == "cpu" else ():
        made = copy.copy_kernel(2, unit, False)
        found[made.source] = (made.name, made.source, made.kinds)
    return list(found.values())


def compile_from(path: str, first: int, step: int, device: str = "cpu") -> None:
    """Compile every `step`-th source in a file, from index `first`, and print each index with its error."""
    from minigrad.backends.taichi.runtime import driver, kernel

    ti = driver.start(device)
    for k, (name, text, kinds) in list(enumerate(json.loads(Path(path).read_text())))[first::step]:
        try:
            kernel.Kernel(name, text, kinds)._compile(ti)
            print(json.dumps([k, ""]), flush=True)
        except Exception as error:  # noqa: BLE001 -- a failure too
            print(json.dumps([k, f"{type(error).__name__}: {error}"]), flush=True)


def child(code: str, **options) -> subprocess.Popen:
    """Start a process that imports this module as `sources`."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", f"import test_codegen_sources as sources; {code}"]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, text=True, **options)


def failed_sources(path: Path, texts: list[list[str]], device: str = "cpu") -> list[str]:
    """Return the sources that cannot be compiled, with the error."""

    def started(first: int) -> subprocess.Popen:
        code = f"sources.compile_from({str(path)!r}, {first}, {CORES}, {device!r})"
        return child(code, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    found = []
    running = {first: started(first) for first in range(min(CORES, len(texts)))}
    while running:
        first, process = running.popitem()
        output, _ = process.communicate()
        done = [json.loads(line) for line in output.splitlines() if line.startswith("[") and line.endswith("]")]
        found += [f"{error}\n{texts[k][1]}" for k, error in done if error]
        if process.returncode:
            killer = done[-1][0] + CORES if done else first
            found.append(f"the process ended with {process.returncode}\n{texts[killer][1]}")
            if killer + CORES < len(texts):
                running[killer + CORES] = started(killer + CORES)
    return found


@pytest.fixture(scope="module", params=["cpu", *["vulkan"] * NIGHTLY])
def sources(request, tmp_path_factory) -> tuple[Path, list[list[str]], str]:
    if request.param != "cpu":
        needs(request.param)
    path = tmp_path_factory.mktemp("sources") / "sources.json"
    code = f"open({str(path)!r}, 'w').write(sources.json.dumps(sources.collect_kernels({request.param!r})))"
    assert child(code).wait() == 0
    return path, json.loads(path.read_text()), request.param


@pytest.mark.nightly
def test_each_operation_with_a_snippet_is_collected(sources):
    from minigrad.backends.taichi.codegen.snippets import PREDICATES, SNIPPETS

    names = {name for name, _, _ in sources[1]}
    assert {*SNIPPETS, *PREDICATES} <= names


@pytest.mark.nightly
def test_every_source_compiles(sources):
    path, found, device = sources
    assert failed_sources(path, found, device) == []


def test_a_source_that_crashes_is_found_and_others_compile(tmp_path):
    good = "@ti.kernel\ndef one_kernel(y: ti.types.ndarray(dtype=ti.f32, ndim=1)):\n    y[0] = 1.0\n"
    wide = "ti.types.ndarray(dtype=ti.types.vector(16, ti.f32), ndim=1)"
    bad = f"@ti.kernel\ndef sine_kernel(y: {wide}):\n    for i in range(1):\n        y[i] = ti.sin(y[i])\n"
    raising = good.replace("1.0", "unknown")
    texts = [["one", good, "a"], ["one", good, "a"], ["sine", bad, "a"], ["one", raising, "a"], ["one", good, "a"]]
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(texts))
    found = failed_sources(path, texts)
    assert len(found) == 2
    assert any("unknown" in one for one in found)
    assert any("ti.sin" in one for one in found)


def test_a_source_that_fails_on_a_gpu_is_found(tmp_path):
    needs("vulkan")
    good = "@ti.kernel\ndef one_kernel(y: ti.types.ndarray(dtype=ti.f32, ndim=1)):\n    y[0] = 1.0\n"
    bad = good.replace("1.0", "unknown")
    texts = [["one", good, "a"], ["one", bad, "a"], ["one", good, "a"]]
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(texts))
    (found,) = failed_sources(path, texts, "vulkan")
    assert "cannot compile this kernel for vulkan" in found
    assert found.endswith(bad)
