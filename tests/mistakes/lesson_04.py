"""Wrong answers to the exercises of lesson 4, with the expected explanations."""

import math

import minigrad as mg


def plain_softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def ieee_softmax(scores):
    powers = [mg.exp(score) for score in scores]
    return [mg.ops.div(power, sum(powers)) for power in powers]


def always(k):
    return lambda x: [float(i == k) for i in range(3)]


FUNCTIONS = ["04.1", "04.2"]  # whose answer is a function

MISTAKES = [
    ("04.1", plain_softmax, "Subtract the largest score from all of them first"),
    ("04.1", ieee_softmax, "softmax of [1e+03, 0]: such scores make exp too large"),
    ("04.1", lambda scores: [math.exp(score) for score in scores], "add up to 2, not 1. Divide each by their sum"),
    ("04.1", lambda scores: [-0.5, 1.5], "no probability is negative"),
    ("04.1", lambda scores: [1 / len(scores)] * len(scores), "the first probability = 0.5: the scores have no say"),
    ("04.1", lambda scores: [score / sum(scores) for score in scores], "softmax of [0, 0]: you divide by 0"),
    ("04.1", lambda scores: max(scores), "should be 2 numbers (p0, p1), and this is a float"),
    ("04.2", lambda p, target: list(p), "take 1 off there"),
    ("04.2", lambda p, target: [(k == target) - q for k, q in enumerate(p)], "for the right class lowers the loss"),
    ("04.2", lambda p, target: [q - 1 if k == target else 0.0 for k, q in enumerate(p)], "under the logarithm"),
    ("04.2", lambda p, target: p[target] - 1, "should be 3 numbers"),
    ("04.3", always(1), "10 of 30 test flowers are right, and it never answers setosa, virginica"),
    ("04.3", mg.nn.scalar.MLP([4, 8, 3], seed=0), "takes 4 inputs to 3 scores. Make it 2 (petals)"),
    ("04.3", lambda x: [x[0], 1.0, -x[0]], "test flowers are right"),
    ("04.3", 0.97, "this is a float, not a model"),
]  # fmt: skip
