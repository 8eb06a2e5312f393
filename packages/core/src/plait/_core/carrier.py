"""Carriers: transformations that replace values by values with additional components.

A lifted value is (form, parts): a hashable static form, and component values of the parent
interpreter.  Form None is a plain value, carried as itself.  Forward mode carries a tangent,
mapping an axis, intervals two ends.  The author writes rules for first-order primitives, and the
methods below, which define the forms.  Core takes any such transformation through every operation
with programs (`plait._core.lift_higher_order`).

Invariant: one rule set serves both ways of running.  Applied while Python runs, rules act on the
parent's values; applied to a Program, the parent is a Stage and the result a Program.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .._base.config import config
from .._base.errors import (
    ArgumentError,
    ConcretizationError,
    MissingRule,
    PlaitError,
    RegistrationError,
    RuleLost,
)
from .._base.freezing import freeze
from .._base.source import here, outline, warn
from .._plugins.rules import RuleTable
from .._plugins.traits import Elementwise
from .._types.avals import Aval
from .carrier_mistakes import blamed, check_lifted, check_parts, check_result, parts_of, reported
from .deferred import Deferred
from .divided import lie_as, released, with_axis, without_axis
from .handles import apply_through, handle_among
from .higher_order import Part
from .interpreter import Interpreter, Tracer, as_list, enclosed, enter, leave, open_under, stray
from .ir import Program, Var, ambient_of, speaks_of
from .lift_higher_order import Form, Forms, lift_program, rewired
from .primitive import Primitive

__all__ = ["Carrier", "Lifted", "expand_rules"]

expand_rules = RuleTable(
    "expand",
    owns=("core",),
    signature="(*args, **params)",
    doc="the same thing said with other primitives; the last resort of every transformation.",
)


class Lifted(Tracer):
    """A value that a carrier lifted; `aval` is the type that the user sees."""

    __slots__ = ("form", "parts")
    form: Form
    parts: tuple[Any, ...]


def components(xs: Iterable[Any]) -> Iterator[Any]:
    """Yield values, and the components of those that are lifted, at all levels."""
    for x in xs:
        yield x
        if x.__class__ is Lifted:
            yield from components(x.parts)


class Carrier(Interpreter):
    """A transformation that lifts values.

    Subclasses set `rules` and `does`, name their static attributes in `fields`, and define `run`,
    `part_avals` and `coerce`.  The defaults of the other methods serve carriers whose components
    have the shape of the value.  Forms are compared with ==.  `join` must be monotone and of finite
    height, or `widen` must end it.

    Args:
      parent: the interpreter that rules run under.
      values: the fields, in order.
      ambient: values of the parent that every rule may use (a length, a key, a scale).
      of: the function being transformed, for messages.
    """

    values: tuple[Any, ...]
    ambient: tuple[Any, ...]

    rules: RuleTable
    fields: tuple[str, ...] = ()
    commutes: frozenset[str] = frozenset()
    """Kinds of custom rules that lifting commutes with: mapping commutes with "derivative", since
    the derivative of the mapped function is the mapped derivative.  These rules are lifted."""
    loses: frozenset[str] = frozenset()
    """Kinds of custom rules that lifting does not commute with: the ends of an interval have
    derivatives of their own.  Functions are lifted without these rules, and a RuleLost warning
    names each.  Every kind belongs in one of the two; a kind in neither is lost too, and the
    warning also says that the carrier does not mention it."""
    heeds: Mapping[str, str] = MappingProxyType({})
    """The kinds of custom rules that are for this transformation, each with the participle by which
    errors describe a lifted value: {"derivative": "differentiated"}."""
    fixed_boxes = True  # rules see the same operations whether a function is staged or not
    dims: frozenset[str] = frozenset()
    """Variables of symbolic sizes that this carrier gives values to.  It handles every operation
    whose types or parameters contain one of them, whatever its operands (the number of elements of
    a mean, an iota)."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a carrier that has rules but lacks a method that applying them needs.

        Raises RegistrationError.
        """
        super().__init_subclass__(**options)
        for name in ("grow", "drop", "cut"):
            if name in vars(cls):
                setattr(cls, name, _typed(vars(cls)[name]))
        rules = getattr(cls, "rules", None)
        if rules is None:  # a base for others
            return
        named = f"the carrier {cls.__module__}.{cls.__qualname__}"
        if not isinstance(rules, RuleTable):
            raise RegistrationError(
                f"{named} has {rules!r} for `rules`", fix='write rules = RuleTable("its_name", ...)'
            )
        asked = () if cls.apply is not Carrier.apply else ("run", "part_avals", "coerce")
        missing = [m for m in asked if getattr(cls, m) is getattr(Carrier, m)]
        if missing:
            raise RegistrationError(
                f"{named} has no method {' and no method '.join(missing)}",
                fix="define it; plait.ext.Carrier says what each must do",
            )

    def __init__(
        self,
        parent: Interpreter | None,
        *values: Any,
        ambient: Sequence[Any] = (),
        of: Callable[..., Any] | None = None,
    ):
        kind = type(self)
        if (
            getattr(kind, "rules", None) is None
            and kind is not Carrier
            and kind.apply is Carrier.apply
        ):
            raise blamed(self, "rules", "is missing", 'write rules = RuleTable("its_name", ...)')
        open_under(self, parent)
        self.values, self.ambient, self.of = values, tuple(ambient), of
        for name, value in zip(self.fields, values, strict=True):
            setattr(self, name, value)
        self._key: Any = None

    # -- methods for subclasses ------------------------------------------------------------

    def run(self, prim: Primitive, rule: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Call a rule of the table with its signature, while the parent is current; return its
        result lifted."""
        raise PlaitError(f"{type(self).__name__} has no method `run`", fix="define it")

    def part_avals(self, aval: Aval, form: Form) -> tuple[Aval, ...]:
        """Return the types of the components of an `aval` in `form` (not None)."""
        raise PlaitError(f"{type(self).__name__} has no method `part_avals`", fix="define it")

    def coerce(self, aval: Aval, parts: tuple[Any, ...], f: Form, g: Form) -> tuple[Any, ...]:
        """Return components in form `g`, a join of `f` and another, by primitives of the parent."""
        raise PlaitError(f"{type(self).__name__} has no method `coerce`", fix="define it")

    def join(self, aval: Aval, f: Form, g: Form) -> Form:
        """Return the least form that `f` and `g`, different and not None, can be coerced to."""
        raise blamed(
            self,
            "join",
            f"is not defined, and {f!r} and {g!r}, forms of {aval!r}, meet in one place",
            f"define {type(self).__name__}.join",
        )

    def least(self, aval: Aval) -> Form:
        """Return the least form that a plain value of this type can be coerced to where it meets a
        lifted one, in a branch or a carry.

        None means any form.  A matrix that is diagonal takes no other matrix: there a plain value
        has to be dense, and `join` is given that form and "diagonal".
        """
        return None

    def entering(self, aval: Aval, form: Form) -> Form:
        """Return the form in which a result of a program becomes its input again, as a carry does,
        or is stacked as a row; `form` can be coerced to it.

        The two differ only for forms whose components lack the axes of the value.
        """
        return form

    def collect(self, aval: Aval, parts: tuple[Any, ...], f: Form, g: Form) -> tuple[Any, ...]:
        """Return the cotangent of a value in form `g`, from that of the value coerced to `f`.

        Where `g` is below `f` this is the transpose of `coerce`, otherwise a coercion like any
        other. Carriers without `collect` and `spread` give operations with custom rules for reverse
        mode all values in the form `whole`, so that no cotangent needs to be collected.
        """
        return self.coerce(aval, parts, f, g)

    def spread(self, aval: Aval, parts: tuple[Any, ...], g: Form) -> tuple[Any, ...]:
        """Return a cotangent in form `g` that collects to the plain one with these parts."""
        raise PlaitError(
            f"{type(self).__name__} has a method `collect`, and no method `spread`",
            fix="define it",
        )

    @property
    def collects(self) -> bool:
        """True if cotangents of plain values can have other forms (`collect`)."""
        return type(self).collect is not Carrier.collect

    def widen(self, aval: Aval, f: Form, g: Form) -> Form:
        """Return a form above both; repeated widening must come to an end."""
        return g

    def whole(self, aval: Aval) -> Form:
        """Return the form that every value of this type can be coerced to."""
        raise PlaitError(
            f"{type(self).__name__} keeps custom rules, and has no method `whole`", fix="define it"
        )

    def shown(self, x: Any) -> Any:
        """Return the value of the parent that effects get in place of `x`: a user's `debug.print`
        prints it.

        By default it is the first component, where that has the type of the value.
        """
        form, parts = self.split(x)
        if form is None or parts[0].aval.same_type(x.aval):
            return parts[0]
        raise MissingRule(
            f"{self.does}: an effect gets a value in form {form!r}, whose first component has not "
            f"its type, {x.aval!r}",
            fix=f"define {type(self).__name__}.shown(x): the value that effects get",
        )

    def defined(self, x: Any) -> tuple[Any, ...]:
        """Return components of `x` with zeros in the places that do not count, for inspection."""
        return self.split(x)[1]

    def part_axes(self, aval: Aval, form: Form) -> tuple[tuple[int | None, ...], ...]:
        """Return, for each component, the position of each axis of the value in it."""
        return (tuple(range(aval.ndim)),) * len(self.part_avals(aval, form))

    # A subclass may leave out the last parameter of the next three: see `_typed`.

    def grow(self, form: Form, axis: int, aval: Aval | None = None) -> Form:
        """Return the form of a stack, along a new axis at `axis`, of values in `form`.

        `aval` is the type of the stack.
        """
        return form

    def drop(self, form: Form, axis: int, aval: Aval | None = None) -> Form:
        """Return the form of a row, along `axis`, of a value in `form`.

        `aval` is the type of the row.  Law: a value in `form` can be coerced to
        `grow(drop(form, axis), axis)`.
        """
        return form

    def cut(self, form: Form, axis: int, aval: Aval | None = None) -> Form:
        """Return the form, where the size of `axis` changes, of a piece of a value in `form`, or of
        a whole whose pieces are in `form`.

        `aval` is the type of the piece or of the whole.  Law: components of a piece are pieces of
        the components, along the axes that `part_axes` gives; and a value in `form` can be coerced
        to `cut(cut(form, axis, piece), axis, whole)`.

        The default serves forms that do not depend on the axis: those that `drop` and `grow` leave
        as they are.  It raises MissingRule for others: only the carrier can describe their pieces.
        """
        kind = type(self)
        if kind.grow is Carrier.grow and kind.drop is Carrier.drop:
            return form
        assert aval is not None
        if self.drop(form, axis, without_axis(aval, axis)) == form:
            if self.grow(form, axis, with_axis(aval, axis, aval.shape[axis])) == form:
                return form
        raise MissingRule(
            f"{self.does}: axis {axis} of {aval!r} is one of pieces, and the carrier "
            f"{kind.__module__}.{kind.__name__}, whose forms depend on axes, has no method `cut`",
            fix=f"define {kind.__name__}.cut(form, axis, aval): the form of a piece or of a whole",
        )

    def concerns(self, axes: frozenset[Any]) -> bool:
        """Return whether it handles operations that use these axis names, whatever their
        operands."""
        return False

    def hidden_by(self, axes: frozenset[Any]) -> "Carrier":
        """Return the same transformation for programs in which something else binds these axes."""
        return self

    # -- derived methods -------------------------------------------------------------------

    def key(self) -> Any:
        """Return the key of lifted programs, which depend on it and on the forms alone.

        It is derived from `fields`.  A key written by hand that lacked an attribute would give one
        carrier the programs of another.
        """
        if self._key is None:
            self._key = type(self), freeze(self.values)
        return self._key

    def under(self, parent: Interpreter | None, ambient: Sequence[Any] = ()) -> "Carrier":
        """Return the same transformation over another interpreter.

        Without a parent it serves programs, which outlive the function: only its outline is kept.
        """
        of: Any = self.of if parent is not None else outline(self.of)
        return type(self)(parent, *self.values, ambient=ambient, of=of)

    def lift(self, aval: Aval, form: Form, parts: tuple[Any, ...]) -> Any:
        """Return a lifted value of this carrier; the component itself if the form is None."""
        if form is None:
            return parts[0]
        x = Lifted()
        x.by = self
        x.aval = aval
        x.form = form
        x.parts = parts
        x.where = parts[0].where if parts[0].__class__ is Var else here()
        return x

    def form_of(self, x: Any) -> Form:
        """Return the form of any value: None unless this very carrier lifted it.

        Ownership is identity.  Two carriers of one kind may be nested (a derivative of a
        derivative), and a value of the outer one is a plain value to the inner.
        """
        return x.form if x.__class__ is Lifted and x.by is self else None

    def split(self, x: Any) -> tuple[Form, tuple[Any, ...]]:
        """Return (form, components) of any value."""
        return (x.form, x.parts) if x.__class__ is Lifted and x.by is self else (None, (x,))

    def to_form(self, x: Any, form: Form) -> tuple[Any, ...]:
        """Return the components of `x` in `form`."""
        f, parts = self.split(x)
        if f == form:
            return parts
        made = self.coerce(x.aval, parts, f, form)
        if config.checks:
            check_parts(self, "coerce", x.aval, form, made)
        return made

    def collected(self, ct: Any, form: Form) -> tuple[Any, ...]:
        """Return the components of the cotangent of a value in `form`."""
        f, parts = self.split(ct)
        return parts if f == form else self.collect(ct.aval, parts, f, form)

    def parts_of(self, aval: Aval, form: Form) -> tuple[Part, ...]:
        """Return the components of an `aval` in `form`, with their axes."""
        if form is None:
            return (Part(aval, tuple(range(aval.ndim))),)
        return parts_of(self, aval, form)

    def lift_program(
        self,
        program: Program,
        forms: Forms,
        out_forms: Forms | None = None,
        of_rule: bool = False,
    ) -> tuple[Program, Forms]:
        """Return (the program on components, forms of its outputs); see `lift_higher_order`.

        `of_rule`: whether the program is a user's custom rule, which errors then name.
        """
        return lift_program(self, program, forms, out_forms, of_rule=of_rule)

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        for a in args:
            if a.__class__ is Lifted and a.by is self:
                break
        else:
            if prim.higher is None and prim.ambient is None and not self.dims:
                return self.parent.apply(prim, args, params)  # type: ignore[union-attr]
            if not self._sees(prim, args, params):
                return self._unowned(prim, args, params)
        if self.closed:
            stray(prim, args, self.parent or self)
        rule = self.rules.find(prim)
        if rule is not None:
            token = enter(self.parent)  # type: ignore[arg-type]
            try:
                if prim.higher is not None:
                    return rule(self, args, params)
                for a in args:
                    if a.aval.division is not None:
                        out = self._divided(prim, rule, args, params)
                        break
                else:
                    out = self.run(prim, rule, args, params)
                if out.__class__ is not Lifted:
                    check_result(self, prim, out)
            except (AttributeError, ConcretizationError, LookupError, TypeError, ValueError) as e:
                found = self.rules.misapplied(prim, rule, e) if isinstance(e, TypeError) else None
                found = found or reported(self, prim, rule, e)
                raise found from (None if found is e else e)
            finally:
                leave(token)
            if config.checks:
                self._verify(prim, args, params, out)
            return out
        if prim.higher is not None:
            return self.through(prim, args, params)
        say = expand_rules.find(prim)
        if say is None:
            if _acts_only(prim, args, params):
                seen = [self.shown(a) for a in args]
                return self.parent.apply(prim, seen, params)  # type: ignore[union-attr]
            raise self.rules.missing(prim)
        token = enter(self)
        try:
            out = say(*args, **params)
        except TypeError as e:
            raise expand_rules.misapplied(prim, say, e) or e from None
        finally:
            leave(token)
        if config.checks:
            promised(expand_rules, prim, prim.infer(tuple([a.aval for a in args]), params), out)
        return as_list(out) if prim.many else out

    def _divided(
        self, prim: Primitive, rule: Any, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """Apply a rule to values whose types record how they are divided over explicit axes.

        Only an elementwise rule sees these types.  Operands of any other rule are released from
        them first.  In both cases the results are divided as the type rule of the operation
        requires.
        """
        types = as_list(prim.infer(tuple([a.aval for a in args]), params))
        if Elementwise not in prim.traits:
            args = [self._released(a) for a in args]
        out = self.run(prim, rule, args, params)
        outs = [self._lying(o, t) for o, t in zip(as_list(out), types, strict=True)]
        return outs if prim.many else outs[0]

    def _released(self, x: Any) -> Any:
        form, parts = self.split(x)
        return self.lift(x.aval.with_sharding(None), form, tuple(released(parts)))

    def _lying(self, x: Any, aval: Aval) -> Any:
        """Return a result whose components are divided as its type `aval` requires."""
        form, parts = self.split(x)
        if form is None:
            return lie_as(x, aval.division)
        wanted = self.part_avals(aval, form)
        laid = tuple([lie_as(p, a.division) for p, a in zip(parts, wanted, strict=True)])
        return self.lift(x.aval.with_sharding(aval.division), form, laid)

    def _sees(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> bool:
        axes = ambient_of(prim, params)
        if axes and self.concerns(axes):
            return True
        return bool(self.dims) and speaks_of(self.dims, args, params)

    def _unowned(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply an operation without lifted operands.

        Python functions among its parameters may close over lifted values.  These appear only when
        the functions are staged and the values become operands; this carrier then applies the
        operation.
        """
        assert self.parent is not None
        higher = prim.higher
        if higher is not None and higher.pending(params):
            if self.staging or self._reached_by(args, params):
                args, params = higher.settle(params, args)
                handle = handle_among(args)
                if handle is not None:
                    return apply_through(self, handle, prim, args, params)
                return self.apply(prim, args, params)
        out = self.parent.apply(prim, args, params)
        if higher is not None and higher.custom in self.heeds:
            self.refuse_enclosed(higher.custom, params, as_list(out))
        return out

    def refuse_enclosed(self, custom: str, params: dict[str, Any], outs: Sequence[Any]) -> None:
        """Raise ClosedOver if results of an operation carry components of this transformation,
        although no operand does; the operation has rules of a kind that it `heeds`.

        The user's function was then run directly, and closes over lifted values: its rule was not
        used, and the results differ from those of the rule.
        """
        users = [p for p in params.values() if p.__class__ is Deferred]  # the function, its rules
        if len(users) < 2:
            return
        for x in components(outs):
            if isinstance(x, Tracer) and x.by is self:
                raise enclosed(x, f"{users[0].name}, a function with a rule,", self.heeds[custom])

    def _reached_by(self, args: Sequence[Any], params: dict[str, Any]) -> bool:
        """Return whether functions that are not staged yet close over values that this carrier
        lifted.

        Operations on arrays run at once, so none is found there.  If an inner interpreter has
        lifted an operand, that interpreter applies their rules, where the values of this carrier
        cannot be used.
        """
        if not any(isinstance(a, Tracer) for a in args):
            return False
        users = [p for p in params.values() if p.__class__ is Deferred]
        return any(x.by is self for p in users for x in p.tracers())

    def through(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Lift any operation with programs by its wiring."""
        higher = prim.higher
        assert higher is not None
        if higher.pending(params):
            args, params = higher.settle(params, args)
            handle = handle_among(args)
            if handle is not None:
                return apply_through(self, handle, prim, args, params)
        # A rule that lifting does not commute with would be wrong on components.  The operation is
        # lifted without the rule, as the function that it computes.
        if higher.custom and higher.custom not in self.commutes:
            if not higher.hint:
                self.lose(prim, params)
            prim, params = higher.erase(prim, params)
        token = enter(self.parent)  # type: ignore[arg-type]
        try:
            return rewired(self, prim, args, params)
        finally:
            leave(token)

    def lose(self, prim: Primitive, params: dict[str, Any]) -> None:
        """Warn that an operation is about to be lifted without its custom rules."""
        kind = prim.higher.custom  # type: ignore[union-attr]
        kinds, named = f'frozenset(("{kind}",))', f"{type(self).__module__}.{type(self).__name__}"
        program = params.get("program")
        text = f"{self.does} lost the {kind} rule of {getattr(program, 'name', prim.name)} ({prim})"
        if kind in self.loses:
            by = {"derivative": "grad", "mapping": "vmap"}.get(kind, "use")
            fix = f"use the rule inside: {self.does}({by}(f)) instead of {by}({self.does}(f))"
        else:
            text += f"; the carrier {named} has {kind!r} neither in `commutes` nor in `loses`"
            fix = f"write commutes = {kinds} in it if it keeps the rule, or loses = {kinds}"
        warn(f"{text}\n  {fix}", RuleLost)

    def _verify(self, prim: Primitive, args: Any, params: dict[str, Any], out: Any) -> None:
        """Check that every value a rule returned has the type that the type rule promises, and
        the components of its form."""
        want = prim.infer(tuple([a.aval for a in args]), params)
        for w, x in zip(as_list(want), as_list(out), strict=True):
            check_lifted(self, x, w, prim)


def _acts_only(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Return whether an operation has an effect and no results, so that no result needs a rule."""
    if prim.effect is None or not prim.many or prim.effect(params) is None:
        return False
    return not as_list(prim.infer(tuple([a.aval for a in args]), params))


def _typed(method: Callable[..., Form]) -> Callable[..., Form]:
    """Return a method of (form, axis, aval) from one that may not need the type.

    Most forms do not depend on sizes, and neither do methods for them.
    """
    code = getattr(method, "__code__", None)
    if code is None or code.co_argcount != 3 or code.co_flags & inspect.CO_VARARGS:
        return method

    @functools.wraps(method)
    def typed(self: Any, form: Form, axis: int, aval: Aval | None = None) -> Form:
        return method(self, form, axis)

    return typed


def promised(table: RuleTable, prim: Primitive, want: Any, got: Any) -> None:
    """Raise TypeRule unless what a rule returned has the types of the primitive's results."""
    for w, g in zip(as_list(want), as_list(got), strict=True):
        if not g.aval.same_type(w):
            raise ArgumentError(
                f"the {table.name!r} rule of {prim} returned {g.aval!r} for {w!r}",
                fix="mend the rule: its result must have the type of the primitive's",
            )
