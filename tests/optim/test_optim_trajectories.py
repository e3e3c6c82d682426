"""Each optimizer, with each of its options, follows PyTorch's trajectory for 100 steps; Lion and Muon their papers'."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.dispatch import get_kernels
from strategies import BFLOAT16, RELATIVE, SINGLE, TRAJECTORY
from tiers import choose_cases

STEPS = 100
COMMON = ({}, {"lr": 0.03}, {"weight_decay": 0.1}, {"maximize": True, "lr": 1e-3, "weight_decay": 0.1})
BETAS = {"betas": (0.8, 0.9), "eps": 1e-4}
OPTIONS = {
    "SGD": [
        *COMMON,
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True, "maximize": True, "lr": 1e-4},
    ],
    "Adam": [
        *COMMON,
        BETAS,
        {"amsgrad": True, "betas": (0.5, 0.6)},
        {"decoupled_weight_decay": True, "weight_decay": 1},
    ],
    "AdamW": [*COMMON, BETAS, {"amsgrad": True}, {"weight_decay": 0}],
    "Adamax": [*COMMON, BETAS],
    "NAdam": [*COMMON, BETAS, {"momentum_decay": 0.1}, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "RAdam": [*COMMON, BETAS, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "Adagrad": [*COMMON, {"lr_decay": 0.1}, {"initial_accumulator_value": 0.5, "eps": 1e-3}],
    "Adadelta": [*COMMON, {"rho": 0.5, "eps": 1e-3}],
    "RMSprop": [
        *COMMON,
        {"alpha": 0.5, "eps": 1e-3},
        {"momentum": 0.9},
        {"centered": True},
        {"centered": True, "momentum": 0.5, "weight_decay": 0.1},
    ],
}
CASES = [(name, options) for name, variants in OPTIONS.items() for options in variants]


def initial_params(seed=0):
    """Return a matrix, a transposed one, a vector, a scalar, and an empty tensor."""
    draw = np.random.default_rng(seed).normal
    return [draw(size=(5, 4)), draw(size=(3, 6)).T, draw(size=17), draw(size=()), draw(size=(0, 3))]


def gradient(x, k):
    """Return the gradient of a non-quadratic loss that changes with step k, the same for both libraries."""
    return np.tanh(x) + 0.3 * np.cos(3.0 * x + k) + 0.1 * x


def leaf_like(make, x, dtype):
    """Create a leaf with the memory layout of `x`, transposed if `x` is."""
    x = x.astype(dtype)
    leaf = make(np.ascontiguousarray(x.T)).T if x.ndim == 2 and x.flags.f_contiguous and x.size else make(x.copy())
    return leaf.detach().requires_grad_()


def run_steps(library, make, name, options, dtype="float64", steps=STEPS):
    """Return the parameters after `steps` steps, and the optimizer."""
    params = [leaf_like(make, x, dtype) for x in initial_params()]
    optimizer = getattr(library.optim, name)(params, **options)
    for k in range(steps):
        for p in params:
            p.grad = make(gradient(p.detach().numpy(), k).astype(dtype))
        optimizer.step()
    return [p.detach().numpy().copy() for p in params], optimizer


def run_minigrad(name, options, dtype="float64", steps=STEPS):
    return run_steps(mg, mg.tensor, name, options, dtype, steps)


def close(actual, expected, tolerance):
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        assert abs(a - b).max(initial=0.0) <= tolerance * max(1.0, abs(b).max(initial=0.0))


@pytest.mark.parity
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_trajectory_equals_pytorchs_for_100_steps(torch, name, options):
    actual, optimizer = run_minigrad(name, options)
    expected, twin = run_steps(torch, torch.tensor, name, options)
    tolerance = SINGLE if name == "NAdam" else TRAJECTORY
    close(actual, expected, tolerance)
    actual_state, expected_state = optimizer.state_dict()["state"], twin.state_dict()["state"]
    for k, state in expected_state.items():
        for one, x in state.items():
            if x is not None:
                value = actual_state[k][one]
                value = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
                close([value], [np.asarray(x)], tolerance)


@pytest.mark.parametrize(
    ("name", "options"), choose_cases([*CASES, ("Lion", {}), ("Lion", {"weight_decay": 0.1})], "float32", 24), ids=str
)
def test_float32_agrees_with_float64(name, options):
    expected, _ = run_minigrad(name, options, steps=10)
    actual, _ = run_minigrad(name, options, "float32", steps=10)
    close(actual, expected, 100 * RELATIVE["float32"])


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.5}, {"betas": (0.5, 0.6), "lr": 0.01, "maximize": True}])
def test_lion_follows_algorithm_2(options):
    """Chen et al. 2023, "Symbolic discovery of optimization algorithms"."""
    actual, _ = run_minigrad("Lion", options)
    (beta1, beta2), rate = options.get("betas", (0.9, 0.99)), options.get("lr", 1e-4)
    decay, sign = options.get("weight_decay", 0.0), -1 if options.get("maximize") else 1
    expected = initial_params()
    for i, theta in enumerate(expected):
        m = np.zeros_like(theta)
        for k in range(STEPS):
            g = sign * gradient(theta, k)
            c = beta1 * m + (1 - beta1) * g
            theta = theta - rate * (np.sign(c) + decay * theta)
            m = beta2 * m + (1 - beta2) * g
        expected[i] = theta
    close(actual, expected, TRAJECTORY)


def newton_schulz(g, steps=5, eps=1e-7):
    """Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks", with the coefficients there."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.T if g.shape[0] > g.shape[1] else g
    x = x / max(np.linalg.norm(x), eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if g.shape[0] > g.shape[1] else x


@pytest.mark.parametrize("options", [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw", "lr": 0.01}], ids=str)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_muon_follows_its_formula(shape, options):
    w = np.random.default_rng(0).normal(size=shape)
    p = mg.tensor(w, requires_grad=True)
    optimizer = mg.optim.Muon([p], **options)
    buffer, rate = np.zeros(shape), options.get("lr", 1e-3)
    like_adam = options.get("adjust_lr_fn") == "match_rms_adamw"
    scale = 0.2 * np.sqrt(max(shape)) if like_adam else np.sqrt(max(1, shape[0] / shape[1]))
    for k in range(STEPS):
        p.grad = mg.tensor(gradient(p.detach().numpy(), k))
        optimizer.step()
        g = gradient(w, k)
        buffer = 0.95 * buffer + 0.05 * g
        direction = 0.05 * g + 0.95 * buffer if options.get("nesterov", True) else buffer
        w = w * (1 - rate * 0.1) - rate * scale * newton_schulz(direction)
    close([p.detach().numpy()], [w], TRAJECTORY)


@pytest.mark.parity
def test_muon_equals_pytorchs_up_to_bfloat16_rounding(torch):
    w, grad = np.random.default_rng(0).normal(size=(2, 6, 4))
    results = []
    for library, make in ((mg, mg.tensor), (torch, torch.tensor)):
        p = make(w).requires_grad_()
        p.grad = make(grad)
        library.optim.Muon([p], lr=0.1).step()
        results.append(p.detach().numpy())
    close(results[:1], results[1:], BFLOAT16)


def test_newton_schulz_makes_singular_values_about_one():
    x = mg.tensor(np.random.default_rng(0).normal(size=(20, 30)))
    values = np.linalg.svd(mg.optim.muon.orthogonalize(x).numpy(), compute_uv=False)
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_a_rectified_step_of_radam_preserves_float32():
    arrays = [np.ones(3, np.float32) for _ in range(4)]
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "decoupled": False, "step": 8}
    for result in get_kernels("radam_step")["numpy"](*arrays, **options, weight_decay=0.0, maximize=False):
        assert result.dtype == np.float32
