"""Hessian-vector and vector-Hessian products.

Invariant: no Hessian is formed; a product costs a small multiple of the function.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.errors import border

from .api import grad, jvp, vjp
from .tangents import expect_function


@border
def hvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Multiply the Hessian of a scalar function by a vector, forward over reverse.

    Source: Pearlmutter, "Fast exact multiplication by the Hessian", 1994.

    Args:
      fun: maps trees of real arrays to a scalar.
      primals: a tuple of its arguments.
      tangents: the vector, a tuple of trees like `primals`.

    Returns:
      A tuple of trees like `primals`.

    >>> import plait
    >>> plait.hvp(lambda x: x ** 3, (2.0,), (10.0,))
    (Array(120., dtype=float32, weak_type=True),)
    """
    expect_function(fun, "hvp")
    gradient = grad(fun, argnums=tuple(range(len(primals))))
    return jvp(gradient, primals, tangents)[1]


@border
def vhp(fun: Callable, primals: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
    """Multiply a vector by the Hessian of a scalar function, reverse over reverse.

    The result is that of `hvp`.  Use it for functions without a forward mode (`custom_vjp`).

    >>> import plait
    >>> plait.vhp(lambda x: x ** 3, (2.0,), (10.0,))
    (Array(120., dtype=float32, weak_type=True),)
    """
    expect_function(fun, "vhp")
    gradient = grad(fun, argnums=tuple(range(len(primals))))
    _, pullback = vjp(gradient, *primals)
    return pullback(tuple(cotangents))
