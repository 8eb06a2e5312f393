"""Operands of executables: buffers of scalars, and Arrays made from the arguments of calls.

Buffers of common scalars are cached, and so is the layout of each type of numpy array.

Invariant: a value cached for one argument is never used for another: the cache keys come from
`freeze`.
"""

from typing import Any

import numpy as np

from .._base import jaxlib_api
from .._base.config import config
from .._base.freezing import bits_of, freeze, number_key
from .._core.array import Array, Literal, as_value, solid, wrap
from .._core.buffers import default_place, put
from .._core.handles import Handle
from .._types.avals import OPAQUE, WEAK, Aval, category

# ---- scalars -------------------------------------------------------------------------------

_scalars: dict[tuple, Any] = {}


def scalar_buffer(x: Literal) -> Any:
    """Return a 0-d buffer with the value of a literal; buffers of common values are cached."""
    return number_buffer(x.value, x.aval.dtype)


def number_buffer(v: complex, dtype: np.dtype) -> Any:
    """Return a 0-d buffer with the value of a Python number; common values are cached."""
    kind = v.__class__  # inlined from `number_key` to save a call
    if kind is float:
        key: Any = kind, bits_of(v), dtype
    else:
        key = (kind, v, dtype) if kind is int or kind is bool else (freeze(v), dtype)
    try:
        return _scalars[key]
    except KeyError:
        pass
    if len(_scalars) > 4096:
        _scalars.clear()
    buf = _scalars[key] = _scalar(v, dtype)
    return buf


def operand_buffer(x: float) -> Any:
    """Return the buffer of an int or a float, of its weak dtype; OverflowError if it is too
    large."""
    kind = x.__class__
    dtype = WEAK[kind].dtype
    if kind is float:
        key: Any = kind, bits_of(x), dtype
    else:
        if kind is int and dtype.itemsize < 8 and not -(2**31) <= x < 2**31:
            raise OverflowError
        key = kind, x, dtype
    found = _scalars.get(key)  # as in `number_buffer`, to save a call
    return number_buffer(x, dtype) if found is None else found


def _scalar(v, dtype: Any):
    if category(dtype) == OPAQUE:
        return put(np.full(dtype.shape, v, dtype.words), Aval((), dtype))
    aval = Aval((), dtype).physical
    with np.errstate(all="ignore"):
        return put(np.asarray(v).astype(aval.dtype), aval)


# ---- arguments of compiled functions ---------------------------------------------------------

_arguments: dict[tuple, Array] = {}
_hosted: dict[tuple, tuple] = {}
"""Shape, dtype and setting of numpy arrays -> how to copy them to the default place."""


def as_argument(x: Any) -> Array:
    """Return an argument of a compiled function as an Array, of a weak type for Python scalars."""
    kind = x.__class__
    if kind is Array:
        return x
    if kind is np.ndarray:
        try:
            aval, layout, device = _hosted[x.shape, x.dtype, config.x64]
        except KeyError:
            return _first_of_its_type(x)
        made = Array()  # inlined from `wrap`, since it comes before each program
        made._buf = jaxlib_api.put_pieces(aval, layout, [x], device)
        made.aval = made.key = aval
        return made
    if kind in WEAK:
        aval = WEAK[kind]
        key = number_key(x), aval
        hit = _arguments.get(key)
        if hit is not None:
            return hit
        if len(_arguments) > 4096:
            _arguments.clear()
        v = as_value(x)
        made = _arguments[key] = wrap(put(np.asarray(x, aval.dtype), aval), v.aval)
        return made
    if isinstance(x, Handle):
        raise x.refused("an array that is placed or given to a program")
    return solid(as_value(x))


def as_donated(x: Any) -> Array:
    """Do as `as_argument` for a donated argument, which must not share its memory.

    The cached arrays of common numbers serve all callers, so donating one would break later calls.
    """
    return solid(as_value(x)) if x.__class__ in WEAK else as_argument(x)


def _forget_hosted() -> None:
    """Let the next arrays of numpy pass by the guards of transfers."""
    _hosted.clear()


config.watch(_forget_hosted)


def _first_of_its_type(x: np.ndarray) -> Array:
    made = as_value(x)
    if made.__class__ is Literal:
        return solid(made)
    if made.aval.dtype == x.dtype and not config.guarded:
        _hosted[x.shape, x.dtype, config.x64] = (made.aval, *default_place())
    return made
