"""A film of the forward and the backward pass, as the player plays it: animated SVG, GIF, and MP4.

Every position is a still picture, of `moments`; between two of them the gradient travels back over its edge. typst
makes pictures of the stills, and `encoding` a film of these.
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

_CALM, _BRIEF, _LONGEST = 0.8, 0.25, 59.0  # seconds, as `pace` of frontend/src/panels/session.js has them
_TRAVEL = 0.6  # seconds from one end of an edge to the other, or three quarters of a shorter step
_WIDE = 2400  # pixels of a scene, if there are blocks to close
_FULL = 1920  # pixels: at most so wide is a film of which nobody said how wide it shall be
_STEPS = 8  # of a traveller in animated SVG
_FPS = 20
_ANIMATED = (
    ".v{visibility:hidden}.v.e{visibility:visible}"
    "@media (prefers-reduced-motion:no-preference){.v{animation:TIMEs step-end infinite}"
    ".t{animation-timing-function:linear}RULES}"
)


def positions_of(
    timeline: Timeline, start: int, stop: int, unit: Literal["edge", "op"], opened: Collection[int] = ()
) -> tuple[list[int], float]:
    """The positions that are shown from `start` to `stop`, and for how many seconds each, at speed 1.

    Of many several are made at once, and of a closed block, one that is not in `opened`, all: any takes at most a
    minute, with the last one twice.
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
    """The outermost closed block that hides the node of a position, 0 for none."""
    blocks, found = timeline.trace.blocks, 0
    k = timeline.trace.block[timeline.at(position).node]
    while k > 0:
        found = found if k in opened else k
        k = blocks[k].outer
    return found


@dataclass
class Film:
    """The stills of `stage` at `positions`, each `step` seconds long, the last twice: then it begins again."""

    stage: Stage
    positions: list[int]
    step: float
    theme: Theme | None

    @property
    def duration(self) -> float:
        """In seconds."""
        return (len(self.positions) + 1) * self.step

    def traveller(self, at: int) -> Traveller | None:
        """What travels on the way to still number `at`: nothing to the first."""
        return self.stage.traveller(self.positions[at]) if at else None

    def svg(self, size: Size | None = None) -> str:
        """The film as SVG with animations in CSS, which run in an ``<img>`` too; where none run it shows the end."""
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
        """One piece of all stills: each different one, to be seen while it holds."""
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
        """Keyframes of what is seen from still number `first` until number `last`."""
        begins, ends = self._percent(first * self.step), self._percent(last * self.step)
        before = "0%{visibility:hidden}" if first else ""
        after = "" if last == len(self.positions) else f"{ends}{{visibility:hidden}}"
        return f"{before}{begins}{{visibility:visible}}{after}"

    def _way(self, at: int, points: Sequence[Point]) -> str:
        """Keyframes of a pill that travels along points."""
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
        """How many seconds a traveller takes."""
        return min(_TRAVEL, 0.75 * self.step)

    # --- as pictures ---

    def fitted(self, size: Size | None) -> tuple[int, int]:
        """How large the film is, in pixels: as `size` says, or twice as large as the scene, up to a limit."""
        wide, high = self.stage.size
        if isinstance(size, tuple):
            return size
        width = min(2 * wide, _FULL) if size is None else size
        return width, max(1, round(width * high / wide))

    def _cuts(self, fps: float) -> list[tuple[int, int, int]]:
        """For each still the numbers of its first frame, of the first in which nothing travels, and of the next one's.

        Raises ArgumentError if a still would be seen in no frame.
        """
        if fps * self.step < 1:
            raise ArgumentError(
                f"save: fps = {fps:g} shows a frame each {1 / fps:.3g} s, and a step takes {self.step:.3g} s.\n"
                f"  Give at least {math.ceil(1 / self.step)} frames a second, or a lower speed."
            )
        edges = [round(at * self.step * fps) for at in range(len(self.positions))]
        found = []
        for at, (first, after) in enumerate(pairwise([*edges, round(self.duration * fps)])):
            arrived = math.ceil((at * self.step + self.travel) * fps) if self.traveller(at) else first
            found.append((first, min(arrived, after - 1), after))
        return found

    def frames(self, size: tuple[int, int], fps: float) -> Iterator[tuple[Any, int]]:
        """The frames of the film, and for each in how many frames' time it is seen.

        A frame is an array of (height, width, 3) bytes.
        """
        for at, (first, arrived, after) in enumerate(self._cuts(fps)):
            still, one = self._still(at, size), self.traveller(at)
            if one is not None:
                flying = self._pill(one.text, size)
                for frame in range(first, arrived):
                    done = min(1.0, max(0.0, (frame / fps - at * self.step) / self.travel))
                    yield self._over(still, flying, point_on(one.points, _eased(done)), size), 1
            yield still, after - arrived

    def _still(self, at: int, size: tuple[int, int]) -> Any:
        """A still as an array, on a ground without a border."""
        theme = self.theme or "light"
        pieces = "".join(self.stage.pieces(self.positions[at]))
        picture = self.stage.document(pieces, theme, ".mg .page{stroke:none}")
        return encoding.pixels(png(picture.svg, size, THEMES[theme]["page"]))[..., :3]

    def _scale(self, size: tuple[int, int]) -> tuple[float, float, float]:
        """How many pixels of a film of a size are one of the scene, and where that begins."""
        wide, high = self.stage.size
        scale = min(size[0] / wide, size[1] / high)
        return scale, (size[0] - scale * wide) / 2, (size[1] - scale * high) / 2

    def _pill(self, text: str, size: tuple[int, int]) -> Any:
        """What travels, as an array with an opacity."""
        scale = self._scale(size)[0]
        large = large_in(self.stage.seen)
        wide, high = large * (pill_width(text) + 4), large * 24.0
        one = pill(text, (wide / 2, high / 2), large, text.startswith("−"))
        picture = self.stage.document(one, self.theme or "light", ".mg .page{display:none}", box=(wide, high))
        return encoding.pixels(png(picture.svg, (math.ceil(wide * scale), math.ceil(high * scale))))

    def _over(self, still: Any, flying: Any, point: Point, size: tuple[int, int]) -> Any:
        """A still with what travels around a point."""
        scale, left, top = self._scale(size)
        high, wide = flying.shape[:2]
        x = min(max(round(left + scale * point[0] - wide / 2), 0), size[0] - wide)
        y = min(max(round(top + scale * point[1] - high / 2), 0), size[1] - high)
        frame = still.copy()
        part, alpha = frame[y : y + high, x : x + wide], flying[..., 3:].astype("uint16")
        part[...] = (flying[..., :3] * alpha + part * (255 - alpha) + 127) // 255
        return frame

    # --- as films ---

    def gif(self, size: Size | None = None, fps: float = _FPS) -> bytes:
        """The film as GIF, which is played again and again; frames that are equal are one that is seen longer."""
        if fps > 50:
            raise ArgumentError(f"save: a GIF shows at most 50 frames a second, not fps = {fps:g}.\n  Save an MP4.")
        fitted = self.fitted(size)
        with explained("save", INSTEAD):
            av = package("av", "save", INSTEAD)
            _, arrived, after = self._cuts(fps)[-1]
            palette = encoding.palette_of(av, [self._still(at, fitted) for at in self._sampled()])
            return encoding.gif(av, self.frames(fitted, fps), fitted, palette, fps, after - arrived)

    def _sampled(self) -> list[int]:
        """A few stills in which all colours occur."""
        count = len(self.positions)
        return sorted({0, count - 1, *range(0, count, max(1, count // 6))})

    def mp4(self, size: Size | None = None, fps: float = _FPS) -> bytes:
        """The film as MP4, H.264, of an even number of rows and columns."""
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
    """The film of a trace; `start` and `stop` are positions, as a tour gives them, or None for the ends."""
    speed = number_of(speed, "speed")
    timeline = Timeline(trace)
    first, last = (
        end if where is None else position_of(trace, {}, where, "save")
        for where, end in ((start, 0), (stop, timeline.last))
    )
    if first > last:
        raise ArgumentError(f"save: it starts at {first}, after it stops, at {last}.\n  Exchange start and stop.")
    seen = scene(trace, opened, timeline, _WIDE)
    shown, seconds = positions_of(timeline, first, last, unit, seen.opened)
    return Film(stage_of(seen, shown, bar=True), shown, seconds / speed, theme_of(theme))


def writers(trace: Trace, opened: Collection[int] | None, unit: Any, speed: float) -> dict[str, FileWriter]:
    """What films are written by, by suffix; `speed` is that of those for which none is given."""

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
    """`size`, if it is a width, or a width and a height. Raises ArgumentError for anything else."""
    if size is None or is_whole(size):
        return None if size is None else int(size)
    if not isinstance(size, tuple | list) or len(size) != 2 or not all(map(is_whole, size)):
        raise ArgumentError(
            f"save: size = {size!r} is no size in pixels.\n  Write size=800, a width, or size=(800, 600)."
        )
    return int(size[0]), int(size[1])


# --- motion ----------------------------------------------------------------------------------------------------------


def _eased(t: float) -> float:
    """Slow at both ends."""
    return t * t * (3 - 2 * t)


def point_on(points: Sequence[Point], share: float) -> Point:
    """The point at a share, 0 to 1, of the way along some."""
    lengths = [math.dist(start, end) for start, end in pairwise(points)]
    left = share * sum(lengths)
    for (start, end), length in zip(pairwise(points), lengths, strict=True):
        if left <= length and length:
            part = left / length
            return start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])
        left -= length
    return points[-1]
