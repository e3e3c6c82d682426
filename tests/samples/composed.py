"""What layers compute that are made of others' operations."""

import numpy as np

from samples import ints, numbers, sample

images, lines = numbers(2, 6, 4, 3), numbers(2, 4, 7)
WHOLE = dict.fromkeys(("int64", "int32", "uint8", "bool"), "ints have no means here")
above = numbers(2, 3, 6, 5, low=0.1, high=3.0)
table, places, bags = numbers(5, 3), ints(7, below=5), ints(3, 4, below=5)


def pooled(F, x, **how):
    y, at = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, at, 2, **how)


SAMPLES = [
    sample("local_response_norm", lambda F, x: F.local_response_norm(x, 3, alpha=0.5, k=2.0), images, differs=WHOLE),
    sample("local_response_norm, even", lambda F, x: F.local_response_norm(x, 2, alpha=0.5), lines,
           differs=WHOLE),
    sample("channel_shuffle", lambda F, x: F.channel_shuffle(x, 3), images),
    sample("lp_pool1d", lambda F, x: F.lp_pool1d(x[0], 2, 2, stride=1), above, differs=WHOLE),
    sample("lp_pool2d", lambda F, x: F.lp_pool2d(x, 3.0, (2, 3)), above),
    sample("max_unpool2d", lambda F, x: pooled(F, x), numbers(2, 3, 4, 6)),
    sample("max_unpool2d to a size", lambda F, x: pooled(F, x, output_size=(5, 3)), images),
    sample("max_unpool1d", lambda F, x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2), lines),
    *[sample(f"embedding_bag, {mode}", lambda F, w, n, mode=mode: F.embedding_bag(n, w, mode=mode), table, bags)
      for mode in ("mean", "sum", "max")],
    *[sample(f"embedding_bag with offsets, {mode}",
             lambda F, w, n, at, mode=mode: F.embedding_bag(n, w, at, mode=mode, padding_idx=1),
             table, places, np.array([0, 3, 3])) for mode in ("mean", "sum", "max")],
    sample("embedding_bag, weighed", lambda F, w, n, at, s: F.embedding_bag(n, w, at, mode="sum",
           per_sample_weights=s, include_last_offset=True), table, places, np.array([0, 2, 7]), numbers(7)),
]  # fmt: skip
