"""Claim: a process computes with tensors soon after it starts, sooner than one that imports PyTorch.

Each figure is the time from before the import until the first result, the median over fresh processes. minigrad is
installed from a wheel into a new environment, which downloads NumPy and Taichi; `--python` names an interpreter that
has minigrad installed instead. With an empty cache each process compiles its kernels; with a warm cache an earlier
process has compiled them. In a new installation the modules are not compiled either, and the operating system has to
read the files again. Results must agree with PyTorch's.

    python benchmarks/bench_start.py

needs the extra 'parity', and an idle core.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from report import row

PEER = "torch 2.13.0"
ROOT = Path(__file__).resolve().parents[1]

HEAD = """
import json, time
start, seconds = time.perf_counter(), {{}}
def finish(name):
    seconds[name] = time.perf_counter() - start
import {library} as lib
finish("import")
"""
OPERATION = """
x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x * 2 + 1).sum()
results = [y.item()]
finish("operation")
y.backward()
results += x.grad.tolist()
finish("backward")
"""
STEP = """
model = lib.nn.Sequential(lib.nn.Linear(64, 32), lib.nn.ReLU(), lib.nn.Linear(32, 10))
with lib.no_grad():
    for p in model.parameters():
        p.copy_((lib.arange(p.numel()) % 7 - 3).reshape(p.shape) * 0.03)
optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, y = (lib.arange(32 * 64) % 11).reshape(32, 64) * 0.1, lib.arange(32) % 10
loss = lib.nn.functional.cross_entropy(model(x), y)
loss.backward()
optimizer.step()
results = [loss.item(), *[p.square().sum().item() for p in model.parameters()]]
finish("step")
"""
TAIL = """
print(json.dumps([seconds, results]))
"""


class Library(NamedTuple):
    """An interpreter with a library, and the environment variables of its processes."""

    name: str
    python: str
    variables: dict[str, str]

    def run(self, code: str, cache: Path) -> tuple[dict[str, float], list[float]]:
        """Run `code` in a fresh process with kernels cached in `cache`. Return seconds by name, and the results."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TI_"))}
        environment = {**kept, **self.variables, "HOME": str(cache), "TI_OFFLINE_CACHE_FILE_PATH": str(cache)}
        command = [self.python, "-c", HEAD.format(library=self.name) + code + TAIL]
        finished = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=cache)
        seconds, results = json.loads(finished.stdout)
        return seconds, results


def install(folder: Path) -> str:
    """Install minigrad from a wheel into a new environment, and return its interpreter."""
    python = str(folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", str(folder / "venv")],
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)],
        [*pip, "install", "--find-links", str(folder), "seegrad"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return python


def make_new(site_packages: Path) -> None:
    """Make an installation new: delete compiled modules, and drop files from the memory of the operating system."""
    for path in site_packages.rglob("__pycache__"):
        shutil.rmtree(path)
    for path in site_packages.rglob("*"):
        if path.is_file() and hasattr(os, "posix_fadvise"):
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Case(NamedTuple):
    """A measured process: its code, its library, whether its cache is empty, and what precedes each run."""

    code: str
    library: Library
    is_cold: bool = False
    before: Callable[[], None] = lambda: None


def measure(cases: dict[str, Case], rounds: int, folder: Path) -> tuple[dict[str, dict[str, float]], float]:
    """Return the median seconds of each case, and how much the results of equal code differ."""
    caches = {name: folder / f"cache {k}" for k, name in enumerate(cases)}
    times: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    results: dict[str, list[float]] = {}
    worst = 0.0
    for name, case in cases.items():  # consecutively, so that no library slows the start of the next
        for turn in range(rounds + 1):  # the first process fills the cache
            if case.is_cold:
                shutil.rmtree(caches[name], ignore_errors=True)
            caches[name].mkdir(exist_ok=True)
            case.before()
            seconds, found = case.library.run(case.code, caches[name])
            expected = results.setdefault(case.code, found)
            worst = max(worst, *(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(found, expected, strict=True)))
            if turn:
                times[name].append(seconds)
    return {
        name: {key: statistics.median(one[key] for one in found) for key in found[0]} for name, found in times.items()
    }, worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", help="an interpreter that has minigrad installed from a wheel")
    options = parser.parse_args()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = options.python or install(folder)
        query = "import sysconfig; print(sysconfig.get_path('platlib'))"
        site_packages = Path(subprocess.run([python, "-c", query], capture_output=True, text=True).stdout.strip())
        wheel, torch = Library("minigrad", python, {}), Library("torch", sys.executable, {})
        checkout = Library("minigrad", sys.executable, {"PYTHONPATH": str(ROOT)})
        cases = {
            "torch": Case(OPERATION, torch),
            "warm": Case(OPERATION, wheel),
            "checkout": Case(OPERATION, checkout),
            "cold": Case(OPERATION, wheel, is_cold=True),
            "torch step": Case(STEP, torch),
            "warm step": Case(STEP, wheel),
            "cold step": Case(STEP, wheel, is_cold=True),
            "new": Case(OPERATION, wheel, is_cold=True, before=lambda: make_new(site_packages)),
        }
        seconds, worst = measure(cases, options.rounds, folder)
    return 1 if any(print_rows(seconds, worst)) else 0


def print_rows(seconds: dict[str, dict[str, float]], worst: float) -> list[bool]:
    """Print a row for each figure. Return whether they miss their limits."""
    missed = []
    for label, case, key, limit in (
        ("import minigrad, from a wheel", "warm", "import", "0.15"),
        ("import minigrad, from a checkout", "checkout", "import", "0.15"),
        ("import and first operation, warm cache", "warm", "operation", "0.5"),
        ("import, first operation and backward, warm cache", "warm", "backward", None),
        ("import and first operation, empty cache", "cold", "operation", "1.5"),
        ("import, first operation and backward, empty cache", "cold", "backward", None),
        ("import and first operation, new installation", "new", "operation", "1.5"),
        ("import and first training step of an MLP, warm cache", "warm step", "step", None),
        ("import and first training step of an MLP, empty cache", "cold step", "step", None),
    ):
        peer = seconds["torch step" if key == "step" else "torch"][key]
        comment = "" if case == "new" else f"{PEER} {peer:.2f} s, ratio {seconds[case][key] / peer:.2f}"
        missed.append(row(label, f"{seconds[case][key]:.2f} s", limit, comment=comment))
    missed.append(row("largest relative difference of the results", f"{worst:.0e}", is_wrong=worst > 1e-4))
    return missed


if __name__ == "__main__":
    sys.exit(main())
