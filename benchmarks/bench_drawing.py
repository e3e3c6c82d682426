"""Claims: `import minigrad` takes less than 0.15 s, and `draw` of a graph of 20,000 nodes less than 3 s.

Each time is the median over several child processes. If Graphviz is installed, the time that `dot` takes to lay out a
graph a tenth as large is printed for comparison.

    python benchmarks/bench_drawing.py
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import row

BUILD = """
import json, random, time
import minigrad as mg
def network(nodes):
    generator = random.Random(0)
    model = mg.nn.scalar.MLP([3, 8, 8, 1], seed=0)
    loss = mg.Value(0.0)
    while len(mg.topological([loss])) < nodes:
        for _ in range(10):
            x = [generator.uniform(-1, 1) for _ in range(3)]
            loss = loss + (model(x)[0] - 1.0) ** 2
    return loss
"""
IMPORT = (
    "import json, time; start = time.perf_counter(); import minigrad; print(json.dumps(time.perf_counter() - start))"
)
DRAW = """
import minigrad_viz
loss = network(20_000)
start = time.perf_counter()
bundle = minigrad_viz.draw(loss)._repr_mimebundle_()
print(json.dumps(time.perf_counter() - start))
"""
SOURCE = "import minigrad_viz; print(minigrad_viz.to_graphviz(network(2_000)).source)"


def child(code: str) -> str:
    """Return the output of `code` in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def median(code: str, rounds: int) -> float:
    """Return the median of the seconds that `code` prints, over `rounds` child processes."""
    return statistics.median(json.loads(child(code)) for _ in range(rounds))


def dot_seconds() -> float:
    """Return the seconds that dot takes to lay out a tenth of the graph."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "graph.dot"
        source.write_text(child(BUILD + SOURCE), encoding="utf-8")
        start = time.perf_counter()
        subprocess.run(["dot", "-Tplain", "-o", os.devnull, str(source)], check=True)
        return time.perf_counter() - start


def main() -> int:
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    start, draw = median(IMPORT, 7), median(BUILD + DRAW, 3)
    missed = row("import minigrad", f"{start:.3f} s", "0.15") | row("draw of 20,000 nodes", f"{draw:.2f} s", "3")
    if shutil.which("dot"):
        seconds = dot_seconds()
        comment = f"{seconds / draw:.1f} x as long for a tenth of the graph"
        row("dot, layout of 2,000 nodes", f"{seconds:.2f} s", comment=comment)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
