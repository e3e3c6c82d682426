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

from needs import is_available
from torture import Campaign, Skip

__all__ = ["CampaignResult", "run_campaign", "run_cases"]

TESTS = Path(__file__).parents[1]
BYTES = 16  # where a child writes the number of the current case
NO_CASE = -1  # no case yet: the child is importing
IMPORT_TIMEOUT = 120.0  # seconds to import the campaign's dependencies


class CampaignResult(NamedTuple):
    """How many cases ran, how many of these a machine had to skip, and a message for each failure."""

    ran: int
    skipped: int
    failures: list[str]
    seconds: float


def run_campaign(campaign: Campaign, cases: range) -> CampaignResult:
    """Run the cases in order. If a process crashes or hangs, the next one continues with the following case."""
    start = time.monotonic()
    if not all(map(is_available, campaign.needs)):
        return CampaignResult(len(cases), len(cases), [], 0.0)
    failures: list[str] = []
    skipped, next_case = 0, cases.start
    while next_case < cases.stop:
        messages, reached, death = _watch_child(campaign, range(next_case, cases.stop))
        failures += [text for text in messages if text is not None]
        skipped += messages.count(None)
        if death is None:
            break
        failures.append(f"case {reached}: {death}")
        next_case = max(reached, next_case) + 1
    return CampaignResult(len(cases), skipped, failures, time.monotonic() - start)


def _watch_child(campaign: Campaign, cases: range) -> tuple[list[str | None], int, str | None]:
    """Return a child's messages (None for a skipped case), the last case it began, and how it died, if it did."""
    with tempfile.TemporaryDirectory() as folder:
        position_file, output, errors = (Path(folder) / name for name in ("case", "said", "errors"))
        position_file.write_bytes(NO_CASE.to_bytes(BYTES, "little", signed=True))
        output.touch()
        theme = campaign.case.__module__
        command = [sys.executable, "-m", "torture._runner", theme, campaign.name, str(cases.start), str(cases.stop)]
        path = os.pathsep.join([str(TESTS), str(TESTS / "helpers"), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, **dict(campaign.environment)}
        with errors.open("wb") as stream:
            process = subprocess.Popen(
                [*command, folder], env=environment, stderr=stream, stdout=stream, stdin=subprocess.DEVNULL
            )
            death, current, since = None, NO_CASE, time.monotonic()
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.1)
                position = int.from_bytes(position_file.read_bytes(), "little", signed=True)
                if position != current:
                    current, since = position, time.monotonic()
                elif time.monotonic() - since > (IMPORT_TIMEOUT if current == NO_CASE else campaign.seconds):
                    process.kill()
                    process.wait()
                    death = f"took more than {campaign.seconds:g} s"
        reached = int.from_bytes(position_file.read_bytes(), "little", signed=True)
        if death is None and process.returncode != 0:
            tail = errors.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
            death = f"the process exited with {process.returncode}: {tail}"
        if death and reached == NO_CASE:
            raise RuntimeError(f"The campaign {campaign.name} does not start: {death}")
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()], reached, death


def run_cases(campaign: Campaign, cases: range, folder: Path) -> None:
    """Run the cases in this process; write a line of JSON for each that fails (a message) or is skipped (null)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with (folder / "case").open("r+b") as file, (folder / "said").open("a", encoding="utf-8") as output:
        position = mmap.mmap(file.fileno(), BYTES)
        for case_number in cases:
            position[:] = case_number.to_bytes(BYTES, "little", signed=True)
            try:
                problem = campaign.case(case_number)
                message = None if problem is None else f"case {case_number}: {problem}"
            except Skip:
                print("null", file=output, flush=True)
                continue
            except Exception as error:  # noqa: BLE001 -- any exception is a finding
                message = f"case {case_number}: {type(error).__name__}: {error}"
            if message is not None:
                print(json.dumps(message), file=output, flush=True)


if __name__ == "__main__":
    theme, name, first, last, shared = sys.argv[1:]
    campaigns_by_name = {one.name: one for one in importlib.import_module(theme).CAMPAIGNS}
    run_cases(campaigns_by_name[name], range(int(first), int(last)), Path(shared))
