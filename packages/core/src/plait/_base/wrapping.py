"""Functions that stand for others: they have their names, documentation and attributes.

Invariant: what Plait itself keeps on a function (attributes that begin with `__plait_`, and those
that a wrapper of Plait offers) stays with that function: its wrappers do not have it.
"""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

W = TypeVar("W", bound=Callable[..., Any])

OFFERED = "__plait_offered__"
"""The attribute of a wrapper that names the attributes which it has of its own."""


def wraps(f: Callable[..., Any]) -> Callable[[W], W]:
    """Return a decorator like `functools.wraps(f)`, which leaves what is Plait's on `f`.

    Of callables that are no functions only name, documentation and signature are taken: what their
    instances hold is their own affair.
    """

    def dress(wrapper: W) -> W:
        functools.update_wrapper(wrapper, f, updated=())
        if f.__class__ is FunctionType and f.__dict__:
            own = f.__dict__.get(OFFERED, ())
            for name, value in f.__dict__.items():
                if not name.startswith("__plait_") and name not in own and name != "__wrapped__":
                    wrapper.__dict__[name] = value
        return wrapper

    return dress
