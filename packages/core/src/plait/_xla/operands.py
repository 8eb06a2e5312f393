"""What executables are given: buffers of scalars, and Arrays of what users pass.

The common scalars are kept, and of each type of numpy array how it is brought to the device.

Invariant: what is kept for one value is never given for another: they are found by keys of
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
    """A 0-d buffer with the value of a literal; the common ones are kept."""
    return number_buffer(x.value, x.aval.dtype)


def number_buffer(v: Any, dtype: Any) -> Any:
    """A 0-d buffer with the value of a Python number; the common ones are kept."""
    kind = v.__class__  # `number_key`, without a call
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


def _scalar(v, dtype: Any):
    if category(dtype) == OPAQUE:
        return put(np.full(dtype.shape, v, dtype.words), Aval((), dtype))
    aval = Aval((), dtype).physical
    with np.errstate(all="ignore"):
        return put(np.asarray(v).astype(aval.dtype), aval)


# ---- arguments of compiled functions ---------------------------------------------------------

_arguments: dict[tuple, Array] = {}
_hosted: dict[tuple, tuple] = {}
"""How numpy arrays of a type are brought to the default place."""


def as_argument(x: Any) -> Array:
    """What a compiled function is given: an Array, of a weak type for Python scalars."""
    kind = x.__class__
    if kind is Array:
        return x
    if kind is np.ndarray:
        try:
            aval, layout, device = _hosted[x.shape, x.dtype, config.x64]
        except KeyError:
            return _first_of_its_type(x)
        r = Array()
        r._buf = jaxlib_api.put_pieces(aval, layout, [x], device)
        r.aval = r.key = aval
        return r
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
    """As `as_argument`, for an argument whose memory the program may take: no other has it.

    The kept arrays of common numbers are everybody's, and would be gone for all later calls.
    """
    return solid(as_value(x)) if x.__class__ in WEAK else as_argument(x)


def _first_of_its_type(x: np.ndarray) -> Array:
    made = as_value(x)
    if made.__class__ is Literal:
        return solid(made)
    if made.aval.dtype == x.dtype:
        _hosted[x.shape, x.dtype, config.x64] = (made.aval, *default_place())
    return made
