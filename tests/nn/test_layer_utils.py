"""Each layer equals PyTorch's: parameters, initialisation, `repr`, outputs and gradients."""

import copy
import pickle
import re

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import nn
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from nn_layers import CASES, TESTED_ELSEWHERE, LayerCase, case
from parity import FLOATS, assert_close
from strategies import PARITY, SECOND
from tiers import choose_cases

DTYPE = FLOATS[0]
IDS = [case.name for case in CASES]
# PyTorch warns of slow paths.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:Using padding='same'")
each = pytest.mark.parametrize("case", CASES, ids=IDS)


def tensor(library, array):
    return library.tensor(array.astype(DTYPE) if array.dtype.kind == "f" else array)


def make_both(case: LayerCase, torch):
    """Create the layer in both libraries, with the same dtype and a random state other than the initial one."""
    layer, torch_layer = case.make(nn), case.make(torch.nn)
    for module in (layer, torch_layer):
        module.to(getattr(mg if module is layer else torch, DTYPE))
    generator = np.random.default_rng(0)
    state = {}
    for name, x in torch_layer.state_dict().items():
        if x.is_floating_point():
            state[name] = generator.uniform(0.5, 1.0, tuple(x.shape)).astype(DTYPE)
            if not name.endswith("running_var"):
                state[name] *= generator.choice([-1.0, 1.0], tuple(x.shape)).astype(DTYPE)
    torch_layer.load_state_dict({**torch_layer.state_dict(), **{name: torch.tensor(x) for name, x in state.items()}})
    layer.load_state_dict(torch_layer.state_dict())
    return layer, torch_layer


def run_layer(case: LayerCase, layer, library):
    """Return the outputs, and the gradients of a weighted sum of them for inputs and parameters."""
    inputs = [tensor(library, x) for x in case.inputs]
    for x in inputs:
        if x.is_floating_point():
            x.requires_grad_()
    result = case.call(layer, *inputs)
    outputs = [
        y for x in (result if isinstance(result, tuple) else [result]) for y in (x if isinstance(x, tuple) else [x])
    ]
    total = sum((x * tensor(library, np.linspace(-1.0, 2.0, x.numel()).reshape(tuple(x.shape)))).sum() for x in outputs)
    leaves = [x for x in (*inputs, *layer.parameters()) if x.requires_grad]
    if total.requires_grad:
        total.backward()
    return [x.detach() for x in outputs], [x.grad for x in leaves]


def to_numpy(x):
    return x.numpy(force=True)


def test_every_layer_has_a_case():
    named = {re.match(r"\w+", case.name).group() for case in CASES}
    modules = {name for name in nn.__all__ if isinstance(getattr(nn, name), type)}
    assert modules - named - TESTED_ELSEWHERE == set()


@pytest.mark.parity
@pytest.mark.parametrize(
    ("case", "mode"),
    [
        pytest.param(case, mode, id=f"{mode}-{case.name}")
        for case in CASES
        for mode in choose_cases(["train", "eval"] if case.is_deterministic else ["eval"], case.name, 1)
    ],
)
def test_layer_equals_pytorchs_with_the_same_state(case, mode, torch):
    layer, torch_layer = make_both(case, torch)
    layer.train(mode == "train")
    torch_layer.train(mode == "train")
    outputs, gradients = run_layer(case, layer, mg)
    expected, expected_gradients = run_layer(case, torch_layer, torch)
    tolerance = 10 * PARITY["float32" if case.is_low_precision else DTYPE]
    for a, b in zip(outputs, expected, strict=True):
        assert a.shape == tuple(b.shape)
        assert_close(to_numpy(a), to_numpy(b), tolerance)
    for a, b in zip(gradients, expected_gradients, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert_close(to_numpy(a), to_numpy(b), tolerance)
    for name, x in torch_layer.state_dict().items():  # running statistics
        assert_close(to_numpy(layer.state_dict()[name]), to_numpy(x), PARITY[DTYPE])


@pytest.mark.parity
@merge_cases
@each
def test_keys_shapes_and_types_of_the_state_are_pytorchs(case, torch):
    state, torch_state = case.make(nn).state_dict(), case.make(torch.nn).state_dict()
    described = [(name, x.shape, x.dtype.name) for name, x in state.items()]
    assert described == [(name, tuple(x.shape), str(x.dtype)[6:]) for name, x in torch_state.items()]


@pytest.mark.parity
@merge_cases
@each
def test_parameters_are_initialised_as_pytorchs(case, torch):
    mg.manual_seed(1)
    torch.manual_seed(1)
    layer, torch_layer = case.make(nn), case.make(torch.nn)
    for (name, x), (other, y) in zip(layer.named_parameters(), torch_layer.named_parameters(), strict=True):
        assert name == other
        a, b = to_numpy(x), to_numpy(y)
        assert bool((a == a.flat[0]).all()) == bool((b == b.flat[0]).all()), name  # constants are constants
        if (b == b.flat[0]).all():
            np.testing.assert_array_equal(a, b)
        elif b.size >= 12:  # so few samples only allow a rough check of the deviation
            assert 0.5 < a.std() / b.std() < 2.0, name


@pytest.mark.parity
@merge_cases
@each
def test_repr_is_pytorchs_except_for_parameter_counts(case, torch):
    actual = re.sub(r"  # [\d,]+ parameters?( each)?", "", repr(case.make(nn)))
    expected = repr(case.make(torch.nn)).replace("NonDynamicallyQuantizableLinear", "Linear")
    assert actual == expected.replace("\\n", "\n")


@merge_cases
@each
def test_layer_is_the_same_after_a_copy_and_after_pickle(case):
    layer = case.make(nn).eval()
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        inputs = [tensor(mg, x) for x in case.inputs]
        twin.to(getattr(mg, DTYPE))
        assert repr(twin) == repr(layer)
        assert twin.state_dict().keys() == layer.state_dict().keys()
        assert not {id(p) for p in twin.parameters()} & {id(p) for p in layer.parameters()}
        case.call(twin, *inputs)


def test_min_pool_is_the_max_pool_of_the_negative():
    x = mg.randn(1, 2, 6, 6)
    assert (nn.MinPool2d(2)(x) == -nn.MaxPool2d(2)(-x)).all()


def test_hinge_loss_equals_the_function():
    x, y = mg.tensor([0.5, -2.0]), mg.tensor([1.0, 1.0])
    assert nn.HingeLoss()(x, y).item() == pytest.approx((0.5 + 3.0) / 2)


def test_channel_dropout_zeroes_entire_channels_and_scales_the_others():
    mg.manual_seed(0)
    for layer, shape in ((nn.Dropout1d(0.25), (40, 25, 3)), (nn.Dropout2d(0.25), (40, 25, 2, 2))):
        y = layer(mg.ones(*shape)).flatten(2)
        assert (y == y[..., :1]).all()
        assert set(y.flatten().tolist()) == {0.0, mg.tensor(4 / 3).item()}
        assert (y[..., 0] == 0.0).to(mg.float32).mean().item() == pytest.approx(0.25, abs=0.06)
        x = mg.ones(*shape)
        assert type(layer)(0.5, inplace=True)(x) is x
        assert layer.eval()(x) is x


def test_alpha_dropout_preserves_mean_and_variance_with_one_masked_value():
    mg.manual_seed(0)
    x = mg.randn(200, 100)
    y = nn.AlphaDropout(0.3)(x)
    assert abs(y.mean().item()) < 0.03
    assert abs(y.var().item() - 1.0) < 0.03
    _, counts = mg.unique(y, return_counts=True)
    assert counts.max().item() / x.numel() == pytest.approx(0.3, abs=0.01)
    z = nn.FeatureAlphaDropout(0.5)(mg.randn(30, 20, 4)).var(-1)
    assert (z == 0.0).to(mg.float32).mean().item() == pytest.approx(0.5, abs=0.1)
    assert nn.AlphaDropout(0.3).eval()(x) is x


def test_dropout_between_layers_is_random_only_in_training():
    layer, x = nn.GRU(4, 3, 2, dropout=0.5), mg.ones(5, 2, 4)
    assert (layer(x)[0] != layer(x)[0]).any()
    layer.eval()
    assert (layer(x)[0] == layer(x)[0]).all()


def test_embedding_starts_with_zeros_at_its_padding_and_can_be_given():
    table = nn.Embedding(4, 2, padding_idx=1)
    assert table.weight[1].tolist() == [0.0, 0.0]
    pretrained = nn.Embedding.from_pretrained(mg.eye(3))
    assert not pretrained.weight.requires_grad
    assert pretrained(mg.tensor([2])).tolist() == [[0.0, 0.0, 1.0]]


def test_a_causal_mask_hides_later_positions():
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True), mg.randn(1, 4, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    _, weights = layer(x, x, x, attn_mask=mask, is_causal=True)
    assert (weights.triu(1) == 0.0).all()
    assert (weights.sum(-1) - 1.0).abs().max().item() < 1e-6


def test_backward_of_a_sequence_is_linear_in_its_length():
    """The gradient of each time step is concatenated once, not added to full-size zeros."""
    layer, counts = nn.LSTM(3, 4), []
    for length in (8, 16):
        x, sizes = mg.ones(length, 2, 3, requires_grad=True), []
        output = layer(x)[0].sum()
        with mg.tap(lambda call, sizes=sizes: sizes.append(getattr(call.result, "size", 0))):
            output.backward()
        counts.append(sum(sizes))
    assert counts[1] < 2.2 * counts[0]


@merge_cases
@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (lambda: nn.Linear(-1, 2), ShapeError, "in_features=-1 and out_features=2 must not be negative"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ShapeError, "must be divisible by groups, but got in_channels=3"),
        (
            lambda: nn.Conv2d(3, 4, 3, padding="wide"),
            ArgumentError,
            r"Conv2d: expected padding to be one of 'valid', 'same', but got 'wide'\.",
        ),
        (lambda: nn.Conv2d(3, 4, 3, 2, "same"), ArgumentError, "padding='same' is not supported for strided"),
        (
            lambda: nn.Conv2d(3, 4, 3, padding_mode="wrap"),
            ArgumentError,
            "Conv2d: expected padding_mode to be one of 'zeros', 'reflect', 'replicate', 'circular',",
        ),
        (lambda: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), ArgumentError, 'only "zeros" padding mode'),
        (
            lambda: nn.ConvTranspose2d(1, 1, 3, stride=2)(mg.ones(1, 1, 4, 4), output_size=(12, 9)),
            ShapeError,
            r"requested output_size=\(12, 9\), .* range from \(9, 9\) to less than that plus stride",
        ),
        (lambda: nn.BatchNorm2d(3)(mg.ones(2, 3)), ShapeError, r"expected 4D input, but got 2D input of shape"),
        (lambda: nn.InstanceNorm1d(3)(mg.ones(2, 4, 5)), ShapeError, "expected num_features=3 channels, but got 4"),
        (lambda: nn.GroupNorm(2, 3), ShapeError, "num_channels must be divisible by num_groups"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ShapeError, "padding_idx must be within num_embeddings"),
        (lambda: nn.Embedding(3, 2, sparse=True), ArgumentError, "Embedding: sparse gradients are not supported"),
        (lambda: nn.Dropout(1.5), ArgumentError, r"Dropout: p has to be between 0 and 1, but got 1\.5\."),
        (
            lambda: nn.EmbeddingBag(3, 2, mode="prod"),
            ArgumentError,
            r"EmbeddingBag: expected mode to be one of 'mean', 'sum', 'max', but got 'prod'\.",
        ),
        (lambda: nn.EmbeddingBag(3, 2, padding_idx=4), ShapeError, "padding_idx must be .*, but got 4 of 3"),
        (
            lambda: nn.EmbeddingBag(3, 2)(mg.tensor([0, 1])),
            ShapeError,
            r"embedding_bag: got input of shape \(2,\) without offsets\.",
        ),
        (
            lambda: nn.EmbeddingBag(3, 2)(mg.tensor([0]), mg.tensor([2])),
            ShapeError,
            r"embedding_bag: offsets exceed the 1 indices of input: \[2\]\.",
        ),
        (
            lambda: nn.ChannelShuffle(3)(mg.ones(1, 4, 2)),
            ShapeError,
            r"channel_shuffle: expected \(N, C, …\) with C divisible by groups=3, but got \(1, 4, 2\)\.",
        ),
        (
            lambda: nn.LocalResponseNorm(2)(mg.ones(3, 4)),
            ShapeError,
            r"local_response_norm: expected an input \(N, C, …\) and a size of 1 or more, but got \(3,",
        ),
        (
            lambda: nn.Dropout2d()(mg.ones(2)),
            ShapeError,
            r"dropout2d: expected 3D or 4D input, but received a 1D input of shape \(2,\)\.",
        ),
        (
            lambda: nn.PixelShuffle(2)(mg.ones(3, 2, 2)),
            ShapeError,
            r"pixel_shuffle: expected channels divisible by 4, but got 3 in shape \(3, 2, 2\)\.",
        ),
        (
            lambda: nn.PixelUnshuffle(2)(mg.ones(3, 3, 2)),
            ShapeError,
            r"pixel_unshuffle: expected height and width divisible by 2, but got shape \(3, 3, 2\)\.",
        ),
        (
            lambda: nn.GLU()(mg.ones(3)),
            ShapeError,
            r"glu: halving dimension must be even, but got dimension -1 of shape \(3,\)\.",
        ),
        (
            lambda: nn.Bilinear(2, 3, 4)(mg.ones(1, 2), mg.ones(1, 2)),
            ShapeError,
            r"bilinear: expected inputs \(…, n\) and \(…, m\) with equal leading sizes and weight \(out,",
        ),
        (
            lambda: nn.MSELoss(reduction="avg"),
            ArgumentError,
            r"MSELoss: expected reduction to be one of 'mean', 'sum', 'none', but got 'avg'\.",
        ),
        (lambda: nn.MSELoss(reduce=True), ArgumentError, "size_average and reduce are not supported"),
        (
            lambda: nn.LSTM(2, 3)([1, 2]),
            DTypeError,
            "LSTM: expected input to be a tensor or a PackedSequence, but got a list",
        ),
        (lambda: nn.GRU(2, 3, proj_size=1), ArgumentError, "GRU: proj_size is only supported for LSTM"),
        (lambda: nn.LSTM(2, 3, proj_size=3), ArgumentError, "proj_size=3 must be smaller than hidden_size=3"),
        (lambda: nn.LSTM(2, 3)(mg.ones(4, 1, 5)), ShapeError, r"input \(L, N, 2\), or no N, but got \(4, 1, 5\)"),
        (lambda: nn.LSTM(2, 3)(mg.ones(4, 1, 2), mg.ones(1, 1, 3)), DTypeError, r"a tuple \(h, c\) of tensors"),
        (lambda: nn.GRU(2, 3)(mg.ones(4, 1, 2), mg.ones(1, 2, 3)), ShapeError, r"expected hidden size \(1, 1, 3\)"),
        (lambda: nn.GRUCell(2, 3)(mg.ones(1, 3)), ShapeError, r"expected input \(N, 2\), or without N"),
        (
            lambda: nn.RNN(2, 3, nonlinearity="sin"),
            ArgumentError,
            r"RNN: expected nonlinearity to be one of 'tanh', 'relu', but got 'sin'\.",
        ),
        (lambda: nn.MultiheadAttention(8, 3), ShapeError, "embed_dim must be divisible by num_heads"),
        (
            lambda: attend(mg.ones(5, 2, 6)),
            ShapeError,
            r"query, key and value of shapes \(L, N, 8\), .*, but got \(5, 2, 6\)",
        ),
        (
            lambda: attend(attn_mask=mg.ones(4, 5)),
            ShapeError,
            r"attn_mask is \(4, 5\), but should be \(5, 5\) or \(4, 5, 5\)",
        ),
        (lambda: attend(key_padding_mask=mg.ones(5, 2)), ShapeError, r"is \(5, 2\), but should be \(2, 5\)"),
        (lambda: attend(attn_mask=mg.tensor([[0] * 5] * 5)), DTypeError, "only bool and floating types .*, not int64"),
        (lambda: attend(is_causal=True), ShapeError, "need attn_mask if specifying the is_causal hint"),
        (lambda: nn.TransformerEncoderLayer(8, 2, activation="elu"), ArgumentError, "should be 'relu', 'gelu' or a"),
    ],
)
def test_invalid_arguments_raise(act, kind, text):
    with pytest.raises(kind, match=text):
        act()


def attend(x=None, **options):
    x = mg.ones(5, 2, 8) if x is None else x
    return nn.MultiheadAttention(8, 2)(x, x, x, **options)


@pytest.mark.parametrize("text", ["LSTM(2, 2)", "GRU(2, 2)", "TransformerEncoderLayer(2, 1, 3, 0.0)"])
def test_composite_layers_can_be_differentiated_twice(text):
    mg.manual_seed(0)
    layer = case(text).make(nn).double()

    def outputs(x):
        output = layer(x)
        return output[0] if isinstance(output, tuple) else output

    assert mg.gradgradcheck(outputs, [mg.randn(3, 1, 2, dtype=mg.float64)], fast_mode=True, **SECOND)


@pytest.mark.parity
def test_without_momentum_the_running_statistics_are_the_mean_of_all_batches(torch):
    layer, torch_layer = nn.BatchNorm1d(3, momentum=None), torch.nn.BatchNorm1d(3, momentum=None)
    for k in range(3):
        batch = np.random.default_rng(k).normal(k, 1 + k, (8, 3)).astype("float32")
        layer(mg.tensor(batch)), torch_layer(torch.tensor(batch))
        for name in ("running_mean", "running_var"):
            actual, expected = getattr(layer, name).numpy(), getattr(torch_layer, name).numpy()
            np.testing.assert_allclose(actual, expected, rtol=PARITY["float32"], atol=PARITY["float32"])
