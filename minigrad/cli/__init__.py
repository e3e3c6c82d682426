"""The command `minigrad`. It alone depends on both the engine and the viewer, and imports each when it is needed."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from minigrad import __version__
from minigrad.cli import doctor, lessons, sweep, tables, tour
from minigrad.cli.stop import Stop
from minigrad.core.errors import MissingPackageError, printable

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Stop(f"{self.prog}: {message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 2 with one line on standard error for wrong usage.

    Return 1, with one line on standard error, if standard output is closed or cannot be written to, and 141, without
    a message, after a broken pipe.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the terminal may be unable to encode a path
    if sys.stdout is None:
        print("minigrad: standard output is closed; nothing was done.", file=sys.stderr)
        return 1
    try:
        with contextlib.redirect_stdout(cast(IO[str], _Output(sys.stdout))):
            try:
                return _run(arguments)
            finally:
                sys.stdout.flush()
    except _Unwritten as lost:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it again at exit
        if isinstance(lost.__cause__, BrokenPipeError):
            return 141
        print(f"minigrad: cannot write to standard output: {lost}", file=sys.stderr)
        return 1


class _Unwritten(Exception):
    """A failed write to standard output. Not an OSError, which commands would attribute to their own files."""


class _Output:
    """Standard output, with errors raised as `_Unwritten`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return int(self._done(lambda: self._stream.write(text)))

    def flush(self) -> None:
        self._done(self._stream.flush)

    def _done(self, what: Callable[[], Any]) -> Any:
        try:
            return what()
        except OSError as error:
            raise _Unwritten(error.strerror) from error


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
        return int(options.run(options))
    except (Stop, MissingPackageError) as stop:
        print(printable(str(stop)), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nminigrad: stopped.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="minigrad", description="Automatic differentiation that you can see.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"minigrad {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], what: str) -> Any:
        made = commands.add_parser(name, allow_abbrev=False, help=what, description=f"{what[0].upper()}{what[1:]}.")
        made.set_defaults(run=run)
        return made

    one = command(
        "tour", tour.tour, "train a network of scalar Values on Iris, and draw the graph of one flower's loss"
    )
    one.add_argument("--epochs", type=_positive, default=40, metavar="N", help="epochs (default: %(default)s)")
    one.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the weights (default: %(default)s)")
    one.add_argument(
        "--out", type=Path, default=Path("tour.html"), metavar="FILE", help="output (default: %(default)s)"
    )
    one.add_argument("--open", action="store_true", help="open the page in a browser")
    one.add_argument("--lab", action="store_true", help="then open the lessons in JupyterLab, like minigrad lab")

    one = command("lab", lessons.lab, "copy the lessons to a folder, and open the first one in JupyterLab")
    one.add_argument("folder", nargs="?", type=Path, default=lessons.FOLDER, metavar="FOLDER", help="(%(default)s)")
    one.add_argument("--copy", action="store_true", help="copy only; files that you have changed are not overwritten")

    one = command("course", lessons.course, "create a course of the lessons to assign and grade with nbgrader")
    one.add_argument("folder", type=Path, metavar="FOLDER", help="output folder")

    command("doctor", doctor.doctor, "check the installed packages and devices, and print how to install missing ones")

    what = "train with many values of lr, width, seed …, several at a time; run again to resume"
    one = command("sweep", sweep.sweep, what)
    one.formatter_class, one.epilog = argparse.RawDescriptionHelpFormatter, sweep.EXAMPLE
    one.add_argument("file", type=Path, metavar="sweep.toml", help="the definition of the sweep")
    one.add_argument("--anew", action="store_true", help="delete existing results and start over")

    what = "list the operations with their formulas, differentiable operands and the devices that have a kernel"
    one = command("ops", tables.ops, what)
    one.add_argument("names", nargs="*", metavar="NAME", help="only operations whose name contains NAME")

    command("data", tables.data, "list the data sets: those shipped, those read from local files, and their folders")

    one = command("torch", tables.torch, "list which names of PyTorch are implemented, differ, or have a replacement")
    one.add_argument("names", nargs="*", metavar="NAME", help="a name or a family, such as Adam, nn.Linear or optim")
    one.add_argument("--markdown", action="store_true", help="print the full table as a Markdown page")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)
