"""Import paths from before the packages were renamed, and public modules available under an alias."""

import subprocess
import sys
from importlib import import_module

import pytest

import minigrad as mg

RENAMED = mg._MOVED_MODULES
# The modules of the last tree before the packages were renamed, without those that users do not import by file: below
# `backends`, `functional`, `cli` and `lessons`.
OLD_MODULES = """
autograd autograd.anomaly autograd.function autograd.functional backends check cli creation cuda data data.cifar
data.collate data.dataset data.freeze data.idx data.known data.loader data.official data.sampler data.shipped
data.tables data.text data.toys data.transforms data.workers distributed distributed.engine distributed.fitting
distributed.flat distributed.replica distributed.sweeps distributed.sweeps.asking distributed.sweeps.function
distributed.sweeps.plan distributed.sweeps.report distributed.sweeps.results distributed.sweeps.table
distributed.sweeps.trial distributed.sweeps.tuning distributed.team distributions distributions.distribution
distributions.kl dtypes effects engine errors functional generators graph io io.archive io.pickles io.tensors io.tree
io.whole kernels layout lessons linalg nn nn.activation nn.attention nn.containers nn.conv nn.dropout nn.embedding
nn.functional nn.hooks nn.init nn.layer nn.linear nn.loss nn.module nn.naming nn.norm nn.parameter nn.pooling
nn.printing nn.recurrent nn.scalar nn.shape nn.state nn.stateful nn.summary nn.transformer nn.utils nn.utils.normed
nn.utils.rnn op ops ops.activation ops.attention ops.bits ops.conv ops.elementwise ops.indexing ops.linalg ops.loss
ops.normalization ops.optim ops.pool ops.random ops.reduce ops.sampling ops.shape ops.sorting optim optim.adagrad
optim.adam optim.hooks optim.lion optim.lr_scheduler optim.lr_scheduler.base optim.lr_scheduler.cycles
optim.lr_scheduler.factors optim.lr_scheduler.joined optim.lr_scheduler.plateau optim.muon optim.optimizer optim.sgd
own packages pytorch pytorch.advice pytorch.coverage pytorch.modules pytree random sources storage tape tidying
training training.evaluation training.fitting training.history training.progress training.run training.stopping utils
utils.data value views
"""
MOVED_NAMES = {
    "op": ["Plan"],
    "engine": ["get_default_device", "set_default_device"],
    "graph": [
        *("Scope", "enable_grad", "inference_mode", "is_grad_enabled", "keep_lines", "keep_operands", "no_grad"),
        *("scope", "set_grad_enabled", "strict_shapes"),
    ],
}


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_path_imports_the_same_module_with_a_warning(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"minigrad.{name}", raising=False)
    vars(mg).pop(name, None)
    with pytest.warns(DeprecationWarning, match=rf"minigrad\.{name} has moved to minigrad\.{RENAMED[name]};") as warned:
        module = import_module(f"minigrad.{name}")
    assert len(warned) == 1
    assert module is import_module(f"minigrad.{RENAMED[name]}")
    vars(mg).pop(name, None)
    if "." in name or name in ("layout", "storage"):  # a submodule, or a name that PyTorch uses
        return
    with pytest.warns(DeprecationWarning, match=name) as warned:
        assert getattr(mg, name) is module
    assert warned[0].filename == __file__


def test_the_warning_points_at_the_import_statement():
    code = "import warnings; warnings.simplefilter('error'); from minigrad.graph import Node"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'File "<string>", line 1, in <module>' in child.stderr
    assert child.stderr.endswith(
        f"minigrad.graph has moved to minigrad.{RENAMED['graph']}; the old name will be removed in the next release.\n"
    )


@pytest.mark.parametrize("name", mg._ALIASES)
def test_public_modules_are_found_without_a_warning(name):
    code = f"import warnings; warnings.simplefilter('error'); import minigrad.{name}; print(minigrad.{name}.__name__)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (child.stdout, child.stderr) == (f"minigrad.{mg._ALIASES[name]}\n", "")


def test_every_old_module_is_importable():
    assert set(RENAMED) <= set(OLD_MODULES.split())
    code = f"from importlib import import_module\nfor name in {OLD_MODULES.split()}: import_module('minigrad.' + name)"
    child = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert child.stderr == ""


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in MOVED_NAMES.items() for name in names]
)
def test_a_moved_name_is_still_available_with_a_warning(module, name):
    vars(mg).pop(module, None)
    with pytest.warns(DeprecationWarning, match=rf"minigrad\.{module} has moved"):
        old = getattr(mg, module)
    with pytest.warns(
        DeprecationWarning, match=rf"minigrad\.{module}\.{name} has moved to minigrad\.{mg._NEW_MODULES[module]}\.\w+;"
    ) as warned:
        value = getattr(old, name)
    assert value is getattr(import_module(f"minigrad.{mg._NEW_MODULES[module]}"), mg._RENAMED_NAMES.get(name, name))
    assert warned[0].filename == __file__


def test_an_unknown_name_raises_under_the_old_path_too():
    code = "from minigrad.graph import no_grad; from minigrad.graph import nonsense"
    child = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: cannot import name 'nonsense' from 'minigrad.core.graph'" in child.stderr
