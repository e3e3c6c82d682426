"""Solutions to the exercises of lesson 4."""

import minigrad as mg
from minigrad import lessons
from minigrad.data import iris


# 4.1 · The largest score becomes 0, and no power is larger than 1.
def softmax(scores):
    top = max(scores)
    powers = [mg.exp(score - top) for score in scores]
    return [power / sum(powers) for power in powers]


lessons.check("04.1", softmax)


# 4.2 · Each probability, and 1 less for the right class.
def score_gradient(p, target):
    return [p_k - 1 if k == target else p_k for k, p_k in enumerate(p)]


lessons.check("04.2", score_gradient)


# 4.3 · The loop of the lesson, with two inputs.
def cross_entropy(scores, target):
    top = max(score.data for score in scores)
    scores = [score - top for score in scores]
    first, *others = [score.exp() for score in scores]
    return sum(others, first).log() - scores[target]


flowers = iris()
petal_model = mg.nn.scalar.MLP([2, 4, 3], seed=0)
for _ in range(60):
    losses = [cross_entropy(petal_model(x[2:]), y) for x, y in zip(flowers.train_x, flowers.train_y, strict=True)]
    loss = sum(losses) / len(losses)
    petal_model.zero_grad()
    loss.backward()
    for parameter in petal_model.parameters():
        parameter.data -= 0.5 * parameter.grad

lessons.check("04.3", petal_model)
