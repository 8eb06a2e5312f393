"""Vector quantisation.

Invariant: among equally near codes the first one is taken.
"""

from plait.errors import AxisError
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import argmin, min_, sum_
from plait.ext.ops.shape import expand_dims
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike


@fused
def _nearest(obs: Value, codes: Value) -> tuple:
    x, y = el.floating((expand_dims(obs, 1), expand_dims(codes, 0)))
    square = el.square(el.sub(x, y))
    if square.aval.ndim == 3:
        square = sum_(square, -1)
    return argmin(square, 1), el.sqrt(min_(square, 1))


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the nearest code of each observation, and its distance.

    Args:
      obs: (observations, features), or a vector of numbers.
      code_book: (codes, features), or a vector.
      check_finite: accepted for compatibility; nan is far from every code.

    Returns (indices of codes, distances).  Raises AxisError if the features disagree.  As
    scipy.cluster.vq.vq.

    >>> import numpy as np, plait
    >>> codes, far = plait.scipy.cluster.vq.vq(np.float32([0.9, 3.0]), np.float32([1.0, 2.5]))
    >>> codes.tolist()
    [0, 1]
    """
    x, y = value(obs), value(code_book)
    if x.aval.ndim != y.aval.ndim or x.aval.shape[1:] != y.aval.shape[1:] or x.aval.ndim > 2:
        raise AxisError(
            f"vq of observations {x.aval!r} and codes {y.aval!r}",
            fix="give two matrices with as many columns, or two vectors",
        )
    if x.aval.ndim == 0:
        raise AxisError(f"vq of {x.aval!r}", fix="give a vector at least")
    return _nearest(x, y)
