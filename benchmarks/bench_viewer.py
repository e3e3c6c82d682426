"""Claims: the player starts, steps and recomputes within the viewer's time budgets, for 500 to 100,000 nodes.

The time of a call is the CPU time of `step(x)` and its rendering in a notebook, in a fresh process. The page runs in
headless Chromium without a GPU, which starts the player as a notebook does. The time of a start is the median of
several rounds. For steps, frames and the like it is the fastest of several rounds, since a busy machine only makes them
slower; their 95th percentile must stay within the budget. The exit code is 1 if any exceeds it.

    python benchmarks/bench_viewer.py [500 5000 20000 100000]
"""

from __future__ import annotations

import base64
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import minigrad as mg

SOURCES = Path(__file__).parents[1] / "viz" / "frontend" / "src"
PAGE = Path(__file__).with_name("viewer_page.js").read_text(encoding="utf-8")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
MAIN_THREAD_METRICS = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")
SIZES = (500, 5_000, 20_000, 100_000)


# --- typical graphs -----------------------------------------------------------------------------------------------


def mlp(nodes: int) -> Any:
    """Return a network of Values on enough samples for this many nodes, without scopes."""
    generator = random.Random(0)
    model = mg.nn.scalar.MLP([3, 4, 4, 1], seed=0)

    def error() -> mg.Value:
        return (model([generator.uniform(-1, 1) for _ in range(3)])[0] - 1.0) ** 2

    loss = error()
    nodes_per_sample = count_nodes(loss)
    for _ in range(round((nodes - nodes_per_sample) / (count_nodes(loss + error()) - nodes_per_sample))):
        loss = loss + error()
    return loss


def count_nodes(x: Any) -> int:
    """Return the number of nodes in the trace of a graph, including constants."""
    from minigrad_viz import to_trace

    return len(to_trace(x).kinds)


def chain(nodes: int) -> Any:
    """Return a long chain of operations, each applied to the previous result."""
    x, w = mg.Value(0.5, "x"), mg.Value(0.999, "w")
    y = x
    for _ in range(nodes // 2):
        y = (y * w).tanh()
    return y


def net(nodes: int) -> Any:
    """Return a residual network of tensors, each block in a scope."""
    mg.manual_seed(0)
    with mg.record():
        x = mg.randn(8, 8)
        for index in range(nodes // 8):
            w1, b, w2 = (mg.randn(*shape).mul(0.3).detach().requires_grad_() for shape in ((8, 8), (8,), (8, 8)))
            with mg.scope(f"block{index}"):
                x = x + mg.functional.relu(x @ w1 + b) @ w2
        return (x * x).mean()


GRAPHS: dict[str, Callable[[int], Any]] = {"mlp": mlp, "chain": chain, "net": net}


def call(graph: str, nodes: int) -> None:
    """Print the time of a call, and the traits that a page receives. Runs in a child process."""
    x = GRAPHS[graph](nodes)
    import minigrad_viz
    from minigrad_viz.pictures import frontend

    frontend.module()  # an installed package reads it from a file
    start = time.process_time()
    player = minigrad_viz.step(x)
    bundle, _ = player._repr_mimebundle_()
    seconds = time.process_time() - start
    traits = set(player.traits(sync=True)) - {"layout", "comm", "_esm"}
    state = {name: getattr(player, name) for name in traits if not name.startswith("_")}
    state["trace_packed"] = base64.b64encode(player.trace_packed).decode()
    counts = {"nodes": len(player.trace.kinds), "blocks": len(player.trace.blocks)}
    counts["forward"] = sum(kind == "o" for kind in player.trace.kinds)
    counts["sent"] = len(player.trace_text or player.trace_packed)
    counts["stored"] = sum(len(text) for kind, text in bundle.items() if kind.startswith("text/"))
    sys.stdout.write(json.dumps({"seconds": seconds, "state": state, **counts}))


# --- measuring -------------------------------------------------------------------------------------------------------


def run_calls(graph: str, nodes: int, rounds: int) -> tuple[list[float], dict[str, Any]]:
    """Return the seconds of several calls, and the output of the last one."""
    command = [sys.executable, __file__, "call", graph, str(nodes)]
    outputs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(rounds)]
    return [one["seconds"] for one in outputs], outputs[-1]


class BudgetTable:
    """Prints each figure as it is measured."""

    def __init__(self) -> None:
        self.failed = False

    def add(self, claim: str, samples: list[float], unit: str, budget: float | None, *, tail: bool = False) -> None:
        """Print a figure; with `tail` the budget applies to the 95th percentile instead of the median."""
        median, p95 = statistics.median(samples), percentile(samples, 95)
        compared = p95 if tail else median
        line = f"{claim:<58} {median:7.3g} {p95:7.3g} {unit:<3}"
        if budget is None:
            print(line)
            return
        kind = "p95" if tail else "median"
        print(
            f"{line} {kind:>6} < {budget:<5g} {budget / compared:5.1f}x {'' if compared < budget else 'OVER'}".rstrip()
        )
        self.failed |= compared >= budget


def fastest(rounds: list[list[float]]) -> list[float]:
    """Return the fastest time of each step over several rounds."""
    return [min(values) for values in zip(*rounds, strict=True)]


def percentile(samples: list[float], percent: int) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


class PageFactory:
    """Browser pages without network access."""

    def __init__(self, browser: Any, esm: str) -> None:
        self.browser, self.esm = browser, esm

    @contextmanager
    def page(self) -> Iterator[tuple[Any, Any]]:
        """Open an empty page and its DevTools session. Requests and page errors raise at the end."""
        context = self.browser.new_context(viewport={"width": 1300, "height": 900})
        page = context.new_page()
        page.set_default_timeout(120_000)
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: request.url[:5] in ("blob:", "data:") or problems.append(request.url))
        page.set_content("<!doctype html><meta charset=utf-8><body></body>")
        page.add_script_tag(content=PAGE)
        tools = context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time of the main thread
        yield page, tools
        context.close()
        if problems:
            raise RuntimeError(f"the page made requests or failed: {problems[:3]}")

    def start(self, page: Any, call_output: dict[str, Any], **state: Any) -> float:
        """Return the seconds until the player is painted."""
        return (
            float(page.evaluate("([esm, state]) => openPlayer(esm, state)", [self.esm, call_output["state"] | state]))
            / 1e3
        )


def metric(tools: Any, name: str) -> float:
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == name))


def pan_costs(page: Any, tools: Any) -> list[float]:
    """Return the main thread's milliseconds per frame of scrolling, including painting, as means over five frames."""
    frame_costs = []
    for _ in range(16):
        before = metric(tools, "TaskDuration")
        page.evaluate("pan(5)")
        frame_costs.append((metric(tools, "TaskDuration") - before) * 1000 / 5)
    return frame_costs


# --- the budgets -----------------------------------------------------------------------------------------------------


def measure_start(table: BudgetTable, pages: PageFactory, graph: str, nodes: int, budget: float) -> dict[str, Any]:
    """Measure from the call to the painted player."""
    calls, call_output = run_calls(graph, nodes, 3 if nodes > 20_000 else 5)
    page_seconds, main_thread_seconds = [], []
    for _ in range(len(calls)):
        with pages.page() as (page, tools):
            before = metric(tools, "TaskDuration")
            page_seconds.append(pages.start(page, call_output))
            main_thread_seconds.append(metric(tools, "TaskDuration") - before)
            visible = page.evaluate("seen()")
            tools.send("HeapProfiler.collectGarbage")
            heap = metric(tools, "JSHeapUsedSize")
    name = f"{graph}, {call_output['nodes']:,} nodes"
    table.add(f"{name}: the call", calls, "s", None)
    table.add(f"{name}: the page, its main thread", main_thread_seconds, "s", None)
    in_page = nodes in (5_000, 20_000)  # their budgets cover the page only, others start at the call
    table.add(f"{name}: the page, {visible} visible", page_seconds, "s", budget if in_page else None)
    totals = [x + y for x, y in zip(calls, page_seconds, strict=True)]
    table.add(f"{name}: from the call to the painted player", totals, "s", None if in_page else budget)
    print(
        f"    {call_output['sent'] / 1e6:.2f} MB sent, {call_output['stored'] / 1e6:.2f} MB stored, {heap / 1e6:.0f} "
        "MB of heap"
    )
    if visible > 150 and nodes > 500:
        raise RuntimeError(f"{visible} items are visible of {name}: more than 150")
    return call_output


def measure_steps(
    table: BudgetTable, pages: PageFactory, call_output: dict[str, Any], name: str, budget: float
) -> None:
    """Measure steps with every block open."""
    rounds = []
    with pages.page() as (page, tools):
        pages.start(page, call_output, expanded=list(range(call_output["blocks"])))
        steps = "([from, count]) => stepCosts(from, count)"
        page.evaluate(steps, [0, 30])  # warm up the JavaScript compiler
        before = sum(metric(tools, part) for part in MAIN_THREAD_METRICS)
        for _ in range(5):
            rounds.append(page.evaluate(steps, [max(0, call_output["forward"] - 50), 100]))
        busy = (sum(metric(tools, part) for part in MAIN_THREAD_METRICS) - before) * 1000 / 500
        shown = page.evaluate("seen()") or call_output["nodes"]
    table.add(f"{name}: a step, CPU time, mean", [busy], "ms", None)
    table.add(f"{name}: a step, {shown:,} visible", fastest(rounds), "ms", budget, tail=True)


def measure_expansion(table: BudgetTable, pages: PageFactory, call_output: dict[str, Any], name: str) -> None:
    rounds = []
    for _ in range(3):
        with pages.page() as (page, _):
            pages.start(page, call_output)
            rounds.append(
                page.evaluate("([all, most]) => expandCosts(all, most)", [list(range(call_output["blocks"])), 12])
            )
    table.add(f"{name}: open a block", fastest(rounds), "ms", 100, tail=True)


def measure_what_if(table: BudgetTable, pages: PageFactory, call_output: dict[str, Any], name: str) -> None:
    with pages.page() as (page, _):
        pages.start(page, call_output)
        leaf = next(iter(call_output["state"]["leaves"].values()))[0]
        values = [k / 20 for k in range(40)]
        drawn_rounds = [page.evaluate("([leaf, values]) => setCosts(leaf, values)", [leaf, values]) for _ in range(4)][
            1:
        ]
    context = pages.browser.new_context()
    context.route("http://player.test/**", serve_source)
    page = context.new_page()
    page.goto("http://player.test/")
    page.add_script_tag(content=PAGE)
    recompute_rounds = [
        page.evaluate("([state, rounds]) => recomputeCosts(state, rounds)", [call_output["state"], 20])
        for _ in range(4)
    ]
    context.close()
    table.add(f"{name}: what-if, recomputed", fastest(recompute_rounds[1:]), "ms", 1, tail=True)
    table.add(f"{name}: what-if, recomputed and drawn", fastest(drawn_rounds), "ms", 16, tail=True)


def serve_source(route: Any) -> None:
    """Serve the source modules from a fictitious address, since the bundle does not export its engine."""
    name = route.request.url.removeprefix("http://player.test/")
    body = (SOURCES / name).read_text(encoding="utf-8") if name else "<!doctype html>"
    route.fulfill(body=body, content_type="text/javascript" if name else "text/html")


def measure_panning(
    table: BudgetTable, pages: PageFactory, call_output: dict[str, Any], name: str, *, everything: bool
) -> None:
    with pages.page() as (page, tools):
        pages.start(page, call_output, **({"expanded": list(range(call_output["blocks"]))} if everything else {}))
        page.evaluate("pan(10)")
        rounds = [pan_costs(page, tools) for _ in range(3)]
    table.add(f"{name}: pan a frame, {'all' if everything else 'closed blocks'}", fastest(rounds), "ms", 16, tail=True)


def measure(table: BudgetTable, pages: PageFactory, sizes: list[int]) -> None:
    budgets = {500: 0.8, 5_000: 0.5, 20_000: 1.0, 100_000: 3.0}
    for graph, size in [
        ("mlp", 500), ("net", 500), ("mlp", 5_000), ("net", 5_000), ("mlp", 20_000), ("mlp", 100_000),
        ("chain", 100_000),
    ]:  # fmt: skip
        if size not in sizes:
            continue
        call_output = measure_start(table, pages, graph, size, budgets[size])
        name = f"{graph}, {call_output['nodes']:,} nodes"
        if size <= 5_000:
            measure_steps(table, pages, call_output, name, 4 if size == 500 else 16)
        if size == 5_000:
            measure_expansion(table, pages, call_output, name)
            measure_panning(table, pages, call_output, name, everything=True)
        if size == 5_000 and graph == "mlp":
            measure_what_if(table, pages, call_output, name)
        if size == 20_000:
            measure_panning(table, pages, call_output, name, everything=False)


def main() -> int:
    if sys.argv[1:2] == ["call"]:
        call(sys.argv[2], int(sys.argv[3]))
        return 0
    from playwright.sync_api import sync_playwright

    from minigrad_viz.pictures import frontend

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    esm = frontend.module()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        load = " ".join(f"{x:.1f}" for x in os.getloadavg())
        print(
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
            f"Chromium {browser.version}, load {load}"
        )
        size = len(esm.encode())
        print(f"The module: {size / 1024:.0f} KB, {len(zlib.compress(esm.encode(), 9)) / 1024:.0f} KB compressed.")
        print(f"{'':<58} {'median':>7} {'p95':>7}       budget     margin")
        table = BudgetTable()
        measure(table, PageFactory(browser, esm), [int(one) for one in sys.argv[1:]] or list(SIZES))
        browser.close()
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
