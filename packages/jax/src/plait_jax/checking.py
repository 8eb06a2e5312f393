"""`jax.experimental.checkify`: checks that act under `checkify` alone.

Invariant: a check that no `checkify` looks for has no effect.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from plait import checks
from plait.ext import current
from plait.ext.control import InspectableStage
from plait.ext.trace import Interpreter, Recording, Stage

__all__ = ["checkify", "debug_check"]


@functools.wraps(checks.checkify)
def checkify(
    f: Callable[..., Any], errors: Iterable[type[checks.CheckError]] = checks.user_checks
) -> Any:
    # A check of a kind that is not in `errors` stays for another `checkify` in Plait.
    return checks.checkify(f, errors, others="drop")


@functools.wraps(checks.debug_check)
def debug_check(pred: object, msg: str, *fmt_args: object, **fmt_kwargs: object) -> None:
    # Where nothing is staged no `checkify` can follow; Plait raises there if values are known.
    if _is_staged():
        checks.debug_check(pred, msg, *fmt_args, **fmt_kwargs)


def _is_staged() -> bool:
    """Return whether a function is being staged here without its values."""
    by: Interpreter | None = current()
    while by is not None:
        if isinstance(by, Stage) and not isinstance(by, InspectableStage | Recording):
            return True
        by = by.parent
    return False
