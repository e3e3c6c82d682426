"""`Op`: the declaration of an operation with one derivative rule per operand; and `Operand`, the base of operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, Literal, NamedTuple

from minigrad.core.deprecation import DeprecatedAlias
from minigrad.core.dispatch import apply_raw, dispatch
from minigrad.core.errors import DeclarationError, DTypeError, describe_type
from minigrad.core.rules import OpSignature, Rule, SavePlan, adapt_rule, check_declaration, read_names, save_plan

__all__ = [
    "ANY",
    "OPS",
    "POSITIVE",
    "Domain",
    "Op",
    "Operand",
    "adjoint_formula",
    "forward_declared",
    "freeze_builtins",
    "is_builtin",
]

OPS: dict[str, Op] = {}
"""Every declared operation by name. Tests are generated from this table."""

_PENDING: dict[str, Op] = {}  # ops that have been referenced but not declared yet


class Domain(NamedTuple):
    """The interval [low, high] from which tests sample an operand, at least 0.01 away from each of `kinks`."""

    low: float
    high: float
    kinks: tuple[float, ...] = ()


ANY = Domain(-3.0, 3.0)
POSITIVE = Domain(0.25, 3.0)


class Op:
    """Declaration of an operation.

    `formula` is LaTeX with the operands as placeholders ``{a}``, ``{b}``, …. `vjp` holds one rule per operand: a
    function that computes the vector-Jacobian product, written in differentiable operations so that higher-order
    gradients work. None means that the op has no derivative with respect to the operand.

    A rule declares what it reads by its parameter names, in any order:

    - ``g``, the gradient of the output, and ``y``, the output (both are tuples if ``outputs`` > 1; ``y0``, … are the
      individual outputs, and an output that no rule reads may be overwritten),
    - its operands, called a, b, c, … unless `inputs` names them,
    - the auxiliary results in `aux`, which the kernel returns after the output and the graph saves,
    - the static attributes in `attrs`,
    - an operand's shape, as ``a_shape``, which saves no tensor.

    Nothing else is saved for backward: `saves` is derived from the rules. `g` is a raw float or array, or a node if the
    result is differentiated again or a tap is active. A single function instead of a sequence of rules is a joint rule:
    it returns the products of all `inputs`, or None for a missing product. A `variadic` op takes any number of
    operands, and its one rule may read the operand's index, ``slot``, in addition to ``g`` and attributes. An operand
    of a tensor op may be None, such as an omitted bias.

    `promotes` is the type promotion of the operands before the kernel runs: "same", to their common dtype; "number",
    the same but bools are an error; "int", the same with bools as int64; "float", to floating point, the default dtype
    if all are integers; "rest", to the common dtype of all operands but the first, a condition; None, no promotion.
    `view` marks an op whose result shares the memory of its first operand; "part" marks an op that also selects
    distinct elements, so that gradients accumulate in-place. If `attrs` is a mapping instead of a sequence, it contains
    the defaults, or ``...`` for an attribute without a default. An op that is not `listed`, such as that of an
    `autograd.Function`, is not added to the table of ops.

    Tests sample operands from `domain`. `precedence` determines the parentheses in formulas. `shown` contains rules for
    display, where the actual rules handle corner cases, or LaTeX of their results, with placeholders ``{g}``, ``{b}``,
    … for the names that a rule may read. `meaning` is a decomposition of a tensor op into simpler ops, for ops whose
    formula is not elementwise: a function of operands, shapes and attributes that returns what the kernel returns. Only
    exported web pages compute with it; tests check it against the kernel.

    Declaring a name again replaces the op, as when a notebook cell runs twice. Raises DeclarationError for the name of
    a built-in op, which cannot be replaced, and for an inconsistent declaration.

    >>> import minigrad as mg
    >>> cube = Op("cube", "{a}^3", vjp=(lambda g, a: g * (3.0 * a * a),), domain=(ANY,))
    >>> @mg.kernel("cube", "python")
    ... def _(a):
    ...     return a * a * a
    >>> x = mg.Value(2.0)
    >>> cube(x).backward()
    >>> x.grad, sorted(cube.saves)
    (12.0, ['a'])
    >>> _ = OPS.pop("cube")  # remove the example
    """

    __signature__ = OpSignature()

    COMPARISON, SUM, PREFIX, PRODUCT, POWER, ATOM = range(6)  # precedences in ascending order

    def __new__(cls, name: str = "", *_: Any, **__: Any) -> Op:
        return _PENDING.pop(name, None) or super().__new__(cls)

    def __init__(
        self,
        name: str,
        formula: str,
        *,
        vjp: Sequence[Rule | None] | Rule,
        domain: Sequence[Domain] = (),
        inputs: Sequence[str] = (),
        aux: Sequence[str] = (),
        attrs: Sequence[str] | Mapping[str, Any] = (),
        outputs: int = 1,
        precedence: int | None = None,
        shown: Sequence[Rule | str | None] | None = None,
        promotes: Literal["same", "number", "int", "float", "rest"] | None = None,
        view: bool | Literal["part"] = False,
        variadic: bool = False,
        listed: bool = True,
        meaning: Rule | None = None,
    ) -> None:
        self.name = name
        self.formula = formula
        self.joint = callable(vjp)
        self.vjp = (vjp,) * max(len(inputs), 1) if callable(vjp) else tuple(vjp)
        self.domain = tuple(domain)
        self.inputs = tuple(inputs) or tuple(_LETTERS[: len(self.vjp)])
        self.aux = tuple(aux)
        self.attrs = tuple(attrs)
        self.defaults = {k: v for k, v in attrs.items() if v is not ...} if isinstance(attrs, Mapping) else {}
        self._input_count, self._attr_names = len(self.inputs), frozenset(self.attrs)
        self.outputs = outputs
        self.precedence = precedence
        self.promotes, self.meaning = promotes, meaning
        self.view = view
        self.variadic = variadic
        self.fast_path: Rule | None = None  # a specialised implementation for tensors, if one exists
        self._save_plans: dict[tuple[bool, ...], SavePlan | None] = {}
        printed: tuple[Rule | str | None, ...] = self.vjp if shown is None else tuple(shown)
        self.output_names = tuple([f"y{k}" for k in range(outputs)]) if outputs > 1 else ()
        self._check_name(listed)
        check_declaration(self, printed)
        self.reads = tuple(read_names(self, rule) for rule in self.vjp)
        names = frozenset().union(*self.reads)
        self.shapes = tuple(sorted(names & {f"{name}_shape" for name in self.inputs}))
        self.saves = names & {"y", *self.output_names, *self.inputs, *self.aux}
        self.rules = tuple(adapt_rule(self, rule) for rule in self.vjp)
        self.shown = tuple(rule if isinstance(rule, str) else adapt_rule(self, rule) for rule in printed)
        self.differentiable = any(rule is not None for rule in self.vjp)
        static = self.aux or self.attrs or self.shapes or self.outputs > 1 or variadic
        self.has_single_output = not (self.outputs > 1 or variadic or view == "part" or name == "pick")
        self.simple_rules = None if static or self.joint or None in self.vjp or len(self.vjp) > 2 else self.rules
        self.__doc__ = self._build_doc()
        if listed:
            OPS[name] = self

    def _build_doc(self) -> str:
        """Return the docstring of the op: its formula, its operands, and which of them are differentiable."""
        formula, differentiable = (
            self.formula,
            [x for x, rule in zip(self.inputs, self.vjp, strict=True) if rule is not None],
        )
        for name in self.inputs:
            formula = formula.replace(f"{{{name}}}", name)
        operand_kinds = "floats, Values, and tensors, elementwise" if self.domain else "tensors"
        derivative_note = (
            f"It is differentiable with respect to {' and '.join(differentiable)}."
            if differentiable
            else "It is not differentiable."
        )
        promotion_note = " Ints and bools are promoted to the default float dtype." if self.promotes == "float" else ""
        return f"The operation ${formula}$ on {operand_kinds}.\n\n{derivative_note}{promotion_note}"

    def _check_name(self, listed: bool) -> None:
        if not f"_{self.name}".isidentifier():
            raise DeclarationError(f"Op {self.name!r}: the name must be an identifier.")
        if listed and self.name in _BUILTIN_NAMES:
            raise DeclarationError(f"Op {self.name!r} is a built-in op of minigrad; choose another name.")
        if listed and not _BUILTIN_NAMES and self.name in OPS:
            raise DeclarationError(f"Op {self.name!r} is already declared.")

    def plan_saves(self, edges: tuple[Any, ...]) -> SavePlan | None:
        """Return the `SavePlan` if the operands with an edge require grad; None if none of them has a rule."""
        needs_grad = tuple([edge is not None for edge in edges])
        if self.variadic:  # a variadic op has too many combinations to cache
            return save_plan(self, needs_grad)
        if needs_grad not in self._save_plans:
            self._save_plans[needs_grad] = save_plan(self, needs_grad)
        return self._save_plans[needs_grad]

    def rules_for(self, count: int) -> tuple[Rule | None, ...]:
        """Return one rule for each of `count` operands."""
        rule = self.rules[0] if self.rules else None
        if not self.variadic or rule is None:
            return self.rules
        return (rule,) * count if self.joint else tuple([partial(rule, slot=slot) for slot in range(count)])

    def vjps(self, slots: Sequence[int], rules: tuple[Any, ...], g: Any, *operands: Any, **static: Any) -> list[Any]:
        """Return the vector-Jacobian products of the operands at `slots`; `rules` has one rule per operand."""
        if self.joint:
            gradients = rules[0](g, *operands, **static)
            return [gradients[slot] for slot in slots]
        return [rules[slot](g, *operands, **static) for slot in slots]

    def bind(self, args: tuple[Any, ...], attrs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Split `args` into operands and attributes, and add attributes from `attrs` and the defaults.

        Raises DTypeError if operands or attributes do not match the declaration.
        """
        count = len(args) if self.variadic else len(self.inputs)
        positional = dict(zip(self.attrs, args[count:], strict=False))
        bound = {**self.defaults, **positional, **attrs}
        has_duplicate = not positional.keys().isdisjoint(attrs)
        if len(args) < count or len(args) > count + len(positional) or has_duplicate or bound.keys() != set(self.attrs):
            shown = ", ".join([*["…"] * len(args), *(f"{name}=…" for name in attrs)])
            signature = [f"{name}={self.defaults.get(name, '…')}" for name in self.attrs]
            raise DTypeError(
                f"{self.name}() received an invalid combination of arguments: got ({shown}) but expected "
                f"({', '.join([*self.inputs, *signature])})."
            )
        for name, x in bound.items() if self.domain else ():
            if isinstance(x, str | Sequence):
                raise DTypeError(f"{self.name}: {name}={x!r} is {describe_type(x)}; expected a Python scalar.")
        return args[:count], bound

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        """Apply the op. The result is a float for scalars, else a `Value`, a tensor or a formula, as the operands.

        Attributes may be positional, as in ``clamp(x, 0.0, 1.0)``. Comparisons of scalars return a bool. Raises
        DTypeError for operands of other types, a wrong number of them, or unknown attributes.
        """
        if len(inputs) != self._input_count or attrs.keys() != self._attr_names or (attrs and self.domain):
            inputs, attrs = self.bind(inputs, attrs)
        for operand in inputs:
            if isinstance(operand, Operand):
                return operand._apply(self, inputs, attrs)
        result = apply_raw(self.name, inputs, attrs)
        if result is not NotImplemented:
            return result
        for operand in inputs:
            if not isinstance(operand, Real):
                raise DTypeError(
                    f"{self.name}: {operand!r} is {describe_type(operand)}; expected a Python scalar, a Value or a "
                    "tensor.\n  Convert sequences to a tensor first: mg.tensor(…)."
                )
        return dispatch(self.name, "python", tuple([x if isinstance(x, bool) else float(x) for x in inputs]), attrs)

    def __repr__(self) -> str:
        return f"<Op {self.name}({', '.join((*self.inputs, *self.attrs))})>"

    plan = DeprecatedAlias("plan_saves")
    products = DeprecatedAlias("vjps")


_LETTERS = "abcdefhijk"  # g is reserved for the gradient
_BUILTIN_NAMES: frozenset[str] = frozenset()


def adjoint_formula(operand: str) -> str:
    """Return LaTeX for the VJP as the transposed Jacobian times g, which is displayed instead of a long rule."""
    return rf"\left(\frac{{\partial {{y}}}}{{\partial {{{operand}}}}}\right)^\top {{g}}"


def forward_declared(name: str) -> Op:
    """Return the op `name`, which `ops` may declare later, since the engine does not import `ops`."""
    op = OPS.get(name) or _PENDING.get(name)
    if op is None:
        op = _PENDING[name] = Op.__new__(Op)
        op.name = name
    return op


def freeze_builtins() -> None:
    """Mark the ops declared so far as built-in, so that no later declaration can replace them."""
    global _BUILTIN_NAMES
    _BUILTIN_NAMES = frozenset(OPS)


def is_builtin(op: Op) -> bool:
    """Return whether `op` is a built-in op, rather than a Function's op of the same name."""
    return op.name in _BUILTIN_NAMES and OPS[op.name] is op


class Operand:
    """Base class of operands other than Python scalars. It implements Python's operators by the declared ops."""

    __slots__ = ()

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return OPS["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return OPS["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return OPS["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return OPS["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        return OPS["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return OPS["mul"](other, self)

    def __truediv__(self, other: Any) -> Any:
        return OPS["div"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return OPS["div"](other, self)

    def __pow__(self, other: Any) -> Any:
        return OPS["pow"](self, other)

    def __rpow__(self, other: Any) -> Any:
        return OPS["pow"](other, self)

    def __neg__(self) -> Any:
        return OPS["neg"](self)

    def __abs__(self) -> Any:
        return OPS["abs"](self)

    def __lt__(self, other: Any) -> Any:
        return OPS["lt"](self, other)

    def __le__(self, other: Any) -> Any:
        return OPS["le"](self, other)

    def __gt__(self, other: Any) -> Any:
        return OPS["gt"](self, other)

    def __ge__(self, other: Any) -> Any:
        return OPS["ge"](self, other)

    def __eq__(self, other: Any) -> Any:
        return OPS["eq"](self, other)

    def __ne__(self, other: Any) -> Any:
        return OPS["ne"](self, other)

    __hash__ = object.__hash__  # == compares values, as in PyTorch; sets and dicts compare by identity
