"""Lowering of Programs to StableHLO: the table of rules, and the emitter that they use.

Each distinct program becomes one `func.func`, however often it is called.  Every function of a
module takes, before its arguments, the values that its program uses without naming them: sizes of
symbolic dimensions, constant arrays, tokens of ordered effects.  Loops and branches are regions,
which see these directly.

Invariant: lowering reads Programs only, and never Python functions.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from .._base.config import config
from .._base.errors import PlacementError, PlaitError, ShapeError
from .._base.jaxlib_api import HAS_PRODUCTS_OF_ONE_THREAD, IrValue
from .._core.axis_names import unbound
from .._core.carrier import expand_rules, promised
from .._core.interpreter import Value, as_list
from .._core.ir import Effect, Eqn, Program, Var, derived, live_equations, ordered, programs_in
from .._core.staging import staged
from .._core.topologies import same_devices
from .._plugins.rules import RuleTable
from .._types.avals import INT32, Aval
from .._types.dims import Dim, is_symbolic
from .._types.dims.polynomial import ONE, Algebra, divisors, fold, subtract
from . import cpu_forms, mlir
from .mlir import attr, i64s, type_of

I32 = Aval((), INT32)
OPERATION = "plait.operation"
"""The attribute of functions that hold one operation each: its text as in a program."""

lower_rules = RuleTable(
    "lower",
    owns=("core",),
    signature="(e, xs, ins, outs, **params)",
    programs="(e, xs, ins, outs, **params)",
    doc="one MLIR value, or a list of them if the "
    "primitive has many results; `e` is the Emitter, `xs` are MLIR values, `ins` and `outs` avals.",
)
eager_rules = RuleTable(
    "eager",
    owns=("core",),
    signature="(args, params)",
    programs="(args, params)",
    doc="the result (a list if the primitive has many), or None to compile after "
    "all: how to do an operation now, in Python.",
)


class Unit:
    """One module under construction.

    Attributes:
      symbols: the module-level declarations of lowering rules.
      callbacks: the Python functions that the module calls (`python_calls`).
      constants: the arrays that it needs; `main` takes first those that it does not `embed`.
      places: where it must run (several, if they have the same devices); empty for the default
        device.
      placements: MLIR value -> its placement, where it is set.
      questions: the placement queries, with their operations.
      acting: the operations with side effects that must happen once.
      platforms: the platforms that it is lowered for.
      said: the expansions of equations with programs.
      references: how often functions were made or called.
      made: key -> an operation to copy.
      attributes: constant -> its attributes.
      instead: None, or `instead(equation, platforms)`, which may return a function of values that
        is lowered in place of the equation.
      named: None, or `named(equation)`, which may return a program of that equation alone and its
        text.  The operation then becomes a function of the module, which carries the text.
      formed: whether operations have the forms of `cpu_forms`.
      unformed: the primitives that have none.
      counts_gains: whether `gain` decides how it is compiled.
      gain: nanoseconds that it runs faster with all processors for its products
        (`product_threads`).
      results: how many results have each type; these decide how memory is taken
        (`module.is_split`).
      within: with `locations`, that of the equation without programs which is being lowered, else
        None.  The operations that its rule, form or expansion consists of were made elsewhere, and
        perhaps for another call.
    """

    __slots__ = (
        "module", "functions", "names", "symbols", "callbacks", "constants", "places",
        "placements", "questions", "acting", "platforms", "locations", "embed", "said", "made",
        "attributes", "instead", "named", "tier", "references", "supposed_alone", "_needed",
        "_ruled", "formed", "unformed", "within", "counts_gains", "gain", "results",
    )  # fmt: skip
    module: Any
    platforms: tuple[str, ...]
    locations: bool
    embed: bool | Callable[..., Any]
    instead: Callable[..., Any] | None
    named: Callable[..., Any] | None
    tier: str
    references: int
    supposed_alone: bool
    formed: bool
    counts_gains: bool
    gain: float
    results: dict[Aval, int]

    def __init__(
        self,
        platforms: tuple[str, ...],
        locations: bool = False,
        embed: bool | Callable = False,
        instead: Callable | None = None,
        named: Callable | None = None,
        tier: str = "full",
    ):
        self.module = mlir.new_module()
        self.functions: dict[Any, str] = {}
        self.references = 0
        self.names: dict[str, int] = {"main": 0}
        self.symbols: dict[Any, str] = {}
        self.callbacks: list[Callable] = []
        self.constants: dict[int, Any] = {}
        self.places: list[Any] = []
        self.placements: dict[Any, Any] = {}
        self.questions: list[tuple[Any, Any]] = []
        self.acting: list[Any] = []
        self.platforms, self.locations, self.embed = platforms, locations, embed
        self.said: dict[Any, Program] = {}
        self.made: dict[Any, Any] = {}
        self.attributes: dict[Any, Any] = {}
        self.instead, self.named, self.tier = instead, named, tier
        self.supposed_alone = False
        self.formed = instead is named is None and cpu_forms.wanted(platforms)
        self.unformed: set[Any] = set()
        self.within: Any = None
        self.counts_gains, self.gain = HAS_PRODUCTS_OF_ONE_THREAD and self.formed, 0.0
        self.results = {}
        self._needed: dict[Program, dict[int, Any]] = {}
        self._ruled: set[Any] = set()

    @property
    def rounds_alike(self) -> bool:
        """True if a value that the compiler computes in two places is rounded alike in both.

        The compiler puts cheap operands into every loop that reads them.  In one loop, but not in
        another, a product and a sum may become a single operation that rounds once.  Then a value
        is not equal to itself.  Only the full tier for CPUs has never been seen to do so.
        """
        return self.platforms == ("cpu",) and self.tier == "full"

    @property
    def is_plain(self) -> bool:
        """True if operations and types describe the module completely, so far."""
        told = self.symbols or self.callbacks or self.places or self.placements or self.questions
        return not (told or self.acting or self.locations or self.instead or self.named)

    @property
    def place(self) -> Any:
        """The place where it must run; None is the default device."""
        return self.places[0] if self.places else None

    def embeds(self, x: Value) -> bool:
        """Return whether a constant array is written into the module, and not passed to `main`."""
        return bool(self.embed(x)) if callable(self.embed) else self.embed

    def run_at(self, place: object) -> None:
        """Demand that the module runs at `place`; raise PlacementError if it must run elsewhere."""
        if self.places and not same_devices(self.place, place):
            raise PlacementError(
                "received arrays on incompatible devices: "
                f"one computation cannot run on {self.place} and on {place}",
                fix="bring the arrays to the devices of one of them with plait.device_put",
            )
        if place not in self.places:
            self.places.append(place)

    def needs(self, p: Program) -> dict[int, Any]:
        """Return every constant array of a program, its sub-programs, and their expansions.

        Functions take them before their arguments, so they must be found before the body is
        lowered.  Expansions are made here, and looked up when the body is lowered.
        """
        found = self._needed.get(p)
        if found is not None:
            return found
        found = self._needed[p] = {id(x): x for _, x in p.consts}
        ruled = self._ruled
        for e in p.eqns:
            prim = e.prim
            if prim.higher is not None:
                for q in programs_in(e.params):
                    found.update(self.needs(q))
            if prim in ruled:
                continue
            if prim.ambient is not None or lower_rules.find(prim) is not None:
                ruled.add(prim)
            elif expand_rules.find(prim) is not None:
                found.update(self.needs(self.expanded(e)))
        return found

    def expanded(self, e: Eqn, instead: Callable | None = None) -> Program:
        """Return the program that the `expand` rule of an equation, or the function `instead`,
        turns it into."""
        prim, params = e.prim, e.params
        say = expand_rules.find(prim) if instead is None else instead
        if say is None:
            raise lower_rules.missing(prim, e.where)
        avals = tuple([a.aval for a in e.inputs])
        key: Any = ("expand", prim, avals, prim.frozen(params)) if prim.higher is None else e
        # Programs among the parameters must not stay alive forever.
        store = prim.compiled if prim.higher is None else self.said
        if instead is not None:
            key, store = (instead, *key), self.said
        q = store.get(key)
        if q is None:
            name = prim.name.rpartition(".")[2]
            q = staged(lambda *vs: as_list(say(*vs, **params)), avals, name, prune=True)
            promised(expand_rules, prim, [o.aval for o in e.outputs], q.outputs)
            store[key] = q
        return q

    def declare(self, key: object, name: str, text: str) -> str:
        """Return the name of a module-level operation, declared once per `key` by `text`."""
        if key not in self.symbols:
            self.symbols[key] = name = self.unique(name)
            mlir.declare(self.module, text.format(name))
        return self.symbols[key]

    def unique(self, name: str) -> str:
        """Return a symbol that no function of the module has yet, made from `name`."""
        name = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "f"
        n = self.names[name] = self.names.get(name, -1) + 1
        return self.unique(f"{name}_{n}") if n else name


class Emitter:
    """A writer of operations at one place of a module.

    Attributes:
      unit: the module.
      bound: axis name -> the operation that binds it here: `.lowering(prim)` returns a rule, and
        `.once(e, xs, ins, outs, act)` emits `act(emitter, xs)`, which has effects.
      dims: symbolic size -> its value here.
      consts: identity of a constant array -> its value here.
      tokens: ordered effect -> its last token.
    """

    __slots__ = ("unit", "ip", "where", "bound", "dims", "consts", "tokens", "create", "_shapes")
    unit: Unit
    ip: Any
    where: Any
    bound: Any
    dims: Any
    consts: Any
    tokens: Any
    create: Any

    def __init__(
        self, unit: Unit, ip: Any, bound: Any, dims: Any, consts: Any, tokens: Any, where: Any
    ):
        self.unit, self.ip, self.where = unit, ip, where
        self.bound, self.dims, self.consts, self.tokens = bound, dims, consts, tokens
        self.create = mlir.bindings().create
        self._shapes: dict[tuple, Any] = {}

    @property
    def is_divided(self) -> bool:
        """True if the compiler may divide the values here over several devices.

        A module that gets its place later, from a constraint further on, is lowered again.
        """
        place = self.unit.place
        if place is None:
            self.unit.supposed_alone = True
            return False
        answers = hasattr(place, "is_left")  # places of plugins for older releases lack it
        return answers and len(place.devices) > 1 and place.is_left(self.bound)

    @property
    def calls_numpy(self) -> bool:
        """True if functions of numpy may compute here, in place of operations (`python_calls`).

        Code that is read elsewhere (`embeds`) calls no Python, and the compiler divides no calls.
        """
        return self.unit.formed and not self.unit.embed and not self.is_divided

    def whole_along(self, x: IrValue, aval: Aval, axes: Collection[int]) -> Any:
        """Return `x`, gathered so that every device has it whole along these axes.

        The compiler divides operations even where its result is wrong: some operations, divided
        along some axes, return wrong numbers or end the process.  These axes are gathered before
        the operation and divided again after it.
        """
        if not self.is_divided or not axes:
            return x
        return self.unit.place.whole_along(self, x, aval, axes)

    # -- operations ------------------------------------------------------------------------

    def op(
        self,
        name: str,
        inputs: Sequence[Any],
        *outs: Aval,
        regions: Iterable[tuple[Sequence[Aval], Callable[..., Any]]] = (),
        order: Sequence[Effect] = (),
        end: str = "stablehlo.return",
        bound: dict[Any, Any] | None = None,
        **attributes: object,
    ) -> Any:
        """Make one operation; return a value if it has one result, else a list.

        Each region is (types of its arguments, body): `body(emitter, arguments) -> values`.
        """
        if order or regions:
            return self._with_regions(
                name, inputs, outs, list(regions), order, end, bound, attributes
            )
        types = [type_of(t) for t in outs]
        o = self.create(name, types, inputs, attributes or None, None, 0, self.where, self.ip)
        if len(outs) == 1:
            return o.result
        made = self.unit.results
        for t in outs:  # a routine may need more memory for its work than for its results
            made[t] = made.get(t, 0) + 1
        return list(o.results)

    def _with_regions(
        self,
        name: str,
        inputs: Sequence[IrValue],
        outs: tuple[Aval, ...],
        regions: list[tuple[Any, ...]],
        order: Sequence[Any],
        end: str,
        bound: dict[str, Any] | None,
        attributes: object,
    ) -> Any:
        """Make an operation with regions, and thread the tokens of `order` through it.

        Regions of loops take and return tokens (a predicate only takes them); other regions see
        the outer tokens and return their own.
        """
        loop = name == "stablehlo.while"
        token = mlir.bindings().token
        extra = [token] * len(order)
        if order and loop:
            inputs = [*inputs, *self.tokens_of(order)]
        elif order:
            self.tokens_of(order)
        types = [type_of(t) for t in outs] + extra
        o = self.create(
            name, types, list(inputs), attributes or None, None, len(regions), self.where, self.ip
        )
        for i, (region, (ins, body)) in enumerate(zip(o.regions, regions, strict=True)):
            taken = [type_of(t) for t in ins] + (extra if loop else [])
            b = mlir.block(region, taken)
            inner = self.inside(b, bound)
            args = list(b.arguments)
            if order and loop:
                inner.tokens.update(zip(order, args[len(ins) :]))
            result = body(inner, args[: len(ins)])
            if order and not (loop and i == 0):
                result = [*result, *inner.tokens_of(order)]
            self.create(end, [], list(result), loc=self.where, ip=inner.ip)
        results = list(o.results)
        if order:
            self.tokens.update(zip(order, results[len(outs) :]))
        return results[0] if len(outs) == 1 else results[: len(outs)]

    def alike(self, key: tuple[Any, ...], inputs: Sequence[Any], make: Callable[[], Any]) -> Any:
        """Make an operation with one result; `make` makes the first one for each `key`.

        Later ones are copies with other inputs: an operation with regions takes several calls of
        the bindings, a copy takes one.
        """
        first = self.unit.made.get(key)
        if first is None or self.unit.locations:
            made = make()
            self.unit.made[key] = made.owner
            return made
        o = first.clone(self.ip)
        for i, x in enumerate(inputs):
            o.operands[i] = x
        return o.results[0]

    def inside(self, b: object, bound: dict[Any, Any] | None = None) -> "Emitter":
        """Return an emitter for a block of a region here."""
        ip = mlir.insertion_point(b)
        bound = self.bound if bound is None else bound
        tokens = dict(self.tokens)
        return Emitter(self.unit, ip, bound, self.dims, self.consts, tokens, self.where)

    def tokens_of(self, order: Sequence[Effect]) -> list[Any]:
        """Return the last tokens of these effects; make a token for each effect without one."""
        for k in order:
            if k not in self.tokens:
                token = mlir.bindings().token
                made = self.create(
                    "stablehlo.create_token", [token], [], None, None, 0, self.where, self.ip
                )
                self.tokens[k] = made.result
        return [self.tokens[k] for k in order]

    def constant(self, value: Any, aval: Aval) -> Any:
        """Make a constant of a type from a scalar that fills it, or a numpy array of its shape."""
        if is_symbolic(aval.shape):
            cell = self.constant(value, Aval((), aval.dtype))
            return self.broadcast(cell, (), aval)
        kind = value.__class__
        if kind is not float and kind is not int and kind is not bool:
            return self.op("stablehlo.constant", [], aval, value=_dense(value, aval))
        key = repr(value), aval  # not the value itself, since 0.0 equals -0.0
        found = self.unit.attributes.get(key)
        if found is None:
            found = self.unit.attributes[key] = {"value": _dense(value, aval)}
        types = [type_of(aval)]
        return self.create(
            "stablehlo.constant", types, [], found, None, 0, self.where, self.ip
        ).result

    def broadcast(self, x: IrValue, dims: Sequence[int], aval: Aval) -> Any:
        """Make a `broadcast_in_dim`, or a dynamic one if the shape is symbolic."""
        at = i64s(*dims)
        if is_symbolic(aval.shape):
            shape = self.shape(aval.shape)
            return self.op(
                "stablehlo.dynamic_broadcast_in_dim", [x, shape], aval, broadcast_dimensions=at
            )
        return self.op("stablehlo.broadcast_in_dim", [x], aval, broadcast_dimensions=at)

    def compare(self, x: Any, y: IrValue, direction: str, aval: Aval) -> Any:
        """Make a comparison (`EQ`, `LT`, ...); `aval` is the type of the booleans."""
        how = attr(f"#stablehlo<comparison_direction {direction}>")
        return self.op("stablehlo.compare", [x, y], aval, comparison_direction=how)

    # -- symbolic sizes --------------------------------------------------------------------

    def size(self, d: Any) -> Any:
        """Return a size as an i32 value."""
        if d.__class__ is not Dim:
            return self.constant(int(d), I32)
        algebra = self.arithmetic()
        if not all(d.scope.at_least_zero(subtract(b, ONE)) for b in divisors(d.terms)):
            # This size may be undefined where it is not used (a divisor of 0), so that computing it
            # must not divide by 0 there.
            least = lambda b: self.op("stablehlo.maximum", [b, self.constant(1, I32)], I32)  # noqa: E731
            algebra = algebra._replace(
                floordiv=lambda a, b: self._floordiv(a, least(b)),
                mod=lambda a, b: self._mod(a, least(b)),
            )
        return fold(d.terms, algebra)

    def arithmetic(self) -> Algebra:
        """Return the algebra that computes sizes as i32 values."""
        binary = lambda name: lambda a, b: self.op("stablehlo." + name, [a, b], I32)  # noqa: E731
        return Algebra(
            constant=lambda c: self.constant(c, I32),
            variable=self._named_size,
            add=binary("add"),
            mul=binary("multiply"),
            floordiv=self._floordiv,
            mod=self._mod,
            maximum=binary("maximum"),
            minimum=binary("minimum"),
        )

    def _named_size(self, name: str) -> Any:
        if name not in self.dims:
            raise PlaitError(
                f"the size {name} is not known: no argument has an axis of that size",
                fix=f"pass an array with an axis of the size {name}, as one of shape (0, {name})",
            )
        return self.dims[name]

    def _floordiv(self, a: IrValue, b: IrValue):
        """Divide sizes, rounding down: divisors are positive, dividends may be negative."""
        sub = self.op("stablehlo.subtract", [a, self._mod(a, b)], I32)
        return self.op("stablehlo.divide", [sub, b], I32)

    def _mod(self, a: IrValue, b: IrValue):
        # `remainder` has the sign of the dividend, so the divisor is added and it is taken again.
        r = self.op("stablehlo.remainder", [a, b], I32)
        r = self.op("stablehlo.add", [r, b], I32)
        return self.op("stablehlo.remainder", [r, b], I32)

    def shape(self, shape: Sequence[Any]) -> Any:
        """Return a shape as a vector of i32 values; reuse it for the same shape in this block."""
        key = tuple([d if d.__class__ is Dim else int(d) for d in shape])
        if key not in self._shapes:  # operations are appended to a block, so later ones can use it
            self._shapes[key] = self._shape(key)
        return self._shapes[key]

    def _shape(self, shape: Sequence[Any]) -> Any:
        out = Aval((len(shape),), INT32)
        if not shape:
            return self.constant(np.zeros(0, np.int32), out)
        sizes = [self._entry(d) for d in shape]
        return self.op("stablehlo.concatenate", sizes, out, dimension=mlir.i64(0))

    def _entry(self, d: Dim | int) -> Any:
        """Return a size as a vector of one i32 value; reuse it for the same size in this block."""
        one = Aval((1,), INT32)
        if d.__class__ is not Dim:
            return self.constant(int(d), one)
        key = "size", d
        if key not in self._shapes:
            self._shapes[key] = self.op("stablehlo.reshape", [self.size(d)], one)
        return self._shapes[key]

    # -- programs --------------------------------------------------------------------------

    def array(self, x: Any) -> Any:
        """Return the value of a constant array, which is an argument of `main`.

        Only programs that a lowering rule made for its own use have other constants; these are
        written into the module.
        """
        here = self.consts.get(id(x))
        return self.constant(x.numpy(), x.aval) if here is None else here

    def program(self, p: Program, args: Sequence[Any]) -> list[Any]:
        """Lower the equations of `p` here; return the values of its outputs."""
        env: dict[Any, Any] = dict(zip(p.inputs, args, strict=True))
        for v, x in p.consts:
            env[v] = self.array(x)
        constants: dict[Any, Any] = {}

        def read(a: Any) -> Any:
            if a.__class__ is Var:
                return env[a]
            key = repr(a.value), a.aval
            if key not in constants:
                constants[key] = self.constant(a.value, a.aval)
            return constants[key]

        find, locations = lower_rules.find, self.unit.locations
        formed, unformed, made = self.unit.formed, self.unit.unformed, self.unit.results
        for e in live_equations(p.eqns, p.outputs):
            prim = e.prim
            outermost = locations and self.unit.within is None
            if outermost:
                self.where = mlir.location(e.where)
                self.unit.within = self.where if prim.higher is None else None
            elif locations:
                self.where = self.unit.within
            instead = None if self.unit.instead is None else self._instead(e)
            rule = None
            named = None if self.unit.named is None else self.unit.named(e)
            if named is not None:
                rule = self._by_name(*named)
            elif instead is None:
                rule = find(prim) if prim.ambient is None else self.binder(e)
            form = self._form(e) if formed and prim not in unformed else None
            xs = [env[a] if a.__class__ is Var else read(a) for a in e.inputs]
            if form is not None:
                out = self._inline(form, xs, prim)
            elif rule is None:
                out = self.said_otherwise(e, xs, instead)
            else:
                ins, outs = [a.aval for a in e.inputs], [o.aval for o in e.outputs]
                try:
                    out = rule(self, xs, ins, outs, **e.params)
                except ShapeError as error:  # a type that the compiler cannot represent
                    error.about(e.where)
                    raise
                except TypeError as error:
                    raise lower_rules.misapplied(e.prim, rule, error) or error from None
            if prim.many:
                env.update(zip(e.outputs, out, strict=True))
            else:
                env[e.outputs[0]] = out
            for o in e.outputs:
                made[o.aval] = made.get(o.aval, 0) + 1
                if o.aval.division is not None:
                    env[o] = o.aval.division.obeyed(self, env[o], o.aval)
            if outermost:
                self.unit.within = None
        return [read(a) for a in p.outputs]

    def _instead(self, e: Eqn) -> Callable | None:
        """Return the function lowered in place of an equation without programs and named axes."""
        if e.prim.higher is not None or e.prim.ambient is not None:
            return None
        return self.unit.instead(e, self.unit.platforms)  # type: ignore[misc]

    def _by_name(self, alone: Program, text: str) -> Callable:
        """Return a rule that calls a function for one operation: its program is `alone`, and an
        attribute of the function holds the text of the operation."""

        def rule(
            e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], /, **params: object
        ):
            unit, before = e.unit, e.unit.named
            key: Any = alone, frozenset(), unit.platforms
            known = key in unit.functions
            unit.named = None  # the function performs the operation, and does not call itself
            try:
                results = e.call(alone, xs)
            finally:
                unit.named = before
            if not known:
                f = mlir.function_of(unit.module, unit.functions[key])
                f.attributes[OPERATION] = mlir.string(text)
            return results if len(results) != 1 or alone.eqns[0].prim.many else results[0]

        return rule

    def said_otherwise(self, e: Eqn, xs: Sequence[Any], instead: Callable | None = None) -> Any:
        """Lower an operation without a rule by its expansion; inline if that is short."""
        return self._inline(self.unit.expanded(e, instead), xs, e.prim)

    def _inline(self, q: Program, xs: Sequence[Any], prim: Any) -> Any:
        """Lower the program of one operation, by a call if it is long; return its results.

        With locations it is always inline: two operations that share a function would share a line.
        """
        inline = len(q.eqns) < 8 or self.unit.locations
        results = self.program(q, xs) if inline else self.call(q, xs)
        return results if prim.many else results[0]

    def _form(self, e: Eqn) -> Program | None:
        """Return the program of the form that an equation has here, if it has one."""
        if e.prim.higher is not None or cpu_forms.cpu_form_rules.find(e.prim) is None:
            self.unit.unformed.add(e.prim)
            return None
        found = cpu_forms.form(e)
        # A value that is divided over devices stays as it is: slices of it would be exchanged.
        return None if found is None or self.is_divided else found

    def binder(self, e: Any) -> Callable:
        """Return the lowering of an equation that uses named axes, from the binder of its axes."""
        names = e.prim.ambient(e.params)
        for n in names:
            if n not in self.bound:
                raise unbound(n)
        by = {self.bound[n] for n in names}
        if len(by) != 1:
            raise PlaitError(
                f"{e.prim} speaks of axes {sorted(map(str, names))}, bound in different places",
                where=e.where,
                fix="apply it once for each of them",
            )
        return by.pop().lowering(e.prim)

    def call(self, p: Program, args: Sequence[Any]) -> list[Any]:
        """Call the function of `p`, which is made at the first call; return the results."""
        bound = frozenset((n, self.bound.get(n)) for n in p.axes)
        key: Any = p, bound, self.unit.platforms
        if p.effects:  # acting once for all devices and once for each are different functions
            key = *key, bool(self.bound)
        name = self.unit.functions.get(key)
        if name is None:
            name = self.unit.functions[key] = self.function(p, self.unit.unique(p.name))
        order = ordered([p])
        token = mlir.bindings().token
        types = [token] * len(order) + [type_of(t) for t in p.out_avals]
        front = [*self.dims.values(), *map(self.array, self.unit.needs(p).values())]
        operands = [*front, *self.tokens_of(order), *args]
        callee = {"callee": mlir.symbol(name)}
        self.unit.references += 1
        r = self.create("func.call", types, operands, callee, None, 0, self.where, self.ip)
        results = list(r.results)
        self.tokens.update(zip(order, results))
        return results[len(order) :]

    def function(self, p: Program, name: str) -> str:
        """Make a private function of sizes, constants, tokens and arguments, which returns tokens
        and results; return its name.

        If the function takes only its arguments and refers to no other function, its code is kept
        with its program, and read again in the next module.  In another module, the name of a
        function that it refers to may belong to a different one.  Keeping code pays for tables and
        jitted inner functions, which occur in module after module.
        """
        self.unit.references += 1
        alone = not (self.dims or p.axes or p.effects or self.unit.needs(p)) and self.unit.is_plain
        if not alone:
            self._function(p, name)
            return name
        key = "function", self.unit.platforms, self.unit.tier, config.state
        kept: list[Any] = derived(p, key, list)
        if kept and kept[-1] is not None:
            mlir.add_function(self.unit.module, kept[-1], name)
            return name
        before = self.unit.references
        made = self._function(p, name)
        if not kept:
            kept.append(None)  # encoding pays only from the second module on
        elif self.unit.is_plain and self.unit.references == before:
            kept.append(mlir.code_of(made))
        return name

    def _function(self, p: Program, name: str) -> Any:
        order, token = ordered([p]), mlir.bindings().token
        sizes, consts = list(self.dims), self.unit.needs(p)
        ins = [type_of(I32)] * len(sizes) + [type_of(x.aval) for x in consts.values()]
        tokens = [token] * len(order)
        ins += tokens + [type_of(a) for a in p.in_avals]
        outs = tokens + [type_of(a) for a in p.out_avals]
        b, made = mlir.function(self.unit.module, name, ins, outs, public=False)
        args = iter(list(b.arguments))
        dims = {n: next(args) for n in sizes}
        here = {k: next(args) for k in consts}
        inner_tokens = {k: next(args) for k in order}
        ip, unknown = mlir.insertion_point(b), mlir.bindings().unknown
        inner = Emitter(self.unit, ip, self.bound, dims, here, inner_tokens, unknown)
        results = inner.program(p, list(args))
        results = [*inner.tokens_of(order), *results]
        self.create("func.return", [], results, None, None, 0, unknown, ip)
        return made


def _dense(value: Any, aval: Aval) -> Any:
    x = np.asarray(value)
    if x.dtype != aval.dtype:
        with np.errstate(all="ignore"):
            x = x.astype(aval.dtype)
    return mlir.dense(x, aval)


def simple(name: str, **texts: str) -> Callable:
    """Return a rule that makes the operation of this name on the same operands."""
    full = name if "." in name else "stablehlo." + name

    def rule(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
        attributes = {k: attr(v) for k, v in texts.items()} if texts else None
        types = [type_of(outs[0])]
        return e.create(full, types, xs, attributes, None, 0, e.where, e.ip).result

    return rule
