"""Affine grids and grid sampling."""

from samples import distinct_floats, sample

IMAGE = distinct_floats(2, 2, 3, 4)
# Points inside and outside the image, far enough from pixel centres and edges for finite differences.
POINTS = distinct_floats(2, 2, 3, 2, low=-1.9, high=1.9)
INNER_POINTS = distinct_floats(2, 2, 2, 2, low=-0.6, high=0.6)
THETA = distinct_floats(2, 2, 3)


def sample_affine(F, x, theta, mode="bilinear", align_corners=False):
    """Apply a spatial transformer, end to end."""
    return F.grid_sample(x, F.affine_grid(theta, (2, 2, 2, 3), align_corners), mode, "zeros", align_corners)


def grid_sample_call(mode, padding_mode, align_corners):
    return sample(
        f"grid_sample, {mode}, {padding_mode}{', corners' if align_corners else ''}",
        lambda F, x, grid: F.grid_sample(x, grid, mode, padding_mode, align_corners),
        IMAGE,
        POINTS,
    )


SAMPLES = [
    sample("affine_grid", lambda F, theta: F.affine_grid(theta, (2, 1, 3, 2), False), THETA),
    sample("affine_grid, corners", lambda F, theta: F.affine_grid(theta, [2, 5, 2, 3], align_corners=True), THETA),
    sample("affine_grid of one pixel", lambda F, theta: F.affine_grid(theta, (2, 1, 1, 1), True), THETA),
    sample("affine_grid, by default", lambda F, theta: F.affine_grid(theta, (2, 1, 3, 2)), THETA),
    *[
        grid_sample_call(mode, padding_mode, align_corners)
        for mode in ("bilinear", "nearest", "bicubic")
        for padding_mode in ("zeros", "border", "reflection")
        for align_corners in (False, True)
    ],
    sample("grid_sample, by default", lambda F, x, grid: F.grid_sample(x, grid), IMAGE, INNER_POINTS),
    sample(
        "grid_sample of one pixel", lambda F, x, grid: F.grid_sample(x, grid), distinct_floats(2, 3, 1, 1), INNER_POINTS
    ),
    sample(
        "grid_sample of one pixel, corners, reflection",
        lambda F, x, grid: F.grid_sample(x, grid, "bilinear", "reflection", True),
        distinct_floats(2, 3, 1, 1),
        INNER_POINTS,
    ),
    *[
        sample(
            f"grid_sample of volumes, {mode}, {padding_mode}",
            lambda F, x, grid, mode=mode, padding_mode=padding_mode: F.grid_sample(x, grid, mode, padding_mode, False),
            distinct_floats(1, 2, 2, 3, 4),
            distinct_floats(1, 2, 1, 3, 3, low=-1.9, high=1.9),
        )
        for mode in ("bilinear", "nearest")
        for padding_mode in ("zeros", "border", "reflection")
    ],
    sample("affine_grid of volumes", lambda F, t: F.affine_grid(t, (2, 1, 2, 3, 4), False), distinct_floats(2, 3, 4)),
    sample("a spatial transformer", sample_affine, IMAGE, THETA),
    sample("a spatial transformer, corners", lambda F, x, t: sample_affine(F, x, t, align_corners=True), IMAGE, THETA),
]
