"""``minigrad tour``: a network of Values learns Iris, and the graph of one loss becomes a page."""

from __future__ import annotations

import argparse
import os
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from minigrad.cli import lessons
from minigrad.cli.stop import Stop
from minigrad.graph import scope
from minigrad.nn.scalar import MLP, cross_entropy
from minigrad.packages import package
from minigrad.value import Value

__all__ = ["tour"]


def tour(options: argparse.Namespace) -> int:
    from minigrad.data import iris

    if options.lab:
        lessons.needed("minigrad tour")
    _ensure_writable(options.out)
    flowers = iris()
    model = MLP([4, 8, 3], seed=options.seed)
    print(f"Training {model} on {len(flowers.train_x)} Iris flowers.")
    _train(model, flowers.train_x, flowers.train_y, options.epochs)

    losses = [cross_entropy(model(x), y).data for x, y in zip(flowers.test_x, flowers.test_y, strict=True)]
    right = sum(_predict(model, x) == y for x, y in zip(flowers.test_x, flowers.test_y, strict=True))
    print(f"Test accuracy: {right / len(losses):.1%} ({right} of {len(losses)} flowers that it had not seen).")

    hardest = max(range(len(losses)), key=losses.__getitem__)
    loss = _labelled_loss(model, flowers.test_x[hardest], flowers.test_y[hardest], flowers.features)
    model.zero_grad()
    loss.backward()
    _write_page(loss, options.out)
    print(f"Its loss on the hardest of them, value by value and gradient by gradient: {options.out.resolve()}")
    if options.open and not webbrowser.open(options.out.resolve().as_uri()):
        print("No browser could be opened here; open the page by hand.")
    return lessons.opened(lessons.FOLDER) if options.lab else 0


def _train(model: MLP, xs: list[list[float]], ys: list[int], epochs: int, *, batch: int = 12, lr: float = 0.2) -> None:
    """Stochastic gradient descent on the mean cross-entropy of `batch` flowers at a time; lr is the learning rate."""
    bar = package("tqdm", "minigrad tour").tqdm(range(epochs), desc="epochs", ascii=" =")
    for _ in bar:
        total = 0.0
        for start in range(0, len(xs), batch):
            pairs = list(zip(xs[start : start + batch], ys[start : start + batch], strict=True))
            loss = sum([cross_entropy(model(x), y) for x, y in pairs], Value(0.0)) / len(pairs)
            model.zero_grad()
            loss.backward()
            for parameter in model.parameters():
                parameter.data -= lr * parameter.grad
            total += loss.data * len(pairs)
        bar.set_postfix(loss=f"{total / len(xs):.3f}")


def _predict(model: MLP, x: list[float]) -> int:
    scores = [score.data for score in model(x)]
    return scores.index(max(scores))


def _labelled_loss(model: MLP, x: list[float], y: int, features: Sequence[str]) -> Value:
    """The loss at one flower, with names on what a user will look for."""
    scores = model([Value(number, name) for number, name in zip(x, features, strict=True)])
    for k, score in enumerate(scores):
        score.label = f"score {k}"
    with scope("cross-entropy"):
        loss = cross_entropy(scores, y)
    loss.label = "loss"
    return loss


_CAPTIONS = (
    ("start", "One flower: four measurements, and no number computed from them yet. Go on, or press →, step by step."),
    ("score 2", "They have passed eight neurons, then three: one score for each species. A stack opens by a click."),
    ("loss", "The loss says how wrong the scores are. So much for the way forward."),
    (
        "seed",
        "Now back. The gradient of the loss itself is 1; from here on each step multiplies by one local derivative.",
    ),
    (("score 2", "backward"), "The first score hears what it should have been: more (−) or less (+)."),
    ("end", "Each weight knows which way to turn. What if it did? Open “What if”; or be asked: “Predict”."),
)


def _ensure_writable(path: Path) -> None:
    """Find out before the training, not after it, that the page cannot be written."""
    try:
        existed = os.path.lexists(path)
        with path.open("a", encoding="utf-8"):
            pass
        if not existed:
            path.unlink()
    except (OSError, ValueError) as error:  # ValueError: a name with a null in it
        raise Stop(f"minigrad tour: cannot write {path}: {getattr(error, 'strerror', error)}") from None


def _write_page(loss: Value, path: Path) -> None:
    from minigrad_viz.models import beginning
    from minigrad_viz.pictures.drawing import Drawing
    from minigrad_viz.player import stops
    from minigrad_viz.trace import placed

    trace, places = placed(loss)
    begins = {**(beginning(trace) or {}), "granularity": "op"}
    drawing = Drawing(replace(trace, tours=stops(trace, places, _CAPTIONS)), begins)
    try:
        drawing.save(path)
    except OSError as error:
        raise Stop(f"minigrad tour: cannot write {path}: {error.strerror}") from None
