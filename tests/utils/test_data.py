"""The names of torch.utils.data can be imported from minigrad.utils.data, and are those of `minigrad.data`."""

import subprocess
import sys

import minigrad as mg
from minigrad.utils.data import DataLoader, Dataset, TensorDataset, random_split


def test_the_names_are_those_of_minigrad_data():
    assert (DataLoader, Dataset, TensorDataset, random_split) == tuple(
        getattr(mg.data, name) for name in ("DataLoader", "Dataset", "TensorDataset", "random_split")
    )
    for name in mg.utils.data.__all__:
        assert getattr(mg.utils.data, name) is getattr(mg.data, name)


def test_a_pytorch_program_runs_with_its_import_replaced():
    torch = mg
    data = torch.utils.data.TensorDataset(torch.arange(4), torch.ones(4, 2))
    train, test = torch.utils.data.random_split(data, [3, 1], generator=torch.Generator().manual_seed(0))
    loader = torch.utils.data.DataLoader(train, batch_size=2, shuffle=True, num_workers=0, pin_memory=True)
    assert sorted(k for x, _ in loader for k in x.tolist()) == sorted(train.indices)
    assert len(test) == 1


def test_importing_minigrad_does_not_import_the_loader():
    code = (
        "import sys, minigrad.utils, minigrad.data; print([m for m in sys.modules if m.startswith('minigrad.data.')])"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert "minigrad.data.loader" not in child.stdout
    assert "minigrad.data.shipped" in child.stdout
