"""Module: a part of a model, which knows its parameters, its buffers and the modules in it. Names are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from minigrad.core.errors import ArgumentError, DTypeError, MinigradError, a_kind, check_flag, printable
from minigrad.core.modes import detour
from minigrad.core.tensor import Tensor
from minigrad.nn.hooks import Hookable, called
from minigrad.nn.moving import Movable
from minigrad.nn.naming import blamed, entered, note_call, watched
from minigrad.nn.parameter import Parameter
from minigrad.nn.printing import tree
from minigrad.nn.stateful import Stateful
from minigrad.nn.summary import Summary, summarize

__all__ = ["Module", "Parameter"]

Self = TypeVar("Self", bound="Module")


class Module(Stateful, Movable, Hookable):
    """A part of a model. Derive from it, make parameters and other modules attributes, and write `forward`.

    Begin ``__init__`` with ``super().__init__()``: it makes the tables in which attributes that are parameters,
    modules and buffers are noted. Call the module, not its `forward`: the call runs the hooks and, while somebody
    records, opens an `mg.scope` of the module's name.

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
    _transient: set[str]  # the buffers that no state_dict has

    def __init__(self) -> None:
        self.__dict__.update(_parameters={}, _buffers={}, _modules={}, _transient=set(), _hooks=None, training=True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The output for some inputs. To be written."""
        raise NotImplementedError(f"{type(self).__name__} has no forward: write def forward(self, x) in it.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if detour.reasons and watched():
                with entered(self):
                    return self._called(args, kwargs)
            hooks = self._hooks
            result = self.forward(*args, **kwargs) if hooks is None else called(self, hooks, args, kwargs)
            if result.__class__ is not Tensor or kwargs or len(args) != 1 or args[0].__class__ is not Tensor:
                note_call(self, (args, kwargs), result)
            elif (step := result._step) is not None:  # the same in fewer steps, as most calls are
                if (more := getattr(step, "_more", None)) is None:
                    step._more = {self: [args[0]._step]}
                else:
                    more[self] = [args[0]._step]
            return result
        except MinigradError as error:
            blamed(self, error)
            raise

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.forward(*args, **kwargs) if self._hooks is None else called(self, self._hooks, args, kwargs)

    # --- attributes ---

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if "_modules" not in state:
            if isinstance(value, Tensor | Module):
                raise AttributeError(
                    f"{type(self).__name__}: {name} cannot be noted before the module is made.\n"
                    "  Begin its __init__ with super().__init__()."
                )
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Parameter):
            self._take(name, "_parameters")[name] = value
        elif isinstance(value, Module):
            self._check_child(value, f"{type(self).__name__}: {name}")
            self._take(name, "_modules")[name] = value
        elif name in state["_parameters"]:
            if value is not None:
                raise DTypeError(
                    f"{type(self).__name__}: {name} is a parameter, and {a_kind(value)} cannot take its place."
                    "\n  Write nn.Parameter(x), or None; or x into it: with mg.no_grad(): p.copy_(x)."
                )
            state["_parameters"][name] = None
        elif name in state["_modules"]:
            if value is not None:
                raise DTypeError(
                    f"{type(self).__name__}: {name} is a module, and {a_kind(value)} cannot take its place."
                )
            state["_modules"][name] = None
        elif name in state["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise DTypeError(
                    f"{type(self).__name__}: {name} is a buffer, and {a_kind(value)} cannot take its place.\n"
                    "  Write mg.tensor(x), or None."
                )
            state["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def _take(self, name: str, table: str) -> dict[str, Any]:
        """The table of that name, after `name` was taken out of every other place."""
        for place in (self.__dict__, self._parameters, self._buffers, self._modules):
            if place is not self.__dict__[table]:
                place.pop(name, None)
        self._transient.discard(name)
        found: dict[str, Any] = self.__dict__[table]
        return found

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for table in ("_parameters", "_modules", "_buffers"):
            if table in state and name in state[table]:
                return state[table][name]
        more = "" if "_modules" in state else ".\n  Does its __init__ begin with super().__init__()?"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{more}", name=name, obj=self)

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
        """Note a parameter, or with None that there could be one. Raises DTypeError for any other tensor."""
        self._check_name(name, "register_parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise DTypeError(f"register_parameter: {name} is {a_kind(param)}.\n  Write nn.Parameter(x).")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Note a tensor that is no parameter, but moves with the module and, if `persistent`, is in `state_dict`."""
        self._check_name(name, "register_buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise DTypeError(f"register_buffer: {name} is {a_kind(tensor)}.\n  Write mg.tensor(x).")
        self._buffers[name] = tensor
        (self._transient.discard if persistent else self._transient.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Note a module as the attribute `name`. Raises ArgumentError for one that this module is itself a part of."""
        self._check_name(name, "register_module", self._modules)
        self._check_child(module, f"register_module: {name}")
        self._modules[name] = module

    add_module = register_module

    def _check_child(self, child: Any, asked: str) -> None:
        """Raise DTypeError for what is neither a module nor None, ArgumentError for what has this module in it."""
        if child is not None and not isinstance(child, Module):
            raise DTypeError(f"{asked} is {a_kind(child)}, not a module.")
        if child is not None and any(part is self for part in child.modules()):
            what = "the module itself" if child is self else f"a {type(child).__name__} that this module is a part of"
            raise ArgumentError(
                f"{asked} would be {what}: there would be no end of modules in modules.\n"
                "  Hold it where no module looks for others: in a list, or object.__setattr__(self, name, module)."
            )

    def _check_name(self, name: str, asked: str, table: Mapping[str, Any]) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(f"{asked}: begin the __init__ of {type(self).__name__} with super().__init__().")
        if not name or "." in name:
            raise ArgumentError(f"{asked}: {name!r} is no name: dots separate modules, and something must be there.")
        if name not in table and hasattr(self, name):
            raise ArgumentError(f"{asked}: {type(self).__name__} has an attribute {name} already.")

    # --- what is in it ---

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = self.named_modules(prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, x in getattr(module, table).items():
                if x is not None and id(x) not in seen:
                    if remove_duplicate:
                        seen.add(id(x))
                    yield f"{path}.{name}" if path else name, x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names; those that several attributes share once, by the first of their names."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """What training may change: for an optimizer."""
        return (x for _, x in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The tensors that are part of the state and not learned."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, each once."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one, each once."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True, *, memo: set[int] | None = None
    ) -> Iterator[tuple[str, Module]]:
        """This module, named by `prefix`, and all that are in it, each once, from the outside in."""
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
        """This module and all that are in it, each once."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "layer1.0.conv"; itself at "". Raises AttributeError if there is none."""
        module = self
        for name in target.split(".") if target else ():
            found = module._modules.get(name)
            if found is None:
                here = ", ".join(module._modules) or "none"
                raise AttributeError(f"get_submodule: {type(module).__name__} has no module {name!r}; it has {here}.")
            module = found
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "layer1.0.conv.weight". Raises AttributeError if there is none."""
        found: Parameter = self._get("get_parameter", "parameter", "_parameters", target)
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "layer1.0.norm.running_mean". Raises AttributeError if there is none."""
        found: Tensor = self._get("get_buffer", "buffer", "_buffers", target)
        return found

    def _get(self, asked: str, what: str, table: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = getattr(module, table).get(name)
        if found is None:
            here = ", ".join(getattr(module, table)) or "none"
            raise AttributeError(f"{asked}: {type(module).__name__} has no {what} {name!r}; it has {here}.")
        return found

    # --- for all that is in it ---

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` with each module in this one, from the inside out, itself last: to initialise, say."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Say whether the model is being trained: dropout drops and norms of batches follow only then."""
        if not isinstance(mode, bool):
            raise DTypeError(f"train: mode={mode!r} is not True or False.")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """``train(False)``. It does not stop the recording of gradients: that is `mg.no_grad`."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Say whether the parameters receive gradients: without them a part of a model is frozen."""
        check_flag(requires_grad, "requires_grad_")
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; or, without `set_to_none`, make them 0."""
        for parameter in self.parameters():
            if parameter.grad is not None and not set_to_none:
                parameter.grad = parameter.grad.detach().clone().zero_()
            elif set_to_none:
                parameter.grad = None

    # --- printing ---

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the brackets of its `repr`. To be written where there is something to say."""
        return ""

    def __repr__(self) -> str:
        return printable(tree(self))

    def summary(self, *args: Any, **kwargs: Any) -> Summary:
        """A table of the modules: shapes of their outputs, parameters, multiply-adds, memory, when called so.

        The model runs once, in eval mode and without gradients; it and the random state stay as they are. The numbers
        of a module are those of all that is in it. Shared weights are counted once.
        Raises ArgumentError without an input, and what the model raises.

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
