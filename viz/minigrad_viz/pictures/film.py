"""Animations of the forward and backward pass, as the player shows them: animated SVG, GIF and MP4.

Each position is a still from `moments`; between two stills, a pill with the gradient moves back over its edge. typst
rasterises the stills and `encoding` encodes the frames.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Literal

from minigrad.core.errors import ArgumentError
from minigrad.core.packages import explained, package
from minigrad_viz.pictures import encoding
from minigrad_viz.pictures.curves import Point, short
from minigrad_viz.pictures.moments import Stage, Traveller, stage_of
from minigrad_viz.pictures.overlay import large_in, pill, pill_width
from minigrad_viz.pictures.palette import THEMES, Theme
from minigrad_viz.pictures.rendering import INSTEAD, png
from minigrad_viz.pictures.saving import FileWriter, is_whole, number_of, theme_of
from minigrad_viz.pictures.scene import scene
from minigrad_viz.trace import Trace
from minigrad_viz.trace.history import Timeline
from minigrad_viz.trace.positions import position_of

__all__ = ["Film", "film_of", "point_on", "positions_of", "writers"]

Size = int | tuple[int, int]

_CALM, _BRIEF, _LONGEST = 0.8, 0.25, 59.0  # seconds, as in `pace` of frontend/src/panels/session.js
_TRAVEL = 0.6  # seconds that a pill moves along an edge; at most three quarters of a step
_WIDE = 2400  # maximum width of a scene, in pixels, while blocks can be closed
_FULL = 1920  # maximum default width, in pixels
_STEPS = 8  # keyframes of a moving pill in animated SVG
_FPS = 20
_ANIMATED = (
    ".v{visibility:hidden}.v.e{visibility:visible}"
    "@media (prefers-reduced-motion:no-preference){.v{animation:TIMEs step-end infinite}"
    ".t{animation-timing-function:linear}RULES}"
)


def positions_of(
    timeline: Timeline, start: int, stop: int, unit: Literal["edge", "op"], opened: Collection[int] = ()
) -> tuple[list[int], float]:
    """Return the positions to show from `start` to `stop`, and the seconds per position at speed 1.

    The film lasts at most a minute, with the last position shown twice. A long film skips steps, and all steps inside a
    closed block, one that is not in `opened`.
    """
    many = max(1, math.ceil((stop - start) * _BRIEF / _LONGEST))
    found = [start]
    while found[-1] < stop:
        to = found[-1]
        for _ in range(many):
            to = timeline.next(to, unit)
        if many > 1:
            while to < stop and (block := _closed(timeline, to, opened)) and block == _closed(timeline, to + 1, opened):
                to += 1
        found.append(min(to, stop))
    return found, min(_CALM, _LONGEST / (len(found) + 1))


def _closed(timeline: Timeline, position: int, opened: Collection[int]) -> int:
    """Return the outermost closed block that contains the node of a position, or 0."""
    blocks, found = timeline.trace.blocks, 0
    k = timeline.trace.block[timeline.at(position).node]
    while k > 0:
        found = found if k in opened else k
        k = blocks[k].outer
    return found


@dataclass
class Film:
    """A looping film of the stills of `stage` at `positions`, each shown for `step` seconds, the last twice as long."""

    stage: Stage
    positions: list[int]
    step: float
    theme: Theme | None

    @property
    def duration(self) -> float:
        """The duration in seconds."""
        return (len(self.positions) + 1) * self.step

    def traveller(self, at: int) -> Traveller | None:
        """Return the gradient that moves on the transition to still `at`; None if none does."""
        return self.stage.traveller(self.positions[at]) if at else None

    def svg(self, size: Size | None = None) -> str:
        """Return SVG with CSS animations, which also run in an ``<img>``; where disabled, it shows the last still."""
        slots = zip(*(self.stage.pieces(position) for position in self.positions), strict=True)
        rules: dict[str, str] = {}
        parts, large = [self._slot(slot, rules) for slot in slots], large_in(self.stage.seen)
        for at in range(len(self.positions)):
            if one := self.traveller(at):
                rules[f"t{at}"] = self._way(at, one.points)
                flying = pill(one.text, (0.0, 0.0), large, one.text.startswith("−"))
                parts.append(f'<g class="v t" style="animation-name:t{at}">{flying}</g>')
        keyframes = "".join(f"@keyframes {name}{{{rule}}}" for name, rule in rules.items())
        css = _ANIMATED.replace("TIME", f"{self.duration:g}").replace("RULES", keyframes)
        shown = None if size is None else self.fitted(size)
        return self.stage.document("".join(parts), self.theme, css, shown).svg

    def _slot(self, slot: Sequence[str], rules: dict[str, str]) -> str:
        """Return the distinct versions of one piece over all stills, each visible only during its stills."""
        runs = [(piece, [at for at, _ in group]) for piece, group in groupby(enumerate(slot), key=lambda pair: pair[1])]
        if len(runs) == 1:
            return slot[0]
        parts = []
        for piece, run in runs:
            if piece:
                first, last = run[0], run[-1] + 1
                rules[f"s{first}-{last}"] = self._while(first, last)
                end = " e" if last == len(slot) else ""
                parts.append(f'<g class="v{end}" style="animation-name:s{first}-{last}">{piece}</g>')
        return "".join(parts)

    def _percent(self, seconds: float) -> str:
        return f"{100 * seconds / self.duration:.3f}".rstrip("0").rstrip(".") + "%"

    def _while(self, first: int, last: int) -> str:
        """Return keyframes that are visible from still `first` until still `last`."""
        begins, ends = self._percent(first * self.step), self._percent(last * self.step)
        before = "0%{visibility:hidden}" if first else ""
        after = "" if last == len(self.positions) else f"{ends}{{visibility:hidden}}"
        return f"{before}{begins}{{visibility:visible}}{after}"

    def _way(self, at: int, points: Sequence[Point]) -> str:
        """Return keyframes that move a pill along `points`."""
        begin, end = at * self.step, at * self.step + self.travel
        frames = []
        for k in range(_STEPS + 1):
            x, y = point_on(points, _eased(k / _STEPS))
            when = self._percent(begin + (end - begin) * k / _STEPS)
            frames.append(f"{when}{{visibility:visible;transform:translate({short(x)}px,{short(y)}px)}}")
        hidden = f"0%,{self._percent(begin - 1e-4)}{{visibility:hidden}}"
        return f"{hidden}{''.join(frames)}{self._percent(end + 1e-4)},to{{visibility:hidden}}"

    @property
    def travel(self) -> float:
        """The duration of the motion of a pill, in seconds."""
        return min(_TRAVEL, 0.75 * self.step)

    # --- frames ---

    def fitted(self, size: Size | None) -> tuple[int, int]:
        """Return the (width, height) in pixels: `size`, or twice the size of the scene up to a limit."""
        wide, high = self.stage.size
        if isinstance(size, tuple):
            return size
        width = min(2 * wide, _FULL) if size is None else size
        return width, max(1, round(width * high / wide))

    def _cuts(self, fps: float) -> list[tuple[int, int, int]]:
        """Return for each still the indices of its first frame, first frame without motion, and end (exclusive).

        Raises ArgumentError if a step is shorter than a frame.
        """
        if fps * self.step < 1:
            raise ArgumentError(
                f"save: at fps = {fps:g} a frame lasts {1 / fps:.3g} s, longer than a step ({self.step:.3g} s).\n"
                f"  Use at least {math.ceil(1 / self.step)} frames per second, or a lower speed."
            )
        edges = [round(at * self.step * fps) for at in range(len(self.positions))]
        found = []
        for at, (first, after) in enumerate(pairwise([*edges, round(self.duration * fps)])):
            arrived = math.ceil((at * self.step + self.travel) * fps) if self.traveller(at) else first
            found.append((first, min(arrived, after - 1), after))
        return found

    def frames(self, size: tuple[int, int], fps: float) -> Iterator[tuple[Any, int]]:
        """Yield each frame, a uint8 array of shape (height, width, 3), and its duration in frames."""
        for at, (first, arrived, after) in enumerate(self._cuts(fps)):
            still, one = self._still(at, size), self.traveller(at)
            if one is not None:
                flying = self._pill(one.text, size)
                for frame in range(first, arrived):
                    done = min(1.0, max(0.0, (frame / fps - at * self.step) / self.travel))
                    yield self._over(still, flying, point_on(one.points, _eased(done)), size), 1
            yield still, after - arrived

    def _still(self, at: int, size: tuple[int, int]) -> Any:
        """Render a still as an array, without the border of the page."""
        theme = self.theme or "light"
        pieces = "".join(self.stage.pieces(self.positions[at]))
        picture = self.stage.document(pieces, theme, ".mg .page{stroke:none}")
        return encoding.pixels(png(picture.svg, size, THEMES[theme]["page"]))[..., :3]

    def _scale(self, size: tuple[int, int]) -> tuple[float, float, float]:
        """Return the scale from scene to film pixels, and the left and top offsets of the scene."""
        wide, high = self.stage.size
        scale = min(size[0] / wide, size[1] / high)
        return scale, (size[0] - scale * wide) / 2, (size[1] - scale * high) / 2

    def _pill(self, text: str, size: tuple[int, int]) -> Any:
        """Render the moving pill as an RGBA array."""
        scale = self._scale(size)[0]
        large = large_in(self.stage.seen)
        wide, high = large * (pill_width(text) + 4), large * 24.0
        one = pill(text, (wide / 2, high / 2), large, text.startswith("−"))
        picture = self.stage.document(one, self.theme or "light", ".mg .page{display:none}", box=(wide, high))
        return encoding.pixels(png(picture.svg, (math.ceil(wide * scale), math.ceil(high * scale))))

    def _over(self, still: Any, flying: Any, point: Point, size: tuple[int, int]) -> Any:
        """Return a copy of a still with the pill blended over it, centred at `point`."""
        scale, left, top = self._scale(size)
        high, wide = flying.shape[:2]
        x = min(max(round(left + scale * point[0] - wide / 2), 0), size[0] - wide)
        y = min(max(round(top + scale * point[1] - high / 2), 0), size[1] - high)
        frame = still.copy()
        part, alpha = frame[y : y + high, x : x + wide], flying[..., 3:].astype("uint16")
        part[...] = (flying[..., :3] * alpha + part * (255 - alpha) + 127) // 255
        return frame

    # --- encoded ---

    def gif(self, size: Size | None = None, fps: float = _FPS) -> bytes:
        """Return the film as a looping GIF, in which runs of equal frames are one longer frame."""
        if fps > 50:
            raise ArgumentError(
                f"save: GIF supports at most 50 frames per second, but got fps = {fps:g}.\n  Save an MP4."
            )
        fitted = self.fitted(size)
        with explained("save", INSTEAD):
            av = package("av", "save", INSTEAD)
            _, arrived, after = self._cuts(fps)[-1]
            palette = encoding.palette_of(av, [self._still(at, fitted) for at in self._sampled()])
            return encoding.gif(av, self.frames(fitted, fps), fitted, palette, fps, after - arrived)

    def _sampled(self) -> list[int]:
        """Return the indices of a few stills, from which the palette is computed."""
        count = len(self.positions)
        return sorted({0, count - 1, *range(0, count, max(1, count // 6))})

    def mp4(self, size: Size | None = None, fps: float = _FPS) -> bytes:
        """Return the film as MP4 (H.264), with width and height rounded up to even numbers of pixels."""
        width, height = (2 * math.ceil(side / 2) for side in self.fitted(size))
        with explained("save", INSTEAD):
            return encoding.mp4(package("av", "save", INSTEAD), self.frames((width, height), fps), (width, height), fps)


def film_of(
    trace: Trace,
    opened: Collection[int] | None = None,
    unit: Literal["edge", "op"] = "edge",
    *,
    speed: float = 1.0,
    start: Any = None,
    stop: Any = None,
    theme: Theme | None = None,
) -> Film:
    """Return the film of a trace from `start` to `stop`, positions as in a tour; None for the first or last."""
    speed = number_of(speed, "speed")
    timeline = Timeline(trace)
    first, last = (
        end if where is None else position_of(trace, {}, where, "save")
        for where, end in ((start, 0), (stop, timeline.last))
    )
    if first > last:
        raise ArgumentError(f"save: start (position {first}) is after stop (position {last}).\n  Swap start and stop.")
    seen = scene(trace, opened, timeline, _WIDE)
    shown, seconds = positions_of(timeline, first, last, unit, seen.opened)
    return Film(stage_of(seen, shown, bar=True), shown, seconds / speed, theme_of(theme))


def writers(trace: Trace, opened: Collection[int] | None, unit: Any, speed: float) -> dict[str, FileWriter]:
    """Return the file writers of films, by suffix; `speed` is the default speed."""

    def film(**options: Any) -> Film:
        return film_of(trace, opened, unit, **{"speed": speed, **options})

    def svg(size: Any = None, **options: Any) -> str:
        return film(**options).svg(_size_of(size))

    def gif(size: Any = None, fps: Any = None, **options: Any) -> bytes:
        return film(**options).gif(_size_of(size), number_of(_FPS if fps is None else fps, "fps"))

    def mp4(size: Any = None, fps: Any = None, **options: Any) -> bytes:
        return film(**options).mp4(_size_of(size), number_of(_FPS if fps is None else fps, "fps"))

    plain = ("size", "speed", "start", "stop", "theme")
    return {
        ".gif": FileWriter(gif, (*plain, "fps")),
        ".mp4": FileWriter(mp4, (*plain, "fps")),
        ".svg": FileWriter(svg, plain),
    }


def _size_of(size: Any) -> Size | None:
    """Return `size` if it is a width or a (width, height). Raises ArgumentError otherwise."""
    if size is None or is_whole(size):
        return None if size is None else int(size)
    if not isinstance(size, tuple | list) or len(size) != 2 or not all(map(is_whole, size)):
        raise ArgumentError(
            f"save: size must be a width or (width, height) in pixels, but got {size!r}.\n"
            "  Write size=800 or size=(800, 600)."
        )
    return int(size[0]), int(size[1])


# --- motion ----------------------------------------------------------------------------------------------------------


def _eased(t: float) -> float:
    """Ease `t` in [0, 1] in and out (smoothstep)."""
    return t * t * (3 - 2 * t)


def point_on(points: Sequence[Point], share: float) -> Point:
    """Return the point at a fraction `share`, 0 to 1, of the length of a polyline."""
    lengths = [math.dist(start, end) for start, end in pairwise(points)]
    left = share * sum(lengths)
    for (start, end), length in zip(pairwise(points), lengths, strict=True):
        if left <= length and length:
            part = left / length
            return start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])
        left -= length
    return points[-1]
