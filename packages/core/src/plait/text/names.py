"""Names in the text of programs: of dtypes, of effects, and of records among parameters.

Invariant: a name stands for one thing, in writing and in reading.
"""

import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from .._base.jaxlib_api import EXTRA_DTYPES
from .._core.ir import Effect, Program
from .._core.primitive import Primitive
from .._types.avals import float0, short_name

_NUMPY = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128"
)
DTYPES: dict[str, np.dtype] = {
    short_name(d): d for d in (*map(np.dtype, _NUMPY.split()), *EXTRA_DTYPES.values(), float0)
}


def dtype_name(dtype: np.dtype) -> str:
    if dtype.kind in "biufc" or dtype == float0 or dtype.name in EXTRA_DTYPES:
        return short_name(dtype)
    return ""


@cache
def records(prim: Primitive) -> dict[str, type]:
    """Return the NamedTuples that parameters of this primitive may be, by name.

    They are those in the annotations of its type rule, and in the annotations of their own fields.
    """
    found: dict[str, type] = {}
    ahead: list[Any] = [getattr(prim.rule, "func", prim.rule)]
    while ahead:
        hints = _hints(ahead.pop())
        for kind in _classes(hints):
            if kind.__name__ not in found and hasattr(kind, "_fields"):
                found[kind.__name__] = kind
                ahead.append(kind)
    return found


def _hints(of: Callable[..., Any] | type) -> list[Any]:
    try:
        return list(typing.get_type_hints(of).values())
    except Exception:  # such an annotation is looked up by its text alone
        scope = getattr(of, "__globals__", None) or vars(sys.modules[of.__module__])
        texts = [a for a in getattr(of, "__annotations__", {}).values() if isinstance(a, str)]
        return [scope[a] for a in texts if a in scope]


def _classes(hints: Iterable[Any]) -> Iterator[type]:
    for h in hints:
        if isinstance(h, type) and issubclass(h, tuple):
            yield h
        yield from _classes(typing.get_args(h))


def effects_said(p: Program) -> list[str]:
    """Return the words for the effects of a program, in order."""
    return sorted([effect_said(e) for e in p.effects])


def effect_said(e: Effect) -> str:
    return f"{'ordered ' if e.ordered else ''}{e.name}"
