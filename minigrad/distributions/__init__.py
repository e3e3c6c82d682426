"""Parameterisable probability distributions with sampling and log-densities, e.g. for policies and latent variables.

The interface and the results are those of `torch.distributions`, except that samples are drawn from the default
generator of `minigrad.random`. `batch_shape` is the shape of the parameters, `event_shape` that of a single sample.
Gradients flow to the parameters through `log_prob`, `entropy` and, where available, `rsample`; `sample` is not
differentiable.

>>> import minigrad as mg
>>> policy = Categorical(logits=mg.tensor([0.0, 0.0], requires_grad=True))
>>> action = policy.sample()
>>> loss = -policy.log_prob(action) * 2.0  # REINFORCE: Williams 1992
>>> round(loss.item(), 4)
1.3863
"""

from typing import Any

from minigrad.distributions.continuous import MultivariateNormal, Normal, Uniform
from minigrad.distributions.discrete import Bernoulli, Categorical
from minigrad.distributions.distribution import Distribution, Independent
from minigrad.distributions.kl import kl_divergence

__all__ = ["kl_divergence"]
__all__ += ["Bernoulli", "Categorical", "Distribution", "Independent", "MultivariateNormal", "Normal", "Uniform"]


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
