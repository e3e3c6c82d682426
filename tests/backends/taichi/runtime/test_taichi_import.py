"""Import of Taichi: what minigrad spares it, and what it leaves as it was."""

import subprocess
import sys

from needs import needs

needs("taichi")


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_inspect_never_searches_all_modules_for_a_caller():
    """Taichi inspects the caller of each of its decorators; each search took as long as a small operation."""
    assert run("""
import inspect, os, sys
import minigrad as mg
mg.tensor
resolved, realpath = [], os.path.realpath
def count(path, **options):  # a search resolves the file of each module
    if sys._getframe(1).f_globals["__name__"] == "inspect":
        resolved.append(path)
    return realpath(path, **options)
os.path.realpath = count
x = mg.tensor([1.0, 2.0], device="cpu", requires_grad=True)
(x * 2).sum().backward()
print(len(resolved), x.grad.tolist())
""") == ["0 [2.0, 2.0]"]


def test_garbage_collection_pauses_only_while_taichi_is_imported():
    assert run("""
import gc
import minigrad as mg
from minigrad.backends.taichi.runtime.taichi_import import import_taichi
collections = []
gc.callbacks.append(lambda phase, info: collections.append(phase))
mg.tensor
collections.clear()
import_taichi()
print(len(collections) < 4, gc.isenabled())
gc.disable()
import_taichi()
print(gc.isenabled())
""") == ["True True", "False"]


METHOD = """
import minigrad as mg
print((mg.ones(2, device="cpu") + 1).tolist())
import taichi as ti
@ti.data_oriented
class Doubler:
    @ti.kernel
    def double(self, x: ti.i32) -> ti.i32:
        return 2 * x
print(Doubler().double(21))
"""


def test_methods_of_taichi_classes_are_still_recognised(tmp_path):
    """Taichi recognises them by the source line of the frame that `inspect` finds."""
    (tmp_path / "doubler.py").write_text(METHOD)
    assert run(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import doubler") == ["[2.0, 2.0]", "42"]


def test_a_start_without_gpu_buffers_searches_no_objects():
    """Blocks lost by a restart are looked for among all objects; there are none before the first start."""
    assert run("""
import gc
import minigrad as mg
gc.get_objects = None
print((mg.ones(2, device="cpu") + 1).tolist())
""") == ["[2.0, 2.0]"]
