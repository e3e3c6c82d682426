"""`watch`: see a model while it is trained. What is measured when, and where it is shown.

Most steps are left alone. For one that is measured, hooks are set before and taken away after it; samples of what they
caught, and all norms, go to the host as one tensor: a transfer a measured step, however many layers there are. How many
steps are measured follows from what that costs: at most a twenty-fifth of the time.

The picture is a display that is replaced, not a widget: so what a saved notebook holds is always the latest one, also
where the kernel died, and nothing is needed to see it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from types import TracebackType
from typing import Any

import minigrad as mg
from minigrad.core.dispatch import untapped
from minigrad.core.errors import ArgumentError, DTypeError
from minigrad_viz.pictures.board import LayerRow, TrainingView, board, figure, lines, page
from minigrad_viz.pictures.palette import Theme
from minigrad_viz.pictures.saving import save_shown, theme_of
from minigrad_viz.trace.gradient_flow import Measured
from minigrad_viz.trace.notation import clean
from minigrad_viz.widget.probe import Probe

__all__ = ["Watch", "watch"]

_SHARE = 0.04  # of the time that may go into measuring and drawing
_AGAIN = 0.5  # seconds from one picture to the next
_HERE = ("cpu", "numpy")  # where reading a number is no transfer, and waits for nothing
_WAITING = 512  # losses that stay on the device at most
_MOST = 24  # layers that are shown


def watch(model: Any, *, layers: Collection[str] | None = None, share: float = _SHARE) -> Watch:
    """See `model` while it is trained: the loss, and by layer values, gradients, their norms, dead units, and how far
    an update moves the weights.

    Give it to `fit` as a callback, or call ``log(loss)`` at the end of each step, after the optimizer's. In a notebook
    the picture appears in the cell that trains, and stays there; ``save`` writes it as SVG, HTML or text. `layers` are
    names of modules; by default those that hold no others, with parameters first where these are many. Dead units are
    those of ``nn.ReLU``, and of ``F.relu`` wherever a module calls it: they stand beside the layer it follows. At most
    `share` of the time goes into it: so most steps are not measured.

    *Gradient flow* is a heatmap of the root mean square of each layer's gradient, a column a measured step; from 200
    columns on several steps share one, which shows the largest. A sign marks where an alarm begins: the first NaN or
    infinity; a gradient a thousand times smaller (vanishing) or larger (exploding) than in the layer nearest the loss,
    or larger than it mostly was; half of the units of a ReLU dead; gradients of the step before to which ``backward``
    adds (stale).
    Raises DTypeError for what is no module, ArgumentError for names and shares that cannot be.

    >>> import minigrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(1, 4), mg.nn.ReLU(), mg.nn.Linear(4, 1))
    >>> optimizer, x = mg.optim.SGD(model.parameters(), lr=0.01), mg.ones(8, 1)
    >>> with watch(model) as seen:
    ...     for _ in range(3):
    ...         optimizer.zero_grad()
    ...         loss = mg.functional.mse_loss(model(x), 2 * x)
    ...         loss.backward()
    ...         optimizer.step()
    ...         seen.log(loss)
    >>> str(seen).splitlines()[1].split()
    ['layer', 'values', 'gradients', '|gradient|', 'update/weight', 'dead']
    >>> "gradient flow" in seen.text(), seen.svg()[:4]
    (True, '<svg')
    """
    return Watch(model, layers, share)


class Watch:
    """What `watch` gives: it measures, and it is the picture of what it measured. A callback of `fit`, and a block."""

    def __init__(self, model: Any, layers: Collection[str] | None = None, share: float = _SHARE) -> None:
        if not isinstance(model, mg.nn.Module):
            raise DTypeError(f"watch: {clean(repr(model)):.60} is no module.\n  Write watch(model), with an nn.Module.")
        if not 0 < share <= 1:
            raise ArgumentError(f"watch: share={share!r} of the time, and it must be above 0 and at most 1.")
        self.view = TrainingView(clean(type(model).__name__))
        self.measured = 0
        self._model = model
        self._modules = _chosen(model, layers)
        self.view.layers = [LayerRow(clean(name), clean(part._get_name())) for name, part in self._modules]
        self.view.hidden = _leaf_count(model) - len(self._modules) if layers is None else 0
        self._losses: list[tuple[int, Any]] = []  # that are on the device still
        self._share = share
        self._moving = next((p for p in model.parameters() if p.requires_grad), None)
        self._version = self._moved()
        self._shown: Any = None
        self._clock = _Clock()
        self._probe: Probe | None = Probe(model, self._modules)

    # --- what the user calls, or `fit` ---

    def log(self, loss: Any) -> None:
        """A step is over, and its loss was this."""
        self._clock.step_ends(self._probe is not None)
        self.view.step += 1
        if isinstance(loss, mg.Tensor) and loss.device not in _HERE:
            self._losses.append((self.view.step, loss.detach()))
        else:
            self.view.losses.append((self.view.step, float(loss)))
        if self._probe is not None:
            self._measure(self._probe)
            self._disarm()
            if time.perf_counter() - self._clock.drawn > _AGAIN:
                self._show()
        elif len(self._losses) > _WAITING:
            self._fetch([])
        before, self._version = self._version, self._moved()
        if self._clock.may(self._share):
            self._probe = Probe(self._model, self._modules, self._version != before)
        self._clock.work_ends()

    def on_step(self, run: Any) -> None:
        """What `fit` calls after each step."""
        self.log(run.loss)

    def on_epoch(self, run: Any) -> None:
        """What `fit` calls after each epoch: the picture is brought up to date."""
        row = run.history.epochs[-1]
        if "val_loss" in row:
            self.view.validation.append((self.view.step, row["val_loss"]))
        self._fetch([])
        self._show()
        self._clock.work_ends()

    def close(self) -> None:
        """Take the hooks away, and show the picture for the last time."""
        self._disarm()
        self._fetch([])
        if self.view.step:
            self._show()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # --- measuring ---

    def _moved(self) -> int:
        """How often the weights were written, which tells whether the optimizer made a step."""
        return 0 if self._moving is None else self._moving._version

    def _disarm(self) -> None:
        if self._probe is not None:
            self._probe.remove()
        self._probe = None

    def _measure(self, probe: Probe) -> None:
        """One tensor of all that is to be known of this step, fetched at once, and what it says of each layer."""
        import numpy as np

        with mg.no_grad(), untapped():
            parts, counts = probe.parts()
            found = self._fetch([x for _, _, x in parts])
        sums: dict[tuple[int, str], float] = {}
        wild: dict[int, float] = {}
        for (k, what, _), numbers in zip(parts, found, strict=True):
            layer = self.view.layers[k]
            if what in ("values", "gradients"):
                setattr(layer, what, numbers)
                if what == "values" and not (finite := np.isfinite(numbers)).all():
                    wild[k] = float(numbers[~finite].max())  # NaN if there is one
            elif what == "dead":
                layer.dead = float(numbers[0])
            else:
                sums[k, what] = sums.get((k, what), 0.0) + float(numbers[0])
        for k in counts:
            layer = self.view.layers[k]
            layer.norms.append((self.view.step, sums[k, "gradient"] ** 0.5))
            weight = sums[k, "weight"] ** 0.5
            layer.update = sums[k, "update"] ** 0.5 / weight if weight else None
        sizes = {k: (sums[k, "gradient"] / count) ** 0.5 for k, count in counts.items() if count}
        dead = {k: layer.dead for k in probe.rectified if (layer := self.view.layers[k]).dead is not None}
        self.view.flow.add(self.view.step, Measured(sizes, probe.order, wild, dead, probe.stale))
        self.measured += 1
        self.view.measured = self.view.step

    def _fetch(self, parts: list[Any]) -> list[Any]:
        """These vectors as arrays, and the losses that wait, in one transfer for each type and device."""
        if not parts and not self._losses:
            return []
        waiting = [loss.reshape(-1)[:1] for _, loss in self._losses]
        with mg.no_grad(), untapped():
            given = [x.to(mg.float32, device=parts[0].device if parts else waiting[0].device) for x in parts + waiting]
            numbers = mg.cat(given).cpu().numpy()
        found, at = [], 0
        for x in given:
            found.append(numbers[at : at + len(x)].copy())
            at += len(x)
        for (step, _), loss in zip(self._losses, found[len(parts) :], strict=True):
            self.view.losses.append((step, float(loss[0])))
        self._losses.clear()
        return found[: len(parts)]

    # --- showing ---

    def _show(self) -> None:
        """Put the picture where the user is, in place of the one before."""
        self._clock.drawn = time.perf_counter()
        if not _in_notebook():
            return
        from IPython import display

        if self._shown is None:
            shown: Any = display.display
            self._shown = shown(self, display_id=True)
        else:
            self._shown.update(self)

    def svg(self, theme: Theme | None = None) -> str:
        """The picture alone; it follows the user's theme, light or dark, unless one is given."""
        return board(self.view, theme_of(theme))

    def text(self) -> str:
        """The text form, as `print` shows it."""
        return lines(self.view)

    def html(self, theme: Theme | None = None) -> str:
        """A page with the picture and the text, in one file."""
        return page(self.view, theme_of(theme))

    def save(self, path: str | os.PathLike[str], *, theme: Theme | None = None) -> None:
        """Write to `path` what its suffix says: ``.svg``, ``.html`` or ``.txt``. `theme` is "light" or "dark".

        Raises ArgumentError for another suffix or theme, DTypeError for what is no path, MissingFileError if its folder
        does not exist.
        """
        save_shown(self, path, "seen.save('training.svg')", theme)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": figure(self.view), "text/plain": repr(self)}


class _Clock:
    """What measuring costs, and whether there is time for it again."""

    def __init__(self) -> None:
        self.drawn = 0.0  # when the last picture was made
        self._last = time.perf_counter()
        self._usual = 0.0  # seconds of a step that is left alone
        self._cost = 0.0  # seconds that the last measured step took more
        self._credit = 0.0
        self._began: float | None = None
        self._steps = 0
        self._measured = False
        self._took = 0.0

    def step_ends(self, measured: bool) -> None:
        """The user's step is over; what follows is ours."""
        self._began = time.perf_counter()
        self._took = self._began - self._last
        self._steps += 1
        self._measured = measured
        if not measured and self._steps > 2:
            self._usual = 0.9 * self._usual + 0.1 * self._took if self._usual else self._took

    def may(self, share: float) -> bool:
        """Whether the next step may be measured: not right after the first, in which kernels were compiled."""
        self._credit = min(self._credit + share * min(self._took, 2 * self._usual), 2 * self._cost + self._took)
        return not self._measured and self._usual > 0 and self._credit > 0

    def work_ends(self) -> None:
        """Ours is over too."""
        now = time.perf_counter()
        if self._began is not None:
            ours = now - self._began
            if self._measured:
                ours += max(0.0, self._took - self._usual)
                self._cost = ours
            if self._steps > 1:
                self._credit -= ours
        self._last, self._began = now, None


def _chosen(model: Any, layers: Collection[str] | None) -> list[tuple[str, Any]]:
    """The modules to look at, with their names."""
    named = dict(model.named_modules())
    if layers is not None:
        missing = [name for name in layers if name not in named]
        if missing or isinstance(layers, str):
            known = ", ".join(name for name in named if name) or "none"
            raise ArgumentError(f"watch: layers={layers!r}: there are only {known}.\n  Give a list of such names.")
        return [(name or type(model).__name__, named[name]) for name in layers]
    found = [(name or type(model).__name__, part) for name, part in named.items() if not part._modules]
    if len(found) > _MOST:
        found = [(name, part) for name, part in found if part._parameters]
    if len(found) > _MOST:  # from the first to the last
        found = [found[round(k * (len(found) - 1) / (_MOST - 1))] for k in range(_MOST)]
    return found


def _leaf_count(model: Any) -> int:
    return sum(not part._modules for part in model.modules())


def _in_notebook() -> bool:
    """Whether pictures can be shown: IPython has a kernel here."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    shell: Any = get_ipython()
    return shell is not None and hasattr(shell, "kernel")
