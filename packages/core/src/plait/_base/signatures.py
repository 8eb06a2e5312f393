"""Refusals of calls that do not fit a function's signature, with the signature as the fix.

Invariant: a text is computed only for an error; the error raised is a TypeError as Python's own is.
"""

import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any

from .errors import PlaitError, TypeRule

__all__ = ["error_of_call"]

_OTHER_NAMES = {
    "dim": ("axis",), "dims": ("axes", "axis"), "keepdim": ("keepdims",), "input": ("a", "x"),
    "other": ("b", "x2", "y"), "low": ("minval",), "high": ("maxval",), "size": ("shape",),
    "num_samples": ("shape",), "loc": ("mean",), "seed": ("key",), "rng": ("key",),
}  # fmt: skip
"""Names of parameters in other libraries -> their names here."""


def error_of_call(
    f: Callable[..., Any], error: BaseException, kind: type[PlaitError] | None = None
) -> PlaitError:
    """Return the error for a call of `f` that `error`, of Python or numpy, refused.

    Its fix is the signature of `f`, after the parameter that an unknown keyword resembles.

    >>> print(error_of_call(lambda axis=0: 0, TypeError("unexpected keyword argument 'dim'")).fix)
    write axis= for dim=; it is called as <lambda>(axis=0)
    """
    shown = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in inspect.signature(f).parameters.values()
        if p.name != "self"
    ]
    # Python adds a suggestion of its own from 3.14 on.
    name, text = f.__name__, re.sub(r"\. Did you mean '\w+'\?$", "", str(error))
    said = text if name in text.partition("(")[0] else f"{name}: {text}"
    how = f"{name}{inspect.Signature(shown)}"
    return (kind or TypeRule)(
        said, fix=f"{_meant(text, [p.name for p in shown])}it is called as {how}"
    )


def _meant(text: str, names: list[str]) -> str:
    """Return the advice for an unknown keyword: the parameter that is like it."""
    found = re.search(r"unexpected keyword argument '(\w+)'", text)
    if found is None:
        return ""
    others = [other for other in _OTHER_NAMES.get(found[1], ()) if other in names]
    close = others or difflib.get_close_matches(found[1], names, 1)
    return f"write {close[0]}= for {found[1]}=; " if close else ""
