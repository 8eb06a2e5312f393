"""One function for one set of static values: what its calls are, staged and compiled.

Invariant: an executable is found by the structure of the arguments and the dispatch keys of their
leaves, i.e. interned types and placements, and nothing else; all that is found is forgotten when
a setting changes.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy import ndarray

from .._base import jaxlib_api
from .._base.config import config
from .._core.array import Array, Literal, is_tracer, run_on, wrap
from .._core.buffers import default_place
from .._core.carrier import Lifted
from .._core.interpreter import current, named_axes
from .._core.ir import Var, derived, evaluate
from .._ops.control_flow import call
from .._ops.shape import materialise_at_ground
from .._xla.executables import Options, executable
from .._xla.operands import as_argument
from ..tree import LEAF, TreeDef, flatten
from .call_forms import HOSTED_BYTES, CallForm, builder
from .roles import warn_of_unusable
from .tracing import Traced, checked_argument, kept, trace

_VALUES = frozenset((Array, Literal, Var, Lifted))


class Entry(NamedTuple):
    """A compiled call: what to run, how its results are received, and made into a tree: by
    `build`, or where the result is one array, by its key.  `direct` is the executable itself and
    the keys of its results, if its run needs nothing around it."""

    run: Callable
    handlers: list
    key: Any
    build: Callable[[list], Any] | None
    direct: Any


class Version:
    """A function with its static arguments bound; `donated` are numbers of flat arguments,
    `options` flags of the compiler."""

    __slots__ = (
        "f", "donated", "inline", "options", "traces", "entries", "one", "flat", "tables", "calls",
        "forget", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        f: Callable,
        donated: tuple[int, ...] = (),
        inline: bool = False,
        options: Options = (),
    ):
        self.f, self.donated, self.inline, self.options = f, donated, inline, options
        self.traces = kept(f)
        self.entries: dict[tuple, Entry] = {}
        self.one: dict = {}
        """What is called with one array, by its key."""
        self.flat: dict = {}
        """What is called with several."""
        self.tables: dict[CallForm, dict] = {}
        self.calls: dict = {}
        every = (self.entries, self.one, self.flat, self.calls)
        tables = self.tables

        def forget() -> None:
            for table in (*every, *tables.values()):
                table.clear()

        self.forget = forget
        config.watch(forget)

    def clear(self) -> None:
        """Drop all traces and executables."""
        self.forget()
        self.traces.clear()

    def trace(self, args: Sequence, kwargs: dict[str, Any]) -> Traced:
        """The function, staged for these arguments."""
        return trace(self.f, args, kwargs, "jit", self.traces)

    # ---- under a transformation ----

    def staged(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The call as an operation of the current interpreter."""
        if not config.jit:
            return self.f(*args, **kwargs)
        alone = not kwargs and not self.inline and not named_axes()
        if alone:
            try:  # flat values, whose trace captured nothing: the call and no more
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
        if self.inline:
            outs = evaluate(traced.program, operands)
        else:
            outs = current().apply(call, operands, {"program": traced.program})
            if alone and len(operands) == len(args) and all(x.__class__ in _VALUES for x in args):
                tree = None if traced.tree == LEAF else traced.tree
                self.calls[tuple([x.aval for x in args])] = {"program": traced.program}, tree
        return traced.tree.unflatten([materialise_at_ground(o) for o in outs])

    # ---- on arrays ----

    def entry(self, tree: TreeDef, values: Sequence[Array]) -> Entry | None:
        """The executable for these leaves; None if the function needs values of a transformation
        that is under way."""
        keys = tuple([x.key for x in values])
        found = self.entries.get((tree, keys))
        if found is None:
            args, kwargs = tree.unflatten(values)
            traced = self.trace(args, kwargs)
            if any(map(is_tracer, traced.captured)):
                return None
            found = self.entries[tree, keys] = _compiled(traced, keys, self.donated, self.options)
        return found


def _compiled(traced: Traced, keys: tuple, donated: tuple[int, ...], options: Options) -> Entry:
    program, captured = traced.program, traced.captured
    k = len(captured)
    all_keys = (*[c.key for c in captured], *keys)
    shifted = tuple([i + k for i in donated])

    def make() -> tuple:
        warn_of_unusable(program, shifted)
        made = executable(program, shifted, all_keys, options)
        return made, {}

    made, builds = derived(program, ("executable", shifted, all_keys, options), make)
    itself = jaxlib_api.executable_of(made.run)
    direct = None if itself is None else (itself, made.keys)
    if traced.tree == LEAF:
        return Entry(made.run, made.handlers, made.keys[0], None, direct)
    build = builds.get(traced.tree)
    if build is None:
        build = builds[traced.tree] = builder(traced.tree, made.keys)
    return Entry(made.run, made.handlers, None, build, direct)


class Done(NamedTuple):
    """What is known of a call that was made, for the next one like it."""

    form: CallForm
    keys: tuple
    entry: Entry


def done(version: Version, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Done | None]:
    """Call it, finding everything out: the results, and what the call was unless it was staged."""
    leaves, tree = flatten((args, kwargs))
    if not config.jit or any(map(is_tracer, leaves)):
        return version.staged(args, kwargs), None
    values = [_concrete(x, i, args, kwargs) for i, x in enumerate(leaves)]
    for x in values:
        x.buffer()
    entry = version.entry(tree, values)
    if entry is None:
        return version.staged(args, kwargs), None
    kinds = [_letter(x, v, i in version.donated) for i, (x, v) in enumerate(zip(leaves, values))]
    if "n" in kinds and not _hostable(entry, values):
        kinds = ["v" if k == "n" else k for k in kinds]
    results = run(entry, [x._buf for x in values])
    forget_donated(values, kinds)
    return results, Done(CallForm(tree, "".join(kinds)), tuple([x.key for x in values]), entry)


def forget_donated(leaves: Sequence[Any], kinds: Sequence[str]) -> None:
    """Take their buffers from arrays that were donated; one array may be given twice."""
    for x, kind in zip(leaves, kinds):
        if kind == "d" and x.__class__ is Array and hasattr(x, "_buf"):
            del x._buf


def run(entry: Entry, bufs: list) -> Any:
    """The results of an executable, as a tree."""
    outs = run_on(entry.run, bufs, entry.handlers)
    return wrap(outs[0], entry.key) if entry.build is None else entry.build(outs)


def _concrete(x: Any, i: int, args: Any, kwargs: Any) -> Array:
    if x.__class__ is Array:
        return x
    checked_argument(x, i, args, kwargs, "jit")
    return as_argument(x)


# ---- numpy arrays that the runtime takes ------------------------------------------------------


def _letter(x: Any, value: Array, donated: bool) -> str:
    if x.__class__ is Array:
        return "d" if donated else "a"
    small = x.__class__ is ndarray and x.nbytes <= HOSTED_BYTES
    return "n" if small and _kept_as_is(x, value) else "v"


def _kept_as_is(x: Any, value: Array) -> bool:
    """Whether the runtime makes of a numpy array what we make of it."""
    return x.__class__ is not ndarray or x.dtype == value.aval.dtype


def _hostable(entry: Entry, values: Sequence[Array]) -> bool:
    """Whether the runtime can take a call's numpy arrays as they are.

    Jaxlib does it under switches that jax, where it has been imported, sets as it needs them.
    """
    return (
        entry.direct is not None
        and "jax" not in sys.modules
        and all(x.key.placement is None for x in values)
    )


def hosted(version: Version, form: CallForm, keys: tuple) -> Callable:
    """A function of what the leaves of such calls are to the runtime: buffers and numpy arrays.

    jaxlib knows by itself which of its calls it has seen, and `miss` does the others.
    """
    known = [None if kind == "n" else k for kind, k in zip(form.leaves, keys)]

    def miss(*operands: Any) -> tuple[Any, Any, bool]:
        values = [as_argument(x) if k is None else wrap(x, k) for x, k in zip(operands, known)]
        entry = version.entry(form.tree, values)
        if entry is None:
            args, kwargs = form.tree.unflatten(values)
            return version.staged(args, kwargs), None, False
        results = run(entry, [x._buf for x in values])
        fast = None
        if _hostable(entry, values) and all(map(_kept_as_is, operands, values)):
            executable, outs = entry.direct
            build = entry.build or builder(LEAF, outs)
            fast = jaxlib_api.hosted_entry(executable, default_place()[0], len(values), outs, build)
        return results, fast, False

    return jaxlib_api.hosted(version.f, miss)
