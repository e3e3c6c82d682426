"""Channels of images exchanged for pixels, and dealt out anew between groups."""

from samples import numbers, sample

images = numbers(2, 6, 4, 3)

SAMPLES = [
    sample("channel_shuffle", lambda F, x: F.channel_shuffle(x, 3), images),
]  # fmt: skip
