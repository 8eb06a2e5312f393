"""Keys: made of seeds, split, folded, and spent.

Invariant: a key is no number: an element of its own dtype, `key<fry>` by default.  Arrays of keys
are arrays like others; only the functions here make words of keys and keys of words.
"""

from typing import Any

import numpy as np

from .._api.default_devices import placed_by_default
from .._base.config import config
from .._base.errors import OperandTypeError, ShapeError
from .._core.array import Literal, as_value, asarray, standing_for, wrap
from .._core.interpreter import Value
from .._ops.key_reuse import reuse_rules as _reuse_rules  # noqa: F401  (it defines them)
from .._ops.keys import (
    FRY,
    GENERATORS,
    generator_named,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
)
from .._ops.opaque import unwrap_, wrap_
from .._ops.rng import UINT32
from .._ops.shape import convert, normal_shape
from .._types.avals import INTEGER, OPAQUE, Aval, Opaque
from .._xla.key_reuse import seeded
from .._xla.operands import scalar_buffer

# ---- keys of words ---------------------------------------------------------------------------


def is_key(x: Any) -> bool:
    """Whether it is an array of keys."""
    return isinstance(x, Value) and x.aval.category == OPAQUE and x.aval.dtype in GENERATORS


def keys_of(k: Any) -> Any:
    """An array of keys, of which the default ones may be given as words."""
    if is_key(k):
        return k
    if isinstance(k, Value | np.ndarray) and k.dtype == UINT32 and k.ndim and k.shape[-1] == 2:
        return wrap_.bind(as_value(k), dtype=FRY)
    raise OperandTypeError(
        f"{type(k).__name__} {k!r} is no key", fix="make one: key = plait.random.key(0)"
    )


def one_key(k: Any, what: str) -> Any:
    """A single key."""
    key = keys_of(k)
    if key.aval.ndim:
        raise ShapeError(
            f"{what} takes one key, not an array of keys of shape {key.aval.shape}",
            fix=f"map plait.random.{what} over them",
        )
    return key


def like(k: Any, keys: Any) -> Any:
    """Keys as the user gave one: as keys, or as words."""
    return keys if is_key(k) else unwrap_.bind(keys)


# ---- as users say it -------------------------------------------------------------------------


def key_dtype(impl_spec: Any = None) -> Opaque:
    """The dtype of the keys of a generator, given by its name, or by that of `key`'s default.

    Raises TypeRule if there is no such generator.

    >>> import plait
    >>> plait.random.key_dtype("rbg")
    key<rbg>
    """
    return generator_named(config.default_prng_impl if impl_spec is None else impl_spec)


def _wanted(impl: Any, dtype: Any) -> Opaque:
    """The dtype of keys by one of two ways to say it."""
    if impl is not None and dtype is not None:
        raise OperandTypeError(
            f"impl={impl!r} and dtype={dtype!r} say the same thing", fix="give one"
        )
    return key_dtype(impl if dtype is None else dtype)


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """A key of an integer.

    Args:
      seed: an integer, or an integer array without axes.  64-bit seeds count in full.
      impl: the generator: "threefry2x32" (the default), whose bits are the same everywhere;
        "rbg", that of the device, which is fast and may give other bits on other devices; or
        "unsafe_rbg", the same, which also splits and folds with it: fast, and nothing says how
        good the keys are.
      dtype: the same, by the dtype of the keys (`key_dtype`).

    Raises TypeRule if the seed is no integer, and if there is no such generator.

    >>> import plait
    >>> plait.random.key(7)
    Array((), dtype=key<fry>) over [0 7]
    """
    dtype = _wanted(impl, dtype)
    s: Any = seed
    if seed.__class__ is not int:
        s = as_value(seed)
        if s.aval.ndim or s.aval.category != INTEGER:
            raise ShapeError(
                f"a seed is an integer without axes, not {s.aval!r}",
                fix="map over the seeds to make many keys",
            )
        if s.__class__ is not Literal:
            return random_seed.bind(s, dtype=dtype)
        s = int(s.value)
    high = 0 if -(2**31) <= s < 2**32 else s >> 32
    words = np.array([high & 0xFFFFFFFF, s & 0xFFFFFFFF], np.uint32)
    made = placed_by_default(standing_for(asarray(np.resize(words, dtype.shape)), Aval((), dtype)))
    seeded(made)
    return made


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:  # noqa: N802
    """The words of `key(seed)`, a uint32[2]; every function here takes those for the key.

    >>> import plait
    >>> plait.random.PRNGKey(7).tolist()
    [0, 7]
    """
    return unwrap_.bind(key(seed, impl=impl))


def split(key: Any, num: Any = 2) -> Any:
    """New keys, as good as independent of the old one and of each other.

    Args:
      key: a key.
      num: how many, or the shape of an array of them.

    >>> import plait
    >>> key, other = plait.random.split(plait.random.key(0))
    """
    return like(key, random_split.bind(one_key(key, "split"), shape=normal_shape(num)))


def fold_in(key: Any, data: Any) -> Any:
    """A new key of a key and an integer: the number of a step, a layer, a device.

    Raises TypeRule for what is no key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.key_data(plait.random.fold_in(key, 1)).shape
    (2,)
    """
    x = number(data & 0xFFFFFFFF, UINT32) if data.__class__ is int else as_value(data)
    if x.aval.ndim or x.aval.category != INTEGER:
        raise ShapeError(
            f"fold_in takes an integer without axes, not {x.aval!r}", fix="map over many of them"
        )
    return like(key, random_fold_in.bind(one_key(key, "fold_in"), convert(x, UINT32)))


def key_data(keys: Any) -> Any:
    """The words of keys, uint32 with a last axis.

    Raises TypeRule for what is no key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.key_data(key).tolist()
    [0, 0]
    """
    return unwrap_.bind(keys_of(keys))


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Keys of words: the inverse of `key_data`.

    Args:
      key_bits_array: uint32, with a last axis of as many words as a key has.
      impl, dtype: the generator, as in `key`.

    Raises TypeRule for other words.

    >>> import numpy as np, plait
    >>> plait.random.wrap_key_data(np.zeros((3, 2), np.uint32)).shape
    (3,)
    """
    x, wanted = as_value(key_bits_array), _wanted(impl, dtype)
    if x.aval.dtype != UINT32 or not x.aval.ndim or x.aval.shape[-1:] != wanted.shape:
        raise OperandTypeError(
            f"{x.aval!r} are no words of keys",
            fix=f"give uint32 with a last axis of size {wanted.shape[0]}",
        )
    return wrap_.bind(x, dtype=wanted)


def key_impl(keys: Any) -> str:
    """The name of the generator of keys.

    Raises TypeRule for what is no key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.key_impl(key)
    'threefry2x32'
    """
    return GENERATORS[keys_of(keys).aval.dtype].name


def clone(key: Any) -> Any:
    """The same key, to be used on purpose where it was used before.

    It says so to the check that the setting `debug_key_reuse` turns on, and does nothing else.

    Raises TypeRule for what is no key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> bool(plait.random.clone(key) == key)
    True
    """
    return like(key, random_clone.bind(keys_of(key)))


# ---- Python numbers --------------------------------------------------------------------------

RANGES = {
    np.dtype(kind): (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
}


def number(v: Any, dtype: np.dtype) -> Any:
    """A Python number as an array without axes, whose memory is kept; integers are clipped."""
    if dtype in RANGES:
        least, most = RANGES[dtype]
        v = min(max(v, least), most)
    aval = Aval((), dtype)
    return wrap(scalar_buffer(Literal(v, aval)), aval)
