"""Optimizer: what all optimizers share. It holds parameters in groups, and what it remembers of each.

A subclass says how one parameter is updated, in `update`; all that is counted, checked, saved and loaded is here.
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
RATE, SHARE = (0.0, float("inf")), (0.0, 1.0)  # from 0 on; from 0 up to, and without, 1


def options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options among the `locals()` of a constructor: all its arguments but the parameters."""
    return {name: x for name, x in arguments.items() if name not in ("self", "params", "__class__")}


class Optimizer(Hooked):
    """Parameters and how they are updated. `params` are leaves, or dicts of them under "params" with options of theirs.

    In place of a leaf may stand its name and it, as in ``model.named_parameters()``: a group then has "param_names". An
    option that is a number may be a tensor of one element, which is read at each step.

    `param_groups` are such dicts, completed from `defaults`; change ``group["lr"]`` there. `state` has for each
    parameter that was updated what is remembered of it, on its device and of its type.

    A subclass has a method ``update(p, grad, state, group)`` that changes one parameter and returns nothing, and may
    say in `limits` from where up to where each option goes.

    What PyTorch's optimizers are told of how a step is computed, `foreach`, `fused` and `capturable`, is taken and
    kept in the groups, and changes nothing here, neither numbers nor speed: each update is one launch in any case.
    ``differentiable=True`` would change what comes out, a step that gradients flow through, and is refused.

    Raises DTypeError where `params` is no iterable of tensors or dicts, ArgumentError where it is empty, a tensor is in
    it twice or is no leaf, an option is out of its limits, or a step is to be `differentiable`.

    >>> import minigrad as mg
    >>> class Halving(mg.optim.Optimizer):
    ...     def update(self, p, grad, state, group):
    ...         p.mul_(group["share"])
    >>> x = mg.tensor([2.0, 4.0], requires_grad=True)
    >>> optimizer = Halving([x], {"share": 0.5})
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([1., 2.], requires_grad=True)
    """

    limits: ClassVar[Limits] = {}
    traceable: ClassVar[bool] = False
    """Whether `update` hands its numbers, ``group["lr"]`` and the like, on to operations as they are, or computes with
    them by Python's operators: then `mg.jit` reads them anew at each step. Else it records again when one changes."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = hooked(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        self.defaults = dict(defaults)
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._place: tuple[str, int] | None = None  # the reader's line that steps
        self.steps = 0  # how often it stepped, for schedules to know whether they come too early
        if isinstance(params, Tensor | str) or not isinstance(params, Iterable):
            raise DTypeError(
                f"{self.name}: params is {a_kind(params)}, and not an iterable of tensors or dicts.\n"
                f"  Write {self.name}(model.parameters(), …), or {self.name}([x], …) for one tensor."
            )
        given = list(params)
        if not given:
            raise ArgumentError(
                f"{self.name}: there are no parameters to update; an iterator can be used up only once."
            )
        for group in given if isinstance(given[0], Mapping) else [{"params": given}]:
            self.add_param_group(group)

    @property
    def name(self) -> str:
        """What its class is called."""
        return type(self).__name__

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change the parameter `p` by its gradient; inside ``no_grad``. What is remembered of it goes into `state`."""
        raise NotImplementedError(f"{self.name}.update: say how a parameter is changed: def update(self, p, grad, …)")

    @hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. `closure`, called first, computes the loss again; it is returned.

        Raises ShapeError or DTypeError where a gradient or what is remembered no longer fits its parameter.
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
        """Forget the gradients: None, or filled with zeros where `set_to_none` is False."""
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
        """The option `name` as a number, where it is a tensor of one element; of a tuple each of them."""
        if x.__class__ is tuple:
            return tuple([self._number(name, one) for one in x])
        if x.__class__ is not Tensor:
            return x
        if x.numel() != 1:
            raise ArgumentError(f"{self.name}: {name} is a tensor of shape {x.shape}, and it is one number.")
        for listener in modes.option_read:
            x = listener.option_read(self, name, x)
        return _item(x) if x.__class__ is Tensor else x

    # --- what subclasses use ---

    def memory(self, state: dict[str, Any], p: Tensor, *names: str, value: float = 0.0) -> list[Tensor]:
        """What `state` has under `names`, tensors like `p`; filled with `value` where there is nothing yet."""
        for name in names:
            if state.get(name) is None:
                state[name] = wrap(memory(place_of(p._array)).full(p.shape, p._array.dtype, value))
        return [state[name] for name in names]

    def apply(
        self, op: Op, p: Tensor, grad: Tensor, kept: list[Tensor], group: Mapping[str, Any] | None = None, **attrs: Any
    ) -> None:
        """Update `p` and what is `kept` of it by `op`, in one launch, in place; with the options of `group` that it has
        for attributes, and others."""
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
            f"{self.name}.step: a parameter of shape {p.shape} and type {p.dtype.name} has a gradient, or a memory in "
            f"the optimizer, of shape {tuple(x.shape)} and type {x.dtype.name}.\n"
            "  Make the optimizer after the model has its shapes, types and device."
        )

    # --- groups ---

    def add_param_group(self, param_group: Any) -> None:
        """Update more parameters, ``{"params": …}`` and options that differ from the defaults. Raises as the class."""
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise DTypeError(
                f'{self.name}: a group is a dict with its tensors under "params", not {param_group!r:.80}.'
            )
        params = param_group["params"]
        if isinstance(params, set | frozenset):
            raise DTypeError(f"{self.name}: the parameters of a group have an order, and a set has none; give a list.")
        group = {**self.defaults, **param_group, "params": [params] if isinstance(params, Tensor) else list(params)}
        self._take_names(group)
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise DTypeError(f"{self.name}: it updates tensors, and got {a_kind(p)}: {p!r:.80}.")
            if not p.is_leaf:
                raise ArgumentError(
                    f"{self.name}: a tensor of shape {p.shape} is no leaf: an operation made it, and it has no "
                    "gradient.\n  Give the tensors that it was computed from, or x.detach().requires_grad_()."
                )
            if id(p) in known:
                raise ArgumentError(
                    f"{self.name}: a parameter of shape {p.shape} is given twice, and would be updated twice a step.\n"
                    "  model.parameters() has each once, also where a weight is shared."
                )
            known.add(id(p))
        self._check(group)
        self.param_groups.append(group)

    def _take_names(self, group: dict[str, Any]) -> None:
        """Part the names of parameters from them, where they have some: all of all groups, or none."""
        named = [x for x in group["params"] if isinstance(x, tuple) and len(x) == 2]
        if named:
            group["param_names"] = [name for name, _ in named]
            group["params"] = [x[1] if isinstance(x, tuple) else x for x in group["params"]]
        others = ["param_names" in other for other in self.param_groups]
        if len(named) not in (0, len(group["params"])) or ("param_names" not in group) in others:
            raise ArgumentError(
                f"{self.name}: either all parameters of all groups have a name, or none has.\n"
                "  Give model.named_parameters(), or model.parameters()."
            )

    def _check(self, group: dict[str, Any]) -> None:
        if group.get("differentiable"):
            raise ArgumentError(
                f"{self.name}: differentiable=True asks that gradients flow through the steps, which write over the "
                "parameters and are not recorded.\n"
                "  Write such a step as a formula: w = w - lr * grad(loss, w, create_graph=True)[0]."
            )
        if group.get("foreach") and group.get("fused"):
            raise ArgumentError(
                f"{self.name}: foreach=True and fused=True are two ways to compute a step; PyTorch takes one.\n"
                "  Leave both out: here they change nothing."
            )
        for name, (low, end) in self.limits.items():
            values = group[name] if isinstance(group[name], tuple | list) else (group[name],)
            if name == "betas" and len(values) != 2:
                raise ArgumentError(f"{self.name}: betas={group[name]!r}, and there are two: (0.9, 0.999), say.")
            for value in values:
                value = self._number(name, value)
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise DTypeError(f"{self.name}: {name}={group[name]!r} is not made of numbers.")
                if not low <= value < end:
                    limits = "0 or more" if end == RATE[1] else f"from {low:g} up to, and without, {end:g}"
                    raise ArgumentError(f"{self.name}: {name}={group[name]!r}, and it must be {limits}.")

    # --- saved and loaded ---

    def state_dict(self) -> dict[str, Any]:
        """What is remembered, by number of the parameter, and the options, in PyTorch's layout.

        Tensors in it are the optimizer's own: they change with the next step.

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
        """Go on from what `state_dict` returned, PyTorch's too: parameters are told by their order in the groups.

        Tensors, of either library, are copied to the device and type of their parameter. Raises, before anything is
        changed, ArgumentError where there are other groups, ShapeError where a memory is not of its parameter's shape.
        """
        if isinstance(state_dict, Mapping):
            state_dict = self._called("loading", dict(state_dict))
        if not isinstance(state_dict, Mapping) or not {"param_groups", "state"} <= state_dict.keys():
            given = f"one with {list(state_dict)}" if isinstance(state_dict, Mapping) else a_kind(state_dict)
            raise DTypeError(
                f"{self.name}.load_state_dict: it takes a dict with 'state' and 'param_groups', not {given}.\n"
                "  Another optimizer's is other.state_dict()."
            )
        groups, saved = self.param_groups, list(state_dict["param_groups"])
        counts = [len(group["params"]) for group in groups], [len(group["params"]) for group in saved]
        if counts[0] != counts[1]:
            raise ArgumentError(
                f"{self.name}.load_state_dict: here are groups of {counts[0]} parameters, and what is loaded has "
                f"groups of {counts[1]}.\n  Make the optimizer as the saved one was made, from the same model."
            )
        pairs = [zip(new["params"], old["params"], strict=True) for new, old in zip(saved, groups, strict=True)]
        of = dict(chain.from_iterable(pairs))
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for k, kept in state_dict["state"].items():
            if k in of:
                state[of[k]] = {name: self._loaded(name, x, of[k]) for name, x in kept.items()}
            elif isinstance(k, int):
                raise ArgumentError(f"{self.name}.load_state_dict: it remembers parameter {k}, which is in no group.")
            else:
                state[k] = copy.deepcopy(kept)  # what is remembered of no parameter
        completed = [
            {**old, **{name: _option(x) for name, x in new.items()}, "params": old["params"]}
            for old, new in zip(groups, saved, strict=True)
        ]
        for group in completed:
            self._check(group)
        self.__setstate__({"state": state, "param_groups": completed})
        self._called("loaded")

    def __getstate__(self) -> dict[str, Any]:
        """What a copy and a pickle have: all but the hooks, as in PyTorch."""
        return {name: x for name, x in vars(self).items() if name != "_hooks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over `state`, of a copy or of `load_state_dict`. A subclass may complete the groups of an older one."""
        vars(self).update(state)

    def _loaded(self, name: str, x: Any, p: Tensor) -> Any:
        if isinstance(x, Mapping):
            return {key: self._loaded(key, one, p) for key, one in x.items()}
        if type(x) in (list, tuple):
            return type(x)([self._loaded(name, one, p) for one in x])
        numbers = host(x._array) if isinstance(x, Tensor) else x.detach().cpu().numpy() if hasattr(x, "detach") else x
        if not isinstance(numbers, np.ndarray):
            return x
        if name == "step" or (numbers.shape == () and p.shape != ()):  # a number that PyTorch has as a tensor
            return int(numbers) if name == "step" else float(numbers)
        if numbers.shape != p.shape:
            raise ShapeError(
                f"{self.name}.load_state_dict: {name} has shape {numbers.shape}, and its parameter {p.shape}.\n"
                "  The parameters are in another order, or of another model."
            )
        return wrap(memory(place_of(p._array)).copied(np.array(numbers, p._array.dtype, order="C")))

    def __repr__(self) -> str:
        lines = [f"{self.name} ("]
        for k, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return printable("\n".join([*lines, ")"]))


def _item(x: Tensor) -> float:
    """The element of a tensor that has one."""
    return memory(place_of(x._array)).host(x._array).reshape(-1)[0].item()  # type: ignore[no-any-return]


def _option(x: Any) -> Any:
    """A copy of an option of a group; a tensor of PyTorch's as one of ours."""
    if isinstance(x, tuple):
        return tuple([_option(one) for one in x])
    if hasattr(x, "detach") and not isinstance(x, Tensor):
        x = tensor(x.detach().cpu().numpy())
    return x.detach().clone() if isinstance(x, Tensor) else copy.deepcopy(x)
