"""The command `minigrad`. Only this package depends on both the engine and the viewer; it imports each on demand."""

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
from minigrad.cli.errors import CommandError
from minigrad.core.errors import MissingPackageError, printable

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{self.prog}: {message}; see {self.prog} --help")


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
    except _OutputError as lost:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes standard output again at exit
        if isinstance(lost.__cause__, BrokenPipeError):
            return 141
        print(f"minigrad: cannot write to standard output: {lost}", file=sys.stderr)
        return 1


class _OutputError(Exception):
    """Error raised when writing to standard output fails. It does not derive from OSError, which commands would
    attribute to their own files."""


class _Output:
    """Wrapper of standard output that raises its errors as `_OutputError`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return int(self._forward(lambda: self._stream.write(text)))

    def flush(self) -> None:
        self._forward(self._stream.flush)

    def _forward(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except OSError as error:
            raise _OutputError(error.strerror) from error


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
        return int(options.run(options))
    except (CommandError, MissingPackageError) as stop:
        print(printable(str(stop)), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nminigrad: stopped.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="minigrad", description="Automatic differentiation that you can see.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"minigrad {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], description: str) -> Any:
        parser = commands.add_parser(
            name, allow_abbrev=False, help=description, description=f"{description[0].upper()}{description[1:]}."
        )
        parser.set_defaults(run=run)
        return parser

    subparser = command(
        "tour", tour.tour, "train a network of scalar Values on Iris, and draw the graph of one flower's loss"
    )
    subparser.add_argument(
        "--epochs", type=_positive_int, default=40, metavar="N", help="epochs (default: %(default)s)"
    )
    subparser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the weights (default: %(default)s)"
    )
    subparser.add_argument(
        "--out", type=Path, default=Path("tour.html"), metavar="FILE", help="output (default: %(default)s)"
    )
    subparser.add_argument("--open", action="store_true", help="open the page in a browser")
    subparser.add_argument("--lab", action="store_true", help="then open the lessons in JupyterLab, like minigrad lab")

    subparser = command("lab", lessons.lab, "copy the lessons to a folder, and open the first one in JupyterLab")
    subparser.add_argument(
        "folder", nargs="?", type=Path, default=lessons.FOLDER, metavar="FOLDER", help="(%(default)s)"
    )
    subparser.add_argument(
        "--copy", action="store_true", help="copy only; files that you have changed are not overwritten"
    )

    subparser = command("course", lessons.course, "create a course of the lessons to assign and grade with nbgrader")
    subparser.add_argument("folder", type=Path, metavar="FOLDER", help="output folder")

    description = "check the installed packages and devices, and print how to install missing ones"
    subparser = command("doctor", doctor.doctor, description)
    subparser.add_argument(
        "--table", action="store_true", help="print what runs on which platform and Python, as a Markdown table"
    )
    subparser.add_argument(
        "--warm", action="store_true", help="compile the most common kernels, so that first operations load them"
    )

    description = "train with many values of lr, width, seed …, several at a time; run again to resume"
    subparser = command("sweep", sweep.sweep, description)
    subparser.formatter_class, subparser.epilog = argparse.RawDescriptionHelpFormatter, sweep.EXAMPLE
    subparser.add_argument("file", type=Path, metavar="sweep.toml", help="the definition of the sweep")
    subparser.add_argument("--anew", action="store_true", help="delete existing results and start over")

    _add_tables(command)
    return parser


def _add_tables(command: Callable[[str, Callable[[argparse.Namespace], int], str], Any]) -> None:
    """Add the commands that print tables."""
    description = "list the operations with their formulas, differentiable operands and the devices that have a kernel"
    subparser = command("ops", tables.ops, description)
    subparser.add_argument("names", nargs="*", metavar="NAME", help="only operations whose name contains NAME")

    command("data", tables.data, "list the data sets: those shipped, those read from local files, and their folders")

    subparser = command(
        "torch", tables.torch, "list which names of PyTorch are implemented, differ, or have a replacement"
    )
    subparser.add_argument(
        "names", nargs="*", metavar="NAME", help="a name or a family, such as Adam, nn.Linear or optim"
    )
    subparser.add_argument("--markdown", action="store_true", help="print the full table as a Markdown page")


def _positive_int(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)
