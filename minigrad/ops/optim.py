"""Parameter updates. An optimizer step is one fused operation, and so one kernel launch, per parameter.

An update takes a parameter, its gradient and the optimizer state, all of the same shape, and returns the new parameter
and state. The optimizer passes `out` to update them in place. Updates are not differentiable. In the formulas g is the
gradient, negated by `maximize`, plus `weight_decay` times the parameter; letters on the right are values before the
step unless primed. See `optim` for the sources.
"""

from __future__ import annotations

from minigrad.core.op import Op

__all__ = [
    "adadelta_step",
    "adagrad_step",
    "adam_step",
    "adamax_step",
    "amsgrad_step",
    "lion_step",
    "momentum_step",
    "nadam_step",
    "radam_step",
    "rmsprop_centered_momentum_step",
    "rmsprop_centered_step",
    "rmsprop_momentum_step",
    "rmsprop_step",
    "sgd_step",
]


def _declare_update(name: str, formula: str, state: str, attrs: str) -> Op:
    """Declare an update. `state` and `attrs` contain names separated by spaces."""
    inputs = ("p", "grad", *state.split())
    attr_names = (*attrs.split(), "weight_decay", "maximize")
    return Op(
        name,
        formula,
        vjp=(None,) * len(inputs),
        inputs=inputs,
        attrs=attr_names,
        outputs=len(inputs) - 1,
        promotes="float",
    )


_ADAM = "lr beta1 beta2 eps decoupled step"
_RMSPROP = "lr alpha eps momentum"

sgd_step = _declare_update("sgd_step", r"{p} - \eta {grad}", "", "lr")
momentum_step = _declare_update(
    "momentum_step", r"{p} - \eta (\mu {b} + (1 - \tau) {grad})", "b", "lr momentum dampening nesterov"
)
adam_step = _declare_update("adam_step", r"{p} - \eta \frac{\hat {m}}{\sqrt{\hat {v}} + \epsilon}", "m v", _ADAM)
amsgrad_step = _declare_update(
    "amsgrad_step", r"{p} - \eta \frac{\hat {m}}{\sqrt{\hat {w}} + \epsilon}", "m v w", _ADAM
)
nadam_step = _declare_update(
    "nadam_step",
    r"{p} - \eta \frac{\bar {m}}{\sqrt{\hat {v}} + \epsilon}",
    "m v",
    f"{_ADAM} mu next_mu mu_product",
)
radam_step = _declare_update("radam_step", r"{p} - \eta r \frac{\hat {m}}{\sqrt{\hat {v}} + \epsilon}", "m v", _ADAM)
adamax_step = _declare_update("adamax_step", r"{p} - \eta \frac{\hat {m}}{{u}}", "m u", "lr beta1 beta2 eps step")
adagrad_step = _declare_update("adagrad_step", r"{p} - \eta \frac{{grad}}{\sqrt{{s}} + \epsilon}", "s", "lr eps")
adadelta_step = _declare_update(
    "adadelta_step", r"{p} - \eta \frac{\sqrt{{d} + \epsilon}}{\sqrt{{s} + \epsilon}} {grad}", "s d", "lr rho eps"
)
rmsprop_step = _declare_update("rmsprop_step", r"{p} - \eta \frac{{grad}}{\sqrt{{s}} + \epsilon}", "s", _RMSPROP)
rmsprop_momentum_step = _declare_update(
    "rmsprop_momentum_step",
    r"{p} - \eta (\mu {b} + \frac{{grad}}{\sqrt{{s}} + \epsilon})",
    "s b",
    _RMSPROP,
)
rmsprop_centered_step = _declare_update(
    "rmsprop_centered_step", r"{p} - \eta \frac{{grad}}{\sqrt{{s} - {a}^2} + \epsilon}", "s a", _RMSPROP
)
rmsprop_centered_momentum_step = _declare_update(
    "rmsprop_centered_momentum_step",
    r"{p} - \eta (\mu {b} + \frac{{grad}}{\sqrt{{s} - {a}^2} + \epsilon})",
    "s a b",
    _RMSPROP,
)
lion_step = _declare_update(
    "lion_step",
    r"{p} - \eta (\operatorname{sign}(\beta_1 {m} + (1 - \beta_1) {grad}) + \lambda {p})",
    "m",
    "lr beta1 beta2",
)
