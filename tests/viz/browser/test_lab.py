"""The player in JupyterLab: it is displayed, steps by mouse and keyboard, and stays in sync with the kernel."""

import json
import re

import pytest

from lab import Lab
from minigrad_viz.pictures.dashboard import WIDTH

pytestmark = pytest.mark.slow

CELLS = [
    """
import ipywidgets as widgets
import minigrad as mg
from minigrad_viz import step
a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
y = a * b + a
y.label = "y"
player, other = step(y), step(y)
widgets.jslink((player, "position"), (other, "position"))
seen = []
player.observe(lambda change: seen.append(change["new"]), "position")
widgets.VBox([player.slider("a", min=-5, max=5), player])
""",
    "other",
    "print('seen', seen, player.values, player.leaf_a, other.position)",
    "player.position = 5",
    "%load_ext minigrad_viz",
    "%%trace\nc = (a * b).exp()\nc + 1",
    """
from minigrad_viz import watch
model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.ReLU(), mg.nn.Linear(8, 1))
x = mg.randn(16, 2).detach()
optimizer = mg.optim.SGD(model.parameters(), lr=0.01)
with watch(model) as w:
    for _ in range(30):
        optimizer.zero_grad()
        loss = mg.functional.mse_loss(model(x), x[:, :1])
        loss.backward()
        optimizer.step()
        w.log(loss)
""",
    "import minigrad_viz\nminigrad_viz.sweep('sweep', wait=True)",
    """
from pathlib import Path
from minigrad.distributed import Sweep
from minigrad.distributed.sweeps.plan import make_plan
Path("sweep").mkdir()
sweep = Sweep(make_plan("sweep", goal="min loss", grid={"lr": [0.1, 0.2]}), Path("sweep"))
sweep.trials[0].record_epoch(sweep.plan, 1, 0.5, {"loss": 0.5})
sweep.trials[0].state = "done"
sweep.save()
""",
]


def notebook(cells):
    cell_dicts = [
        {
            "cell_type": "code",
            "id": f"cell{i}",
            "source": cell.strip(),
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        for i, cell in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": cell_dicts, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def opened(tmp_path, watched):
    (tmp_path / "player.ipynb").write_text(notebook(CELLS), encoding="utf-8")
    with Lab(tmp_path) as lab:
        yield lab.open_notebook(watched, "player.ipynb")


def run_cell(page, index):
    """Run a cell with Shift+Enter, and wait until it has finished."""
    cell = page.locator(".jp-CodeCell").nth(index)
    before = cell.locator(".jp-InputPrompt").inner_text()
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(
        """([i, before]) => {
            const text = document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')[i].textContent;
            return /\\[\\d+\\]/.test(text) && text !== before;
        }""",
        arg=[index, before],
    )
    return cell


def wait_for_count(cell, text):
    try:
        cell.locator(".count", has_text=text).first.wait_for()
    except Exception as error:
        error.add_note(f"counted: {cell.page.locator('.count').all_inner_texts()}")
        error.add_note(run_cell(cell.page, 2).inner_text())  # and the kernel's output
        raise


def assert_keys_stay_in_the_player(page, cell):
    """After a click in a player, keys go to the player, including those with a meaning in the notebook."""
    cells = page.locator(".jp-Cell")
    before = (cells.count(), page.locator(".jp-CodeCell").count())
    cell.locator(".jp-InputPrompt").click()  # select the cell
    for selector in (".say", ".mg-view", "g.item"):
        cell.locator(selector).first.click()
        page.keyboard.press("Home")
        wait_for_count(cell, "0 / 7")
        page.keyboard.press("ArrowRight")
        wait_for_count(cell, "1 / 7")
        for key in ("j", "x", "d", "d", "m", "z", "ArrowDown", "ArrowUp", "End"):
            page.keyboard.press(key)
        wait_for_count(cell, "7 / 7")
        assert (cells.count(), page.locator(".jp-CodeCell").count()) == before
        assert cell.evaluate("one => one.matches('.jp-mod-selected, .jp-mod-active')"), "no other cell was selected"


@pytest.mark.nightly
def test_player_watch_and_a_sweep_in_lab(opened):
    page = opened
    first = run_cell(page, 0)
    wait_for_count(first, "0 / 7")
    second = run_cell(page, 1)
    wait_for_count(second, "0 / 7")

    first.get_by_role("button", name="Step forward").click()
    wait_for_count(first, "1 / 7")
    wait_for_count(second, "1 / 7")  # the two are linked in the page

    first.get_by_role("button", name="Step forward").focus()
    page.keyboard.press("ArrowRight")
    wait_for_count(first, "2 / 7")
    page.keyboard.press("End")
    wait_for_count(first, "7 / 7")

    handle = first.locator(".noUi-handle").first  # of the slider of a
    handle.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")

    for _ in range(20):  # until the kernel has received both, so that messages do not cross
        output = run_cell(page, 2).locator(".jp-OutputArea-output").last.inner_text()
        match = re.search(r"seen \[(.*)\] \{'a': (.*)\} (.*) (\d)", output)
        if match and match[4] == "7":
            break
    assert match, output
    assert match[1] in ("1, 2, 7", "1, 7")  # a busy kernel receives only the last of several changes
    assert float(match[2]) == float(match[3]) == pytest.approx(2.1)

    run_cell(page, 3)
    wait_for_count(first, "5 / 7")
    wait_for_count(second, "5 / 7")
    assert_keys_stay_in_the_player(page, first)

    run_cell(page, 4)
    traced = run_cell(page, 5)
    wait_for_count(traced, "3 / ")
    traced.get_by_role("button", name="Predict").click()
    page.keyboard.type("-1")
    page.keyboard.press("Enter")  # JupyterLab suppresses the default action of Enter in outputs
    traced.locator(".verdict", has_text="sign").wait_for()

    picture = run_cell(page, 6).locator(".minigrad-watch img")  # one, in the cell that trains
    picture.wait_for()
    assert picture.count() == 1

    followed = run_cell(page, 7)
    followed.get_by_text("There is no sweep in sweep yet.").wait_for()
    run_cell(page, 8)
    followed.get_by_text("1 of 2 trials", exact=True).wait_for()
    assert followed.locator(".minigrad-sweep td").all_inner_texts()[:4] == ["1", "done", "0.1", "0.5"]
    assert picture.get_attribute("alt").startswith("Sequential after 30 steps · loss")
    assert picture.evaluate("one => one.naturalWidth") == WIDTH


HOSTILE = "</script><img src=x onerror='globalThis.__ran=1'>"


def untrusted_notebook():
    """Return a notebook from an untrusted source: a drawing, a player, and outputs that would execute."""
    import minigrad as mg
    from minigrad_viz import draw, step

    y = mg.Value(2.0, HOSTILE).exp()
    y.label = HOSTILE
    live = step(y)._repr_mimebundle_()[0]
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "a", "version_major": 2, "version_minor": 0}}
    foreign = {"text/html": "<p>theirs<script>globalThis.__ran=1</script><img src=x onerror='globalThis.__ran=1'></p>"}
    script = {"application/javascript": "globalThis.__ran=1", "text/plain": "a script"}
    notebook_dict = json.loads(notebook(["y", "step(y)", "theirs", "script"]))
    bundles = (draw(y)._repr_mimebundle_(), {**live, **widget}, foreign, script)
    for cell, data in zip(notebook_dict["cells"], bundles, strict=True):
        cell["outputs"] = [{"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}]
    return json.dumps(notebook_dict)


@pytest.mark.nightly
def test_an_untrusted_notebook_shows_pictures_and_runs_nothing(tmp_path, watched):
    (tmp_path / "sent.ipynb").write_text(untrusted_notebook(), encoding="utf-8")
    with Lab(tmp_path) as lab:
        page = lab.open_notebook(watched, "sent.ipynb")
        cells = page.locator(".jp-CodeCell .jp-OutputArea-output")
        for k in (0, 1):
            picture = cells.nth(k).locator("figure.minigrad > img")
            picture.wait_for()
            assert picture.evaluate("one => one.naturalWidth") > 200
            assert picture.get_attribute("src").startswith("data:image/svg+xml;base64,")
            assert HOSTILE[:9] in picture.get_attribute("alt")
        assert page.locator(".jp-OutputArea script, .minigrad-player").count() == 0
        assert cells.nth(2).inner_text() == "theirs"
        assert cells.nth(3).inner_text() == "a script"
        page.wait_for_timeout(300)
        assert page.evaluate("globalThis.__ran") is None


FREEING = [
    """
import minigrad as mg
from minigrad_viz import step
from ipywidgets.widgets.widget import _instances
a = mg.Value(2.0, "a")
y = a * a
""",
    "step(y)",
    "kept = step(y); kept",
    "print('alive', sum(type(widget).__name__ == 'Player' for widget in _instances.values()))",
]


@pytest.mark.nightly
def test_a_player_is_freed_when_its_cell_is_rerun_or_deleted(tmp_path, watched):
    (tmp_path / "freed.ipynb").write_text(notebook(FREEING), encoding="utf-8")
    with Lab(tmp_path) as lab:
        page = lab.open_notebook(watched, "freed.ipynb")
        run_cell(page, 0)
        for _ in range(4):
            wait_for_count(run_cell(page, 1), "0 / 4")
        wait_for_count(run_cell(page, 2), "0 / 4")
        run_cell(page, 3)
        assert run_cell(page, 3).locator(".jp-OutputArea").inner_text().strip().endswith("alive 2")
        for index in (2, 1):  # the one that a variable references stays alive
            page.locator(".jp-CodeCell").nth(index).locator(".jp-InputPrompt").click()
            page.keyboard.press("d")
            page.keyboard.press("d")
        run_cell(page, 1)
        assert run_cell(page, 1).locator(".jp-OutputArea").inner_text().strip().endswith("alive 1")
