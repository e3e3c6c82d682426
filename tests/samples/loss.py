"""Losses."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

# Class indices for three positions, for three by two, and with an ignored position.
ROWS, MAPS, SOME = distinct_ints(3, high=4), distinct_ints(3, 2, high=4), np.array([1, -100, 3])
WEIGHTS = np.array([2, 1, 3, 1])  # ints, so that they count as constants: the call converts them
PROBABILITIES = distinct_floats(3, 4, low=0.0, high=1.0)
SIGNS = np.array([[1, -1, 1, -1], [-1, 1, -1, 1], [1, 1, -1, -1]])
NO_INTEGER_MARGIN = dict.fromkeys(
    ("int64", "int32", "uint8", "bool"), "PyTorch rounds the margin; integer distances raise here"
)
CANCEL = {"broadcast": "all elements are equal, so their gradients cancel to rounding errors"}
ALIGNED = {"0-d": "the angle of two scalars is 0 or 180 degrees, so their gradients cancel to rounding errors"}
ONE = {
    **CANCEL,
    "empty": "without classes the sum over them is 0; PyTorch divides it by their count",
}
REDUCTIONS = ("mean", "sum", "none")


def class_index_samples(name, **options):
    """Return samples of a loss with class indices as target."""

    def call(**keywords):
        return lambda F, x, t: getattr(F, name)(x, t, **keywords, **options)

    def weighted(**keywords):
        return lambda F, x, t, w: getattr(F, name)(x, t, weight=w.to(x.dtype), **keywords, **options)

    title = ", ".join([name, *(f"{k}={v}" for k, v in options.items())])
    samples = [sample(f"{title}, {way}", call(reduction=way), distinct_floats(3, 4), ROWS) for way in REDUCTIONS]
    samples += [
        sample(f"{title}, {way}, left out", call(reduction=way), distinct_floats(3, 4), SOME) for way in REDUCTIONS
    ]
    samples += [
        sample(f"{title}, {way}, maps", call(reduction=way), distinct_floats(3, 4, 2), MAPS) for way in REDUCTIONS
    ]
    return [
        *samples,
        sample(f"{title}, ignore_index", call(ignore_index=1), distinct_floats(3, 4), ROWS),
        sample(f"{title}, bytes", call(), distinct_floats(3, 4), ROWS.astype(np.uint8)),
        sample(f"{title}, one position", call(), distinct_floats(4), np.array(2), differs=CANCEL),
        sample(f"{title}, one position, none", call(reduction="none"), distinct_floats(4), np.array(2), differs=CANCEL),
        sample(
            f"{title}, pictures",
            call(),
            distinct_floats(2, 3, 2, 2),
            distinct_ints(2, 2, 2, high=3),
            differs={"transposed": "PyTorch's gradient of nll_loss needs a contiguous input"}
            if name == "nll_loss"
            else {},
        ),
        *[
            sample(f"{title}, {way}, weighted", weighted(reduction=way), distinct_floats(3, 4), SOME, WEIGHTS)
            for way in REDUCTIONS
        ],
        sample(f"{title}, weighted maps", weighted(), distinct_floats(3, 4, 2), MAPS, WEIGHTS),
        sample(f"{title}, all left out", call(reduction="sum"), distinct_floats(3, 4), np.array([-100] * 3)),
    ]


def pair_samples(name, target, suffix="", **options):
    """Return samples of a loss of two tensors of equal shape."""
    title = ", ".join([name + suffix, *(f"{k}={v}" for k, v in options.items())])
    return [
        sample(
            f"{title}, {way}",
            lambda F, x, t, way=way: getattr(F, name)(x, t, reduction=way, **options),
            distinct_floats(3, 4),
            target,
        )
        for way in REDUCTIONS
    ]


SAMPLES = [
    *class_index_samples("cross_entropy"),
    *class_index_samples("cross_entropy", label_smoothing=0.3),
    *class_index_samples("nll_loss"),
    *pair_samples("cross_entropy", PROBABILITIES, " of chances"),
    *pair_samples("cross_entropy", PROBABILITIES, " of chances", label_smoothing=0.3),
    sample("chances, maps", lambda F, x, t: F.cross_entropy(x, t), distinct_floats(3, 4, 2), distinct_floats(3, 4, 2,
        seed=1)),
    sample("chances, one position", lambda F, x, t: F.cross_entropy(x, t), distinct_floats(4), distinct_floats(4,
        seed=1), differs=ONE),
    sample("chances, one position, none", lambda F, x, t: F.cross_entropy(x, t, reduction="none"), distinct_floats(4),
           distinct_floats(4, seed=1), differs=ONE),
    sample("chances, weighted", lambda F, x, t, w: F.cross_entropy(x, t, weight=w), distinct_floats(3, 4),
        PROBABILITIES, distinct_floats(4)),
    sample("chances, weighted maps", lambda F, x, t, w: F.cross_entropy(x, t, weight=w, label_smoothing=0.2),
           distinct_floats(3, 4, 2), distinct_floats(3, 4, 2, seed=1), distinct_floats(4)),
    *pair_samples("mse_loss", distinct_floats(3, 4, seed=1)),
    *pair_samples("l1_loss", distinct_floats(3, 4, seed=1)),
    *pair_samples("smooth_l1_loss", distinct_floats(3, 4, seed=1)),
    *pair_samples("smooth_l1_loss", distinct_floats(3, 4, seed=1), beta=0.7),
    *pair_samples("smooth_l1_loss", distinct_floats(3, 4, seed=1), beta=0.0),
    *pair_samples("huber_loss", distinct_floats(3, 4, seed=1)),
    *pair_samples("huber_loss", distinct_floats(3, 4, seed=1), delta=1.7),
    *[
        sample(f"{name}, weighted, {way}",
               lambda F, x, t, w, name=name, way=way: getattr(F, name)(x, t, reduction=way, weight=w),
               distinct_floats(3, 4), distinct_floats(3, 4, seed=1), distinct_floats(3, 4, low=0.2, high=2.0))
        for name in ("mse_loss", "l1_loss", "huber_loss") for way in REDUCTIONS
    ],
    sample("mse_loss of integers in the target", lambda F, x, t: F.mse_loss(x, t), distinct_floats(3, 4),
        distinct_ints(3, 4, high=3)),
    *pair_samples("binary_cross_entropy_with_logits", PROBABILITIES),
    sample("bce_with_logits, weights", lambda F, x, t, w, p: F.binary_cross_entropy_with_logits(
        x, t, weight=w.to(x.dtype), pos_weight=p.to(x.dtype)), distinct_floats(3, 4), PROBABILITIES, WEIGHTS,
        distinct_ints(3, 4, high=3)),
    *pair_samples("kl_div", distinct_floats(3, 4, low=0.1, high=1.0)),
    *pair_samples("kl_div", distinct_floats(3, 4, seed=1), log_target=True),
    sample("kl_div, batchmean", lambda F, x, t: F.kl_div(x, t, reduction="batchmean"), distinct_floats(3, 4),
           distinct_floats(3, 4, low=0.1)),
    *[
        sample(f"binary_cross_entropy, {way}",
               lambda F, x, t, way=way: F.binary_cross_entropy(x, t, reduction=way),
               distinct_floats(3, 4, low=0.1, high=0.9), PROBABILITIES)
        for way in REDUCTIONS
    ],
    sample("binary_cross_entropy, weighted", lambda F, x, t, w: F.binary_cross_entropy(x, t, weight=w.to(x.dtype)),
           distinct_floats(3, 4, low=0.1, high=0.9), PROBABILITIES, WEIGHTS),
    *[
        sample(f"hinge_loss, {way}", lambda F, x, t, way=way: F.hinge_loss(x, t, reduction=way), distinct_floats(3, 4),
               SIGNS, parity=False)
        for way in REDUCTIONS
    ],
    sample("hinge_loss, gradient of the target", lambda F, x, t: F.hinge_loss(x, t), distinct_floats(3, 4),
           distinct_floats(3, 4, seed=1), parity=False),
    sample("hinge_embedding_loss", lambda F, x, t: F.hinge_embedding_loss(x, t), distinct_floats(3, 4), SIGNS),
    sample("hinge_embedding_loss, margin, none",
           lambda F, x, t: F.hinge_embedding_loss(x, t, margin=2.0, reduction="none"), distinct_floats(3, 4), SIGNS,
           differs=NO_INTEGER_MARGIN),
    sample("margin_ranking_loss", lambda F, a, b, t: F.margin_ranking_loss(a, b, t, margin=0.5), distinct_floats(3, 4),
           distinct_floats(3, 4, seed=1), SIGNS),
    sample("pairwise_distance", lambda F, a, b: F.pairwise_distance(a, b), distinct_floats(3, 4), distinct_floats(3, 4,
        seed=1)),
    sample("pairwise_distance, p, keepdim", lambda F, a, b: F.pairwise_distance(a, b, p=3.0, keepdim=True),
           distinct_floats(3, 4), distinct_floats(3, 4, seed=1)),
    sample("cosine_similarity", lambda F, a, b: F.cosine_similarity(a, b), distinct_floats(3, 4), distinct_floats(3, 4,
        seed=1)),
    sample("cosine_similarity, broadcast", lambda F, a, b: F.cosine_similarity(a, b, dim=-1), distinct_floats(3, 4),
           distinct_floats(4), differs=ALIGNED),
    sample("cosine_similarity, the middle", lambda F, a, b: F.cosine_similarity(a, b, eps=0.1), distinct_floats(2, 3,
        2),
           distinct_floats(3, 1, seed=1), differs=CANCEL),
]  # fmt: skip
