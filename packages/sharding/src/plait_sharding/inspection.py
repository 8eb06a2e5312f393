"""Inspection: pass the sharding of a value to a Python callback, also in traced functions.

Invariant: inspection changes no values.  A callback runs once for each compilation of the program,
and at once where nothing is traced.
"""

from collections.abc import Callable
from typing import Any

from plait.ext.devices import first
from plait.ext.errors import ArgumentError, PlaitError
from plait.ext.ir import Effect, Primitive
from plait.ext.lower import Emitter, IrValue, ask
from plait.ext.rules import eager_rules, lower_rules, physical_rules
from plait.ext.trace import arguments
from plait.ext.types import Aval
from plait.ext.values import solid

from .movement import sharding_of
from .placement import Sharding, SingleDeviceSharding

__all__ = ["inspect_array_sharding", "inspect_p"]

_LOOKED_AT = Effect("inspection", repeatable=True)


def _inspect(x: Aval, *, callback: Callable[[Sharding], Any]) -> list[Aval]:
    """Call `callback` with the sharding of `x`."""
    return []


inspect_p = Primitive("sharding.inspect", _inspect, many=True, effect=lambda p: _LOOKED_AT)


@lower_rules.rule(inspect_p)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Any],
    callback: Callable[[Sharding], Any],
) -> list:
    if e.bound:
        raise PlaitError(
            "inspect_array_sharding is called inside shard_map, where each device has a piece of "
            "its own",
            fix="ask of the operands or results of shard_map",
        )
    ask(e, xs[0], ins[0], lambda s: callback(SingleDeviceSharding(first()) if s is None else s))
    return []


@physical_rules.rule(inspect_p)
def _(tail: tuple, xs: Any, callback: Callable[[Sharding], Any]) -> list:
    return inspect_p.bind(*xs, callback=callback)


@eager_rules.rule(inspect_p)
def _(args: Any, params: dict[str, Any]) -> list:
    params["callback"](sharding_of(solid(args[0])))
    return []


def inspect_array_sharding(value: object, *, callback: Callable[[Sharding], None]) -> None:
    """Call `callback(sharding)` with the sharding of an array.

    In a traced function the call happens when the compiler has chosen the sharding, once for each
    compilation; an exception in the callback ends the compilation.

    Args:
      value: a tree of arrays; `callback` is called for each of them.
      callback: takes a sharding.

    Raises OperandTypeError if a leaf is not an array; ArgumentError if `callback` is not callable;
    PlaitError inside `shard_map`, where each device has its own piece.

    >>> import plait
    >>> @plait.jit
    ... def f(x):
    ...     y = x * 2
    ...     plait.debug.inspect_array_sharding(y, callback=print)
    ...     return y
    >>> _ = f(1.0)
    SingleDeviceSharding(device=0)
    """
    if not callable(callback):
        raise ArgumentError(
            f"inspect_array_sharding needs a function to call, not {callback!r}",
            fix="write inspect_array_sharding(x, callback=print)",
        )
    for v in arguments((value,), {}, "inspect_array_sharding")[0]:
        inspect_p.bind(v, callback=callback)
