"""Titles of compiled kernels and runs: what they compute, and never more than that."""

import pytest

from minigrad import OPS, ops
from minigrad_viz.trace.titles import OP_WORDS, UPDATE_WORDS, TitledCall, joint_name, title_of_kernel, title_of_run


def calls(*lines: str) -> list[TitledCall]:
    """Parse calls written as ``y = op a b``, all matrices except b, a vector."""
    titled_calls = []
    for line in lines:
        gives, _, op, *reads = line.split()
        titled_calls.append(TitledCall(op, tuple(reads), gives, tuple([1 if x == "b" else 2 for x in (*reads, gives)])))
    return titled_calls


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (["y = layer_norm x w b", "z = gelu y"], "layernorm + GELU"),
        (["y = linear x w b", "z = relu y"], "matmul + bias + ReLU"),
        (["y = linear x w", "z = relu y"], "matmul + ReLU"),
        (["y = cross_entropy x t"], "softmax + cross-entropy"),
        (["y = log_softmax x", "z = nll_loss y t"], "softmax + cross-entropy"),
        (["m = amax x", "d = sub x m", "e = exp d", "s = sum e", "p = div e s"], "softmax"),
        (["e = exp x", "s = sum e", "p = div e s"], "softmax"),
        (["s = sigmoid x", "y = mul s x"], "SiLU"),
        (["m = matmul x w", "y = add b m"], "matmul + bias"),
        (
            ["m = mean x", "d = sub x m", "q = square d", "v = mean q", "e = add v eps", "r = rsqrt e", "y = mul d r"],
            "layernorm",
        ),
        (
            ["m = mean x", "d = sub x m", "q = mul d d", "v = mean q", "e = add v eps", "r = pow e 0.5", "y = div d r"],
            "layernorm",
        ),
        (["d = sub x y", "q = pow d 2.0", "m = mean q"], "mean squared error"),
        (["d = sub x y", "q = pow d 3.0", "m = mean q"], "sub · pow · mean"),
        (["y = reshape x", "z = exp y", "u = sum z", "v = square u"], "exp · sum · square"),
        (["y = reshape x"], "reshape"),
        (["y = scaled_dot_product_attention q k v", "z = linear y w b"], "attention + matmul + bias"),
    ],
)
def test_kernel_is_titled_by_what_it_computes(lines, title):
    assert title_of_kernel(calls(*lines)) == title


@pytest.mark.parametrize(
    "lines",
    [
        ["e = exp x", "s = sum other", "p = div e s"],  # the sum of another value
        ["e = exp x", "f = exp other", "s = sum f", "p = div e s"],
        ["s = sigmoid other", "y = mul s x"],
        ["m = matmul x w", "y = add m residual"],  # as many dimensions as the product: not a bias
    ],
)
def test_other_operands_form_no_composition(lines):
    title = title_of_kernel(calls(*lines))
    assert title not in ("softmax", "SiLU", "matmul + bias")


def test_gradients_and_updates_are_distinguished_from_the_forward_pass():
    relu, linear = (
        TitledCall("relu_backward", ("g",), "a", gradient_of="relu"),
        TitledCall("matmul", ("a",), "b", gradient_of="linear"),
    )
    assert title_of_kernel([relu, linear, linear]) == "gradient of ReLU + matmul + bias"
    adam = TitledCall("adam_step", ("b",), "c", name="0.weight")
    assert title_of_kernel([adam]) == "Adam update of 0.weight"
    assert title_of_kernel([adam] * 4) == "Adam update of 4 parameters"
    assert title_of_kernel([adam._replace(decoupled=True)] * 4) == "AdamW update of 4 parameters"
    assert title_of_kernel([TitledCall("contiguous", (), 0), adam]) == "Adam update of 0.weight"
    assert title_of_kernel([linear, adam]) == "gradient of matmul + bias, Adam update of 0.weight"
    loss = [TitledCall("mse_loss", (), 0), TitledCall("mul", (), 1, gradient_of="mse_loss")]
    assert title_of_kernel(loss) == "mean squared error and gradient"


def test_long_title_omits_arithmetic_then_the_last_words():
    many = calls("a = linear x w b", "c = add a y", "d = gelu c", "e = layer_norm d")
    assert title_of_kernel(many) == "matmul + bias + GELU + layernorm"
    activations = calls(*(f"{op} = {op} x" for op in ("relu", "gelu", "silu", "elu", "selu")))
    assert title_of_kernel(activations) == "ReLU + GELU + SiLU + …"


def test_words_are_of_existing_operations_and_cover_every_update():
    assert set(OP_WORDS) <= set(OPS) | {"attention_backward"}
    assert set(UPDATE_WORDS) == set(ops.optim.__all__)


@pytest.mark.parametrize(
    ("names", "chained", "title"),
    [
        (["mul", "add", "tanh"] * 12, False, "12 × (mul, add, tanh)"),
        (["add"] * 39, True, "sum of 40 terms"),
        (["add"] * 39, False, "39 × add"),
        (["mul"] * 2, True, "product of 3 factors"),
        (["exp"], True, "exp"),
        (["mul", "mul", "add", "tanh", "exp", "sin", "cos"], False, "2 × mul, add, tanh, exp, …"),
        ([], False, "leaves"),
    ],
)
def test_run_is_titled_by_its_operations(names, chained, title):
    assert title_of_run(names, chained) == title


def test_numbered_blocks_share_their_name():
    assert joint_name("MLP₁", "MLP₁₂") == "MLP"
    assert joint_name("blocks.0", "blocks.3") == "blocks.0 … blocks.3"
    assert joint_name("blocks.0 · Block", "blocks.3 · Block") == "blocks.0 … blocks.3 · Block"
    assert joint_name("blocks.0 · Block", "blocks.3 · Other") == "blocks.0 · Block … blocks.3 · Other"
