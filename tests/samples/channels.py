"""Pixel shuffles and channel shuffles."""

from samples import distinct_floats, sample

images = distinct_floats(2, 6, 4, 3)

SAMPLES = [
    sample("channel_shuffle", lambda F, x: F.channel_shuffle(x, 3), images),
]  # fmt: skip
