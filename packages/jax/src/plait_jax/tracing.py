"""Queries of libraries about tracing: owners of tracers, current tracing, types of rows.

Invariant: the answers are Plait's interpreters and types; no level is reported that does not exist.
"""

from types import SimpleNamespace
from typing import Any

from plait.errors import NotAnArrayError
from plait.ext import Aval, Tracer, as_value, current
from plait.ext.trace import GROUND, Interpreter

__all__ = [
    "JVPTracer", "axis_names", "find_top_trace", "get_opaque_trace_state", "is_concrete",
    "mapped_aval", "trace_state_clean", "LEVEL", "unmapped_aval", "valid_jaxtype",
]  # fmt: skip


def axis_names() -> list[Any]:
    """Return the names of axes that are bound here, by `vmap`, `pmap` or `shard_map`."""
    names: dict[Any, None] = {}
    by: Interpreter | None = current()
    while by is not None:
        names.update(dict.fromkeys(by.sizes or ()))
        by = by.parent
    return list(names)


LEVEL = property(lambda x: SimpleNamespace(main=x.by))
"""The attribute `_trace` of tracers, whose `main` is their interpreter.

Libraries use it to find out whether a tracer belongs to a derivative that they began.
"""


class _Duals(type):
    """The metaclass by which tracers of forward mode are instances of JVPTracer."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tracer) and instance.by.does == "jvp"


class JVPTracer(metaclass=_Duals):
    """The class of values of forward mode, for `isinstance` only."""


def find_top_trace(values: Any) -> SimpleNamespace:
    """Return the interpreter of the innermost tracer among values, as `.main`."""
    tracers = [v for v in values if isinstance(v, Tracer)]
    by = max((t.by for t in tracers), key=lambda i: i.depth, default=GROUND)
    return SimpleNamespace(main=by)


def get_opaque_trace_state(convention: object = None) -> Interpreter:
    """Return an object that compares equal as long as no tracing begins or ends."""
    return current()


def trace_state_clean() -> bool:
    """Return whether nothing is being traced."""
    return current() is GROUND


def is_concrete(x: object) -> bool:
    """Return whether a value is known."""
    return not isinstance(x, Tracer)


def valid_jaxtype(x: object) -> bool:
    """Return whether an object is an array or can be converted to one."""
    try:
        as_value(x)
    except NotAnArrayError:
        return False
    return True


def mapped_aval(size: int, axis: int | None, aval: Aval) -> Aval:
    """Return the type of a row along an axis."""
    if axis is None:
        return aval
    return aval.with_shape((*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(
    size: int, axis: int | None, aval: Aval, *rest: object, **options: object
) -> Aval:
    """Return the type of a stack of rows along an axis."""
    if axis is None:
        return aval
    return aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))
