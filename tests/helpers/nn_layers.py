"""Test cases for every layer: how to construct and call it. The comparisons with PyTorch are generated from them.

A case applies to both libraries: `nn` is `minigrad.nn` or `torch.nn`. Inputs are arrays; floating-point inputs are
differentiated.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from samples import distinct_floats, with_int64

__all__ = ["CASES", "TESTED_ELSEWHERE", "LayerCase", "case"]


class LayerCase(NamedTuple):
    """A layer, constructed by `make` and called with `inputs` by `call`."""

    name: str
    make: Callable[[Any], Any]
    inputs: tuple[Any, ...]
    call: Callable[..., Any] = lambda layer, *inputs: layer(*inputs)
    is_deterministic: bool = True  # whether training can be compared; False for random layers
    is_low_precision: bool = False  # whether PyTorch uses a constant of lower precision than float64


def case(source: str, *inputs: Any, **options: Any) -> LayerCase:
    """Return the case for the layer that `source` constructs, such as "Linear(3, 2)"."""
    return LayerCase(source, lambda nn: eval(f"nn.{source}", {"nn": nn}), with_int64(inputs), **options)


def class_indices(high: int, *shape: int) -> Any:
    return (np.arange(np.prod(shape)) * 7 % high).reshape(shape)


def signs(*shape: int) -> Any:
    return np.where(distinct_floats(*shape, seed=5) > 0, 1.0, -1.0)


VECTORS, SIGNALS = distinct_floats(2, 4), distinct_floats(2, 3, 8)
IMAGES, IMAGE = distinct_floats(2, 4, 6, 5), distinct_floats(4, 6, 5)
SEQUENCES = distinct_floats(5, 2, 8)  # five positions of two sequences
MEMORY = distinct_floats(3, 2, 8, seed=1)
MASK = np.triu(np.ones((5, 5), dtype=bool), 1)
PADDING = np.array([[False, False, False, False, True], [False, False, False, False, False]])

_ELEMENTWISE = [
    "CELU(1.5)",
    "ELU(0.5)",
    "GELU()",
    "GELU('tanh')",
    "Hardshrink()",
    "Hardsigmoid()",
    "Hardswish()",
    "Hardtanh(-0.5, 2.0)",
    "LeakyReLU(0.2)",
    "LogSigmoid()",
    "Mish()",
    "PReLU()",
    "ReLU()",
    "ReLU6()",
    "SELU()",
    "SiLU()",
    "Sigmoid()",
    "Softplus(2.0, 5.0)",
    "Softshrink(0.3)",
    "Softsign()",
    "Tanh()",
    "Tanhshrink()",
    "Threshold(0.5, -2.0)",
]
_LOSSES = ["L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"]

CASES = [
    case("Linear(4, 3)", VECTORS),
    case("Linear(8, 3, bias=False)", SIGNALS),
    case("Bilinear(4, 3, 2)", VECTORS, distinct_floats(2, 3, seed=1)),
    case("Bilinear(8, 3, 2, bias=False)", SIGNALS, distinct_floats(2, 3, 3)),
    case("Identity(5, unused=True)", VECTORS),
    case("Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))", VECTORS),
    *[
        case(f"Conv1d(4, 6, 3{options})", distinct_floats(2, 4, 9))
        for options in ("", ", 2, 1, bias=False", ", groups=2", ", padding='same', padding_mode='circular'")
    ],
    case("Conv2d(4, 6, 3)", IMAGES),
    case("Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), dilation=2, groups=2)", distinct_floats(2, 4, 9, 8)),
    case("Conv2d(4, 2, 3, padding=1, padding_mode='reflect', bias=False)", IMAGES),
    case("Conv2d(4, 2, 3, padding='same', padding_mode='replicate')", IMAGE),
    case("Conv2d(4, 2, (3, 2), padding='same')", IMAGES),
    case("Conv2d(4, 2, 3, padding='valid')", IMAGES),
    case("ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1)", distinct_floats(2, 4, 5)),
    case("ConvTranspose2d(4, 6, 3, 2, 1, 1, 2)", IMAGES),
    case("ConvTranspose2d(4, 3, 3, stride=2, bias=False)", IMAGES, call=lambda m, x: m(x, output_size=[14, 12])),
    case("MaxPool1d(2)", distinct_floats(2, 4, 9)),
    case("MaxPool2d(3, 2, 1, ceil_mode=True)", IMAGES),
    case("AvgPool1d(2, padding=1)", distinct_floats(2, 4, 9)),
    case("AvgPool2d((3, 2), 2, (1, 1), count_include_pad=False)", IMAGES),
    case("AvgPool2d(2, divisor_override=3)", IMAGES),
    case("AdaptiveAvgPool1d(3)", distinct_floats(2, 4, 7)),
    case("AdaptiveAvgPool2d((3, None))", IMAGES),
    case("AdaptiveMaxPool1d(3)", distinct_floats(2, 4, 7)),
    case("AdaptiveMaxPool2d(2)", IMAGES),
    case("Upsample(scale_factor=2)", IMAGES),
    case("Upsample(size=(9, 7), mode='bilinear', align_corners=True)", IMAGES),
    case("UpsamplingNearest2d(scale_factor=2)", IMAGES),
    case("UpsamplingBilinear2d(size=9)", IMAGES),
    *[case(text, SIGNALS, is_low_precision=text.startswith("Hards")) for text in _ELEMENTWISE],
    case("PReLU(3, init=0.1)", SIGNALS),
    case("ReLU(inplace=True)", SIGNALS, call=lambda m, x: m(x * 1.0)),
    case("Hardswish(inplace=True)", SIGNALS, call=lambda m, x: m(x * 1.0), is_low_precision=True),
    case("GLU(1)", distinct_floats(2, 4, 3)),
    case("Softmax(dim=1)", SIGNALS),
    case("Softmin(dim=-1)", SIGNALS),
    case("LogSoftmax(dim=-1)", SIGNALS),
    case("Softmax2d()", IMAGES),
    case("Flatten()", IMAGES),
    case("Flatten(0, 1)", IMAGES),
    case("Unflatten(1, (2, 2))", IMAGES),
    case("Unfold(2, padding=1)", IMAGES),
    case("Fold((3, 4), 2)", distinct_floats(2, 8, 6)),
    case("PixelShuffle(2)", IMAGES),
    case("PixelUnshuffle(2)", distinct_floats(2, 3, 4, 6)),
    *[
        case(f"{kind}Pad1d((1, 2))", distinct_floats(2, 4, 5))
        for kind in ("Zero", "Reflection", "Replication", "Circular")
    ],
    *[case(f"{kind}Pad2d(2)", IMAGES) for kind in ("Zero", "Reflection", "Replication", "Circular")],
    case("ConstantPad1d(1, 2.5)", distinct_floats(2, 4, 5)),
    case("ConstantPad2d((1, 0, 2, 3), -1.0)", IMAGES),
    case("BatchNorm1d(4)", distinct_floats(6, 4)),
    case("BatchNorm1d(3, momentum=None)", SIGNALS, call=lambda m, x: m(m(x) * 2.0)),
    case("BatchNorm2d(4, eps=0.01, momentum=0.3)", IMAGES),
    case("BatchNorm2d(4, affine=False)", IMAGES),
    case("BatchNorm2d(4, track_running_stats=False)", IMAGES),
    case("InstanceNorm1d(3)", SIGNALS),
    case("InstanceNorm2d(4, affine=True, track_running_stats=True)", IMAGES),
    case("InstanceNorm2d(4)", IMAGE),
    case("GroupNorm(2, 4)", IMAGES),
    case("GroupNorm(1, 4, affine=False)", IMAGES),
    case("LayerNorm(8)", SIGNALS),
    case("LayerNorm((3, 8), eps=0.1, bias=False)", SIGNALS),
    case("LayerNorm(8, elementwise_affine=False)", SIGNALS),
    case("RMSNorm(8)", SIGNALS),
    case("RMSNorm([3, 8], eps=0.1, elementwise_affine=False)", SIGNALS),
    case("Embedding(7, 3)", class_indices(7, 2, 5)),
    case("Embedding(7, 3, padding_idx=-1)", class_indices(7, 2, 5)),
    case("Embedding(7, 3, max_norm=0.5, norm_type=1.0, scale_grad_by_freq=True)", class_indices(7, 2, 5)),
    case("LocalResponseNorm(3, alpha=0.5, beta=0.5, k=2.0)", IMAGES),
    case("ChannelShuffle(2)", IMAGES),
    case("LPPool1d(2, 3, stride=2)", np.abs(SIGNALS)),
    case("LPPool2d(3.0, 2)", np.abs(IMAGES)),
    case("MaxUnpool1d(2)", SIGNALS[..., :3], np.array([0, 3, 4]) + np.zeros((2, 3, 1), int)),
    case("MaxUnpool2d(2, 2)", IMAGES[..., :2, :1], np.array([[0], [5]]) + np.zeros((2, 4, 1, 1), int)),
    case("EmbeddingBag(7, 3)", class_indices(7, 2, 5)),
    case("EmbeddingBag(7, 3, mode='sum', padding_idx=1)", class_indices(7, 6), np.array([0, 4])),
    case("EmbeddingBag(7, 3, mode='max', include_last_offset=True)", class_indices(7, 6), np.array([0, 4, 6])),
    case("AlphaDropout(0.3)", SIGNALS, is_deterministic=False),
    case("FeatureAlphaDropout(0.3)", IMAGES, is_deterministic=False),
    case("Dropout(0.3)", SIGNALS, is_deterministic=False),
    case("Dropout1d(0.3)", SIGNALS, is_deterministic=False),
    case("Dropout2d()", IMAGES, is_deterministic=False),
    case("RNNCell(4, 3)", VECTORS, distinct_floats(2, 3, seed=1)),
    case("RNNCell(4, 3, nonlinearity='relu')", VECTORS),
    case("LSTMCell(4, 3)", VECTORS),
    case(
        "LSTMCell(4, 3, bias=False)",
        VECTORS,
        *(distinct_floats(2, 3, seed=k) for k in (1, 2)),
        call=lambda m, x, h, c: m(x, (h, c)),
    ),
    case("GRUCell(4, 3)", VECTORS, distinct_floats(2, 3, seed=1)),
    case("RNN(8, 3, nonlinearity='relu')", SEQUENCES),
    case("RNN(8, 3, 2, bidirectional=True, batch_first=True)", SEQUENCES, distinct_floats(4, 5, 3)),
    case("LSTM(8, 3)", SEQUENCES),
    case("LSTM(8, 3, num_layers=2, bidirectional=True, bias=False)", SEQUENCES),
    case(
        "LSTM(8, 3, 2)",
        SEQUENCES,
        *(distinct_floats(2, 2, 3, seed=k) for k in (1, 2)),
        call=lambda m, x, h, c: m(x, (h, c)),
    ),
    case("LSTM(8, 3, batch_first=True)", distinct_floats(5, 8)),
    case(
        "LSTM(8, 3, 2, proj_size=2, bidirectional=True)",
        SEQUENCES,
        *(distinct_floats(4, 2, n, seed=n) for n in (2, 3)),
        call=lambda m, x, h, c: m(x, (h, c)),
    ),
    case("LSTM(8, 3, proj_size=1, bias=False)", SEQUENCES),
    case("GRU(8, 3, 2, dropout=0.5)", SEQUENCES, is_deterministic=False),
    case("GRU(8, 3, bidirectional=True)", SEQUENCES),
    case("MultiheadAttention(8, 2)", SEQUENCES, call=lambda m, x: m(x, x, x)),
    case(
        "MultiheadAttention(8, 2, bias=False)",
        SEQUENCES,
        MEMORY,
        call=lambda m, x, y: m(x, y, y, need_weights=False)[0],
    ),
    case(
        "MultiheadAttention(8, 4, kdim=8, vdim=6, batch_first=True)",
        *(distinct_floats(2, 5, 8), distinct_floats(2, 3, 8), distinct_floats(2, 3, 6)),
        call=lambda m, q, k, v: m(q, k, v, average_attn_weights=False),
    ),
    case(
        "MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)",
        *(SEQUENCES, MASK, PADDING),
        call=lambda m, x, mask, padding: m(x, x, x, key_padding_mask=padding, attn_mask=mask),
    ),
    case("MultiheadAttention(8, 2, 0.5)", distinct_floats(5, 8), call=lambda m, x: m(x, x, x), is_deterministic=False),
    case(
        "TransformerEncoderLayer(8, 2, 12, dropout=0.0)",
        *(SEQUENCES, MASK, PADDING),
        call=lambda m, x, mask, padding: m(x, mask, padding),
    ),
    case("TransformerEncoderLayer(8, 2, 12, 0.0, 'gelu', norm_first=True, batch_first=True, bias=False)", SEQUENCES),
    case("TransformerDecoderLayer(8, 2, 12, 0.0)", SEQUENCES, MEMORY, MASK),
    case("TransformerDecoderLayer(8, 2, 12, 0.0, norm_first=True)", SEQUENCES, MEMORY),
    case(
        "TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12), 2, nn.LayerNorm(8))",
        SEQUENCES,
        is_deterministic=False,
    ),
    case("TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12), 2)", SEQUENCES, MEMORY, is_deterministic=False),
    case("Transformer(8, 2, 1, 1, 12, 0.0)", MEMORY, SEQUENCES),
    *[case(f"{loss}()", VECTORS, distinct_floats(2, 4, seed=1)) for loss in _LOSSES],
    *[case(f"{loss}(reduction='sum')", VECTORS, distinct_floats(2, 4, seed=1)) for loss in _LOSSES],
    case("SmoothL1Loss(beta=0.5)", VECTORS, distinct_floats(2, 4, seed=1)),
    case("HuberLoss('none', 0.5)", VECTORS, distinct_floats(2, 4, seed=1)),
    case("KLDivLoss(reduction='batchmean')", VECTORS, distinct_floats(2, 4, low=0.1, high=0.9)),
    case("KLDivLoss(reduction='sum', log_target=True)", VECTORS, distinct_floats(2, 4, seed=1)),
    case("NLLLoss()", VECTORS, class_indices(4, 2)),
    case("CrossEntropyLoss()", VECTORS, class_indices(4, 2)),
    case("CrossEntropyLoss(ignore_index=2, label_smoothing=0.1)", distinct_floats(6, 4), class_indices(4, 6)),
    case("BCELoss()", distinct_floats(3, 2, low=0.1, high=0.9), distinct_floats(3, 2, low=0.1, high=0.9, seed=1)),
    case("BCEWithLogitsLoss(reduction='none')", VECTORS, distinct_floats(2, 4, low=0.1, high=0.9)),
    case("HingeEmbeddingLoss(2.0)", VECTORS, signs(2, 4)),
    case("MarginRankingLoss(0.5)", VECTORS, distinct_floats(2, 4, seed=1), signs(2, 4)),
    case("CosineEmbeddingLoss(0.2)", distinct_floats(4, 3), distinct_floats(4, 3, seed=1), signs(4)),
    case("MultiMarginLoss(p=2, margin=0.7)", VECTORS, class_indices(4, 2)),
    case("MultiLabelMarginLoss()", VECTORS, np.array([[3, 0, -1, 1], [1, 2, 0, 3]])),
    case("MultiLabelSoftMarginLoss(reduction='sum')", VECTORS, class_indices(2, 2, 4).astype(float)),
    case(
        "TripletMarginWithDistanceLoss(margin=2.0, swap=True)",
        VECTORS,
        distinct_floats(2, 4, seed=1),
        distinct_floats(2, 4, seed=2),
    ),
    case(
        "TripletMarginLoss(2.0, p=1.0, swap=True)",
        VECTORS,
        distinct_floats(2, 4, seed=1),
        distinct_floats(2, 4, seed=2),
    ),
    case("SoftMarginLoss(reduction='sum')", VECTORS, signs(2, 4).astype(int)),
    case("PoissonNLLLoss(full=True)", VECTORS, distinct_floats(2, 4, low=0.1, high=9.0)),
    case(
        "GaussianNLLLoss(full=True)", VECTORS, distinct_floats(2, 4, seed=1), distinct_floats(2, 4, low=0.1, high=2.0)
    ),
    case("CosineSimilarity(dim=-1)", VECTORS, distinct_floats(2, 4, seed=1)),
    case("PairwiseDistance(1.0, keepdim=True)", VECTORS, distinct_floats(2, 4, seed=1)),
]

# Classes that are not layers, or not in PyTorch. Other files test them.
TESTED_ELSEWHERE = {
    "HingeLoss",
    "MinPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RNNCellBase",
}
