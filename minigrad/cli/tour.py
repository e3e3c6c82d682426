"""``minigrad tour``: train a network of Values on Iris, and save the graph of one loss as a page."""

from __future__ import annotations

import argparse
import math
import os
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from minigrad.cli import lessons
from minigrad.cli.errors import CommandError
from minigrad.core.errors import printable
from minigrad.core.grad_mode import scope
from minigrad.core.packages import import_package
from minigrad.core.value import Value
from minigrad.nn.scalar import MLP, cross_entropy

__all__ = ["tour"]


def tour(options: argparse.Namespace) -> int:
    from minigrad.data import iris

    if options.lab:
        lessons.require_jupyterlab("minigrad tour")
    _ensure_writable(options.out)
    flowers = iris()
    model = MLP([4, 8, 3], seed=options.seed)
    print(f"Training {model} on {len(flowers.train_x)} Iris flowers.")
    _train(model, flowers.train_x, flowers.train_y, options.epochs)

    losses = [cross_entropy(model(x), y).data for x, y in zip(flowers.test_x, flowers.test_y, strict=True)]
    correct = [k for k, y in enumerate(flowers.test_y) if _predict(model, flowers.test_x[k]) == y]
    accuracy = f"{len(correct) / len(losses):.1%} ({len(correct)} of {len(losses)} unseen flowers)"
    print(f"Test accuracy: {accuracy}.")

    # Select an uncertain but correct prediction. Its gradients are not close to 0, and its loss is not that of an
    # error.
    index = max(correct or range(len(losses)), key=losses.__getitem__)
    species, probability = flowers.species[flowers.test_y[index]], math.exp(-losses[index])
    flower = (
        f"Test flower {index}, an Iris {species}. The network gives that species a probability of {probability:.0%}"
    )
    flower += ", the lowest among its correct predictions." if correct else "."
    loss = _labelled_loss(model, flowers.test_x[index], flowers.test_y[index], flowers.features)
    model.zero_grad()
    loss.backward()
    _write_page(loss, model, flower, options.out)
    print(flower)
    print(f"Its loss, with every value and gradient: {printable(str(options.out.resolve()))}")
    if options.open and not webbrowser.open(options.out.resolve().as_uri()):
        print("No browser could be opened; open the page yourself.")
    return lessons.open_lessons(lessons.FOLDER) if options.lab else 0


def _train(model: MLP, xs: list[list[float]], ys: list[int], epochs: int, *, batch: int = 12, lr: float = 0.2) -> None:
    """Run SGD with learning rate `lr` on the mean cross-entropy of batches of `batch` flowers."""
    bar = import_package("tqdm", "minigrad tour").tqdm(range(epochs), desc="epochs", ascii=" =")
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
    """Return the loss of one flower, with labels on the main nodes."""
    scores = model([Value(value, name) for value, name in zip(x, features, strict=True)])
    for k, score in enumerate(scores):
        score.label = f"score {k}"
    with scope("cross-entropy"):
        loss = cross_entropy(scores, y)
    loss.label = "loss"
    return loss


def _captions(model: MLP, flower: str) -> list[tuple[Any, ...]]:
    """Return the captions of the tour, which ends at the weight with the largest gradient."""
    weight = max(model.parameters(), key=lambda weight: abs(weight.grad or 0.0))
    rising, falling = ("up", "down") if (weight.grad or 0.0) > 0 else ("down", "up")
    last = (
        f"No weight has a larger gradient than {weight.label}, {weight.grad:.3g}: if it goes up, the loss goes "
        f"{rising}, so training moves it {falling}. Change it yourself: press W, for “What if”."
    )
    return [
        ("start", f"{flower} Four measurements, and nothing computed from them yet: press → to continue."),
        ("score 2", "They have passed through eight neurons, then three: a score per species. Click to open a stack."),
        ("loss", "The loss measures how wrong the scores are. This ends the forward pass."),
        (
            "seed",
            "Now backward. The gradient of the loss itself is 1; each step multiplies it by one local derivative.",
        ),
        (("score 2", "backward"), "The gradient of this score: raising it would lower (−) or raise (+) the loss."),
        ("end", last, weight),
    ]


def _ensure_writable(path: Path) -> None:
    """Raise CommandError if the page cannot be written. This is checked before training."""
    try:
        existed = os.path.lexists(path)
        with path.open("a", encoding="utf-8"):
            pass
        if not existed:
            path.unlink()
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise CommandError(f"minigrad tour: cannot write {path}: {getattr(error, 'strerror', error)}") from None


def _write_page(loss: Value, model: MLP, flower: str, path: Path) -> None:
    from minigrad_viz.pictures.drawing import Drawing
    from minigrad_viz.trace import trace_with_indices
    from minigrad_viz.trace.models import initial_state
    from minigrad_viz.trace.positions import make_stops

    trace, positions = trace_with_indices(loss)
    state = {**(initial_state(trace) or {}), "granularity": "op"}
    drawing = Drawing(replace(trace, tours=make_stops(trace, positions, _captions(model, flower))), state)
    try:
        drawing.save(path)
    except OSError as error:
        raise CommandError(f"minigrad tour: cannot write {path}: {error.strerror}") from None
