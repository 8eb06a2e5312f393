"""Keys: made of seeds, split, folded, and spent.

Invariant: a key is no number.  Its words are a uint32[2] with the key's axes in front, and nothing
outside this package looks at them.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import TypeRule
from ..interpreter import Value
from ..ops import elementwise as el
from ..ops.places import parse
from ..ops.reduction import all_
from ..ops.rng import UINT32, counters, hashed
from ..ops.shape import concatenate, convert, expand_dims, normal_shape, reshape
from ..ops.subscript import getitem
from ..surface import fused
from ..tree import register
from ..types import INTEGER, Aval
from ..values import Literal, as_value, asarray, scalar_buffer, wrap

_NAMES = (None, "threefry2x32", "fry")


class KeyDtype:
    """The dtype of keys: it has a name and a size, and no arithmetic."""

    __slots__ = ()
    name = "key<fry>"
    itemsize = 8
    kind = "V"

    def __repr__(self) -> str:
        return self.name


KEY = KeyDtype()


class Key:
    """A key, or an array of keys.  Made by `key`, `split` and `fold_in`; a tree with one leaf.

    An array of keys has a shape, is indexed, iterated and mapped over, and is no array of numbers:
    arithmetic is refused, and `key_data` has the words.

    >>> import weft as wf
    >>> wf.random.split(wf.random.key(0), 3)
    Key((3,), fry):
    [[1797259609 2579123966]
     [ 928981903 3453687069]
     [4146024105 2718843009]]
    """

    __slots__ = ("_data",)
    __array_ufunc__ = None
    __array_priority__ = 2000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: Any):
        self._data = data

    dtype = property(lambda self: KEY, doc="The dtype of keys.")
    shape = property(lambda self: self._data.shape[:-1], doc="The sizes of its axes.")
    ndim = property(lambda self: self._data.ndim - 1, doc="The number of its axes.")
    size = property(lambda self: math.prod(self.shape), doc="How many keys it is.")

    def __repr__(self) -> str:
        shape = getattr(self._data, "shape", None)
        if shape is None:  # a tree of something else than keys
            return f"Key({self._data!r})"
        between = ":\n" if len(shape) > 1 else ": "
        return f"Key({shape[:-1]}, fry){between}{self._data}"

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a single key")
        return self.shape[0]

    def __iter__(self) -> Iterator["Key"]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> "Key":
        if index.__class__ is int and self._data.ndim > 1:
            return Key(getitem(self._data, index))
        index = index if index.__class__ is tuple else (index,)
        parse(self.shape, index)  # the words of a key are no axis of the user's
        dots = any(i is Ellipsis for i in index)
        rest = (slice(None),) if dots else (Ellipsis, slice(None))
        return Key(getitem(self._data, (*index, *rest)))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Key):
            return NotImplemented
        return all_(el.eq(self._data, other._data), axis=-1)

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else el.not_(same)

    def reshape(self, *shape: Any) -> "Key":
        """The same keys in another shape."""
        sizes = normal_shape(shape[0] if len(shape) == 1 else shape)
        if -1 in sizes:
            rest = -math.prod(sizes)
            sizes = tuple([self.size // rest if n == -1 else n for n in sizes])
        return Key(reshape(self._data, (*sizes, 2)))

    def block_until_ready(self) -> "Key":
        """Wait until the keys are computed."""
        self._data.block_until_ready()
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise _no_number(self)


def _no_number(self: Key, *_: Any) -> TypeRule:
    return TypeRule(
        f"a key of shape {self.shape} is no number",
        fix="draw numbers with it: weft.random.normal(key, shape); its words are "
        "weft.random.key_data(key)",
    )


def _refuse(self: Key, *others: Any) -> Any:
    raise _no_number(self)


_BINARY = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul"
_UNARY = "neg pos abs invert bool int float index lt le gt ge"
for _name in [*_BINARY.split(), *("r" + n for n in _BINARY.split()), *_UNARY.split()]:
    setattr(Key, f"__{_name}__", _refuse)

register(Key, lambda k: ((k._data,), None), lambda _, children: Key(*children), lambda k: [".data"])


def key(seed: Any, *, impl: Any = None) -> Key:
    """A key of an integer.

    Args:
      seed: an integer, or an integer array without axes.  64-bit seeds count in full.
      impl: None or "threefry2x32", the one generator there is.

    Raises TypeRule if the seed is no integer.

    >>> import weft as wf
    >>> wf.random.key_data(wf.random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return Key(PRNGKey(seed, impl=impl))


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:  # noqa: N802
    """The words of `key(seed)`, a uint32[2]; every function here takes those for the key."""
    if impl not in _NAMES:
        raise TypeRule(f"there is no generator {impl!r}", fix='leave impl out, or "threefry2x32"')
    if seed.__class__ is not int:
        s = as_value(seed)
        if s.aval.ndim or s.aval.category != INTEGER:
            raise TypeRule(
                f"a seed is an integer without axes, not {s.aval!r}",
                fix="map over the seeds to make many keys",
            )
        if s.__class__ is not Literal:
            return _words_of_seed(s)
        seed = int(s.value)
    high = 0 if -(2**31) <= seed < 2**32 else seed >> 32
    return asarray(np.array([high & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32))


@fused
def _words_of_seed(s: Any) -> Any:
    if s.aval.dtype.itemsize <= 4:
        high: Any = Literal(0, Aval((), UINT32))
    else:
        half = convert(el.shift_right_logical(s, s.aval.dtype.type(32)), UINT32)
        small = s.aval.dtype.kind == "i"
        near = el.and_(el.ge(s, -(2**31)), el.lt(s, 0)) if small else None
        high = half if near is None else el.select(near, np.uint32(0), half)
    low = s if s.aval.dtype.itemsize < 8 else el.and_(s, s.aval.dtype.type(0xFFFFFFFF))
    low = convert(low, UINT32)
    return concatenate([reshape(high, (1,)), reshape(low, (1,))])


def words_of(k: Any) -> Any:
    """The words of a key, which may be given as words."""
    if k.__class__ is Key:
        return k._data
    if isinstance(k, Value | np.ndarray) and k.dtype == UINT32 and k.ndim and k.shape[-1] == 2:
        return as_value(k)
    raise TypeRule(f"{type(k).__name__} {k!r} is no key", fix="make one: key = weft.random.key(0)")


def one_key(k: Any, what: str) -> Any:
    """The words of a single key."""
    data = words_of(k)
    if data.ndim != 1:
        raise TypeRule(
            f"{what} takes one key, not an array of keys of shape {data.shape[:-1]}",
            fix=f"map weft.random.{what} over them",
        )
    return data


def like(k: Any, data: Any) -> Any:
    """Words as what the user gave: a Key, or words."""
    return Key(data) if k.__class__ is Key else data


def split(key: Any, num: Any = 2) -> Any:
    """New keys, as good as independent of the old one and of each other.

    Args:
      key: a key.
      num: how many, or the shape of an array of them.

    >>> import weft as wf
    >>> key, other = wf.random.split(wf.random.key(0))
    """
    return like(key, _split(one_key(key, "split"), shape=normal_shape(num)))


def split_words(data: Any, shape: tuple) -> Any:
    """The words of new keys."""
    a, b = hashed(data, *counters(shape))
    return concatenate([expand_dims(a, len(shape)), expand_dims(b, len(shape))], len(shape))


@fused
def _split(data: Any, *, shape: tuple) -> Any:
    return split_words(data, shape)


def fold_in(key: Any, data: Any) -> Any:
    """A new key of a key and an integer: the number of a step, a layer, a device."""
    x = number(data & 0xFFFFFFFF, UINT32) if data.__class__ is int else as_value(data)
    if x.aval.ndim or x.aval.category != INTEGER:
        raise TypeRule(
            f"fold_in takes an integer without axes, not {x.aval!r}", fix="map over many of them"
        )
    return like(key, _fold_in(one_key(key, "fold_in"), x))


@fused
def _fold_in(data: Any, number: Any) -> Any:
    number = convert(number, UINT32)
    a, b = hashed(data, Literal(0, number.aval), number)
    return concatenate([reshape(a, (1,)), reshape(b, (1,))])


def key_data(keys: Any) -> Any:
    """The words of keys, uint32 with a last axis of size 2."""
    return words_of(keys)


def wrap_key_data(data: Any, *, impl: Any = None) -> Key:
    """Keys of words: the inverse of `key_data`."""
    x = as_value(data)
    if impl not in _NAMES or x.aval.dtype != UINT32 or (not x.aval.ndim or x.aval.shape[-1] != 2):
        raise TypeRule(
            f"{x.aval!r} are no words of keys", fix="give uint32 with a last axis of size 2"
        )
    return Key(x)


def key_impl(keys: Any) -> str:
    """The name of the generator of keys."""
    words_of(keys)
    return "threefry2x32"


def clone(key: Any) -> Any:
    """The same key, to be used on purpose where it was used before."""
    words_of(key)
    return key


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
