"""Animations of the forward and backward pass, as the player shows them: animated SVG, GIF and MP4.

Each position is a still image from `moments`. Between two stills of the backward pass, a pill with the gradient moves
along an edge. typst rasterises the stills, and `encoding` encodes the frames.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Literal

from minigrad.core.errors import ArgumentError
from minigrad.core.packages import explain_import_errors, import_package
from minigrad_viz.pictures import encoding
from minigrad_viz.pictures.curves import Point, format_coordinate
from minigrad_viz.pictures.file_writers import FileWriter, check_positive, check_theme, is_positive_int
from minigrad_viz.pictures.moments import MovingGradient, Stage, make_stage
from minigrad_viz.pictures.overlay import draw_pill, pill_scale_for, pill_width
from minigrad_viz.pictures.palette import THEMES, Theme
from minigrad_viz.pictures.rendering import ALTERNATIVE_HINT, render_png
from minigrad_viz.pictures.scene import build_scene
from minigrad_viz.trace import Trace
from minigrad_viz.trace.history import Timeline
from minigrad_viz.trace.positions import position_of

__all__ = ["Film", "film_positions", "film_writers", "make_film", "point_on"]

Size = int | tuple[int, int]

# Durations in seconds, as in `pace` of frontend/src/panels/session.js.
_STEP_SECONDS, _MIN_STEP_SECONDS, _MAX_SECONDS = 0.8, 0.25, 59.0
_TRAVEL_SECONDS = 0.6  # maximum duration of the motion of a pill, in seconds
_MAX_SCENE_WIDTH = 2400  # Width of a scene, in pixels, above which blocks are closed.
_MAX_WIDTH = 1920  # maximum width, in pixels, if no size is given
_MOTION_KEYFRAMES = 8  # number of intervals between the keyframes of a moving pill
_FPS = 20
_ANIMATION_CSS = (
    ".v{visibility:hidden}.v.e{visibility:visible}"
    "@media (prefers-reduced-motion:no-preference){.v{animation:TIMEs step-end infinite}"
    ".t{animation-timing-function:linear}RULES}"
)


def film_positions(
    timeline: Timeline, start: int, stop: int, unit: Literal["edge", "op"], opened: Collection[int] = ()
) -> tuple[list[int], float]:
    """Return the positions to show from `start` to `stop`, and the seconds per position at speed 1.

    The film lasts at most a minute, including the last position, which lasts twice as long. A long film skips steps,
    and all steps inside a closed block, that is, a block that is not in `opened`.
    """
    stride = max(1, math.ceil((stop - start) * _MIN_STEP_SECONDS / _MAX_SECONDS))
    positions = [start]
    while positions[-1] < stop:
        position = positions[-1]
        for _ in range(stride):
            position = timeline.next(position, unit)
        if stride > 1:
            while (
                position < stop
                and (block := _closed_block(timeline, position, opened))
                and block == _closed_block(timeline, position + 1, opened)
            ):
                position += 1
        positions.append(min(position, stop))
    return positions, min(_STEP_SECONDS, _MAX_SECONDS / (len(positions) + 1))


def _closed_block(timeline: Timeline, position: int, opened: Collection[int]) -> int:
    """Return the outermost closed block that contains the node of a position, or 0 if there is none."""
    blocks, closed = timeline.trace.blocks, 0
    block = timeline.trace.block[timeline.at(position).node]
    while block > 0:
        closed = closed if block in opened else block
        block = blocks[block].outer
    return closed


@dataclass
class Film:
    """A looping film of the stills of `stage` at `positions`.

    Each still is shown for `step_seconds` seconds, and the last for twice as long.
    """

    stage: Stage
    positions: list[int]
    step_seconds: float
    theme: Theme | None

    @property
    def duration(self) -> float:
        """The duration in seconds."""
        return (len(self.positions) + 1) * self.step_seconds

    def moving_gradient(self, index: int) -> MovingGradient | None:
        """Return the gradient that moves in the transition to still `index`, or None if there is none."""
        return self.stage.moving_gradient(self.positions[index]) if index else None

    def svg(self, size: Size | None = None) -> str:
        """Return SVG with CSS animations, which also run in an ``<img>``. If disabled, the last still is shown."""
        slots = zip(*(self.stage.pieces(position) for position in self.positions), strict=True)
        rules: dict[str, str] = {}
        parts, pill_scale = [self._slot(slot, rules) for slot in slots], pill_scale_for(self.stage.scene)
        for index in range(len(self.positions)):
            if gradient := self.moving_gradient(index):
                rules[f"t{index}"] = self._motion_keyframes(index, gradient.points)
                pill_svg = draw_pill(gradient.text, (0.0, 0.0), pill_scale, gradient.text.startswith("−"))
                parts.append(f'<g class="v t" style="animation-name:t{index}">{pill_svg}</g>')
        keyframes = "".join(f"@keyframes {name}{{{rule}}}" for name, rule in rules.items())
        css = _ANIMATION_CSS.replace("TIME", f"{self.duration:g}").replace("RULES", keyframes)
        display_size = None if size is None else self.fit_size(size)
        return self.stage.document("".join(parts), self.theme, css, display_size).svg

    def _slot(self, slot: Sequence[str], rules: dict[str, str]) -> str:
        """Return the SVG of one piece of all stills. Each distinct version is visible only during its stills."""
        runs = [(piece, [at for at, _ in group]) for piece, group in groupby(enumerate(slot), key=lambda pair: pair[1])]
        if len(runs) == 1:
            return slot[0]
        parts = []
        for piece, run in runs:
            if piece:
                first, last = run[0], run[-1] + 1
                rules[f"s{first}-{last}"] = self._visibility_keyframes(first, last)
                end = " e" if last == len(slot) else ""
                parts.append(f'<g class="v{end}" style="animation-name:s{first}-{last}">{piece}</g>')
        return "".join(parts)

    def _percent(self, seconds: float) -> str:
        return f"{100 * seconds / self.duration:.3f}".rstrip("0").rstrip(".") + "%"

    def _visibility_keyframes(self, first: int, last: int) -> str:
        """Return the CSS keyframes of an element that is visible from still `first` until still `last`."""
        start_percent, end_percent = self._percent(first * self.step_seconds), self._percent(last * self.step_seconds)
        before = "0%{visibility:hidden}" if first else ""
        after = "" if last == len(self.positions) else f"{end_percent}{{visibility:hidden}}"
        return f"{before}{start_percent}{{visibility:visible}}{after}"

    def _motion_keyframes(self, index: int, points: Sequence[Point]) -> str:
        """Return the CSS keyframes of a pill that moves along `points` in the transition to still `index`."""
        start, end = index * self.step_seconds, index * self.step_seconds + self.travel_seconds
        frames = []
        for k in range(_MOTION_KEYFRAMES + 1):
            x, y = point_on(points, _ease(k / _MOTION_KEYFRAMES))
            percent = self._percent(start + (end - start) * k / _MOTION_KEYFRAMES)
            frames.append(
                f"{percent}{{visibility:visible;transform:translate({format_coordinate(x)}px,{format_coordinate(y)}px)}}"
            )
        hidden = f"0%,{self._percent(start - 1e-4)}{{visibility:hidden}}"
        return f"{hidden}{''.join(frames)}{self._percent(end + 1e-4)},to{{visibility:hidden}}"

    @property
    def travel_seconds(self) -> float:
        """The duration of the motion of a pill, in seconds, at most three quarters of a step."""
        return min(_TRAVEL_SECONDS, 0.75 * self.step_seconds)

    # --- frames ---

    def fit_size(self, size: Size | None) -> tuple[int, int]:
        """Return the (width, height) in pixels. By default, it is twice the size of the scene, up to a limit."""
        scene_width, scene_height = self.stage.size
        if isinstance(size, tuple):
            return size
        width = min(2 * scene_width, _MAX_WIDTH) if size is None else size
        return width, max(1, round(width * scene_height / scene_width))

    def _frame_ranges(self, fps: float) -> list[tuple[int, int, int]]:
        """Return, for each still, the indices of its first frame, first frame without motion, and end (exclusive).

        Raises ArgumentError if a step is shorter than a frame.
        """
        if fps * self.step_seconds < 1:
            raise ArgumentError(
                f"save: at fps = {fps:g} a frame lasts {1 / fps:.3g} s, longer than a step ({self.step_seconds:.3g} "
                f"s).\n  Use at least {math.ceil(1 / self.step_seconds)} frames per second, or a lower speed."
            )
        edges = [round(index * self.step_seconds * fps) for index in range(len(self.positions))]
        ranges = []
        for at, (first, end) in enumerate(pairwise([*edges, round(self.duration * fps)])):
            motion_end = (
                math.ceil((at * self.step_seconds + self.travel_seconds) * fps) if self.moving_gradient(at) else first
            )
            ranges.append((first, min(motion_end, end - 1), end))
        return ranges

    def frames(self, size: tuple[int, int], fps: float) -> Iterator[tuple[Any, int]]:
        """Yield images, uint8 arrays of shape (height, width, 3), each with the number of frames that show it."""
        for index, (first, motion_end, end) in enumerate(self._frame_ranges(fps)):
            still, gradient = self._render_still(index, size), self.moving_gradient(index)
            if gradient is not None:
                pill_image = self._render_pill(gradient.text, size)
                for frame in range(first, motion_end):
                    progress = min(1.0, max(0.0, (frame / fps - index * self.step_seconds) / self.travel_seconds))
                    yield self._blend(still, pill_image, point_on(gradient.points, _ease(progress)), size), 1
            yield still, end - motion_end

    def _render_still(self, index: int, size: tuple[int, int]) -> Any:
        """Render a still as an array, without the border of the page."""
        theme = self.theme or "light"
        pieces = "".join(self.stage.pieces(self.positions[index]))
        picture = self.stage.document(pieces, theme, ".mg .page{stroke:none}")
        return encoding.decode_png(render_png(picture.svg, size, THEMES[theme]["page"]))[..., :3]

    def _scale(self, size: tuple[int, int]) -> tuple[float, float, float]:
        """Return the scale from scene to film coordinates, and the left and top offsets of the scene in pixels."""
        scene_width, scene_height = self.stage.size
        scale = min(size[0] / scene_width, size[1] / scene_height)
        return scale, (size[0] - scale * scene_width) / 2, (size[1] - scale * scene_height) / 2

    def _render_pill(self, text: str, size: tuple[int, int]) -> Any:
        """Render a pill with the label `text` as an RGBA array."""
        scale = self._scale(size)[0]
        pill_scale = pill_scale_for(self.stage.scene)
        width, height = pill_scale * (pill_width(text) + 4), pill_scale * 24.0
        pill_svg = draw_pill(text, (width / 2, height / 2), pill_scale, text.startswith("−"))
        picture = self.stage.document(
            pill_svg, self.theme or "light", ".mg .page{display:none}", view_size=(width, height)
        )
        return encoding.decode_png(render_png(picture.svg, (math.ceil(width * scale), math.ceil(height * scale))))

    def _blend(self, still: Any, pill_image: Any, point: Point, size: tuple[int, int]) -> Any:
        """Return a copy of a still with an alpha-blended pill, whose centre is at `point` of the scene."""
        scale, left, top = self._scale(size)
        height, width = pill_image.shape[:2]
        x = min(max(round(left + scale * point[0] - width / 2), 0), size[0] - width)
        y = min(max(round(top + scale * point[1] - height / 2), 0), size[1] - height)
        frame = still.copy()
        part, alpha = frame[y : y + height, x : x + width], pill_image[..., 3:].astype("uint16")
        part[...] = (pill_image[..., :3] * alpha + part * (255 - alpha) + 127) // 255
        return frame

    # --- encoded ---

    def gif(self, size: Size | None = None, fps: float = _FPS) -> bytes:
        """Return the film as a looping GIF. Consecutive equal frames are merged into a single, longer frame."""
        if fps > 50:
            raise ArgumentError(
                f"save: GIF supports at most 50 frames per second, but got fps = {fps:g}.\n  Save an MP4."
            )
        pixel_size = self.fit_size(size)
        with explain_import_errors("save", ALTERNATIVE_HINT):
            av = import_package("av", "save", ALTERNATIVE_HINT)
            _, motion_end, end = self._frame_ranges(fps)[-1]
            palette = encoding.make_palette(av, [self._render_still(at, pixel_size) for at in self._palette_stills()])
            return encoding.encode_gif(av, self.frames(pixel_size, fps), pixel_size, palette, fps, end - motion_end)

    def _palette_stills(self) -> list[int]:
        """Return the indices of the stills from which the palette is computed."""
        count = len(self.positions)
        return sorted({0, count - 1, *range(0, count, max(1, count // 6))})

    def mp4(self, size: Size | None = None, fps: float = _FPS) -> bytes:
        """Return the film as MP4 (H.264), with width and height rounded up to even numbers of pixels."""
        width, height = (2 * math.ceil(side / 2) for side in self.fit_size(size))
        with explain_import_errors("save", ALTERNATIVE_HINT):
            return encoding.encode_mp4(
                import_package("av", "save", ALTERNATIVE_HINT), self.frames((width, height), fps), (width, height), fps
            )


def make_film(
    trace: Trace,
    opened: Collection[int] | None = None,
    unit: Literal["edge", "op"] = "edge",
    *,
    speed: float = 1.0,
    start: Any = None,
    stop: Any = None,
    theme: Theme | None = None,
) -> Film:
    """Return the film of a trace from `start` to `stop`, positions as in a tour, or None for the first or last."""
    speed = check_positive(speed, "speed")
    timeline = Timeline(trace)
    first, last = (
        end if selection is None else position_of(trace, {}, selection, "save")
        for selection, end in ((start, 0), (stop, timeline.last))
    )
    if first > last:
        raise ArgumentError(f"save: start (position {first}) is after stop (position {last}).\n  Swap start and stop.")
    scene = build_scene(trace, opened, timeline, _MAX_SCENE_WIDTH)
    positions, step_seconds = film_positions(timeline, first, last, unit, scene.open_blocks)
    return Film(
        make_stage(scene, positions, has_progress_bar=True), positions, step_seconds / speed, check_theme(theme)
    )


def film_writers(trace: Trace, opened: Collection[int] | None, unit: Any, speed: float) -> dict[str, FileWriter]:
    """Return a dict that maps each suffix to a writer of films, with `speed` as the default speed."""

    def film(**options: Any) -> Film:
        return make_film(trace, opened, unit, **{"speed": speed, **options})

    def svg(size: Any = None, **options: Any) -> str:
        return film(**options).svg(_check_size(size))

    def gif(size: Any = None, fps: Any = None, **options: Any) -> bytes:
        return film(**options).gif(_check_size(size), check_positive(_FPS if fps is None else fps, "fps"))

    def mp4(size: Any = None, fps: Any = None, **options: Any) -> bytes:
        return film(**options).mp4(_check_size(size), check_positive(_FPS if fps is None else fps, "fps"))

    common_options = ("size", "speed", "start", "stop", "theme")
    return {
        ".gif": FileWriter(gif, (*common_options, "fps")),
        ".mp4": FileWriter(mp4, (*common_options, "fps")),
        ".svg": FileWriter(svg, common_options),
    }


def _check_size(size: Any) -> Size | None:
    """Return `size` if it is None, a width or a (width, height). Raises ArgumentError otherwise."""
    if size is None or is_positive_int(size):
        return None if size is None else int(size)
    if not isinstance(size, tuple | list) or len(size) != 2 or not all(map(is_positive_int, size)):
        raise ArgumentError(
            f"save: size must be a width or (width, height) in pixels, but got {size!r}.\n"
            "  Write size=800 or size=(800, 600)."
        )
    return int(size[0]), int(size[1])


# --- motion ----------------------------------------------------------------------------------------------------------


def _ease(t: float) -> float:
    """Map `t` in [0, 1] to the smoothstep function, which accelerates at the start and decelerates at the end."""
    return t * t * (3 - 2 * t)


def point_on(points: Sequence[Point], fraction: float) -> Point:
    """Return the point of a polyline at the fraction `fraction`, from 0 to 1, of its length."""
    lengths = [math.dist(start, end) for start, end in pairwise(points)]
    remaining = fraction * sum(lengths)
    for (start, end), length in zip(pairwise(points), lengths, strict=True):
        if remaining <= length and length:
            segment_fraction = remaining / length
            return start[0] + segment_fraction * (end[0] - start[0]), start[1] + segment_fraction * (end[1] - start[1])
        remaining -= length
    return points[-1]
