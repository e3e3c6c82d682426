"""Functions that are a line or two of others."""

import numpy as np

from samples import ints, numbers, sample

x, y, shares = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, low=0.1, high=0.9)
gaps = np.where(shares > 0.6, np.nan, x)
rising = np.sort(numbers(2, 5))

SAMPLES = [
    sample("aminmax", lambda F, x: tuple(F.aminmax(x)), x),
    sample("aminmax, dim", lambda F, x: tuple(x.aminmax(dim=0, keepdim=True)), x),
    sample("exp2", lambda F, x: F.exp2(x), x),
    sample("log10", lambda F, x: x.log10(), shares),
    sample("logit", lambda F, x: F.logit(x), shares),
    sample("logit, eps", lambda F, x: F.logit(x, eps=0.2), shares, kinked=True),
    sample("logaddexp", lambda F, x, y: F.logaddexp(x, y), x, numbers(4, seed=1)),
    sample("hypot", lambda F, x, y: F.hypot(x, y), x, y),
    sample("nansum", lambda F, x: F.nansum(x, 1), gaps, kinked=True),
    sample("nanmean", lambda F, x: x.nanmean(), gaps, kinked=True),
    sample("atleast_1d", lambda F, x: F.atleast_1d(x.sum()), x),
    sample("atleast_2d", lambda F, x, y: F.atleast_2d(x.sum(), x, y[0]), x, y),
    sample("concatenate", lambda F, x, y: F.concatenate([x, y], dim=-1), x, y),
    sample("column_stack", lambda F, x, y: F.column_stack((x, y)), numbers(3), numbers(3, 2)),
    sample("dstack", lambda F, x, y: F.dstack((x, y)), x, y),
    sample("kron", lambda F, x, y: F.kron(x, y), numbers(2, 3), numbers(3, 2)),
    sample("kron of a row and more", lambda F, x, y: F.kron(x, y), numbers(3), numbers(2, 2, 2),
           differs={"transposed": "PyTorch refuses to view it"}),
    *[sample(f"rot90, {k}", lambda F, x, k=k: F.rot90(x, k, [1, 0]), x) for k in (-1, 0, 2, 5)],
    sample("searchsorted", lambda F, r, v: F.searchsorted(r, v), rising, numbers(2, 3),
           differs={"uint8": "without their signs they do not rise"}),
    sample("searchsorted, right", lambda F, n: F.searchsorted(n.new_tensor([1, 2, 2, 3]), n, right=True),
           ints(5, below=5)),
    sample("searchsorted, sorter", lambda F, r, v: F.searchsorted(-r, v, sorter=(-r).argsort()), rising, numbers(2, 3),
           differs={"uint8": "without their signs they do not rise"}),
    sample("bucketize", lambda F, n: F.bucketize(n, n.new_tensor([1, 2, 3])), ints(2, 3, below=5)),
    sample("fill_diagonal_", lambda F, x: (x * 1.0).fill_diagonal_(2.5), numbers(3, 4)),
    sample("tril_", lambda F, x: (x * 1.0).tril_(-1), x),
    sample("triu_", lambda F, x: (x * 1.0).triu_(1), x),
]  # fmt: skip
