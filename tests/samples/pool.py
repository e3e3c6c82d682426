"""Pooling."""

from samples import distinct_floats, distinct_ints, sample

IMAGE, LINE = distinct_floats(2, 2, 3, 4), distinct_floats(2, 2, 6)
ROUNDED_MEANS = "PyTorch rounds means of int64 down; integer means raise here"


def nhwc(function, *arguments):
    """Apply `function` to channels-last images: by permuting in PyTorch, by ``data_format`` in minigrad."""

    def call(F, x):
        if hasattr(F, "min_pool2d"):
            return function(F)(x, *arguments, data_format="NHWC")
        lead = range(x.ndim - 3)
        return function(F)(x.permute(*lead, -1, -3, -2), *arguments).permute(*lead, -2, -1, -3)

    return call


def min_pool_reference(F):
    """Return min_pool2d, in PyTorch negated max_pool2d."""
    return getattr(F, "min_pool2d", None) or (lambda x, *rest, **options: -F.max_pool2d(-x, *rest, **options))


positive = distinct_floats(2, 3, 6, 5, low=0.1, high=3.0)
images = distinct_floats(2, 6, 4, 3)
lines = distinct_floats(2, 4, 7)

NO_INTEGER_MEANS = dict.fromkeys(("int64", "int32", "uint8", "bool"), "integer means raise here")


def pool_and_unpool(F, x, **options):
    y, at = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, at, 2, **options)


SAMPLES = [
    sample("max_pool1d", lambda F, x: F.max_pool1d(x, 2), LINE),
    sample("max_pool1d, unbatched", lambda F, x: F.max_pool1d(x, (3,), 2, padding=1), distinct_floats(3, 7)),
    sample("max_pool1d, indices", lambda F, x: F.max_pool1d(x, 3, 1, 1, 2, return_indices=True), LINE),
    sample("max_pool2d", lambda F, x: F.max_pool2d(x, 2), IMAGE),
    sample("max_pool2d, unbatched", lambda F, x: F.max_pool2d(x, (2, 3), (1, 2)), distinct_floats(2, 4, 5)),
    sample("max_pool2d, padded", lambda F, x: F.max_pool2d(x, 3, 2, 1), IMAGE),
    sample("max_pool2d, padded on one side", lambda F, x: F.max_pool2d(x, (3, 2), 1, (1, 0)), IMAGE),
    sample("max_pool2d, dilated", lambda F, x: F.max_pool2d(x, 2, 1, 0, 2), distinct_floats(1, 2, 4, 5)),
    sample("max_pool2d, dilated and padded", lambda F, x: F.max_pool2d(x, 2, 2, 1, dilation=(2, 3)), IMAGE),
    sample("max_pool2d, ceil_mode", lambda F, x: F.max_pool2d(x, 2, ceil_mode=True), distinct_floats(1, 2, 5, 5)),
    sample(
        "max_pool2d, ceil_mode, padded",
        lambda F, x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True),
        distinct_floats(1, 1, 5, 6),
    ),
    sample("max_pool2d, indices", lambda F, x: F.max_pool2d(x, 3, 2, 1, return_indices=True), IMAGE),
    sample("max_pool2d, an empty stride", lambda F, x: F.max_pool2d(x, (2,), ()), IMAGE),
    sample("max_pool2d, used twice", lambda F, x: F.max_pool2d(x, 2) * F.max_pool2d(x * x, 2, 1)[..., :1, :2], IMAGE),
    sample("max_pool2d of ints", lambda F, x: F.max_pool2d(x, 2, 1, 1), distinct_ints(2, 3, 4, high=50)),
    sample("max_pool2d, channels last", nhwc(lambda F: F.max_pool2d, 2, 1), distinct_floats(2, 3, 4, 2)),
    sample(
        "min_pool2d",
        lambda F, x: min_pool_reference(F)(x, 2, 1, 1),
        IMAGE,
        differs={"uint8": "the hand-written one takes -x, which wraps around in uint8"},
    ),
    sample(
        "min_pool2d, channels last, unbatched",
        nhwc(min_pool_reference, (2, 2)),
        distinct_floats(3, 4, 2),
        differs={"uint8": "the hand-written one takes -x, which wraps around in uint8"},
    ),
    sample("avg_pool1d", lambda F, x: F.avg_pool1d(x, 2), LINE, differs={"int64": ROUNDED_MEANS}),
    sample(
        "avg_pool1d, padded, unbatched",
        lambda F, x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False),
        distinct_floats(3, 7),
        differs={"int64": ROUNDED_MEANS},
    ),
    sample(
        "avg_pool1d, ceil_mode",
        lambda F, x: F.avg_pool1d(x, 4, 3, 2, True),
        distinct_floats(2, 1, 9),
        differs={"int64": ROUNDED_MEANS},
    ),
    sample("avg_pool2d", lambda F, x: F.avg_pool2d(x, 2), IMAGE, differs={"int64": ROUNDED_MEANS}),
    sample(
        "avg_pool2d, padded", lambda F, x: F.avg_pool2d(x, (3, 2), 2, (1, 0)), IMAGE, differs={"int64": ROUNDED_MEANS}
    ),
    sample(
        "avg_pool2d, padding not counted, ceil_mode",
        lambda F, x: F.avg_pool2d(x, 3, (2, 1), 1, True, False),
        IMAGE,
        differs={"int64": ROUNDED_MEANS},
    ),
    sample(
        "avg_pool2d, divisor, ceil_mode",
        lambda F, x: F.avg_pool2d(x, 2, ceil_mode=True, divisor_override=-3),
        distinct_floats(2, 3, 5),
        differs={"int64": ROUNDED_MEANS},
    ),
    sample(
        "avg_pool2d, channels last",
        nhwc(lambda F: F.avg_pool2d, 3, 1, 1),
        distinct_floats(2, 3, 4, 2),
        differs={"int64": ROUNDED_MEANS},
    ),
    sample("adaptive_avg_pool1d", lambda F, x: F.adaptive_avg_pool1d(x, 4), LINE),
    sample(
        "adaptive_avg_pool1d, unbatched, larger", lambda F, x: F.adaptive_avg_pool1d(x, (5,)), distinct_floats(3, 3)
    ),
    sample("adaptive_avg_pool2d", lambda F, x: F.adaptive_avg_pool2d(x, 3), distinct_floats(1, 2, 5, 4)),
    sample("adaptive_avg_pool2d to one", lambda F, x: F.adaptive_avg_pool2d(x, (1, 1)), IMAGE),
    sample("adaptive_avg_pool2d, None", lambda F, x: F.adaptive_avg_pool2d(x, (None, 3)), distinct_floats(2, 3, 4)),
    sample(
        "adaptive_avg_pool2d, channels last", nhwc(lambda F: F.adaptive_avg_pool2d, (2, 3)), distinct_floats(2, 3, 4, 2)
    ),
    sample("adaptive_max_pool1d", lambda F, x: F.adaptive_max_pool1d(x, 4), LINE),
    sample("adaptive_max_pool2d", lambda F, x: F.adaptive_max_pool2d(x, (2, None)), distinct_floats(1, 2, 5, 3)),
    sample("adaptive_max_pool2d, indices", lambda F, x: F.adaptive_max_pool2d(x, 2, True), distinct_floats(2, 3, 5)),
    sample(
        "lp_pool1d",
        lambda F, x: F.lp_pool1d(x[0], 2, 2, stride=1),
        positive,
        differs=dict.fromkeys(("int64", "int32", "uint8", "bool"), "integer means raise here"),
    ),
    sample("lp_pool2d", lambda F, x: F.lp_pool2d(x, 3.0, (2, 3)), positive),
    sample("max_unpool2d", lambda F, x: pool_and_unpool(F, x), distinct_floats(2, 3, 4, 6)),
    sample("max_unpool2d to a size", lambda F, x: pool_and_unpool(F, x, output_size=(5, 3)), images),
    sample("max_unpool1d", lambda F, x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2), lines),
]
