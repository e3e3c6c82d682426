"""Claim: a training step under `mg.jit` takes no longer than JAX's, and less time than PyTorch's eager step.

A step consists of forward pass, loss, backward pass and update, on 2 threads. Each library runs in its own child
process, alternating, and starts with the same weights; the losses of the first ten steps must agree. A round's time is
the median of its steps after the first ones, which compile; the ratio compares the medians of all rounds. For
comparison, the same step of minigrad runs without the jit. Functions of 16 million elements, composed of arithmetic
operations, are measured next: their time relative to a copy shows the overhead that remains after fusion. Consecutive
matrix products in a jitted function are compared with the same products run eagerly, with one kernel each. The compile
time of a step is the time of its first 40 runs minus that of 40 later ones, with an empty Taichi cache and again with a
full one.

    python benchmarks/bench_jit.py --jax PYTHON

needs the extra 'parity', two idle cores, and for JAX an interpreter with jax 0.10; otherwise JAX is omitted. --passive
lets PyTorch's threads sleep, as in bench_train.py, which describes the effect of a busy machine.

    python benchmarks/bench_jit.py --device cuda

measures steps on a GPU, ten at a time, against PyTorch's in float32 (no TF32); it needs numpy, torch and taichi.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import bench_eager
import bench_train
from report import row

JITTED = "minigrad jit"
NAMES = {"jax": "JAX", "torch": "PyTorch"}

STEP = """
optimizer = lib.optim.OPTIMIZER(model.parameters(), lr=RATE)
def update(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(scores(x), y)
    loss.backward()
    optimizer.step()
    return loss
if library == "minigrad jit":
    update = lib.jit(update)
def step():
    losses.append(update(x, y).detach())
    return losses[:10]
"""

JAX = """
import jax, jax.numpy as jnp
losses = []
def array(*shape):
    return jnp.asarray(generator.normal(size=shape).astype("float32"))
def weight(*shape):
    x = generator.normal(size=shape).astype("float32")
    return jnp.asarray(x * (x.size / len(x)) ** -0.5 if x.ndim > 1 else 1 + x * 0.1)
def cross_entropy(scores, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1).mean()
def sgd(p, g, m, v, t):
    return p - RATE * g, m, v
def adam(p, g, m, v, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - RATE * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v
"""

JAX_STEP = """
@jax.jit
def update(state, t, x, y):
    parameters, means, squares = state
    loss, slopes = jax.value_and_grad(lambda p: cross_entropy(scores(p, x), y))(parameters)
    made = [OPTIMIZER(*one, t) for one in zip(parameters, slopes, means, squares)]
    return tuple(zip(*made)), loss
zeros = tuple(jnp.zeros_like(p) for p in parameters)
state, count = (tuple(parameters), zeros, zeros), 0
def step():
    global state, count
    count += 1
    state, loss = update(state, float(count), x, y)
    losses.append(loss.block_until_ready())
    return losses[:10]
"""

MLP = """
x, y = leaf(BATCH, INPUTS).detach(), numbers(10, BATCH)
model = scores = weights(nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10)))
"""

JAX_MLP = """
x, y = array(BATCH, INPUTS), jnp.asarray(generator.integers(10, size=BATCH))
parameters = [weight(HIDDEN, INPUTS), weight(HIDDEN), weight(10, HIDDEN), weight(10)]
def scores(p, x):
    return jax.nn.relu(x @ p[0].T + p[1]) @ p[2].T + p[3]
"""

CNN = """
x, y = leaf(64, 1, 8, 8).detach(), numbers(10, 64)
model = scores = weights(nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(512, 10),
))
"""

JAX_CNN = """
x, y = array(64, 1, 8, 8), jnp.asarray(generator.integers(10, size=64))
shapes = [(16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (10, 512), (10,)]
parameters = [weight(*shape) for shape in shapes]
def convolved(x, w, b):
    return jax.nn.relu(jax.lax.conv(x, w, (1, 1), "SAME") + b[:, None, None])
def scores(p, x):
    x = convolved(convolved(x, p[0], p[1]), p[2], p[3])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(64, -1) @ p[4].T + p[5]
"""

SMALL_GPT = bench_train.GPT.replace("WIDTH", "128")
GPT = f"""{SMALL_GPT.replace("BATCH", "16")}
y = y.view(-1)
def scores(x):
    return model(x).view(-1, classes)
"""

JAX_GPT = """
x, y = (jnp.asarray(generator.integers(120, size=(16, 128))) for _ in range(2))
y = y.reshape(-1)
block = [(128,)] * 4 + [(384, 128), (384,), (128, 128), (128,), (512, 128), (512,), (128, 512), (128,)]
parameters = [weight(*shape) for shape in [(120, 128), (128, 128), *block * 4, (128,), (128,)]]
def normed(x, w, b):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w + b
def attention(q, k, v):
    near = jnp.where(jnp.tril(jnp.ones((128, 128), bool)), q @ k.transpose(0, 1, 3, 2) * 32**-0.5, -jnp.inf)
    return jax.nn.softmax(near) @ v
def scores(p, x):
    h = p[0][x] + p[1]
    for k in range(4):
        w1, b1, w2, b2, qkv, qkv_b, proj, proj_b, up, up_b, down, down_b = p[2 + 12 * k : 14 + 12 * k]
        parts = jnp.split(normed(h, w1, b1) @ qkv.T + qkv_b, 3, -1)
        heads = attention(*(z.reshape(16, 128, 4, 32).transpose(0, 2, 1, 3) for z in parts))
        h = h + heads.transpose(0, 2, 1, 3).reshape(16, 128, 128) @ proj.T + proj_b
        h = h + jax.nn.gelu(normed(h, w2, b2) @ up.T + up_b, approximate=False) @ down.T + down_b
    return (normed(h, p[-2], p[-1]) @ p[0].T).reshape(-1, 120)
"""


ROWS: list[list[str]] = []  # rows of the table in the README
README = Path(__file__).parent.parent / "README.md"
TABLE_MARKERS = "<!-- made by benchmarks/bench_jit.py --readme -->\n", "<!-- until here -->\n"


def write_table(machine: str) -> None:
    """Write the measured ratios and the machine into the README."""
    head = ["A step of training", "`mg.jit`", "of JAX's time", "of PyTorch's"]
    lines = [f"| {' | '.join(row)} |\n" for row in [head, ["---", *["---:"] * (len(head) - 1)], *ROWS]]
    lines += [f"\n{machine}, {bench_eager.PEER}, {datetime.date.today()}.\n"]
    preceding, _, rest = README.read_text(encoding="utf-8").partition(TABLE_MARKERS[0])
    _, _, following = rest.partition(TABLE_MARKERS[1])
    README.write_text(f"{preceding}{TABLE_MARKERS[0]}{''.join(lines)}{TABLE_MARKERS[1]}{following}", encoding="utf-8")


def substitute_sizes(code: str, batch: int, inputs: int, hidden: int) -> str:
    return code.replace("BATCH", str(batch)).replace("INPUTS", str(inputs)).replace("HIDDEN", str(hidden))


def perceptron(*sizes: int) -> tuple[str, str]:
    return substitute_sizes(MLP, *sizes), substitute_sizes(JAX_MLP, *sizes)


RATES = {"SGD": 1e-2, "Adam": 1e-3}
PARTS = {  # models in minigrad and JAX, optimizer, steps, and limits relative to JAX and PyTorch
    "MLP 32x64x32x10, SGD": (perceptron(32, 64, 32), "SGD", 400, 0.6, 1 / 5),
    "MLP 32x784x128x10, Adam": (perceptron(32, 784, 128), "Adam", 300, 1.0, 1 / 1.5),
    "MLP 256x784x256x10, SGD": (perceptron(256, 784, 256), "SGD", 150, 1.0, None),
    "CNN of two convolutions, 64 digits, Adam": ((CNN, JAX_CNN), "Adam", 60, 1.2, 1.0),
    "GPT 4x128, 16 contexts of 128, Adam": ((GPT, JAX_GPT), "Adam", 10, 1.3, 1.0),
}


LARGE = SMALL_GPT.replace("120, 128, 4", "120, 384, 6").replace("BATCH, 128", "BATCH, 256")
LARGE = LARGE.replace("nn.Embedding(128, width)", "nn.Embedding(256, width)").replace("range(4)", "range(6)")
LARGE = GPT.replace(SMALL_GPT.replace("BATCH", "16"), LARGE.replace("BATCH", "16"))
ON_CUDA = {  # without JAX
    "MLP 32x64x32x10, SGD, cuda": (perceptron(32, 64, 32), "SGD", 40, None, 1 / 2),
    "GPT 6x384, 16 contexts of 256, Adam, cuda": ((LARGE, ""), "Adam", 4, None, 1.0),
}


def measure_model(name: str, rounds: int, fraction: float) -> bool:
    """Measure one model; return whether it misses a limit, or the losses differ."""
    (model_code, jax_code), optimizer, steps, *bars = (PARTS | ON_CUDA)[name]
    model_code, jax_code = (f"RATE = {RATES[optimizer]}\n{text}" for text in (model_code, jax_code))
    code = f"if library != 'jax':\n{_indent(bench_train.HEAD + model_code + STEP.replace('OPTIMIZER', optimizer))}"
    code += f"else:\n{_indent(JAX + jax_code + JAX_STEP.replace('OPTIMIZER', optimizer.lower()))}"
    libraries = ["minigrad", JITTED, "torch", *["jax"] * ("jax" in bench_eager.PYTHONS)]
    warmup = 12 if name in ON_CUDA else 40  # warm-up steps, until launches are merged into one kernel
    seconds, worst = bench_eager.measure(code, tuple(libraries), rounds, warmup + int(steps * fraction))
    times = ", ".join(f"{library} {seconds[library] * 1e6:,.0f} µs" for library in libraries)
    comment = f"{times}; losses differ by {worst:.0e}"
    has_missed, cells = worst > 1e-4, [f"{seconds[JITTED] * 1e6:,.0f} µs"]
    for peer, bar in zip(("jax", "torch"), bars, strict=True):
        if peer in seconds:
            ratio = seconds[JITTED] / seconds[peer]
            label, limit = f"{name}, relative to {NAMES[peer]}'s time", None if bar is None else f"{bar:.2f}"
            has_missed |= row(label, f"{ratio:.2f}", limit, is_wrong=worst > 1e-4, comment=comment)
            comment = ""
            cells.append(f"{ratio:.2f}")
    ROWS.append([name, *cells])
    return has_missed


COPY = "torch copy"

CHAINS = """
x = lib.tensor(generator.normal(size=(16384, 1024)).astype("float32"))
def function(x):
    RETURN
if library == "minigrad jit":
    function = lib.jit(function)
if library == "torch copy":
    copy = lib.empty_like(x)
    function = copy.copy_
def step():
    return [function(x)[::1024, ::64]]
"""
FUNCTIONS = {
    "GELU chain": "return 0.5 * x * (1.0 + lib.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))",
    "layer norm": ("x = x - x.mean(-1, keepdim=True)\n    return x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt()"),
}


def measure_chain(name: str, rounds: int, fraction: float) -> bool:
    """Measure a function of 16 million elements; return whether it misses a limit, or the results differ."""
    code, steps = CHAINS.replace("RETURN", FUNCTIONS[name]), 30 + int(20 * fraction)
    seconds, worst = bench_eager.measure(code, ("minigrad", JITTED, "torch"), rounds, steps)
    copies = bench_eager.measure(code, ("minigrad", COPY), rounds, 20)[0][COPY]
    times = ", ".join(f"{library} {took * 1e3:,.1f} ms" for library, took in {**seconds, COPY: copies}.items())
    faster, slower = seconds["torch"] / seconds[JITTED], seconds[JITTED] / copies
    name, comment = f"{name} on 16 M elements", f"{times}; results differ by {worst:.0e}"
    label = f"{name}, PyTorch's time / minigrad's"
    has_missed = row(label, f"{faster:.2f}", "3.00", at_least=True, is_wrong=worst > 1e-4, comment=comment)
    return row(f"{name}, relative to a copy's time", f"{slower:.2f}", "1.30") or has_missed


PRODUCTS = """
x = leaf(ROWS, INNER).detach()
there, back = leaf(COLUMNS, INNER).detach() / INNER**0.5, leaf(INNER, COLUMNS).detach() / COLUMNS**0.5
def function(x):
    return F.linear(F.linear(F.linear(F.linear(x, there), back), there), back)
if library == "minigrad jit":
    function = lib.jit(function)
def step():
    return [function(x)]
"""


def measure_products(*sizes: int, rounds: int) -> bool:
    """Compare four products in a jitted function with the same run eagerly; return whether it takes over 10% more."""
    code = PRODUCTS
    for name, size in zip(("ROWS", "INNER", "COLUMNS"), sizes, strict=True):
        code = code.replace(name, str(size))
    seconds, worst = bench_eager.measure(code, ("minigrad", JITTED), rounds, 200)
    times = ", ".join(f"{library} {took * 1e6:,.0f} µs" for library, took in seconds.items())
    label = f"4 products {'x'.join(map(str, sizes))} in a jitted function, relative to eager"
    comment = f"{times}; results differ by {worst:.0e}"
    return row(label, f"{seconds[JITTED] / seconds['minigrad']:.2f}", "1.10", is_wrong=worst > 1e-4, comment=comment)


SIZES = [(32, 784, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024)]

COMPILE_LIMITS = {  # seconds, with an empty and with a full cache
    "MLP 32x64x32x10, SGD": (1.5, 0.3),
    "GPT 4x128, 16 contexts of 128, Adam": (30.0, None),
}
TIME_COMPILATION = """
times = []
for _ in range(80):
    begun = time.perf_counter()
    step()
    times.append(time.perf_counter() - begun)
steady = sorted(times[40:])[20]
print(json.dumps({"first": times[0] - steady, "all": sum(times[:40]) - 40 * steady}))
"""


def measure_compilation(name: str, rounds: int, *bars: float | None) -> bool:
    """Measure the extra time of a step's first runs, without and with a cache; return whether it misses a limit."""
    (model_code, _), optimizer, *_ = PARTS[name]
    code = bench_eager.HEAD + f"RATE = {RATES[optimizer]}\n" + bench_train.HEAD + model_code
    code += STEP.replace("OPTIMIZER", optimizer) + TIME_COMPILATION
    runs_by_cache: list[list[dict[str, float]]] = [[], []]
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for times in runs_by_cache:
                command = [sys.executable, "-c", code, JITTED, "0"]
                environment = os.environ | {"TI_OFFLINE_CACHE_FILE_PATH": folder}
                child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                times.append(json.loads(child.stdout.splitlines()[-1]))
    has_missed = False
    for times, cache_state, limit in zip(runs_by_cache, ("empty cache", "full cache"), bars, strict=True):
        first, everything = (statistics.median(time[key] for time in times) for key in ("first", "all"))
        limit_text = None if limit is None else f"{limit:.1f}"
        has_missed |= row(
            f"{name}: compile time, {cache_state}",
            f"{everything:.1f} s",
            limit_text,
            comment=f"the first run {first:.1f} s",
        )
    return has_missed


def _indent(source: str) -> str:
    return "".join(f"    {line}\n" for line in source.splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the steps to run")
    parser.add_argument("--only", default="", help="run only models with this in their name")
    parser.add_argument("--jax", default="", help="an interpreter with jax")
    parser.add_argument(
        "--passive", action="store_true", help="for a busy machine: PyTorch's threads sleep while waiting"
    )
    parser.add_argument("--readme", action="store_true", help="write the table of the README; needs --jax")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    if options.readme and not options.jax:
        parser.error("--readme needs --jax PYTHON, since its table has a column for JAX")
    os.environ["MINIGRAD_DEVICE"] = options.device  # read by the children
    if options.passive:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    if options.jax:
        bench_eager.PYTHONS["jax"] = options.jax
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, {bench_eager.PEER}")
    parts = PARTS if options.device == "cpu" else ON_CUDA
    missed = [measure_model(name, options.rounds, options.share) for name in parts if options.only in name]
    if options.device == "cuda":
        return 1 if any(missed) else 0
    missed += [measure_chain(name, options.rounds, options.share) for name in FUNCTIONS if options.only in name]
    missed += [measure_products(*sizes, rounds=options.rounds) for sizes in SIZES if options.only in "products"]
    missed += [
        measure_compilation(name, min(options.rounds, 3), *bars)
        for name, bars in COMPILE_LIMITS.items()
        if options.only in "compiling"
    ]
    if options.readme:
        write_table(f"{machine}, jax 0.10")
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
