"""What importing minigrad loads, and which features work without optional packages."""

import subprocess
import sys
from pathlib import Path

import minigrad
from needs import needs

ROOT = Path(minigrad.__file__).parents[1]


def run_python(code: str) -> str:
    child = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr
    return child.stdout


def test_importing_minigrad_loads_neither_numpy_nor_taichi_nor_the_viewer():
    loaded = run_python(f"import sys; sys.path.insert(0, {str(ROOT)!r}); import minigrad; print(*sys.modules)").split()
    assert "minigrad.core.value" in loaded
    assert not {
        "numpy",
        "taichi",
        "graphviz",
        "ipywidgets",
        "anywidget",
        "safetensors",
        "ray",
        "tqdm",
        "minigrad_viz",
        "IPython",
    } & set(loaded)


def test_minigrad_works_without_numpy_and_taichi():
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
for name in ("numpy", "taichi", "graphviz", "ipywidgets", "anywidget", "tqdm"):
    sys.modules[name] = None  # importing it raises ImportError
import minigrad as mg
model = mg.nn.scalar.MLP([2, 3, 1], seed=0)
y = model([1.0, 2.0])[0]
y.backward()
print(mg.Value(2.0) * 3, all(p.grad is not None for p in model.parameters()))
"""
    assert run_python(code) == "Value(6.0) True\n"


def test_without_taichi_cpu_is_an_alias_of_numpy():
    needs("numpy")
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.modules["taichi"] = None
import minigrad as mg
x = mg.ones(2, device="cpu") + mg.ones(2, device=mg.device("cpu:0"))
mg.set_default_device("cpu")
y = mg.tensor([0.0, 1.0], requires_grad=True)
y.exp().sum().backward()
print(x.device, mg.zeros(2).device, mg.device("cpu"), x.cpu() is x, x)
print(y.grad[0].item(), mg.kernel_source("tanh").splitlines()[1])
"""
    assert run_python(code) == "numpy numpy numpy True tensor([2., 2.])\n1.0 numpy.tanh\n"


def test_the_first_operation_loads_taichi_and_contacts_no_server():
    needs("taichi")
    code = f"""
import sys, threading
sys.path.insert(0, {str(ROOT)!r})
import minigrad as mg
x = mg.tensor([1.0, 2.0])
loaded, threads = "taichi" in sys.modules, []
threading.Thread.start = threads.append  # one would ask Taichi's server for a newer version
print(x + 1, loaded, "taichi" in sys.modules, threads)
"""
    assert run_python(code) == "tensor([2., 3.]) False True []\n"
