"""Claim: a training step takes at most twice PyTorch's time, for a convolutional network and for a small GPT.

The models are those of examples/: the perceptron and the convolutional network read digits of 8x8 pixels, 50 at a time,
so that an epoch has 30 steps; the GPT, of 4 layers, 128 wide, reads 8 contexts of 128 characters, 390 steps an epoch. A
step consists of forward pass, backward pass and AdamW's update. Both libraries start with the same weights, and the
losses of their first ten steps must agree. bench_eager.py describes the timing.

    python benchmarks/bench_train.py

needs the extra 'parity', and two idle cores: PyTorch's threads spin while they wait for each other, so that with a
third busy process its steps take up to 50 times as long. --passive lets them sleep (OMP_WAIT_POLICY=PASSIVE).
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import bench_eager
from report import row

HEAD = """
nn = lib.nn
losses = []
def weights(model):
    with lib.no_grad():
        for p in model.parameters():
            x = generator.normal(size=p.shape).astype("float32")
            p.copy_(lib.tensor(x * (x.size / len(x)) ** -0.5 if x.ndim > 1 else 1 + x * 0.1))
    return model
def numbers(high, *shape):
    return lib.tensor(generator.integers(high, size=shape))
"""

TAIL = """
optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)
def step():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).view(-1, classes), y.view(-1))
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
    return losses[:10]
"""

MLP = """
classes = 10
x, y = leaf(50, 1, 8, 8).detach(), numbers(10, 50)
model = weights(nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
"""

CNN = """
classes = 10
x, y = leaf(50, 1, 8, 8).detach(), numbers(10, 50)
model = weights(nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(512, 10),
))
"""

GPT = """
classes, width, heads = 120, 128, 4
x, y = numbers(classes, BATCH, 128), numbers(classes, BATCH, 128)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (y.view(n, t, heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.norm2(x))
class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters, self.places = nn.Embedding(classes, width), nn.Embedding(128, width)
        self.blocks = nn.Sequential(*[Block() for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes, bias=False)
        self.head.weight = self.characters.weight
    def forward(self, x):
        return self.head(self.norm(self.blocks(self.characters(x) + self.places(lib.arange(x.shape[1])))))
model = weights(GPT())
"""

PARTS = {
    "MLP 64-128-10, 50 digits": (MLP, None, 10),
    "CNN of two convolutions, 50 digits": (CNN, 2.0, 4),
    "GPT 4x128, 8 contexts of 128": (GPT.replace("BATCH", "8"), 2.0, 1),
    "GPT 4x128, 16 contexts of 128": (GPT.replace("BATCH", "16"), 2.0, 1),
}


def measure_model(name: str, rounds: int, steps: int) -> bool:
    """Measure one model; return whether it misses its limit, or the losses differ."""
    code, bar, repeats = PARTS[name]
    seconds, worst = bench_eager.measure(HEAD + code + TAIL, ("minigrad", "torch"), rounds, 10 + steps * repeats)
    ratio = seconds["minigrad"] / seconds["torch"]
    times = f"{seconds['minigrad'] * 1e3:.2f} ms a step, torch {seconds['torch'] * 1e3:.2f}"
    label, bars = f"{name}, minigrad's time / {bench_eager.PEER}'s", None if bar is None else f"{bar:.2f}"
    return row(label, f"{ratio:.2f}", bars, is_wrong=worst > 1e-4, comment=f"{times}; losses differ by {worst:.0e}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="after 10 warm-up steps; smaller models run more")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--passive", action="store_true", help="for a busy machine: PyTorch's threads sleep while waiting"
    )
    options = parser.parse_args()
    os.environ["MINIGRAD_DEVICE"] = options.device  # read by the children
    if options.passive:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    passive = ", PyTorch's threads sleep while waiting" if options.passive else ""
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, on {options.device}{passive}")
    missed = [measure_model(name, options.rounds, options.steps) for name in PARTS]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
