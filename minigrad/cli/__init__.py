"""The command `minigrad`. The top floor: it alone uses both the engine and the viewer, and imports each when needed."""

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
    """Run the command and return its exit code: 0, or 2 with one line on standard error when it was called wrongly.

    It is 1, also with one line there, where standard output is closed or what was printed cannot be written to it, and
    141, without one, where its reader has gone.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path need not fit the terminal's encoding
    if sys.stdout is None:
        print("minigrad: standard output is closed, so nothing was done.", file=sys.stderr)
        return 1
    try:
        with contextlib.redirect_stdout(cast(IO[str], _Output(sys.stdout))):
            try:
                return _run(arguments)
            finally:
                sys.stdout.flush()
    except _Unwritten as lost:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # which Python flushes once more at its end
        if isinstance(lost.__cause__, BrokenPipeError):
            return 141
        print(f"minigrad: cannot write to standard output: {lost}", file=sys.stderr)
        return 1


class _Unwritten(Exception):
    """What was printed cannot be written; no OSError, which commands take for one of their own files'."""


class _Output:
    """Standard output, whose errors are `_Unwritten`."""

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
    parser = _Parser(prog="minigrad", description="A place to see automatic differentiation.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"minigrad {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], what: str) -> Any:
        made = commands.add_parser(name, allow_abbrev=False, help=what, description=f"{what[0].upper()}{what[1:]}.")
        made.set_defaults(run=run)
        return made

    one = command(
        "tour", tour.tour, "train a network of single Values on Iris, and draw the graph of one flower's loss"
    )
    one.add_argument("--epochs", type=_positive, default=40, metavar="N", help="passes over the flowers (%(default)s)")
    one.add_argument("--seed", type=int, default=0, metavar="N", help="of the starting weights (%(default)s)")
    one.add_argument("--out", type=Path, default=Path("tour.html"), metavar="FILE", help="the page (%(default)s)")
    one.add_argument("--open", action="store_true", help="open the page in a browser")
    one.add_argument("--lab", action="store_true", help="then start JupyterLab on the lessons, as minigrad lab does")

    one = command("lab", lessons.lab, "copy the lessons to a folder of your own, and open the first in JupyterLab")
    one.add_argument("folder", nargs="?", type=Path, default=lessons.FOLDER, metavar="FOLDER", help="(%(default)s)")
    one.add_argument("--copy", action="store_true", help="copy only; what you have changed is never overwritten")

    one = command("course", lessons.course, "make a course of the lessons that nbgrader can give out and grade")
    one.add_argument("folder", type=Path, metavar="FOLDER", help="where it goes")

    command("doctor", doctor.doctor, "say what this machine has of what minigrad uses, and what to do about the rest")

    what = "train for many values of lr, width, seed …, several at a time; run again, it goes on"
    one = command("sweep", sweep.sweep, what)
    one.formatter_class, one.epilog = argparse.RawDescriptionHelpFormatter, sweep.EXAMPLE
    one.add_argument("file", type=Path, metavar="sweep.toml", help="what is tried")
    one.add_argument("--anew", action="store_true", help="delete the results that there are, and begin again")

    what = "the operations: what each computes, how often it can be differentiated, which devices have a kernel"
    one = command("ops", tables.ops, what)
    one.add_argument("names", nargs="*", metavar="NAME", help="only these operations, or those with this in their name")

    command("data", tables.data, "the data: what is shipped, what is read from files of yours, and where those go")

    one = command("torch", tables.torch, "PyTorch's names: which are here, which differ, what to write for the others")
    one.add_argument("names", nargs="*", metavar="NAME", help="only these, as Adam, nn.Linear, or a family, as optim")
    one.add_argument("--markdown", action="store_true", help="all of it, as a page in Markdown")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
