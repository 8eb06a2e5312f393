"""A function with one set of static values, and its calls: staged, compiled, cached.

Invariant: the cache key of an executable holds the structure of the arguments, the dispatch keys of
their leaves (interned types and placements), and which parts are one (`same_parts`).  All entries
are dropped when a setting changes.  Entries that depend on surroundings are kept in separate
versions for each surroundings.
"""

# pyright: reportPrivateUsage=false
# (arrays are unpacked here without a call: see `plait._core.array`)

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy import ndarray

from .._base import jaxlib_api
from .._base.config import config
from .._core.array import Array, Literal, as_value, is_tracer, run_on, wrap
from .._core.axis_names import named_axes
from .._core.buffers import default_place
from .._core.carrier import Lifted
from .._core.handles import handle_among
from .._core.interpreter import current
from .._core.ir import Program, Var, derived, evaluate
from .._core.same_parts import alike, as_one
from .._ops.control_flow import call
from .._ops.shape import materialise_at_ground
from .._types.avals import Key
from .._xla.executables import Executable, compile_in_tiers
from .._xla.operands import as_argument, as_donated
from .._xla.tiers import USUAL, Options, Swap
from ..tree import LEAF, KeyedTree, TreeDef, exact_key, flatten
from .call_forms import HOSTED_BYTES, Args, CallForm, Kwargs, builder
from .jittable import jittables
from .roles import warn_of_unusable
from .tracing import Traced, Traces, checked_argument, kept, make_room, trace

_VALUES = frozenset((Array, Literal, Var, Lifted))


class Entry(NamedTuple):
    """A compiled call.

    Attributes:
      run: the executable, a function of buffers.
      handlers: convert its results.
      key: the dispatch key of the result, where that is one array.
      build: makes the tree of results from their buffers, where it is not.
      direct: (jaxlib's executable, keys of its results) if its run has no wrappers, so that jaxlib
        may run it by itself; else None.
      swap: the wait for a better tier, if this executable is temporary; else None.
    """

    run: Callable[[list[Any]], Any]
    handlers: list[Any]
    key: Any
    build: Callable[[list[Any]], Any] | None
    direct: tuple[Any, list[Key]] | None
    swap: Swap | None


class Version:
    """A function whose static arguments are bound.

    Args:
      f: the function of the other arguments.
      donated: numbers of the donated flat arguments.
      inline: whether staged calls become the operations of `f`.
      options: flags and tier of the compiler.
      is_shared: whether `f` itself holds this version, for all its jits.  It is then not held here,
        so that it is freed without the collector.
      is_apart: whether it serves only calls in the same surroundings.

    `asks` says whether a trace of it depended on its surroundings; executables of such traces are
    kept by versions that are apart.
    """

    __slots__ = (
        "_f", "donated", "inline", "options", "_traces", "entries", "one", "flat", "tables",
        "calls", "forget", "is_apart", "asks", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        f: Callable[..., Any],
        donated: tuple[int, ...] = (),
        inline: bool = False,
        options: Options = USUAL,
        is_shared: bool = False,
        is_apart: bool = False,
    ):
        self.donated, self.inline, self.options = donated, inline, options
        self.is_apart, self.asks = is_apart, False
        self._f = weakref.ref(f) if is_shared else f
        self._traces = None if is_shared else kept(f)
        self.entries: dict[tuple[Any, ...], Entry] = {}
        self.one: dict[Any, Any] = {}
        """Calls with one array, by its key."""
        self.flat: dict[Any, Any] = {}
        """Calls with several arrays, by their keys."""
        self.tables: dict[CallForm, dict[Any, Any]] = {}
        self.calls: dict[Any, Any] = {}
        every: tuple[dict[Any, Any], ...] = (self.entries, self.one, self.flat, self.calls)
        tables = self.tables

        def forget() -> None:
            for table in (*every, *tables.values()):
                table.clear()

        # The settings hold `forget` weakly, and this version holds it: it dies with the version.
        self.forget = forget
        config.watch(forget)

    @property
    def f(self) -> Callable[..., Any]:
        """The function."""
        if self._traces is not None:
            return self._f
        f = self._f()
        assert f is not None  # the caller of this version holds it
        return f

    @property
    def traces(self) -> Traces:
        """The traces of the function."""
        return self._traces if self._traces is not None else kept(self.f)

    def clear(self) -> None:
        """Drop all traces and executables."""
        self.forget()
        self.traces.clear()

    def trace(self, args: Sequence[Any], kwargs: Kwargs) -> Traced:
        """Return the function staged for these arguments."""
        traced = trace(self.f, args, kwargs, "jit", self.traces)
        self.asks = self.asks or traced.asked
        return traced

    # ---- under a transformation ----

    def staged(self, args: Args, kwargs: Kwargs) -> Any:
        """Apply the function as one operation of the current interpreter; return its results."""
        if not config.jit:
            leaves, tree = flatten((args, kwargs))
            # Functions could write into numpy arrays, which is unintended where values are traced.
            leaves = [as_value(x) if isinstance(x, ndarray) else x for x in leaves]
            args, kwargs = tree.unflatten(leaves)
            return self.f(*args, **kwargs)
        # Traces depend on the named axes around them, which `calls` is not keyed on.
        alone = not kwargs and not self.inline and not named_axes()
        if alone:
            try:  # flat values, whose trace captured nothing, need only the call itself
                params, tree = self.calls[
                    tuple([x.aval if x.__class__ in _VALUES else x for x in args])
                ]
            except (KeyError, TypeError):
                pass
            else:
                outs = current().apply(call, args, params)
                return outs[0] if tree is None else tree.unflatten(outs)
        traced = self.trace(args, kwargs)
        operands = [*traced.captured, *traced.values]
        one = alike(traced.tree, traced.program.outputs)
        if self.inline and handle_among(operands) is None:
            outs = evaluate(traced.program, operands)
        else:
            outs = call.bind(*operands, program=traced.program)
            alone = alone and not traced.asked and len(operands) == len(args) and not one
            if alone and all(x.__class__ in _VALUES for x in args):
                tree = None if traced.tree == LEAF else traced.tree
                make_room(self.calls)
                self.calls[tuple([x.aval for x in args])] = {"program": traced.program}, tree
        outs = as_one(traced.tree, one, [materialise_at_ground(o) for o in outs])
        return traced.tree.unflatten(outs)

    # ---- on arrays ----

    def entry(self, tree: TreeDef, values: Sequence[Array]) -> Entry | None:
        """Return the compiled call for these leaves.

        The result is None if the function closes over values of a transformation under way, which
        only its interpreter can use.
        """
        keys = tuple([x.key for x in values])
        key = exact_key(tree), keys, *alike(tree, values)
        found = self.entries.get(key)
        if found is None:
            args, kwargs = tree.unflatten(values)
            traced = self.trace(args, kwargs)
            if any(map(is_tracer, traced.captured)):
                return None
            found = _compiled(traced, keys, self.donated, self.options)
            if self.is_apart or not traced.asked:
                if make_room(self.entries):
                    self.forget()  # tables may lead to the dropped entries
                self.entries[key] = found
                self.forget_with(found)
        return found

    def forget_with(self, entry: Entry) -> None:
        """Drop the tables when another tier of an entry is ready.

        Call this after putting the entry into a table: if the other tier arrived in between, the
        entry would stay there.
        """
        if entry.swap is not None:
            entry.swap.tell(self.forget)


class _Compiled:
    """A compiled program, and the builders of its result trees.

    Attributes:
      made: the executable, in the best tier that is ready.
      builds: builders by the structure of the results; they serve every tier.
      swap: the wait for a better tier that is being compiled; else None.
    """

    __slots__ = ("made", "builds", "swap")

    made: Executable

    def __init__(
        self, program: Program, donated: tuple[int, ...], keys: tuple[Key, ...], options: Options
    ):
        self.builds: dict[TreeDef | KeyedTree, Callable[[list[Any]], Any]] = {}
        self.swap: Swap | None = None

        def take(made: Executable, last: bool) -> None:
            waiting = self.swap
            self.made = made
            self.swap = None if last else Swap()
            if waiting is not None:
                waiting.finish()

        compile_in_tiers(program, donated, keys, options, take)


def _compiled(
    traced: Traced, keys: tuple[Key, ...], donated: tuple[int, ...], options: Options
) -> Entry:
    program, captured = traced.program, traced.captured
    k = len(captured)
    all_keys = (*[c.key for c in captured], *keys)
    shifted = tuple([i + k for i in donated])
    options = options.resolved()

    def make() -> _Compiled:
        warn_of_unusable(program, shifted)
        return _Compiled(program, shifted, all_keys, options)

    # Kept on the program, not here: equal traces of other versions share it, and it dies with them.
    kept = derived(program, ("executable", shifted, all_keys, options), make)
    swap = kept.swap  # read before `made`: if it is None, `made` is the last tier
    made, builds = kept.made, kept.builds
    itself = jaxlib_api.executable_of(made.run)
    direct = None if itself is None else (itself, made.keys)
    if traced.tree == LEAF:
        return Entry(made.run, made.handlers, made.keys[0], None, direct, swap)
    tree = exact_key(traced.tree)
    build = builds.get(tree)
    if build is None:
        one = alike(traced.tree, program.outputs)
        build = builds[tree] = builder(traced.tree, made.keys, one)
    return Entry(made.run, made.handlers, None, build, direct, swap)


class Done(NamedTuple):
    """A completed call: its form, the keys of its leaves, and its entry."""

    form: CallForm
    keys: tuple[Key, ...]
    entry: Entry


def done(version: Version, args: Args, kwargs: Kwargs) -> tuple[Any, Done | None]:
    """Perform a call in the general way; return its results, and its description unless it was
    staged.

    Arguments are checked, and misses compiled, in this function only.
    """
    args, kwargs = jittables.opened((args, kwargs))
    leaves, tree = flatten((args, kwargs))
    if not config.jit or any(map(is_tracer, leaves)):
        handle = handle_among([leaves[i] for i in version.donated])
        if handle is not None:
            raise handle.refused("jit's donate_argnums")
        return version.staged(args, kwargs), None
    values = [_concrete(x, i, args, kwargs, version.donated) for i, x in enumerate(leaves)]
    for x in values:
        x.buffer()  # refuses a deleted array before anything is traced or compiled for it
    entry = version.entry(tree, values)
    if entry is None:
        return version.staged(args, kwargs), None
    kinds = [_letter(x, v, i in version.donated) for i, (x, v) in enumerate(zip(leaves, values))]
    if "n" in kinds and not _hostable(entry, values):
        kinds = [_made(i in version.donated) if k == "n" else k for i, k in enumerate(kinds)]
    results = run(entry, [x._buf for x in values])
    forget_donated(values, kinds)
    return results, Done(
        CallForm(exact_key(tree), "".join(kinds)), tuple([x.key for x in values]), entry
    )


def forget_donated(leaves: Sequence[Any], kinds: Sequence[str]) -> None:
    """Remove the buffers of arrays that were donated.

    An Array without `_buf` falls out of every fast path, so the error needs no check there.  An
    array may be among the leaves twice.
    """
    for x, kind in zip(leaves, kinds):
        if kind == "d" and x.__class__ is Array and hasattr(x, "_buf"):
            del x._buf


def run(entry: Entry, bufs: list[Any]) -> Any:
    """Run a compiled call; return the tree of its results."""
    outs = run_on(entry.run, bufs, entry.handlers)
    return wrap(outs[0], entry.key) if entry.build is None else entry.build(outs)


def _concrete(x: Any, i: int, args: Args, kwargs: Kwargs, donated: Sequence[int]) -> Array:
    if x.__class__ is Array:
        return x
    checked_argument(x, i, args, kwargs, "jit")
    return as_donated(x) if i in donated else as_argument(x)


# ---- numpy arrays that the runtime takes ------------------------------------------------------


def _letter(x: Any, value: Array, donated: bool) -> str:
    if x.__class__ is Array:
        return "d" if donated else "a"
    small = x.__class__ is ndarray and x.nbytes <= HOSTED_BYTES
    return "n" if small and _kept_as_is(x, value) else _made(donated)


def _made(donated: bool) -> str:
    """Return the letter of a leaf that is converted to an array first."""
    return "o" if donated else "v"


def _kept_as_is(x: Any, value: Array) -> bool:
    """Return whether the runtime gives a numpy array the same dtype as Plait."""
    return x.__class__ is not ndarray or x.dtype == value.aval.dtype


def _hostable(entry: Entry, values: Sequence[Array]) -> bool:
    """Return whether the runtime can take a call's numpy arrays directly.

    Jaxlib does so under switches of the process, which jax changes once it is imported.
    """
    return (
        entry.direct is not None
        and "jax" not in sys.modules
        and all(x.key.placement is None for x in values)
    )


def hosted(version: Version, form: CallForm, keys: Sequence[Key]) -> Callable[..., Any]:
    """Return the function of buffers and numpy arrays that performs calls of this form.

    jaxlib itself caches the types it was called with, and calls `miss` for others.
    """
    known = [None if kind == "n" else k for kind, k in zip(form.leaves, keys)]
    found = weakref.ref(version)  # the version has this function in its tables

    def miss(*operands: Any) -> tuple[Any, Any, bool]:
        version = found()
        assert version is not None  # the caller found this function in its tables
        values = [as_argument(x) if k is None else wrap(x, k) for x, k in zip(operands, known)]
        entry = version.entry(form.tree, values)
        if entry is None:
            args, kwargs = form.tree.unflatten(values)
            return version.staged(args, kwargs), None, False
        results = run(entry, [x._buf for x in values])
        fast = None
        if (
            entry.swap is None
            and _hostable(entry, values)
            and all(map(_kept_as_is, operands, values))
        ):
            assert entry.direct is not None  # or it were not hostable
            executable, outs = entry.direct
            build = entry.build or builder(LEAF, outs)
            fast = jaxlib_api.hosted_entry(executable, default_place()[0], len(values), outs, build)
        return results, fast, False

    return jaxlib_api.hosted(miss)
