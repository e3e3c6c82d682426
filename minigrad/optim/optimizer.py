"""Optimizer: the base class of all optimizers, which stores parameter groups and the state of each parameter.

A subclass defines the update of one parameter, `update`; this class counts, validates, saves and loads.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from minigrad.core import views
from minigrad.core.dispatch import dispatch
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, a_kind, caller, printable
from minigrad.core.grad_mode import enable_grad, no_grad
from minigrad.core.graph import grad_lock
from minigrad.core.modes import modes
from minigrad.core.op import Op
from minigrad.core.storage import common_place, host, memory, place_of
from minigrad.core.tensor import Tensor, wrap
from minigrad.functional.creation import tensor
from minigrad.optim.hooks import (
    Hooked,
    hooked,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

__all__ = ["Optimizer", "options", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

Limits = Mapping[str, tuple[float, float]]
RATE, SHARE = (0.0, float("inf")), (0.0, 1.0)  # half-open intervals: [0, inf), [0, 1)


def options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options among the `locals()` of a constructor: all arguments except the parameters."""
    return {name: x for name, x in arguments.items() if name not in ("self", "params", "__class__")}


class Optimizer(Hooked):
    """Base class of optimizers. `params` is an iterable of leaf tensors, or of dicts that define parameter groups.

    Each group has its tensors under "params" and may override options. Items may also be (name, tensor) pairs, as from
    ``model.named_parameters()``: the group then has "param_names". A numeric option may be a tensor of one element,
    which each step reads.

    `param_groups` lists the groups, completed from `defaults`; modify ``group["lr"]`` there. `state` maps each updated
    parameter to its state, on the same device and of the same dtype.

    A subclass defines ``update(p, grad, state, group)``, which modifies one parameter in place, and may declare in
    `limits` the half-open interval of each option.

    PyTorch's implementation options `foreach`, `fused` and `capturable` are stored in the groups and have no effect on
    results or speed: an update is one launch anyway. ``differentiable=True`` would change the result, to a
    differentiable step, and is rejected.

    Raises DTypeError if `params` is not an iterable of tensors or dicts, ArgumentError if it is empty, a tensor appears
    twice or not a leaf, an option is out of its limits, or for `differentiable`.

    >>> import minigrad as mg
    >>> class Halving(mg.optim.Optimizer):
    ...     def update(self, p, grad, state, group):
    ...         p.mul_(group["factor"])
    >>> x = mg.tensor([2.0, 4.0], requires_grad=True)
    >>> optimizer = Halving([x], {"factor": 0.5})
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([1., 2.], requires_grad=True)
    """

    limits: ClassVar[Limits] = {}
    traceable: ClassVar[bool] = False
    """Whether `update` only passes options such as ``group["lr"]`` to operations, or computes with them by Python
    operators: then a replay of `mg.jit` reads them at each step. Otherwise it retraces when one changes."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = hooked(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        self.defaults = dict(defaults)
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._place: tuple[str, int] | None = None  # the user's line that called `step`
        self.steps = 0  # step count, for schedulers to detect a wrong call order
        if isinstance(params, Tensor | str) or not isinstance(params, Iterable):
            raise DTypeError(
                f"{self.name}: params should be an iterable of tensors or dicts, but got {a_kind(params)}.\n"
                f"  Write {self.name}(model.parameters(), …), or {self.name}([x], …) for one tensor."
            )
        given = list(params)
        if not given:
            raise ArgumentError(f"{self.name}: got an empty parameter list; an iterator can be consumed only once.")
        for group in given if isinstance(given[0], Mapping) else [{"params": given}]:
            self.add_param_group(group)

    @property
    def name(self) -> str:
        """The class name."""
        return type(self).__name__

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Update the parameter `p` in place by its gradient, inside ``no_grad``, and store any state in `state`."""
        raise NotImplementedError(f"{self.name} must define update(self, p, grad, state, group).")

    @hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. `closure` first reevaluates the loss, which is then returned.

        Raises ShapeError or DTypeError if a gradient or state no longer matches its parameter.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._place = caller()
        for listener in modes.optimizer_stepping:
            listener.optimizer_stepping(self)
        with no_grad():
            for group in self.param_groups:
                options = group
                for x in group.values():
                    if x.__class__ is Tensor or (x.__class__ is tuple and Tensor in map(type, x)):
                        options = {name: self._number(name, x) for name, x in group.items()}
                        break
                for p in group["params"]:
                    if p.grad is not None:
                        self.update(p, p.grad, self.state[p], options)
        self.steps += 1
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients to None, or to zeros if `set_to_none` is False."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                else:
                    with grad_lock:
                        if p.grad is not None:
                            p.grad = p.grad.detach()
                            p.grad.zero_()

    def _number(self, name: str, x: Any) -> Any:
        """Return option `name` with tensors of one element, also in a tuple, converted to Python scalars."""
        if x.__class__ is tuple:
            return tuple([self._number(name, one) for one in x])
        if x.__class__ is not Tensor:
            return x
        if x.numel() != 1:
            raise ArgumentError(f"{self.name}: tensor {name} must be 1-element, but got shape {x.shape}.")
        for listener in modes.option_read:
            x = listener.option_read(self, name, x)
        return _item(x) if x.__class__ is Tensor else x

    # --- for subclasses ---

    def memory(self, state: dict[str, Any], p: Tensor, *names: str, value: float = 0.0) -> list[Tensor]:
        """Return the state tensors `names`, with the shape and dtype of `p`; missing ones are filled with `value`."""
        for name in names:
            if state.get(name) is None:
                state[name] = wrap(memory(place_of(p._array)).full(p.shape, p._array.dtype, value))
        return [state[name] for name in names]

    def apply(
        self, op: Op, p: Tensor, grad: Tensor, kept: list[Tensor], group: Mapping[str, Any] | None = None, **attrs: Any
    ) -> None:
        """Run `op` on `p`, its gradient and its state `kept`, in one launch and in place.

        The attributes of `op` come from `group` and `attrs`.
        """
        attrs = {**{name: group[name] for name in op.attrs if name in group}, **attrs} if group else attrs
        array = p._array
        given = (array, grad._array, *[x._array for x in kept])
        for x in given[1:]:
            if x.shape != array.shape or x.dtype is not array.dtype:
                self._refuse(p, x)
        place = common_place(given, f"{self.name}.step")
        if not array.flags.carray:
            views.check_memory(p, f"{self.name}.step")
        out: Any = (array, *given[2:]) if kept else array
        if modes.keeps_operands:
            given = tuple([x.copy() for x in given])
        for x in (p, *kept):
            (x._storage or x.storage).written(op.name, place=self._place)
        dispatch(op.name, place, given, attrs, out)

    def _refuse(self, p: Tensor, x: Any) -> None:
        raise (ShapeError if x.shape != p.shape else DTypeError)(
            f"{self.name}.step: a parameter of shape {p.shape} and dtype {p.dtype.name} has a gradient or optimizer "
            f"state of shape {tuple(x.shape)} and dtype {x.dtype.name}.\n"
            "  Create the optimizer after converting the model."
        )

    # --- groups ---

    def add_param_group(self, param_group: Any) -> None:
        """Add a param group, ``{"params": …}`` with options that override the defaults. Raises as the constructor."""
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise DTypeError(
                f'{self.name}: param_group must be a dict with its tensors under "params", but got {param_group!r:.80}.'
            )
        params = param_group["params"]
        if isinstance(params, set | frozenset):
            raise DTypeError(f"{self.name}: parameters must be in an ordered collection, but got a set; pass a list.")
        group = {**self.defaults, **param_group, "params": [params] if isinstance(params, Tensor) else list(params)}
        self._take_names(group)
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise DTypeError(
                    f"{self.name}: can only optimize tensors, but one of the params is {a_kind(p)}: {p!r:.80}."
                )
            if not p.is_leaf:
                raise ArgumentError(
                    f"{self.name}: can't optimize a non-leaf tensor, of shape {p.shape}: an operation computed it.\n"
                    "  Pass the leaves that it was computed from, or x.detach().requires_grad_()."
                )
            if id(p) in known:
                raise ArgumentError(
                    f"{self.name}: a parameter of shape {p.shape} appears more than once, in one or several groups.\n"
                    "  model.parameters() yields each once, even if it is shared."
                )
            known.add(id(p))
        self._check(group)
        self.param_groups.append(group)

    def _take_names(self, group: dict[str, Any]) -> None:
        """Separate the names of (name, parameter) pairs into "param_names"; all groups have names, or none has."""
        named = [x for x in group["params"] if isinstance(x, tuple) and len(x) == 2]
        if named:
            group["param_names"] = [name for name, _ in named]
            group["params"] = [x[1] if isinstance(x, tuple) else x for x in group["params"]]
        others = ["param_names" in other for other in self.param_groups]
        if len(named) not in (0, len(group["params"])) or ("param_names" not in group) in others:
            raise ArgumentError(
                f"{self.name}: all parameters of all groups should be with names, or none.\n"
                "  Pass model.named_parameters(), or model.parameters()."
            )

    def _check(self, group: dict[str, Any]) -> None:
        if group.get("differentiable"):
            raise ArgumentError(
                f"{self.name}: differentiable=True is not supported: steps update the parameters in place, outside the "
                "graph.\n"
                "  Write a differentiable step yourself: w = w - lr * grad(loss, w, create_graph=True)[0]."
            )
        if group.get("foreach") and group.get("fused"):
            raise ArgumentError(
                f"{self.name}: `fused` and `foreach` cannot be True together.\n"
                "  Leave both out: they have no effect here."
            )
        for name, (low, end) in self.limits.items():
            values = group[name] if isinstance(group[name], tuple | list) else (group[name],)
            if name == "betas" and len(values) != 2:
                raise ArgumentError(
                    f"{self.name}: expected two betas, such as (0.9, 0.999), but got betas={group[name]!r}."
                )
            for value in values:
                value = self._number(name, value)
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise DTypeError(f"{self.name}: invalid {name}={group[name]!r}: expected int or float.")
                if not low <= value < end:
                    limits = "0 or more" if end == RATE[1] else f"within [{low:g}, {end:g})"
                    raise ArgumentError(f"{self.name}: invalid {name}={group[name]!r}: it must be {limits}.")

    # --- serialisation ---

    def state_dict(self) -> dict[str, Any]:
        """Return the state, by parameter index, and the param groups, in PyTorch's layout.

        Its tensors are the optimizer's own: the next step modifies them.

        >>> import minigrad as mg
        >>> x = mg.ones(2, requires_grad=True)
        >>> mg.optim.SGD([x], lr=0.1).state_dict()["param_groups"][0]["params"]
        [0]
        """
        self._called("saving")
        params = [p for group in self.param_groups for p in group["params"]]
        number = {id(p): k for k, p in enumerate(params)}
        groups = [{**group, "params": [number[id(p)] for p in group["params"]]} for group in self.param_groups]
        known: dict[Any, Any] = {
            number.get(id(p), p): copy.copy(kept)
            for p, kept in self.state.items()
            if id(p) in number or not isinstance(p, Tensor)
        }
        found: dict[str, Any] = self._called("saved", {"state": known, "param_groups": groups})
        return found

    def load_state_dict(self, state_dict: Any) -> None:
        """Load the result of `state_dict`, or PyTorch's. Parameters are identified by their order in the groups.

        Tensors of either library are copied to the device and dtype of their parameter. Raises, before changing
        anything, ArgumentError if the groups differ, ShapeError if a state tensor does not have its parameter's shape.
        """
        if isinstance(state_dict, Mapping):
            state_dict = self._called("loading", dict(state_dict))
        if not isinstance(state_dict, Mapping) or not {"param_groups", "state"} <= state_dict.keys():
            given = f"one with {list(state_dict)}" if isinstance(state_dict, Mapping) else a_kind(state_dict)
            raise DTypeError(
                f"{self.name}.load_state_dict: expected a dict with 'state' and 'param_groups', but got {given}.\n"
                "  Write load_state_dict(other.state_dict())."
            )
        groups, saved = self.param_groups, list(state_dict["param_groups"])
        counts = [len(group["params"]) for group in groups], [len(group["params"]) for group in saved]
        if counts[0] != counts[1]:
            raise ArgumentError(
                f"{self.name}.load_state_dict: the loaded state dict has parameter groups of sizes {counts[1]} that "
                f"don't match the optimizer's, {counts[0]}.\n  Create the optimizer with the same model and groups."
            )
        pairs = [zip(new["params"], old["params"], strict=True) for new, old in zip(saved, groups, strict=True)]
        of = dict(chain.from_iterable(pairs))
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for k, kept in state_dict["state"].items():
            if k in of:
                state[of[k]] = {name: self._loaded(name, x, of[k]) for name, x in kept.items()}
            elif isinstance(k, int):
                raise ArgumentError(
                    f"{self.name}.load_state_dict: there is state of parameter {k}, which is in no group."
                )
            else:
                state[k] = copy.deepcopy(kept)  # state of no parameter
        completed = [
            {**old, **{name: _option(x) for name, x in new.items()}, "params": old["params"]}
            for old, new in zip(groups, saved, strict=True)
        ]
        for group in completed:
            self._check(group)
        self.__setstate__({"state": state, "param_groups": completed})
        self._called("loaded")

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy or pickle: all except the hooks, as in PyTorch."""
        return {name: x for name, x in vars(self).items() if name != "_hooks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a copy or of `load_state_dict`. Override it to complete older groups."""
        vars(self).update(state)

    def _loaded(self, name: str, x: Any, p: Tensor) -> Any:
        if isinstance(x, Mapping):
            return {key: self._loaded(key, one, p) for key, one in x.items()}
        if type(x) in (list, tuple):
            return type(x)([self._loaded(name, one, p) for one in x])
        numbers = host(x._array) if isinstance(x, Tensor) else x.detach().cpu().numpy() if hasattr(x, "detach") else x
        if not isinstance(numbers, np.ndarray):
            return x
        if name == "step" or (numbers.shape == () and p.shape != ()):  # a Python scalar here, a tensor in PyTorch
            return int(numbers) if name == "step" else float(numbers)
        if numbers.shape != p.shape:
            raise ShapeError(
                f"{self.name}.load_state_dict: size mismatch: {name} has shape {numbers.shape}, but its parameter has "
                f"{p.shape}.\n  The parameters are in another order, or belong to another model."
            )
        return wrap(memory(place_of(p._array)).copied(np.array(numbers, p._array.dtype, order="C")))

    def __repr__(self) -> str:
        lines = [f"{self.name} ("]
        for k, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return printable("\n".join([*lines, ")"]))


def _item(x: Tensor) -> float:
    """Return the element of a one-element tensor."""
    return memory(place_of(x._array)).host(x._array).reshape(-1)[0].item()  # type: ignore[no-any-return]


def _option(x: Any) -> Any:
    """Copy an option of a group, converting PyTorch tensors."""
    if isinstance(x, tuple):
        return tuple([_option(one) for one in x])
    if hasattr(x, "detach") and not isinstance(x, Tensor):
        x = tensor(x.detach().cpu().numpy())
    return x.detach().clone() if isinstance(x, Tensor) else copy.deepcopy(x)
