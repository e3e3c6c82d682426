"""Fixtures, options and plugins of the whole suite."""

import gc
import os

import pytest

import legs
import minigrad as mg
import tiers
from browser import chrome, page, spare, watched  # imported here, so that each process starts one browser
from heavy_imports import HeavyImports
from minigrad.backends.devices import GPUS
from minigrad.core.storage import get_default_device
from minutes import TimeReport
from needs import LESSONS, SkipPolicy, is_available, needs
from schedule import ByModule, long_modules_first

__all__ = ["chrome", "page", "spare", "watched"]

if is_available("hypothesis"):
    from hypothesis import HealthCheck, given, settings
    from hypothesis.strategies import none

    # The same examples on every run, whatever the machine's speed.
    settings.register_profile("minigrad", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("minigrad")

    @given(none())
    def start_hypothesis(_):
        """Make Hypothesis create its generator, and look for what refers to it, which `gc.freeze` would hide."""


@pytest.fixture(scope="session")
def torch():
    needs("torch")
    import torch

    return torch


@pytest.fixture
def on_cpu():
    """Set the default device to ``cpu``; if Taichi runs on a GPU, NumPy computes its kernels."""
    previous = get_default_device()
    mg.set_default_device("cpu")
    yield
    mg.set_default_device(previous)


@pytest.fixture
def compiled_on_cpu(request):
    """Set the default device to ``cpu``, and skip the test unless Taichi's kernels compute there."""
    needs("taichi", "NumPy-accessible memory")
    request.getfixturevalue("on_cpu")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Skip a test, with the standard message, if it needs float64 and the GPU does not support it."""
    try:
        return (yield)
    except mg.errors.DTypeError as refusal:
        if str(refusal).startswith(f"float64: the device {get_default_device()} does not support float64."):
            needs("float64")
        raise


class ImmediateFailureReporter:
    """Prints the end of each failure report immediately, in case the run is cut off."""

    def __init__(self, terminal):
        self.terminal = terminal

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.terminal.ensure_newline()
            self.terminal.write_line("\n".join([report.nodeid, *report.longreprtext.splitlines()[-12:]]))


def pytest_collection_modifyitems(config, items):
    selected, deselected = tiers.select(items)
    selected, passed = config.pluginmanager.get_plugin("legs").split(selected)
    config.hook.pytest_deselected(items=[*deselected, *passed])
    items[:] = long_modules_first(selected)
    for item in items:
        if "import taichi" in getattr(getattr(item, "dtest", None), "docstring", ""):
            item.add_marker(pytest.mark.needs("taichi"))
        if item.path.suffix == ".ipynb" and item.path.name[:2] in LESSONS:
            item.add_marker(pytest.mark.needs(*LESSONS[item.path.name[:2]]))


def pytest_addoption(parser):
    parser.addoption("--minutes", metavar="FILE", help="write the time spent on each part of the suite to this file")
    parser.addoption("--leave", metavar="FILE", help="deselect the tests that another run recorded there as passed")


@pytest.hookimpl(trylast=True)  # after the terminal reporter is registered
def pytest_configure(config):
    gc.disable()  # until collection ends
    config.pluginmanager.register(SkipPolicy())
    config.pluginmanager.register(TimeReport(config))
    config.pluginmanager.register(legs.CiLegs(config), "legs")
    config.pluginmanager.register(HeavyImports(), "heavy imports")
    if terminal := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(ImmediateFailureReporter(terminal))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Exclude the 700,000 objects of collected tests from garbage collection: it would take 8 s on a slow machine."""
    if is_available("hypothesis"):
        start_hypothesis()
    gc.freeze()
    gc.enable()


def pytest_xdist_make_scheduler(config, log):
    return ByModule(config, log)


if os.environ.get("MINIGRAD_DEVICE"):  # run the whole suite on another device
    mg.set_default_device(os.environ["MINIGRAD_DEVICE"])
# A program that requests a GPU would switch Taichi to it, also for later tests.
if os.environ.get("MINIGRAD_DEVICE") != "cuda":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(autouse=True)
def _clear_deferred_checks():
    """Clear deferred error checks that a test left unread, so that the next test does not raise them."""
    yield
    if get_default_device() in GPUS:
        from minigrad.backends.taichi.runtime import deferred_checks

        deferred_checks.clear_errors()


collect_ignore = ["torch_code"]  # programs for PyTorch that tests load
if get_default_device() not in GPUS:
    collect_ignore.append("gpu")
