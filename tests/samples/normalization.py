"""Normalisation and dropout."""

from types import MappingProxyType

from samples import distinct_floats, sample

W, B = distinct_floats(4, low=0.5, high=2.0), distinct_floats(4, seed=1)


INTS = ("int64", "int32", "uint8", "bool")
ZERO = {"broadcast": "equal elements: 0 up to rounding errors, which 1 / sqrt(eps) amplifies"}
MEAN, VAR = [-0.5, 0.25, 1.0, 2.5], [0.5, 0.75, 1.5, 4.0]


def batch(name, *inputs, differs=MappingProxyType({})):
    """Return a sample of batch_norm with batch statistics."""
    return sample(
        name, lambda F, x, w=None, b=None: F.batch_norm(x, None, None, w, b, training=True), *inputs, differs=differs
    )


def running_stats(F, x):
    return x.new_tensor(MEAN), x.new_tensor(VAR)


def running_stats_sample(name, function, flag, *inputs):
    """Return a sample of a norm with running statistics, which are constants."""
    return sample(
        name,
        lambda F, x, w=None, b=None: getattr(F, function)(x, *running_stats(F, x), w, b, **{flag: False}),
        *inputs,
    )


def updated_stats_sample(name, function, x, **keywords):
    """Return a sample of a norm with batch statistics, and of the running statistics, which get no gradient."""

    def call(F, x, w):
        m, v = running_stats(F, x)
        return getattr(F, function)(x, m, v, w, **keywords), m, v

    return sample(name, call, x, W, kinked=True)


NO_INTEGER_MEANS = dict.fromkeys(("int64", "int32", "uint8", "bool"), "integer means raise here")
images = distinct_floats(2, 6, 4, 3)
lines = distinct_floats(2, 4, 7)

SAMPLES = [
    sample("layer_norm", lambda F, x, w, b: F.layer_norm(x, (4,), w, b), distinct_floats(3, 4), W, B),
    sample("layer_norm, plain", lambda F, x: F.layer_norm(x, x.shape[-1:]), distinct_floats(2, 3, 4)),
    sample("layer_norm, no weight", lambda F, x, b: F.layer_norm(x, [4], bias=b), distinct_floats(2, 4), B),
    sample("layer_norm, no bias", lambda F, x, w: F.layer_norm(x, (4,), w, eps=0.1), distinct_floats(2, 4), W),
    sample(
        "layer_norm over two dimensions",
        lambda F, x, w, b: F.layer_norm(x, (3, 4), w, b),
        *(distinct_floats(2, 3, 4), distinct_floats(3, 4, seed=1), distinct_floats(3, 4, seed=2)),
    ),
    sample("layer_norm of a line", lambda F, x: F.layer_norm(x, x.shape), distinct_floats(5)),
    sample("rms_norm", lambda F, x, w: F.rms_norm(x, (4,), w), distinct_floats(3, 4), W),
    sample("rms_norm, plain", lambda F, x: F.rms_norm(x, x.shape[-1:]), distinct_floats(2, 3, 4)),
    sample(
        "rms_norm over two dimensions",
        lambda F, x, w: F.rms_norm(x, (3, 2), w, 0.1),
        distinct_floats(4, 3, 2),
        distinct_floats(3, 2),
    ),
    sample("rms_norm of a line", lambda F, x: F.rms_norm(x, x.shape), distinct_floats(5), differs=ZERO),
    batch("batch_norm", distinct_floats(3, 4), W, B),
    batch("batch_norm of images", distinct_floats(2, 4, 2, 3), W, B),
    batch("batch_norm of lines", distinct_floats(3, 4, 3), W),
    batch("batch_norm, plain", distinct_floats(3, 4, 2), differs=ZERO),
    batch("batch_norm of one sample", distinct_floats(1, 4, 3), W),
    sample(
        "batch_norm, bias alone",
        lambda F, x, b: F.batch_norm(x, None, None, bias=b, training=True),
        distinct_floats(3, 4),
        B,
    ),
    sample(
        "batch_norm, eps",
        lambda F, x: F.batch_norm(x, None, None, training=True, eps=0.5),
        distinct_floats(3, 4),
        differs=ZERO,
    ),
    running_stats_sample("batch_norm by running statistics", "batch_norm", "training", distinct_floats(3, 4), W, B),
    running_stats_sample(
        "batch_norm of images by running statistics", "batch_norm", "training", distinct_floats(2, 4, 2, 2), W
    ),
    running_stats_sample("batch_norm, plain, by running statistics", "batch_norm", "training", distinct_floats(3, 4)),
    updated_stats_sample("batch_norm, followed", "batch_norm", distinct_floats(3, 4, 2), training=True),
    updated_stats_sample("batch_norm, momentum 1", "batch_norm", distinct_floats(3, 4), training=True, momentum=1.0),
    sample("instance_norm", lambda F, x, w, b: F.instance_norm(x, weight=w, bias=b), distinct_floats(2, 4, 3), W, B),
    sample("instance_norm of images", lambda F, x, w: F.instance_norm(x, weight=w), distinct_floats(2, 4, 2, 2), W),
    sample("instance_norm, plain", lambda F, x: F.instance_norm(x, eps=0.1), distinct_floats(2, 3, 4)),
    running_stats_sample(
        "instance_norm by running statistics", "instance_norm", "use_input_stats", distinct_floats(2, 4, 3), W, B
    ),
    updated_stats_sample("instance_norm, followed", "instance_norm", distinct_floats(2, 4, 3), momentum=0.3),
    sample("group_norm", lambda F, x, w, b: F.group_norm(x, 2, w, b), distinct_floats(2, 4, 3), W, B),
    sample("group_norm of one group", lambda F, x, w: F.group_norm(x, 1, w), distinct_floats(2, 4, 2, 2), W),
    sample("group_norm of single channels", lambda F, x, w: F.group_norm(x, 4, w), distinct_floats(2, 4, 3), W),
    sample("group_norm without space", lambda F, x: F.group_norm(x, 2, eps=0.1), distinct_floats(3, 6)),
    sample("normalize", lambda F, x: F.normalize(x), distinct_floats(3, 4)),
    sample("normalize, p = 1", lambda F, x: F.normalize(x, p=1, dim=-1), distinct_floats(2, 3, 4)),
    sample("normalize, p = 3, two dimensions", lambda F, x: F.normalize(x, 3.0, (0, 1)), distinct_floats(2, 3, 2)),
    sample("normalize, all", lambda F, x: F.normalize(x, dim=None), distinct_floats(2, 3)),
    sample("normalize, shorter than eps", lambda F, x: F.normalize(x, dim=0, eps=100.0), distinct_floats(3, 2)),
    sample("dropout of nothing", lambda F, x: F.dropout(x, 0.0), distinct_floats(3, 4)),
    sample(
        "dropout of all",
        lambda F, x: F.dropout(x, p=1.0),
        distinct_floats(3, 4),
        differs=dict.fromkeys(INTS, "integers cannot be scaled"),
    ),
    sample(
        "dropout1d of all",
        lambda F, x: F.dropout1d(x, 1.0),
        distinct_floats(2, 3),
        differs=dict.fromkeys(INTS, "refused"),
    ),
    sample(
        "dropout2d outside training",
        lambda F, x: F.dropout2d(x, training=False),
        distinct_floats(2, 3, 1, 1),
        differs={"0-d": "PyTorch warns of other dimensions, and we refuse them", **dict.fromkeys(INTS, "refused")},
    ),
    sample("dropout outside training", lambda F, x: F.dropout(x, training=False), distinct_floats(3, 4)),
    sample(
        "local_response_norm",
        lambda F, x: F.local_response_norm(x, 3, alpha=0.5, k=2.0),
        images,
        differs=NO_INTEGER_MEANS,
    ),
    sample(
        "local_response_norm, even",
        lambda F, x: F.local_response_norm(x, 2, alpha=0.5),
        lines,
        differs=NO_INTEGER_MEANS,
    ),
]
