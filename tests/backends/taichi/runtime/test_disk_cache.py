"""The disk cache of compiled kernels: Taichi also works without a home folder, and without a writable one."""

import os
import subprocess
import sys
import time

import pytest

from minigrad.cli import doctor
from needs import needs

needs("taichi", "POSIX")

COMPUTE = "import minigrad as mg; print((mg.ones(3) * 2).sum().item())"
NO_PASSWORD_ENTRY = """
import pwd
def unknown(uid): raise KeyError(uid)
pwd.getpwuid = unknown
"""
FULL_DISK = """
import errno, tempfile
class Full:
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def write(self, data): raise OSError(errno.ENOSPC, "No space left on device")
tempfile.TemporaryFile = lambda dir: Full()
"""
NO_TEMPORARY_FOLDER = """
import tempfile
def nowhere(): raise FileNotFoundError(2, "No usable temporary directory found")
tempfile.TemporaryDirectory = nowhere
"""


def compute(before="", **changes):
    """Run a child process that computes, with these environment variables changed, or unset for None."""
    variables = {**os.environ, "MINIGRAD_DEVICE": "cpu", **changes}
    environment = {name: value for name, value in variables.items() if value is not None}
    code = f"{before}\n{COMPUTE}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)


@pytest.mark.parametrize("home", [None, ""])
def test_without_home_the_password_database_is_used(tmp_path, home):
    listed = f"import pwd, types\npwd.getpwuid = lambda uid: types.SimpleNamespace(pw_dir={str(tmp_path)!r})"
    done = compute(listed, HOME=home, XDG_CACHE_HOME=None, TI_OFFLINE_CACHE_FILE_PATH=None)
    assert (done.returncode, done.stdout, done.stderr) == (0, "6.0\n", "")
    assert any((tmp_path / ".cache" / "taichi" / "ticache").iterdir())


def test_without_any_home_a_warning_explains_why(tmp_path):
    done = compute(
        NO_PASSWORD_ENTRY, HOME=None, XDG_CACHE_HOME=None, TI_OFFLINE_CACHE_FILE_PATH=None, TMPDIR=str(tmp_path)
    )
    assert (done.returncode, done.stdout) == (0, "6.0\n")
    assert "Compiled kernels cannot be cached in the home folder, which is unknown: HOME is not set" in done.stderr
    assert not any(tmp_path.iterdir())  # the temporary folder was removed


@pytest.mark.parametrize(
    ("before", "folder", "reason"),
    [("", "file/cache", "Not a directory"), (FULL_DISK, "cache", "No space left on device")],
    ids=["no folder", "full disk"],
)
def test_an_unwritable_folder_warns_with_the_reason(tmp_path, before, folder, reason):
    (tmp_path / "file").write_text("")
    place = str(tmp_path / folder)
    done = compute(before, TI_OFFLINE_CACHE_FILE_PATH=place)
    assert (done.returncode, done.stdout) == (0, "6.0\n")
    assert (
        f"Compiled kernels cannot be cached in {place} ({reason}), so each process compiles them again.\n"
        in done.stderr
    )


@pytest.mark.parametrize(("age", "stays"), [(3600, False), (10, True)], ids=["killed", "at work"])
def test_a_stale_lock_is_removed(tmp_path, age, stays):
    """With a stale lock, nothing was read or written, and each process silently compiled all its kernels."""
    lock = tmp_path / "ticache.lock"
    lock.touch()
    os.utime(lock, (time.time() - age, time.time() - age))
    done = compute(TI_OFFLINE_CACHE_FILE_PATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "6.0\n", "")
    assert (lock.exists(), any(tmp_path.glob("*.tic"))) == (stays, not stays)


def test_without_a_temporary_folder_the_error_suggests_numpy(tmp_path):
    (tmp_path / "file").write_text("")
    done = compute(NO_TEMPORARY_FOLDER, TI_OFFLINE_CACHE_FILE_PATH=str(tmp_path / "file" / "cache"))
    assert done.returncode == 1
    assert "DeviceError: cpu: compiled kernels cannot be cached in " in done.stderr
    assert "nor in a temporary folder: No usable temporary directory found.\n" in done.stderr
    assert done.stderr.rstrip().endswith('or compute with NumPy: mg.set_default_device("numpy").')


def test_doctor_names_an_unwritable_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(doctor, "_installed_version", lambda package: None)
    said = doctor._test_device("cpu")
    assert said.startswith(f"Compiled kernels cannot be cached in {tmp_path}/file/cache (Not a directory)")
    monkeypatch.setattr(doctor, "_test_device", lambda device: said)
    assert list(doctor._check_devices()) == [doctor.Finding("ok", "device numpy", said)]
