"""What works in a page, where Pyodide has no threads, no processes, no file locks and no Taichi."""

import pytest

import page_lessons
from needs import needs
from page import MISSING, ROOT, run_in_page


def test_a_page_starts_neither_threads_nor_processes():
    code = """
import os, subprocess, sys, threading
for start in (threading.Thread(target=print).start, lambda: subprocess.run(["true"]), os.fork):
    try:
        start()
    except (OSError, RuntimeError) as error:
        print(error)
for name in page.MISSING:
    try:
        __import__(name)
    except ImportError:
        continue
    print(name)
print(sys.platform)
"""
    processes = "[Errno 138] emscripten does not support processes.\n"
    assert run_in_page(code) == f"can't start new thread\n{processes}{processes}emscripten\n"
    assert {"taichi", "threadpoolctl", "safetensors", "fcntl", "_multiprocessing"} < set(MISSING)


TENSORS = {
    "values": (
        """
a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
y = (a * b).tanh() + b**2
y.backward()
print(round(y.data, 6), round(a.grad, 6), round(b.grad, 6))
""",
        "8.000012 -7.4e-05 -5.999951",
    ),
    "tensors": (
        """
x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = (x @ x.T).softmax(1).log().sum()
y.backward()
print(y.device, x.argmax().item(), x.sort(descending=True).indices.tolist(), round(y.item(), 3))
print(mg.autograd.hessian(lambda x: (x**3).sum(), mg.tensor([1.0, 2.0])).tolist())
""",
        "numpy 3 [[1, 0], [1, 0]] -20.005\n[[6.0, 0.0], [0.0, 12.0]]",
    ),
    "a convolution large enough for threads": (
        """
x, w = mg.ones(16, 3, 64, 64), mg.ones(4, 3, 3, 3, requires_grad=True)
y = mg.nn.functional.conv2d(x, w)
y.sum().backward()
print(tuple(y.shape), y.min().item(), y.max().item(), w.grad.unique().tolist())
""",
        f"(16, 4, 62, 62) 27.0 27.0 [{16 * 62 * 62}.0]",
    ),
    "random numbers": (
        """
mg.manual_seed(0)
print([round(x, 5) for x in mg.rand(3).tolist()], mg.randperm(5).tolist(), mg.randint(0, 10, (4,)).tolist())
""",
        "[0.39905, 0.88052, 0.73571] [4, 1, 3, 0, 2] [2, 3, 6, 9]",
    ),
    "training": (
        """
mg.manual_seed(0)
flowers = mg.data.iris()
data = mg.data.TensorDataset(mg.tensor(flowers.train_x), mg.tensor(flowers.train_y))
loader = mg.data.DataLoader(data, batch_size=16, shuffle=True, num_workers=0)
model = mg.nn.Sequential(mg.nn.Linear(4, 16), mg.nn.ReLU(), mg.nn.Linear(16, 3))
optimizer = mg.optim.Adam(model.parameters(), lr=0.02)
steps = 0
for _ in range(20):
    for x, y in loader:
        optimizer.zero_grad()
        mg.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
correct = model(mg.tensor(flowers.test_x)).argmax(1) == mg.tensor(flowers.test_y)
print(len(data), steps, correct.sum().item() >= 27, "of", len(correct))
""",
        "120 160 True of 30",
    ),
    "a jitted step": (
        """
w = mg.ones(3, requires_grad=True)
optimizer = mg.optim.SGD([w], lr=0.25)
@mg.jit
def update(x):
    optimizer.zero_grad()
    loss = ((w - x) ** 2).sum()
    loss.backward()
    optimizer.step()
    return loss
print([update(mg.zeros(3)).item() for _ in range(4)], w.tolist())
""",
        "[3.0, 0.75, 0.1875, 0.046875] [0.0625, 0.0625, 0.0625]",
    ),
    "a tape": (
        """
a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
tape = mg.Tape(a * b + a, device="numpy")
print(tape.forward({"a": 4.0}))
tape.backward()
print(tape.gradients[a], tape.gradients[b])
""",
        "16.0\n4.0 4.0",
    ),
    "a checkpoint": (
        """
import io
model = mg.nn.Linear(2, 1)
file = io.BytesIO()
try:
    mg.save(model.state_dict(), file)
except mg.errors.MissingPackageError as error:
    print(str(error).splitlines()[0])
""",
        "save and load: the package safetensors is not installed.",
    ),
    "more processes": (
        """
loader = mg.data.DataLoader(mg.data.TensorDataset(mg.ones(4, 1)), num_workers=1)
try:
    next(iter(loader))
except mg.errors.ArgumentError as error:
    print(error)
""",
        "DataLoader: num_workers=1, but a page starts no processes: set num_workers=0.",
    ),
}


@pytest.mark.parametrize(("code", "expected"), TENSORS.values(), ids=TENSORS)
def test_tensors_work_in_a_page(code, expected):
    needs("numpy")
    assert run_in_page(f"import minigrad as mg\n{code}") == f"{expected}\n"


PICTURES = """
from pathlib import Path
import minigrad as mg
from minigrad.cli import main
from minigrad_viz import draw, export, step

a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
y = a * b
y.backward()
svg = draw(y).svg()
print(svg.startswith("<svg"), "-6" in draw(y).text().replace("−", "-"))
player = step(y)
print(type(player).__name__, player.position, len(player._repr_mimebundle_()[0]) >= 2)
export(y, "y.html")
print(Path("y.html").read_text(encoding="utf-8")[:15])
print(main(["tour", "--epochs", "1", "--out", "tour.html"]), "Iris" in Path("tour.html").read_text(encoding="utf-8"))
"""


def test_pictures_players_and_the_tour_work_in_a_page_without_numpy(tmp_path):
    needs("anywidget", "ipywidgets", "tqdm")
    for missing in ((), ("numpy",)):
        printed = run_in_page(PICTURES, *missing, folder=tmp_path).splitlines()
        assert printed[:3] == ["True True", "Player 0 True", "<!doctype html>"]
        assert printed[-1] == "0 True"


def test_values_networks_and_checks_work_in_a_page_without_numpy():
    code = """
import minigrad as mg
from minigrad.lessons import check
model = mg.nn.scalar.MLP([2, 3, 1], seed=0)
y = model([1.0, 2.0])[0]
y.backward()
print(len(model.parameters()), all(p.grad is not None for p in model.parameters()))
check("01.1", {"w": 0.125, "x": 1.0, "b": 0.25})
check("04.1", ...)
"""
    printed = run_in_page(code, "numpy").splitlines()
    assert printed[0] == "13 True"
    assert printed[1].startswith("01.1 right: the sigmoid passes on a quarter of it")
    assert printed[2] == "04.1 not yet: replace the ... with your answer."


EVERY_DAY = ("02", "05")


@pytest.mark.parametrize(
    "lesson",
    [
        pytest.param(path, id=path.stem[:2], marks=[] if path.stem.startswith(EVERY_DAY) else [pytest.mark.nightly])
        for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    ],
)
def test_every_cell_of_a_lesson_runs_in_a_page(lesson, tmp_path, monkeypatch):
    needs("numpy", "IPython", "matplotlib")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    row = page_lessons.run_lesson(lesson)
    if lesson.name.startswith("18"):
        assert row.failures[0] == (
            1, "ModuleNotFoundError", "Lesson 18 looks into PyTorch. Install it first: pip install torch",
        )  # fmt: skip
    else:
        assert row.failures == []
    assert f"| {lesson.stem} | {row.cells - len(row.failures)} of {row.cells} | " in str(row)
