"""Eager execution of primitives: the ground interpreter.

A primitive applied to arrays is compiled once per operand types, as a program of one equation.  If
it has a rule in the table `eager`, the rule may execute it in Python instead.

Invariant: only the ground interpreter executes operations; its cache key is the operand types (with
their placement) and the parameters.
"""

from collections.abc import Sequence
from typing import Any

from .._base import jaxlib_api
from .._core.array import Array, Literal, as_value, failure, run_on, solid, wrap
from .._core.axis_names import unbound
from .._core.carrier import expand_rules, promised
from .._core.handles import apply_through, handle_among
from .._core.interpreter import GROUND, Tracer, as_list, stray, use
from .._core.ir import derived, programs_in
from .._core.primitive import Primitive
from .._core.staging import staged
from .._ops.shape import broadcast_in_dim
from .._types.avals import Aval
from .._xla.executables import Executable, executable
from .._xla.lower import eager_rules, lower_rules
from .._xla.operands import number_buffer, scalar_buffer
from .._xla.tiers import of_operation

_MOST = 4096
"""The most executables that are kept for one operation."""


def apply(prim: Any, args: Any, params: dict[str, Any]) -> Any:
    """Apply a primitive to arrays now; the ground interpreter calls this function."""
    if (
        not params and 0 < len(args) < 3 and not prim.many
    ):  # the commonest cases, whose keys need no loop
        x = args[0]
        try:
            if len(args) == 1:
                run, handlers, key = prim.compiled[x.key]
                bufs = [x._buf]
            else:
                x, y = args
                if y.__class__ is Array:
                    run, handlers, (key,) = prim.compiled[x.key, y.key]
                    bufs = [x._buf, y._buf]
                elif y.__class__ is Literal:
                    run, handlers, (key,) = prim.compiled[x.key, y.aval, None]
                    bufs = [x._buf, number_buffer(y.value, y.aval.dtype)]
                else:
                    raise KeyError
        except (AttributeError, KeyError, ValueError):
            pass
        else:
            r = Array()
            try:
                r._buf = run(bufs).consume_with_handlers(handlers)[0]
            except jaxlib_api.RuntimeFailure as e:
                raise failure(e, bufs) from None
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
            return _elsewhere(prim, args, params)
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
        if len(prim.compiled) >= _MOST:  # shapes that change at each call would fill memory
            prim.compiled.clear()
        made = prim.compiled[key] = _build(prim, args, params)
        run, handlers, keys = made
        if not params and len(key) == 1 and not prim.many:
            prim.compiled[key[0]] = run, handlers, keys[0]
    try:
        outs = run(bufs).consume_with_handlers(handlers)
    except jaxlib_api.RuntimeFailure as e:
        raise failure(e, bufs) from None
    if prim.many:
        return [wrap(b, k) for b, k in zip(outs, keys)]
    return wrap(outs[0], keys[0])


def _higher(prim: Primitive, args: Any, params: dict, key: list, bufs: list) -> Any:
    """Apply an operation with programs or effects, by its rule in Python, or compiled.

    The executable is kept on the first of its programs, and lives as long as that.  Kept on the
    primitive, it would live forever, and each new loop body would leave one behind.
    """
    in_python = eager_rules.find(prim)
    if in_python is not None:
        out = in_python(args, params)
        if out is not None:
            return out
    if prim.higher is not None and prim.higher.pending(params):
        args, params = prim.higher.settle(params, args)
        handle = handle_among(args)
        if handle is not None:
            return apply_through(GROUND, handle, prim, args, params)
        return apply(prim, [solid(a) for a in args], params)
    programs = programs_in(params)
    plain = {k: v for k, v in params.items() if not programs_in({k: v})}
    full = (prim, tuple(key), prim.frozen(plain))
    make = lambda: _build(prim, args, params)  # noqa: E731
    if programs:
        run, handlers, keys = derived(programs[0], full, make, programs[1:])
    else:
        run, handlers, keys = make()
    outs = [wrap(b, k) for b, k in zip(run_on(run, bufs, handlers), keys)]
    return outs if prim.many else outs[0]


def _build(prim: Primitive, args: Any, params: dict) -> Executable:
    """Compile one operation as a program.

    Its literals become scalar operands, so that `x + 1` and `x + 2` share one executable.
    """
    if prim.ambient is not None:
        for name in prim.ambient(params):
            raise unbound(name)
    say = None if lower_rules.find(prim) is not None else expand_rules.find(prim)
    if say is None and lower_rules.find(prim) is None:
        raise lower_rules.missing(prim)
    if prim.opaque:
        say = None  # lowering expands it, so that the check of key reuse sees the operation itself
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
        return executable(program, (), keys, of_operation(program))


def _scalar(aval: Aval) -> Aval:
    return Aval((), aval.dtype, aval.weak_type)


def _elsewhere(prim: Primitive, args: Sequence[Any], params: dict) -> Any:
    """Apply a primitive to operands that are not all arrays: another thread's open tracer, an
    escaped one, or plain numbers."""
    handle = handle_among(args)
    if handle is not None:
        raise handle.refused(prim)
    if any(isinstance(a, Tracer) for a in args):
        there = stray(prim, args, GROUND)
        return there.apply(prim, args, params)
    return apply(prim, [a if isinstance(a, Array) else solid(as_value(a)) for a in args], params)


GROUND.execute_with(apply)
