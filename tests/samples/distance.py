"""Pairwise distances, and margin and likelihood losses."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

a, b, c = distinct_floats(3, 4), distinct_floats(3, 4, seed=1), distinct_floats(3, 4, seed=2)
signs = np.array([1, -1, 1])
WHOLE = dict.fromkeys(("int64", "int32", "uint8", "bool"), "PyTorch cannot write its result into an integer tensor")
SCORES = WHOLE | {"empty": "the mean of nothing is nan"}
scores = distinct_floats(3, 4, low=-3.1, high=2.7)  # no two differ by a margin
positive = distinct_floats(3, 4, low=0.3, high=2.0)
labels = np.array([[3, 0, -1, 1], [-1, 1, 2, 3], [0, 1, 2, 3]])

x = distinct_floats(3, 4)
y = distinct_floats(3, 4, seed=1)

SAMPLES = [
    sample("cdist", lambda F, a, b: F.cdist(a, b), a, distinct_floats(5, 4, seed=1)),
    sample("cdist, p, stacked", lambda F, a, b: F.cdist(a, b, p=1.0), distinct_floats(2, 3, 4), distinct_floats(2, 2, 4,
        seed=1)),
    sample("cosine_embedding_loss", lambda F, a, b, t: F.cosine_embedding_loss(a, b, t, margin=0.1), a, b, signs,
           differs=dict.fromkeys(WHOLE, "integer cosines raise here")),
    sample("triplet_margin_loss", lambda F, a, b, c: F.triplet_margin_loss(a, b, c), a, b, c),
    sample("triplet_margin_loss, swap, sum",
           lambda F, a, b, c: F.triplet_margin_loss(a, b, c, 3.0, 3.0, swap=True, reduction="sum"), a, b, c),
    sample("gaussian_nll_loss", lambda F, a, b, v: F.gaussian_nll_loss(a, b, v), a, b, positive,
           differs=WHOLE),
    sample("gaussian_nll_loss, full, a variance a row",
           lambda F, a, b, v: F.gaussian_nll_loss(a, b, v, full=True, reduction="none"), a, b, positive[:, 0],
           differs=WHOLE),
    sample("poisson_nll_loss", lambda F, a, n: F.poisson_nll_loss(a, n), a, distinct_ints(3, 4, high=6)),
    sample("poisson_nll_loss, rates, full",
           lambda F, a, n: F.poisson_nll_loss(a, n, log_input=False, full=True), positive, distinct_ints(3, 4,
               high=6)),
    sample("multi_margin_loss", lambda F, a, t: F.multi_margin_loss(a, t), scores, distinct_ints(3, high=4),
        differs=SCORES),
    sample("multi_margin_loss, p, weights, none",
           lambda F, a, t: F.multi_margin_loss(a, t, 2, 0.5, a.new_tensor([0.5, 1.0, 2.0, 0.7]), reduction="none"),
           scores, distinct_ints(3, high=4), differs=SCORES),
    sample("multi_margin_loss of one", lambda F, v, t: F.multi_margin_loss(v, t), scores[0], np.array(2),
           differs=SCORES),
    sample("multilabel_margin_loss", lambda F, a, t: F.multilabel_margin_loss(a, t), scores, labels, differs=SCORES),
    sample("multilabel_margin_loss of one", lambda F, v, t: F.multilabel_margin_loss(v, t), scores[0], labels[0],
           differs=SCORES),
    sample("multilabel_soft_margin_loss", lambda F, a, t: F.multilabel_soft_margin_loss(a, t), a, distinct_ints(3, 4,
        high=2)),
    sample("multilabel_soft_margin_loss, weights, sum",
           lambda F, a, t, w: F.multilabel_soft_margin_loss(a, t, w, reduction="sum"), a, distinct_ints(3, 4, high=2),
           positive[0]),
    sample("triplet_margin_with_distance_loss",
           lambda F, a, b, c: F.triplet_margin_with_distance_loss(a, b, c, margin=3.0), a, b, c),
    sample("triplet_margin_with_distance_loss, swap", lambda F, a, b, c: F.triplet_margin_with_distance_loss(
           a, b, c, distance_function=lambda x, y: (x - y).abs().sum(-1), swap=True, reduction="sum"), a, b, c,
           kinked=True),
    sample("soft_margin_loss",
           lambda F, a, t: F.soft_margin_loss(a, t), a, np.sign(b).astype(int), differs=WHOLE),
    sample("dist", lambda F, x, y: F.dist(x, y), x, y),
]  # fmt: skip
