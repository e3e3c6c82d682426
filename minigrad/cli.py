"""The command `minigrad`. The top floor: it alone uses both the engine and the viewer, and imports each when needed."""

from __future__ import annotations

import argparse
import io
import os
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from minigrad import __version__
from minigrad.graph import scope
from minigrad.nn.scalar import MLP, cross_entropy
from minigrad.value import Value

__all__ = ["main"]


class _Stop(Exception):
    """What a user must put right; told in one line, with exit code 2."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Stop(f"{self.prog}: {message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 2 with one line on standard error when it was called wrongly."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path need not fit the terminal's encoding
    try:
        options = _parser().parse_args(arguments)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except _Stop as stop:
        print(stop, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nminigrad: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read our output has gone
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="minigrad", description="A place to see automatic differentiation.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"minigrad {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    tour = commands.add_parser(
        "tour",
        allow_abbrev=False,
        help="train a network of single Values on Iris, and draw the graph of one flower's loss",
        description="Train a network of single Values on Iris, and draw the graph of one flower's loss.",
    )
    tour.add_argument("--epochs", type=_positive, default=40, metavar="N", help="passes over the flowers (%(default)s)")
    tour.add_argument("--seed", type=int, default=0, metavar="N", help="of the starting weights (%(default)s)")
    tour.add_argument("--out", type=Path, default=Path("tour.html"), metavar="FILE", help="the page (%(default)s)")
    tour.add_argument("--open", action="store_true", help="open the page in a browser")
    tour.add_argument("--lab", action="store_true", help="then start JupyterLab on the lessons")
    tour.set_defaults(run=_tour)
    ops = commands.add_parser(
        "ops",
        allow_abbrev=False,
        help="the operations: what each computes, how often it can be differentiated, which devices have a kernel",
        description="Print the table of operations: what each computes, and which devices have a kernel for it.",
    )
    ops.add_argument("names", nargs="*", metavar="NAME", help="only these operations, or those with this in their name")
    ops.set_defaults(run=_ops)
    data = commands.add_parser(
        "data",
        allow_abbrev=False,
        help="the data: what is shipped, what is read from files of yours, and where those go",
        description="List the data that is shipped, and what is read from files of yours: which, and where they go.",
    )
    data.set_defaults(run=_data)
    torch = commands.add_parser(
        "torch",
        allow_abbrev=False,
        help="PyTorch's names: which are here, which differ, and what to write for the others",
        description="Say which of PyTorch's names are here, which differ and how, and what to write for the others.",
    )
    torch.add_argument("names", nargs="*", metavar="NAME", help="only these, as Adam, nn.Linear, or a family, as optim")
    torch.add_argument("--markdown", action="store_true", help="all of it, as a page in Markdown")
    torch.set_defaults(run=_torch)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


# --- minigrad ops ----------------------------------------------------------------------------------------------------


def _ops(options: argparse.Namespace) -> int:
    """A line an operation: its name, its formula, which operands have a derivative, and the devices."""
    from importlib.util import find_spec

    from minigrad.backends.formula import expression
    from minigrad.kernels import kernels_of
    from minigrad.op import OPS

    devices = ["python"]
    if find_spec("numpy"):
        from minigrad import functional  # noqa: F401 -- registers the kernels of arrays
        from minigrad.storage import DEVICES

        devices += DEVICES
    chosen = [op for name, op in OPS.items() if not options.names or any(part in name for part in options.names)]
    if not chosen:
        raise _Stop(f"minigrad ops: no operation has {' or '.join(map(repr, options.names))} in its name")
    rows = [["operation", "computes", "gradient of", *devices]]
    for op in sorted(chosen, key=lambda op: op.name):
        free = [x for x, rule in zip(op.inputs, op.vjp, strict=True) if rule is not None]
        marks = ["yes" if device in kernels_of(op.name) else "-" for device in devices]
        formula = expression(op, op.inputs).text() if not op.variadic else op.formula
        rows.append([op.name, _short(formula), ", ".join(free) or "-", *marks])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  ".join(x.ljust(width) for x, width in zip(row, widths, strict=True)).rstrip())
    counts = ", ".join(f"{sum(device in kernels_of(op.name) for op in chosen)} on {device}" for device in devices)
    print(f"{len(chosen)} operations: {counts}.")
    return 0


def _short(text: str, most: int = 32) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# --- minigrad data ---------------------------------------------------------------------------------------------------


def _data(options: argparse.Namespace) -> int:
    """What is shipped, a line each; then what is read from files of the reader's, and which of them are there."""
    from importlib.resources import files

    from minigrad.data import known

    print("Shipped with minigrad: mg.data.…")
    for one in known.SHIPPED:
        size = sum(len(files("minigrad.data").joinpath(name).read_bytes()) for name in one.files)
        shown = f"{-(-size // 1000)} kB" if size else ""
        print(f"  {one.call:<19} {one.what:<31} {shown:>6}  {one.source}".rstrip())
    print(f"\nRead from files of yours, below {_short_path(known.data_folder())}")
    print("Nothing is ever fetched. The environment variable MINIGRAD_DATA names another folder.")
    for data in known.OFFICIAL:
        there = known.find(data)
        folder = there[0].parent if there else known.places(data)[0]
        print(f"\n  {data.call:<19} {data.name}: {data.what}")
        print(f"    by      {data.authors}; {data.licence}")
        print(f"    from    {data.where}")
        print(f"    {'in  ' if there else 'into'}    {_short_path(folder)}")
        for name, md5 in data.files.items():
            print(f"            {name:<27} MD5 {md5}  {_state(there, name, md5)}".rstrip())
        if there and not {path.name for path in there} & set(data.files):
            print(f"            {len(there)} of its {len(data.unpacked)} files are here, unpacked")
    return 0


def _short_path(path: Path) -> str:
    """A path with ``~`` for the home folder."""
    return f"~/{path.relative_to(Path.home()).as_posix()}" if path.is_relative_to(Path.home()) else str(path)


def _state(there: Sequence[Path], name: str, md5: str) -> str:
    """What is known of a file that may be there."""
    from minigrad.data.known import md5_of

    path = next((path for path in there if path.name == name), None)
    if path is not None:
        return "here" if md5_of(path) == md5 else "another MD5"
    return ""


# --- minigrad torch --------------------------------------------------------------------------------------------------


def _torch(options: argparse.Namespace) -> int:
    """How much of each family of PyTorch's is here; or of some names, a line each."""
    from importlib.util import find_spec

    if not find_spec("numpy"):
        raise _Stop(
            "minigrad torch: its names are those of tensors, which need NumPy; install it with: pip install numpy"
        )
    from minigrad.pytorch import markdown, rows, summary, version

    if options.markdown:
        print(markdown(), end="")
        return 0
    table = rows()
    asked = {name.removeprefix("torch.").removeprefix("mg.") for name in options.names}
    if not asked:
        print(f"{'PyTorch ' + version():<26}{'here':>6}{'differs':>9}{'not here':>10}")
        for family, yes, differs, no in summary(table):
            print(f"{family:<26}{yes:>6}{differs:>9}{no:>10}")
        print("Which: minigrad torch NAME …, a name or a family; all: minigrad torch --markdown")
        return 0
    chosen = [row for row in table if asked & {row.name, row.family[6:], f"{row.family}.{row.name}"[6:]}]
    if not chosen:
        raise _Stop(f"minigrad torch: PyTorch {version()} has no {' or '.join(sorted(options.names))}")
    width = max(len(f"{row.family}.{row.name}") for row in chosen)
    for row in chosen:
        print(f"{f'{row.family}.{row.name}':<{width}}  {row.state:<7}  {row.note}".rstrip())
    return 0


# --- minigrad tour ---------------------------------------------------------------------------------------------------


def _tour(options: argparse.Namespace) -> int:
    from minigrad.data import iris

    lessons = _lessons() if options.lab else None
    _ensure_writable(options.out)
    flowers = iris()
    model = MLP([4, 8, 3], seed=options.seed)
    print(f"Training {model} on {len(flowers.train_x)} Iris flowers.")
    _train(model, flowers.train_x, flowers.train_y, options.epochs)

    losses = [cross_entropy(model(x), y).data for x, y in zip(flowers.test_x, flowers.test_y, strict=True)]
    right = sum(_predict(model, x) == y for x, y in zip(flowers.test_x, flowers.test_y, strict=True))
    print(f"Test accuracy: {right / len(losses):.1%} ({right} of {len(losses)} flowers that it had not seen).")

    hardest = max(range(len(losses)), key=losses.__getitem__)
    loss = _labelled_loss(model, flowers.test_x[hardest], flowers.test_y[hardest], flowers.features)
    model.zero_grad()
    loss.backward()
    _write_page(loss, options.out)
    print(f"Its loss on the hardest of them, value by value and gradient by gradient: {options.out.resolve()}")
    if options.open and not webbrowser.open(options.out.resolve().as_uri()):
        print("No browser could be opened here; open the page by hand.")
    return _lab(lessons) if lessons else 0


def _train(model: MLP, xs: list[list[float]], ys: list[int], epochs: int, *, batch: int = 12, lr: float = 0.2) -> None:
    """Stochastic gradient descent on the mean cross-entropy of `batch` flowers at a time; lr is the learning rate."""
    from tqdm import tqdm

    bar = tqdm(range(epochs), desc="epochs", ascii=" =")
    for _ in bar:
        total = 0.0
        for start in range(0, len(xs), batch):
            pairs = list(zip(xs[start : start + batch], ys[start : start + batch], strict=True))
            loss = sum([cross_entropy(model(x), y) for x, y in pairs], Value(0.0)) / len(pairs)
            model.zero_grad()
            loss.backward()
            for parameter in model.parameters():
                parameter.data -= lr * parameter.grad
            total += loss.data * len(pairs)
        bar.set_postfix(loss=f"{total / len(xs):.3f}")


def _predict(model: MLP, x: list[float]) -> int:
    scores = [score.data for score in model(x)]
    return scores.index(max(scores))


def _labelled_loss(model: MLP, x: list[float], y: int, features: Sequence[str]) -> Value:
    """The loss at one flower, with names on what a reader will look for, and a block for each neuron."""
    outputs = [Value(number, name) for number, name in zip(x, features, strict=True)]
    for depth, layer in enumerate(model.layers):
        inputs, outputs = outputs, []
        last = layer is model.layers[-1]
        with scope("scores" if last else f"hidden layer {depth}"):
            for k, neuron in enumerate(layer.neurons):
                with scope(f"neuron {k}"):
                    outputs.append(neuron(inputs))
                outputs[-1].label = f"score {k}" if last else f"h{depth}.{k}"
    with scope("cross-entropy"):
        loss = cross_entropy(outputs, y)
    loss.label = "loss"
    return loss


_CAPTIONS = (
    ("start", "One flower: four measurements, and no number computed from them yet. Go on, or press →, step by step."),
    ("score 2", "They have passed eight neurons, then three: one score for each species. A stack opens by a click."),
    ("loss", "The loss says how wrong the scores are. So much for the way forward."),
    (
        "seed",
        "Now back. The gradient of the loss itself is 1; from here on each step multiplies by one local derivative.",
    ),
    (("score 2", "backward"), "The first score hears what it should have been: more (−) or less (+)."),
    ("end", "Each weight knows which way to turn. What if it did? Open “What if”; or be asked: “Predict”."),
)


def _ensure_writable(path: Path) -> None:
    """Find out before the training, not after it, that the page cannot be written."""
    try:
        existed = os.path.lexists(path)
        with path.open("a", encoding="utf-8"):
            pass
        if not existed:
            path.unlink()
    except (OSError, ValueError) as error:  # ValueError: a name with a null in it
        raise _Stop(f"minigrad tour: cannot write {path}: {getattr(error, 'strerror', error)}") from None


def _write_page(loss: Value, path: Path) -> None:
    from minigrad_viz.pictures.drawing import Drawing
    from minigrad_viz.player import stops
    from minigrad_viz.trace import placed

    trace, places = placed(loss)
    layers_open = {"expanded": [1, 2], "granularity": "op"}
    drawing = Drawing(replace(trace, tours=stops(trace, places, _CAPTIONS)), layers_open)
    try:
        drawing.save(path)
    except OSError as error:
        raise _Stop(f"minigrad tour: cannot write {path}: {error.strerror}") from None


# --- JupyterLab ------------------------------------------------------------------------------------------------------


def _lessons() -> Path:
    """The folder of the lessons, once it is known that JupyterLab could show it."""
    from importlib.util import find_spec

    if find_spec("jupyterlab") is None:
        raise _Stop("minigrad tour: --lab needs JupyterLab; install it with: pip install 'minigrad[lab]'")
    folder = Path(__file__).resolve().parent.parent / "notebooks"
    if not folder.is_dir():
        raise _Stop(
            "minigrad tour: --lab needs the lessons, which stand in the folder notebooks of a clone of minigrad"
        )
    return folder


def _lab(folder: Path) -> int:
    import subprocess

    return subprocess.call([sys.executable, "-m", "jupyter", "lab", str(folder)])
