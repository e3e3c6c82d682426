"""Shared code of the examples: command-line options and the final summary line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import minigrad as mg
from minigrad.backends.devices import DEVICES

START_TIME = time.perf_counter()


def options(doc: str | None, epochs: int, quick: int = 2, **output_paths: str) -> argparse.Namespace:
    """Parse the command line, set the default device, and seed the default generator.

    `epochs` is the default number of epochs, `quick` the number with --quick; `output_paths` are default output paths.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=mg.get_default_device(), help=f"one of {', '.join(DEVICES)}")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--epochs", type=int, help=f"number of epochs (default: {epochs}; {quick} with --quick)")
    parser.add_argument("--quick", action="store_true", help="smoke test: only check that it runs")
    for name, path in output_paths.items():
        parser.add_argument(f"--{name}", type=Path, default=Path(path), help=f"output path (default: {path})")
    args = parser.parse_args()
    args.epochs = args.epochs or (quick if args.quick else epochs)
    mg.set_default_device(args.device)
    mg.manual_seed(args.seed)
    return args


def finish(args: argparse.Namespace, losses: Sequence[float] = (), **metrics: float) -> None:
    """Print the summary line: the example, device, seed, metrics and elapsed seconds.

    Of the `losses` of all steps, it prints the first one and the mean of the last tenth.
    """
    if losses:
        last_losses = losses[-max(1, len(losses) // 10) :]
        metrics = {"first_loss": losses[0], "last_loss": sum(last_losses) / len(last_losses), **metrics}
    summary = " ".join(f"{name}={value:.4g}" for name, value in metrics.items())
    seconds = time.perf_counter() - START_TIME
    print(f"{Path(sys.argv[0]).stem} device={args.device} seed={args.seed} {summary} seconds={seconds:.0f}")
