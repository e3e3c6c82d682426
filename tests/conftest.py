"""What tests ask for by name, and how they are run."""

import gc
import os

import pytest

import legs
import minigrad as mg
import tiers
from browsing import chrome, page, spare, watched  # here, so that there is one browser a process
from heavy import HeavyImports
from minigrad.backends.devices import GPUS
from minigrad.core.storage import get_default_device
from minutes import Minutes
from needs import Skips, is_here, needs
from schedule import ByModule, long_modules_first

__all__ = ["chrome", "page", "spare", "watched"]

if is_here("hypothesis"):
    from hypothesis import HealthCheck, settings

    # The same examples each time, however slow the machine is.
    settings.register_profile("minigrad", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("minigrad")


@pytest.fixture(scope="session")
def torch():
    needs("torch")
    import torch

    return torch


@pytest.fixture
def on_cpu():
    """Tensors are made on ``cpu``, whatever the default device is; where Taichi runs on a GPU NumPy computes those."""
    before = get_default_device()
    mg.set_default_device("cpu")
    yield
    mg.set_default_device(before)


@pytest.fixture
def compiled_on_cpu(request):
    """The same, for what is about the kernels that compute there."""
    needs("memory that NumPy sees")
    request.getfixturevalue("on_cpu")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """On a GPU without float64 a test that asks for it is skipped where that is refused, in these words."""
    try:
        return (yield)
    except mg.errors.DTypeError as refusal:
        if str(refusal).startswith(f"float64: the device {get_default_device()} does not support float64."):
            needs("float64")
        raise


class ToldAtOnce:
    """The end of what each failure says, when it fails: of a run that is cut off, that is all there is."""

    def __init__(self, terminal):
        self.terminal = terminal

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.terminal.ensure_newline()
            self.terminal.write_line("\n".join([report.nodeid, *report.longreprtext.splitlines()[-12:]]))


def pytest_collection_modifyitems(config, items):
    kept, left = tiers.select(items)
    kept, passed = config.pluginmanager.get_plugin("legs").leave(kept)
    config.hook.pytest_deselected(items=[*left, *passed])
    items[:] = long_modules_first(kept)
    for item in items:
        if "import taichi" in getattr(getattr(item, "dtest", None), "docstring", ""):
            item.add_marker(pytest.mark.needs("taichi"))


def pytest_addoption(parser):
    parser.addoption("--minutes", metavar="FILE", help="write to this file where the minutes of the run go")
    parser.addoption("--leave", metavar="FILE", help="leave out what another run wrote there as passed")


@pytest.hookimpl(trylast=True)  # when there is a terminal
def pytest_configure(config):
    gc.disable()  # until all is collected
    config.pluginmanager.register(Skips())
    config.pluginmanager.register(Minutes(config))
    config.pluginmanager.register(legs.Legs(config), "legs")
    config.pluginmanager.register(HeavyImports(), "heavy imports")
    if terminal := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(ToldAtOnce(terminal))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """So many tests are 700,000 objects, through which each collection of garbage would go: 8 s on a slow machine."""
    gc.freeze()
    gc.enable()


def pytest_xdist_make_scheduler(config, log):
    return ByModule(config, log)


if os.environ.get("MINIGRAD_DEVICE"):  # the whole suite with tensors on another device
    mg.set_default_device(os.environ["MINIGRAD_DEVICE"])
# A program that asks for a GPU would move Taichi there, for the tests after it too.
if os.environ.get("MINIGRAD_DEVICE") != "cuda":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(autouse=True)
def _nothing_open():
    """What a kernel of one test found wrong, and nobody asked for, is not the next one's."""
    yield
    if get_default_device() in GPUS:
        from minigrad.backends.taichi.runtime import checks

        checks.forget()


collect_ignore = ["torch_code"]  # programs for PyTorch, which tests load
if get_default_device() not in GPUS:
    collect_ignore.append("gpu")
