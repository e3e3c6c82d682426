"""Layers: attributes that their forward pass reads."""

from __future__ import annotations

from functools import partial

import minigrad as mg
from adversary import Knob, scene
from adversary.modules import module_scene

nn = mg.nn


LAYERS = {
    "LayerNorm.eps": (lambda: nn.LayerNorm(3), [1e-5, 0.5]),
    "LayerNorm.normalized_shape": (lambda: nn.LayerNorm((3,), elementwise_affine=False), [(3,), (2, 3)]),
    "BatchNorm1d.momentum": (lambda: nn.BatchNorm1d(3), [0.1, 0.5]),
    "BatchNorm1d.eps": (lambda: nn.BatchNorm1d(3), [1e-5, 0.5]),
    "BatchNorm1d.track_running_stats": (lambda: nn.BatchNorm1d(3).eval(), [True, False]),
    "GroupNorm.num_groups": (lambda: nn.GroupNorm(3, 3), [3, 1]),
    "RMSNorm.eps": (lambda: nn.RMSNorm(3), [1e-5, 0.5]),
    "Dropout.p": (lambda: nn.Dropout(0.5), [0.5, 0.25]),
    "LeakyReLU.negative_slope": (lambda: nn.LeakyReLU(0.5), [0.5, 0.25]),
    "ELU.alpha": (lambda: nn.ELU(), [1.0, 0.5]),
    "GELU.approximate": (lambda: nn.GELU(), ["none", "tanh"]),
    "Softmax.dim": (lambda: nn.Softmax(1), [1, 0]),
    "Hardtanh.max_val": (lambda: nn.Hardtanh(), [1.0, 0.5]),
    "Threshold.threshold": (lambda: nn.Threshold(0.25, 9.0), [0.25, 1.75]),
    "Softplus.beta": (lambda: nn.Softplus(), [1, 2]),
    "Flatten.start_dim": (lambda: nn.Flatten(1), [1, 0]),
    "MaxPool1d.stride": (lambda: nn.MaxPool1d(2, 1), [1, 2]),
    "AvgPool1d.kernel_size": (lambda: nn.AvgPool1d(2, 1), [2, 1]),
    "ConstantPad1d.value": (lambda: nn.ConstantPad1d(1, 2.0), [2.0, 3.0]),
    "ConstantPad1d.padding": (lambda: nn.ConstantPad1d((1, 1), 2.0), [(1, 1), (0, 2)]),
    "Conv1d.padding": (lambda: nn.Conv1d(2, 1, 1), [(0,), (1,)]),
    "Conv1d.stride": (lambda: nn.Conv1d(2, 1, 1), [(1,), (2,)]),
    "Upsample.scale_factor": (lambda: nn.Sequential(nn.Unflatten(1, (1, 3)), nn.Upsample(scale_factor=2)), [2, 3]),
    "CrossEntropyLoss.label_smoothing": (lambda: LossModule(nn.CrossEntropyLoss()), [0.0, 0.5]),
    "CrossEntropyLoss.reduction": (lambda: LossModule(nn.CrossEntropyLoss()), ["mean", "sum", "none"]),
    "HuberLoss.delta": (lambda: LossModule(nn.HuberLoss()), [1.0, 0.5]),
}


class LossModule(nn.Module):
    """A loss against a constant target."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss
        self.target = mg.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])

    def forward(self, x):
        return self.loss(x, self.target)


for _name, (_make, _values) in LAYERS.items():

    @scene(_name)
    def _(world, name=_name, make=_make, values=_values):
        model = make()
        kind, _, attribute = name.partition(".")
        layer = next(part for part in model.modules() if type(part).__name__ == kind)
        return module_scene(model, Knob(partial(setattr, layer, attribute), values))
