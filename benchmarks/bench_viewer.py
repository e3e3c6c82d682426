"""Claims: the player starts, steps and recomputes within the viewer's time budgets, for 500 to 100,000 nodes.

A call is `step(x)` and its rendering in a notebook, in a fresh process, in seconds of CPU time; the page is a headless
Chromium without a GPU, which starts the player as a notebook does. A start is the median of several rounds. Steps,
frames and the like are each the fastest of several rounds, since a busy machine only makes them slower; their 95th
percentile must stay within the budget. The exit code is 1 if any exceeds it.

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
WORK = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")
SIZES = (500, 5_000, 20_000, 100_000)


# --- typical graphs -----------------------------------------------------------------------------------------------


def mlp(nodes: int) -> Any:
    """Return a network of Values on enough samples for this many nodes, without scopes."""
    generator = random.Random(0)
    model = mg.nn.scalar.MLP([3, 4, 4, 1], seed=0)

    def error() -> mg.Value:
        return (model([generator.uniform(-1, 1) for _ in range(3)])[0] - 1.0) ** 2

    loss = error()
    one = boxes(loss)
    for _ in range(round((nodes - one) / (boxes(loss + error()) - one))):
        loss = loss + error()
    return loss


def boxes(x: Any) -> int:
    """Return the number of nodes in the trace of a graph, including constants."""
    from minigrad_viz import to_trace

    return len(to_trace(x).kinds)


def chain(nodes: int) -> Any:
    """Return one long computation, each value computed from the last."""
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
        for at in range(nodes // 8):
            w1, b, w2 = (mg.randn(*shape).mul(0.3).detach().requires_grad_() for shape in ((8, 8), (8,), (8, 8)))
            with mg.scope(f"block{at}"):
                x = x + mg.functional.relu(x @ w1 + b) @ w2
        return (x * x).mean()


GRAPHS: dict[str, Callable[[int], Any]] = {"mlp": mlp, "chain": chain, "net": net}


def call(graph: str, nodes: int) -> None:
    """In a child process: print the time of a call, and the traits that a page receives."""
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


def called(graph: str, nodes: int, rounds: int) -> tuple[list[float], dict[str, Any]]:
    """Return the seconds of several calls, and the output of the last one."""
    command = [sys.executable, __file__, "call", graph, str(nodes)]
    made = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(rounds)]
    return [one["seconds"] for one in made], made[-1]


class Table:
    """Prints each figure as it is measured."""

    def __init__(self) -> None:
        self.failed = False

    def add(self, claim: str, samples: list[float], unit: str, budget: float | None, *, tail: bool = False) -> None:
        """Print a figure; with `tail` the budget applies to the 95th percentile instead of the median."""
        middle, high = statistics.median(samples), percentile(samples, 95)
        judged = high if tail else middle
        said = f"{claim:<58} {middle:7.3g} {high:7.3g} {unit:<3}"
        if budget is None:
            print(said)
            return
        which = "p95" if tail else "median"
        print(f"{said} {which:>6} < {budget:<5g} {budget / judged:5.1f}x {'' if judged < budget else 'OVER'}".rstrip())
        self.failed |= judged >= budget


def quickest(rounds: list[list[float]]) -> list[float]:
    """Return the fastest time of each step over several rounds."""
    return [min(same) for same in zip(*rounds, strict=True)]


def percentile(samples: list[float], share: int) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


class Pages:
    """Browser pages without network access."""

    def __init__(self, browser: Any, esm: str) -> None:
        self.browser, self.esm = browser, esm

    @contextmanager
    def page(self) -> Iterator[tuple[Any, Any]]:
        """Open an empty page and its DevTools session. Requests and page errors raise at the end."""
        context = self.browser.new_context(viewport={"width": 1300, "height": 900})
        page = context.new_page()
        page.set_default_timeout(120_000)
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: request.url[:5] in ("blob:", "data:") or wrong.append(request.url))
        page.set_content("<!doctype html><meta charset=utf-8><body></body>")
        page.add_script_tag(content=PAGE)
        tools = context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time of the main thread
        yield page, tools
        context.close()
        if wrong:
            raise RuntimeError(f"the page made requests or failed: {wrong[:3]}")

    def start(self, page: Any, made: dict[str, Any], **state: Any) -> float:
        """Return the seconds until the player is painted."""
        return float(page.evaluate("([esm, state]) => openPlayer(esm, state)", [self.esm, made["state"] | state])) / 1e3


def metric(tools: Any, name: str) -> float:
    found = tools.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in found if one["name"] == name))


def pans(page: Any, tools: Any) -> list[float]:
    """Return the milliseconds of the main thread per frame of scrolling, painting included: means of five frames."""
    found = []
    for _ in range(16):
        before = metric(tools, "TaskDuration")
        page.evaluate("pan(5)")
        found.append((metric(tools, "TaskDuration") - before) * 1000 / 5)
    return found


# --- the budgets -----------------------------------------------------------------------------------------------------


def starting(table: Table, pages: Pages, graph: str, nodes: int, budget: float) -> dict[str, Any]:
    """Measure from the call to the painted player."""
    calls, made = called(graph, nodes, 3 if nodes > 20_000 else 5)
    opened, busy = [], []
    for _ in range(len(calls)):
        with pages.page() as (page, tools):
            before = metric(tools, "TaskDuration")
            opened.append(pages.start(page, made))
            busy.append(metric(tools, "TaskDuration") - before)
            visible = page.evaluate("seen()")
            tools.send("HeapProfiler.collectGarbage")
            heap = metric(tools, "JSHeapUsedSize")
    name = f"{graph}, {made['nodes']:,} nodes"
    table.add(f"{name}: the call", calls, "s", None)
    table.add(f"{name}: the page, its main thread", busy, "s", None)
    in_page = nodes in (5_000, 20_000)  # their budgets cover the page only, others start at the call
    table.add(f"{name}: the page, {visible} visible", opened, "s", budget if in_page else None)
    whole = [x + y for x, y in zip(calls, opened, strict=True)]
    table.add(f"{name}: from the call to the painted player", whole, "s", None if in_page else budget)
    print(f"    {made['sent'] / 1e6:.2f} MB sent, {made['stored'] / 1e6:.2f} MB stored, {heap / 1e6:.0f} MB of heap")
    if visible > 150 and nodes > 500:
        raise RuntimeError(f"{visible} items are visible of {name}: more than 150")
    return made


def stepping(table: Table, pages: Pages, made: dict[str, Any], name: str, budget: float) -> None:
    """Measure steps with every block open."""
    found = []
    with pages.page() as (page, tools):
        pages.start(page, made, expanded=list(range(made["blocks"])))
        steps = "([from, count]) => stepCosts(from, count)"
        page.evaluate(steps, [0, 30])  # warm up the JavaScript compiler
        before = sum(metric(tools, part) for part in WORK)
        for _ in range(5):
            found.append(page.evaluate(steps, [max(0, made["forward"] - 50), 100]))
        busy = (sum(metric(tools, part) for part in WORK) - before) * 1000 / 500
        shown = page.evaluate("seen()") or made["nodes"]
    table.add(f"{name}: a step, CPU time, mean", [busy], "ms", None)
    table.add(f"{name}: a step, {shown:,} visible", quickest(found), "ms", budget, tail=True)


def expanding(table: Table, pages: Pages, made: dict[str, Any], name: str) -> None:
    found = []
    for _ in range(3):
        with pages.page() as (page, _):
            pages.start(page, made)
            found.append(page.evaluate("([all, most]) => expandCosts(all, most)", [list(range(made["blocks"])), 12]))
    table.add(f"{name}: open a block", quickest(found), "ms", 100, tail=True)


def what_if(table: Table, pages: Pages, made: dict[str, Any], name: str) -> None:
    with pages.page() as (page, _):
        pages.start(page, made)
        leaf = next(iter(made["state"]["leaves"].values()))[0]
        values = [k / 20 for k in range(40)]
        drawn = [page.evaluate("([leaf, values]) => setCosts(leaf, values)", [leaf, values]) for _ in range(4)][1:]
    context = pages.browser.new_context()
    context.route("http://player.test/**", served)
    page = context.new_page()
    page.goto("http://player.test/")
    page.add_script_tag(content=PAGE)
    found = [page.evaluate("([state, rounds]) => recomputeCosts(state, rounds)", [made["state"], 20]) for _ in range(4)]
    context.close()
    table.add(f"{name}: what-if, recomputed", quickest(found[1:]), "ms", 1, tail=True)
    table.add(f"{name}: what-if, recomputed and drawn", quickest(drawn), "ms", 16, tail=True)


def served(route: Any) -> None:
    """Serve the source modules from a fictitious address, since the bundle does not export its engine."""
    name = route.request.url.removeprefix("http://player.test/")
    body = (SOURCES / name).read_text(encoding="utf-8") if name else "<!doctype html>"
    route.fulfill(body=body, content_type="text/javascript" if name else "text/html")


def panning(table: Table, pages: Pages, made: dict[str, Any], name: str, *, everything: bool) -> None:
    with pages.page() as (page, tools):
        pages.start(page, made, **({"expanded": list(range(made["blocks"]))} if everything else {}))
        page.evaluate("pan(10)")
        found = [pans(page, tools) for _ in range(3)]
    table.add(f"{name}: pan a frame, {'all' if everything else 'closed blocks'}", quickest(found), "ms", 16, tail=True)


def measure(table: Table, pages: Pages, sizes: list[int]) -> None:
    budgets = {500: 0.8, 5_000: 0.5, 20_000: 1.0, 100_000: 3.0}
    for graph, size in [
        ("mlp", 500), ("net", 500), ("mlp", 5_000), ("net", 5_000), ("mlp", 20_000), ("mlp", 100_000),
        ("chain", 100_000),
    ]:  # fmt: skip
        if size not in sizes:
            continue
        made = starting(table, pages, graph, size, budgets[size])
        name = f"{graph}, {made['nodes']:,} nodes"
        if size <= 5_000:
            stepping(table, pages, made, name, 4 if size == 500 else 16)
        if size == 5_000:
            expanding(table, pages, made, name)
            panning(table, pages, made, name, everything=True)
        if size == 5_000 and graph == "mlp":
            what_if(table, pages, made, name)
        if size == 20_000:
            panning(table, pages, made, name, everything=False)


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
        table = Table()
        measure(table, Pages(browser, esm), [int(one) for one in sys.argv[1:]] or list(SIZES))
        browser.close()
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
