"""Samples that shall lie on devices in a certain way.

Invariant: the numbers are those that are drawn without it.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .._ops.layout import placed


def shardable(f: Callable) -> Callable[..., Any]:
    """Decorator: a function that draws samples, with an argument `out_sharding`."""
    signature = inspect.signature(f)

    @functools.wraps(f)
    def drawn(*args: Any, out_sharding: Any = None, **options: Any) -> Any:
        out = f(*args, **options)
        return out if out_sharding is None else placed(out, out_sharding)

    extra = inspect.Parameter("out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = [*signature.parameters.values(), extra]
    drawn.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    drawn.__doc__ = (
        f"{inspect.cleandoc(f.__doc__ or '')}\n\n"
        "`out_sharding` says how the result shall lie on devices; it changes no number."
    )
    return drawn
