"""Executables: modules that are compiled, cached, and bound to the places of operands and results.

The cache key is the bytes of the code, so defining a function again compiles nothing.  Executables
are cached in memory here, and on disk (`disk_cache`) for later processes.

Invariant: an executable is looked up by its code, its devices, the compiler options and the
arguments that the compiler places, and nothing else.  It runs only on operands with the dispatch
keys that it was made for: the runtime does not check dtypes, so these keys are the only guard.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from .. import events
from .._base import code_memory, jaxlib_api, lazy
from .._base.config import config
from .._base.errors import PlacementError, PlaitError, RuntimeFailure, RuntimeRefusal
from .._core import forks
from .._core.buffers import client, device_list, devices, first, handler, local, owners, platform
from .._core.ir import Program
from .._core.processes import Membership, member
from .._core.topologies import expect_here
from .._types.avals import Aval, Key, Placed
from . import disk_cache
from .apart import kept_apart
from .guards import guarded
from .inspection import placement_of
from .module import BLOCK, Module, is_chosen, module_of
from .runs import (
    as_flight,
    behind_flights,
    brought,
    caught,
    completed,
    each_once,
    fronted,
    in_turn,
    moving,
    watched,
)
from .tiers import USUAL, Options, later


class Executable(NamedTuple):
    """A compiled program: `run(buffers) -> ExecuteResults`, and the handlers and dispatch keys of
    the results."""

    run: Callable[[list[Any]], Any]
    handlers: list[Any]
    keys: list[Key]


class Loaded(NamedTuple):
    """A compiled module.

    Attributes:
      executable: jaxlib's object.
      tiles: how each result is tiled; None for a module of one device.
      chosen: how each argument is tiled, if the compiler chose some of them.
      meets: whether the devices of a run may wait for one another.
      entry: the path of the entry on disk that it was loaded from; None if it was compiled.
    """

    executable: Any
    tiles: list[Any] | None
    chosen: list[Any] | None = None
    meets: bool = True
    entry: str | None = None


_loaded: "OrderedDict[Any, Loaded]" = OrderedDict()
_compiling: dict[Any, Any] = {}
"""A lock for each executable that some thread is compiling."""
_KEPT = 2048


def load(module: Module, options: Options = USUAL) -> Loaded:
    """Return the module compiled for the place it must run at; equal code is compiled once.

    The tier "both" counts as the full one here; `load_in_tiers` compiles two.
    """
    options = options.single()
    ids = _ids(module)
    # Callbacks go to the compiler beside the code, so equal code may call other users' functions.
    # Placement queries are answered at each compilation.  Neither may come from the cache.
    if module.calls_users or module.questions:
        return _compiled(module, ids, options)
    key = _key(module, ids, options)
    with jaxlib_api.lock:
        if key in _loaded:
            _loaded.move_to_end(key)
            return _loaded[key]
        turn = _compiling.setdefault(key, Lock())
    # Of the threads that need the same executable, one compiles and the others wait.  Threads that
    # need another one do not wait: the common lock is never held while the compiler runs.
    with turn:
        with jaxlib_api.lock:
            if key in _loaded:
                return _loaded[key]
        try:
            made = _compiled(module, ids, options)
            with jaxlib_api.lock:
                _loaded[key] = made
                while len(_loaded) > _KEPT:
                    _loaded.popitem(last=False)
        finally:  # also after an error: each waiting thread then compiles, and gets the error
            with jaxlib_api.lock:
                _compiling.pop(key, None)
    return made


def load_in_tiers(
    module: Module,
    options: Options,
    take: Callable[[Loaded, bool], None],
    quick: Module | None = None,
) -> None:
    """Call `take(loaded, last)` with the module compiled in the tier of the options.

    For "both" it is called twice: at once with the fast tier, and later, by another thread, with
    the full tier and `last` true.  It is called only once, with the full tier, if that is cached
    already.  The same holds for callbacks and placement queries, which need a single compilation.

    `quick` is the module that the fast tier compiles for "both", if that is another one.
    """
    options = options.resolved()
    if _together(_ids(module)) is not None:  # background compilations have no order among processes
        options = options.single()
    if options.tier != "both":
        take(load(module, options), True)
        return
    full = options.at("full")
    once = module.calls_users or module.questions
    found = load(module, full) if once else _at_hand(module, full)
    if found is not None:
        take(found, True)
        return
    take(load(quick or module, options.at("fast")), False)
    later(lambda: take(load(module, full), True))


def _at_hand(module: Module, options: Options) -> Loaded | None:
    """Return the module loaded from a cache, or None if it must be compiled."""
    ids = _ids(module)
    with jaxlib_api.lock:
        found = _loaded.get(_key(module, ids, options))
    if found is not None:
        return found
    if _together(ids) is not None:
        return None
    made = _compile_options(ids, options, module)
    path = disk_cache.path_of(module.code, ids, made, options.flags)
    return load(module, options) if path is not None and os.path.exists(path) else None


def _key(module: Module, ids: tuple[int, ...], options: Options) -> tuple[Any, ...]:
    """Return what a loaded module is looked up by."""
    return module.code, ids, options, module.chosen, module.shares_products, module.splits_memory


def _ids(module: Module) -> tuple[int, ...]:
    """Return the numbers of the devices that run a module; PlacementError if they are not here."""
    if module.place is None:
        return (first(),)
    expect_here(module.place)
    return tuple(module.place.devices)


def _fast_flags(options: Options, module: Module | None) -> dict[str, Any]:
    if options.tier != "fast":
        return {}
    return jaxlib_api.fast_flags(platform(), module is not None and module.has_one_zero)


def _compile_options(ids: tuple[int, ...], options: Options, module: Module | None = None) -> Any:
    """Return the options as jaxlib's object; flags of the user apply in every tier."""
    flags = _fast_flags(options, module)
    if module is not None and module.shares_products and len(ids) == 1:
        flags |= jaxlib_api.SHARED_PRODUCTS
    if module is not None and module.splits_memory:
        flags |= jaxlib_api.blocks_of_memory(BLOCK)
    flags |= dict(options.flags)
    numbers = [devices()[i].id for i in ids]
    chosen = () if module is None else module.chosen
    without = ",".join(_without(ids, options.tier, b"" if module is None else module.code))
    return jaxlib_api.compile_options(numbers, len(ids) > 1, sorted(flags.items()), chosen, without)


def _without(ids: tuple[int, ...], tier: str | None, code: bytes) -> Iterator[str]:
    """Yield the compiler passes to disable in code for these devices."""
    # This pass combines several sums into one operation.  If the first sum fails because a process
    # died, Gloo still begins the second one, and then ends the process that it runs in.
    if _together(ids) is not None:
        yield "cpu-all-reduce-combiner"
    # The CPU compiler would drop barriers, and merge the values that they separate.  Barriers that
    # stay must not get into a small loop that becomes one kernel: its emitter does not support
    # them.  The fast tier needs them for values that it would round in two ways
    # (`Unit.rounds_alike`).
    apart = len(ids) > 1 or tier == "fast"
    if apart and platform() == "cpu" and b"optimization_barrier" in code:
        yield "cse_barrier_expander"
        yield "small-while-loop-hoisting"


def _together(ids: tuple[int, ...]) -> Membership | None:
    """Return the membership if these devices belong to several processes, else None."""
    world = member()
    return world if world is not None and len(owners(ids)) > 1 else None


def _expect_runnable(ids: tuple[int, ...]) -> None:
    """Raise PlacementError if this process drives none of the devices."""
    if member() is not None and not set(ids) & set(local()):
        raise PlacementError(
            f"this process drives none of the devices {list(ids)} that a program needs: "
            f"its own are {list(local())}",
            fix="take plait.local_devices(), or a mesh with a device of each process that calls it",
        )


def _refused(
    e: Exception, module: Module, ids: tuple[int, ...], where: object, asked: Options
) -> PlaitError:
    """Return the error for a module that the compiler refused.

    The compiler's text does not separate bad options from a bad program.  The options are at fault
    if the module compiles without them.
    """
    said = str(e).splitlines()[0]
    if asked.flags:
        options = _compile_options(ids, USUAL, module)
        try:
            jaxlib_api.load(client(), module.code, where, options, module.callbacks)
        except jaxlib_api.RuntimeFailure:
            pass
        else:
            return RuntimeRefusal(
                f"the compiler refused compiler_options: {said}",
                fix="give names and values of XLA's flags, like {'xla_cpu_enable_fast_math': True}",
            )
    return RuntimeFailure(
        f"the compiler refused the program: {said}",
        fix="jit(f).lower(...).as_text(debug_info=True) shows the program",
    )


def _compiled(module: Module, ids: tuple[int, ...], asked: Options, anew: bool = False) -> Loaded:
    """Return a module compiled, or loaded from disk if a process has compiled it before.

    With `anew` it is not loaded.
    """
    where = device_list(ids)
    fast = _fast_flags(asked, module)
    options = _compile_options(ids, asked, module)
    path = made = None
    once = module.calls_users or module.questions
    if not once and _together(ids) is None:  # whether other processes can load these is untested
        path = disk_cache.path_of(module.code, ids, options, asked.flags)
    if path is not None and not anew:
        made = disk_cache.loaded(
            path,
            lambda data: jaxlib_api.load_again(
                client(), data, module.code, where, options, module.callbacks
            ),
        )
    if made is None:
        began = time.perf_counter()
        try:
            cpus = len(ids) if platform() == "cpu" else 0
            code = kept_apart(module.code, cpus)
            if cpus and jaxlib_api.HAS_KERNELS_THAT_WAIT and jaxlib_api.calls_lapack(code):
                code = lazy.later("_xla.kernel_order").in_order(code, cpus)
            with lazy.later("_xla.patience").waiting_for(module.name, module.equations):
                made = jaxlib_api.load(client(), code, where, options, module.callbacks)
        except jaxlib_api.RuntimeFailure as e:
            if jaxlib_api.lacks_fast_flag(e, fast):
                return _compiled(module, ids, asked, anew)
            raise _refused(e, module, ids, where, asked) from e
        events.happened("compile", module)
        for question in module.questions:
            if question.failure is not None:
                raise question.failure
        if path is not None and time.perf_counter() - began >= config.cache_seconds:
            disk_cache.keep(path, made.serialize)
        path = None
    else:
        events.happened("load", module)
    code_memory.watch.compiled()
    shardings = jaxlib_api.output_shardings(made) if len(ids) > 1 else None
    tiles = None if shardings is None else [jaxlib_api.tiles(s) for s in shardings]
    meets = len(ids) > 1 and jaxlib_api.meets(made)
    if not module.chosen:
        return Loaded(made, tiles, None, meets, path)
    given = jaxlib_api.parameter_shardings(made) if len(ids) > 1 else []
    return Loaded(made, tiles, [jaxlib_api.tiles(s) for s in given], meets, path)


def serialized(module: Module) -> bytes:
    """Return the executable of a module as bytes.

    `loaded_again` and `executable_again` load it where `circumstances` are the same.  Raises
    RuntimeFailure where the runtime cannot write it.
    """
    loaded = load(module)
    if loaded.entry is not None:
        # The runtime writes an executable without its machine code if it was loaded itself.
        data = disk_cache.contents(loaded.entry)
        if data is not None:
            return data
        loaded = _compiled(module, _ids(module), USUAL.single(), anew=True)
    try:
        return loaded.executable.serialize()
    except (jaxlib_api.RuntimeFailure, ValueError) as e:
        raise RuntimeFailure(
            f"the runtime cannot write this executable: {(str(e).splitlines() or [''])[0]}",
            fix="keep the program instead, as StableHLO, and compile it where it is run",
        ) from e


def loaded_again(data: bytes, calls: Sequence[str] = ()) -> Loaded:
    """Return the executable for the default device that `serialized` wrote.

    Args:
      data: bytes from a trusted source, since the runtime runs the code in them.
      calls: foreign functions that it calls.

    Raises RuntimeFailure for bytes that the runtime refuses.
    """
    return _again(data, (first(),), calls)


def executable_again(
    data: bytes, program: Program, module: Module, keys: Sequence[Key], calls: Sequence[str] = ()
) -> tuple[Executable, list[Key]]:
    """Return the executable that `serialized` wrote, and the dispatch keys of its operands.

    Args:
      data, calls: as of `loaded_again`.
      program: the program that it computes.
      module: its place, results and constants; its code is not used.  It has as many devices as
        the module that was compiled, but they may be others.
      keys: dispatch keys of the operands that it was compiled for, on these devices.  Operands of
        the default place lie as the compiler chose, or whole on each device.

    Raises RuntimeFailure for bytes that the runtime refuses, PlacementError for devices that are
    not here.
    """
    loaded = _again(data, _ids(module), calls, bool(module.chosen))
    front = len(module.constants)
    wanted = [
        k if k.placement is not None or module.place is None
        else _stays(module, loaded, front + i, k.aval)
        for i, k in enumerate(keys)
    ]  # fmt: skip
    return bound(program, module, loaded, wanted, []), wanted


def _again(data: bytes, ids: tuple[int, ...], calls: Sequence[str], chosen: bool = False) -> Loaded:
    options = _compile_options(ids, USUAL)
    code = " ".join(calls).encode()
    try:
        made = jaxlib_api.load_again(client(), data, code, device_list(ids), options)
    except (jaxlib_api.RuntimeFailure, ValueError) as e:
        raise RuntimeFailure(
            f"the runtime refuses this executable: {(str(e).splitlines() or [''])[0]}",
            fix="compile the program again",
        ) from e
    events.happened("load", None)
    if len(ids) == 1:
        return Loaded(made, None, [] if chosen else None)
    tiles = [jaxlib_api.tiles(s) for s in jaxlib_api.output_shardings(made)]
    given = [jaxlib_api.tiles(s) for s in jaxlib_api.parameter_shardings(made)] if chosen else None
    return Loaded(made, tiles, given, jaxlib_api.meets(made))


def _stays(module: Module, loaded: Loaded, i: int, aval: Aval) -> Placed:
    """Return the dispatch key that an argument of `main` in the default place is moved to."""
    if not (module.chosen and module.chosen[i]):
        return Placed(aval, module.place.everywhere())
    tiles = loaded.chosen[i] if loaded.chosen else None
    return Placed(aval, _where(module, None, tiles, aval))


def settled(module: Module, loaded: Loaded, keys: Sequence[Any]) -> list[Any]:
    """Return dispatch keys of arguments, with the compiler's choice filled in where it chose."""
    first = len(module.constants)
    tiles = loaded.chosen or [None] * (first + len(keys))
    return [
        Placed(k.aval, _where(module, None, t, k.aval)) if is_chosen(k) else k
        for k, t in zip(keys, tiles[first:], strict=True)
    ]


@code_memory.emptied_by
def _forget_executables() -> None:
    """Drop the cache of executables."""
    with jaxlib_api.lock:
        _loaded.clear()


_unused: list[Any] = []


@forks.empty_in_child
def _keep_executables() -> None:
    """Keep the executables in a child, although none is run: to end, they may need the threads."""
    _unused.extend(_loaded.values())


def executable(
    program: Program,
    donated: Sequence[int] = (),
    keys: Sequence[Any] = (),
    options: Options = USUAL,
) -> Executable:
    """Return the program compiled for operands with these dispatch keys, in one tier; "both" counts
    as the full one."""
    made: list[Executable] = []
    compile_in_tiers(program, donated, keys, options.single(), lambda one, last: made.append(one))
    return made[0]


def compile_in_tiers(
    program: Program,
    donated: Sequence[int],
    keys: Sequence[Any],
    options: Options,
    take: Callable[[Executable, bool], None],
    quick: Program | None = None,
) -> None:
    """Call `take(executable, last)` with the program compiled in one tier or two, as
    `load_in_tiers` does.

    `quick` computes the same, and is what the fast tier compiles; by default the program itself.
    """
    keys = list(keys) or list(program.in_avals)
    failures: list[BaseException] = []
    lines, tier = options.lines_now, options.tier_now

    def lowered(p: Program) -> Module:
        events.happened("lower", p)
        return module_of(p, donated, keys, (platform(),), lines, tier=tier)

    differ = quick is not None and quick is not program
    if differ and tier == "fast":
        assert quick is not None
        program, differ = quick, False
    module = lowered(program)
    divided = module.place is not None and len(module.place.devices) > 1
    if module.calls_users:
        called = lazy.later("_xla.nesting").as_callback
        module.callbacks = lazy.later("_xla.python_calls").wrapped(
            module.callbacks, lambda f: called(caught(f, failures, divided), divided)
        )
    agreed(module, program.name)

    if differ and tier == "both" and not module.calls_users:
        assert quick is not None
        first = quick, lowered(quick)
    else:
        first = program, module

    def bind(loaded: Loaded, last: bool) -> None:
        which, code = (program, module) if last else first
        take(bound(which, code, loaded, keys, failures, donated), last)

    load_in_tiers(module, options, bind, first[1])


def agreed(module: Module, name: str) -> None:
    """Raise unless all processes whose devices a module runs on are about to compile the same."""
    ids = _ids(module)
    _expect_runnable(ids)
    world = _together(ids)
    if world is not None:
        world.agree(module.code, name, tuple(sorted(owners(ids))))


def bound(
    program: Program,
    module: Module,
    loaded: Loaded,
    keys: Sequence[Any],
    failures: list,
    donated: Sequence[int] = (),
) -> Executable:
    """Return a compiled module as an executable to call with buffers.

    Each wrapper around `run` is added only where it is needed: a program without effects,
    constants and placements runs without a Python frame of Plait.
    """
    run = loaded.executable.execute_sharded
    acts = bool(module.calls_users or program.effects)
    place = module.place
    divided = place is not None and len(place.devices) > 1
    if acts:
        run = watched(run, failures, divided)
    if module.calls_users:
        run = lazy.later("_xla.nesting").limited(run)
    if jaxlib_api.calls_lapack(module.code) and platform() == "cpu" and not divided:
        run = lazy.later("_xla.library_threads").with_stacks(run, module.code, acts)
    if place is not None and divided:
        world = _together(place.devices)
        if world is not None:
            of = owners(place.devices)
            began = world.launches(module.code, program.name, tuple(sorted(of)))
            here = set(place.devices) & set(local())
            # The runtime runs a program on the caller's thread if one device of this process takes
            # part.  There a collective whose peer is frozen could not be left.
            if not acts and len(here) == 1 and platform() == "cpu":
                run, acts = completed(run), True
            run = as_flight(run, acts, of, platform() == "cpu", began)
        elif platform() == "cpu" and (acts or loaded.meets):
            run = in_turn(run, acts)
        if donated:
            n = len(module.constants)
            run = each_once(run, [n + i for i in donated], n)
    elif member() is not None:
        run = behind_flights(run)
    front = [x.buffer() for x in module.constants]
    stay: list = []
    if place is not None:
        n, there = len(front), partial(_stays, module, loaded)
        front = [
            brought(b, there(i, x.aval)) if x.key.placement is None else b
            for i, (x, b) in enumerate(zip(module.constants, front))
        ]
        stay = [
            (i, there(n + i, k.aval), i in donated)
            for i, k in enumerate(keys)
            if k.placement is None
        ]
    if front:
        run = fronted(run, front)
    if stay:
        run = moving(run, stay)
    run = guarded(run, program)
    outs = result_keys(program, module, loaded, keys)
    return Executable(run, [handler(k) for k in outs], outs)


def result_keys(program: Program, module: Module, loaded: Loaded, keys: Sequence[Key]) -> list[Key]:
    """Return the dispatch keys of the results of a compiled module.

    `keys` are those of the arguments.
    """
    outs = program.out_avals
    if module.place is None:
        return [*outs]
    # Without results, the compiler reports the tiling of its empty tuple.
    tiles = loaded.tiles if outs and loaded.tiles is not None else [None] * len(outs)
    given = _spelled(keys)
    return [
        Placed(a, _as_given(given, _where(module, None, t, a), a) if told is None else told)
        for a, told, t in zip(outs, module.results, tiles, strict=True)
    ]


def _spelled(keys: Sequence[Key]) -> dict[tuple[Any, str, int], Any]:
    """Return the first placement of the arguments for each place, tiling and number of axes."""
    found: dict[tuple[Any, str, int], Any] = {}
    for k in keys:
        if k.placement is not None and not is_chosen(k):
            ndim = k.aval.ndim
            found.setdefault((k.placement.place, k.placement.tiling(ndim), ndim), k.placement)
    return found


def _as_given(given: dict[tuple[Any, str, int], Any], placement: Any, aval: Aval) -> Any:
    """Return the placement of an argument that places a result alike, else `placement`.

    Names of mesh axes of size 1 are not in a tiling.  A step of training returns its parameters
    with the names that they came with, so the next step finds the same executable.
    """
    return given.get((placement.place, placement.tiling(aval.ndim), aval.ndim), placement)


def _where(
    module: Module, told: object, tiles: tuple[tuple[Any, ...], ...] | None, aval: Aval
) -> Any:
    """Return the placement of a result: as the program sets it, or else as the compiler chose."""
    if told is not None:
        return told
    return placement_of(module.places, tiles, aval.physical.ndim)
