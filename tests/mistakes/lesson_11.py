"""Wrong answers to the exercises of lesson 11, with the expected explanations."""

import math

import minigrad as mg


def dead(keep):
    """Return the columns of a table for which `keep`, called with each as a list, is true."""
    return lambda z: [k for k, unit in enumerate(z.T.tolist()) if keep(unit)]


def stable(s, top, back=1.0):
    return (s - top).exp().sum(1).log() + back * s.amax(1)


def train(w, x, t, steps, apart=False, by_hand=False, forget=True, late=False, rate=0.5, total=False, once=False):
    losses, loss = [], None
    for _ in range(steps):
        order = mg.randperm(len(x))
        scores = x[order] @ w
        answers = t if apart else t[order]
        p = scores.exp() / scores.exp().sum(1, keepdim=True) if by_hand else scores.softmax(1)
        loss = -(p if by_hand else p.clamp(min=1e-300))[mg.arange(len(t)), answers].log()
        loss = loss.sum() if total else loss.mean()
        if forget:
            w.grad = None
        loss.backward()
        if late:
            w.grad = mg.zeros_like(w)
        with mg.no_grad():
            w -= rate * w.grad
        losses.append(loss.item())
        if once:
            return losses * steps
    return losses


def trained(**faults):
    return lambda w, x, t, steps: train(w, x, t, steps, **faults)


FUNCTIONS = ["11.1", "11.2", "11.3", "11.4"]  # whose answer is a function

MISTAKES = [
    ("11.1", lambda n, a: math.sqrt(3 / n), "that is the bound without any activation"),
    ("11.1", lambda n, a: math.sqrt(6 / n), "Values below 0 are multiplied by a"),
    ("11.1", lambda n, a: math.sqrt(3 / ((1 + a * a) * n)), "the half is missing"),
    ("11.1", lambda n, a: math.sqrt(2 / ((1 + a * a) * n)), "b is √3 times that"),
    ("11.1", lambda n, a: 6 / ((1 + a * a) * n), "that is b². Take the root"),
    ("11.1", lambda n, a: math.sqrt(6 / ((1 + a) * n)), "the squares are multiplied by a²"),
    ("11.1", lambda n, a: math.sqrt(3 * (1 + a * a) / (2 * n)), "upside down"),
    ("11.1", lambda n, a: 1 / math.sqrt(n), "that is the default of nn.Linear"),
    ("11.1", 0.125, "this is a float, not a function"),
    ("11.2", dead(lambda unit: any(z <= 0 for z in unit)), "silent for *some* sample"),
    ("11.2", dead(lambda unit: any(z > 0 for z in unit)), "the ones that are alive"),
    ("11.2", dead(lambda unit: all(z < 0 for z in unit)), "a sum of exactly 0 passes no gradient either"),
    ("11.2", dead(lambda unit: sum(unit) <= 0), "may be below 0 while the unit fires"),
    ("11.2", lambda z: dead(lambda unit: all(x <= 0 for x in unit))(z.T), "A unit is a column"),
    ("11.2", lambda z: (~(z > 0).any(0)).sum().item(), "that is how many are dead"),
    ("11.2", lambda z: ~(z > 0).any(0), "a list of True and False"),
    ("11.2", lambda z: [k + 1 for k in dead(lambda unit: all(x <= 0 for x in unit))(z)], "counted from 0"),
    ("11.2", lambda z: [], "[], and it should be [1, 3]"),
    ("11.3", lambda s: s.exp().sum(1).log(), "for scores of 1000, row 0 is inf: a power of e is infinite"),
    ("11.3", lambda s: s.clamp(max=700).exp().sum(1).log(), "clipped scores are other scores"),
    ("11.3", lambda s: (s - s.max()).exp().sum(1).log() + s.max(), "Each row needs its *own* largest score"),
    ("11.3", lambda s: stable(s, s.amax(1, keepdim=True), 0.0), "Add it again, each row its own"),
    ("11.3", lambda s: stable(s, s.amax(1, keepdim=True), -1.0), "After log it is added, not subtracted"),
    ("11.3", lambda s: (s - s.amax(1, keepdim=True)).exp().sum(1).log() + s.amax(1, keepdim=True), "broadcast to a"),
    ("11.3", lambda s: mg.functional.logsumexp(s, 1, keepdim=True), "still has its keepdim"),
    ("11.3", lambda s: mg.functional.logsumexp(s, 0), "Sum over the classes, along dim 1"),
    ("11.3", lambda s: mg.functional.logsumexp(s.flatten(), 0), "one scalar for the entire table"),
    ("11.3", lambda s: s.amax(1), "that is the largest score alone"),
    ("11.3", lambda s: mg.functional.logsumexp(s.detach(), 1), "they do not require grad"),
    ("11.4", trained(apart=True, by_hand=True, forget=False), "still have its own label"),
    ("11.4", trained(apart=True), "still have its own label"),
    ("11.4", trained(forget=False), "the gradients of all steps add up"),
    ("11.4", trained(by_hand=True, forget=False), "the gradients of all steps add up"),
    ("11.4", trained(by_hand=True), "it learns now. But if the values in x are 1000 times as large"),
    ("11.4", trained(late=True), "w has not changed"),
    ("11.4", trained(rate=-0.5), "the step goes uphill"),
    ("11.4", trained(total=True), "the gradient of the sum over the samples"),
    ("11.4", trained(once=True), "there was one step only"),
    ("11.4", lambda w, x, t, steps: train(w, x, t, steps)[-1], "return the list of the losses"),
    ("11.4", lambda w, x, t, steps: train(w, x, t, steps)[:3], "this is 3 of them"),
]  # fmt: skip
