"""Wrong calls, as learners make them: each must raise a clear error immediately, and change nothing.

The calls are in `wrong_calls/*.txt`, a block each: setup, the call after ``>>>``, and the expected error, as in a
Python session. ``[...]`` matches any characters; a message may have more before and after. Those of ``19_taichi.txt``
are left out without Taichi.
`folder` is an empty folder, and ``minigrad("ops", "-x")`` runs the command; exit code 2 is an error named `Exit2`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import os
import random
import re
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from needs import is_available
from torture import Campaign

__all__ = ["CAMPAIGNS"]

MAX_SECONDS = 0.05  # seconds until an error is raised, except for the command, which takes longer to start
FOREIGN_LIBRARIES = ("taichi", "numpy")  # whose errors a user cannot be expected to understand


class WrongCall(NamedTuple):
    """A wrong call: its location, setup, call, expected error class, and a part of its message."""

    location: str
    setup: str
    call: str
    error: str
    message: str


class Exit2(Exception):
    """The command exited with 2; the message is what it wrote to standard error."""


@functools.cache
def catalogue() -> list[WrongCall]:
    """Return all wrong calls, shuffled, so that the first ones are of all kinds."""
    calls = [
        _parse(f"{file.name}:{line}", block)
        for file in sorted(Path(__file__).with_name("wrong_calls").glob("*.txt"))
        if file.stem != "19_taichi" or is_available("taichi")
        for line, block in _blocks(file.read_text(encoding="utf-8"))
    ]
    random.Random(0).shuffle(calls)
    return calls


def _blocks(text: str) -> list[tuple[int, list[str]]]:
    """Return the blocks between blank lines, with their first line numbers; lines that start with # are headings."""
    blocks: list[tuple[int, list[str]]] = []
    is_new_block = True
    for line_number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            is_new_block = True
        elif not line.startswith("#"):
            if is_new_block:
                blocks.append((line_number, []))
            blocks[-1][1].append(line)
            is_new_block = False
    return blocks


def _parse(location: str, lines: list[str]) -> WrongCall:
    first = next(k for k, line in enumerate(lines) if line.startswith(">>> "))
    last = max(k for k, line in enumerate(lines) if line.startswith((">>> ", "... ")))
    call = "\n".join(line[4:] for line in lines[first : last + 1])
    error, _, text = " ".join(lines[last + 1 :]).partition(": ")
    return WrongCall(location, "\n".join(lines[:first]), call, error, text)


@functools.cache
def _namespace() -> dict[str, Any]:
    """Return the names of every case, imported once, and exclude existing objects from garbage collection."""
    import numpy

    import minigrad as mg
    import minigrad_viz
    from minigrad import data, optim, training
    from minigrad.nn import functional

    mg.set_default_device(os.environ.get("MINIGRAD_DEVICE") or None)
    (mg.ones(2, 2, requires_grad=True) @ mg.ones(2, 2)).sum().backward()
    names = {"mg": mg, "nn": mg.nn, "F": functional, "optim": optim, "data": data, "training": training}
    gc.collect()
    gc.freeze()
    return {**names, "np": numpy, "viz": minigrad_viz, "minigrad": _command, "Path": Path}


def _command(*arguments: str) -> None:
    from minigrad import cli

    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()) as output:
        code = cli.main(arguments)
    if code == 2 and not output.getvalue():
        raise Exit2(errors.getvalue())
    raise AssertionError(f"the command exited with {code} and wrote {output.getvalue()!r}")


# --- state that a call may not change -----------------------------------------------------------------------------


def _state(x: Any) -> Any:
    """Return the comparable state of `x`: elements, gradients, versions and everything else that can change."""
    import numpy as np

    import minigrad as mg

    if isinstance(x, mg.Tensor):
        with mg.no_grad():
            elements = x.detach().numpy().tobytes()
        fixed = (tuple(x.shape), str(x.dtype), x.device, x.requires_grad, x._version, id(x.grad_fn), type(x).__name__)
        return (*fixed, elements, _state(x.grad))
    if isinstance(x, mg.Value):
        return repr(x.data), x.requires_grad, x.label, _state(x.grad)
    if isinstance(x, mg.nn.Module):
        modules = [(name, part.training, sorted(part.__dict__)) for name, part in x.named_modules()]
        return modules, [(name, _state(one)) for name, one in (*x.named_parameters(), *x.named_buffers())]
    if isinstance(x, np.ndarray):
        return x.shape, str(x.dtype), x.tobytes(), x.flags.writeable
    if isinstance(x, dict):
        return [(repr(key), _state(one)) for key, one in x.items()]
    if isinstance(x, list | tuple):
        return [_state(one) for one in x]
    if hasattr(x, "state_dict") and not isinstance(x, type):
        return _state(x.state_dict())
    return repr(x) if isinstance(x, str | int | float | bool | None) else id(x)


def _process_state() -> dict[str, Any]:
    """Return the process-wide state that a wrong call may not change."""
    import minigrad as mg

    return {
        "the default device": mg.get_default_device(),
        "the default dtype": mg.get_default_dtype(),
        "the grad mode": mg.is_grad_enabled(),
        "the stream of random numbers": _state(mg.get_rng_state()),
        "the table of operations": len(mg.OPS),
    }


def _files(folder: Path) -> dict[str, Any]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def _full_state(names: dict[str, Any], folder: Path) -> dict[str, Any]:
    state = {
        f"`{name}`": _state(x) for name, x in names.items() if name not in _namespace() and not name.startswith("__")
    }
    return {**state, **_process_state(), "the files": _files(folder)}


def _count_tensors() -> int:
    """Return the number of tensors on all devices, without those excluded from garbage collection."""
    import minigrad as mg

    return sum(one.tensors for one in mg.memory().devices.values())


# --- a case ----------------------------------------------------------------------------------------------------------


def case(case_number: int) -> str | None:
    wrong = catalogue()[case_number]
    problem = check_call(wrong)
    return problem and f"{wrong.location}: {wrong.call!r}: {problem}"


def check_call(wrong: WrongCall) -> str | None:
    """Return what is wrong with a call, or None. It runs four times: the first may be slower."""
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(directory)
        names: dict[str, Any] = {**_namespace(), "folder": folder}
        exec(compile(wrong.setup, "<before>", "exec"), names)
        program = compile(wrong.call, "<call>", "exec")
        before = _full_state(names, folder)
        problem = _check_error(program, names, wrong)
        if problem is None:
            gc.collect()
            gc.freeze()  # do not count existing objects from here on
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                with contextlib.suppress(Exception):
                    exec(program, names)
                seconds.append(time.perf_counter() - start)
            problem = _find_changes(before, _full_state(names, folder))
            if problem is None and min(seconds) > MAX_SECONDS and wrong.error != "Exit2":
                problem = f"the error takes {1e3 * min(seconds):.0f} ms"
            gc.collect()
            if problem is None and _count_tensors():
                problem = f"{_count_tensors()} tensors are leaked"
        return problem


def _find_changes(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    differ = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return f"{', '.join(differ)} changed" if differ else None


def _check_error(program: Any, names: dict[str, Any], wrong: WrongCall) -> str | None:
    """Return what is wrong with the error that the call raises."""
    try:
        exec(program, names)
    except Exception as error:  # noqa: BLE001 -- any exception is checked
        message = " ".join(str(error).split())
        if type(error).__name__ != wrong.error:
            return f"it raised {type(error).__name__}: {message}"
        pattern = ".*".join(re.escape(" ".join(part.split())) for part in wrong.message.split("[...]"))
        if not wrong.message or not re.search(pattern, message):
            return f"its message is {message!r}"
        return _find_foreign_error(error)
    return "it raised no error"


def _find_foreign_error(error: BaseException | None) -> str | None:
    """Return whether the error, or one shown before it, belongs to another library or comes from its code."""
    while error is not None:
        home = type(error).__module__
        if home.partition(".")[0] not in ("builtins", "minigrad", __name__.partition(".")[0]):
            return f"the traceback shows {home}.{type(error).__name__}"
        if error.__traceback__ is not None:
            last = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
            if last.f_globals.get("__name__", "").partition(".")[0] in FOREIGN_LIBRARIES:
                return f"the traceback ends in {last.f_globals['__name__']}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


COUNT = len(catalogue())
CAMPAIGNS = [
    Campaign(
        f"wrong calls, {device}",
        f"a wrong call on {device}: class and message of its error, within 50 ms, without side effects",
        case,
        many=COUNT,
        few=few,
        environment=(("MINIGRAD_DEVICE", device),),
    )
    for device, few in (("numpy", COUNT), ("cpu", 0))
]
