"""Random keys: creation from seeds, splitting, folding, conversion.

Invariant: a key is not a number but an element of its own dtype, `key<fry>` by default.  Arrays of
keys are ordinary arrays; only the functions here convert between keys and words.
"""

from typing import Any

import numpy as np

from plait import config
from plait.errors import OperandTypeError, OutOfBounds, ShapeError
from plait.ext import Aval, Literal, Opaque, Value, as_value
from plait.ext.ops import random
from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.ops.shape import convert, normal_shape
from plait.ext.surface import placed_by_default
from plait.ext.types import COMPLEX, INTEGER, OPAQUE, UINT32, dtype_of, ml_dtypes
from plait.ext.values import Array as ConcreteArray
from plait.ext.values import asarray, scalar_buffer, seeded, standing_for, wrap
from plait.typing import Array, ArrayLike, DTypeLike

# ---- keys and words --------------------------------------------------------------------------


def is_key(x: object) -> bool:
    """Return whether `x` is an array of keys."""
    return isinstance(x, Value) and x.aval.category == OPAQUE and x.aval.dtype in random.GENERATORS


def keys_of(k: Any) -> Array:
    """Return an array of keys; keys of the default generator may be given as words."""
    if is_key(k):
        return k
    if isinstance(k, Value | np.ndarray) and k.dtype == UINT32 and k.ndim and k.shape[-1] == 2:
        return wrap_.bind(as_value(k), dtype=random.FRY)
    raise OperandTypeError(
        f"{type(k).__name__} {k!r} is not a key", fix="make one: key = plait.random.key(0)"
    )


def one_key(k: Any, what: str) -> Array:
    """Return a single key."""
    if k.__class__ is ConcreteArray and k.aval.dtype in random.GENERATORS and not k.aval.ndim:
        return k  # nearly always, so it is looked at here
    key: Any = keys_of(k)
    if key.aval.ndim:
        raise ShapeError(
            f"{what} takes one key, not an array of keys of shape {key.aval.shape}",
            fix=f"map plait.random.{what} over them",
        )
    return key


def like(k: Any, keys: Value) -> Any:
    """Return keys in the form that the user gave: keys, or words."""
    return keys if is_key(k) else unwrap_.bind(keys)


# ---- public functions ------------------------------------------------------------------------


def key_dtype(impl_spec: object = None) -> Opaque:
    """Return the dtype of the keys of a generator, given by name; by default that of `key`.

    Raises TypeRule for an unknown generator.

    >>> import plait
    >>> plait.random.key_dtype("rbg")
    key<rbg>
    """
    return random.generator_named(config.default_prng_impl if impl_spec is None else impl_spec)


def _wanted(impl: str | None, dtype: object) -> Opaque:
    """Return the dtype of keys given as `impl` or as `dtype`."""
    if impl is not None and dtype is not None:
        raise OperandTypeError(
            f"impl={impl!r} and dtype={dtype!r} say the same thing", fix="give one"
        )
    return key_dtype(impl if dtype is None else dtype)


def key(seed: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Make a key from an integer.

    Args:
      seed: an integer, or an integer array without axes.  64-bit seeds count in full.
      impl: the generator.  "threefry2x32" (the default) gives the same bits everywhere.  "rbg" is
        the device's generator, which is fast and may give other bits on other devices.
        "unsafe_rbg" also splits and folds by the device's generator: fast, with keys of unknown
        quality.
      dtype: the generator, given by the dtype of its keys (`key_dtype`).

    Raises TypeRule if the seed is not an integer, or the generator is unknown.

    >>> import plait
    >>> plait.random.key(7)
    Array((), dtype=key<fry>) over [0 7]
    """
    kind = _wanted(impl, dtype)
    s: Any = seed
    if seed.__class__ is not int:
        s = as_value(seed)
        if s.aval.ndim or s.aval.category != INTEGER:
            raise ShapeError(
                f"a seed is an integer without axes, not {s.aval!r}",
                fix="map over the seeds to make many keys"
                if s.aval.ndim
                else "write an integer, as in plait.random.key(0)",
            )
        if s.__class__ is not Literal:
            return random.random_seed.bind(s, dtype=kind)
        s = int(s.value)
    if seed.__class__ is int and not -(2**63) <= s < 2**63:
        raise OutOfBounds(
            f"a seed must fit in int64, got {s}", fix="fold in more numbers with fold_in"
        )
    high = 0 if -(2**31) <= s < 2**32 else s >> 32
    words = np.array([high & 0xFFFFFFFF, s & 0xFFFFFFFF], np.uint32)
    made = placed_by_default(standing_for(asarray(np.resize(words, kind.shape)), Aval((), kind)))
    seeded(made)
    return made


def PRNGKey(seed: ArrayLike, *, impl: object = None) -> Array:
    """Return the words of `key(seed)`, a uint32[2]; every function here accepts them as a key.

    >>> import plait
    >>> plait.random.PRNGKey(7).tolist()
    [0, 7]
    """
    return unwrap_.bind(key(seed, impl=impl))


def split(key: ArrayLike, num: Any = 2) -> Array:
    """Split a key into new ones, practically independent of it and of each other.

    Args:
      key: a key.
      num: number of new keys, or the shape of an array of them.

    Raises OperandTypeError if `key` is not a key.

    >>> import plait
    >>> key, other = plait.random.split(plait.random.key(0))
    """
    return like(key, random.random_split.bind(one_key(key, "split"), shape=normal_shape(num)))


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Make a key from a key and an integer, such as the number of a step, a layer, a device.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.key_data(plait.random.fold_in(key, 1)).shape
    (2,)
    """
    x = number(data & 0xFFFFFFFF, UINT32) if isinstance(data, int) else as_value(data)
    if x.aval.ndim or x.aval.category != INTEGER:
        raise ShapeError(
            f"fold_in takes an integer without axes, not {x.aval!r}", fix="map over many of them"
        )
    return like(key, random.random_fold_in.bind(one_key(key, "fold_in"), convert(x, UINT32)))


def key_data(keys: ArrayLike) -> Array:
    """Return the words of keys, uint32 with a last axis.

    Raises TypeRule unless `keys` are keys.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.key_data(key).tolist()
    [0, 0]
    """
    return unwrap_.bind(keys_of(keys))


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None
) -> Array:
    """Make keys from words: the inverse of `key_data`.

    Args:
      key_bits_array: uint32; the last axis has the words of a key.
      impl, dtype: the generator, as in `key`.

    Raises TypeRule for other words.

    >>> import numpy as np, plait
    >>> plait.random.wrap_key_data(np.zeros((3, 2), np.uint32)).shape
    (3,)
    """
    x, wanted = as_value(key_bits_array), _wanted(impl, dtype)
    if x.aval.dtype != UINT32 or not x.aval.ndim or x.aval.shape[-1:] != wanted.shape:
        raise OperandTypeError(
            f"{x.aval!r} are not words of keys",
            fix=f"give uint32 with a last axis of size {wanted.shape[0]}",
        )
    return wrap_.bind(x, dtype=wanted)


def key_impl(keys: ArrayLike) -> str:
    """Return the name of the generator of keys.

    Raises TypeRule unless `keys` are keys.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.key_impl(key)
    'threefry2x32'
    """
    return random.GENERATORS[keys_of(keys).aval.dtype].name


def clone(key: ArrayLike) -> Array:
    """Return the same key, for intended reuse.

    It exempts the result from the check of the setting `debug_key_reuse`, and has no other effect.

    Raises TypeRule unless `key` is a key.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> bool(plait.random.clone(key) == key)
    True
    """
    return like(key, random.random_clone.bind(keys_of(key)))


# ---- Python numbers --------------------------------------------------------------------------

RANGES = {
    dtype_of(kind): (int(ml_dtypes.iinfo(kind).min), int(ml_dtypes.iinfo(kind).max))
    for bits in (4, 8, 16, 32, 64)
    for kind in (dtype_of(f"int{bits}"), dtype_of(f"uint{bits}"))
}
"""The least and the greatest number of each integer dtype that samples can have."""


def number(v: Any, dtype: np.dtype) -> Array:
    """Return a Python number as a cached array without axes; integers are clipped."""
    if dtype in RANGES:
        least, most = RANGES[dtype]
        v = min(max(v, least), most)
    aval = Aval((), dtype)
    return wrap(scalar_buffer(Literal(v, aval)), aval)


def parameter(v: object, name: str) -> Any:
    """Return a parameter of a distribution, which users call `name`, as an array.

    A complex one is refused, for conversion to the dtype of the samples would drop a part of it.
    """
    x = as_value(v)
    if x.aval.category == COMPLEX:
        raise OperandTypeError(
            f"`{name}` of random samples must be real, got {x.aval!r}",
            fix=f"pass its real part, {name}.real, or draw both parts",
        )
    return x
