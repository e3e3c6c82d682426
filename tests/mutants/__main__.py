"""`make mutants`: apply each mutant to a copy of the tree, and check that a test kills it. See mutants/__init__.py."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mutants import MUTANTS, Mutant
from needs import is_available

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results.txt"
PLAYER = "viz/minigrad_viz/static/player.js"  # built from viz/frontend/src
PACKAGES = "viz/frontend/node_modules"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
# What `make test` runs, without the test of this catalogue, which would detect every mutant by its source.
ALL_TESTS = ["--numprocesses", "2", "--dist", "loadscope", "--nbval", "--nbval-sanitize-with", "notebooks/sanitize.cfg"]
ALL_TESTS += ["tests", "minigrad", "viz/minigrad_viz", "notebooks", "--ignore", "tests/project/test_mutants.py"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)
PRINT_PATHS = "import minigrad, minigrad_viz; print(minigrad.__file__, minigrad_viz.__file__)"


class WorkingCopy:
    """A copy of the tracked files in their current state, from which Python imports minigrad."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self.folder, self.timeout = folder, timeout
        self.environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{folder / 'viz'}"}
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, tracked.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        if (ROOT / PACKAGES).is_dir():
            (folder / PACKAGES).symlink_to((ROOT / PACKAGES).resolve())
        _, imported = self.run([sys.executable, "-c", PRINT_PATHS], "/")
        if not all(Path(file).is_relative_to(folder) for file in imported.split()):
            raise SystemExit(f"mutants: Python imports {imported} instead of the copy in {folder}")

    def run(self, command: Sequence[str], cwd: Path | str = "") -> tuple[int | None, str]:
        """Run a command in the copy; return its exit status, None on timeout, and its output."""
        child = subprocess.Popen(
            command, cwd=cwd or self.folder, env=self.environment, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            printed, _ = child.communicate(timeout=self.timeout)
            return child.returncode, printed
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # its workers too
            return None, child.communicate()[0]

    @contextmanager
    def apply(self, mutant: Mutant) -> Iterator[None]:
        """Apply the mutant to the copy inside the block; rebuild the player if it changes the player's source."""
        rebuilds_player = mutant.path.startswith("viz/frontend/src/")
        files = [self.folder / name for name in [mutant.path, PLAYER][: 1 + rebuilds_player]]
        originals = [(file, file.read_bytes(), file.stat()) for file in files]
        files[0].write_text(mutant.mutate(files[0].read_text(encoding="utf-8")), encoding="utf-8")
        try:
            if rebuilds_player and self.run(["node", "viz/frontend/build.mjs"])[0]:
                raise SystemExit(f"mutants: {mutant.name}: the player cannot be built.")
            yield
        finally:
            for file, content, status in originals:
                file.write_bytes(content)
                os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # Python compares it with compiled modules

    def kills(self, mutant: Mutant, run_all: bool) -> tuple[bool, str]:
        """Return whether a test kills the mutant, and which. A test that fails without the mutant does not count."""
        for tests in [[f"tests/{name}" for name in mutant.tests], *([ALL_TESTS] if run_all else [])]:
            with self.apply(mutant):
                status, printed = self.run([*PYTEST, "-x", *tests])
            if status is None:
                return mutant.hangs, "timed out"
            if status == 5:
                raise SystemExit(f"mutants: {mutant.name}: {' '.join(tests)} contain no tests.")
            if status:
                match = FAILED.search(printed)
                killer = match[1] if match else f"pytest exited with {status}: {printed.strip()[-200:]!r}"
                fails_unmutated = self.run([*PYTEST, *([match[1]] if match else ["--collect-only", *tests])])[0]
                return (
                    not fails_unmutated,
                    f"{killer}{', which also fails without the mutant' if fails_unmutated else ''}",
                )
        return False, "–"


def missing_requirements(mutant: Mutant) -> str:
    """Return the missing requirements of the mutant's tests, or ""."""
    tools = ["node", "npm packages", "chromium", "playwright"] if mutant.path.endswith(".js") else []
    return ", ".join(tool for tool in tools if not is_available(tool))


def header() -> str:
    """Return the header of the table: the date, the processor, its cores and Python's version."""
    info = Path("/proc/cpuinfo")
    processor = re.search(r"^model name\s*: (.+)$", info.read_text(), re.MULTILINE) if info.exists() else None
    cores, python = os.cpu_count(), platform.python_version()
    return (
        f"# {datetime.date.today()}, {processor[1] if processor else platform.machine()}, {cores} cores, CPython "
        f"{python}"
    )


def write_result(mutant: Mutant, line: str) -> None:
    """Write a mutant's row to the table, in catalogue order; keep other rows if they are from today."""
    head, *lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else [""]
    rows_by_name = {one.partition(" | ")[0]: one for one in lines if head == header()} | {mutant.name: line}
    rows = [rows_by_name[one.name] for one in MUTANTS if one.name in rows_by_name]
    RESULTS.write_text("\n".join([header(), *rows]) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="only mutants with this in their name or path"
    )
    parser.add_argument("--whole", action="store_true", help="run every test if the listed ones do not kill the mutant")
    parser.add_argument("--sane", action="store_true", help="only check that the listed tests pass without a mutant")
    parser.add_argument(
        "--timeout", type=float, default=900, metavar="S", help="time limit of a run in seconds (%(default)g)"
    )
    parser.add_argument("--write", action="store_true", help="store the rows in tests/mutants/results.txt")
    options = parser.parse_args()
    selected = [one for one in MUTANTS if any(text in one.name or text in one.path for text in options.only)]
    if not selected:
        parser.error(f"no mutant has {' or '.join(options.only)} in its name or path")
    counts = {True: 0, False: 0}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = WorkingCopy(Path(folder).resolve(), options.timeout)
        if options.sane:
            status, printed = copy.run([*PYTEST, *sorted({f"tests/{name}" for one in selected for name in one.tests})])
            print(printed)
            return int(status != 0)
        for mutant in selected:
            if lacks := missing_requirements(mutant):
                print(f"{mutant.name} | skipped: needs {lacks}", flush=True)
                continue
            start = time.perf_counter()
            killed, killer = copy.kills(mutant, options.whole)
            line = [mutant.name, "killed" if killed else "SURVIVED", killer, f"{time.perf_counter() - start:.0f} s"]
            print(" | ".join(line), flush=True)
            counts[killed] += 1
            if options.write:
                write_result(mutant, " | ".join(line))
    print(f"{counts[True]} killed, {counts[False]} survived")
    return int(counts[False] > 0)


if __name__ == "__main__":
    sys.exit(main())
