"""Keys of random numbers, and the operations of their generators.

A key is an opaque element; its dtype determines the generator.  The operations take arrays of
keys, and treat each key as if it were alone.

Invariant: a result of a key depends on the key and the parameters only, not on its neighbours in an
array, nor on its position.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._base.config import config
from .._base.errors import ArgumentError, OperandTypeError
from .._core.array import Literal
from .._core.carrier import expand_rules
from .._core.interpreter import Value
from .._core.primitive import Sizes, primitive
from .._core.staging import staged
from .._plugins.traits import AnyElement, Structural
from .._types.avals import INTEGER, OPAQUE, Aval, Opaque
from .._types.dims import product
from .._xla.lower import eager_rules, lower_rules
from .._xla.physical import physical_rules
from . import elementwise as el
from . import shape as sh
from .mapping import map_axes
from .opaque import unwrap_, wrap_
from .rng import UINT32, counters, rng_bit_generator, threefry2x32

__all__ = [
    "FRY", "generator_named", "GENERATORS", "random_bits", "random_clone", "random_fold_in",
    "random_seed", "random_split",
]  # fmt: skip

ADVICE = (
    "draw numbers with it: plait.random.normal(key, shape); its words are "
    "plait.random.key_data(key)"
)


class Generator(NamedTuple):
    """The operations on the keys of one dtype; keys are given by their words.

    Attributes:
      name: as in `plait.random.key(seed, impl=name)`.
      seed: (high, low words of seeds) -> words of keys.
      split: (words of one key, shape) -> words of keys of that shape.
      fold_in: (words of keys, as many uint32) -> words of keys.
      bits: (words of keys, shape, dtype) -> for each key an array of unsigned integers.
    """

    name: str
    seed: Callable
    split: Callable
    fold_in: Callable
    bits: Callable


GENERATORS: dict[Opaque, Generator] = {}
"""All generators, by the dtype of their keys."""


def define_generator(short: str, size: int, generator: Generator) -> Opaque:
    """Define a generator; return the dtype of its keys, which have `size` words."""
    dtype = Opaque(f"key<{short}>", (size,), UINT32, "key", ADVICE)
    GENERATORS[dtype] = generator
    return dtype


def generator_named(name: Any) -> Opaque:
    """Return the dtype of the keys of a generator, from its short or long name, or the dtype.

    Raises TypeRule if there is none.
    """
    if name.__class__ is Opaque and name in GENERATORS:
        return name
    for dtype, g in GENERATORS.items() if isinstance(name, str) else ():
        if name in (g.name, dtype.name, dtype.name[4:-1]):
            return dtype
    raise ArgumentError(
        f"there is no generator {name!r}",
        fix=f"leave impl out, or use one of {', '.join([g.name for g in GENERATORS.values()])}",
    )


# ---- primitives ----------------------------------------------------------------------------


def _keys(name: str, x: Aval) -> Generator:
    if x.category != OPAQUE or x.dtype not in GENERATORS:
        raise OperandTypeError(
            f"{name}: {x!r} is not a key", fix="make one: key = plait.random.key(0)"
        )
    return GENERATORS[x.dtype]


@primitive("core.random_seed", traits=(AnyElement,))
def random_seed(seeds: Aval, *, dtype: Opaque) -> Aval:
    """Make a key from each integer; all 64 bits count."""
    if seeds.category != INTEGER:
        raise OperandTypeError(
            f"a seed is an integer, not {seeds!r}", fix="convert with .astype(int)"
        )
    _keys("random_seed", Aval((), dtype))
    return Aval(seeds.shape, dtype)


@primitive("core.random_split", traits=(AnyElement,))
def random_split(keys: Aval, *, shape: Sizes) -> Aval:
    """Make new keys of this shape from each key, practically independent of it and each other."""
    _keys("random_split", keys)
    return Aval((*keys.shape, *shape), keys.dtype)


@primitive("core.random_fold_in", traits=(AnyElement,))
def random_fold_in(keys: Aval, numbers: Aval) -> Aval:
    """Make a new key from each key and its number."""
    _keys("random_fold_in", keys)
    if numbers.dtype != UINT32 or numbers.shape != keys.shape:
        raise ArgumentError(
            f"random_fold_in: {numbers!r} for {keys!r}",
            fix="give a uint32 for each key: broadcast, and convert with .astype",
        )
    return keys


@primitive("core.random_bits", traits=(AnyElement,))
def random_bits(keys: Aval, *, shape: Sizes, dtype: np.dtype) -> Aval:
    """Draw random unsigned integers of this shape with each key."""
    _keys("random_bits", keys)
    if dtype.kind != "u" or dtype.itemsize > 8:
        raise OperandTypeError(f"bits are unsigned integers, not {dtype}", fix='use dtype="uint32"')
    return Aval((*keys.shape, *shape), dtype)


@primitive("core.random_clone", traits=(Structural,))
def random_clone(keys: Aval) -> Aval:
    """Return the same keys, for deliberate reuse."""
    _keys("random_clone", keys)
    return keys


@physical_rules.rule(random_clone)
def _(tail: tuple[int, ...], xs: list[Value]):
    return xs[0]


lower_rules.rule(random_clone)(lambda e, xs, ins, outs: xs[0])


@eager_rules.rule(random_clone)
def _(args, params: dict[str, Any]):
    return None if config.debug_key_reuse else args[0]


@expand_rules.rule(random_seed)
def _(seeds: Value, dtype: Opaque):
    high, low = _halves(seeds)
    return wrap_.bind(GENERATORS[dtype].seed(high, low), dtype=dtype)


@expand_rules.rule(random_split)
def _(keys: Value, shape: tuple[int, ...]):
    dtype = keys.aval.dtype
    split = GENERATORS[dtype].split
    return wrap_.bind(split(unwrap_.bind(keys), shape), dtype=dtype)


@expand_rules.rule(random_fold_in)
def _(keys: Value, numbers: Value):
    dtype = keys.aval.dtype
    return wrap_.bind(GENERATORS[dtype].fold_in(unwrap_.bind(keys), numbers), dtype=dtype)


@expand_rules.rule(random_bits)
def _(keys: Value, shape: tuple[int, ...], dtype: np.dtype):
    return GENERATORS[keys.aval.dtype].bits(unwrap_.bind(keys), shape, dtype)


def _halves(s: Value) -> tuple[Any, Any]:
    """Return the high and low words of integers.

    The high word is 0 for integers that fit 32 bits, signed or not.
    """
    if s.aval.dtype.itemsize <= 4:
        return Literal(0, Aval(s.aval.shape, UINT32)), sh.convert(s, UINT32)
    wide = lambda n: Literal(n, s.aval)  # noqa: E731
    high = sh.convert(el.shift_right_logical.bind(s, wide(32)), UINT32)
    if s.aval.dtype.kind == "i":
        near = el.and_.bind(el.ge.bind(s, wide(-(2**31))), el.lt.bind(s, wide(0)))
        high = el.select.bind(near, Literal(0, high.aval), high)
    return high, sh.convert(el.and_.bind(s, wide(0xFFFFFFFF)), UINT32)


# ---- Threefry ------------------------------------------------------------------------------


def _together(words: list[Value]) -> Any:
    """Join words of keys, each an array, along a new last axis."""
    n = words[0].aval.ndim
    return sh.concatenate([sh.expand_dims(w, n) for w in words], n)


def _word(words: Value, i: int) -> Any:
    """Return word number `i` of each key."""
    *front, _ = words.aval.shape
    at = sh.slice_.bind(
        words,
        starts=(*(0 for _ in front), i),
        limits=(*front, i + 1),
        strides=(1,) * (len(front) + 1),
    )
    return sh.reshape(at, tuple(front))


def _hashes(words: Value, shape: tuple) -> Any:
    """Hash the number of each element of an array of this shape with Threefry, under each key."""
    front = words.aval.shape[:-1]
    full = (*front, *shape)
    ends = tuple(range(len(front), len(full)))
    spread = lambda x, dims: (  # noqa: E731
        Literal(x.value, x.aval.with_shape(full))
        if x.__class__ is Literal
        else sh.broadcast_in_dim.bind(x, shape=full, dims=dims)
    )
    k1, k2 = (spread(_word(words, i), tuple(range(len(front)))) for i in (0, 1))
    x1, x2 = (spread(x, ends) for x in counters(shape)) if front else counters(shape)
    return threefry2x32.bind(k1, k2, x1, x2)


def _threefry_seed(high: Value, low: Value) -> Any:
    return _together([high, low])


def _derived(hashes: list) -> Any:
    """Return the words of derived keys behind a barrier, so that they are computed first.

    In one loop with the hashes of the numbers drawn, they would be computed again for each number,
    in twice the time.  Compilation may not even end: jaxlib 0.12 hangs on a hash of a hash on CPUs.
    """
    return sh.barrier.bind(_together(hashes))[0]


def _threefry_split(words: Value, shape: tuple) -> Any:
    return _derived(_hashes(words, shape))


def _threefry_fold_in(words: Value, numbers: Value) -> Any:
    zero = Literal(0, numbers.aval)
    return _derived(threefry2x32.bind(_word(words, 0), _word(words, 1), zero, numbers))


def _threefry_bits(words: Value, shape: tuple, dtype: np.dtype) -> Any:
    """Compute one hash for each number.  Narrow numbers are truncated, so that the bits at a
    position do not depend on the shape drawn."""
    a, b = _hashes(words, shape)
    if dtype.itemsize < 8:
        return sh.convert(el.xor.bind(a, b), dtype)
    high, low = sh.convert(a, dtype), sh.convert(b, dtype)
    return el.or_.bind(el.shift_left.bind(high, Literal(32, high.aval)), low)


FRY = define_generator(
    "fry",
    2,
    Generator("threefry2x32", _threefry_seed, _threefry_split, _threefry_fold_in, _threefry_bits),
)

# ---- the generator of the device -----------------------------------------------------------


def _both(f: Callable, words: Value, *args: Any) -> Any:
    """Apply a function of Threefry to each half of four words."""
    *front, _ = words.aval.shape
    halves = sh.reshape(words, (*front, 2, 2))
    out = f(halves, *args)  # The halves are one more axis of keys, behind the others.
    n = len(front)
    perm = (*range(n), *range(n + 1, out.aval.ndim - 1), n, out.aval.ndim - 1)
    moved = sh.transpose_.bind(out, perm=perm)
    return sh.reshape(moved, (*moved.aval.shape[:-2], 4))


def _rbg_seed(high: Value, low: Value) -> Any:
    return _together([high, low, high, low])


def _rbg_split(words: Value, shape: tuple) -> Any:
    return _both(_threefry_split, words, shape)


def _rbg_fold_in(words: Value, numbers: Value) -> Any:
    shape = (*numbers.aval.shape, 2)
    dims = tuple(range(numbers.aval.ndim))
    return _both(
        _threefry_fold_in, words, sh.broadcast_in_dim.bind(numbers, shape=shape, dims=dims)
    )


def _alone(f: Callable, words: Value, *others: Any) -> Any:
    """Apply `f` to each key, since the device's generator cannot start several at once."""
    xs = [words, *others]
    if words.aval.ndim == 1:
        return f(*xs)
    avals = [x.aval.with_shape(x.aval.shape[1:]) for x in xs]
    program = staged(lambda *ws: [_alone(f, *ws)], avals, "each")
    size = words.aval.shape[0]
    return map_axes.bind(
        *xs, program=program, in_axes=(0,) * len(xs), out_axes=(0,), size=size, parallel=False
    )[0]


def _rbg_bits(words: Value, shape: tuple, dtype: np.dtype) -> Any:
    """Run the device's generator once for each key."""
    how = dict(shape=shape, dtype=dtype, algorithm="default")
    return _alone(lambda w: rng_bit_generator.bind(w, **how)[1], words)


RBG = define_generator("rbg", 4, Generator("rbg", _rbg_seed, _rbg_split, _rbg_fold_in, _rbg_bits))


_APART = 10
"""Derived keys of the device's generator use one of this many rows of the words drawn."""


def _drawn(words: Value, rows: int) -> Any:
    return rng_bit_generator.bind(words, shape=(rows, 4), dtype=UINT32, algorithm="default")[1]


def _urbg_split(words: Value, shape: tuple) -> Any:
    """Draw the words of new keys with the generator, which does not guarantee their
    independence."""

    def one(words: Value) -> Any:
        drawn = _drawn(words, _APART * product(shape))
        limits = drawn.aval.shape
        rows = sh.slice_.bind(drawn, starts=(0, 0), limits=limits, strides=(_APART, 1))
        return sh.reshape(rows, (*shape, 4))

    return _alone(one, words)


def _urbg_fold_in(words: Value, numbers: Value) -> Any:
    def one(words: Value, number: Value) -> Any:
        drawn = _drawn(_rbg_seed(Literal(0, number.aval), number), _APART)
        last = sh.slice_.bind(drawn, starts=(_APART - 1, 0), limits=(_APART, 4), strides=(1, 1))
        return el.xor.bind(words, sh.reshape(last, (4,)))

    return _alone(one, words, numbers)


URBG = define_generator(
    "urbg",
    4,
    Generator("unsafe_rbg", _rbg_seed, _urbg_split, _urbg_fold_in, _rbg_bits),
)
