"""Distributions: log-probabilities, entropies, divergences and gradients equal PyTorch's; moments of samples."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import distributions as D
from minigrad.core.errors import ArgumentError
from parity import assert_close
from strategies import PARITY


def covariance(x, c):
    """Return a positive definite 2x2 matrix for each row of `c`."""
    half = c[:, :2, None] * c[:, None, 1:3]
    return half @ half.mT + (x[:, :2, None] * x[:, None, :2]) * 0.1 + c.new_tensor([[1.0, 0.0], [0.0, 1.0]])


ROWS = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
PROBABILITIES = np.random.default_rng(1).uniform(0.05, 0.95, size=(3, 4)).astype("float32")
DISTRIBUTIONS = {
    "Normal": lambda D, x, c: D.Normal(x, c),
    "Normal, one scale": lambda D, x, c: D.Normal(x, 0.5),
    "Uniform": lambda D, x, c: D.Uniform(x - 4.0, x + c + 4.0),
    "Categorical, logits": lambda D, x, c: D.Categorical(logits=x),
    "Categorical, probs": lambda D, x, c: D.Categorical(probs=c),
    "Bernoulli, logits": lambda D, x, c: D.Bernoulli(logits=x),
    "Bernoulli, probs": lambda D, x, c: D.Bernoulli(c),
    "MultivariateNormal": lambda D, x, c: D.MultivariateNormal(x[:, :2], covariance(x, c)),
    "MultivariateNormal, precision": lambda D, x, c: D.MultivariateNormal(x[0, :2], precision_matrix=covariance(x, c)),
    "MultivariateNormal, factor": lambda D, x, c: D.MultivariateNormal(
        x[:, :2], scale_tril=c.new_tensor([[2.0, 0.0], [1.0, 0.5]]) * c[0, 0]
    ),
    "Independent": lambda D, x, c: D.Independent(D.Normal(x, c), 1),
}
SAMPLED = pytest.mark.parametrize("make", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)


def value_of(name, library):
    if "Categorical" in name:
        return library.tensor(np.array([1, 3, 0]))
    if "Multi" in name:
        return library.tensor(ROWS[::-1, 1:3].copy())
    return library.tensor((PROBABILITIES > 0.5).astype("float32") if "Bernoulli" in name else ROWS[::-1].copy() * 0.3)


@pytest.mark.parity
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_log_probs_entropies_and_gradients_match_pytorch(torch, name):
    results = []
    for library, distributions in ((mg, D), (torch, torch.distributions)):
        x, c = (library.tensor(a).requires_grad_() for a in (ROWS, PROBABILITIES))
        one = DISTRIBUTIONS[name](distributions, x, c)
        logs, entropy = one.log_prob(value_of(name, library)), one.entropy()
        (logs.sum() + 0.5 * entropy.sum()).backward()
        assert entropy.shape == logs.shape
        moments = [] if "Categorical" in name else [one.mean, one.variance, one.stddev]
        parameters = [one.probs, one.logits] if hasattr(one, "probs") else []
        parameters += [one.covariance_matrix, one.precision_matrix] if "Multi" in name else []
        grads = [library.zeros(3, 4) if p.grad is None else p.grad for p in (x, c)]
        shapes = tuple(one.batch_shape), tuple(one.event_shape)
        results.append((shapes, [t.detach().numpy() for t in (logs, entropy, *moments, *parameters, *grads)]))
    assert results[0][0] == results[1][0]
    for actual, expected in zip(results[0][1], results[1][1], strict=True):
        assert_close(actual, expected, PARITY["float32"])


@pytest.mark.parity
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_divergences_and_gradients_match_pytorch(torch, name):
    results = []
    for library, distributions in ((mg, D), (torch, torch.distributions)):
        x, c = (library.tensor(a).requires_grad_() for a in (ROWS, PROBABILITIES))
        p = DISTRIBUTIONS[name](distributions, x, c)
        q = (
            distributions.Uniform(x - 5.0, x + c + 6.0)
            if name == "Uniform"
            else DISTRIBUTIONS[name](distributions, x * 0.5 + 0.1, c * 0.5)
        )
        kl = distributions.kl_divergence(p, q)
        kl.sum().backward()
        results.append([kl.detach().numpy(), *[t.grad.numpy() for t in (x, c) if t.grad is not None]])
    for actual, expected in zip(*results, strict=True):
        assert_close(actual, expected, PARITY["float32"])


@SAMPLED
def test_samples_have_shapes_and_no_gradient(make):
    one = make(D, mg.tensor(ROWS).requires_grad_(), mg.tensor(PROBABILITIES).requires_grad_())
    for sizes in ((), (5,), (2, 3), 4):
        drawn = one.sample(sizes)
        many = (sizes,) if isinstance(sizes, int) else sizes
        assert drawn.shape == (*many, *one.batch_shape, *one.event_shape)
        assert not drawn.requires_grad
    assert one.log_prob(one.sample((7,))).shape == (7, *one.batch_shape)
    if one.has_rsample:
        assert one.rsample().requires_grad
    else:
        with pytest.raises(
            NotImplementedError, match=r"its samples cannot be reparameterised\.\n  Use sample\(\) and log_prob\(\)"
        ):
            one.rsample()


@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if "Categorical" not in name])
def test_sample_moments_match(name):
    mg.manual_seed(3)
    one = DISTRIBUTIONS[name](D, mg.tensor(ROWS), mg.tensor(PROBABILITIES))
    drawn = one.sample((4000,))
    far = (drawn.mean(0) - one.mean).abs() / (one.stddev / math.sqrt(4000))
    assert far.max().item() < 4.5
    assert ((drawn.var(0) - one.variance).abs() / one.variance).max().item() < 0.15


def test_class_frequencies_match_probabilities():
    mg.manual_seed(5)
    one = D.Categorical(logits=mg.tensor(ROWS))
    drawn = one.sample((4000,))
    for k in range(4):
        share, chance = (drawn == k).to(mg.float32).mean(0), one.probs[:, k]
        assert ((share - chance).abs() / (chance * (1 - chance) / 4000) ** 0.5).max().item() < 4.5


def test_normal_samples_are_reparameterised():
    loc, scale = mg.zeros(3, requires_grad=True), mg.ones(3, requires_grad=True)
    mg.manual_seed(1)
    drawn = D.Normal(loc, scale).rsample()
    drawn.sum().backward()
    assert loc.grad.tolist() == [1.0, 1.0, 1.0]
    assert scale.grad.tolist() == drawn.tolist()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: D.Normal(0.0, mg.tensor([1.0, 0.0])),
            "Normal: expected parameter scale to satisfy the constraint scale > 0",
        ),
        (lambda: D.Uniform(1.0, 1.0), "Uniform is not defined when low >= high"),
        (
            lambda: D.Categorical(mg.ones(2), logits=mg.ones(2)),
            "Categorical: either probs or logits must be specified, but not both",
        ),
        (
            lambda: D.Bernoulli(mg.tensor([1.5])),
            "Bernoulli: expected parameter probs to satisfy the constraint 0 <= probs <= 1",
        ),
        (lambda: D.MultivariateNormal(mg.zeros(2)), "MultivariateNormal: exactly one of covariance_matrix"),
        (lambda: D.MultivariateNormal(mg.zeros(2), mg.eye(3)), r"loc of shape \(2,\) does not match a matrix of shape"),
        (
            lambda: D.MultivariateNormal(mg.zeros(2), scale_tril=-mg.eye(2)),
            "expected parameter scale_tril to satisfy the constraint of a positive diagonal",
        ),
        (
            lambda: D.Independent(D.Normal(mg.zeros(2), 1.0), 2),
            "Independent: expected reinterpreted_batch_ndims <= len",
        ),
    ],
)
def test_invalid_parameters_raise(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def test_unimplemented_divergences_raise_with_advice():
    with pytest.raises(
        NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Normal and q type Uniform"
    ):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Uniform(0.0, 1.0))
    whole = D.Normal(mg.zeros(2, 3), 1.0)
    with pytest.raises(
        NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Independent and q type Independent"
    ):
        D.kl_divergence(D.Independent(whole, 1), D.Independent(whole, 2))


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["Categorical", "Bernoulli", "Uniform"])
def test_divergence_is_infinite_outside_the_support(torch, kind):
    ends = np.array([0.0, 0.25, 0.5, 1.0], dtype="float32")
    first, second = (x.reshape(-1) for x in np.meshgrid(ends, ends))
    results = []
    for library, distributions in ((mg, D), (torch, torch.distributions)):
        families = {
            "Categorical": lambda a, distributions=distributions, library=library: distributions.Categorical(
                library.stack([a, 1 - a], -1)
            ),
            "Bernoulli": lambda a, distributions=distributions: distributions.Bernoulli(a),
            "Uniform": lambda a, distributions=distributions: distributions.Uniform(a, 3 * a + 0.5),
        }[kind]
        parameters = [library.tensor(x.copy()) for x in (first, second)]
        results.append(distributions.kl_divergence(*map(families, parameters)).numpy())
    assert np.isinf(results[0]).sum() in (6, 12)
    assert_close(*results, PARITY["float32"])


def test_modes_are_most_probable():
    assert D.Categorical(mg.tensor([[0.2, 0.7, 0.1], [0.5, 0.1, 0.4]])).mode.tolist() == [1, 0]
    assert str(D.Bernoulli(mg.tensor([0.2, 0.5, 0.7])).mode.tolist()) == "[0.0, nan, 1.0]"


def test_a_step_with_a_distribution_can_be_jitted():
    def step(x, scale):
        code = D.Normal(x, scale)
        return (D.kl_divergence(code, D.Normal(0.0, 1.0)) + code.rsample()).sum()

    results = []
    for function in (step, mg.jit(step)):
        mg.manual_seed(2)
        results.append([function(mg.tensor([k, 1.0]), mg.tensor([1.0, 2.0])).item() for k in range(3)])
    assert results[0] == results[1]
