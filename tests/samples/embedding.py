"""Embedding look-ups, embedding bags and one-hot vectors."""

import numpy as np

from samples import ints, numbers, sample

bags = ints(3, 4, below=5)
table = numbers(5, 3)
places = ints(7, below=5)

SAMPLES = [
    *[sample(f"embedding_bag, {mode}", lambda F, w, n, mode=mode: F.embedding_bag(n, w, mode=mode), table, bags)
      for mode in ("mean", "sum", "max")],
    *[sample(f"embedding_bag with offsets, {mode}",
             lambda F, w, n, at, mode=mode: F.embedding_bag(n, w, at, mode=mode, padding_idx=1),
             table, places, np.array([0, 3, 3])) for mode in ("mean", "sum", "max")],
    sample("embedding_bag, weighed", lambda F, w, n, at, s: F.embedding_bag(n, w, at, mode="sum",
           per_sample_weights=s, include_last_offset=True), table, places, np.array([0, 2, 7]), numbers(7)),
]  # fmt: skip
