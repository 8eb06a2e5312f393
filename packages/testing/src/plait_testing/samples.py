"""References of primitives in numpy, with sample operands.

Invariant: the first sample of a primitive is an ordinary one, of two to a hundred elements; edges
come after it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from plait.ext import Primitive
from plait.ext.types import COMPLEX, INTEGER, category

from .operands import accepted, edges, tuples

__all__ = ["Reference", "Sample", "elementwise", "ordinary", "stored"]


class Sample(NamedTuple):
    """Operands, numpy arrays, and parameters of a primitive."""

    args: tuple[Any, ...] = ()
    params: dict[str, Any] = {}


class Reference(NamedTuple):
    """A primitive in numpy.

    Attributes:
      value: `value(*numpy arrays, **params)`, an array or a list of arrays.
      samples: `samples(prim)`, its samples.
      ulps: the distance that results may have, in units of the last place.
      whole: whether this is the place of the greatest element instead of each one.
      least: this place is at least that of a number of this magnitude.
      zeros: whether the signs of zeros are determined in complex results.
      view: results -> their determined part, where they are not unique.
      through: the primitive as a function of numpy arrays, where its operands are not arrays:
        `through(prim, *values, **params)`.
    """

    value: Callable[..., Any]
    samples: Callable[[Primitive], Iterator[Sample]]
    ulps: float = 0.0
    whole: bool = False
    least: float = 0.0
    zeros: bool = True
    view: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None
    through: Callable[..., Any] | None = None


def ordinary(dtype: np.dtype | str, shape: tuple[int, ...] = (2, 3), seed: int = 0) -> np.ndarray:
    """Return distinct small numbers: positive and negative ones, none near zero or a half."""
    dtype, n = np.dtype(dtype), int(np.prod(shape))
    rng = np.random.default_rng(seed)
    if category(dtype) == INTEGER:
        return (rng.permutation(n) % 7 + 1).reshape(shape).astype(dtype)
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.permutation(np.linspace(-1.9, 1.7, n)) + 0.03
    if category(dtype) == COMPLEX:
        x = x + 1j * rng.permutation(x)
    return x.reshape(shape).astype(dtype)


def elementwise(
    count: int,
    /,
    *,
    lift: Callable | None = None,
    complexes: list[complex | int] | None = None,
    without: str = "",
    shapes: Sequence[tuple[int, ...]] = ((0, 2), ()),
    **params: object,
) -> Callable[[Primitive], Iterator[Sample]]:
    """Return samples of an operation on elements of `count` operands: an ordinary one, every edge
    (every tuple of edges) of every dtype that the type rule accepts, and other shapes.

    Args:
      count: the number of operands.
      lift: `lift(*ordinary operands)` maps these into the function's domain.
      complexes: complex numbers to use instead of the edges.
      without: names of dtypes to leave out.
      shapes: shapes of further samples.
      params: parameters of the primitive.
    """

    def samples(prim: Primitive) -> Iterator[Sample]:
        dtypes = [d for d in accepted(prim, count, params=params) if d.name not in without]
        first = np.dtype(np.float32) if np.float32 in dtypes else dtypes[-1]
        bring = lift or (lambda *xs: xs)
        yield Sample(bring(*[ordinary(first, seed=k) for k in range(count)]), params)
        for dtype in dtypes:
            own = complexes is not None and category(dtype) == COMPLEX
            values = np.array(complexes, dtype) if own else edges(dtype)
            yield Sample(tuple(tuples(values, count)), params)
        for shape in shapes:
            yield Sample(bring(*[ordinary(first, shape, 7)] * count), params)

    return samples


def stored(shape: Callable[[np.ndarray], Any] = lambda x: x) -> Iterator[np.ndarray]:
    """Return the edges of dtypes of every width and kind, as vectors, or as `shape(vector)`."""
    names = "bool int4 uint8 int64 float8_e4m3fn float8_e5m2 bfloat16 float16 float64 complex64"
    for name in names.split():
        yield shape(edges(name))
