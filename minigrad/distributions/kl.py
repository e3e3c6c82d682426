"""Kullback-Leibler divergences between distributions."""

from __future__ import annotations

import math

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.distributions.continuous import MultivariateNormal, Normal, Uniform
from minigrad.distributions.discrete import Bernoulli, Categorical
from minigrad.distributions.distribution import Distribution, Independent
from minigrad.linalg import solve_triangular

__all__ = ["kl_divergence"]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the divergence KL(p || q), the expectation under `p` of ``p.log_prob - q.log_prob``.

    It is inf where `q` does not cover the support of `p`. Both distributions must be Normal, MultivariateNormal,
    Uniform, Categorical, Bernoulli, or Independent of these with equal event dimensions; otherwise
    NotImplementedError is raised.
    Kullback, Leibler 1951.

    >>> import minigrad as mg
    >>> kl_divergence(Normal(mg.tensor(1.0), 1.0), Normal(0.0, 1.0)).item()
    0.5
    """
    if isinstance(p, Independent) and isinstance(q, Independent) and len(p.event_shape) == len(q.event_shape):
        return p._sum_rightmost(kl_divergence(p.base_dist, q.base_dist))
    result: Tensor
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio, z = p.scale / q.scale, (p.loc - q.loc) / q.scale
        result = 0.5 * (ratio * ratio + z * z - 1) - ratio.log()
    elif isinstance(p, MultivariateNormal) and isinstance(q, MultivariateNormal):
        scale_ratio = solve_triangular(q.scale_tril, p.scale_tril, upper=False)
        z = solve_triangular(q.scale_tril, (p.loc - q.loc)[..., None], upper=False)
        quadratic = (scale_ratio * scale_ratio).sum((-2, -1)) + (z * z).sum((-2, -1)) - p.event_shape[0]
        result = q._log_det() - p._log_det() + 0.5 * quadratic
    elif isinstance(p, Categorical) and isinstance(q, Categorical):
        terms = F.where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
        result = F.where(p.probs == 0, 0.0, terms).sum(-1)
    elif isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        is_infinite = ((q.probs == 0) & (p.probs > 0)) | ((q.probs == 1) & (p.probs < 1))
        logits, probs = F.broadcast_tensors(q.logits, p.probs)
        cross = F.binary_cross_entropy_with_logits(logits, probs, reduction="none")
        result = F.where(is_infinite, math.inf, cross - p.entropy())
    elif isinstance(p, Uniform) and isinstance(q, Uniform):
        outside = (p.low < q.low) | (p.high > q.high)
        result = F.where(outside, math.inf, ((q.high - q.low) / (p.high - p.low)).log())
    else:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}.\n"
            "  Estimate it: x = p.rsample((1000,)), then (p.log_prob(x) - q.log_prob(x)).mean(0)."
        )
    return result
