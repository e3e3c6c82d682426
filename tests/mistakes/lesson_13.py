"""Wrong answers to the exercises of lesson 13, with the expected explanations."""

import math


def lookup(weights=(1 / 3, 1 / 3, 1 / 3, 0), found=4, slopes=(-1, 0, 1, 0)):
    return {"weights": list(weights), "found": found, "slopes": list(slopes)}


def softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def table(rule):
    return lambda length, back: [[rule(t - s, back) for s in range(length)] for t in range(length)]


def count_parameters(qkv=True, out=True, bias=1, norms=2, last=2, scores=True, heads=1, clocks=0):
    def count(n, w, blocks):
        attention = (3 * w * w + 3 * w * bias) * heads + (w * w + w * bias if out else 0)
        block = attention + 8 * w * w + 5 * w * bias + 2 * norms * w
        return n * w + blocks * block + last * w + (n * w + n * bias if scores else 0) + clocks * w

    return count


def draw(scores, temperature, k, times=False, low=False):
    factor = temperature if times else 1 / temperature
    best = sorted(range(len(scores)), key=lambda i: scores[i] if low else -scores[i])[:k]
    powers = [math.exp(score * factor) if i in best else 0.0 for i, score in enumerate(scores)]
    return [power / sum(powers) for power in powers]


def cut_after(scores, temperature, k):
    best = sorted(scores)[-k:]
    shares = softmax([score / temperature for score in scores])
    return [share if score in best else 0.0 for share, score in zip(shares, scores, strict=True)]


def zeros_for_scores(scores, temperature, k):
    best = sorted(scores)[-k:]
    return softmax([score / temperature if score in best else 0.0 for score in scores])


def in_place(scores, temperature, k):
    right = draw(scores, temperature, k)
    scores[:] = right
    return scores


FUNCTIONS = ["13.2", "13.3", "13.4"]  # whose answer is a function

MISTAKES = [
    ("13.1", lookup(softmax([0, 0, 0, 6 / math.sqrt(2)])), "the last key is hidden: its score is −∞"),
    ("13.1", lookup([0.25] * 4), "a hidden score is not 0 but −∞"),
    ("13.1", lookup([0.25, 0.25, 0.25, 0]), "they do not add up to 1. Hide the score before the softmax"),
    ("13.1", lookup([0.5, 0.25, 0.25, 0]), "the dot products of the query with the first three keys are all 0"),
    ("13.1", lookup([1, 1, 1, 0]), "they add up to 3, and should to 1"),
    ("13.1", lookup(found=12), "that is the sum of the values"),
    ("13.1", lookup(slopes=[1 / 3, 4 / 3, 7 / 3, 0]), "More weight for it means less for others"),
    ("13.1", lookup(slopes=[-3, 0, 3, 56]), "it has to be multiplied by the weight"),
    ("13.1", lookup(slopes=[1, 0, -1, 0]), "wrong sign. More weight for a value above 4"),
    ("13.1", lookup(slopes=[1 / 3, 1 / 3, 1 / 3, 0]), "these are the derivatives with respect to the values"),
    ("13.1", {"weights": [1, 0, 0, 0]}, "found, slopes is missing from the dict"),
    ("13.1", lookup(found=18), "the last value is in it"),
    ("13.1", 6, "the answer should be a dict"),
    ("13.2", table(lambda behind, back: 0 <= behind <= back), "is the wrong way round"),
    ("13.2", table(lambda behind, back: behind > 0 or behind < -back), "is mirrored"),
    ("13.2", table(lambda behind, back: abs(behind) > back), "lets a position look ahead"),
    ("13.2", table(lambda behind, back: behind < 0), "lets a position see all before it"),
    ("13.2", table(lambda behind, back: behind > back), "lets a position see all that comes after it"),
    ("13.2", table(lambda behind, back: behind < 0 or behind >= back), "one position too few"),
    ("13.2", table(lambda behind, back: behind < 0 or behind > back + 1), "one position too many"),
    ("13.2", table(lambda behind, back: behind <= 0 or behind > back), "hides each position from itself"),
    ("13.2", table(lambda behind, back: behind < 0 and behind > back), "Use `|`"),
    ("13.2", table(lambda behind, back: -math.inf if behind < 0 else 0.0), "has −∞ in it"),
    ("13.2", lambda length, back: [True] * length, "should have the shape (6, 6)"),
    ("13.3", count_parameters(bias=0), "the biases of the linear layers are missing"),
    ("13.3", count_parameters(norms=0, last=0), "the layer norms are missing"),
    ("13.3", count_parameters(norms=1, last=1), "a gain and a bias"),
    ("13.3", count_parameters(last=0), "the last norm is missing"),
    ("13.3", count_parameters(out=False), "that combines the heads is missing"),
    ("13.3", count_parameters(scores=False), "the linear layer that computes the scores is missing"),
    ("13.3", count_parameters(clocks=24), "the clocks are computed, not learned"),
    ("13.3", count_parameters(heads=2), "too many. Check the blocks by themselves"),
    ("13.3", lambda n, w, blocks: count_parameters()(n, w, 1), "that is one block"),
    ("13.4", lambda scores, t, k: draw(scores, t, k, times=True), "divide by the temperature, do not multiply"),
    ("13.4", lambda scores, t, k: draw(scores, 1.0, k), "the temperature is not in it"),
    ("13.4", lambda scores, t, k: draw(scores, t, len(scores)), "Leave only the best 2"),
    ("13.4", lambda scores, t, k: draw(scores, t, k, low=True), "Take the highest"),
    ("13.4", cut_after, "it does not add up to 1"),
    ("13.4", zeros_for_scores, "a score of 0 is no way to keep a letter out"),
    ("13.4", in_place, "overwrites the list of scores"),
    ("13.4", lambda scores, t, k: draw(scores, t, k)[:k], "should have the shape (4,)"),
]  # fmt: skip
