"""What all examples share: their options, and the line in which each ends."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import minigrad as mg
from minigrad.backends.devices import DEVICES

BEGUN = time.perf_counter()


def options(doc: str | None, epochs: int, quick: int = 2, **more: str) -> argparse.Namespace:
    """The options of the command line: `epochs` unless it says otherwise, `quick` for --quick; `more` are paths.

    From then on tensors are made on the device that was named, and random numbers come from the seed.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=mg.get_default_device(), help=f"one of {', '.join(DEVICES)}")
    parser.add_argument("--seed", type=int, default=0, help="where all random numbers begin")
    parser.add_argument("--epochs", type=int, help=f"how often to go through the data: {epochs}, {quick} if quick")
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    for name, path in more.items():
        parser.add_argument(f"--{name}", type=Path, default=Path(path), help=f"where to put it: {path}")
    args = parser.parse_args()
    args.epochs = args.epochs or (quick if args.quick else epochs)
    mg.set_default_device(args.device)
    mg.manual_seed(args.seed)
    return args


def finish(args: argparse.Namespace, losses: Sequence[float] = (), **metrics: float) -> None:
    """Print the final line: which example, where, from which seed, its numbers, and the seconds since the start.

    Of the `losses` of all steps it gives the first, and the mean of the last tenth, between which training took place.
    """
    if losses:
        last = losses[-max(1, len(losses) // 10) :]
        metrics = {"first_loss": losses[0], "last_loss": sum(last) / len(last), **metrics}
    numbers = " ".join(f"{name}={number:.4g}" for name, number in metrics.items())
    seconds = time.perf_counter() - BEGUN
    print(f"{Path(sys.argv[0]).stem} device={args.device} seed={args.seed} {numbers} seconds={seconds:.0f}")
