"""The sweep widget in a page without Jupyter: its content, and that it follows the model."""

import minigrad_viz
from needs import needs
from sweeps import make_sweep

needs("numpy", "safetensors", "anywidget")

SHOW = """
async ([source, state]) => {
  const heard = [];
  const model = { state, get: () => model.state, on: (_, hear) => heard.push(hear), off() {} };
  const widget = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  widget.default.render({ model, el: document.body });
  globalThis.news = (state) => { model.state = state; heard.forEach((hear) => hear()); };
}
"""


def test_table_and_picture_follow_and_names_are_escaped(page, tmp_path):
    sweep = make_sweep(tmp_path, grid={"act": ["<b>bold</b>", "</style><i>"]}, states=["done", *["waiting"] * 11])
    sweep.save()
    widget = minigrad_viz.sweep(tmp_path)
    page.set_content("<!doctype html><html lang='en'><title>A page</title><body>")
    page.evaluate(SHOW, [widget._esm, dict(widget.state)])
    assert page.get_by_role("status").inner_text() == "1 of 12 trials"
    assert page.get_by_role("columnheader").all_inner_texts()[:3] == ["trial", "state", "act"]
    assert page.get_by_role("row").count() == 2
    assert page.get_by_role("cell", name="<b>bold</b>").count() == 1
    image = page.get_by_role("img", name="min val_loss · 1 of 12 trials · trial 1 reached 0.12 at epoch 1")
    assert image.evaluate("async (image) => { await image.decode(); return image.naturalWidth; }") == 1000
    for trial in sweep.trials:
        trial.state = "done"
    sweep.save()
    widget.refresh()
    page.evaluate("(state) => news(state)", dict(widget.state))
    assert page.get_by_role("status").inner_text() == "12 of 12 trials"
    assert page.get_by_role("row").count() == 13
    assert page.locator("b, i").count() == 0
    widget.close()
