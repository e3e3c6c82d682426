"""What an operation is, `Op`: declared once, with one derivative rule per operand; and what it applies to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, Literal, NamedTuple

from minigrad.core.dispatch import apply_raw, dispatch
from minigrad.core.errors import DeclarationError, DTypeError, a_kind
from minigrad.core.rules import Rule, SavePlan, Signature, adapt, check_declaration, names_read, save_plan

__all__ = ["ANY", "OPS", "POSITIVE", "Domain", "Op", "Operand", "adjoint", "close_table", "forward", "is_own"]

OPS: dict[str, Op] = {}
"""Every declared operation by name. What is not in this table does not exist; what is in it gets tested."""

_FORWARD: dict[str, Op] = {}  # ops that are referred to, and not declared yet


class Domain(NamedTuple):
    """Where tests may sample an operand: the interval [low, high], but not within 0.01 of a point in `kinks`."""

    low: float
    high: float
    kinks: tuple[float, ...] = ()


ANY = Domain(-3.0, 3.0)
POSITIVE = Domain(0.25, 3.0)


class Op:
    """One operation, declared once.

    `formula` is LaTeX in which ``{a}``, ``{b}``, … stand for the operands. `vjp` holds one rule per operand: a function
    that returns what the operand's gradient receives (a vector-Jacobian product), written in differentiable operations,
    so that gradients have gradients; None where there is no derivative.

    A rule's parameter names are its declaration. It may name, in any order,

    - ``g``, the gradient of the output, and ``y``, the output (tuples where ``outputs`` > 1; one of them is ``y0``, …,
      and what no rule names may be overwritten),
    - its operands, called a, b, c, … unless `inputs` names them,
    - the results in `aux`, which the kernel returns beside the output and the graph keeps,
    - the static attributes in `attrs`,
    - an operand's shape, as ``a_shape``, which keeps no numbers alive.

    What no rule names need not be kept for the backward pass: `saves` is read off the rules, and cannot drift from
    them. `g` is of raw numbers, a float or an array, or what the operands are where it is to be differentiated again or
    somebody listens. `domain` says where tests
    may sample each operand, and `precedence` how tightly the formula binds. `shown` are rules for print, where the true
    ones guard corner cases that would clutter a formula, or LaTeX for what they return, in which ``{g}``, ``{b}``, …
    stand for what a rule may name. `promotes` says which type the operands take together before
    the kernel sees them: "same", the one that holds all; "number", that, and bools are refused; "int", that, and bools
    become int64; "float", that, or the default float if it is none; "rest", that which holds all but the first, a
    condition; None leaves them as they are. `view` marks an operation whose result shares the memory of its first
    operand; "part", one whose result has some of its numbers, each once: gradients are added there in place. A mapping
    in place of the names in `attrs` gives their defaults, ``...`` where there is none.

    One function in place of the rules is a joint rule, for what is computed together: it returns what all `inputs`
    receive, None for nothing. A `variadic` op takes any number of operands, and its one rule may ask, beside ``g`` and
    attributes, for the operand's number, ``slot``. An operand of a tensor op may be None: a bias that is left out, say.
    What an op on tensors computes may be said by `meaning`, in simpler ops, where its formula is not of single numbers.
    It is a function like a rule, of operands, shapes and attributes, and returns what the kernel does. Nothing computes
    by it but a page without Python; tests hold it to the kernel.
    An op that is not `listed` does not enter the table: that of an `autograd.Function`.

    Declaring a name again replaces it, as running a notebook cell twice does; minigrad's own ops cannot be replaced.
    Raises DeclarationError for that, and where the parts of a declaration contradict each other.

    >>> import minigrad as mg
    >>> cube = Op("cube", "{a}^3", vjp=(lambda g, a: g * (3.0 * a * a),), domain=(ANY,))
    >>> @mg.kernel("cube", "python")
    ... def _(a):
    ...     return a * a * a
    >>> x = mg.Value(2.0)
    >>> cube(x).backward()
    >>> x.grad, sorted(cube.saves)
    (12.0, ['a'])
    >>> _ = OPS.pop("cube")  # an example leaves nothing behind
    """

    __signature__ = Signature()

    COMPARISON, SUM, PREFIX, PRODUCT, POWER, ATOM = range(6)  # precedences, loosest first

    def __new__(cls, name: str = "", *_: Any, **__: Any) -> Op:
        return _FORWARD.pop(name, None) or super().__new__(cls)

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
        self._arity, self._named = len(self.inputs), frozenset(self.attrs)
        self.outputs = outputs
        self.precedence = precedence
        self.promotes, self.meaning = promotes, meaning
        self.view = view
        self.variadic = variadic
        self.inlined: Rule | None = None  # a faster way to apply it to tensors, where there is one
        self._plans: dict[tuple[bool, ...], SavePlan | None] = {}
        printed: tuple[Rule | str | None, ...] = self.vjp if shown is None else tuple(shown)
        self.parts = tuple([f"y{k}" for k in range(outputs)]) if outputs > 1 else ()
        self._check_name()
        check_declaration(self, printed)
        self.reads = tuple(names_read(self, rule) for rule in self.vjp)
        read = frozenset().union(*self.reads)
        self.shapes = tuple(sorted(read & {f"{name}_shape" for name in self.inputs}))
        self.saves = read & {"y", *self.parts, *self.inputs, *self.aux}
        self.rules = tuple(adapt(self, rule) for rule in self.vjp)
        self.shown = tuple(rule if isinstance(rule, str) else adapt(self, rule) for rule in printed)
        self.differentiable = any(rule is not None for rule in self.vjp)
        static = self.aux or self.attrs or self.shapes or self.outputs > 1 or variadic
        self.plain = None if static or self.joint or None in self.vjp or len(self.vjp) > 2 else self.rules
        self.__doc__ = self._described()
        if listed:
            OPS[name] = self

    def _described(self) -> str:
        """What `help` says of it: what it computes, of what, and what a gradient passes through."""
        formula, free = self.formula, [x for x, rule in zip(self.inputs, self.vjp, strict=True) if rule is not None]
        for name in self.inputs:
            formula = formula.replace(f"{{{name}}}", name)
        of = "floats, Values, and tensors number by number" if self.domain else "tensors"
        slopes = f"It can be differentiated by {' and '.join(free)}." if free else "It has no derivative."
        whole = " Ints and bools become the default float." if self.promotes == "float" else ""
        return f"The operation ${formula}$, of {of}.\n\n{slopes}{whole}"

    def _check_name(self) -> None:
        if not f"_{self.name}".isidentifier():
            raise DeclarationError(f"Op {self.name!r}: its name must be an identifier.")
        if self.name in _own:
            raise DeclarationError(f"Op {self.name!r} is one of minigrad's own; take another name.")
        if not _own and self.name in OPS:
            raise DeclarationError(f"Op {self.name!r} is declared twice.")

    def plan(self, edges: tuple[Any, ...]) -> SavePlan | None:
        """What to keep if operands whose edge is not None want a gradient; None where none of them has a rule."""
        wants = tuple([edge is not None for edge in edges])
        if self.variadic:  # of which there are too many to remember
            return save_plan(self, wants)
        if wants not in self._plans:
            self._plans[wants] = save_plan(self, wants)
        return self._plans[wants]

    def rules_for(self, count: int) -> tuple[Rule | None, ...]:
        """A rule for each of `count` operands."""
        rule = self.rules[0] if self.rules else None
        if not self.variadic or rule is None:
            return self.rules
        return (rule,) * count if self.joint else tuple([partial(rule, slot=slot) for slot in range(count)])

    def products(
        self, slots: Sequence[int], rules: tuple[Any, ...], g: Any, *operands: Any, **static: Any
    ) -> list[Any]:
        """What the operands at `slots` receive by `rules`, which are those for all operands; None for nothing."""
        if self.joint:
            found = rules[0](g, *operands, **static)
            return [found[slot] for slot in slots]
        return [rules[slot](g, *operands, **static) for slot in slots]

    def bind(self, given: tuple[Any, ...], attrs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The operands in `given`, and all attributes: what follows the operands there, what is named, the defaults.

        Raises DTypeError unless that makes as many operands and just those attributes that the op declares.
        """
        count = len(given) if self.variadic else len(self.inputs)
        placed = dict(zip(self.attrs, given[count:], strict=False))
        bound = {**self.defaults, **placed, **attrs}
        twice = not placed.keys().isdisjoint(attrs)
        if len(given) < count or len(given) > count + len(placed) or twice or bound.keys() != set(self.attrs):
            shown = ", ".join([*["…"] * len(given), *(f"{name}=…" for name in attrs)])
            asked = [f"{name}={self.defaults.get(name, '…')}" for name in self.attrs]
            raise DTypeError(f"{self.name}({shown}): it takes {self.name}({', '.join([*self.inputs, *asked])}).")
        for name, x in bound.items() if self.domain else ():
            if isinstance(x, str | Sequence):
                raise DTypeError(f"{self.name}: {name}={x!r} is {a_kind(x)}, not a number.")
        return given[:count], bound

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        """Apply to operands of any one face: numbers give a float, a `Value` a `Value`, a formula a formula.

        Attributes may follow the operands, as in ``clamp(x, 0.0, 1.0)``. Comparisons give True or False. Raises
        DTypeError for other operands, too many, too few, or unknown attributes.
        """
        if len(inputs) != self._arity or attrs.keys() != self._named or (attrs and self.domain):
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
                    f"{self.name}: {operand!r} is {a_kind(operand)}, not a number, a Value or a tensor.\n"
                    "  Make numbers in rows a tensor first: mg.tensor(…)."
                )
        return dispatch(self.name, "python", tuple([x if isinstance(x, bool) else float(x) for x in inputs]), attrs)

    def __repr__(self) -> str:
        return f"<Op {self.name}({', '.join((*self.inputs, *self.attrs))})>"


_LETTERS = "abcdefhijk"  # g is the gradient's
_own: frozenset[str] = frozenset()


def adjoint(operand: str) -> str:
    """What `operand` gets, in LaTeX, to show where the rule would be too long: the Jacobian, transposed, times g."""
    return rf"\left(\frac{{\partial {{y}}}}{{\partial {{{operand}}}}}\right)^\top {{g}}"


def forward(name: str) -> Op:
    """The op of this name, also before `ops` declares it: the engine applies a few, and imports none."""
    op = OPS.get(name) or _FORWARD.get(name)
    if op is None:
        op = _FORWARD[name] = Op.__new__(Op)
        op.name = name
    return op


def close_table() -> None:
    """Make the ops declared so far minigrad's own, which no later declaration can replace."""
    global _own
    _own = frozenset(OPS)


def is_own(op: Op) -> bool:
    """Return whether `op` is one of minigrad's own; that of a Function may have the name of one of these."""
    return op.name in _own and OPS[op.name] is op


class Operand:
    """What an op can be applied to besides plain numbers. It brings Python's operators, by way of the op table."""

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

    __hash__ = object.__hash__  # == compares numbers, as in PyTorch; in sets and dicts an operand is itself
