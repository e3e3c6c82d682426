"""Encoding of frames as GIF and MP4 with PyAV (FFmpeg), imported as `av`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from minigrad.core.packages import import_package
from minigrad_viz.pictures.rendering import ALTERNATIVE_HINT

__all__ = ["decode_png", "encode_gif", "encode_mp4", "make_palette"]

_BT709 = "colorprim=bt709:transfer=bt709:colormatrix=bt709"  # x264 options of the colour space that players assume
_GIF_TIME_BASE = Fraction(1, 100)  # the time base of GIF, in seconds


def decode_png(data: bytes) -> Any:
    """Decode a PNG to a uint8 array of shape (height, width, 4)."""
    av = import_package("av", "save", ALTERNATIVE_HINT)
    decoder = av.CodecContext.create("png", "r")
    frames = decoder.decode(av.Packet(data)) + decoder.decode(None)
    return frames[0].to_ndarray(format="rgba")


def _make_frame(av: Any, pixels: Any, pts: int) -> Any:
    """Convert an array to a video frame with presentation timestamp `pts`, in units of the stream's time base."""
    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
    frame.pts = pts
    return frame


def _add_source(av: Any, graph: Any, width: int, height: int, format: str) -> Any:
    return graph.add_buffer(width=width, height=height, format=av.VideoFormat(format), time_base=_GIF_TIME_BASE)


def make_palette(av: Any, stills: Sequence[Any]) -> Any:
    """Compute a palette of 256 colours for the given images, and return it as a video frame."""
    height, width = stills[0].shape[:2]
    graph = av.filter.Graph()
    source = _add_source(av, graph, width, height, "rgb24")
    sink = graph.add("buffersink")
    graph.link_nodes(source, graph.add("palettegen", "reserve_transparent=0"), sink).configure()
    for index, still in enumerate(stills):
        source.push(_make_frame(av, still, index))
    source.push(None)
    palette = sink.pull()
    palette.pts = 0
    return palette


def _palette_filter(av: Any, palette: Any, width: int, height: int) -> tuple[Any, Any, Any]:
    """Create a filter that quantises frames to a palette. Return its graph, which must stay alive, source and sink."""
    graph = av.filter.Graph()
    source = _add_source(av, graph, width, height, "rgb24")
    colours = _add_source(av, graph, palette.width, palette.height, palette.format.name)
    quantiser, sink = graph.add("paletteuse", "dither=none:diff_mode=rectangle"), graph.add("buffersink")
    source.link_to(quantiser, 0, 0)
    colours.link_to(quantiser, 0, 1)
    quantiser.link_to(sink)
    graph.configure()
    colours.push(palette)
    colours.push(None)
    return graph, source, sink


def encode_gif(
    av: Any, frames: Iterator[tuple[Any, int]], size: tuple[int, int], palette: Any, fps: float, last_duration: int
) -> bytes:
    """Encode frames as GIF, with the palette of `make_palette`. The last image is shown for `last_duration` frames."""
    _graph, source, sink = _palette_filter(av, palette, *size)
    output, elapsed_frames = io.BytesIO(), 0
    with av.open(
        output, "w", format="gif", options={"final_delay": str(round(100 * last_duration / fps))}
    ) as container:
        stream = container.add_stream("gif", rate=100)
        stream.width, stream.height, stream.pix_fmt = *size, "pal8"
        stream.time_base = _GIF_TIME_BASE
        for pixels, count in frames:
            source.push(_make_frame(av, pixels, round(100 * elapsed_frames / fps)))
            elapsed_frames += count
            container.mux(stream.encode(sink.pull()))
        container.mux(stream.encode(None))
    return output.getvalue()


def encode_mp4(av: Any, frames: Iterator[tuple[Any, int]], size: tuple[int, int], fps: float) -> bytes:
    """Encode frames as MP4 (H.264) at a constant frame rate, since all players support it."""
    output = io.BytesIO()
    with av.open(output, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.options = {"crf": "18", "tune": "animation", "x264-params": _BT709}
        frame_index = 0
        for pixels, count in frames:
            for _ in range(count):
                frame = _make_frame(av, pixels, frame_index).reformat(format="yuv420p", dst_colorspace="ITU709")
                container.mux(stream.encode(frame))
                frame_index += 1
        container.mux(stream.encode(None))
    return output.getvalue()
