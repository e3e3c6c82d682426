"""The viewer in marimo: drawings and players are displayed, follow marimo's sliders, and marimo's cells follow them."""

import os
import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from minigrad_viz.pictures.dashboard import WIDTH
from needs import needs
from web_server import free_ports, serving

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[3] / "examples" / "marimo" / "chain_rule.py"


@contextmanager
def running(notebook, folder):
    """Run a notebook with ``marimo run``, without the user's settings; yield its address."""
    needs("chromium", "playwright")
    needs("marimo")
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "marimo", "-q", "run", "--headless", "--no-token", f"--port={port}", notebook]
    env = os.environ | {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "CACHE", "STATE", "DATA")}
    with serving(command, f"http://127.0.0.1:{port}/health", env, folder):
        yield f"127.0.0.1:{port}"


def open_notebook(watched, address):
    page = watched(width=1200, height=2400, servers=(address,))
    page.goto(f"http://{address}")
    return page


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The address of the example. Each page that opens it has a kernel of its own."""
    folder = tmp_path_factory.mktemp("example")
    notebook = shutil.copy(EXAMPLE, folder)  # marimo writes a cache beside a notebook
    with running(notebook, folder) as address:
        yield address


def sliders(page):
    """Return the sliders of marimo; those of the player are inputs."""
    return page.locator("marimo-slider [role=slider]")


def test_players_and_drawings_follow_sliders_of_marimo(example, watched):
    page = open_notebook(watched, example)
    counts, drawings = page.locator(".count"), page.locator("figure.minigrad > img")
    counts.get_by_text("0 / 7").nth(1).wait_for()
    assert drawings.first.get_attribute("alt") == "Graph of y = −4.0: 2 leaves, 2 operations."
    assert drawings.first.evaluate("one => one.naturalWidth") > 400

    for step in range(1, 5):
        sliders(page).nth(1).press("ArrowRight")
        counts.first.get_by_text(f"{step} / 7").wait_for()
    page.get_by_text("∂y/∂v₂ = 1.0 × 1.0 = 1.0").first.wait_for()

    sliders(page).first.press("ArrowRight")
    page.get_by_alt_text("Graph of y = −5.0: 2 leaves, 2 operations.").first.wait_for()
    counts.first.get_by_text("4 / 7").wait_for()  # the new player starts at the slider's position
    page.get_by_label("a, leaf, value 2.5, gradient not computed yet").first.wait_for()


def test_a_cell_of_marimo_follows_a_player(example, watched):
    page = open_notebook(watched, example)
    page.get_by_text("Step 0 of the player above:").wait_for()
    page.get_by_role("button", name="Step forward").nth(1).press("Enter")
    page.get_by_text("Step 1 of the player above:").wait_for()
    page.locator(".count").nth(1).get_by_text("1 / 7").wait_for()
    assert page.locator(".count").first.inner_text() == "0 / 7"


MORE = """
import marimo

app = marimo.App()

with app.setup:
    import minigrad as mg
    from minigrad_viz import compare, watch


@app.cell
def _():
    model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.ReLU(), mg.nn.Linear(8, 1))
    x = mg.randn(16, 2).detach()
    optimizer = mg.optim.SGD(model.parameters(), lr=0.01)
    with watch(model) as seen:
        for _ in range(10):
            optimizer.zero_grad()
            loss = mg.functional.mse_loss(model(x), x[:, :1])
            loss.backward()
            optimizer.step()
            seen.log(loss)
    return


@app.cell
def _():
    compare(mg.Value(1.0, "a").exp(), mg.Value(2.0, "a").exp())
    return
"""


def test_watch_and_compare_are_displayed(watched, tmp_path):
    notebook = tmp_path / "more.py"
    notebook.write_text(MORE, encoding="utf-8")
    with running(notebook, tmp_path) as address:
        page = open_notebook(watched, address)
        monitor = page.get_by_alt_text(re.compile("^Sequential after 10 steps · loss"))
        monitor.wait_for()
        assert monitor.evaluate("one => one.naturalWidth") == WIDTH
        assert monitor.count() == 1
        compared = page.get_by_alt_text(re.compile("^Two runs of one graph. 2 of 2 nodes differ"))
        assert compared.evaluate("one => one.naturalWidth") > 200
