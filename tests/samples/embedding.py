"""Embedding look-ups, embedding bags and one-hot vectors."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

bags = distinct_ints(3, 4, high=5)
table = distinct_floats(5, 3)
indices = distinct_ints(7, high=5)

SAMPLES = [
    *[sample(f"embedding_bag, {mode}", lambda F, w, n, mode=mode: F.embedding_bag(n, w, mode=mode), table, bags)
      for mode in ("mean", "sum", "max")],
    *[sample(f"embedding_bag with offsets, {mode}",
             lambda F, w, n, at, mode=mode: F.embedding_bag(n, w, at, mode=mode, padding_idx=1),
             table, indices, np.array([0, 3, 3])) for mode in ("mean", "sum", "max")],
    sample("embedding_bag, weighed", lambda F, w, n, at, s: F.embedding_bag(n, w, at, mode="sum",
           per_sample_weights=s, include_last_offset=True), table, indices, np.array([0, 2, 7]), distinct_floats(7)),
]  # fmt: skip
