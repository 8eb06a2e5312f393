"""The calls of a jitted function: one pass through the stages from its arguments to its results.

Each stage is a module, which hands on one type:

    roles        (args, kwargs)          -> DividedCall: static arguments set apart
    versions     DividedCall             -> Version: the function of the other arguments
    placements   their leaves            -> the same leaves, where they must lie
    signatures   their leaves            -> Signature: values and types
    tracing      Version, Signature      -> Traced: a Program
    compiling    Traced, Signature       -> CompiledCall: a function of buffers
    fast_paths   PerformedCall           -> the path of the next call like it

Invariant: a stage imports only stages above it.  The compiled path is taken only when every operand
is an Array (or was converted to one) outside of transformations.
"""

# pyright: reportPrivateUsage=false
# (arrays are unpacked here without a call: see `plait._core.array`)

import weakref
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from .._base.argument_names import parameter_names
from .._base.config import config
from .._base.errors import ArgumentError
from .._base.lazy import later
from .._base.living import Living
from .._base.source import where_defined
from .._base.surroundings import Surroundings, around, last_asked
from .._base.tracebacks import border
from .._core.array import Array, Literal, as_value, donated_twice, is_tracer
from .._core.axis_names import named_axes
from .._core.carrier import Lifted
from .._core.fitting import fitted, has_capacities
from .._core.handles import handle_among
from .._core.interpreter import GROUND, Interpreter, current
from .._core.ir import Var, evaluate
from .._core.same_parts import alike, as_one
from .._core.staging import Stage
from .._ops.control_flow import call as call_
from .._ops.shape import materialise_at_ground
from .._types.avals import Key
from .._xla.operands import as_argument
from .._xla.tiers import Options
from ..tree import LEAF, TreeDef, flatten
from .caches import make_room
from .call_forms import Args, Kwargs, Way
from .compiling import CompiledCall, compiled, run
from .fast_paths import FastPaths, PerformedCall, by_surroundings, form_of, moved, with_static
from .jittable import jittables
from .placements import (
    bring,
    destinations,
    is_chosen_by_compiler,
    places_of_results,
    without_chosen,
)
from .roles import NO_ROLE, Roles
from .shapes import shapes_only
from .signatures import Signature, call_key, concrete, of_arrays

if TYPE_CHECKING:  # at run time they are imported at the first use
    from .stages import Lowered, Staged
from .tracing import Traced, trace, trace_signature, traced_shapes
from .versions import Version, Versions

LOOKING: list[Any] = []
"""The values that functions read, for each open block of `checking_purity`: {function: Reads}."""
_VALUES = frozenset((Array, Literal, Var, Lifted))


# ---- one call of a version ---------------------------------------------------------------------


def staged(version: Version, args: Args, kwargs: Kwargs) -> Any:
    """Apply the function as one operation of the current interpreter; return its results."""
    if LOOKING:
        later("_jit.purity").look_again(LOOKING[-1], version.f)
    if not config.jit:
        leaves, tree = flatten((args, kwargs))
        # Functions could write into numpy arrays, which is unintended where values are traced.
        leaves = [as_value(x) if isinstance(x, ndarray) else x for x in leaves]
        args, kwargs = tree.unflatten(leaves)
        return version.f(*args, **kwargs)
    if version.options.flags:
        _expect_outermost(version)
    # Traces depend on the named axes around them, which `version.calls.staged` is not keyed on.
    alone = not kwargs and not version.inline and not named_axes()
    if alone:
        try:  # flat values, whose trace captured nothing, need only the call itself
            params, tree = version.calls.staged[
                tuple([x.aval if x.__class__ in _VALUES else x for x in args])
            ]
        except (KeyError, TypeError):
            pass
        else:
            outs = current().apply(call_, args, params)
            return outs[0] if tree is None else tree.unflatten(outs)
    traced = trace(version.f, args, kwargs, "jit", version.traces)
    version.depends = version.depends or traced.asked
    operands = [*traced.captured, *traced.values]
    one = alike(traced.tree, traced.program.outputs)
    if version.inline and handle_among(operands) is None:
        outs = evaluate(traced.program, operands)
    else:
        outs = call_.bind(*operands, program=traced.program)
        alone = alone and not traced.asked and len(operands) == len(args) and not one
        if alone and all(x.__class__ in _VALUES for x in args):
            tree = None if traced.tree == LEAF else traced.tree
            make_room(version.calls.staged)
            version.calls.staged[tuple([x.aval for x in args])] = {"program": traced.program}, tree
    outs = as_one(traced.tree, one, [materialise_at_ground(o) for o in outs])
    return traced.tree.unflatten(outs)


_NEVER_COMPILED = ("eval_shape", "make_program")
"""Transformations that stage a function and compile nothing."""


def _expect_outermost(version: Version) -> None:
    """Raise ArgumentError for a function with options of the compiler that is staged in another.

    One program has one set of options, and those of a part would be lost without a word.
    """
    by: Interpreter | None = current()
    while by is not None:
        if isinstance(by, Stage) and by.does not in _NEVER_COMPILED:
            options = ", ".join(name for name, _ in version.options.flags)
            raise ArgumentError(
                f"{where_defined(version.f)}, jitted with compiler_options ({options}), is part of "
                f"the program of {by.title()}",
                fix="give compiler_options to the outermost jit alone",
            )
        by = by.parent


def compiled_call(
    version: Version, signature: Signature, key: tuple[Any, ...]
) -> CompiledCall | None:
    """Trace and compile a version for arrays; keep its compiled call by `key`, and return it.

    The result is None if the function closes over values of a transformation under way, which only
    its interpreter can use.
    """
    traced = trace_signature(version.f, signature, "jit", version.traces)
    version.depends = version.depends or traced.asked
    if any(map(is_tracer, traced.captured)):
        return None
    keys = tuple([x.key for x in signature.values])
    made = compiled(traced, keys, version.donated, version.options)
    if version.is_apart or not traced.asked:
        version.calls.keep(key, made)
    return made


def perform(
    version: Version, tree: TreeDef, values: Sequence[Array], keys: tuple[Key, ...]
) -> tuple[Any, CompiledCall | None]:
    """Perform a call with arrays of these dispatch keys; return its results and its compiled call,
    or None if it was staged."""
    key = call_key(tree, values, keys)
    found = version.calls.every.get(key)
    if found is None:
        if version.reads:
            version.reads.look()
        found = compiled_call(version, of_arrays(tree, values), key)
    if found is None:
        args, kwargs = tree.unflatten(values)
        return staged(version, args, kwargs), None
    bufs = [x._buf for x in values]
    if version.donated and len({*map(id, bufs)}) < len(bufs):
        _expect_given_once(version, bufs)
    for i in version.donated:
        bufs[i]._npy_value = False  # see `array._viewed`
    return run(found, bufs), found


def _expect_given_once(version: Version, bufs: list[Any]) -> None:
    """Raise RuntimeRefusal if donated memory is given twice; the runtime would print lines of its
    log before it says so."""
    if any(sum(b is bufs[i] for b in bufs) > 1 for i in version.donated):
        raise donated_twice()


def done(version: Version, args: Args, kwargs: Kwargs) -> tuple[Any, PerformedCall | None]:
    """Perform a call in the general way; return its results, and its description unless it was
    staged.

    Arguments are checked, and misses compiled, in this function only.
    """
    leaves, tree = flatten((args, kwargs))
    if not config.jit or any(map(is_tracer, leaves)):
        handle = handle_among([leaves[i] for i in version.donated])
        if handle is not None:
            raise handle.refused("jit's donate_argnums")
        return staged(version, args, kwargs), None
    values = given = concrete(leaves, args, kwargs, version.donated, version.f)
    if has_capacities(tree):
        tree, leaves, values = served(version, tree, leaves, values)
    keys = tuple([x.key for x in values])
    results, found = perform(version, tree, values, keys)
    if found is None:
        return results, None
    form = form_of(tree, leaves, values, version.donated, found)
    forget_donated(values, form.leaves)
    if given is not values:
        forget_donated(given, form.leaves)
    return results, PerformedCall(form, keys, found, version)


def served(
    version: Version, tree: TreeDef, leaves: Sequence[Any], values: Sequence[Array]
) -> tuple[TreeDef, Sequence[Any], Sequence[Array]]:
    """Return (structure, leaves, arrays) with which a call is performed that holds capacities."""
    want = version.calls.serving(tree)
    whole = tree.unflatten(values)
    if want is tree or want == tree:
        version.calls.keep_fit(whole, want)
        return tree, leaves, values
    fits = fitted(whole, want)
    if fits is None:
        return tree, leaves, values
    version.calls.keep_fit(whole, want)
    values = [as_argument(x) for x in flatten(fits)[0]]
    return want, values, values


def forget_donated(leaves: Sequence[Any], kinds: Sequence[str]) -> None:
    """Remove the buffers of arrays that were donated.

    An Array without `_buf` falls out of every fast path, so the error needs no check there.  An
    array may be among the leaves twice.
    """
    for x, kind in zip(leaves, kinds):
        if kind == "d" and x.__class__ is Array and hasattr(x, "_buf"):
            del x._buf


def _may_read(f: Callable[..., Any]) -> bool:
    """Return whether a function may read more than its arguments; False for most small ones."""
    code = getattr(f, "__code__", None)
    return code is None or bool(code.co_freevars or code.co_names or code.co_cellvars)


# ---- the state of a jitted function ------------------------------------------------------------


BoundCall = tuple[Version, Args, Kwargs]
"""A version, and the arguments of a call that are not static."""


_states: Living["JittedState"] = Living()
"""The state of each jitted function."""


def forget_calls() -> None:
    """Drop the traces and executables that jitted functions hold."""
    for state in _states.each():
        state.clear_cache()


class JittedState:
    """The state of a jitted function, which closes over it and nothing else.

    So the function is pickled by its contents (by cloudpickle): the function that was jitted, and
    its options.  It is freed as soon as its last reference is gone, so no object that the state
    holds may hold the state: fast paths call `again`, which finds it by a weak reference.

    Attributes:
      way: the fast path of the last call's form.  For another form it calls `slow`, which replaces
        it.  None: flat arrays are looked up in `one` and `flat`.
      one, flat: the compiled calls with flat arrays, by their keys, without roles.
      staged: performs calls under a transformation.
    """

    __slots__ = (
        "versions", "roles", "depends", "paths", "choices", "way", "one", "flat", "staged", "again",
        "__weakref__",
    )  # fmt: skip

    way: Way | None
    staged: Way

    def __init__(self, f: Callable[..., Any], roles: Roles | None, inline: bool, options: Options):
        self.versions = Versions(f, inline, options, is_plain=roles is None)
        self.roles, self.depends, self.way = roles, False, None
        self.paths: dict[Surroundings | None, FastPaths] = {}
        """By surroundings, for a function that depends on them; else by None."""
        self.choices: dict[Hashable, list[Any]] = {}
        """The placements that the compiler chose, by program and destinations."""
        found = weakref.ref(self)
        _states.add(self)

        def again(args: Args, kwargs: Kwargs) -> Any:
            state = found()
            assert state is not None  # the functions that call fast paths hold the state
            return state.slow(args, kwargs)

        self.again: Way = again
        plain = self.versions.plain
        self.one: dict[Any, Any] = {} if plain is None else plain.calls.one
        self.flat: dict[Any, Any] = {} if plain is None else plain.calls.flat
        self.staged = again if plain is None else partial(staged, plain)

    def __reduce__(self) -> Any:
        of = self.versions
        return JittedState, (of.f, self.roles, of.inline, of.options)

    def slow(self, args: Args, kwargs: Kwargs) -> Any:
        """Perform a call in the general way, and prepare the fast path for the next one like it."""
        version, given, rest = self.bind(args, kwargs)
        if version.reads:
            version.reads.look()
        there, places = given, self.destinations(version, given, args, kwargs)
        if places is not None:
            there = bring(given, places, version.f)
        if current() is not GROUND:
            return staged(version, there, rest)
        results, call = done(version, there, rest)
        self.depends = self.depends or version.depends
        if call is None:
            return results
        brought = {} if places is None else _brought(given, there, places)
        if brought and (version.donated or self.choices):
            # Copies were donated, so the original arrays are deleted too.
            forget_donated(flatten((given, rest))[0], call.form.leaves)
        else:
            # The keys of arrays include their placement.  So a call with the same keys needs no
            # check, and the fast path moves only the arguments that were moved now.
            if brought:
                call = call._replace(form=moved(call.form, brought))
            self.prepare(args, kwargs, version, call, [*brought.values()])
        return results

    def prepare(
        self,
        args: Args,
        kwargs: Kwargs,
        version: Version,
        call: PerformedCall,
        there: Sequence[Callable[[Any], Any]],
    ) -> None:
        """Prepare the fast path for calls like this one, whose moved leaves `there` moves."""
        if version.depends and not version.is_apart:
            return  # the next such call finds a version that is apart
        if version.reads is None:
            version.reads = config.purity_warning and _may_read(version.f) and later(
                "_jit.purity"
            ).reads_of(version.f)  # fmt: skip
            if version.reads:
                return  # the next call compares the values that were read
        if version is self.versions.plain and not self.depends and _is_flat(args, kwargs, call):
            version.calls.keep_flat(call.keys, call.compiled)
            self.way = None  # it would be tried before the look-up of flat arrays
            return
        static = NO_ROLE if self.roles is None else self.roles.static
        whole = with_static(args, kwargs, static, call)
        if whole is None:
            return
        here = around() if self.depends else None
        paths = self.paths.get(here)
        if paths is None:
            make_room(self.paths)
            paths = self.paths[here] = FastPaths()
        paths.install(*whole, call, perform, self.again, there)
        self.way = by_surroundings(self.paths, self.again) if self.depends else paths.way

    def bind(self, args: Args, kwargs: Kwargs) -> BoundCall:
        """Return the version of a call, and its arguments that are not static."""
        if self.roles is None:
            return self.versions.find(None), *jittables.opened((args, kwargs))
        divided = self.roles.divide(self.versions.f, args, kwargs)
        version = self.versions.find(divided)
        return version, *jittables.opened((divided.call.args, divided.call.kwargs))

    def destinations(
        self, version: Version, given: Args, args: Args, kwargs: Kwargs
    ) -> list[Any] | None:
        """Return the placement to which each leaf of a call's dynamic arguments is moved; None if
        jit was given none.

        Where the compiler chooses, the function is compiled once for each set of types to find out.
        """
        if self.roles is None or self.roles.in_shardings is None:
            return None
        before = last_asked()
        found = destinations(given, self.roles.in_shardings, version.f)
        self.depends = self.depends or last_asked() is not before
        if current() is not GROUND or not any(map(is_chosen_by_compiler, found)):
            return found
        staged = self.trace(*args, **kwargs)
        key = staged.program, tuple(found)
        chosen = self.choices.get(key)
        if chosen is None:
            make_room(self.choices)
            chosen = self.choices[key] = staged.lower().compile().placements
        return [c if is_chosen_by_compiler(p) else p for p, c in zip(found, chosen)]

    # ---- ahead of a call ----

    def bind_shapes(self, args: Args, kwargs: Kwargs) -> BoundCall:
        """Return the version of a call, and the shapes of its arguments that are not static, moved
        to their places."""
        version, given, kwargs = self.bind(args, kwargs)
        if self.roles is not None and self.roles.in_shardings is not None:
            shapes = shapes_only(given)
            there = destinations(shapes, self.roles.in_shardings, version.f)
            given = bring(*without_chosen(shapes, there), version.f)
        return version, given, kwargs

    def with_places(self, traced: Traced, version: Version) -> Traced:
        """Return a trace with the placements of its results that `jit` was given, and the names of
        its arguments."""
        places = places_of_results(self.versions.f, traced.tree, traced.program.out_avals)
        names = parameter_names(version.f)
        return traced._replace(places=places or traced.places, parameters=names)

    @border
    def trace(self, *args: object, **kwargs: object) -> "Staged":
        """Stage the function for the types of these arguments, and return its program."""
        version, given, rest = self.bind_shapes(args, kwargs)
        traced = trace(version.f, shapes_only(given), shapes_only(rest), "jit", version.traces)
        version.depends = version.depends or traced.asked
        in_tree = flatten((given, rest))[1]
        staged: type[Staged] = later("_jit.stages").Staged
        return staged(self.with_places(traced, version), version.donated, in_tree, version.options)

    @border
    def lower(self, *args: object, lowering_platforms: Any = None, **kwargs: object) -> "Lowered":
        """Stage the function for the types of these arguments, and return it as StableHLO.

        The platform is that of this process, or those in `lowering_platforms`.
        """
        return self.trace(*args, **kwargs).lower(lowering_platforms=lowering_platforms)

    @border
    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """Return the tree of results for the types of these arguments, as ShapeDtypeStructs."""
        version, given, rest = self.bind_shapes(args, kwargs)
        return self.with_places(traced_shapes(version.f, given, rest), version).shapes()

    @border
    def clear_cache(self) -> None:
        """Drop all traces and executables of this function."""
        for paths in self.paths.values():
            paths.forget()
        self.choices.clear()
        self.versions.clear()

    def cache_size(self) -> int:
        """Return the number of kinds of calls that are compiled."""
        return self.versions.count()


def _is_flat(args: Args, kwargs: Kwargs, call: PerformedCall) -> bool:
    """Return whether all arguments are arrays, given by position."""
    return (
        not kwargs
        and call.form.leaves == "a" * len(args)
        and all(x.__class__ is Array for x in args)
    )


def _brought(args: Args, there: Args, placed: Sequence[Any]) -> dict[int, Callable[[Any], Any]]:
    """Return the functions that move the leaves that had to be moved, by their numbers."""
    pairs = enumerate(zip(flatten(args)[0], flatten(there)[0], placed, strict=True))
    return {i: p.accept for i, (x, y, p) in pairs if x is not y}
