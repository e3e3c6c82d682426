"""`.ci/platforms` says what it needs before it makes anything; at night the tests of the device numpy run by it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from needs import needs

SCRIPT = Path(__file__).parents[2] / ".ci" / "platforms"


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["i386", "python3.14"])
def test_the_tests_of_the_numpy_device_pass(name, tmp_path):
    needs("debootstrap")
    code, printed, error = run(name, str(tmp_path / name))
    assert code == 0, printed[-5000:] + error[-5000:]
    assert re.search(r"\d{4} passed", printed)


def run(*arguments, path=os.environ["PATH"]):
    command = [shutil.which("bash"), SCRIPT, *arguments]
    child = subprocess.run(command, capture_output=True, text=True, env={"PATH": path})
    return child.returncode, child.stdout, child.stderr


def test_an_unknown_platform_is_refused():
    needs("POSIX")
    usage = "usage: .ci/platforms i386|python3.14 [FOLDER] [PYTEST'S ARGUMENTS]\n"
    assert run("sparc") == run() == (2, "", usage)


def test_missing_programs_are_named_and_nothing_is_made(tmp_path):
    needs("POSIX")
    (tmp_path / "bin").mkdir()
    for name in ("dirname", "id", "uname"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    code, printed, error = run("i386", str(tmp_path / "chroot"), path=str(tmp_path / "bin"))
    assert (code, printed) == (1, "")
    assert error.startswith("The tests on i386 need ")
    assert error.endswith("debootstrap; unshare; apt-get; none were run.\n")
    assert not (tmp_path / "chroot").exists()
