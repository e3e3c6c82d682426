"""Test cases for every learning-rate scheduler, and the rates that it sets in either library."""

import pytest

from strategies import PYTORCH

STEPS = 100


def decay(e):
    return 0.95**e


CASES = [
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 30, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [40, 10, 10, 80], "gamma": 0.3}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 20}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 0.01, "end_factor": 0.5, "total_iters": 50}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 100}),
    ("CosineAnnealingLR", {"T_max": 13, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 9}),
    ("CosineAnnealingWarmRestarts", {"T_0": 5, "T_mult": 2, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 101}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 100}),  # as training loops have it, which step after the optimizer
    ("OneCycleLR", {"max_lr": [0.5, 0.7], "total_steps": 120, "pct_start": 0.5, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 0.5, "epochs": 11, "steps_per_epoch": 10, "three_phase": True, "base_momentum": 0.5}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 101, "cycle_momentum": False}),
    ("LambdaLR", {"lr_lambda": decay}),
    ("LambdaLR", {"lr_lambda": [decay, lambda e: 1 / (1 + e)]}),
    ("MultiplicativeLR", {"lr_lambda": [lambda e: 0.97, lambda e: 1 - 1 / (e + 2)]}),
    ("PolynomialLR", {}),
    ("PolynomialLR", {"total_iters": 60, "power": 0.9}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": [0.1, 0.2], "step_size_up": 7}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 5, "step_size_down": 11, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.0, "max_lr": 0.1, "step_size_up": 9, "mode": "exp_range", "gamma": 0.98}),
    ("CyclicLR", {"base_lr": 0.0, "max_lr": 0.1, "step_size_up": 9, "scale_fn": lambda cycle: 1 / cycle}),
]
ALL = {f"{name} {k}": (name, options) for k, (name, options) in enumerate(CASES)}
COMBINED = {
    "warm-up, then a cosine": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=10), s.CosineAnnealingLR(o, T_max=90)], [10]
    ),
    "three in sequence": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9), s.StepLR(o, 10)], [20, 50]
    ),
    "restarts after a warm-up": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=8), s.CosineAnnealingWarmRestarts(o, T_0=11)], [8]
    ),
    "two at once": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.9)]),
    "two waves at once": lambda s, o: s.ChainedScheduler(
        [s.CosineAnnealingLR(o, T_max=40, eta_min=0.01), s.StepLR(o, 30), s.LinearLR(o)]
    ),
}


def optimizer_of(library, kind="SGD"):
    """Return an optimizer with two groups of different learning rates, stepped without gradients."""
    params = [library.ones(2).requires_grad_() for _ in range(2)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.02}]
    options = {"lr": 0.1, "momentum": 0.9} if kind == "SGD" else {"lr": 0.1}
    return getattr(library.optim, kind)(groups, **options)


def record_rates(library, make, kind="SGD", steps=STEPS):
    """Return the learning rates and momenta of all groups before each step, and the scheduler's `get_last_lr()`."""
    optimizer = optimizer_of(library, kind)
    scheduler = make(library.optim.lr_scheduler, optimizer)
    rows = []
    for _ in range(steps):
        momenta = [group.get("momentum", group.get("betas", (0.0,))[0]) for group in optimizer.param_groups]
        rows.append([*(group["lr"] for group in optimizer.param_groups), *momenta, *scheduler.get_last_lr()])
        optimizer.step()
        scheduler.step()
    return rows


def assert_close(actual, expected):
    for k, (row, expected_row) in enumerate(zip(actual, expected, strict=True)):
        assert row == pytest.approx(expected_row, rel=PYTORCH, abs=PYTORCH), f"step {k}"
