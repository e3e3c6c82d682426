"""Run the cases of a campaign in child processes, and report which of them crashed or exceeded the time limit."""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from needs import is_here
from torture import Campaign, Skip

__all__ = ["Outcome", "child", "outcome"]

TESTS = Path(__file__).parents[1]
BYTES = 16  # where a child writes the number of the current case
NONE = -1  # no case yet: the child is importing
START = 120.0  # seconds to import the campaign's dependencies


class Outcome(NamedTuple):
    """How many cases ran, how many of these a machine had to skip, and a message for each failure."""

    tried: int
    skipped: int
    failures: list[str]
    seconds: float


def outcome(campaign: Campaign, cases: range) -> Outcome:
    """Run the cases in order. If a process crashes or hangs, the next one continues with the following case."""
    start = time.monotonic()
    if not all(map(is_here, campaign.needs)):
        return Outcome(len(cases), len(cases), [], 0.0)
    failures: list[str] = []
    skipped, at = 0, cases.start
    while at < cases.stop:
        told, reached, ended = _watched(campaign, range(at, cases.stop))
        failures += [text for text in told if text is not None]
        skipped += told.count(None)
        if ended is None:
            break
        failures.append(f"case {reached}: {ended}")
        at = max(reached, at) + 1
    return Outcome(len(cases), skipped, failures, time.monotonic() - start)


def _watched(campaign: Campaign, cases: range) -> tuple[list[str | None], int, str | None]:
    """Return a child's messages (None for a skipped case), the last case it began, and how it died, if it did."""
    with tempfile.TemporaryDirectory() as folder:
        place, said, errors = (Path(folder) / name for name in ("case", "said", "errors"))
        place.write_bytes(NONE.to_bytes(BYTES, "little", signed=True))
        said.touch()
        theme = campaign.case.__module__
        command = [sys.executable, "-m", "torture._running", theme, campaign.name, str(cases.start), str(cases.stop)]
        path = os.pathsep.join([str(TESTS), str(TESTS / "helpers"), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, **dict(campaign.environment)}
        with errors.open("wb") as stream:
            process = subprocess.Popen(
                [*command, folder], env=environment, stderr=stream, stdout=stream, stdin=subprocess.DEVNULL
            )
            ended, seen, since = None, NONE, time.monotonic()
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.1)
                number = int.from_bytes(place.read_bytes(), "little", signed=True)
                if number != seen:
                    seen, since = number, time.monotonic()
                elif time.monotonic() - since > (START if seen == NONE else campaign.seconds):
                    process.kill()
                    process.wait()
                    ended = f"took more than {campaign.seconds:g} s"
        reached = int.from_bytes(place.read_bytes(), "little", signed=True)
        if ended is None and process.returncode != 0:
            tail = errors.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
            ended = f"the process exited with {process.returncode}: {tail}"
        if ended and reached == NONE:
            raise RuntimeError(f"The campaign {campaign.name} does not start: {ended}")
        return [json.loads(line) for line in said.read_text(encoding="utf-8").splitlines()], reached, ended


def child(campaign: Campaign, cases: range, folder: Path) -> None:
    """Run the cases in this process; write a line of JSON for each that fails (a message) or is skipped (null)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with (folder / "case").open("r+b") as file, (folder / "said").open("a", encoding="utf-8") as said:
        place = mmap.mmap(file.fileno(), BYTES)
        for number in cases:
            place[:] = number.to_bytes(BYTES, "little", signed=True)
            try:
                found = campaign.case(number)
                wrong = None if found is None else f"case {number}: {found}"
            except Skip:
                print("null", file=said, flush=True)
                continue
            except Exception as error:  # noqa: BLE001 -- any exception is a finding
                wrong = f"case {number}: {type(error).__name__}: {error}"
            if wrong is not None:
                print(json.dumps(wrong), file=said, flush=True)


if __name__ == "__main__":
    theme, name, first, last, shared = sys.argv[1:]
    found = {one.name: one for one in importlib.import_module(theme).CAMPAIGNS}
    child(found[name], range(int(first), int(last)), Path(shared))
