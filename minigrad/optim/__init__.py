"""Optimizers with PyTorch's names. The update of a parameter is one kernel launch, except for Muon.

>>> import minigrad as mg
>>> w = mg.tensor([3.0, -2.0], requires_grad=True)
>>> optimizer = mg.optim.Adam([w], lr=0.1)
>>> for _ in range(200):
...     optimizer.zero_grad()
...     ((w - 1.0) ** 2).sum().backward()
...     optimizer.step()
>>> [round(x, 2) for x in w.tolist()]
[1.0, 1.0]
"""

from typing import Any

from minigrad.optim import lr_scheduler
from minigrad.optim.adagrad import Adadelta, Adagrad, RMSprop
from minigrad.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from minigrad.optim.lion import Lion
from minigrad.optim.muon import Muon
from minigrad.optim.optimizer import Optimizer
from minigrad.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "lr_scheduler",
]


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
