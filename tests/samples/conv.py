"""Convolutions, transposed convolutions, fold and unfold."""

from samples import distinct_floats, distinct_ints, sample

SAMPLES = [
    sample("conv2d", lambda F, x, w: F.conv2d(x, w), distinct_floats(2, 2, 4, 3), distinct_floats(3, 2, 2, 2)),
    sample(
        "conv2d, bias",
        lambda F, x, w, b: F.conv2d(x, w, b),
        distinct_floats(2, 1, 3, 4),
        distinct_floats(2, 1, 2, 3),
        distinct_floats(2),
    ),
    sample("conv2d, unbatched", lambda F, x, w: F.conv2d(x, w), distinct_floats(2, 3, 4), distinct_floats(3, 2, 2, 2)),
    sample(
        "conv2d, stride",
        lambda F, x, w: F.conv2d(x, w, None, 2, padding=(1, 0)),
        distinct_floats(2, 2, 5, 3),
        distinct_floats(2, 2, 3, 2),
    ),
    sample(
        "conv2d, stride leaves rows out",
        lambda F, x, w: F.conv2d(x, w, stride=(3, 2)),
        distinct_floats(1, 1, 6, 6),
        distinct_floats(2, 1, 2, 3),
    ),
    sample(
        "conv2d, more padding than kernel",
        lambda F, x, w: F.conv2d(x, w, padding=3),
        distinct_floats(1, 1, 3, 2),
        distinct_floats(2, 1, 2, 1),
    ),
    sample(
        "conv2d, dilation",
        lambda F, x, w: F.conv2d(x, w, dilation=(1, 2), padding=1),
        distinct_floats(1, 2, 4, 4),
        distinct_floats(2, 2, 2, 2),
    ),
    sample(
        "conv2d, dilation and stride",
        lambda F, x, w: F.conv2d(x, w, dilation=2, stride=(2, 1), padding=(2, 1)),
        distinct_floats(1, 1, 6, 5),
        distinct_floats(2, 1, 3, 2),
    ),
    sample(
        "conv2d, groups",
        lambda F, x, w, b: F.conv2d(x, w, b, groups=2),
        distinct_floats(2, 4, 3, 2),
        distinct_floats(4, 2, 2, 2),
        distinct_floats(4),
    ),
    sample(
        "conv2d, depthwise",
        lambda F, x, w: F.conv2d(x, w, padding=1, groups=3),
        distinct_floats(2, 3, 3, 3),
        distinct_floats(3, 1, 3, 3),
    ),
    sample(
        "conv2d, depthwise, two each",
        lambda F, x, w: F.conv2d(x, w, stride=2, groups=2),
        distinct_floats(2, 2, 4, 3),
        distinct_floats(4, 1, 2, 2),
    ),
    sample(
        "conv2d, 1 x 1",
        lambda F, x, w, b: F.conv2d(x, w, b),
        distinct_floats(2, 4, 2, 3),
        distinct_floats(3, 4, 1, 1),
        distinct_floats(3),
    ),
    sample(
        "conv2d, 1 x 1, groups",
        lambda F, x, w: F.conv2d(x, w, groups=2),
        distinct_floats(3, 4, 2, 2),
        distinct_floats(2, 2, 1, 1),
    ),
    sample(
        "conv2d, 1 x 1, stride",
        lambda F, x, w: F.conv2d(x, w, stride=2, padding=1),
        distinct_floats(2, 2, 3, 3),
        distinct_floats(2, 2, 1, 1),
    ),
    sample(
        "conv2d, same",
        lambda F, x, w: F.conv2d(x, w, padding="same"),
        distinct_floats(2, 1, 3, 4),
        distinct_floats(2, 1, 3, 2),
    ),
    sample(
        "conv2d, same, dilated",
        lambda F, x, w: F.conv2d(x, w, padding="same", dilation=(3, 2)),
        distinct_floats(1, 1, 4, 5),
        distinct_floats(2, 1, 2, 3),
    ),
    sample(
        "conv2d, valid",
        lambda F, x, w: F.conv2d(x, w, padding="valid", stride=2),
        distinct_floats(1, 2, 4, 4),
        distinct_floats(2, 2, 2, 2),
    ),
    sample(
        "conv2d, window as large as the image",
        lambda F, x, w: F.conv2d(x, w),
        distinct_floats(2, 1, 3, 3),
        distinct_floats(2, 1, 3, 3),
    ),
    sample("conv2d, input and weight one", lambda F, x: F.conv2d(x, x, padding=1), distinct_floats(2, 2, 3, 3)),
    sample(
        "conv2d, integers",
        lambda F, x, w: F.conv2d(x, w, padding=1),
        distinct_ints(1, 2, 3, 3, high=5),
        distinct_ints(2, 2, 2, 2, high=5),
    ),
    sample(
        "conv1d",
        lambda F, x, w, b: F.conv1d(x, w, b),
        distinct_floats(2, 3, 5),
        distinct_floats(2, 3, 3),
        distinct_floats(2),
    ),
    sample(
        "conv1d, unbatched", lambda F, x, w: F.conv1d(x, w, padding=1), distinct_floats(3, 5), distinct_floats(2, 3, 2)
    ),
    sample(
        "conv1d, every option",
        lambda F, x, w, b: F.conv1d(x, w, b, 2, 2, 3, 2),
        distinct_floats(2, 4, 6),
        distinct_floats(4, 2, 3),
        distinct_floats(4),
    ),
    sample(
        "conv1d, same",
        lambda F, x, w: F.conv1d(x, w, padding="same"),
        distinct_floats(2, 2, 5),
        distinct_floats(3, 2, 4),
    ),
    sample(
        "conv_transpose2d",
        lambda F, x, w: F.conv_transpose2d(x, w),
        distinct_floats(2, 2, 3, 2),
        distinct_floats(2, 3, 2, 2),
    ),
    sample(
        "conv_transpose2d, every option",
        lambda F, x, w, b: F.conv_transpose2d(x, w, b, (2, 3), 1, (1, 2), 2, (2, 1)),
        distinct_floats(2, 4, 2, 2),
        distinct_floats(4, 1, 2, 3),
        distinct_floats(2),
    ),
    sample(
        "conv_transpose2d, output padding beyond the stride",
        lambda F, x, w: F.conv_transpose2d(x, w, output_padding=(2, 1), dilation=(3, 2)),
        distinct_floats(1, 2, 3, 2),
        distinct_floats(2, 2, 2, 2),
    ),
    sample(
        "conv_transpose2d, all of the window cut off",
        lambda F, x, w: F.conv_transpose2d(x, w, padding=2),
        distinct_floats(1, 2, 4, 5),
        distinct_floats(2, 2, 2, 2),
    ),
    sample(
        "conv_transpose2d, unbatched",
        lambda F, x, w, b: F.conv_transpose2d(x, w, b, stride=2),
        distinct_floats(2, 2, 3),
        distinct_floats(2, 1, 3, 3),
        distinct_floats(1),
    ),
    sample(
        "conv_transpose1d", lambda F, x, w: F.conv_transpose1d(x, w), distinct_floats(2, 2, 3), distinct_floats(2, 3, 2)
    ),
    sample(
        "conv_transpose1d, every option",
        lambda F, x, w, b: F.conv_transpose1d(x, w, b, 3, 1, 2, 2, 2),
        distinct_floats(2, 4, 3),
        distinct_floats(4, 2, 3),
        distinct_floats(4),
    ),
    sample("unfold", lambda F, x: F.unfold(x, 2), distinct_floats(2, 2, 3, 4)),
    sample(
        "unfold, every option", lambda F, x: F.unfold(x, (3, 2), (1, 2), (1, 2), (2, 1)), distinct_floats(2, 2, 4, 3)
    ),
    sample("unfold, unbatched", lambda F, x: F.unfold(x, (1, 2), stride=2), distinct_floats(3, 3, 4)),
    sample("fold", lambda F, x: F.fold(x, (3, 4), 2), distinct_floats(2, 4, 6)),
    sample(
        "fold, every option", lambda F, x: F.fold(x, (4, 3), (3, 2), (1, 2), (1, 2), (2, 1)), distinct_floats(1, 6, 10)
    ),
    sample("fold, unbatched", lambda F, x: F.fold(x, 3, (2, 2)), distinct_floats(8, 4)),
    sample(
        "unfold, fold",
        lambda F, x: F.fold(F.unfold(x, 2, padding=1), x.shape[-2:], 2, padding=1),
        distinct_floats(2, 1, 3, 3),
    ),
]
