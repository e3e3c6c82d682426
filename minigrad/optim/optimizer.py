"""The base class of all optimizers, which stores the parameter groups and the state of each parameter.

A subclass defines `update`, which updates one parameter; this class counts steps, validates, saves and loads.
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
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, describe_type, printable, user_frame
from minigrad.core.grad_mode import enable_grad, no_grad
from minigrad.core.graph import grad_lock
from minigrad.core.modes import modes
from minigrad.core.op import Op
from minigrad.core.storage import common_device, device_of, get_allocator, to_numpy
from minigrad.core.tensor import Tensor, wrap
from minigrad.functional.creation import tensor
from minigrad.optim.hooks import (
    OptimizerHooksMixin,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    with_step_hooks,
)

__all__ = ["Optimizer", "constructor_options", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

Limits = Mapping[str, tuple[float, float]]
# Names of the options in PyTorch's error messages.
_OPTION_LABELS = {"betas": "beta parameter", "eps": "epsilon value", "lr": "learning rate"}
NON_NEGATIVE, UNIT_INTERVAL = (0.0, float("inf")), (0.0, 1.0)  # half-open intervals: [0, inf), [0, 1)


def constructor_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the optimizer options in the `locals()` of a constructor: all arguments except `params`."""
    return {name: x for name, x in arguments.items() if name not in ("self", "params", "__class__")}


class Optimizer(OptimizerHooksMixin):
    """Base class of optimizers. `params` is an iterable of leaf tensors, or of dicts that define parameter groups.

    Each group has its tensors under "params" and may override options. Items may also be (name, tensor) pairs, as from
    ``model.named_parameters()``: the group then has "param_names". A numeric option may be a tensor of one element;
    each step reads its value.

    `param_groups` lists the groups, with missing options from `defaults`; modify ``group["lr"]`` there. `state` maps
    each updated parameter to its state, on the same device and of the same dtype.

    A subclass defines ``update(p, grad, state, group)``, which modifies one parameter in place, and may declare in
    `limits` the half-open interval of each option.

    PyTorch's implementation options `foreach`, `fused` and `capturable` are stored in the groups and have no effect on
    results or speed, since an update is always a single launch. ``differentiable=True`` raises ArgumentError.

    Raises DTypeError if `params` is not an iterable of tensors or dicts, ArgumentError if it is empty, a tensor appears
    twice or not a leaf, an option is outside its limits, or for `differentiable`.

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
    """Whether `update` uses options such as ``group["lr"]`` only as arguments of operations and of Python operators.
    If so, a replay of `mg.jit` reads the options at each step; otherwise a changed option triggers a retrace."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = with_step_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        self.defaults = dict(defaults)
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._call_site: tuple[str, int] | None = None  # source line of the user's call of `step`
        self.steps = 0  # number of steps, by which schedulers detect a wrong call order
        if isinstance(params, Tensor | str) or not isinstance(params, Iterable):
            raise DTypeError(
                f"{self.name}: params should be an iterable of tensors or dicts, but got {describe_type(params)}.\n"
                f"  Write {self.name}(model.parameters(), …), or {self.name}([x], …) for one tensor."
            )
        param_list = list(params)
        if not param_list:
            raise ArgumentError(f"{self.name}: got an empty parameter list; an iterator can be consumed only once.")
        for group in param_list if isinstance(param_list[0], Mapping) else [{"params": param_list}]:
            self.add_param_group(group)

    @property
    def name(self) -> str:
        """The class name."""
        return type(self).__name__

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Update the parameter `p` in place by its gradient, inside ``no_grad``, and store any state in `state`."""
        raise NotImplementedError(f"{self.name} must define update(self, p, grad, state, group).")

    @with_step_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. If given, `closure` is called first and its loss is returned.

        Raises ShapeError or DTypeError if a gradient or state no longer matches its parameter.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._call_site = user_frame()
        for listener in modes.optimizer_stepping:
            listener.optimizer_stepping(self)
        with no_grad():
            for group in self.param_groups:
                options = group
                for x in group.values():
                    if x.__class__ is Tensor or (x.__class__ is tuple and Tensor in map(type, x)):
                        options = {name: self._read_option(name, x) for name, x in group.items()}
                        break
                for p in group["params"]:
                    if (grad := p.grad) is not None:
                        self.update(p, grad, self.state[p], options)
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

    def _read_option(self, name: str, x: Any) -> Any:
        """Convert the option `x`, or each item of a tuple, from a one-element tensor to a Python scalar."""
        if x.__class__ is tuple:
            return tuple([self._read_option(name, item) for item in x])
        if x.__class__ is not Tensor:
            return x
        if x.numel() != 1:
            raise ArgumentError(f"{self.name}: tensor {name} must be 1-element, but got shape {x.shape}.")
        for listener in modes.option_read:
            x = listener.option_read(self, name, x)
        return _item(x) if x.__class__ is Tensor else x

    # --- for subclasses ---

    def memory(self, state: dict[str, Any], p: Tensor, *names: str, value: float = 0.0) -> list[Tensor]:
        """Return the tensors `names` of `state`. Missing tensors are created like `p` and filled with `value`."""
        for name in names:
            if state.get(name) is None:
                state[name] = wrap(get_allocator(device_of(p._array)).full(p.shape, p._array.dtype, value))
        return [state[name] for name in names]

    def apply(
        self,
        op: Op,
        p: Tensor,
        grad: Tensor,
        buffers: list[Tensor],
        group: Mapping[str, Any] | None = None,
        **attrs: Any,
    ) -> None:
        """Update `p` and its state `buffers` in place, in one launch of `op`.

        The attributes of `op` come from `group` and `attrs`.
        """
        attrs = {**{name: group[name] for name in op.attrs if name in group}, **attrs} if group else attrs
        array = p._array
        inputs = (array, grad._array, *[x._array for x in buffers])
        shape, dtype = array.shape, array.dtype
        for x in inputs[1:]:
            if x.shape != shape or x.dtype is not dtype:
                self._raise_mismatch(p, x)
            if x.__class__ is not array.__class__:
                common_device(inputs, f"{self.name}.step")  # raises DeviceError
        if not array.flags.carray:
            views.check_memory(p, f"{self.name}.step")
        out: Any = (array, *inputs[2:]) if buffers else array
        if modes.keeps_operands:
            inputs = tuple([x.copy() for x in inputs])
        for x in (p, *buffers):
            (x._storage or x.storage).mark_written(op.name, location=self._call_site)
        dispatch(op.name, device_of(array), inputs, attrs, out)

    def _raise_mismatch(self, p: Tensor, x: Any) -> None:
        raise (ShapeError if x.shape != p.shape else DTypeError)(
            f"{self.name}.step: a parameter of shape {p.shape} and dtype {p.dtype.name} has a gradient or optimizer "
            f"state of shape {tuple(x.shape)} and dtype {x.dtype.name}.\n"
            "  Create the optimizer after converting the model."
        )

    # --- groups ---

    def add_param_group(self, param_group: Any) -> None:
        """Add a parameter group, a dict with its tensors under "params" and options that override the defaults.

        Raises the same errors as the constructor.
        """
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise DTypeError(
                f'{self.name}: param_group must be a dict with its tensors under "params", but got {param_group!r:.80}.'
            )
        params = param_group["params"]
        if isinstance(params, set | frozenset):
            raise DTypeError(f"{self.name}: parameters must be in an ordered collection, but got a set; pass a list.")
        group = {**self.defaults, **param_group, "params": [params] if isinstance(params, Tensor) else list(params)}
        self._split_names(group)
        existing_ids = {id(p) for other in self.param_groups for p in other["params"]}
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise DTypeError(
                    f"{self.name}: can only optimize tensors, but one of the params is {describe_type(p)}: {p!r:.80}."
                )
            if not p.is_leaf:
                raise ArgumentError(
                    f"{self.name}: can't optimize a non-leaf tensor, of shape {p.shape}: an operation computed it.\n"
                    "  Pass the leaves that it was computed from, or x.detach().requires_grad_()."
                )
            if id(p) in existing_ids:
                raise ArgumentError(
                    f"{self.name}: a parameter of shape {p.shape} appears more than once, in one or several groups.\n"
                    "  model.parameters() yields each once, even if it is shared."
                )
            existing_ids.add(id(p))
        self._check_group(group)
        self.param_groups.append(group)

    def _split_names(self, group: dict[str, Any]) -> None:
        """Move the names of (name, parameter) pairs to "param_names". Either all groups have names or none."""
        named_params = [x for x in group["params"] if isinstance(x, tuple) and len(x) == 2]
        if named_params:
            group["param_names"] = [name for name, _ in named_params]
            group["params"] = [x[1] if isinstance(x, tuple) else x for x in group["params"]]
        others_have_names = ["param_names" in other for other in self.param_groups]
        if len(named_params) not in (0, len(group["params"])) or ("param_names" not in group) in others_have_names:
            raise ArgumentError(
                f"{self.name}: all parameters of all groups should be with names, or none.\n"
                "  Pass model.named_parameters(), or model.parameters()."
            )

    def _check_group(self, group: dict[str, Any]) -> None:
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
        for name, (low, high) in self.limits.items():
            values = group[name] if isinstance(group[name], tuple | list) else (group[name],)
            if name == "betas" and len(values) != 2:
                raise ArgumentError(
                    f"{self.name}: expected two betas, such as (0.9, 0.999), but got betas={group[name]!r}."
                )
            for value in values:
                value = self._read_option(name, value)
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise DTypeError(f"{self.name}: invalid {name}={group[name]!r}: expected int or float.")
                if not low <= value < high:
                    interval = "0 or more" if high == NON_NEGATIVE[1] else f"within [{low:g}, {high:g})"
                    label = _OPTION_LABELS.get(name, f"{name} value")
                    raise ArgumentError(f"{self.name}: invalid {label}: {name}={group[name]!r} must be {interval}.")

    # --- serialisation ---

    def state_dict(self) -> dict[str, Any]:
        """Return a dict of the state, by parameter index, and the parameter groups, in PyTorch's format.

        The tensors are not copied: the next step modifies them.

        >>> import minigrad as mg
        >>> x = mg.ones(2, requires_grad=True)
        >>> mg.optim.SGD([x], lr=0.1).state_dict()["param_groups"][0]["params"]
        [0]
        """
        self._run_hooks("saving")
        params = [p for group in self.param_groups for p in group["params"]]
        index_of = {id(p): k for k, p in enumerate(params)}
        groups = [{**group, "params": [index_of[id(p)] for p in group["params"]]} for group in self.param_groups]
        state: dict[Any, Any] = {
            index_of.get(id(p), p): copy.copy(param_state)
            for p, param_state in self.state.items()
            if id(p) in index_of or not isinstance(p, Tensor)
        }
        result: dict[str, Any] = self._run_hooks("saved", {"state": state, "param_groups": groups})
        return result

    def load_state_dict(self, state_dict: Any) -> None:
        """Load the result of `state_dict`, or PyTorch's. Parameters are identified by their order in the groups.

        Tensors of either library are copied to the device and dtype of their parameter. Raises, before changing
        anything, ArgumentError if the groups differ, ShapeError if a state tensor does not have its parameter's shape.
        """
        if isinstance(state_dict, Mapping):
            state_dict = self._run_hooks("loading", dict(state_dict))
        if not isinstance(state_dict, Mapping) or not {"param_groups", "state"} <= state_dict.keys():
            description = (
                f"one with {list(state_dict)}" if isinstance(state_dict, Mapping) else describe_type(state_dict)
            )
            raise DTypeError(
                f"{self.name}.load_state_dict: expected a dict with 'state' and 'param_groups', but got "
                f"{description}.\n  Write load_state_dict(other.state_dict())."
            )
        groups, saved_groups = self.param_groups, list(state_dict["param_groups"])
        counts = [len(group["params"]) for group in groups], [len(group["params"]) for group in saved_groups]
        if counts[0] != counts[1]:
            raise ArgumentError(
                f"{self.name}.load_state_dict: the loaded state dict has parameter groups of sizes {counts[1]} that "
                f"don't match the optimizer's, {counts[0]}.\n  Create the optimizer with the same model and groups."
            )
        pairs = [zip(new["params"], old["params"], strict=True) for new, old in zip(saved_groups, groups, strict=True)]
        param_by_index = dict(chain.from_iterable(pairs))
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for k, param_state in state_dict["state"].items():
            if k in param_by_index:
                state[param_by_index[k]] = {
                    name: self._convert_state(name, x, param_by_index[k]) for name, x in param_state.items()
                }
            elif isinstance(k, int):
                raise ArgumentError(
                    f"{self.name}.load_state_dict: there is state of parameter {k}, which is in no group."
                )
            else:
                state[k] = copy.deepcopy(param_state)  # state of no parameter
        new_groups = [
            {**old, **{name: _copy_option(x) for name, x in new.items()}, "params": old["params"]}
            for old, new in zip(groups, saved_groups, strict=True)
        ]
        for group in new_groups:
            self._check_group(group)
        self.__setstate__({"state": state, "param_groups": new_groups})
        self._run_hooks("loaded")

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy or pickle, which exclude the hooks, as in PyTorch."""
        return {name: x for name, x in vars(self).items() if name != "_hooks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a copy or state dict. Override it to add options that older groups lack."""
        vars(self).update(state)

    def _convert_state(self, name: str, x: Any, p: Tensor) -> Any:
        if isinstance(x, Mapping):
            return {key: self._convert_state(key, item, p) for key, item in x.items()}
        if type(x) in (list, tuple):
            return type(x)([self._convert_state(name, one, p) for one in x])
        array = to_numpy(x._array) if isinstance(x, Tensor) else x.detach().cpu().numpy() if hasattr(x, "detach") else x
        if not isinstance(array, np.ndarray):
            return x
        if name == "step" or (array.shape == () and p.shape != ()):  # a Python scalar here, a tensor in PyTorch
            return int(array) if name == "step" else float(array)
        if array.shape != p.shape:
            raise ShapeError(
                f"{self.name}.load_state_dict: size mismatch: {name} has shape {array.shape}, but its parameter has "
                f"{p.shape}.\n  The parameters are in another order, or belong to another model."
            )
        return wrap(get_allocator(device_of(p._array)).copy(np.array(array, p._array.dtype, order="C")))

    def __repr__(self) -> str:
        lines = [f"{self.name} ("]
        for k, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return printable("\n".join([*lines, ")"]))


def _item(x: Tensor) -> float:
    return get_allocator(device_of(x._array)).to_numpy(x._array).reshape(-1)[0].item()  # type: ignore[no-any-return]


def _copy_option(x: Any) -> Any:
    """Return a copy of an option, with PyTorch tensors converted."""
    if isinstance(x, tuple):
        return tuple([_copy_option(item) for item in x])
    if hasattr(x, "detach") and not isinstance(x, Tensor):
        x = tensor(x.detach().cpu().numpy())
    return x.detach().clone() if isinstance(x, Tensor) else copy.deepcopy(x)
