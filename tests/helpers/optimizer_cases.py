"""Parameters and gradients for the tests of optimizers, and a custom optimizer."""

import numpy as np

import minigrad as mg

NAMES = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Lion", "Muon"]
OPTIONS = {"SGD": {"momentum": 0.9}, "Adam": {"amsgrad": True}, "RMSprop": {"momentum": 0.9, "centered": True}}


def make_optimizer(name, params, **options):
    return getattr(mg.optim, name)(params, **{**OPTIONS.get(name, {}), **options})


def leaf(*shape, seed=0, dtype="float32", device=None):
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    return mg.tensor(x, device=device, requires_grad=True)


def set_gradients(params, k):
    for i, p in enumerate(params):
        gradient = np.random.default_rng(100 * k + i).normal(size=p.shape)
        p.grad = mg.tensor(gradient.astype(p.dtype.name), device=p.device)


def run_steps(optimizer, params, first, last):
    for k in range(first, last):
        set_gradients(params, k)
        optimizer.step()


class Halving(mg.optim.Optimizer):
    """A custom optimizer with its own `step`, as in PyTorch, that calls the step of its base class."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.5})

    def update(self, p, grad, state, group):
        p.mul_(group["lr"])

    def step(self, closure=None):
        return super().step(closure)
