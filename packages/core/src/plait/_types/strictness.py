"""The operands of the user's own call, which strict settings of promotion concern.

Functions of Plait promote and broadcast intermediate values, too, and the settings of their callers
do not concern these.  A mark on each function that is called would cost time in every call.  So the
stack is read instead, and only where a promotion is about to be refused: the operands are the
user's if arguments of the function that user code called have such types.

Invariant: the stack is read only for promotions that would be refused; no frame is kept.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._base.source import call_by_user

__all__ = ["users_operands"]

_DEEP = 4
"""The depth to which lists, tuples and dicts are searched for arguments."""


def users_operands() -> list[Any] | None:
    """Return the arguments of the function that user code called: arrays, numbers and dtypes.

    Return None if operations that run now belong to a transformation instead.
    """
    frame = call_by_user()
    if frame is None:
        return None
    code, values = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return list(_leaves([values.get(name) for name in code.co_varnames[:count]], _DEEP))


def _leaves(x: object, deep: int) -> Iterator[Any]:
    if isinstance(x, list | tuple | dict):
        for v in x.values() if isinstance(x, dict) else x:
            if deep:
                yield from _leaves(v, deep - 1)
    elif hasattr(x, "aval") or isinstance(x, _NUMBERS):
        yield x


_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex, np.dtype, type, str)
