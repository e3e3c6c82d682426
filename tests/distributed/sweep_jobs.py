"""Training functions for the tests of sweeps, imported by the workers."""

import os
import signal
import time

import distributed_jobs as jobs
import minigrad as mg
from minigrad.training import fit


def bowl(lr, report, width=16, epochs=4):
    """Run gradient descent on x²: after k epochs the loss is (1 - 2 lr)^2k, plus a term that grows with `width`."""
    x = 1.0
    for _ in range(epochs):
        x -= lr * 2 * x
        report(val_loss=x * x + width / 1e6, x=x)


def net(lr, seed, report, folder=None, epochs=3):
    """Train a network, with a checkpoint if `folder` is given."""
    mg.manual_seed(seed)
    model, _, loss = jobs.momentum()
    optimizer = mg.optim.SGD(model.parameters(), lr=lr)
    checkpoint = None if folder is None else folder / "checkpoint"
    options = {"epochs": epochs, "progress": False, "seed": seed, "checkpoint": checkpoint, "callbacks": [report]}
    fit(model, jobs.loader(), optimizer, loss, validate=jobs.loader(), **options)


def slow(k, report, folder, log):
    """Log that it runs; the third trial takes long, unless it is resumed."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{k}\n")
    is_resumed = folder / "begun"
    again = is_resumed.exists()
    is_resumed.touch()
    report(score=k)
    if k == 3 and not again:
        time.sleep(600)
    report(score=k + 0.5)


def waits(k, report):
    """Report the process id, and block."""
    report(pid=os.getpid())
    time.sleep(600)


def mixed(outcome, report, folder=None):
    """End as `outcome` says; "once" dies after reporting its last epoch, and reports nothing when rerun."""
    print("this is", outcome)
    if outcome == "once" and (folder / "begun").exists():
        return
    if outcome == "other":
        report(loss=1.0)
    if outcome == "silent":
        return
    report(val_loss=1.0)
    if outcome == "raise":
        raise LookupError("no such thing\nand more")
    if outcome == "nan":
        report(val_loss=float("nan"))
    if outcome == "once":
        (folder / "begun").touch()
    if outcome in ("die", "once"):
        os.kill(os.getpid(), signal.SIGKILL)
    report(val_loss=0.5)
