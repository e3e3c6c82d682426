"""The MIME bundles of the viewer's objects, and which part of a bundle a notebook host shows."""

import minigrad as mg
from minigrad_viz import compare, draw, play, step, sweep, tour, watch
from needs import needs
from sweeps import finished_sweep

__all__ = ["HTML", "ORDER", "TEXT", "WIDGET", "WIDGETS", "make_bundles", "shown_type"]

WIDGET, HTML, TEXT = "application/vnd.jupyter.widget-view+json", "text/html", "text/plain"
WIDGETS = {"step", "play", "tour", "sweep"}  # the objects that are widgets

# The MIME types that a host displays, most preferred first; HTML is first where there is no kernel, or no widgets.
ORDER = {
    "JupyterLab, JupyterHub": (WIDGET, HTML, "image/svg+xml", "image/png", TEXT),
    "JupyterLab, a notebook that was reopened": (HTML, "image/svg+xml", "image/png", TEXT),
    # https://github.com/microsoft/vscode-jupyter/issues/1868
    "VS Code": (WIDGET, HTML, "image/svg+xml", "image/png", TEXT),
    # In restricted mode, the MIME types that notebookCommon.ts of VS Code calls always secure.
    "VS Code, restricted mode": ("image/png", "text/markdown", "application/json", TEXT),
    # nbconvert's order, without widgets if the notebook has no widget state; GitHub also removes scripts and styles.
    "nbviewer": (HTML, "text/markdown", "image/svg+xml", "image/png", TEXT),
    "GitHub": (HTML, "text/markdown", "image/svg+xml", "image/png", TEXT),
    # https://github.com/deepnote/deepnote/blob/main/docs/ipywidgets-in-deepnote.md: no widgets
    "Deepnote": (HTML, "image/svg+xml", "image/png", TEXT),
    "a terminal": (TEXT,),
}


def make_bundles(folder):
    """Return the MIME bundle of each object that the viewer displays; `folder` is for a sweep."""
    needs("numpy", "anywidget")
    y = _product(-3.0)
    finished_sweep(folder, [0.5, 0.4]).save()
    objects = {
        "draw": draw(y),
        "step": step(y),
        "play": play(y),
        "tour": tour(y, [("start", "two leaves"), ("end", "two gradients")]),
        "compare": compare(y, _product(-4.0)),
        "watch": _watch(),
        "sweep": sweep(folder),
        "draw a model that raises": draw(mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Linear(4, 1)), mg.ones(1, 2)),
    }
    bundles = {}
    for name, x in objects.items():
        bundle = x._repr_mimebundle_()
        bundles[name] = bundle[0] if isinstance(bundle, tuple) else bundle
    return bundles


def _product(factor):
    a, b = mg.Value(2.0, "a"), mg.Value(factor, "b")
    y = a * b + a
    y.label = "y"
    return y


def _watch():
    model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.ReLU(), mg.nn.Linear(8, 1))
    x = mg.ones(16, 2)
    with watch(model) as seen:
        for _ in range(3):
            loss = mg.functional.mse_loss(model(x), x[:, :1])
            loss.backward()
            seen.log(loss)
    return seen


def shown_type(bundle, host):
    """Return the MIME type that a host displays."""
    return next(kind for kind in ORDER[host] if kind in bundle)
