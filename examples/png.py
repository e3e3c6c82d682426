"""Minimal PNG encoder for greyscale images."""

import struct
import zlib


def save_png(path, image, scale=8):
    """Write `image`, a tensor (H, W) from 0 (black) to 1 (white), enlarged by the integer factor `scale`.

    PNG specification, third edition, sections 5 and 11: a chunk has a length, a type, data and a CRC; each row of
    pixels starts with filter type 0, "none".
    """
    big = image.detach().clamp(0, 1).repeat_interleave(scale, 0).repeat_interleave(scale, 1)
    pixels = (big * 255).round().numpy().astype("uint8")

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, greyscale
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    )


def tile_horizontally(images, gap=1):
    """Tile images (N, 1, H, W) horizontally to (H + 2 gap, W'), with grey gaps between them."""
    from minigrad.nn.functional import pad

    framed = pad(images[:, 0], (gap, gap, gap, gap), value=0.5)
    return framed.permute(1, 0, 2).flatten(1)
