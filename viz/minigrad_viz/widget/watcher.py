"""`watch`: monitor a model during training.

Most steps are not measured. For a measured step, hooks are added before it and removed after it. Samples of the
captured tensors and all norms are copied to the host as one tensor, so each measured step needs one transfer,
regardless of the number of layers. The number of measured steps depends on the cost: measuring takes at most 4% of the
time.

The picture is an updated display, not a widget. A saved notebook therefore always contains the latest picture, even if
the kernel died, and no package is needed to view it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from types import ModuleType, TracebackType
from typing import Any

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError
from minigrad_viz.pictures.dashboard import LayerRow, TrainingView, dashboard_text, figure, page, render_dashboard
from minigrad_viz.pictures.file_writers import check_theme, save_view
from minigrad_viz.pictures.palette import Theme
from minigrad_viz.trace.gradient_flow import StepMeasurement
from minigrad_viz.trace.library import MINIGRAD, AutogradLibrary
from minigrad_viz.trace.notation import sanitize
from minigrad_viz.widget.probe import Probe

__all__ = ["Watch", "watch"]

DEFAULT_SHARE = 0.04  # maximum fraction of the time spent on measuring and drawing
MIN_DRAW_INTERVAL = 0.5  # minimum seconds between pictures
MAX_PENDING_LOSSES = 512  # maximum number of losses left on the device
MAX_LAYERS = 24  # maximum number of layers shown


def watch(model: Any, *, layers: Collection[str] | None = None, share: float = DEFAULT_SHARE) -> Watch:
    """Monitor `model` during training: the loss and, by layer, values, gradients, their norms, dead units, and the
    relative size of weight updates.

    Pass the monitor to `fit` as a callback, or call ``log(loss)`` at the end of each step, after the optimizer's. In a
    notebook, the picture appears in the training cell and remains there; ``save`` writes it as SVG, HTML or text.
    `layers` are names of modules; by default those without submodules and, if there are many, preferably those with
    parameters. Dead units are those of ``nn.ReLU``, and of ``F.relu`` wherever a module calls it; the latter are shown
    next to the layer that the call follows. At most the fraction `share` of the time is used for monitoring, so most
    steps are not measured.

    *Gradient flow* is a heatmap of the root mean square of each layer's gradient, with a column per measured step;
    beyond 200 columns, several steps share a column, which shows the largest value. A marker shows where an alarm
    begins: the first NaN or infinity; a gradient a thousand times smaller (vanishing) or larger (exploding) than in the
    layer nearest the loss, or larger than its own average; a ReLU with half of its units dead; gradients of the
    previous step into which ``backward`` accumulates (stale). Raises DTypeError if `model` is not a module, and
    ArgumentError for invalid names and shares.

    A PyTorch model is monitored in the same way, in a training loop of your own or by a callback of a trainer.

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
    """The monitor that `watch` returns, with its picture. It is a `fit` callback and a context manager."""

    def __init__(self, model: Any, layers: Collection[str] | None = None, share: float = DEFAULT_SHARE) -> None:
        library = _library_of(model)
        if library is None:
            raise DTypeError(
                f"watch: {sanitize(repr(model)):.60} is not a module.\n  Write watch(model), with an nn.Module."
            )
        if not 0 < share <= 1:
            raise ArgumentError(f"watch: share={share!r}; it must be above 0 and at most 1.")
        self._library = library
        self.view = TrainingView(sanitize(type(model).__name__))
        self.measured_count = 0
        self._model = model
        self._modules = _select_modules(model, layers)
        self.view.layers = [LayerRow(sanitize(name), sanitize(part._get_name())) for name, part in self._modules]
        self.view.hidden_count = _leaf_count(model) - len(self._modules) if layers is None else 0
        self._pending_losses: list[tuple[int, Any]] = []  # losses that are still on the device
        self._share = share
        self._first_parameter = next((p for p in model.parameters() if p.requires_grad), None)
        self._version = self._weights_version()
        self._display: Any = None
        self._clock = _MeasurementBudget()
        self._probe: Probe | None = Probe(library, model, self._modules)

    # --- called by the user, or by `fit` ---

    def log(self, loss: Any) -> None:
        """Record the loss at the end of a step."""
        self._clock.end_step(self._probe is not None)
        self.view.step += 1
        if isinstance(loss, self._library.module.Tensor) and not self._library.is_on_host(loss):
            self._pending_losses.append((self.view.step, loss.detach()))
        else:
            self.view.losses.append((self.view.step, float(loss.detach() if hasattr(loss, "detach") else loss)))
        if self._probe is not None:
            self._measure(self._probe)
            self._remove_probe()
            if time.perf_counter() - self._clock.last_drawn > MIN_DRAW_INTERVAL:
                self._show()
        elif len(self._pending_losses) > MAX_PENDING_LOSSES:
            self._fetch([])
        before, self._version = self._version, self._weights_version()
        if self._clock.may_measure(self._share):
            self._probe = Probe(self._library, self._model, self._modules, self._version != before)
        self._clock.end_work()

    def on_step(self, run: Any) -> None:
        """Record a step of `fit`."""
        self.log(run.loss)

    def on_epoch(self, run: Any) -> None:
        """Record an epoch of `fit`, and update the picture."""
        row = run.history.epochs[-1]
        if "val_loss" in row:
            self.view.validation.append((self.view.step, row["val_loss"]))
        self._fetch([])
        self._show()
        self._clock.end_work()

    def close(self) -> None:
        """Remove the hooks, and update the picture for the last time."""
        self._remove_probe()
        self._fetch([])
        if self.view.step:
            self._show()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # --- measuring ---

    def _weights_version(self) -> int:
        """Return the version of the weights, which changes when the optimizer steps."""
        return 0 if self._first_parameter is None else self._first_parameter._version

    def _remove_probe(self) -> None:
        if self._probe is not None:
            self._probe.remove()
        self._probe = None

    def _measure(self, probe: Probe) -> None:
        """Fetch all measurements of this step as one tensor, and store them by layer."""
        import numpy as np

        with self._library.module.no_grad(), self._library.unobserved():
            parts, counts = probe.measurements()
            fetched = self._fetch([x for _, _, x in parts])
        sums: dict[tuple[int, str], float] = {}
        non_finite: dict[int, float] = {}
        for (k, kind, _), values in zip(parts, fetched, strict=True):
            layer = self.view.layers[k]
            if kind in ("values", "gradients"):
                setattr(layer, kind, values)
                if kind == "values" and not (finite := np.isfinite(values)).all():
                    non_finite[k] = float(values[~finite].max())  # NaN if any value is NaN
            elif kind == "dead":
                layer.dead_fraction = float(values[0])
            else:
                sums[k, kind] = sums.get((k, kind), 0.0) + float(values[0])
        for k in counts:
            layer = self.view.layers[k]
            layer.norms.append((self.view.step, sums[k, "gradient"] ** 0.5))
            weight = sums[k, "weight"] ** 0.5
            layer.update_ratio = sums[k, "update"] ** 0.5 / weight if weight else None
        sizes = {k: (sums[k, "gradient"] / count) ** 0.5 for k, count in counts.items() if count}
        dead = {
            k: layer.dead_fraction
            for k in probe.relu_outputs
            if (layer := self.view.layers[k]).dead_fraction is not None
        }
        self.view.flow.add(self.view.step, StepMeasurement(sizes, probe.order, non_finite, dead, probe.stale))
        self.measured_count += 1
        self.view.measured_step = self.view.step

    def _fetch(self, parts: list[Any]) -> list[Any]:
        """Copy `parts` and the pending losses to the host, in one transfer per dtype and device."""
        if not parts and not self._pending_losses:
            return []
        pending = [loss.reshape(-1)[:1] for _, loss in self._pending_losses]
        lib = self._library.module
        with lib.no_grad(), self._library.unobserved():
            device = (parts + pending)[0].device
            tensors = [x.to(device=device, dtype=lib.float32) for x in parts + pending]
            values = lib.cat(tensors).cpu().numpy()
        fetched, at = [], 0
        for x in tensors:
            fetched.append(values[at : at + len(x)].copy())
            at += len(x)
        for (step, _), loss in zip(self._pending_losses, fetched[len(parts) :], strict=True):
            self.view.losses.append((step, float(loss[0])))
        self._pending_losses.clear()
        return fetched[: len(parts)]

    # --- showing ---

    def _show(self) -> None:
        """Display the picture, in place of the previous one."""
        self._clock.last_drawn = time.perf_counter()
        if (marimo := _running_marimo()) is not None:
            marimo.output.replace(self)
            return
        if not _in_notebook():
            return
        from IPython import display

        if self._display is None:
            display_function: Any = display.display
            self._display = display_function(self, display_id=True)
        else:
            self._display.update(self)

    def svg(self, theme: Theme | None = None) -> str:
        """Return the picture. By default, it follows the user's light or dark theme."""
        return render_dashboard(self.view, check_theme(theme))

    def text(self) -> str:
        """Return the text that `print` displays."""
        return dashboard_text(self.view)

    def html(self, theme: Theme | None = None) -> str:
        """Return a self-contained page with the picture and the text."""
        return page(self.view, check_theme(theme))

    def save(self, path: str | os.PathLike[str], *, theme: Theme | None = None) -> None:
        """Write the picture to `path` in the format of its suffix: ``.svg``, ``.html`` or ``.txt``. `theme` is "light"
        or "dark".

        Raises ArgumentError for another suffix or theme, DTypeError if `path` is not a path, MissingFileError if its
        folder does not exist.
        """
        save_view(self, path, "seen.save('training.svg')", theme)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": figure(self.view), "text/plain": repr(self)}


class _MeasurementBudget:
    """Tracks the cost of measuring, and decides whether the budget allows another measurement."""

    def __init__(self) -> None:
        self.last_drawn = 0.0  # time at which the last picture was drawn
        self._last = time.perf_counter()
        self._average_step = 0.0  # average seconds of a step without measurement
        self._cost = 0.0  # extra seconds of the last measured step
        self._credit = 0.0
        self._work_start: float | None = None
        self._steps = 0
        self._measured = False
        self._step_time = 0.0

    def end_step(self, measured: bool) -> None:
        """Record the end of the user's step and the start of the monitor's work."""
        self._work_start = time.perf_counter()
        self._step_time = self._work_start - self._last
        self._steps += 1
        self._measured = measured
        if not measured and self._steps > 2:
            self._average_step = (
                0.9 * self._average_step + 0.1 * self._step_time if self._average_step else self._step_time
            )

    def may_measure(self, share: float) -> bool:
        """Whether the next step may be measured. It may not after the first step, which compiled kernels."""
        self._credit = min(
            self._credit + share * min(self._step_time, 2 * self._average_step), 2 * self._cost + self._step_time
        )
        return not self._measured and self._average_step > 0 and self._credit > 0

    def end_work(self) -> None:
        """Record the end of the monitor's work."""
        end_time = time.perf_counter()
        if self._work_start is not None:
            work_time = end_time - self._work_start
            if self._measured:
                work_time += max(0.0, self._step_time - self._average_step)
                self._cost = work_time
            if self._steps > 1:
                self._credit -= work_time
        self._last, self._work_start = end_time, None


def _library_of(model: Any) -> AutogradLibrary | None:
    """Return the library of an `nn.Module`; None if `model` is not a module."""
    if isinstance(model, mg.nn.Module):
        return MINIGRAD
    if "torch" in sys.modules and isinstance(model, sys.modules["torch"].nn.Module):
        from minigrad_viz.trace.torch.library import PYTORCH

        return PYTORCH
    return None


def _select_modules(model: Any, layers: Collection[str] | None) -> list[tuple[str, Any]]:
    """Return the modules to monitor, with their names."""
    named = dict(model.named_modules())
    if layers is not None:
        missing = [name for name in layers if name not in named]
        if missing or isinstance(layers, str):
            module_names = ", ".join(name for name in named if name) or "none"
            raise ArgumentError(
                f"watch: layers={layers!r}, but the modules are {module_names}.\n  Pass a list of such names."
            )
        return [(name or type(model).__name__, named[name]) for name in layers]
    selected = [(name or type(model).__name__, part) for name, part in named.items() if not part._modules]
    if len(selected) > MAX_LAYERS:
        selected = [(name, part) for name, part in selected if part._parameters]
    if len(selected) > MAX_LAYERS:  # evenly spaced, including the first and the last
        selected = [selected[round(k * (len(selected) - 1) / (MAX_LAYERS - 1))] for k in range(MAX_LAYERS)]
    return selected


def _leaf_count(model: Any) -> int:
    return sum(not part._modules for part in model.modules())


def _running_marimo() -> ModuleType | None:
    """Return the module ``marimo`` if this code runs in one of its notebooks, which have no IPython shell."""
    marimo = sys.modules.get("marimo")
    return marimo if marimo is not None and marimo.running_in_notebook() else None


def _in_notebook() -> bool:
    """Whether pictures can be shown: IPython runs in a kernel."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    shell: Any = get_ipython()
    return shell is not None and hasattr(shell, "kernel")
