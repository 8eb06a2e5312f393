"""JAX's `Primitive`, and the registries of rules for it, over Plait's primitives and tables.

A `Primitive` becomes a primitive of Plait in the namespace `jax`.  Its type rule is the abstract
evaluation, its `eager` rule the implementation, its `expand` or `lower` rule the registered
lowering.  `derivatives` and `mapping` pass the rules in the registries for derivatives and mapping
to the tables of those packages; only these tables load the two modules.

Invariant: the registries are read when a rule is needed, so it does not matter when they were
filled.  Plait's own primitives keep Plait's rules.
"""

import inspect
import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import plait
from plait import lax, tree_util
from plait.ext import (
    AnyElement,
    Aval,
    Effect,
    Literal,
    Value,
    as_value,
    current,
    eager_rules,
    expand_rules,
    ops,
)
from plait.ext import Primitive as Operation
from plait.ext.errors import ArgumentError, MissingRule
from plait.ext.ir import registered
from plait.ext.rules import Elementwise
from plait.ext.trace import as_list
from plait.ext.values import solid

from .requests import missing
from .vocabulary import in_plait, spelling

__all__ = [
    "Named", "Primitive", "UndefinedPrimal", "Zero", "apply_primitive", "axis_primitive_batchers",
    "defjvp", "deflinear", "deflinear2", "defvectorized", "fancy_primitive_batchers",
    "instantiate_zeros", "is_undefined_primal", "not_mapped", "primitive_batchers",
    "primitive_jvps", "primitive_named", "primitive_transposes", "tell", "view_of",
    "zero_from_primal",
]  # fmt: skip

Rule = Callable[..., Any]

primitive_jvps: dict[Any, Rule] = {}
"""Primitive -> rule(primals, tangents, **params) -> (out, tangent); a tangent may be a `Zero`."""
primitive_transposes: dict[Any, Rule] = {}
"""Primitive -> rule(ct, *operands, **params) -> cotangents.  Linear ones are `UndefinedPrimal`."""
primitive_batchers: dict[Any, Rule] = {}
"""Primitive -> rule(operands, dims, **params) -> (out, dim)."""
axis_primitive_batchers: dict[Any, Rule] = {}
"""The same, with the size, the name and the type of the axis in front."""
fancy_primitive_batchers: dict[Any, Rule] = {}
"""The same, with an object in front that has the axis's `size` and `name`."""
not_mapped = None
"""The dim of an operand that does not vary along the axis."""


# ---- primitives ------------------------------------------------------------------------------


class Held:
    """A parameter that is not hashable; it is compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: list[float]):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def _hold(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters in hashable form."""
    out = {}
    for k, v in params.items():
        try:
            hash(v)
        except TypeError:
            v = Held(v)
        out[k] = v
    return out


def free(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters in their original form."""
    return {k: v.value if v.__class__ is Held else v for k, v in params.items()}


def _of_one_shape(values: list[Any]) -> list[Any]:
    """Return operands of an elementwise operation in one shape.

    JAX lets some operands have no axes; these are broadcast to the shape of the others.  Python
    numbers among them take the dtype of the others.
    """
    full = next((v for v in values if v.aval.shape), None)
    if full is None or all(v.aval.shape for v in values):
        return values
    dtype = full.aval.dtype
    own = [ops.shape.convert(v, dtype) if v.__class__ is Literal else v for v in values]
    return [v if v.aval.shape else lax.broadcast(v, full.aval.shape) for v in own]


_count = itertools.count()
_made: "list[Primitive]" = []
_listeners: list[Callable[["Primitive"], None]] = []
_views: dict[Operation, Any] = {}


def tell(listener: Callable[["Primitive"], None]) -> None:
    """Call `listener` with every primitive, existing and future."""
    _listeners.append(listener)
    for p in _made:
        listener(p)


class Primitive:
    """A primitive as JAX code defines it.

    Args:
      name: its name in programs.

    Example:
      >>> p = Primitive("twice")
      >>> _ = p.def_impl(lambda x: 2 * x)
      >>> _ = p.def_abstract_eval(lambda x: x)
      >>> p.bind(3.0)
      Array(6., dtype=float32)
    """

    multiple_results = False
    call_primitive = map_primitive = ref_primitive = skip_canonicalization = False
    # Subclasses may define both as methods, which attributes of the instance would hide.
    impl: Rule | None = None
    abstract_eval: Rule | None = None

    def __init__(self, name: str):
        self.name = name
        self.acts = self._runs_outside = False
        self._operation: Operation | None = None
        self._pending: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return self.name

    def def_impl(self, impl: Rule) -> Rule:
        """Set the implementation for known values."""
        self.impl = impl
        if self._operation is not None:
            self._run_outside(self._operation)
        return impl

    def def_abstract_eval(self, rule: Rule) -> Rule:
        """Set the rule for the types of its results."""
        self.abstract_eval = lambda *xs, **params: (rule(*xs, **params), frozenset())
        return rule

    def def_effectful_abstract_eval(self, rule: Rule) -> Rule:
        """Set the rule for the types of its results, together with its effects."""
        self.abstract_eval, self.acts = rule, True
        return rule

    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return (functions, parameters) to `bind` it with."""
        return [], params

    def bind(self, /, *args: object, **params: object) -> Any:
        """Apply it under the current interpreter; return its result or results."""
        values = [a if isinstance(a, Value) else as_value(a) for a in args]
        return current().apply(self.operation, values, _hold(params))

    @property
    def operation(self) -> Operation:
        """The primitive of Plait that stands for it."""
        if self._operation is None:
            made = self._operation = self._make()
            _views[made] = self
            _made.append(self)
            for act in (*self._pending, *(partial(listener, self) for listener in _listeners)):
                act()
        return self._operation

    def once_made(self, act: Callable[[], None]) -> None:
        """Call `act` when the primitive is first used, so after all of its definitions."""
        if self._operation is None:
            self._pending.append(act)
        else:
            act()

    def _make(self) -> Operation:
        def rule(*avals: Aval, **params: object) -> Any:
            if self.abstract_eval is None:
                raise MissingRule(
                    f"the primitive {self.name} has no rule for the types of its results",
                    fix=f"write {self.name}.def_abstract_eval(rule)",
                )
            out, _ = self.abstract_eval(*avals, **free(params))
            return self._types(out)

        word = "".join(c if c.isalnum() else "_" for c in self.name)
        effect = Effect(f"jax.{word}") if self.acts else None
        p = Operation(
            f"jax.{word}_{next(_count)}",
            rule,
            traits=(AnyElement,),
            many=self.multiple_results,
            effect=(lambda params: effect) if effect is not None else None,
        )
        self._run_outside(p)
        return p

    def _run_outside(self, operation: Operation) -> None:
        """Call the implementation, if there is one, where the operands are known."""
        own = self.impl is not None and self.impl is not apply_primitive
        if own and not self._runs_outside:
            eager_rules.rule(operation)(self._eager)
            self._runs_outside = True

    def _types(self, out: Any) -> Any:
        """Return what the rule for types returned, as Plait's types.

        Raises ArgumentError for a list where one type is expected, and for a type where a list is.
        """
        many = self.multiple_results
        if isinstance(out, list | tuple) != many:
            raise ArgumentError(
                f"the rule for types of the primitive {self.name} must return "
                f"{'a list of types' if many else 'one type'}, got {out!r}",
                fix=f"return {'[type]' if many else 'the type alone'}, or set "
                f"{self.name}.multiple_results = {not many}",
            )
        return [_aval(a) for a in out] if many else _aval(out)

    def _eager(self, args: list[Value], params: dict[str, Any]) -> Any:
        assert self.impl is not None
        out = self.impl(*map(solid, args), **free(params))
        return list(map(as_value, out)) if self.multiple_results else as_value(out)


def apply_primitive(prim: Any, /, *args: Any, **params: object) -> Any:
    """Compile a primitive and run it; as an implementation, this means it has no other."""
    return prim.bind(*args, **params)


def _aval(x: Aval) -> Aval:
    """Return a type as Plait's."""
    return x if isinstance(x, Aval) else Aval(x.shape, x.dtype, getattr(x, "weak_type", False))


def expand_with(prim: Primitive, say: Rule) -> None:
    """Expand a primitive into others by a function of its operands."""

    def said(*xs: object, **params: object) -> Any:
        out = say(*xs, **free(params))
        return as_list(out) if prim.multiple_results else out

    prim.once_made(lambda: expand_rules.rule(prim.operation, override=True)(said) and None)


# ---- Plait's own primitives, as JAX code reads them ------------------------------------------


class Named:
    """A primitive of Plait under JAX's name, or a JAX name that no program of Plait contains."""

    call_primitive = map_primitive = ref_primitive = False

    def __init__(self, name: str):
        self.name = name
        self._operation: Operation | None = None

    def __repr__(self) -> str:
        return self.name

    @property
    def operation(self) -> Operation:
        """The primitive of Plait.  Raises MissingName if Plait has none."""
        if self._operation is None:
            found = registered(in_plait(self.name))
            if found is None:
                raise missing(f"{self.name}_p", "no primitive is called so")
            self._operation = found
        return self._operation

    @property
    def multiple_results(self) -> bool:
        """True if it has a list of results."""
        return self.operation.many

    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return (functions, parameters) to `bind` it with."""
        return [], params

    def bind(self, /, *args: object, **params: object) -> Any:
        """Apply it under the current interpreter; parameters have JAX's names."""
        row = spelling(self.operation.name)
        ours = {theirs: mine for mine, theirs in row.params.items()}
        params = {ours.get(k, k): getattr(v, "as_param", v) for k, v in params.items()}
        params = {
            k: tuple(getattr(x, "as_param", x) for x in v) if v.__class__ is tuple else v
            for k, v in row.back(params).items()
        }
        params = _own(self.operation, params)
        values = [a if isinstance(a, Value) else as_value(a) for a in args]
        if row.order is not None:
            values = [values[i] for i in row.order]
        if len(values) > 1 and Elementwise in self.operation.traits:
            values = _of_one_shape(values)
        return self.operation.bind(*values, **params)


def _own(operation: Operation, params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters without those that are None and that Plait's primitive lacks.

    JAX code passes all parameters of JAX's primitives (`accuracy=None`, `sharding=None`).
    """
    code = getattr(operation.rule, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
        return params
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {k: v for k, v in params.items() if v is not None or k in own}


class Said(Named):
    """A primitive of JAX that Plait applies as a function of other primitives."""

    def __init__(self, name: str, say: Rule, many: bool):
        super().__init__(name)
        self._say, self._many = say, many

    @property
    def multiple_results(self) -> bool:
        """True if it has a list of results."""
        return self._many

    def bind(self, /, *args: object, **params: object) -> Any:
        """Apply the function under the current interpreter."""
        out = self._say(*args, **params)
        return list(out) if self._many else out


_SAID: dict[str, tuple[Rule, bool]] = {
    "copy": (lambda x: plait.numpy.array(x, copy=True), False),
    "exp2": (lambda x, accuracy=None: lax.exp2(x), False),
    "mulhi": (lax.mulhi, False),
    "split": (lambda x, sizes, axis: lax.split(x, sizes, axis), True),
    "square": (lax.square, False),
    "stack": (lambda *xs, axis: lax.stack(xs, axis), False),
    "tile": (lambda x, reps: lax.tile(x, reps), False),
    "top_k": (lambda x, k, axis=-1: lax.top_k(x, k, axis=axis), True),
    "unstack": (lambda x, axis: lax.unstack(x, axis), True),
}
"""Name -> (function that applies it, whether it has a list of results)."""

_named: dict[str, Named] = {name: Said(name, *row) for name, row in _SAID.items()}


def primitive_named(name: str) -> Named:
    """Return the one object for a JAX name."""
    found = _named.get(name)
    if found is None:
        found = _named[name] = Named(name)
    return found


def view_of(operation: Operation) -> Any:
    """Return the object that stands for a primitive of Plait in JAX code.

    This is a `Primitive` if one made it.
    """
    found = _views.get(operation)
    if found is None:
        found = _views[operation] = primitive_named(spelling(operation.name).name)
        if found._operation is None:
            found._operation = operation
        elif found._operation is not operation:  # two primitives of Plait have one JAX name
            found = _views[operation] = Named(found.name)
            found._operation = operation
    return found


# ---- derivatives -----------------------------------------------------------------------------


class Zero:
    """The tangent or cotangent of a value that does not vary."""

    def __init__(self, aval: Aval):
        self.aval = aval

    @staticmethod
    def from_primal_value(x: Any) -> "Zero":
        """Return the zero tangent of a value."""
        return Zero(as_value(x).aval.tangent_type)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """A linear operand of a transposition: only its type is known."""

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


tree_util.register_pytree_node(
    UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval)
)


def is_undefined_primal(x: Any) -> bool:
    """Return whether an operand is linear in a transposition."""
    return x.__class__ is UndefinedPrimal


def instantiate_zeros(t: Any) -> Any:
    """Return a tangent as an array."""
    return plait.numpy.zeros(t.aval.shape, t.aval.dtype) if t.__class__ is Zero else t


def zero_from_primal(tree: object, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangents of a tree of values: arrays, or symbolic zeros for custom rules."""

    def zero(x: Any) -> Any:
        aval = as_value(x).aval.tangent_type
        if symbolic_zeros:
            return plait.SymbolicZero(aval)
        return plait.numpy.zeros(aval.shape, aval.dtype)

    return tree_util.tree_map(zero, tree)


def defjvp(prim: Any, *rules: Rule | None) -> None:
    """Register one derivative rule per operand: `rule(t, *xs, **params)`."""

    def jvp(xs: Any, ts: Any, /, **params: object) -> tuple[Any, Any]:
        dots = [
            rule(t, *xs, **params)
            for rule, t in zip(rules, ts, strict=True)
            if rule is not None and t.__class__ is not Zero
        ]
        out = prim.bind(*xs, **params)
        return out, _sum(dots) if dots else Zero.from_primal_value(out)

    primitive_jvps[prim] = jvp


def _sum(xs: Iterable[Any]) -> Any:
    first, *rest = xs
    for x in rest:
        first = plait.lax.add(first, x)
    return first


def deflinear(prim: Any, transpose: Rule) -> None:
    """Declare a primitive linear in all operands together; its transpose rule takes no operands."""
    deflinear2(prim, lambda ct, /, *xs, **params: transpose(ct, **params))


def deflinear2(prim: Any, transpose: Rule) -> None:
    """Declare a primitive linear in all operands together, and register its transpose rule."""

    def jvp(xs: Any, ts: Any, /, **params: object) -> tuple[Any, Any]:
        return prim.bind(*xs, **params), prim.bind(*map(instantiate_zeros, ts), **params)

    primitive_jvps[prim], primitive_transposes[prim] = jvp, transpose


# ---- mapping ---------------------------------------------------------------------------------


def defvectorized(prim: Any) -> None:
    """Declare that a primitive of one operand acts on each element separately."""
    primitive_batchers[prim] = lambda xs, dims, /, **params: (prim.bind(*xs, **params), dims[0])
