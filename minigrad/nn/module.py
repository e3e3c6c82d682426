"""Module: the base class of all layers and models, which registers parameters, buffers and submodules as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from minigrad.core.errors import ArgumentError, DTypeError, MinigradError, check_flag, describe_type, printable
from minigrad.core.modes import slow_path
from minigrad.core.tensor import Tensor
from minigrad.nn.call_scopes import add_location_note, is_observed, module_scope, record_call
from minigrad.nn.conversion import ConversionMixin
from minigrad.nn.hooks import ModuleHooksMixin, call_with_hooks
from minigrad.nn.module_repr import format_tree
from minigrad.nn.parameter import Parameter
from minigrad.nn.state_mixin import StateMixin
from minigrad.nn.summary import Summary, summarize

__all__ = ["Module", "Parameter"]

Self = TypeVar("Self", bound="Module")


class Module(StateMixin, ConversionMixin, ModuleHooksMixin):
    """Base class of all neural network modules. Assign parameters and submodules as attributes, and define `forward`.

    Call ``super().__init__()`` first in ``__init__``: it creates the registries of parameters, buffers and submodules.
    Call the module rather than its `forward`: the call runs the hooks and, while a tracer is active, opens an
    `mg.scope` named after the module.

    >>> import minigrad as mg
    >>> class Net(mg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = mg.nn.Linear(4, 8)
    ...         self.out = mg.nn.Linear(8, 3)
    ...     def forward(self, x):
    ...         return self.out(self.hidden(x).relu())
    >>> model = Net()
    >>> model
    Net(  # 67 parameters
      (hidden): Linear(in_features=4, out_features=8, bias=True)  # 40 parameters
      (out): Linear(in_features=8, out_features=3, bias=True)  # 27 parameters
    )
    >>> model(mg.ones(5, 4)).shape, list(model.state_dict())
    ((5, 3), ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias'])
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _transient: set[str]  # names of non-persistent buffers

    def __init__(self) -> None:
        self.__dict__.update(_parameters={}, _buffers={}, _modules={}, _transient=set(), _hooks=None, training=True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output. Every subclass must override this method."""
        raise NotImplementedError(
            f'{type(self).__name__} is missing the required "forward" function: define def forward(self, x).'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if slow_path.reasons and is_observed():
                with module_scope(self):
                    return self._forward_with_hooks(args, kwargs)
            hooks = self._hooks
            result = self.forward(*args, **kwargs) if hooks is None else call_with_hooks(self, hooks, args, kwargs)
            if result.__class__ is not Tensor or kwargs or len(args) != 1 or args[0].__class__ is not Tensor:
                record_call(self, (args, kwargs), result)
            elif (
                node := result._step
            ) is not None:  # `record_call` inlined for the most common call, one tensor in and out
                if (calls := getattr(node, "_extras", None)) is None:
                    node._extras = {self: [args[0]._step]}
                else:
                    calls[self] = [args[0]._step]
            return result
        except MinigradError as error:
            add_location_note(self, error)
            raise

    def _forward_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return (
            self.forward(*args, **kwargs) if self._hooks is None else call_with_hooks(self, self._hooks, args, kwargs)
        )

    # --- attributes ---

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if "_modules" not in state:
            if isinstance(value, Tensor | Module):
                raise AttributeError(
                    f"{type(self).__name__}: cannot assign {name} before the Module.__init__() call.\n"
                    "  Call super().__init__() first in its __init__."
                )
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Parameter):
            self._claim_name(name, "_parameters")[name] = value
        elif isinstance(value, Module):
            self._check_child(value, f"{type(self).__name__}: {name}")
            self._claim_name(name, "_modules")[name] = value
        elif name in state["_parameters"]:
            if value is not None:
                raise DTypeError(
                    f"{type(self).__name__}: cannot assign {describe_type(value)} as parameter {name!r} "
                    "(Parameter or None expected)."
                    "\n  Write nn.Parameter(x), or copy x into it: with mg.no_grad(): p.copy_(x)."
                )
            state["_parameters"][name] = None
        elif name in state["_modules"]:
            if value is not None:
                raise DTypeError(
                    f"{type(self).__name__}: cannot assign {describe_type(value)} as submodule {name!r} "
                    "(Module or None expected)."
                )
            state["_modules"][name] = None
        elif name in state["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise DTypeError(
                    f"{type(self).__name__}: cannot assign {describe_type(value)} as buffer {name!r} "
                    "(Tensor or None expected).\n  Write mg.tensor(x), or None."
                )
            state["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def _claim_name(self, name: str, registry: str) -> dict[str, Any]:
        """Remove `name` from all other registries, and return `registry`."""
        for other in (self.__dict__, self._parameters, self._buffers, self._modules):
            if other is not self.__dict__[registry]:
                other.pop(name, None)
        self._transient.discard(name)
        entries: dict[str, Any] = self.__dict__[registry]
        return entries

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for table in ("_parameters", "_modules", "_buffers"):
            if table in state and name in state[table]:
                return state[table][name]
        advice = "" if "_modules" in state else ".\n  Does its __init__ call super().__init__() first?"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}", name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._transient.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter; None reserves the name. Raises DTypeError for a tensor that is not a Parameter."""
        self._check_name(name, "register_parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise DTypeError(
                f"register_parameter: {name} is {describe_type(param)} (Parameter or None required).\n"
                "  Write nn.Parameter(x)."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not trained but moves with the module. `state_dict` includes it if `persistent`."""
        self._check_name(name, "register_buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise DTypeError(
                f"register_buffer: {name} is {describe_type(tensor)} (Tensor or None required).\n  Write mg.tensor(x)."
            )
        self._buffers[name] = tensor
        (self._transient.discard if persistent else self._transient.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a submodule as attribute `name`. Raises ArgumentError if it contains this module."""
        self._check_name(name, "register_module", self._modules)
        self._check_child(module, f"register_module: {name}")
        self._modules[name] = module

    add_module = register_module

    def _check_child(self, child: Any, context: str) -> None:
        """Raise DTypeError unless `child` is a module or None, ArgumentError if it contains this module."""
        if child is not None and not isinstance(child, Module):
            raise DTypeError(f"{context} is {describe_type(child)}, which is not a Module subclass.")
        if child is not None and any(submodule is self for submodule in child.modules()):
            description = (
                "the module itself" if child is self else f"a {type(child).__name__} that contains this module"
            )
            raise ArgumentError(
                f"{context} would be {description}: modules would contain each other in a cycle.\n"
                "  Store it unregistered: in a list, or by object.__setattr__(self, name, module)."
            )

    def _check_name(self, name: str, caller: str, table: Mapping[str, Any]) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(f"{caller}: call super().__init__() first in the __init__ of {type(self).__name__}.")
        if not name or "." in name:
            raise ArgumentError(
                f'{caller}: name {name!r} is invalid: a name can\'t contain "." or be the empty string.'
            )
        if name not in table and hasattr(self, name):
            raise ArgumentError(f"{caller}: attribute {name!r} of {type(self).__name__} already exists.")

    # --- traversal ---

    def _named_members(
        self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        memo = set()
        modules = self.named_modules(prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, x in getattr(module, registry).items():
                if x is not None and id(x) not in memo:
                    if remove_duplicate:
                        memo.add(id(x))
                    yield f"{path}.{name}" if path else name, x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (name, parameter) pairs. A shared parameter appears once, under its first name."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over (name, buffer) pairs."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, typically to pass them to an optimizer."""
        return (x for _, x in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, the tensors of the state that are not trained."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over (name, module) pairs of the immediate children, without duplicates."""
        memo: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in memo:
                memo.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """Iterate over the immediate children, without duplicates."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True, *, memo: set[int] | None = None
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over (path, module) pairs of this module, at path `prefix`, and its descendants, parents first."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(path, remove_duplicate, memo=memo)

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and its descendants, without duplicates."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> Module:
        """Return the submodule at path `target`, such as "layer1.0.conv", or this module for "".

        Raises AttributeError if it is missing.
        """
        module = self
        for name in target.split(".") if target else ():
            child = module._modules.get(name)
            if child is None:
                existing = ", ".join(module._modules) or "none"
                raise AttributeError(
                    f"get_submodule: {type(module).__name__} has no submodule {name!r}; it has {existing}."
                )
            module = child
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at path `target`, such as "layer1.0.conv.weight". Raises AttributeError if missing."""
        parameter: Parameter = self._get_member("get_parameter", "parameter", "_parameters", target)
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at path `target`, such as "layer1.norm.running_mean". Raises AttributeError if missing."""
        buffer: Tensor = self._get_member("get_buffer", "buffer", "_buffers", target)
        return buffer

    def _get_member(self, caller: str, kind: str, registry: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        member = getattr(module, registry).get(name)
        if member is None:
            existing = ", ".join(getattr(module, registry)) or "none"
            raise AttributeError(f"{caller}: {type(module).__name__} has no {kind} {name!r}; it has {existing}.")
        return member

    # --- recursive operations ---

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Apply `fn` to every submodule, children first, then to this module; typically to initialise weights."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Set training mode, or evaluation mode if `mode` is False. It affects dropout and batch normalisation."""
        if not isinstance(mode, bool):
            raise DTypeError(f"train: training mode is expected to be boolean, but got mode={mode!r}.")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Set evaluation mode: ``train(False)``. Gradients are still recorded; `mg.no_grad` disables them."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set whether the parameters require gradients, in place; False freezes them."""
        check_flag(requires_grad, "requires_grad_")
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters to None, or to zeros if `set_to_none` is False."""
        for parameter in self.parameters():
            if parameter.grad is not None and not set_to_none:
                parameter.grad = parameter.grad.detach().clone().zero_()
            elif set_to_none:
                parameter.grad = None

    # --- printing ---

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the `repr`. Override it to show options."""
        return ""

    def __repr__(self) -> str:
        return printable(format_tree(self))

    def summary(self, *args: Any, **kwargs: Any) -> Summary:
        """Return a table of the modules with output shapes, parameters, multiply-adds and memory for the given inputs.

        Runs the model once, in evaluation mode and without gradients; its state and the random state are preserved. The
        counts of a module include its descendants, and shared weights count once. Raises ArgumentError if there is no
        input; errors raised by the model propagate.

        >>> import minigrad as mg
        >>> mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.ReLU(), mg.nn.Linear(8, 3)).summary(mg.ones(5, 4))
        layer       kind    output  parameters  multiply-adds  memory
        ─────────────────────────────────────────────────────────────
        Sequential          (5, 3)          67            280   380 B
          0         Linear  (5, 8)          40            160   160 B
          1         ReLU    (5, 8)                              160 B
          2         Linear  (5, 3)          27            120    60 B
        ─────────────────────────────────────────────────────────────
        67 parameters; 268 B
        280 multiply-adds of matrices and convolutions; 380 B of results, for an input of (5, 4)
        """
        return summarize(self, args, kwargs)
