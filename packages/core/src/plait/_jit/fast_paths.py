"""Fast paths: how the next call of the same form finds its compiled call.

Invariant: a fast path finds a compiled call by the form of the call, the dispatch keys of its
arrays and the values of its static arguments.  It gives any other call to the general path.  A
setting that changes empties all tables.
"""

# pyright: reportPrivateUsage=false
# (arrays are unpacked here without a call: see `plait._core.array`)

import sys
from collections.abc import Callable, Collection, Hashable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from numpy import ndarray

from .._base import jaxlib_api
from .._base.config import config
from .._base.surroundings import Surroundings, around
from .._core.array import Array, failure, wrap
from .._core.buffers import default_place
from .._core.fitting import has_capacities, refitted
from .._core.same_parts import alike, parts_that_may_be_one, pattern_of
from .._types.avals import Key
from .._xla.operands import as_argument, as_donated
from ..tree import LEAF, TreeDef, exact_key, flatten, registry
from .caches import is_full, make_room
from .call_forms import HOSTED_BYTES, Args, CallForm, Kwargs, Way, builder, looked_up, taker
from .compiling import CompiledCall
from .jittable import jittables
from .roles import Role
from .versions import Version

Perform = Callable[
    [Version, TreeDef, Sequence[Array], tuple[Key, ...]], tuple[Any, CompiledCall | None]
]
"""Performs a call of a version in the general way, with arrays of these dispatch keys.

It returns the results and the compiled call, or None if the call was staged."""


class PerformedCall(NamedTuple):
    """A completed call: what a fast path needs to perform the next one like it.

    Attributes:
      form: its form, without static arguments.
      keys: the dispatch keys of its leaves.
      compiled: the compiled call.
      version: the function that was called.
    """

    form: CallForm
    keys: tuple[Key, ...]
    compiled: CompiledCall
    version: Version


class _Known(NamedTuple):
    """The fast path of one form of calls, and the table that it uses."""

    table: dict[Any, Any]
    way: Way | None


class FastPaths:
    """The fast paths of a jitted function, for calls in the same surroundings.

    `way` is that of the last call's form.  For another form it calls the general path, which
    replaces it.
    """

    __slots__ = ("way", "_known", "forget", "__weakref__")

    way: Way | None

    def __init__(self) -> None:
        self.way = None
        known: dict[CallForm, _Known] = {}
        self._known = known

        def forget() -> None:
            for each in known.values():
                each.table.clear()  # the paths hold the tables, and miss from now on
            known.clear()

        # The settings hold `forget` weakly, and this object holds it: it dies with the object.
        self.forget = forget
        config.watch(forget)

    def install(
        self,
        form: CallForm,
        keys: Sequence[Hashable],
        call: PerformedCall,
        perform: Perform,
        slow: Way,
        there: Sequence[Callable[[Any], Any]] = (),
    ) -> None:
        """Make the path for calls of this form, with this call in its table.

        Args:
          form, keys: those of the whole call (`with_static`).
          call: the call.
          perform: performs calls of a version in the general way.
          slow: performs other calls.
          there: moves the leaves that must be moved.
        """
        compiled = call.compiled
        if is_full(self._known):
            self.forget()
        known = self._known.get(form)
        if known is None:
            known = self._known[form] = _path(form, call, slow, there)
        key, table = looked_up(form, keys), known.table
        make_room(table)
        if "n" not in form.leaves:
            table[key] = compiled[:4]
        elif key not in table:
            table[key] = _hosted(call, perform)
        self.way = known.way
        # After the call is in the table: if the other tier arrived in between, it would stay there.
        if compiled.swap is not None:
            compiled.swap.tell(self.forget)


def by_surroundings(paths: dict[Surroundings | None, FastPaths], slow: Way) -> Way:
    """Return the path of a function that depends on its surroundings, which it looks up."""

    def call(args: Args, kwargs: Kwargs) -> Any:
        here = paths.get(around())
        way = slow if here is None or here.way is None else here.way
        return way(args, kwargs)

    return call


def _path(
    form: CallForm, call: PerformedCall, slow: Way, there: Sequence[Callable[[Any], Any]]
) -> _Known:
    """Return the path for calls of a form, with an empty table."""
    table: dict[Any, Any] = {}
    way = taker(form, table, slow, there)
    if way is None and not {*"sp"} & {*form.leaves}:
        way = _flattening(call, slow)
    return _Known(table, way)


def _flattening(call: PerformedCall, slow: Way) -> Way:
    """Return the path for structures without a generated function: it flattens each call.

    Only if some parts of the structure may be one object (`same_parts`) are parts compared; entries
    of structures without such parts serve all calls.  Where structures hold capacities, the way
    that found the last call is tried first: hashes leave capacities out, so a look-up by structure
    compares it with those of many earlier calls.
    """
    entries, A, tree = call.version.calls.every, Array, call.form.tree
    taken_apart = registry.flatten  # too deep trees are refused in the general way
    fits = call.version.calls.fits
    may_fit = has_capacities(tree)
    mixed = may_fit or bool({*"vo"} & {*call.form.leaves})  # some leaves are not arrays yet
    is_keyed = exact_key(tree) is not tree
    has_parts = len(parts_that_may_be_one(tree)) > 1
    donated = call.version.donated

    def arrays(leaves: list[Any]) -> list[Any]:
        for i in donated:
            if leaves[i].__class__ is not A:
                leaves[i] = as_donated(leaves[i])
        return [x if x.__class__ is A else as_argument(x) for x in leaves]

    def as_it_is(whole: Any) -> tuple[Any, list[Any]]:
        """Return the compiled call, or None, and the arrays of a call."""
        leaves, tree = taken_apart(whole)
        if mixed and not _ARRAYS.issuperset(map(type, leaves)):
            leaves = arrays(leaves)
        kind = exact_key(tree) if is_keyed else tree  # as `signatures.call_key`
        found: tuple[Any, ...] = kind, tuple(map(_key_of, leaves))
        if has_parts:
            found = *found, *alike(tree, leaves)
        return entries.get(found), leaves

    def with_capacities(whole: Any) -> tuple[Any, list[Any]]:
        """Return the same of a call whose capacities may have to change."""
        found = refitted(whole, fits)
        if found is None:
            return None, []
        leaves, how = found
        if not _ARRAYS.issuperset(map(type, leaves)):
            leaves = arrays(leaves)
        key: tuple[Any, ...] = how.want, tuple(map(_key_of, leaves))
        return entries.get((*key, *pattern_of(how.one, leaves))), leaves

    looks = (as_it_is, with_capacities) if may_fit else (as_it_is,)

    def path(args: Args, kwargs: Kwargs) -> Any:
        nonlocal looks
        try:
            whole: Any = args, kwargs
            if jittables.ways:
                whole = jittables.opened(whole)
            first, *others = looks
            known, leaves = first(whole)
            if known is None:
                for look in others:
                    known, leaves = look(whole)
                    if known is not None:
                        looks = look, first
                        break
                else:
                    return slow(args, kwargs)
            run, handlers, key, build, _, _ = known
            bufs = [*map(_buffer_of, leaves)]
        except (KeyError, AttributeError, TypeError, ValueError, SystemError, RecursionError):
            return slow(args, kwargs)
        for i in donated:
            leaves[i]._buf._npy_value = False  # see `array._viewed`
        try:
            outs = run(bufs).consume_with_handlers(handlers)
        except jaxlib_api.RuntimeFailure as e:
            raise failure(e, bufs) from None
        if donated:  # after the run, so that a call that fails keeps its arrays
            _forget(donated, leaves)
            if may_fit:  # leaves with other capacities were donated in place of these
                _forget(donated, flatten(whole)[0])
        if build is not None:
            return build(outs)
        r = Array()
        r._buf = outs[0]
        r.aval = key.aval
        r.key = key
        return r

    return path


_ARRAYS = frozenset((Array,))
_key_of, _buffer_of = attrgetter("key"), attrgetter("_buf")


def _forget(donated: Sequence[int], leaves: Sequence[Any]) -> None:
    """Remove the buffers of the donated leaves; an array may be among them twice."""
    for i in donated:
        x = leaves[i]
        if x.__class__ is Array and hasattr(x, "_buf"):
            del x._buf


# ---- the form of a performed call --------------------------------------------------------------


def form_of(
    tree: TreeDef,
    leaves: Sequence[Any],
    values: Sequence[Array],
    donated: Collection[int],
    compiled: CompiledCall,
) -> CallForm:
    """Return the form of a call.

    Args:
      tree, leaves: its arguments, as they were given.
      values: the leaves as arrays.
      donated: the numbers of the donated ones.
      compiled: the compiled call.
    """
    kinds = [_letter(x, v, i in donated) for i, (x, v) in enumerate(zip(leaves, values))]
    if "n" in kinds and (config.guarded or not _hostable(compiled, values)):
        kinds = [_made(i in donated) if k == "n" else k for i, k in enumerate(kinds)]
    return CallForm(exact_key(tree), "".join(kinds))


def _letter(x: Any, value: Array, donated: bool) -> str:
    if x.__class__ is Array:
        return "d" if donated else "a"
    small = x.__class__ is ndarray and x.nbytes <= HOSTED_BYTES
    return "n" if small and _kept_as_is(x, value) else _made(donated)


def _made(donated: bool) -> str:
    """Return the letter of a leaf that is converted to an array first."""
    return "o" if donated else "v"


def moved(form: CallForm, leaves: Collection[int]) -> CallForm:
    """Return the form of calls in which these leaves are moved first."""
    return CallForm(form.key, "".join("p" if i in leaves else k for i, k in enumerate(form.leaves)))


class _Static:
    """A leaf in place of a static argument in the tree of a call."""

    def __init__(self, value: object):
        self.value = value


_TELLING = frozenset({int, bool, str, type(None), type, type(len), type(lambda: None)})
"""Classes of static values that are equal only if they are the same value.

A table of calls is a plain dictionary, keyed on class and value.  Floats (0.0 == -0.0) and tuples
(`(1,) == (1.0,)`) would find entries of different values.  So calls with such values take the
general path, whose keys are frozen."""


def with_static(
    args: Args, kwargs: Kwargs, static: Role, call: PerformedCall
) -> tuple[CallForm, Sequence[Hashable]] | None:
    """Return the form of a whole call, static arguments included, and the keys of all its leaves.

    A static leaf has two keys, its class and its value.  The result is None if a static value is of
    a class whose equality ignores differences (see `_TELLING`).
    """
    if not static:
        return call.form, call.keys
    stood = (
        tuple([_Static(a) if i in static.nums else a for i, a in enumerate(args)]),
        {k: _Static(a) if k in static.names else a for k, a in kwargs.items()},
    )
    leaves, tree = flatten(jittables.opened(stood))
    letters, known = iter(call.form.leaves), iter(call.keys)
    kinds: list[str] = []
    keys: list[Hashable] = []
    for x in leaves:
        if x.__class__ is not _Static:
            kinds.append(next(letters))
            keys.append(next(known))
        elif x.value.__class__ in _TELLING:
            kinds.append("s")
            keys += [x.value.__class__, x.value]
        else:
            return None
    return CallForm(exact_key(tree), "".join(kinds)), keys


# ---- numpy arrays that the runtime takes ------------------------------------------------------


def _kept_as_is(x: Any, value: Array) -> bool:
    """Return whether the runtime gives a numpy array the same dtype as Plait."""
    return x.__class__ is not ndarray or x.dtype == value.aval.dtype


def _hostable(compiled: CompiledCall, values: Sequence[Array]) -> bool:
    """Return whether the runtime can take a call's numpy arrays directly.

    Jaxlib does so under switches of the process, which jax changes once it is imported.
    """
    return (
        compiled.direct is not None
        and "jax" not in sys.modules
        and all(x.key.placement is None for x in values)
    )


def _hosted(call: PerformedCall, perform: Perform) -> Callable[..., Any]:
    """Return the function of buffers and numpy arrays that performs calls of this form.

    jaxlib itself caches the types it was called with, and calls `miss` for others.
    """
    tree, version = call.form.tree, call.version
    known = [None if kind == "n" else k for kind, k in zip(call.form.leaves, call.keys)]

    def miss(*operands: object) -> tuple[Any, Any, bool]:
        values = [as_argument(x) if k is None else wrap(x, k) for x, k in zip(operands, known)]
        results, compiled = perform(version, tree, values, tuple([x.key for x in values]))
        fast = None
        if (
            compiled is not None
            and compiled.swap is None
            and _hostable(compiled, values)
            and all(map(_kept_as_is, operands, values))
        ):
            assert compiled.direct is not None  # or it were not hostable
            executable, outs, read = compiled.direct
            build = compiled.build
            if build is None and outs[0].aval.physical is not outs[0]:
                build = builder(LEAF, outs)
            kept = [read is None or i in read for i in range(len(values))]
            fast = jaxlib_api.hosted_entry(executable, default_place()[0], kept, outs, build)
        return results, fast, False

    return jaxlib_api.hosted(miss)
