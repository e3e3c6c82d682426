"""Encoding of frames as GIF and MP4 with PyAV (FFmpeg); `av` is the package."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from minigrad.core.packages import package
from minigrad_viz.pictures.rendering import INSTEAD

__all__ = ["gif", "mp4", "palette_of", "pixels"]

_BT709 = "colorprim=bt709:transfer=bt709:colormatrix=bt709"  # the colour space that players assume
_HUNDREDTH = Fraction(1, 100)  # the time base of GIF, in seconds


def pixels(data: bytes) -> Any:
    """Decode a PNG to a uint8 array of shape (height, width, 4)."""
    av = package("av", "save", INSTEAD)
    decoder = av.CodecContext.create("png", "r")
    frames = decoder.decode(av.Packet(data)) + decoder.decode(None)
    return frames[0].to_ndarray(format="rgba")


def _frame(av: Any, pixels: Any, pts: int) -> Any:
    """Return an array as a video frame with presentation timestamp `pts`, in the time base of its stream."""
    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
    frame.pts = pts
    return frame


def _source(av: Any, graph: Any, width: int, height: int, format: str) -> Any:
    return graph.add_buffer(width=width, height=height, format=av.VideoFormat(format), time_base=_HUNDREDTH)


def palette_of(av: Any, stills: Sequence[Any]) -> Any:
    """Return a palette of 256 colours for some stills, as a video frame."""
    height, width = stills[0].shape[:2]
    graph = av.filter.Graph()
    source = _source(av, graph, width, height, "rgb24")
    sink = graph.add("buffersink")
    graph.link_nodes(source, graph.add("palettegen", "reserve_transparent=0"), sink).configure()
    for at, still in enumerate(stills):
        source.push(_frame(av, still, at))
    source.push(None)
    found = sink.pull()
    found.pts = 0
    return found


def _mapping(av: Any, palette: Any, width: int, height: int) -> tuple[Any, Any, Any]:
    """Return a filter that quantises frames to a palette: its graph, which must stay alive, its source and its sink."""
    graph = av.filter.Graph()
    source = _source(av, graph, width, height, "rgb24")
    colours = _source(av, graph, palette.width, palette.height, palette.format.name)
    mapping, sink = graph.add("paletteuse", "dither=none:diff_mode=rectangle"), graph.add("buffersink")
    source.link_to(mapping, 0, 0)
    colours.link_to(mapping, 0, 1)
    mapping.link_to(sink)
    graph.configure()
    colours.push(palette)
    colours.push(None)
    return graph, source, sink


def gif(
    av: Any, frames: Iterator[tuple[Any, int]], size: tuple[int, int], palette: Any, fps: float, last: int
) -> bytes:
    """Encode frames as GIF. `palette` is a palette frame, `last` the duration of the last frame, in frames."""
    _graph, source, sink = _mapping(av, palette, *size)
    made, seen = io.BytesIO(), 0
    with av.open(made, "w", format="gif", options={"final_delay": str(round(100 * last / fps))}) as container:
        stream = container.add_stream("gif", rate=100)
        stream.width, stream.height, stream.pix_fmt = *size, "pal8"
        stream.time_base = _HUNDREDTH
        for pixels, count in frames:
            source.push(_frame(av, pixels, round(100 * seen / fps)))
            seen += count
            container.mux(stream.encode(sink.pull()))
        container.mux(stream.encode(None))
    return made.getvalue()


def mp4(av: Any, frames: Iterator[tuple[Any, int]], size: tuple[int, int], fps: float) -> bytes:
    """Encode frames as MP4 (H.264) at a constant frame rate, which all players support."""
    made = io.BytesIO()
    with av.open(made, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.options = {"crf": "18", "tune": "animation", "x264-params": _BT709}
        seen = 0
        for pixels, count in frames:
            for _ in range(count):
                frame = _frame(av, pixels, seen).reformat(format="yuv420p", dst_colorspace="ITU709")
                container.mux(stream.encode(frame))
                seen += 1
        container.mux(stream.encode(None))
    return made.getvalue()
