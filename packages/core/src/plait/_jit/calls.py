"""jit: stage a function once per argument types, and look up later calls in a dictionary.

Invariant: the compiled path is taken only when every operand is an Array (or was converted to one)
outside of transformations.  Its key is the form of the call, the dispatch keys of its arrays and
the values of its static arguments, and nothing else.
"""

# pyright: reportPrivateUsage=false
# (arrays are unpacked and assembled here without a call: see `plait._core.array`)

import functools
import inspect
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import FunctionType
from typing import Any, Literal, NamedTuple, ParamSpec, TypedDict, TypeVar, Unpack, overload

from .._base.config import config
from .._base.errors import ArgumentError
from .._base.jaxlib_api import RuntimeFailure
from .._base.source import where_defined
from .._base.surroundings import Surroundings, around, last_asked
from .._base.tracebacks import border, leaving
from .._base.wrapping import OFFERED, wraps
from .._core.array import Array, failure, run_on, wrap
from .._core.buffers import expect_platform
from .._core.interpreter import GROUND, current
from .._core.same_parts import alike, parts_that_may_be_one
from .._plugins.metadata import resolve
from .._xla.operands import as_argument
from .._xla.tiers import Options, expect_tier
from ..tree import TreeDef, exact_key, flatten
from .call_forms import Args, CallForm, Kwargs, Way, looked_up, taker
from .jittable import jittables
from .roles import (
    Role,
    bring,
    check_count,
    destinations,
    donated_leaves,
    is_chosen_by_compiler,
    placed,
    role,
    with_places,
    without_chosen,
    without_static,
)
from .stages import Jitted, Lowered, Staged
from .tracing import is_full, make_room, shapes_only, shared, traced_shapes
from .versions import Done, Version, done, forget_donated, hosted

P = ParamSpec("P")
R = TypeVar("R")
Function = Callable[..., Any]
"""A function as its user wrote it, or the jitted function."""
Table = dict[Any, Any]
"""The calls of one form: entries by the keys of `call_forms.looked_up`."""
Parted = tuple[Version, Args, Kwargs]
"""A version, and the arguments that are not static."""


class JitOptions(TypedDict, total=False):
    """The options of `jit`, for its two signatures."""

    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Sequence[str] | None
    in_shardings: Any
    out_shardings: Any
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool
    compiler_options: dict[str, Any] | None
    tier: Literal["full", "fast", "both"] | None


@overload
def jit(fun: Callable[P, R], **options: Unpack[JitOptions]) -> Jitted[P, R]: ...
@overload
def jit(
    fun: None = None, **options: Unpack[JitOptions]
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@border
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    tier: Literal["full", "fast", "both"] | None = None,
) -> Any:
    """Compile `fun`: its Python runs once per argument types and static values.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.
      static_argnums, static_argnames: arguments that are not arrays: hashable values, for each of
        which `fun` is compiled anew.  One is derived from the other by the signature.
      donate_argnums, donate_argnames: arguments whose memory results may take; they are deleted.
      in_shardings, out_shardings: placements of arguments and of results, or tree prefixes of
        them; None leaves the choice open.  Arguments are moved there, but an argument that was
        placed on purpose must already have that placement.
      keep_unused: has no effect: arguments that `fun` does not use are always kept.
      device: the device to which arguments are moved; the same as `in_shardings`.
      backend: the platform; this process has one.
      inline: staged calls become the operations of `fun` instead of one call.
      compiler_options: names and values of XLA's flags, for this program alone; they are ignored
        where another jitted function calls `fun`.
      tier: "fast" cuts compile time to a third; the program may run up to three times slower, with
        results that are equal up to rounding.  "both" runs the fast program until a thread has
        compiled the full one.  None: `plait.config.tier`, which is "full".

    Returns:
      A function with `fun`'s signature, and the methods of `plait.stages.Jitted`: `.trace(...)`,
      `.lower(...)`, `.eval_shape(...)`, `.clear_cache()`.

    Raises:
      TypeRule: an argument is not an array and not static, or a static one is not hashable.
      ArgumentError: an argument has two roles, or the compiler refuses one of its options.
      PlacementError: this process has no such backend, or an argument was placed elsewhere.
      UnexpectedTracerError, ConcretizationError: see their documentation.

    >>> import plait
    >>> plait.jit(lambda x: x * 2 + 1)(3.0)
    Array(7., dtype=float32, weak_type=True)
    """
    if fun is None:
        given = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(jit, **given)
    _expect_function(fun)
    static = role(fun, static_argnums, static_argnames, "static")
    donate = role(fun, donate_argnums, donate_argnames, "donate")
    if static.nums & donate.nums or static.names & donate.names:
        raise ArgumentError(
            "no argument can be both static and donated: "
            f"{sorted(static.nums & donate.nums) or sorted(static.names & donate.names)}",
            fix="an argument is static, or donated, or neither",
        )
    if backend is not None:
        expect_platform(backend)
    options = Options(flags(compiler_options), expect_tier(tier))
    if device is not None:
        if in_shardings is not None:
            raise ArgumentError("jit was given device and in_shardings", fix="give one of them")
        in_shardings = resolve("SingleDeviceSharding")(device)
    f = fun if out_shardings is None else placed(fun, out_shardings)
    if static or donate or in_shardings is not None:
        return _with_roles(f, static, donate, in_shardings, inline, options)
    return _without(f, inline, options)


_RETURNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _expect_function(fun: Any) -> None:
    """Raise ArgumentError for an object that cannot be staged by calling it once."""
    if fun.__class__ in (staticmethod, classmethod):
        kind = fun.__class__.__name__
        raise ArgumentError(
            f"jit was given a {kind}, {fun.__func__.__qualname__}",
            fix=f"write @{kind} above @jit, not below it",
        )
    if not callable(fun):
        raise ArgumentError(
            f"jit needs a function, not {fun!r}", fix="write jit(f), without calling f"
        )
    if fun.__class__ is FunctionType and not fun.__code__.co_flags & _RETURNS_LATER:
        return
    of_itself = fun.__class__ in (FunctionType, functools.partial)
    called: Any = fun if of_itself else fun.__class__.__call__
    for is_kind, kind in (
        (inspect.isgeneratorfunction, "a generator"),
        (inspect.iscoroutinefunction, "a coroutine"),
        (inspect.isasyncgenfunction, "an asynchronous generator"),
    ):
        if is_kind(called):
            raise ArgumentError(
                f"jit needs a function that returns arrays, and {where_defined(fun)} returns "
                f"{kind}",
                fix="return a tuple or a list of what it yields, or jit what it calls",
            )


def flags(compiler_options: dict[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Return compiler flags as a hashable key; raise ArgumentError if they are not a dict."""
    if compiler_options is None:
        return ()
    if not isinstance(compiler_options, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"compiler_options must be a dict, not {compiler_options!r}",
            fix="give names and values of XLA's flags, like {'xla_cpu_enable_fast_math': True}",
        )
    return tuple(sorted(compiler_options.items()))


class _Known(NamedTuple):
    """The fast path of one form of calls, and the table that it uses."""

    table: Table
    way: Way | None


# ---- the state of a jitted function ------------------------------------------------------------


class _State(ABC):
    """The state of a jitted function, which closes over it and nothing else.

    So the function is pickled by its contents (by cloudpickle): the function that was jitted, and
    its options.  It is freed as soon as its last reference is gone, so no object that the state
    holds may hold the state: fast paths call `again`, which finds it by a weak reference.
    """

    __slots__ = ("f", "inline", "options", "way", "ways", "apart", "again", "__weakref__")

    way: Way | None
    """The fast path of the last call's form.  For another form it calls `slow`, which replaces
    it."""
    apart: "dict[Surroundings, _Apart]"
    """Calls of a function that depends on its surroundings, by surroundings."""

    def __init__(self, f: Function, inline: bool, options: Options):
        self.f, self.inline, self.options = f, inline, options
        self.way = None
        self.ways: dict[CallForm, _Known] = {}
        self.apart = {}
        found = weakref.ref(self)

        def again(args: Args, kwargs: Kwargs) -> Any:
            state = found()
            assert state is not None  # the functions that call fast paths hold the state
            return state.slow(args, kwargs)

        self.again: Way = again

    @abstractmethod
    def slow(self, args: Args, kwargs: Kwargs) -> Any:
        """Perform a call in the general way, and prepare the fast path for the next one like it."""
        ...

    @abstractmethod
    def parted(self, args: Args, kwargs: Kwargs) -> Parted:
        """Return the version of a call, and its dynamic arguments, moved to their places."""
        ...

    @abstractmethod
    def clear_cache(self) -> None:
        """Drop all traces and executables of this function."""
        ...

    @border
    def trace(self, *args: Any, **kwargs: Any) -> Staged:
        """Stage the function for the types of these arguments, and return its program."""
        version, dynamic, rest = self.parted(args, kwargs)
        traced = with_places(self.f, version.trace(shapes_only(dynamic), shapes_only(rest)))
        in_tree = flatten((dynamic, rest))[1]
        return Staged(traced, version.donated, in_tree, version.options)

    @border
    def lower(self, *args: Any, lowering_platforms: Any = None, **kwargs: Any) -> Lowered:
        """Stage the function for the types of these arguments, and return it as StableHLO.

        The platform is that of this process, or those in `lowering_platforms`.
        """
        return self.trace(*args, **kwargs).lower(lowering_platforms=lowering_platforms)

    @border
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the tree of results for the types of these arguments, as ShapeDtypeStructs."""
        version, dynamic, rest = self.parted(args, kwargs)
        return with_places(self.f, traced_shapes(version.f, dynamic, rest)).shapes()


class _Apart:
    """The fast paths of a function's calls in the same surroundings.

    `way` is that of the last call's form.  The tables are used where a state has one for all of its
    versions.
    """

    __slots__ = ("way", "ways", "tables")

    def __init__(self) -> None:
        self.way: Way | None = None
        self.ways: dict[CallForm, _Known] = {}
        self.tables: dict[CallForm, Table] = {}


def _by_surroundings(apart: "dict[Surroundings, _Apart]", slow: Way) -> Way:
    """Return the path of a function that depends on its surroundings, which it looks up."""

    def call(args: Args, kwargs: Kwargs) -> Any:
        here = apart.get(around())
        way = slow if here is None or here.way is None else here.way
        return way(args, kwargs)

    return call


_OFFERED = ("trace", "lower", "eval_shape", "clear_cache")


def _dressed(jitted: Any, state: _State) -> Function:
    """Give a jitted function its methods and the name of the original one, and return it."""
    wraps(state.f)(jitted)
    setattr(jitted, OFFERED, _OFFERED)
    jitted.trace, jitted.lower = state.trace, state.lower
    jitted.eval_shape, jitted.clear_cache = state.eval_shape, state.clear_cache
    return jitted


# ---- all arguments are alike -----------------------------------------------------------------


class _PlainState(_State):
    """The state of a jitted function without static, donated or placed arguments."""

    __slots__ = ("version", "versions", "one", "flat", "staged")

    def __init__(self, f: Function, inline: bool, options: Options):
        super().__init__(f, inline, options)
        # Kept on `f` itself, so that writing `jit(f)` again in a loop compiles nothing again.
        known = shared(f)
        version = known.get((inline, options))
        if version is None:
            version = Version(f, (), inline, options, is_shared=f.__class__ is FunctionType)
            known[inline, options] = version
        self.version: Version = version
        self.versions: dict[Surroundings, Version] = {}
        self.one, self.flat, self.staged = version.one, version.flat, version.staged

    def __reduce__(self) -> Any:
        return _PlainState, (self.f, self.inline, self.options)

    def slow(self, args: Args, kwargs: Kwargs) -> Any:
        version = self.version
        if version.asks:
            return self.slow_apart(args, kwargs)
        results, call = done(version, args, kwargs)
        if call is not None and not version.asks:  # else the next call takes `slow_apart`
            if not kwargs and call.form.leaves == "a" * len(args) and _all_arrays(args):
                self.flat[call.keys] = call.entry[:4]
                if len(args) == 1:
                    self.one[call.keys[0]] = call.entry[:4]
                # A path for another form would be tried before the look-up of flat arrays.
                self.way = None
            else:
                self.way = _way(
                    self.ways, version.tables, call.form, call.keys, version, call, self.again
                )
            version.forget_with(call.entry)
        return results

    def slow_apart(self, args: Args, kwargs: Kwargs) -> Any:
        """Perform a call of a function that depends on its surroundings.

        Its traces and executables are kept for these surroundings only.
        """
        here = around()
        version = self.versions.get(here)
        if version is None:
            version = Version(self.f, (), self.inline, self.options, is_apart=True)
            self.versions[here] = version
        results, call = done(version, args, kwargs)
        if call is not None:
            own = self.apart.setdefault(here, _Apart())
            own.way = _way(
                own.ways, version.tables, call.form, call.keys, version, call, self.again
            )
            self.way = _by_surroundings(self.apart, self.again)
            version.forget_with(call.entry)
        return results

    def parted(self, args: Args, kwargs: Kwargs) -> Parted:
        return self.version, *jittables.opened((args, kwargs))

    def clear_cache(self) -> None:
        """Drop all traces and executables of this function."""
        self.version.clear()
        for version in self.versions.values():
            version.clear()


def _without(f: Function, inline: bool, options: Options) -> Function:
    """Return the jitted function of `f`, without static, donated or placed arguments.

    It looks up a call with flat arrays itself.  A call of the form of the last one is performed by
    the function generated for that form; any other call is performed by `slow`.
    """
    state = _PlainState(f, inline, options)

    def jitted(*args: Any, **kwargs: Any) -> Any:
        try:
            if current() is not GROUND:
                return state.staged(args, kwargs)
            way = state.way
            if way is not None:
                return way(args, kwargs)
            if kwargs:
                return state.slow(args, kwargs)
            try:
                if len(args) == 1:
                    (x,) = args
                    bufs = [x._buf]
                    run, handlers, key, build = state.one[x.key]
                else:
                    bufs = [x._buf for x in args]
                    run, handlers, key, build = state.flat[tuple([x.key for x in args])]
            except (KeyError, AttributeError):
                return state.slow(args, kwargs)
            try:
                outs = run(bufs).consume_with_handlers(handlers)
            except RuntimeFailure as e:
                raise failure(e, bufs) from None
            if build is None:
                r = Array()
                r._buf = outs[0]
                r.aval = key.aval
                r.key = key
                return r
            return build(outs)
        except BaseException as e:
            leaving(e)
            raise

    return _dressed(jitted, state)


def _all_arrays(args: Args) -> bool:
    return all(x.__class__ is Array for x in args)


# ---- static, donated and placed arguments ------------------------------------------------------


class _Static:
    """A leaf in place of a static argument in the tree of a call."""

    def __init__(self, value: object):
        self.value = value


_TELLING = frozenset({int, bool, str, type(None), type, type(len), type(lambda: None)})
"""Classes of static values that are equal only if they are the same value.

A table of calls is a plain dictionary, keyed on class and value.  Floats (0.0 == -0.0) and tuples
(`(1,) == (1.0,)`) would find entries of different values.  So calls with such values take the
general path, whose keys are frozen."""


class _RoleState(_State):
    """The state of a jitted function with static, donated or placed arguments: one version for
    each set of static values."""

    __slots__ = (
        "static",
        "donate",
        "in_shardings",
        "versions",
        "tables",
        "asks",
        "forget",
        "choices",
    )

    def __init__(
        self,
        f: Function,
        static: Role,
        donate: Role,
        in_shardings: Any,
        inline: bool,
        options: Options,
    ):
        super().__init__(f, inline, options)
        self.static, self.donate, self.in_shardings = static, donate, in_shardings
        self.versions: dict[Hashable, Version] = {}
        self.tables: dict[CallForm, Table] = {}
        self.asks = False
        self.choices: dict[Hashable, list[Any]] = {}
        found = weakref.ref(self)

        def forget() -> None:
            state = found()
            if state is not None:
                state.way = None
                state.tables.clear()
                state.ways.clear()
                state.apart.clear()
                state.choices.clear()

        # The settings hold `forget` weakly, and this state holds it: it dies with the state.
        self.forget = forget
        config.watch(forget)

    def __reduce__(self) -> Any:
        given = self.f, self.static, self.donate, self.in_shardings, self.inline, self.options
        return _RoleState, given

    def version_for(self, args: Args, kwargs: Kwargs) -> Parted:
        """Return the version for a call's static values, and the other arguments."""
        static, donate = self.static, self.donate
        name = getattr(self.f, "__name__", "f")
        check_count(name, len(args), static, donate)
        call = without_static(args, kwargs, static)
        donated = donated_leaves(args, kwargs, static, donate) if donate else ()
        key = *call.key(len(args), name), donated, around() if self.asks else None
        version = self.versions.get(key)
        if version is None:
            if make_room(self.versions):
                self.forget()
            f = call.bind(self.f, len(args))
            version = self.versions[key] = Version(
                f, donated, self.inline, self.options, is_apart=self.asks
            )
        return version, *jittables.opened((call.args, call.kwargs))

    def slow(self, args: Args, kwargs: Kwargs) -> Any:
        before, apart = last_asked(), self.asks
        version, dynamic, rest = self.version_for(args, kwargs)
        there, placed = dynamic, []
        if self.in_shardings is not None:
            placed = self.destinations(dynamic, args, kwargs)
            there = bring(dynamic, placed)
        if current() is not GROUND:
            return version.staged(there, rest)
        results, call = done(version, there, rest)
        self.asks = self.asks or last_asked() is not before
        if call is None:
            return results
        brought = _brought(dynamic, there, placed)
        if brought and (version.donated or self.choices):
            # Copies were donated, so the original arrays are deleted too.
            forget_donated(flatten((dynamic, rest))[0], call.form.leaves)
        else:
            # The keys of arrays include their placement.  So a call with the same keys needs no
            # check, and the fast path moves only the arguments that were moved now.
            leaves = [*call.form.leaves]
            for i in brought:
                leaves[i] = "p"
            call = call._replace(form=CallForm(call.form.key, "".join(leaves)))
            form, keys = _whole(args, kwargs, self.static, call)
            if form is not None and self.asks == apart:  # else the next call handles it
                own: Any = self.apart.setdefault(around(), _Apart()) if apart else self
                own.way = _way(
                    own.ways, own.tables, form, keys, version, call, self.again, brought.values()
                )
                if apart:
                    self.way = _by_surroundings(self.apart, self.again)
                if call.entry.swap is not None:
                    call.entry.swap.tell(self.forget)
        return results

    def parted(self, args: Args, kwargs: Kwargs) -> Parted:
        version, dynamic, rest = self.version_for(args, kwargs)
        if self.in_shardings is not None:
            shapes = shapes_only(dynamic)
            dynamic = bring(*without_chosen(shapes, destinations(shapes, self.in_shardings)))
        return version, dynamic, rest

    def destinations(self, dynamic: Args, args: Args, kwargs: Kwargs) -> list[Any]:
        """Return the placement to which each leaf of a call's dynamic arguments is moved.

        Where the compiler chooses, the function is compiled once for each set of types to find out.
        """
        found = destinations(dynamic, self.in_shardings)
        if current() is not GROUND or not any(map(is_chosen_by_compiler, found)):
            return found
        staged = self.trace(*args, **kwargs)
        key = staged.program, tuple(found)
        chosen = self.choices.get(key)
        if chosen is None:
            chosen = self.choices[key] = staged.lower().compile().placements
        return [c if is_chosen_by_compiler(p) else p for p, c in zip(found, chosen)]

    def clear_cache(self) -> None:
        """Drop all traces and executables of this function."""
        self.forget()
        self.versions.clear()


def _with_roles(
    f: Function, static: Role, donate: Role, in_shardings: Any, inline: bool, options: Options
) -> Function:
    """Return the jitted function of `f`, which has static, donated or placed arguments."""
    state = _RoleState(f, static, donate, in_shardings, inline, options)

    def jitted(*args: Any, **kwargs: Any) -> Any:
        try:
            way = state.way
            if way is not None and current() is GROUND:
                return way(args, kwargs)
            return state.slow(args, kwargs)
        except BaseException as e:
            leaving(e)
            raise

    return _dressed(jitted, state)


def _brought(args: Args, there: Args, placed: Sequence[Any]) -> dict[int, Callable[[Any], Any]]:
    """Return the functions that move the leaves that had to be moved, by their numbers."""
    if args is there:
        return {}
    pairs = enumerate(zip(flatten(args)[0], flatten(there)[0], placed, strict=True))
    return {i: p.accept for i, (x, y, p) in pairs if x is not y}


def _whole(
    args: Args, kwargs: Kwargs, static: Role, call: Done
) -> tuple[CallForm | None, tuple[Hashable, ...]]:
    """Return the form of a call with its static arguments, and the keys of all leaves.

    The form is None if a static value is of a class whose equality ignores differences (see
    `_TELLING`).
    """
    form, keys = call.form, call.keys
    if not static:
        return form, keys
    stood = (
        tuple([_Static(a) if i in static.nums else a for i, a in enumerate(args)]),
        {k: _Static(a) if k in static.names else a for k, a in kwargs.items()},
    )
    leaves, tree = flatten(jittables.opened(stood))
    letters, known = iter(form.leaves), iter(keys)
    kinds: list[str] = []
    found: list[Hashable] = []
    for x in leaves:
        if x.__class__ is not _Static:
            kinds.append(next(letters))
            found.append(next(known))
        elif x.value.__class__ in _TELLING:
            kinds.append("s")
            found += [x.value.__class__, x.value]
        else:
            return None, ()
    return CallForm(exact_key(tree), "".join(kinds)), tuple(found)


# ---- the path of the next call -----------------------------------------------------------------


def _way(
    ways: dict[CallForm, _Known],
    tables: dict[CallForm, Table],
    form: CallForm,
    keys: tuple[Hashable, ...],
    version: Version,
    call: Done,
    slow: Way,
    there: Iterable[Callable[[Any], Any]] = (),
) -> Way | None:
    """Install and return the fast path for calls of this form, with this call in its table.

    `there` moves the leaves that must be moved.
    """
    if is_full(tables):
        for table in tables.values():  # fast paths may hold them, and `forget` no longer finds them
            table.clear()
        tables.clear()
        ways.clear()
    table = tables.setdefault(form, {})
    key = looked_up(form, keys)
    if "n" not in form.leaves:
        table[key] = call.entry[:4]
    elif key not in table:
        table[key] = hosted(version, call.form, call.keys)
    if form not in ways or ways[form].table is not table:
        way = taker(form, table, slow, [*there])
        if way is None and not {*"sdop"} & {*form.leaves}:
            way = _flattening(version, "v" in form.leaves, slow, call.form.tree)
        ways[form] = _Known(table, way)
    return ways[form].way


def _flattening(version: Version, mixed: bool, slow: Way, tree: TreeDef) -> Way:
    """Return the path for structures without a generated function: it flattens each call.

    Args:
      version: the version that holds the entries.
      mixed: whether some leaves are not arrays yet.
      slow: performs other calls.
      tree: the structure of the call.  Only if some of its parts may be one object (`same_parts`)
        are parts compared; entries of structures without such parts serve all calls.
    """
    entries, A = version.entries, Array
    is_keyed = exact_key(tree) is not tree
    has_parts = len(parts_that_may_be_one(tree)) > 1

    def call(args: Args, kwargs: Kwargs) -> Any:
        try:
            leaves, tree = flatten(jittables.opened((args, kwargs)))
            if mixed:
                leaves = [x if x.__class__ is A else as_argument(x) for x in leaves]
            bufs = [x._buf for x in leaves]
            kind = exact_key(tree) if is_keyed else tree
            found: tuple[Any, ...] = kind, tuple([x.key for x in leaves])
            if has_parts:
                found = *found, *alike(tree, leaves)
            run, handlers, key, build, _, _ = entries[found]
        except (KeyError, AttributeError, TypeError, ValueError):
            return slow(args, kwargs)
        outs = run_on(run, bufs, handlers)
        return wrap(outs[0], key) if build is None else build(outs)

    return call
