"""Solutions to the exercises of lesson 18, which need PyTorch."""

import torch

from minigrad import lessons

# 18.1 · Through h: 2 · 6, times 3. Through the product, where h is a constant: -6. Twice the sum after a second pass.
arrows = {"h": 36, "product": -6, "grad": 30, "again": 60}
lessons.check("18.1", arrows)

# 18.2 · B and G lose the history; D and E multiply by 0.
arrives = {"A": True, "B": False, "C": True, "D": False, "E": False, "F": True, "G": False}
lessons.check("18.2", arrives)


# 18.3 · The root gets a 1 in place of each 0, and its result is dropped there.
def lengths(v):
    squares = v.square().sum(1)
    is_zero = squares == 0
    return torch.where(is_zero, 0.0, torch.where(is_zero, 1.0, squares).sqrt())


lessons.check("18.3", lengths)


# 18.4 · With gradients for both layers, reset in each step, and floats in the list.
def repaired(model, x, t, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    losses = []
    for _ in range(steps):
        loss = (model(x) - t).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


lessons.check("18.4", repaired)
