"""Functional gradients: `grad` returns the gradients that ``backward`` would accumulate."""

from minigrad.autograd.anomaly import detect_anomaly
from minigrad.autograd.function import Function
from minigrad.autograd.functional import hessian, hvp, jacobian, jvp, vjp
from minigrad.autograd.gradcheck import gradcheck, gradgradcheck
from minigrad.autograd.gradients import backward, events, grad
from minigrad.autograd.value_fast_path import install_fast_path
from minigrad.core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from minigrad.core.value import Value

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "events",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "hessian",
    "hvp",
    "inference_mode",
    "jacobian",
    "jvp",
    "no_grad",
    "set_grad_enabled",
    "vjp",
]

install_fast_path(Value)
