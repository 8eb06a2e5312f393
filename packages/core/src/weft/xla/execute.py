"""Running programs, and doing primitives at once.

A primitive applied to arrays is a one-equation program, compiled once per operand types.
Executables are kept by the bytes of their code, so defining a function again compiles nothing.

Invariant: nothing but the ground interpreter executes.  The key of a compiled thing is the
operand types (with their placement) and the parameters; the runtime does not check dtypes, so
that key is the only guard there is.
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock, RLock
from typing import Any, NamedTuple

from .. import door, events
from ..buffers import client, device_list, devices, handler, move, platform
from ..carrier import expand_rules, promised
from ..errors import WeftError
from ..interpreter import GROUND, Evaluate, Tracer, as_list, stray, unbound, use
from ..ir import Program, derived, programs_in
from ..ops.shape import broadcast_in_dim
from ..reuse import guarded
from ..rules import RuleTable
from ..staging import staged
from ..types import Aval, Placed
from ..values import Array, Literal, as_value, failure, scalar_buffer, solid, wrap
from .lower import Module, lower_rules, module_of

eager_rules = RuleTable(
    "eager",
    owns=("core",),
    doc="rule(args, params) -> result (a list if the primitive has many), or None to compile after "
    "all: how to do an operation now, in Python.",
)


class Executable(NamedTuple):
    """`run(buffers) -> ExecuteResults`; handlers and dispatch keys of the results."""

    run: Callable[[list], Any]
    handlers: list
    keys: list


class Loaded(NamedTuple):
    """A compiled module: jaxlib's object, and how results are tiled (None: it has one device)."""

    executable: Any
    tiles: list | None


_loaded: "OrderedDict[Any, Loaded]" = OrderedDict()
_compiling: dict[Any, Any] = {}
"""The locks of what is being compiled."""
_KEPT = 2048
_MOST = 4096
"""Executables kept of one operation."""


def load(module: Module) -> Loaded:
    """The module compiled for where it must run, from the cache if equal code was compiled."""
    ids = (0,) if module.place is None else tuple(module.place.devices)
    if module.callbacks:  # whose functions belong to this program alone
        return _compiled(module, ids)
    key = module.code, ids
    with door.lock:
        if key in _loaded:
            _loaded.move_to_end(key)
            return _loaded[key]
        turn = _compiling.setdefault(key, Lock())
    with turn:  # of threads that want the same, one compiles and the others wait for it
        with door.lock:
            if key in _loaded:
                return _loaded[key]
        try:
            made = _compiled(module, ids)
            with door.lock:
                _loaded[key] = made
                while len(_loaded) > _KEPT:
                    _loaded.popitem(last=False)
        finally:
            with door.lock:
                _compiling.pop(key, None)
    return made


def _compiled(module: Module, ids: tuple[int, ...]) -> Loaded:
    events.happened("compile", module)
    divided = len(ids) > 1
    where = device_list(ids)
    options = door.compile_options([devices()[i].id for i in ids], divided)
    try:
        made = door.load(client(), module.code, where, options, module.callbacks)
    except door.RuntimeFailure as e:
        raise WeftError(
            f"the compiler refused the program: {str(e).splitlines()[0]}",
            fix="jit(f).lower(...).as_text(debug_info=True) shows what it was given",
        ) from e
    tiles = [door.tiles(s) for s in door.output_shardings(made)] if divided else None
    return Loaded(made, tiles)


def forget_executables() -> None:
    """Drop the cache of executables."""
    with door.lock:
        _loaded.clear()


def executable(
    program: Program, donated: Sequence[int] = (), keys: Sequence[Any] = ()
) -> Executable:
    """The program compiled for operands with these dispatch keys."""
    events.happened("lower", program)
    keys = list(keys) or list(program.in_avals)
    failures: list[BaseException] = []
    module = module_of(program, donated, keys, (platform(),))
    module.callbacks = [_caught(f, failures) for f in module.callbacks]
    return bound(program, module, load(module), keys, failures, donated)


def bound(
    program: Program,
    module: Module,
    loaded: Loaded,
    keys: Sequence[Any],
    failures: list,
    donated: Sequence[int] = (),
) -> Executable:
    """A compiled module as something to call with buffers."""
    run = loaded.executable.execute_sharded
    acts = bool(module.callbacks or program.effects)
    if acts:
        run = _watched(run, failures)
    place, outs = module.place, list(program.out_avals)
    if place is not None and len(place.devices) > 1 and platform() == "cpu":
        run = _in_turn(run, acts)
    front = [x.buffer() for x in module.constants]
    stay: list = []
    if place is not None:
        everywhere = place.everywhere()
        front = [
            _brought(x.buffer(), Placed(x.aval, everywhere)) if x.key.placement is None else b
            for x, b in zip(module.constants, front)
        ]
        tiles = loaded.tiles if loaded.tiles is not None else [None] * len(outs)
        outs = [
            Placed(a, _where(module, told, t, a))
            for a, told, t in zip(outs, module.results, tiles, strict=True)
        ]
        stay = [
            (i, Placed(k.aval, everywhere), i in donated)
            for i, k in enumerate(keys)
            if k.placement is None
        ]
    if front:
        run = _fronted(run, front)
    if stay:
        run = _moving(run, stay)
    run = guarded(run, program)
    return Executable(run, [handler(k) for k in outs], outs)


_turn = RLock()
_running: list = []
"""The token of the last run on several virtual devices."""


def _in_turn(run: Callable, done: bool) -> Callable:
    """`run`, on several virtual devices of one host, after the last such run.

    They share few threads.  Devices of two runs that wait for each other within each would take
    all of them, and then wait for ever.  `done` says that `run` returns when it is through.
    """

    def taken(bufs):
        with _turn:
            while _running:
                try:
                    _running.pop().block_until_ready()
                except door.RuntimeFailure:  # its results tell whoever reads them
                    pass
            if done:
                return run(bufs)
            results = run(bufs, with_tokens=True)
            _running.append(results.consume_token())
            return results

    return taken


def _fronted(run: Callable, front: list) -> Callable:
    return lambda bufs: run(front + bufs)


def _where(module: Module, told: Any, tiles: Any, aval: Aval) -> Any:
    """The placement of a result: as the program told, or as the compiler chose."""
    if told is not None:
        return told
    for place in module.places:
        placement = place.placement(tiles, aval.physical.ndim)
        if placement is not None:
            return placement
    raise WeftError(
        f"the compiler divided the result {aval!r} as {tiles}, for which {module.place} has no "
        "words",
        fix="say how it shall lie, with weft.with_sharding_constraint or jit's out_shardings",
    )


_copies: dict[int, tuple[Any, dict]] = {}
"""Copies of arrays of the default place, for as long as these live."""


def _brought(buf: Any, key: Placed) -> Any:
    """A copy of an array of the default place, made when it is first needed there."""
    n = id(buf)
    held = _copies.get(n)
    if held is None or held[0]() is not buf:
        held = _copies[n] = weakref.ref(buf, lambda _, store=_copies: store.pop(n, None)), {}
    copy = held[1].get(key.placement)
    if copy is None or copy.is_deleted():
        copy = held[1][key.placement] = _carried(buf, key)
    return copy


def _carried(buf: Any, key: Placed) -> Any:
    events.happened("transfer", key)
    return move(buf, key)


def _moving(run: Callable, stay: Sequence[tuple[int, Placed, bool]]) -> Callable:
    """`run` for arrays of the default place, a copy of which every device gets; that of a donated
    one is used up."""

    def moved(bufs):
        bufs = list(bufs)
        for i, key, donated in stay:
            bufs[i] = _carried(bufs[i], key) if donated else _brought(bufs[i], key)
        return run(bufs)

    return moved


def _caught(f: Callable, failures: list) -> Callable:
    """`f`, whose exception is remembered: the runtime keeps its text only."""

    def called(*xs):
        try:
            return f(*xs)
        except BaseException as e:
            failures.append(e)
            raise

    return called


def _watched(run: Callable, failures: list) -> Callable:
    """`run` for programs that call Python: what they do has been done on return."""

    def watched(bufs):
        try:
            results = run(bufs, with_tokens=True)
            results.consume_token().block_until_ready()
            return results
        except door.RuntimeFailure as e:
            if failures:
                error = failures[0]
                failures.clear()
                raise error from None
            raise failure(e) from None

    return watched


# ---- the ground interpreter ----------------------------------------------------------------


def apply(self: Evaluate, prim: Any, args: Any, params: dict[str, Any]) -> Any:
    """`Evaluate.apply`: do it now."""
    if not params and len(args) == 1:  # the commonest case, without a key to build
        x = args[0]
        try:
            run, handlers, key = prim.compiled[x.key]
            buf = x._buf
        except (AttributeError, KeyError):
            pass
        else:
            r = Array()
            r._buf = run([buf]).consume_with_handlers(handlers)[0]
            r.aval = key.aval
            r.key = key
            return r
    key: Any = []
    bufs: list = []
    for a in args:
        if a.__class__ is Array:
            try:
                bufs.append(a._buf)
            except AttributeError:
                a.buffer()
            key.append(a.key)
        elif a.__class__ is Literal:
            bufs.append(scalar_buffer(a))
            key.append(a.aval)
            key.append(None)
        else:
            return _elsewhere(self, prim, args, params)
    if prim.higher is not None or prim.effect is not None:
        return _higher(prim, args, params, key, bufs)
    if params:
        key.append(prim.frozen(params))
    key = tuple(key)
    try:
        run, handlers, keys = prim.compiled[key]
    except KeyError:
        in_python = eager_rules.find(prim)
        if in_python is not None:
            out = in_python(args, params)
            if out is not None:
                return out
        if len(prim.compiled) >= _MOST:  # shapes that change all the time: start again
            prim.compiled.clear()
        made = prim.compiled[key] = _build(prim, args, params)
        run, handlers, keys = made
        if not params and len(key) == 1 and not prim.many:
            prim.compiled[key[0]] = run, handlers, keys[0]
    try:
        outs = run(bufs).consume_with_handlers(handlers)
    except door.RuntimeFailure as e:
        raise failure(e) from None
    if prim.many:
        return [wrap(b, k) for b, k in zip(outs, keys)]
    return wrap(outs[0], keys[0])


Evaluate.apply = apply  # type: ignore[method-assign]


def _higher(prim: Any, args: Any, params: dict, key: list, bufs: list) -> list:
    """Operations with programs or effects: in Python if there is a rule for that, else compiled;
    the executable lives as long as the first program."""
    in_python = eager_rules.find(prim)
    if in_python is not None:
        out = in_python(args, params)
        if out is not None:
            return out
    if prim.higher is not None and prim.higher.pending(params):
        args, params = prim.higher.settle(params, args)
        return apply(GROUND, prim, [solid(a) for a in args], params)
    programs = programs_in(params)
    plain = {k: v for k, v in params.items() if not programs_in({k: v})}
    full = (prim, tuple(key), prim.frozen(plain))
    make = lambda: _build(prim, args, params)  # noqa: E731
    if programs:
        run, handlers, keys = derived(programs[0], full, make, programs[1:])
    else:
        run, handlers, keys = make()
    try:
        outs = run(bufs).consume_with_handlers(handlers)
    except door.RuntimeFailure as e:
        raise failure(e) from None
    return [wrap(b, k) for b, k in zip(outs, keys)]


def _build(prim: Any, args: Any, params: dict) -> Executable:
    """One operation as a program, compiled.  Literals are its scalar operands."""
    if prim.ambient is not None:
        for name in prim.ambient(params):
            raise unbound(name)
    say = None if lower_rules.find(prim) is not None else expand_rules.find(prim)
    if say is None and lower_rules.find(prim) is None:
        raise lower_rules.missing(prim)
    if prim.opaque:
        say = None  # lowering says it, and the check of keys sees what is done to them
    types = [_scalar(a.aval) if a.__class__ is Literal else a.aval for a in args]
    keys = [t if a.__class__ is Literal else a.key for t, a in zip(types, args)]

    def body(*xs):
        xs = [
            broadcast_in_dim.bind(x, shape=a.aval.shape, dims=())
            if a.__class__ is Literal and a.aval.ndim
            else x
            for x, a in zip(xs, args)
        ]
        return as_list((say or prim.bind)(*xs, **params))

    name = prim.name.rpartition(".")[2]
    with use(GROUND):
        want = prim.infer(tuple([a.aval for a in args]), params) if say is not None else None
        program = staged(body, types, name)
        if say is not None:
            promised(expand_rules, prim, want, program.outputs)
        return executable(program, (), keys)


def _scalar(aval: Aval) -> Aval:
    return Aval((), aval.dtype, aval.weak_type)


def _elsewhere(self: Evaluate, prim: Any, args: Any, params: dict) -> Any:
    """Not all are arrays: another thread's open tracer, an escaped one, or plain numbers."""
    if any(isinstance(a, Tracer) for a in args):
        there = stray(prim, args, self)
        return there.apply(prim, args, params)
    return apply(
        self, prim, [a if isinstance(a, Array) else solid(as_value(a)) for a in args], params
    )
