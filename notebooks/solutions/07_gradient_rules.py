"""Solutions to the exercises of lesson 7."""

from minigrad import lessons


# 7.1 · Each of the n elements has the derivative 1/n, so each gets g / n.
def mean_rule(g, a):
    return (g / a.numel()).expand(a.shape)


lessons.check("07.1", mean_rule)


# 7.2 · y[i, j] = sum over k of x[i, k] w[j, k], plus b[j]. For one w[j, k]: the sum over i of g[i, j] x[i, k].
def layer_rule(g, x, w):
    return g @ w, g.T @ x, g.sum(0)


lessons.check("07.2", layer_rule)


# 7.3 · Along the first factor g[n] times the sum; along the sum, which is in every result, all of g * x.
def weighted_rule(g, x):
    return g * x.sum() + (g * x).sum()


lessons.check("07.3", weighted_rule)


# 7.4 · Along a itself g; along the mean, to each element of the row, minus the mean of g over that row.
def centering_rule(g, a):
    return g - g.mean(1, keepdim=True)


lessons.check("07.4", centering_rule)
