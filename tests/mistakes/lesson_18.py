"""Wrong answers to the exercises of lesson 18, with the expected explanations. Functions import PyTorch when called."""


def arrows(**changes):
    return {"h": 36, "product": -6, "grad": 30, "again": 60} | changes


def arrives(**changes):
    return {"A": True, "B": False, "C": True, "D": False, "E": False, "F": True, "G": False} | changes


def squares(v):
    return v.square().sum(1)


def where_after(v):
    import torch

    return torch.where(squares(v) == 0, 0.0, squares(v).sqrt())


def train(model, x, t, steps, frozen=False, forgets=True, total=False, kept=False, steady=False, fewer=0):
    import torch

    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.125), []
    for _ in range(steps - fewer):
        with torch.set_grad_enabled(not frozen):
            h = torch.relu(model.hidden(x))
        loss = (model.output(h) - t).square()
        loss = loss.sum() if total else loss.mean()
        if forgets:
            optimizer.zero_grad()
        loss.backward()
        if not steady:
            optimizer.step()
        losses.append(loss if kept else loss.item())
    return losses + losses[:fewer]


def trained(**faults):
    return lambda model, x, t, steps: train(model, x, t, steps, **faults)


FUNCTIONS = ["18.3", "18.4"]  # whose answer is a function

MISTAKES = [
    ("18.1", [36, -6, 30, 60], "the answer should be a dict"),
    ("18.1", {"h": 36}, "product, grad, again is missing from the dict"),
    ("18.1", arrows(h=12), "that is ∂loss/∂h = 2 · h"),
    ("18.1", arrows(h=18), "h · h has two edges from h"),
    ("18.1", arrows(h=30), "nothing flows from it to h"),
    ("18.1", arrows(product=0), "The other operand, w, gets its gradient"),
    ("18.1", arrows(product=6), "the product is subtracted"),
    ("18.1", arrows(product=-12), "h.detach() is a constant there"),
    ("18.1", arrows(product=-2), "w gets minus the other factor, h"),
    ("18.1", arrows(grad=24), "that is without detach"),
    ("18.1", arrows(grad=36), "both contributions arrive at w"),
    ("18.1", arrows(again=30), "backward accumulates"),
    ("18.1", arrows(again=0), "it does not cancel it"),
    ("18.2", [True] * 7, "the answer should be a dict"),
    ("18.2", arrives(A="yes"), "A should be True or False"),
    ("18.2", arrives(A=False), "A does get there: detach blocks one operand"),
    ("18.2", arrives(B=True), "w.data is w without its history"),
    ("18.2", arrives(C=False), "C does get there: the divisor is a constant"),
    ("18.2", arrives(D=True), "both units are silent"),
    ("18.2", arrives(E=True), "round is a staircase"),
    ("18.2", arrives(F=False), "where takes both from w"),
    ("18.2", arrives(G=True), "torch.tensor makes a new leaf of it"),
    ("18.3", 5.0, "this is a float, not a function"),
    ("18.3", lambda v: squares(v).sqrt(), "the gradient of the row of zeros is nan"),
    ("18.3", where_after, "The root of 0 is still computed"),
    ("18.3", lambda v: (squares(v) + 1e-6).sqrt(), "A constant that is added, or a clamp"),
    ("18.3", lambda v: squares(v).clamp(min=1e-6).sqrt(), "A constant that is added, or a clamp"),
    ("18.3", squares, "the root is missing"),
    ("18.3", lambda v: v.abs().sum(1), "Square, sum, take the root"),
    ("18.3", lambda v: v.square().sum(1, keepdim=True).sqrt(), "Is a keepdim left?"),
    ("18.3", lambda v: v.square().sum(0).sqrt(), "Sum over dim 1"),
    ("18.3", lambda v: squares(v).sqrt().tolist(), "and this is a list"),
    ("18.3", lambda v: squares(v).sqrt().detach(), "they need no gradient"),
    ("18.4", 1, "this is a int, not a function"),
    ("18.4", trained(frozen=True, forgets=False, kept=True), "the layer hidden never moves"),
    ("18.4", trained(frozen=True), "the layer hidden never moves"),
    ("18.4", trained(forgets=False), "the gradients of all steps add up"),
    ("18.4", trained(kept=True), "it keeps the graph of its step in memory"),
    ("18.4", trained(total=True), "Take the mean"),
    ("18.4", trained(fewer=1), "one step is missing"),
    ("18.4", trained(steady=True), "the parameters of the model have not changed"),
    ("18.4", lambda *a: train(*a)[:-1], "this is 11 of them"),
    ("18.4", lambda *a: [0.0 * loss for loss in train(*a)], "But the list of losses"),
]
