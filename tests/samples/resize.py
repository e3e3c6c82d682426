"""Resizing images."""

from samples import distinct_floats, sample

IMAGE, LINE = distinct_floats(2, 2, 3, 4), distinct_floats(2, 2, 6)
FIXED = {"uint8": "PyTorch rounds its weights to 16 bits, which may change the last digit; compared in test_resize.py"}

SAMPLES = [
    sample("interpolate, nearest", lambda F, x: F.interpolate(x, 7), LINE),
    sample("interpolate, nearest, by two", lambda F, x: F.interpolate(x, scale_factor=2), distinct_floats(1, 2, 2, 3)),
    sample("interpolate, nearest, smaller", lambda F, x: F.interpolate(x, (2, 3)), IMAGE),
    sample(
        "interpolate, nearest, by factors that are rounded",
        lambda F, x: F.interpolate(x, scale_factor=(1.2, 2.1)),
        distinct_floats(1, 2, 4, 5),
    ),
    sample(
        "interpolate, nearest, of 5 dimensions",
        lambda F, x: F.interpolate(x, (1, 3, 2)),
        distinct_floats(1, 2, 2, 2, 3),
    ),
    sample(
        "interpolate, trilinear",
        lambda F, x: F.interpolate(x, (3, 1, 4), mode="trilinear"),
        distinct_floats(1, 1, 2, 2, 3),
    ),
    sample("interpolate, nearest-exact", lambda F, x: F.interpolate(x, (5, 3), mode="nearest-exact"), IMAGE),
    sample(
        "interpolate, area", lambda F, x: F.interpolate(x, scale_factor=0.7, mode="area"), distinct_floats(1, 2, 4, 5)
    ),
    sample("interpolate, linear", lambda F, x: F.interpolate(x, 9, mode="linear"), LINE),
    sample("interpolate, linear, corners", lambda F, x: F.interpolate(x, 4, None, "linear", True), LINE),
    sample("interpolate, linear, to one", lambda F, x: F.interpolate(x, 1, mode="linear", align_corners=True), LINE),
    sample(
        "interpolate, bilinear",
        lambda F, x: F.interpolate(x, (4, 3), mode="bilinear"),
        IMAGE,
        differs=FIXED,
    ),
    sample(
        "interpolate, bilinear, corners",
        lambda F, x: F.interpolate(x, scale_factor=(1.7, 2.0), mode="bilinear", align_corners=True),
        distinct_floats(1, 2, 3, 4),
        differs=FIXED,
    ),
    sample(
        "interpolate, bilinear, by a factor",
        lambda F, x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
        distinct_floats(1, 2, 3, 4),
        differs=FIXED,
    ),
    sample(
        "interpolate, bilinear, by a recomputed factor",
        lambda F, x: F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
        distinct_floats(1, 2, 3, 4),
        differs=FIXED,
    ),
    sample(
        "interpolate, area, of 5 dimensions",
        lambda F, x: F.interpolate(x, (1, 3, 2), mode="area"),
        distinct_floats(1, 1, 2, 4, 3),
    ),
    sample("interpolate, bicubic", lambda F, x: F.interpolate(x, (5, 3), mode="bicubic"), IMAGE, differs=FIXED),
    sample(
        "interpolate, bicubic, corners",
        lambda F, x: F.interpolate(x, scale_factor=(1.7, 2.0), mode="bicubic", align_corners=True),
        distinct_floats(1, 2, 3, 4),
        differs=FIXED,
    ),
    sample(
        "interpolate, bilinear, antialias",
        lambda F, x: F.interpolate(x, (2, 5), mode="bilinear", antialias=True),
        distinct_floats(1, 2, 5, 4),
        differs=FIXED,
    ),
    sample(
        "interpolate, bicubic, antialias, corners",
        lambda F, x: F.interpolate(x, (2, 3), mode="bicubic", align_corners=True, antialias=True),
        distinct_floats(1, 1, 7, 4),
        differs=FIXED,
    ),
]
