"""Edge cases of losses: ignored targets, extreme logits, mismatched shapes, and error messages."""

import math

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from strategies import SECOND

INF, NAN = math.inf, math.nan


def compare_losses(torch, name, *arrays, **options):
    """Compute a loss and the gradients of its floating-point inputs in minigrad and PyTorch, as arrays."""
    results = []
    for library, functions in ((mg, mg), (torch, torch.nn.functional)):
        inputs = [library.tensor(x) for x in arrays]
        float_inputs = [x.requires_grad_() for x, array in zip(inputs, arrays, strict=True) if array.dtype.kind == "f"]
        named = {k: library.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        loss = getattr(functions, name)(*inputs, **named)
        (loss if loss.ndim == 0 else loss.sum()).backward()
        grads = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in float_inputs]
        results.append([loss.detach().numpy(), *grads])
    return zip(*results, strict=True)


SCORES = np.array([[1.0, -2.0, 0.5], [0.3, 0.1, -0.7], [2.0, 1.0, 0.0]])
CORNERS = {
    "all left out": (SCORES, [-100, -100, -100]),
    "one left out by a class": (SCORES, [0, 1, 2], {"ignore_index": 1}),
    "left out where nan": (np.array([[NAN, 1.0], [0.5, 1.0]]), [-100, 1]),
    "left out where infinite": (np.array([[INF, 1.0], [0.5, 1.0]]), [-100, 1]),
    "weights of 0": (SCORES, [0, 1, 1], {"weight": np.array([0.0, 0.0, 1.0])}),
    "infinite weight, left out": (SCORES, [-100, 1, 1], {"weight": np.array([INF, 2.0, 1.0])}),
    "huge scores": (np.array([[1000.0, -1000.0, 0.0]]), [1]),
    "impossible class": (np.array([[-INF, 1.0, 0.0]]), [1]),
    "impossible right class": (np.array([[-INF, 1.0, 0.0]]), [0]),
    "nothing possible": (np.array([[-INF, -INF]]), [0]),
    "certain": (np.array([[INF, 1.0]]), [0]),
    "no positions": (np.zeros((0, 3)), []),
    "no positions, no classes": (np.zeros((0, 0)), []),
    "no pixels": (np.zeros((2, 3, 0)), np.zeros((2, 0))),
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss", "smoothed"])
@pytest.mark.parametrize("corner", CORNERS)
def test_corners_of_classes_have_pytorch_s_loss_and_gradient(torch, corner, name, reduction):
    scores, target, *options = CORNERS[corner]
    options = {**(options[0] if options else {}), **({"label_smoothing": 0.1} if name == "smoothed" else {})}
    if (corner, name, reduction) == ("no positions, no classes", "smoothed", "sum"):
        return  # an empty sum is 0; PyTorch divides the smoothing by zero classes and gets nan
    name = "cross_entropy" if name == "smoothed" else name
    for actual, expected in compare_losses(
        torch, name, scores, np.array(target, dtype=np.int64), reduction=reduction, **options
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("right", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("chance", [0.0, 1e-30, 0.4, 1.0])
def test_binary_cross_entropy_of_certain_answers_is_pytorch_s(torch, chance, right):
    for actual, expected in compare_losses(torch, "binary_cross_entropy", np.array([chance]), np.array([right])):
        np.testing.assert_allclose(actual, expected, rtol=1e-8)  # PyTorch rounds the constant 1e-12 to float32


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("score", [-1000.0, -50.0, 0.0, 50.0, 1000.0, INF, NAN])
@pytest.mark.parametrize("weight", [None, np.array([3.0])])
def test_bce_with_logits_of_extreme_scores_is_pytorch_s(torch, score, weight):
    comparison = compare_losses(
        torch,
        "binary_cross_entropy_with_logits",
        np.array([score]),
        np.array([0.3]),
        pos_weight=weight,
        reduction="sum",
    )
    for actual, expected in list(comparison)[: 3 if abs(score) < INF else 1]:
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parity
def test_uint8_inputs_are_not_negated(torch):
    for lib in (mg, torch):
        scores, targets = lib.tensor([0.5, -1.0]), lib.tensor([1, 1], dtype=lib.uint8)
        loss = lib.nn.functional.soft_margin_loss(scores, targets)
        assert loss.item() == pytest.approx((math.log1p(math.exp(-0.5)) + math.log1p(math.e)) / 2, rel=1e-6)
        assert lib.logit(lib.tensor([1, 0], dtype=lib.uint8)).tolist() == [math.inf, -math.inf]
    with pytest.raises(DTypeError, match=r"logsigmoid: expected input to be a floating-point tensor, but got uint8\."):
        mg.nn.functional.logsigmoid(mg.tensor([1, 0], dtype=mg.uint8))


def test_gradient_of_a_tiny_probability_is_accurate():
    x = mg.tensor([-80.0], dtype=mg.float64, requires_grad=True)
    mg.binary_cross_entropy_with_logits(x, mg.tensor([0.0], dtype=mg.float64)).backward()
    assert x.grad.item() == pytest.approx(math.exp(-80.0), rel=1e-12)


def test_large_logits_are_accurate_in_float32():
    """The maximum is subtracted before rounding: logits 10,000 and 9,999 give ln(1 + 1/e)."""
    x = mg.tensor([[10000.0, 9999.0]], requires_grad=True)
    loss = mg.cross_entropy(x, mg.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log1p(math.exp(-1.0)), rel=1e-6)
    assert x.grad.tolist()[0] == pytest.approx([-1 / (1 + math.e), 1 / (1 + math.e)], rel=1e-6)


@pytest.mark.parity
def test_kl_div_of_certain_targets_is_pytorch_s_but_for_the_slope_at_0(torch):
    arguments = np.array([-0.5, -1.0, -2.0]), np.array([0.0, 1.0, 0.4])
    (loss, torch_loss), (gradient, torch_gradient), (by_target, _) = compare_losses(
        torch, "kl_div", *arguments, reduction="sum"
    )
    np.testing.assert_allclose(loss, torch_loss, rtol=1e-12)
    np.testing.assert_allclose(gradient, torch_gradient, rtol=1e-12)
    np.testing.assert_allclose(by_target, [-INF, 2.0, math.log(0.4) + 3.0], rtol=1e-12)


def test_the_hinge_loss_is_that_of_a_support_vector_machine():
    scores = mg.tensor([2.0, 0.5, -0.25, 1.0], requires_grad=True)
    loss = mg.hinge_loss(scores, mg.tensor([1.0, -1.0, 1.0, 1.0]), reduction="none")
    assert loss.tolist() == [0.0, 1.5, 1.25, 0.0]
    loss.sum().backward()
    assert scores.grad.tolist() == [0.0, 1.0, -1.0, 0.0]


@pytest.mark.parity
def test_hinge_embedding_adds_both_terms_for_other_targets(torch):
    for actual, expected in compare_losses(
        torch, "hinge_embedding_loss", np.array([0.5, 1.0, 2.0]), np.array([0, 1, -1])
    ):
        np.testing.assert_array_equal(actual, expected)


def test_cross_entropy_saves_per_position_not_per_class():
    x = mg.tensor(np.zeros((4, 1000)), requires_grad=True)
    step = mg.cross_entropy(x, mg.tensor([1, 2, 3, 4])).grad_fn
    sizes = [step._static_args[name].numpy().size for name in ("at", "share", "top", "total")]
    assert sizes == [4, 4, 4, 4]
    assert [saved is x for saved in step._saved] == [False, True, False, False]


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: mg.cross_entropy(x, mg.tensor([1, -100, 3])),
        lambda x: mg.cross_entropy(x, mg.sigmoid(x)),
        lambda x: mg.binary_cross_entropy_with_logits(x, mg.sigmoid(x)),
    ],
    ids=["classes", "chances", "logits"],
)
def test_losses_have_third_derivatives(loss):
    def gradient(x):
        return mg.grad(loss(x), x, create_graph=True)[0]

    values = mg.tensor(np.linspace(-1.0, 2.0, 12).reshape(3, 4))
    assert mg.gradgradcheck(gradient, [values], fast_mode=True, **SECOND)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_unequal_shapes_broadcast_with_a_warning_as_in_pytorch(torch, name):
    column, row = np.array([[1.0], [2.0]]), np.array([[0.5, 3.5, 1.75]])
    with pytest.warns(UserWarning, match="different to the input size"):
        expected = getattr(torch.nn.functional, name)(torch.tensor(column), torch.tensor(row))
    with pytest.warns(UserWarning, match=rf"{name}: using a target size \(1, 3\) that is different") as caught:
        assert getattr(mg, name)(mg.tensor(column), mg.tensor(row)).item() == pytest.approx(expected.item(), rel=1e-12)
    assert caught[0].filename == __file__


F32, F64 = np.float32, np.float64
X, CLASSES = np.ones((3, 4)), np.array([0, 1, 2])
REFUSED = {
    "class too large": ("cross_entropy", X, np.array([0, 4, 1])),
    "class too large, maps": ("cross_entropy", np.ones((2, 3, 2)), np.array([[0, 3], [1, 1]])),
    "class below 0": ("cross_entropy", X, np.array([0, -1, 1])),
    "class below 0, not the one left out": ("nll_loss", X, np.array([-100, -1, 1])),
    "class too large, smoothed": ("cross_entropy", X, np.array([0, 4, 1]), {"label_smoothing": 0.1}),
    "no classes": ("cross_entropy", np.ones((2, 0)), np.array([0, 1])),
    "rows": ("cross_entropy", X, np.array([0, 1])),
    "columns": ("nll_loss", X, CLASSES[None]),
    "maps": ("cross_entropy", np.ones((3, 4, 2)), CLASSES),
    "chances": ("cross_entropy", X, np.ones((3, 5))),
    "int32": ("cross_entropy", X, CLASSES.astype(np.int32)),
    "bools": ("nll_loss", X, CLASSES > 0),
    "a number": ("cross_entropy", np.array(1.0), np.array(0)),
    "weights": ("cross_entropy", X, CLASSES, {"weight": np.ones(3)}),
    "weights of chances": ("cross_entropy", X, X, {"weight": np.ones(3)}),
    "type of weights": ("nll_loss", X, CLASSES, {"weight": np.ones(4, F32)}),
    "smoothing": ("cross_entropy", X, CLASSES, {"label_smoothing": 1.5}),
    "ignored chance": ("cross_entropy", X, X, {"ignore_index": 0}),
    "reduction": ("mse_loss", X, X, {"reduction": "batchmean"}),
    "chance above 1": ("binary_cross_entropy", 1.5 * X, X),
    "chance nan": ("binary_cross_entropy", NAN * X, X),
    "bce shapes": ("binary_cross_entropy", X, X[:1]),
    "bce types": ("binary_cross_entropy", X, X.astype(F32)),
    "bce weight": ("binary_cross_entropy", X, X, {"weight": np.ones(3)}),
    "logits shapes": ("binary_cross_entropy_with_logits", X, X[:1]),
    "logits of ints": ("binary_cross_entropy_with_logits", X, CLASSES),
    "pos_weight": ("binary_cross_entropy_with_logits", X, X, {"pos_weight": np.ones(3)}),
    "kl_div of ints": ("kl_div", X, np.ones((3, 4), int)),
    "mse shapes": ("mse_loss", X, np.ones((3, 3))),
    "mse weight": ("mse_loss", X, X, {"weight": np.ones(4)}),
    "delta": ("huber_loss", X, X, {"delta": 0.0}),
    "beta": ("smooth_l1_loss", X, X, {"beta": -1.0}),
    "ranking": ("margin_ranking_loss", X, X, np.ones(4)),
    "l1 of ints": ("l1_loss", CLASSES, CLASSES),
}


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@merge_cases
@pytest.mark.parametrize("case", REFUSED)
def test_what_pytorch_refuses_is_refused(torch, case):
    name, *inputs = REFUSED[case]
    options = inputs.pop() if isinstance(inputs[-1], dict) else {}

    def call(library, functions):
        named = {k: library.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        getattr(functions, name)(*[library.tensor(x) for x in inputs], **named)

    with pytest.raises((RuntimeError, IndexError, ValueError, NotImplementedError)):
        call(torch, torch.nn.functional)
    with pytest.raises((ArgumentError, DTypeError, ShapeError)):
        call(mg, mg)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("cross_entropy", "weight"),
        ("nll_loss", "weight"),
        ("binary_cross_entropy", "weight"),
        ("binary_cross_entropy_with_logits", "weight"),
        ("binary_cross_entropy_with_logits", "pos_weight"),
    ],
)
def test_weights_that_require_grad_raise_as_in_pytorch(torch, name, argument):
    for library, functions, kind in ((torch, torch.nn.functional, RuntimeError), (mg, mg, GraphError)):
        x, weight = library.ones(3, 4), library.ones(4, requires_grad=True)
        target = library.tensor([0, 1, 2]) if argument == "weight" and "binary" not in name else library.ones(3, 4)
        with pytest.raises(kind, match=r"gradient|differentiable"):
            getattr(functions, name)(x, target, **{argument: weight})
        with library.no_grad():
            getattr(functions, name)(x, target, **{argument: weight})


def test_out_of_bounds_target_is_reported():
    with pytest.raises(ShapeError) as error:
        mg.cross_entropy(mg.zeros(3, 5), mg.tensor([0, 5, -1]))
    assert str(error.value) == (
        "cross_entropy: target 5 is out of bounds for 5 classes.\n"
        "  Class indices go from 0 to 4; mark positions to ignore with ignore_index."
    )
    with pytest.raises(ShapeError, match="nll_loss: target -1 is out of bounds for 5 classes"):
        mg.nll_loss(mg.zeros(2, 5), mg.tensor([-100, -1]))


@pytest.mark.needs("a GPU")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: mg.cross_entropy(mg.zeros(1, 5), (x * 9).long()), "cross_entropy: target is out of bounds"),
        (
            lambda x: mg.binary_cross_entropy(x * 2, x),
            "binary_cross_entropy: all elements of input should be between 0 and 1",
        ),
    ],
)
def test_deferred_gpu_errors_raise_on_copy_to_host(call, message):
    loss = call(mg.ones(1))
    with pytest.raises((IndexError, ValueError), match=message):
        loss.tolist()


def test_mismatched_target_shows_both_valid_shapes():
    with pytest.raises(ShapeError) as error:
        mg.cross_entropy(mg.zeros(32, 10), mg.ones(32, 1))
    assert str(error.value) == (
        "cross_entropy: input (32, 10) has 10 classes, along dimension 1, but target has shape (32, 1).\n"
        "  Expected class indices of shape (32,) or class probabilities of shape (32, 10)."
    )


@pytest.mark.parametrize(
    ("old", "new"), [({"size_average": False}, "sum"), ({"reduce": False}, "none"), ({"size_average": True}, "mean")]
)
def test_deprecated_reduction_arguments_suggest_the_new_one(old, new):
    with pytest.raises(ArgumentError) as error:
        mg.mse_loss(mg.ones(2), mg.ones(2), **old)
    assert str(error.value) == (
        f'mse_loss: size_average and reduce are not supported; use reduction.\n  Write mse_loss(…, reduction="{new}").'
    )


def test_logits_passed_as_probabilities_suggest_with_logits():
    with pytest.raises(ArgumentError) as error:
        mg.binary_cross_entropy(mg.tensor([2.0]), mg.tensor([1.0]))
    assert str(error.value) == (
        "binary_cross_entropy: all elements of input should be between 0 and 1.\n"
        "  For logits, write binary_cross_entropy_with_logits(input, target)."
    )


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (
            lambda: mg.cross_entropy([1.0], mg.tensor(0)),
            DTypeError,
            r"cross_entropy: input must be a tensor, not a list\.",
        ),
        (
            lambda: mg.cross_entropy(mg.ones(2, 3), [0, 1]),
            DTypeError,
            r"cross_entropy: target must be a tensor, not a list\.",
        ),
        (lambda: mg.mse_loss(mg.ones(2), 1.0), DTypeError, r"mse_loss: target must be a tensor, not a float\."),
        (
            lambda: mg.cross_entropy(mg.tensor([1, 2]), mg.tensor(0)),
            DTypeError,
            r"cross_entropy: expected input to be a floating-point tensor, but got int64\.",
        ),
        (
            lambda: mg.cross_entropy(mg.ones(2, 3), mg.tensor([0, 1], dtype=mg.int32)),
            DTypeError,
            r"cross_entropy: expected target dtype to be int64 or uint8, but got int32.\n  Write target.to\(mg.int64\)",
        ),
        (
            lambda: mg.mse_loss(mg.ones(2), mg.ones(2), reduction="avg"),
            ArgumentError,
            r"mse_loss: expected reduction to be one of 'mean', 'sum', 'none', but got 'avg'\.",
        ),
        (
            lambda: mg.cross_entropy(mg.ones(2, 3), mg.tensor([0, 1]), mg.ones(2)),
            ShapeError,
            "one value for each class",
        ),
        (
            lambda: mg.hinge_loss(mg.tensor([1, 2]), mg.tensor([1, -1])),
            DTypeError,
            r"hinge_loss: expected input to be a floating-point tensor, but got int64\.",
        ),
    ],
    ids=["list", "list of classes", "number", "ints", "int32", "reduction", "weight", "hinge"],
)
def test_invalid_calls_raise(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()


def test_cross_entropy_has_its_second_derivative():
    scores = mg.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]], dtype=mg.float64, requires_grad=True)
    assert mg.gradgradcheck(lambda x: mg.functional.cross_entropy(x, mg.tensor([2, 0])), scores)
