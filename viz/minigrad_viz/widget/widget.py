"""The player widget for notebooks: an anywidget whose state can be linked, observed and set.

Imported when the first player is created, because ipywidgets is slow to import.
"""

from __future__ import annotations

import math
import os
import re
import sys
import unicodedata
import weakref
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import anywidget
import ipywidgets
import traitlets

from minigrad.core.errors import ArgumentError
from minigrad_viz.pictures import html
from minigrad_viz.pictures.file_writers import FileWriter, check_theme, save
from minigrad_viz.pictures.film import film_writers
from minigrad_viz.pictures.frontend import module
from minigrad_viz.pictures.html import figure
from minigrad_viz.pictures.palette import Theme
from minigrad_viz.pictures.text import table
from minigrad_viz.trace import Trace
from minigrad_viz.trace.models import initial_state
from minigrad_viz.trace.notation import handle

__all__ = ["Player", "release_unseen"]

# Maximum number of leaves with a trait. Creating one for each weight of a large network would take seconds.
MAX_LEAF_TRAITS = 200
MAX_LEAF_NAME_LENGTH = 40  # maximum length of a leaf's name in the name of its trait
MAX_PLAIN_LENGTH = 1 << 18  # in characters; longer traces are compressed to about a seventh


class Player(anywidget.AnyWidget):
    """A player that steps through a graph forward and backward. `minigrad_viz.step` and `play` create players.

    Its traits are synchronised between Python and the page: `position` (0 is before the first operation), `playing`,
    `speed`, `granularity` ("edge" or "op"), `selected` (a node as "n3", a block as "b1"), `expanded` (the indices of
    open blocks, or None for the player's own choice), `values` (changed leaves with their values) and `height` in
    pixels. Each scalar leaf has a trait too, such as `leaf_a` for a leaf a, which can be linked without the kernel.
    """

    trace_text = traitlets.Unicode("").tag(sync=True)
    trace_packed = traitlets.Bytes(b"").tag(sync=True)
    leaves = traitlets.Dict().tag(sync=True)
    position = traitlets.Int(0, min=0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    speed = traitlets.Float(1.0, min=0.25, max=4.0).tag(sync=True)
    granularity = traitlets.Enum(("edge", "op"), "edge").tag(sync=True)
    expanded = traitlets.List(traitlets.Int(), allow_none=True, default_value=None).tag(sync=True)
    selected = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    values = traitlets.Dict(key_trait=traitlets.Unicode(), value_trait=traitlets.Float()).tag(sync=True)
    height = traitlets.Int(None, allow_none=True).tag(sync=True)
    views = traitlets.Int(0).tag(sync=True)  # number of pages that show the player

    _ipython_display_ = None  # replaces a method of ipywidgets 7 that would hide the picture and the text from IPython

    def __init__(self, trace: Trace, **state: Any) -> None:
        self.trace = trace
        state = {**(initial_state(trace) or {}), **state}
        value_by_leaf = dict(islice(_scalar_leaves(trace), MAX_LEAF_TRAITS))
        traits = _trait_names(list(value_by_leaf))
        unknown = [name for name in state if name not in traits and not self.has_trait(name)]
        if unknown:
            trait_list = "position, playing, speed, granularity, selected, expanded, values, height"
            raise ArgumentError(
                f"Player: unexpected keyword argument {unknown[0]!r}.\n"
                f"  The state has {trait_list}, and one for each leaf."
            )
        leaf_traits = {trait: traitlets.Float(value_by_leaf[name]).tag(sync=True) for trait, name in traits.items()}
        self.add_traits(_esm=traitlets.Unicode(module()).tag(sync=True), **leaf_traits)
        text = trace.json(full=True)
        if len(text) > MAX_PLAIN_LENGTH:
            # Level 6 takes five times as long, and its result is only a seventh smaller.
            state["trace_packed"] = zlib.compress(text.encode(), 1)
        else:
            state["trace_text"] = text
        leaves = {trait: (name, value_by_leaf[name]) for trait, name in traits.items()}
        super().__init__(leaves=leaves, **state)
        _register_release(_current_shell())

    @traitlets.observe("views")
    def _on_views_change(self, change: Any) -> None:
        (UNSEEN_PLAYERS.discard if change["new"] > 0 else UNSEEN_PLAYERS.add)(self)

    @traitlets.validate("values")
    def _validate_values(self, proposal: Any) -> dict[str, float]:
        values: dict[str, float] = proposal["value"]
        scalar_leaves = dict(_scalar_leaves(self.trace)) if values else {}
        for name in values:
            if name not in scalar_leaves and _find_element(self.trace, name) is None:
                raise ArgumentError(
                    f"values: there is no scalar leaf or element {name!r}.\n"
                    "  Write {'a': 2.0} for a leaf a, {'w[0, 1]': 2.0} for an element of a tensor w."
                )
        return values

    def state(self) -> dict[str, Any]:
        """Return the position and the traits with non-default values, from which another player can start."""
        chosen = {name: getattr(self, name) for name in ("speed", "granularity", "expanded", "selected", "values")}
        defaults = self.trait_defaults(*chosen)
        return {"position": self.position, **{name: x for name, x in chosen.items() if x != defaults[name]}}

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        size: int | tuple[int, int] | None = None,
        speed: float | None = None,
        start: Any = None,
        stop: Any = None,
        fps: float | None = None,
        theme: Theme | None = None,
    ) -> None:
        """Write the player to `path` in the format of its suffix: a film as ``.gif``, ``.mp4``, or ``.svg`` (animated),
        or a page, ``.html``, with the player in its current state.

        The film shows the positions from `start` to `stop` (by default all), each an integer or specified as in a
        `tour`, with the values, the pace and the captions of the player. A film of six nodes takes about eight seconds
        at `speed` 1, and a film of any graph at most a minute. `size` is a width in pixels, or (width, height), in
        which the picture is centred; `theme` is "light" or "dark". GIF and MP4 have `fps` frames per second, 20 by
        default, and need the extra ``pictures``.

        Raises ArgumentError for another suffix, for an option that the format does not have, and if leaves were changed
        in the player, which Python does not recompute; MissingFileError if the folder of `path` does not exist, and
        MissingPackageError without the extra.

        >>> import minigrad as mg
        >>> import pathlib, tempfile
        >>> from minigrad_viz import play
        >>> a = mg.Value(3.0, "a")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "square.svg")
        ...     play(a * a).save(path, start="seed")
        ...     path.read_text(encoding="utf-8").count("Backward 2 of 2")
        1
        """
        changed_leaves = {
            name: initial_value
            for trait, (name, initial_value) in self.leaves.items()
            if getattr(self, trait) != initial_value
        }
        if changed := next(iter({**changed_leaves, **self.values}), None):
            raise ArgumentError(
                f"save: {changed} was changed in the player, and Python has not recomputed the graph.\n"
                "  Compute the graph with that value, and save a player of it."
            )
        expanded = None if self.expanded == (initial_state(self.trace) or {}).get("expanded") else self.expanded
        films = film_writers(self.trace, expanded, self.granularity, self.speed)
        page = FileWriter(lambda theme=None: html.page(self.trace, self.state(), theme=check_theme(theme)), ("theme",))
        options = {"size": size, "speed": speed, "start": start, "stop": stop, "fps": fps, "theme": theme}
        save(path, {**films, ".html": page}, "player.save('graph.gif')", **options)

    def slider(self, leaf: str, min: float | None = None, max: float | None = None, **options: Any) -> Any:
        """Return a slider for the value of the leaf named `leaf`. The slider is linked in the page, so changing the
        value needs no kernel.

        For a tensor, it controls an element, as in ``slider("w[0, 1]")``, which also gets a trait, ``leaf_w_0_1``.
        Raises ArgumentError if no scalar leaf or element has that name.
        """
        leaf, element_value = _find_element(self.trace, leaf) or (leaf, None)
        traits = {name: trait for trait, (name, _) in self.leaves.items()}
        if leaf not in traits and element_value is not None:
            traits = {name: trait for trait, name in _trait_names([*traits, leaf]).items()}
            self.add_traits(**{traits[leaf]: traitlets.Float(element_value).tag(sync=True)})
            self.leaves = {**self.leaves, traits[leaf]: (leaf, element_value)}
        if leaf not in traits:
            leaf_list = ", ".join(map(repr, traits)) or "none; for a tensor w name an element, w[0, 1]"
            raise ArgumentError(f"slider: there is no scalar leaf {leaf!r}.\n  The leaves are {leaf_list}.")
        trait = traits[leaf]
        value = getattr(self, trait)
        span = 2 * abs(value) or 1.0
        low, high = value - span if min is None else min, value + span if max is None else max
        options = {"step": (high - low) / 200, "description": leaf, "readout_format": ".3g", **options}
        slider = ipywidgets.FloatSlider(value=value, min=low, max=high, **options)
        ipywidgets.jslink((slider, "value"), (self, trait))
        return slider

    def __repr__(self) -> str:
        return f"Player({self.trace.sentence()})"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the widget view, with the picture and the text as fallbacks. They contain no memory address."""
        live, metadata = super()._repr_mimebundle_(**options) or ({}, {})
        view = {kind: content for kind, content in live.items() if kind.startswith("application/")}
        return {**view, "text/html": figure(self.trace, self.state()), "text/plain": table(self.trace)}, metadata


UNSEEN_PLAYERS: set[Player] = set()  # players without a view because the cell was rerun, cleared or deleted
RELEASING_SHELLS: weakref.WeakSet[Any] = weakref.WeakSet()  # shells that release players after each cell


def _current_shell() -> Any:
    """Return the IPython shell that runs this code, or None."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _register_release(shell: Any) -> None:
    """Register a callback that releases unseen players after each cell of `shell`."""
    if shell is not None and shell not in RELEASING_SHELLS:
        RELEASING_SHELLS.add(shell)
        shell.events.register("post_run_cell", lambda *_: release_unseen(shell.user_ns))


def release_unseen(namespace: dict[str, Any]) -> None:
    """Close the players without a view to which no variable in `namespace` refers.

    ipywidgets retains each widget until it is closed, and IPython retains each cell result in ``Out``. A player is
    closed only after the next cell has run, so that a notebook that is closed and reopened still contains its players.
    """
    outputs = namespace.get("_oh", {})
    for player in list(UNSEEN_PLAYERS):
        if any(x is player for name, x in list(namespace.items()) if not name.startswith("_")):
            continue
        UNSEEN_PLAYERS.discard(player)
        player.close()
        for cell in [cell for cell, x in outputs.items() if x is player]:
            del outputs[cell]
            namespace.pop(f"_{cell}", None)


def _scalar_leaves(trace: Trace) -> Iterator[tuple[str, float]]:
    """Yield the name and the value of each leaf that is a finite scalar."""
    for index, (kind, value) in enumerate(zip(trace.kinds, trace.values, strict=True)):
        if kind == "l" and value is not None and math.isfinite(value):
            yield trace.names[index] or handle(index), value


def _find_element(trace: Trace, text: str) -> tuple[str, float] | None:
    """Return the name of a leaf's element, as the player writes it, and its value; None if there is no such element."""
    leaf_name, _, subscript = text.removesuffix("]").rpartition("[") if text.endswith("]") else (text, "", "")
    index_tuple = tuple(map(int, re.findall(r"\d+", subscript)))
    for index, shaped in trace.tensors.items():
        array = shaped.array
        if trace.kinds[index] != "l" or (trace.names[index] or handle(index)) != leaf_name or array is None:
            continue
        if (
            array.dtype.kind == "f"
            and len(index_tuple) == array.ndim
            and all(map(int.__lt__, index_tuple, array.shape))
        ):
            return f"{leaf_name}[{', '.join(map(str, index_tuple))}]" if index_tuple else leaf_name, float(
                array[index_tuple]
            )
    return None


def _trait_names(leaves: list[str]) -> dict[str, str]:
    """Return a mapping from trait names to leaves. Trait names are valid Python identifiers, numbered if necessary.

    >>> _trait_names(["a", "w[0]", "w₀", "w.0"])
    {'leaf_a': 'a', 'leaf_w_0': 'w[0]', 'leaf_w0': 'w₀', 'leaf_w_0_2': 'w.0'}
    """
    traits: dict[str, str] = {}
    for leaf in leaves:
        normalized = unicodedata.normalize("NFKC", leaf)
        name = base = "leaf_" + re.sub(r"\W+", "_", normalized).strip("_")[:MAX_LEAF_NAME_LENGTH]
        count = 1
        while name in traits:
            count += 1
            name = f"{base}_{count}"
        traits[name] = leaf
    return traits
