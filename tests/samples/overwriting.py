"""Methods that write over a tensor what a function gives of it; the tensor is computed, so that it has a gradient."""

from samples import numbers, sample

x, y, shares = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, low=0.1, high=0.9)
square, row, column = numbers(3, 3), numbers(3, seed=1), numbers(3, seed=2)
many, more = numbers(2, 3, 4), numbers(2, 4, 3, seed=1)

SAMPLES = [
    sample("clamp_min_", lambda F, x: (x * 1.0).clamp_min_(0.5), x),
    sample("clamp_max_", lambda F, x: (x * 1.0).clamp_max_(0.5), x),
    sample("frac_", lambda F, x: (x * 1.0).frac_(), x),
    sample("round_, decimals", lambda F, x: (x * 1.0).round_(decimals=1), x, kinked=True),
    sample("exp2_", lambda F, x: (x * 1.0).exp2_(), x),
    sample("log10_", lambda F, x: (x * 1.0).log10_(), shares),
    sample("logit_", lambda F, x: (x * 1.0).logit_(0.2), shares, kinked=True),
    sample("hypot_", lambda F, x, y: (x * 1.0).hypot_(y), x, y),
    sample("nan_to_num_", lambda F, x: (x * 1.0).nan_to_num_(), x),
    sample("cumsum_", lambda F, x: (x * 1.0).cumsum_(1), x),
    sample("cumprod_", lambda F, x: (x * 1.0).cumprod_(dim=0), x),
    sample("addmm_", lambda F, c, a: c.clone().addmm_(a, c, beta=2, alpha=3), square, square),
    sample("addmv_", lambda F, c, a, b: c.clone().addmv_(a, b), row, square, column),
    sample("addr_", lambda F, c, a, b: c.clone().addr_(a, b), square, row, column),
    sample("addbmm_", lambda F, c, a, b: c.clone().addbmm_(a, b), square, many, more),
    sample("baddbmm_", lambda F, c, a, b: c.clone().baddbmm_(a, b), numbers(2, 3, 3), many, more),
    sample("cumsum_, twice", lambda F, x: ((x * 1.0).cumsum_(1) * x).cumsum_(0), x),
]
