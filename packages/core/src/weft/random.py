"""Random numbers from explicit keys.

    key = wf.random.key(0)
    x = wf.random.normal(key, (3, 4))
    key, other = wf.random.split(key)

The generator is Threefry-2x32; the bits are those of `jax.random` with its default settings.

Invariant: a result depends on the key, the shape and the dtype only; the same key twice gives the
same numbers twice.  A key is no number: it is split, folded and spent, and nothing else.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .errors import TypeRule
from .interpreter import Value
from .ops import elementwise as el
from .ops.conversion import bitcast_
from .ops.cumulative import cumsum
from .ops.indexing import dynamic_index_in_dim
from .ops.places import parse
from .ops.reduction import all_, argmax
from .ops.rng import UINT32, counters, hashed
from .ops.shape import (
    broadcast_to,
    concatenate,
    convert,
    expand_dims,
    fill,
    iota_,
    moveaxis,
    normal_axis,
    normal_shape,
    reshape,
    transpose,
)
from .ops.sorting import sort_, top_k
from .ops.subscript import getitem, take
from .surface import fused
from .tree import register
from .types import (
    COMPLEX,
    FLOATING,
    INTEGER,
    Aval,
    broadcast_shapes,
    category,
    default_dtype,
    dtype_of,
)
from .values import Literal, as_value, asarray, canonical, scalar_buffer, wrap

__all__ = [
    "Key",
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]


# ---- keys ----------------------------------------------------------------------------------


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
    Key((3,), fry)[[ 928981903 3453687069]
     [3606183818  460005496]
     [1353695780 4079472779]]
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
        if shape is None:
            return f"Key({self._data!r})"
        text = f"Key({shape[:-1]}, fry)"
        return text + (str(self._data) if not isinstance(self._data, Value) else _text(self._data))

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


def _text(data: Any) -> str:
    return str(data) if hasattr(data, "numpy") else f" of {data!r}"


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
    if impl not in (None, "threefry2x32", "fry"):
        raise TypeRule(f"there is no generator {impl!r}", fix='leave impl out, or "threefry2x32"')
    if seed.__class__ is not int:
        s = as_value(seed)
        if s.aval.ndim or s.aval.category != INTEGER:
            raise TypeRule(
                f"a seed is an integer without axes, not {s.aval!r}", fix="map over the seeds to make many keys"
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


def _data(k: Any) -> Any:
    """The words of a key, which may be given as words."""
    if k.__class__ is Key:
        return k._data
    if isinstance(k, Value | np.ndarray) and k.dtype == UINT32 and k.ndim and k.shape[-1] == 2:
        return as_value(k)
    raise TypeRule(
        f"{type(k).__name__} {k!r} is no key", fix="make one: key = weft.random.key(0)"
    )


def _one(k: Any, what: str) -> Any:
    """The words of a single key."""
    data = _data(k)
    if data.ndim != 1:
        raise TypeRule(
            f"{what} takes one key, not an array of keys of shape {data.shape[:-1]}",
            fix=f"map weft.random.{what} over them",
        )
    return data


def _like(k: Any, data: Any) -> Any:
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
    return _like(key, _split(_one(key, "split"), shape=normal_shape(num)))


@fused
def _split(data: Any, *, shape: tuple) -> Any:
    a, b = hashed(data, *counters(shape))
    return concatenate([expand_dims(a, len(shape)), expand_dims(b, len(shape))], len(shape))


def fold_in(key: Any, data: Any) -> Any:
    """A new key of a key and an integer: the number of a step, a layer, a device."""
    x = _number(data & 0xFFFFFFFF, UINT32) if data.__class__ is int else as_value(data)
    if x.aval.ndim or x.aval.category != INTEGER:
        raise TypeRule(
            f"fold_in takes an integer without axes, not {x.aval!r}", fix="map over many of them"
        )
    return _like(key, _fold_in(_one(key, "fold_in"), x))


@fused
def _fold_in(data: Any, number: Any) -> Any:
    number = convert(number, UINT32)
    a, b = hashed(data, Literal(0, number.aval), number)
    return concatenate([reshape(a, (1,)), reshape(b, (1,))])


def key_data(keys: Any) -> Any:
    """The words of keys, uint32 with a last axis of size 2."""
    return _data(keys)


def wrap_key_data(data: Any, *, impl: Any = None) -> Key:
    """Keys of words: the inverse of `key_data`."""
    x = as_value(data)
    if impl not in (None, "threefry2x32", "fry") or x.aval.dtype != UINT32 or (
        not x.aval.ndim or x.aval.shape[-1] != 2
    ):
        raise TypeRule(
            f"{x.aval!r} are no words of keys", fix="give uint32 with a last axis of size 2"
        )
    return Key(x)


def key_impl(keys: Any) -> str:
    """The name of the generator of keys."""
    _data(keys)
    return "threefry2x32"


def clone(key: Any) -> Any:
    """The same key, to be used on purpose where it was used before."""
    _data(key)
    return key


# ---- uniform -------------------------------------------------------------------------------

_BITS = {1: np.uint8, 2: np.uint16, 4: UINT32, 8: np.uint64}
_MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
_PYTHON = {float: FLOATING, int: INTEGER, complex: COMPLEX}


def _dtype(dtype: Any, kind: int, what: str, *others: int) -> np.dtype:
    """The dtype of samples: the default one of its kind if none is given."""
    if dtype is None:
        return default_dtype(kind)
    python = _PYTHON.get(dtype) if dtype.__class__ is type else None
    d = canonical(dtype_of(dtype)) if python is None else default_dtype(python)
    small = category(d) == FLOATING and d.name not in _MANTISSA
    if category(d) not in (kind, *others) or small:
        fix = "draw float32 and convert" if small else "convert the result with .astype"
        raise TypeRule(f"{what} does not draw {d}", fix=fix)
    return d


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Random bits.

    Args:
      key: a key.
      shape: of the result.
      dtype: an unsigned integer dtype; uint32 by default.
    """
    d = UINT32 if dtype is None else canonical(dtype_of(dtype))
    if d.kind != "u" or d.itemsize not in _BITS:
        raise TypeRule(f"bits are unsigned integers, not {d}", fix='use dtype="uint32"')
    return _bits(_one(key, "bits"), shape=normal_shape(shape), dtype=d)


def _raw(data: Any, shape: tuple, dtype: Any) -> Any:
    """Random bits as unsigned integers of any width."""
    dtype = np.dtype(dtype)
    a, b = hashed(data, *counters(shape))
    if dtype.itemsize < 8:
        return convert(el.xor.bind(a, b), dtype)
    high, low = convert(a, dtype), convert(b, dtype)
    return el.or_.bind(el.shift_left.bind(high, Literal(32, high.aval)), low)


@fused
def _bits(data: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    return _raw(data, shape, dtype)


def _unit(data: Any, shape: tuple, dtype: np.dtype) -> Any:
    """Floats in [0, 1): random mantissas of numbers in [1, 2), less 1."""
    mantissa, width = _MANTISSA[dtype.name], dtype.itemsize * 8
    drawn = width if mantissa >= 8 else 8
    whole = Aval(shape, _BITS[dtype.itemsize])
    r = convert(_raw(data, shape, _BITS[drawn // 8]), whole.dtype)
    r = el.shift_right_logical.bind(r, Literal(drawn - mantissa, whole))
    one = int(np.array(1, dtype).view(whole.dtype))
    x = bitcast_.bind(el.or_.bind(r, Literal(one, whole)), dtype=dtype)
    return el.sub.bind(x, Literal(1, x.aval))


def _between(data: Any, low: Any, high: Any, shape: tuple, dtype: np.dtype) -> Any:
    """Floats in [low, high)."""
    low, high = (broadcast_to(convert(v, dtype), shape) for v in (low, high))
    scaled = el.mul.bind(_unit(data, shape, dtype), el.sub.bind(high, low))
    return el.maximum.bind(low, el.add.bind(scaled, low))


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Numbers evenly from [minval, maxval).

    Args:
      key: a key.
      shape: of the result.
      dtype: a floating dtype; the default one if None.
      minval, maxval: numbers, or arrays that broadcast to the shape.

    Raises TypeRule for other dtypes and for what does not broadcast.

    >>> import weft as wf
    >>> wf.random.uniform(wf.random.key(0), (2,), minval=-1.0)
    Array([0.89533377, 0.9573622 ], dtype=float32)
    """
    d, shape = _dtype(dtype, FLOATING, "uniform"), normal_shape(shape)
    data = _one(key, "uniform")
    if minval.__class__ is float and maxval.__class__ is float and (minval, maxval) == (0.0, 1.0):
        return _standard_uniform(data, shape=shape, dtype=d)
    low, high = (
        _number(v, d) if v.__class__ is float or v.__class__ is int else v for v in (minval, maxval)
    )
    return _uniform(data, low, high, shape=shape, dtype=d)


@fused
def _standard_uniform(data: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    return _between(data, 0.0, 1.0, shape, dtype)


@fused
def _uniform(data: Any, low: Any, high: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    return _between(data, *map(as_value, (low, high)), shape, dtype)


# ---- integers ------------------------------------------------------------------------------


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Any:
    """Integers evenly from [minval, maxval); `minval` where that is empty.

    Twice as many bits are drawn as an integer has, and reduced modulo the length of the range:
    the bias is at most (maxval - minval) / 2**64, for 64-bit integers 2**128.

    Args:
      key: a key.
      shape: of the result.
      minval, maxval: integers, or arrays that broadcast to the shape.
      dtype: an integer dtype; the default one if None.
    """
    d = _dtype(dtype, INTEGER, "randint")
    wide = d if d.itemsize >= 4 else np.dtype(np.int32)
    least, most = _RANGES[d]
    past = maxval.__class__ is int and wide is d and maxval > most
    low = _number(max(minval, least), wide) if minval.__class__ is int else minval
    high = _number(maxval, wide) if maxval.__class__ is int else maxval
    data = _one(key, "randint")
    r = _randint(data, low, high, shape=normal_shape(shape), dtype=wide, small=d, past=past)
    return r if wide is d else convert(r, d)


_RANGES = {
    np.dtype(kind): (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
}


def _number(v: Any, dtype: np.dtype) -> Any:
    """A Python number as an array without axes, whose memory is kept; integers are clipped."""
    if dtype in _RANGES:
        least, most = _RANGES[dtype]
        v = min(max(v, least), most)
    aval = Aval((), dtype)
    return wrap(scalar_buffer(Literal(v, aval)), aval)


def _whole(v: Any, dtype: np.dtype, low: int, high: int) -> Any:
    """A bound as an integer of this dtype, clipped to [low, high] and not wrapped."""
    if v.aval.category != INTEGER:
        v = convert(v, default_dtype(INTEGER))
    least, most = _RANGES[v.aval.dtype]
    cell = v.aval.dtype.type
    v = el.clamp(cell(max(low, least)), v, cell(min(high, most)))
    return convert(v, dtype)


@fused
def _randint(
    data: Any, low: Any, high: Any, *, shape: tuple, dtype: np.dtype, small: np.dtype, past: bool
) -> Any:
    low, high = as_value(low), as_value(high)
    most, (floor, top) = _RANGES[dtype][1], _RANGES[small]
    beyond: Any = Literal(past, Aval(shape, bool))
    if not past and high.aval.category == INTEGER and _RANGES[high.aval.dtype][1] > most:
        beyond = broadcast_to(el.gt(high, high.aval.dtype.type(most)), shape)
    end = most if small == dtype else top + 1  # which the wider dtype can hold
    low = broadcast_to(_whole(low, dtype, floor, top), shape)
    high = broadcast_to(_whole(high, dtype, floor, end), shape)
    unsigned = _BITS[dtype.itemsize]
    k1, k2 = _halves(data)
    first, second = _raw(k1, shape, unsigned), _raw(k2, shape, unsigned)
    one = Literal(1, first.aval)
    span = convert(el.sub.bind(high, low), unsigned)
    span = el.select(el.le(high, low), one, span)
    span = el.select(el.and_(beyond, el.gt(high, low)), el.add.bind(span, one), span)
    half = Literal(2 ** (dtype.itemsize * 4), first.aval)
    factor = el.rem.bind(half, span)
    factor = el.rem.bind(el.mul.bind(factor, factor), span)
    total = el.add.bind(
        el.mul.bind(el.rem.bind(first, span), factor), el.rem.bind(second, span)
    )
    return el.add.bind(low, convert(el.rem.bind(total, span), dtype))


def _halves(data: Any) -> tuple[Any, Any]:
    """The two keys that `split` makes."""
    both = _split_now(data, 2)
    return _row(both, 0), _row(both, 1)


def _split_now(data: Any, num: int) -> Any:
    a, b = hashed(data, *counters((num,)))
    return concatenate([expand_dims(a, 1), expand_dims(b, 1)], 1)


def _row(x: Any, i: int) -> Any:
    return dynamic_index_in_dim(x, i, keepdims=False)


def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """-1 or 1, evenly."""
    d = _dtype(dtype, INTEGER, "rademacher", FLOATING, COMPLEX)
    return _rademacher(_one(key, "rademacher"), shape=normal_shape(shape), dtype=d)


@fused
def _rademacher(data: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    heads = el.lt.bind(*_agree(_between(data, 0.0, 1.0, shape, np.dtype(np.float32)), 0.5))
    x = convert(heads, dtype)
    return el.sub(el.mul(x, Literal(2, Aval((), dtype))), Literal(1, Aval((), dtype)))


def _agree(x: Any, value: float) -> tuple[Any, Any]:
    return x, Literal(value, x.aval)


# ---- other distributions -------------------------------------------------------------------


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers from the standard normal distribution; complex ones have variance 1 too.

    Args:
      key: a key.
      shape: of the result.
      dtype: a floating or complex dtype; the default floating one if None.

    >>> import weft as wf
    >>> wf.random.normal(wf.random.key(0), (2,))
    Array([1.6226422, 2.0252647], dtype=float32)
    """
    d = _dtype(dtype, FLOATING, "normal", COMPLEX)
    return _normal(_one(key, "normal"), shape=normal_shape(shape), dtype=d)


@fused
def _normal(data: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    if category(dtype) != COMPLEX:
        return _real_normal(data, shape, dtype)
    part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    re, im = (_real_normal(k, shape, part) for k in _halves(data))
    z = el.complex_.bind(re, im)
    return el.div.bind(z, Literal(complex(np.array(np.sqrt(2), dtype)), z.aval))


def _real_normal(data: Any, shape: tuple, dtype: np.dtype) -> Any:
    """By the inverse of the error function, of numbers in (-1, 1)."""
    least = -1 + 2.0 ** -(_MANTISSA[dtype.name] + 1)
    u = _between(data, least, 1.0, shape, dtype)
    return el.mul.bind(Literal(math.sqrt(2), u.aval), el.erf_inv.bind(u))


def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None
) -> Any:
    """Numbers from the standard normal distribution, given that they lie in (lower, upper).

    Args:
      key: a key.
      lower, upper: numbers, or arrays that broadcast to the shape.
      shape: of the result; by default that of the bounds.
      dtype: a floating dtype; the default one if None.
    """
    d = _dtype(dtype, FLOATING, "truncated_normal")
    low, high = as_value(lower), as_value(upper)
    shape = _shape_or(shape, low, high)
    return _truncated_normal(_one(key, "truncated_normal"), low, high, shape=shape, dtype=d)


def _shape_or(shape: Any, *xs: Any) -> tuple:
    """The shape given, or that of the parameters."""
    return normal_shape(shape) if shape is not None else broadcast_shapes([x.shape for x in xs])


@fused
def _truncated_normal(data: Any, low: Any, high: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    low, high = (convert(v, dtype) for v in (low, high))
    root = Literal(math.sqrt(2), Aval((), dtype))
    a, b = (el.erf(el.div(v, root)) for v in (low, high))
    x = el.mul(root, el.erf_inv(_between(data, a, b, shape, dtype)))
    infinity = Literal(math.inf, Aval((), dtype))
    least = el.nextafter(el.stop(low), infinity)
    most = el.nextafter(el.stop(high), el.neg(infinity))
    return el.minimum(el.maximum(x, least), most)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Any:
    """True with probability `p`.

    Args:
      key: a key.
      p: a number, or an array that broadcasts to the shape.
      shape: of the result; by default that of `p`.
      mode: "low", or "high" for probabilities below the resolution of a float, at twice the cost.
    """
    if mode not in ("low", "high"):
        raise TypeRule(f"bernoulli has no mode {mode!r}", fix='use "low" or "high"')
    data = _one(key, "bernoulli")
    p = _number(p, default_dtype(FLOATING)) if p.__class__ is float else as_value(p)
    d = p.aval.dtype if p.aval.category == FLOATING else default_dtype(FLOATING)
    return _bernoulli(data, p, shape=_shape_or(shape, p), dtype=d, high=mode == "high")


@fused
def _bernoulli(data: Any, p: Any, *, shape: tuple, dtype: np.dtype, high: bool) -> Any:
    p = broadcast_to(convert(p, dtype), shape)
    if not high:
        return el.lt.bind(_between(data, 0.0, 1.0, shape, dtype), p)
    both = _between(data, 0.0, 1.0, (2, *shape), dtype)
    u, fine = _row(both, 0), _row(both, 1)
    fine = el.mul.bind(fine, Literal(2.0 ** -_MANTISSA[dtype.name], fine.aval))
    return el.lt.bind(fine, el.sub.bind(p, u))


def _simple(name: str, f: Any, doc: str) -> Any:
    """A sampler of shape and dtype only."""
    run = fused(f)

    def sample(key: Any, shape: Any = (), dtype: Any = None) -> Any:
        d = _dtype(dtype, FLOATING, name)
        return run(_one(key, name), shape=normal_shape(shape), dtype=d)

    sample.__name__ = sample.__qualname__ = name
    sample.__doc__ = f"""{doc}

    Args:
      key: a key.
      shape: of the result.
      dtype: a floating dtype; the default one if None.
    """
    return sample


def _exponential(data: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    u = _between(data, 0.0, 1.0, shape, dtype)
    return el.neg.bind(el.log1p.bind(el.neg.bind(u)))


def _laplace(data: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    least = -1 + 2.0 ** -(_MANTISSA[dtype.name] + 1)
    u = _between(data, least, 1.0, shape, dtype)
    return el.mul.bind(el.sign.bind(u), el.log1p.bind(el.neg.bind(el.abs_.bind(u))))


def _logistic(data: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    u = _between(data, _tiny(dtype), 1.0, shape, dtype)
    return el.sub.bind(el.log.bind(u), el.log1p.bind(el.neg.bind(u)))


def _cauchy(data: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    u = _between(data, 2.0 ** -_MANTISSA[dtype.name], 1.0, shape, dtype)
    centred = el.sub.bind(u, Literal(0.5, u.aval))
    return el.tan.bind(el.mul.bind(Literal(math.pi, u.aval), centred))


def _tiny(dtype: np.dtype) -> float:
    """The least normal number."""
    least = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}
    return 2.0 ** least[dtype.name]


exponential = _simple(
    "exponential", _exponential, "Numbers from the exponential distribution of rate 1."
)
laplace = _simple("laplace", _laplace, "Numbers from the Laplace distribution.")
logistic = _simple("logistic", _logistic, "Numbers from the logistic distribution.")
cauchy = _simple("cauchy", _cauchy, "Numbers from the Cauchy distribution.")


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None) -> Any:
    """Numbers from the Gumbel distribution.

    Args:
      key: a key.
      shape: of the result.
      dtype: a floating dtype; the default one if None.
      mode: "low" (the default), or "high" for a tail that reaches twice as far, at twice the cost.
    """
    d = _dtype(dtype, FLOATING, "gumbel")
    return _gumbel_now(
        _one(key, "gumbel"), shape=normal_shape(shape), dtype=d, high=_is_high(mode, "gumbel")
    )


def _is_high(mode: Any, what: str) -> bool:
    if mode not in (None, "low", "high"):
        raise TypeRule(f"{what} has no mode {mode!r}", fix='use "low" or "high"')
    return mode == "high"


def _gumbel(data: Any, shape: tuple, dtype: np.dtype, high: bool) -> Any:
    if not high:
        u = _between(data, _tiny(dtype), 1.0, shape, dtype)
        return el.neg.bind(el.log.bind(el.neg.bind(el.log.bind(u))))
    both = _between(data, 0.0, 1.0, (2, *shape), dtype)
    u, fine = _row(both, 0), _row(both, 1)
    fine = el.mul.bind(Literal(2.0 ** -_MANTISSA[dtype.name], u.aval), fine)
    more = el.add.bind(el.add.bind(u, fine), Literal(_tiny(dtype), u.aval))
    x = el.select.bind(el.ge.bind(*_agree(u, 0.5)), u, more)
    return el.neg.bind(el.log.bind(el.neg.bind(el.log1p.bind(el.neg.bind(x)))))


@fused
def _gumbel_now(data: Any, *, shape: tuple, dtype: np.dtype, high: bool) -> Any:
    return _gumbel(data, shape, dtype, high)


# ---- choosing ------------------------------------------------------------------------------


def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
) -> Any:
    """Numbers of categories, drawn by their unnormalised log-probabilities.

    The greatest of logits with Gumbel noise is a sample (E. Gumbel); the greatest k are one
    without replacement (W. Kool, H. van Hoof, M. Welling: Stochastic beams and where to find
    them, ICML 2019).

    Args:
      key: a key.
      logits: an array.
      axis: the axis of the categories.
      shape: of the result: that of the logits without the axis, with further axes in front.
      replace: whether the samples along the axes in front may repeat a category.
      mode: "low", or "high" for probabilities below 1e-7 (in float32), at twice the cost.

    Raises TypeRule if the shape does not fit, or asks for more than there are categories.
    """
    x = as_value(logits)
    x = x if x.aval.category == FLOATING else convert(x, default_dtype(FLOATING))
    at = normal_axis(axis, x.aval.ndim)
    rest = tuple([n for i, n in enumerate(x.aval.shape) if i != at])
    full = rest if shape is None else normal_shape(shape)
    lead = len(full) - len(rest)
    if lead < 0 or any(a not in (1, b) for a, b in zip(rest, full[lead:])):
        raise TypeRule(
            f"categorical: samples of shape {full} of logits {x.aval!r}",
            fix=f"the shape must end in one that {rest} broadcasts to",
        )
    many = math.prod(full[:lead])
    if not replace and (many > x.aval.shape[at] or full[lead:] != rest):
        raise TypeRule(
            f"categorical: {many} samples without replacement of {x.aval.shape[at]} categories",
            fix="ask for fewer, or set replace=True",
        )
    high = _is_high(mode, "categorical")
    run = _categorical if replace else _categorical_distinct
    return run(_one(key, "categorical"), x, axis=at, shape=full, lead=lead, high=high)


@fused
def _categorical(
    data: Any, logits: Any, *, axis: int, shape: tuple, lead: int, high: bool
) -> Any:
    rest = list(shape[lead:])
    rest.insert(axis, logits.aval.shape[axis])
    full = (*shape[:lead], *rest)
    noise = _gumbel(data, full, logits.aval.dtype, high)
    return argmax(el.add(noise, broadcast_to(logits, full)), axis=lead + axis)


@fused
def _categorical_distinct(
    data: Any, logits: Any, *, axis: int, shape: tuple, lead: int, high: bool
) -> Any:
    noise = _gumbel(data, logits.aval.shape, logits.aval.dtype, high)
    x = moveaxis(el.add(logits, noise), axis, -1)
    _, index = top_k(x, math.prod(shape[:lead]))
    n = index.aval.ndim - 1
    return reshape(transpose(index, (n, *range(n))), shape)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """The elements of an array in random order along an axis, or 0, 1, 2, ... of an integer.

    By sorting with random 32-bit keys, as often as makes ties all but impossible.

    Args:
      key: a key.
      x: an array, or how many integers.
      axis: the axis.
      independent: whether vectors along the axis are each put in an order of their own.
    """
    data = _one(key, "permutation")
    if hasattr(x, "__index__") and not getattr(x, "ndim", 0):
        at = normal_axis(axis, 1)
        return _shuffled_range(data, size=x.__index__(), dtype=default_dtype(INTEGER))
    v = as_value(x)
    if not v.aval.ndim:
        raise TypeRule(f"permutation of {v.aval!r}", fix="give an array with axes, or an integer")
    at = normal_axis(axis, v.aval.ndim)
    return _permutation(data, v, axis=at, independent=independent or v.aval.ndim == 1)


@fused
def _shuffled_range(data: Any, *, size: int, dtype: np.dtype) -> Any:
    return _shuffled(data, iota_.bind(shape=(size,), axis=0, dtype=dtype), 0)


@fused
def _permutation(data: Any, x: Any, *, axis: int, independent: bool) -> Any:
    if independent:
        return _shuffled(data, x, axis)
    n = x.aval.shape[axis]
    order = _shuffled(data, iota_.bind(shape=(n,), axis=0, dtype=np.dtype(np.int32)), 0)
    return take(x, order, axis, mode="promise_in_bounds", unique_indices=True)


def _shuffled(data: Any, x: Any, axis: int) -> Any:
    """Sorted by fresh random keys, in so many rounds that equal keys in all of them are as rare
    as one in the cube of the number of elements."""
    size = x.aval.size
    rounds = math.ceil(3 * math.log(max(1, size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        data, used = _halves(data)
        order = _raw(used, x.aval.shape, UINT32)
        _, x = sort_.bind(order, x, axis=axis, num_keys=1, stable=True)
    return x


def choice(
    key: Any,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Any:
    """Elements of an array, or integers below a number, chosen at random.

    Args:
      key: a key.
      a: an array, or how many integers.
      shape: of the sample.
      replace: whether an element may be chosen again.
      p: probabilities, one for each element; evenly if None.
      axis: the axis along which elements lie.
      mode: as `gumbel`; of samples with probabilities and without replacement.

    Raises TypeRule if there is not enough to choose from.
    """
    shape = normal_shape(shape)
    number = hasattr(a, "__index__") and not getattr(a, "ndim", 0)
    x = None if number else as_value(a)
    at = normal_axis(axis, 1 if x is None else x.aval.ndim)
    n = a.__index__() if x is None else x.aval.shape[at]
    draws = math.prod(shape)
    if draws and n <= 0 or not replace and draws > n:
        raise TypeRule(
            f"choice of {draws} out of {n}", fix="choose fewer, or with replace=True"
        )
    if x is not None and not draws:
        return fill(0, Aval((*x.aval.shape[:at], *shape, *x.aval.shape[at + 1 :]), x.aval.dtype))
    if p is not None:
        index = _chosen(key, n, draws, shape, replace, as_value(p), mode)
    elif replace:
        index = randint(key, shape, 0, n)
    elif x is None:
        index = reshape(getitem(permutation(key, n), slice(0, draws)), shape)
    else:
        got = getitem(permutation(key, x, at), (*(slice(None),) * at, slice(0, draws)))
        return reshape(got, (*x.aval.shape[:at], *shape, *x.aval.shape[at + 1 :]))
    return index if x is None else take(x, index, at, mode="promise_in_bounds")


def _chosen(
    key: Any, n: int, draws: int, shape: tuple, replace: bool, p: Any, mode: Any
) -> Any:
    """Numbers of elements, by their probabilities."""
    if p.aval.shape != (n,):
        raise TypeRule(
            f"choice: probabilities {p.aval!r} for {n} elements", fix=f"give {n} of them"
        )
    p = p if p.aval.category == FLOATING else convert(p, default_dtype(FLOATING))
    data = _one(key, "choice")
    if replace:
        return _by_cumulative(data, p, shape=shape, dtype=default_dtype(INTEGER))
    high = _is_high(mode, "choice")
    return _distinct(data, p, shape=shape, draws=draws, high=high, dtype=default_dtype(INTEGER))


@fused
def _by_cumulative(data: Any, p: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    ends = cumsum(p, 0)
    total = _row(ends, ends.aval.shape[0] - 1)
    u = _between(data, 0.0, 1.0, shape, p.aval.dtype)
    r = el.mul(total, el.sub(1.0, u))
    return convert(_first_not_less(ends, r), dtype)


def _first_not_less(ends: Any, r: Any) -> Any:
    """For each of `r` the number of elements of the increasing `ends` below it: by bisection."""
    low = Literal(0, Aval(r.aval.shape, np.int32))
    n = ends.aval.shape[0]
    step = 1 << max(0, n.bit_length() - 1)
    while step:
        probe = el.add(low, step)
        value = take(ends, el.minimum(el.sub(probe, 1), n - 1), 0, mode="promise_in_bounds")
        below = el.and_(el.le(probe, n), el.lt(value, r))
        low = el.select(below, probe, low)
        step >>= 1
    return low


@fused
def _distinct(
    data: Any, p: Any, *, shape: tuple, draws: int, high: bool, dtype: np.dtype
) -> Any:
    noise = _gumbel(data, p.aval.shape, p.aval.dtype, high)
    _, index = top_k(el.add(noise, el.log(p)), draws)
    return convert(reshape(index, shape), dtype)
