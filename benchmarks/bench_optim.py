"""Claim: an optimizer's step takes at most twice the time of PyTorch's default implementation.

The parameters are those of a GPT of 4 layers, 128 wide, with a context of 128 and 96 characters: 52 tensors, 0.8 M
elements. bench_eager.py describes the timing; `foreach` is PyTorch's default, `fused` its fused kernel.

    python benchmarks/bench_optim.py

needs the extra 'parity', and two idle cores.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import bench_eager

CODE = """
w = 128
shapes = [(96, w), (w, w)]
for _ in range(4):
    shapes += [(w,), (w,), (3 * w, w), (3 * w,), (w, w), (w,), (w,), (w,), (4 * w, w), (4 * w,), (w, 4 * w), (w,)]
parameters = [leaf(*shape) for shape in [*shapes, (w,), (w,)]]
for p in parameters:
    p.grad = leaf(*p.shape).detach()
optimizer = lib.optim.NAME(parameters, OPTIONS)
def step():
    optimizer.step()
    return parameters
"""
PARTS = [
    ("SGD", "lr=1e-3, momentum=0.9"),
    ("Adam", "lr=1e-3"),
    ("AdamW", "lr=1e-3"),
    ("RMSprop", "lr=1e-3"),
]


def measure_optimizer(name: str, options: str, fused: bool, rounds: int, steps: int) -> bool:
    """Measure one optimizer; return whether it misses its limit."""
    code = CODE.replace("NAME", name).replace("OPTIONS", options)
    if fused:
        code = code.replace(options, f"{options}, **({{'fused': True}} if library == 'torch' else {{}})")
    seconds, worst = bench_eager.measure(code, ("minigrad", "torch"), rounds, steps)
    label = (
        f"{name}({options}), {seconds['minigrad'] * 1e3:.1f} ms, {bench_eager.PEER}, {'fused' if fused else 'foreach'}"
    )
    return bench_eager.print_ratio(label, seconds["minigrad"] / seconds["torch"], 4.0 if fused else 2.0, worst)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=110, help="including 10 warm-up steps")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    os.environ["MINIGRAD_DEVICE"] = options.device  # read by the children
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, on {options.device}")
    missed = [measure_optimizer(*one, False, options.rounds, options.steps) for one in PARTS]
    missed.append(measure_optimizer("Adam", "lr=1e-3", True, options.rounds, options.steps))
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
