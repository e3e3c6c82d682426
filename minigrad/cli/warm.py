"""``minigrad doctor --warm``: compile the most common kernels into the disk cache, for the first operations."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

from minigrad.cli.errors import CommandError
from minigrad.core.errors import printable

__all__ = ["CACHE_WARNING", "warm"]

CACHE_WARNING = "Compiled kernels cannot be cached in "
# Taichi writes its disk cache when a process ends, hence the process of its own.
PROGRAM = """
import minigrad as mg
from minigrad import nn
from minigrad.backends.arrays import on_launch

def compute():
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = mg.rand(3, requires_grad=True)
    (x * 2 + 1).sum().backward()
    ((x - y / 2) * (x + y) - 1).square().mean().backward()
    for function in (mg.exp, mg.tanh, mg.sigmoid, mg.relu):
        function(x).sum().backward()
    (x.softmax(0) @ y).backward()

def train(model, loss_function, target, make_optimizer):
    optimizer = make_optimizer(model.parameters(), lr=0.1)
    loss_function(model(mg.randn(32, 64)), target).backward()
    optimizer.step()

mg.set_default_device("cpu")
kernels = []
with on_launch(kernels.append):
    compute()
    for activation in (nn.ReLU(), nn.Tanh()):
        model = nn.Sequential(nn.Linear(64, 32), activation, nn.Linear(32, 10))
        train(model, nn.functional.cross_entropy, mg.arange(32) % 10, mg.optim.SGD)
        train(model, nn.functional.mse_loss, mg.randn(32, 10), mg.optim.Adam)

import taichi
print(len(set(kernels)), taichi.lang.impl.current_cfg().offline_cache_file_path)
"""


def warm() -> int:
    """Compile the kernels and print how many there are, and where they are cached. Return exit code 1 if they cannot be
    cached. Raises CommandError if they cannot be compiled."""
    if find_spec("numpy") is None or find_spec("taichi") is None:
        print("Taichi is not installed, so there are no kernels to compile.")
        return 0
    child = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    if CACHE_WARNING in child.stderr:
        print(printable(CACHE_WARNING + child.stderr.partition(CACHE_WARNING)[2].partition("\n")[0]), file=sys.stderr)
        return 1
    if child.returncode:
        lines = child.stderr.strip().splitlines() or [f"the process exited with code {child.returncode}"]
        raise CommandError(f"minigrad doctor --warm: {lines[-1]}")
    count, _, folder = child.stdout.strip().partition(" ")
    print(printable(f"{count} kernels are compiled, and cached in {folder}"))
    return 0
