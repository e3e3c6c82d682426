"""Distances of all pairs, and losses of distances and distributions."""

import numpy as np

from samples import ints, numbers, sample

a, b, c = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, seed=2)
signs = np.array([1, -1, 1])
WHOLE = dict.fromkeys(("int64", "int32", "uint8", "bool"), "PyTorch cannot write its result into whole numbers")
positive = numbers(3, 4, low=0.3, high=2.0)

SAMPLES = [
    sample("cdist", lambda F, a, b: F.cdist(a, b), a, numbers(5, 4, seed=1)),
    sample("cdist, p, stacked", lambda F, a, b: F.cdist(a, b, p=1.0), numbers(2, 3, 4), numbers(2, 2, 4, seed=1)),
    sample("cosine_embedding_loss", lambda F, a, b, t: F.cosine_embedding_loss(a, b, t, margin=0.1), a, b, signs,
           differs=dict.fromkeys(WHOLE, "a cosine of whole numbers is refused here")),
    sample("triplet_margin_loss", lambda F, a, b, c: F.triplet_margin_loss(a, b, c), a, b, c),
    sample("triplet_margin_loss, swap, sum",
           lambda F, a, b, c: F.triplet_margin_loss(a, b, c, 3.0, 3.0, swap=True, reduction="sum"), a, b, c),
    sample("gaussian_nll_loss", lambda F, a, b, v: F.gaussian_nll_loss(a, b, v), a, b, positive,
           differs=WHOLE),
    sample("gaussian_nll_loss, full, a variance a row",
           lambda F, a, b, v: F.gaussian_nll_loss(a, b, v, full=True, reduction="none"), a, b, positive[:, 0],
           differs=WHOLE),
    sample("poisson_nll_loss", lambda F, a, n: F.poisson_nll_loss(a, n), a, ints(3, 4, below=6)),
    sample("poisson_nll_loss, rates, full",
           lambda F, a, n: F.poisson_nll_loss(a, n, log_input=False, full=True), positive, ints(3, 4, below=6)),
    sample("soft_margin_loss",
           lambda F, a, t: F.soft_margin_loss(a, t), a, np.sign(b).astype(int), differs=WHOLE),
]  # fmt: skip
