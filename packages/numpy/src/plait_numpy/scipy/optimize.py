"""Minima of functions, with the names of scipy.optimize.

Invariant: one compiled loop, whose steps depend on values and whose number is bounded.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from plait.errors import ArgumentError, AxisError
from plait.ext import Literal
from plait.ext.control import while_loop
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import all_, max_, sum_
from plait.ext.ops.shape import convert, expand_dims
from plait.ext.rules import resolve
from plait.ext.surface import advise as _advise
from plait.ext.surface import value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from ..exact import dot
from ..numpy.matrices import eye
from ..refusals import explained

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """The result of `minimize`.

    Attributes:
      x: the minimum found.
      success: whether the gradient there is as small as requested.
      status: 0 for success, 1 after too many steps, 3 if no step decreased the function any more.
      fun: the value there.
      jac: the gradient there.
      hess_inv: the estimate of the inverse of the matrix of second derivatives.
      nfev, njev: numbers of evaluations of the function, and of its gradient.
      nit: number of steps.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array
    nfev: Array
    njev: Array
    nit: Array


class _Search(NamedTuple):
    """A step length, between one that was too short and one that was too long."""

    step: Any
    low: Any
    high: Any
    tries: Any
    done: Any
    fun: Any
    jac: Any


def _searched(f: Callable, x: Value, p: Value, fun: Value, jac: Value, tries: int) -> _Search:
    """Return a step along `p` that satisfies the conditions of Wolfe: the function is less, and
    less steep.  By bisection: A. S. Lewis, M. L. Overton, "Nonsmooth optimization via
    quasi-Newton methods", 2013, algorithm 2.6."""
    slope = dot(jac, p)
    number = lambda v: Literal(v, fun.aval.strong())  # noqa: E731

    def wanted(s: _Search) -> Any:
        return el.and_(el.not_(s.done), el.lt(s.tries, tries))

    def turn(s: _Search) -> _Search:
        new, slopes = f(el.add(x, el.mul(p, s.step)))
        limit = el.add(fun, el.mul(el.mul(s.step, 1e-4), slope))
        long = el.not_(el.le(new, limit))  # nan is too long
        short = el.lt(dot(slopes, p), el.mul(slope, 0.9))
        low = el.select(el.and_(short, el.not_(long)), s.step, s.low)
        high = el.select(long, s.step, s.high)
        done = el.not_(el.or_(long, short))
        further = el.select(
            el.lt(high, float("inf")), el.mul(el.add(low, high), 0.5), el.mul(low, 2.0)
        )
        step = el.select(done, s.step, further)
        return _Search(step, low, high, el.add(s.tries, 1), done, new, slopes)

    start = _Search(number(1.0), number(0.0), number(float("inf")), 0, False, fun, jac)
    return while_loop(wanted, turn, start)


class _State(NamedTuple):
    x: Any
    fun: Any
    jac: Any
    hess_inv: Any
    evaluations: Any
    steps: Any
    stuck: Any


def _updated(inverse: Value, s: Value, y: Value) -> Any:
    """Return the estimate after a step `s` that changed the gradient by `y` (J. Nocedal, S. J.
    Wright, "Numerical optimization", 2006, equation 6.17)."""
    sy = dot(s, y)
    good = el.gt(sy, 0)
    r = el.div(1, el.select(good, sy, 1))
    outer = lambda a, b: el.mul(expand_dims(a, 1), expand_dims(b, 0))  # noqa: E731
    hy = dot(inverse, y)
    curved = el.mul(el.add(1, el.mul(r, dot(y, hy))), r)
    new = el.add(inverse, el.mul(outer(s, s), curved))
    new = el.sub(new, el.mul(el.add(outer(s, hy), outer(hy, s)), r))
    return el.select(good, new, inverse)


@explained
def minimize(
    fun: Callable, x0: ArrayLike, args: tuple = (), *, method: str, tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """Find a local minimum of a function of a vector, by the method "BFGS".

    Args:
      fun: takes a vector (and `args`), returns a number; it must have a gradient.
      x0: the start, a vector of floats.
      args: further arguments of `fun`.
      method: "BFGS".
      tol: short for the option "gtol".
      options: "gtol": the greatest part of the gradient that counts as zero (1e-5); "maxiter": the
        maximal number of steps (200 for each variable); "norm": inf or 2, the norm of the gradient;
        "line_search_maxiter": the maximal number of lengths tried for one step (30).

    Returns OptimizeResults.  Raises TypeRule for another method or option, AxisError for a start
    that is not a vector.  As scipy.optimize.minimize; plait-autodiff computes the gradient.

    >>> import numpy as np, plait
    >>> bowl = lambda x: ((x - 3.0) ** 2).sum()
    >>> plait.scipy.optimize.minimize(bowl, np.zeros(2, np.float32), method="BFGS").x.tolist()
    [3.0, 3.0]
    """
    if method.lower() != "bfgs":
        raise ArgumentError(f"there is no method {method!r}", fix='use method="BFGS"')
    known = {"gtol": 1e-5 if tol is None else tol, "maxiter": None, "norm": float("inf"),
             "line_search_maxiter": 30}  # fmt: skip
    for name, v in (options or {}).items():
        if name not in known:
            raise ArgumentError(
                f"BFGS has no option {name!r}", fix=f"use one of {', '.join(known)}"
            )
        known[name] = v
    (x,) = el.floating((x0,))
    if x.aval.ndim != 1:
        raise AxisError(f"minimize from {x.aval!r}", fix="start from a vector: use .ravel()")
    limit = known["maxiter"]
    limit = 200 * x.aval.shape[0] if limit is None else limit
    f = resolve("value_and_grad")(lambda v: fun(v, *args))
    return _descended(f, x, known, limit)


def _descended(f: Callable, x: Value, options: dict[str, Any], limit: int) -> OptimizeResults:
    def size(jac: Value) -> Any:
        if options["norm"] == 2:
            return el.sqrt(sum_(el.square(jac)))
        return max_(el.abs_(jac), initial=0)

    def wanted(s: _State) -> Any:
        going = el.and_(el.lt(s.steps, limit), el.not_(s.stuck))
        return el.and_(going, el.gt(size(s.jac), options["gtol"]))

    def turn(s: _State) -> _State:
        p = el.neg(dot(s.hess_inv, s.jac))
        found = _searched(f, s.x, p, s.fun, s.jac, options["line_search_maxiter"])
        better = el.lt(found.fun, s.fun)
        keep = lambda new, old: el.select(better, new, old)  # noqa: E731
        step = el.mul(p, found.step)
        change = el.sub(found.jac, s.jac)
        # The first estimate is rescaled to the function's curvature (Nocedal, Wright, 6.20): where
        # that is far from 1, the update would cancel to rounding errors.
        scale = el.div(dot(step, change), dot(change, change))
        first = el.and_(el.eq(s.steps, 0), el.gt(scale, 0))
        inverse = el.mul(s.hess_inv, el.select(first, scale, 1))
        inverse = _updated(inverse, step, change)
        return _State(
            keep(el.add(s.x, step), s.x), keep(found.fun, s.fun), keep(found.jac, s.jac),
            keep(inverse, s.hess_inv), el.add(s.evaluations, found.tries), el.add(s.steps, 1),
            el.not_(better),
        )  # fmt: skip

    fun, jac = f(x)
    start = _State(x, fun, jac, eye(x.aval.shape[0], dtype=x.aval.dtype), 1, 0, False)
    end = while_loop(wanted, turn, start)
    success = el.and_(el.le(size(end.jac), options["gtol"]), all_(el.is_finite(end.x)))
    status = el.select(success, 0, el.select(end.stuck, 3, 1))
    return OptimizeResults(
        end.x, success, convert(value(status), "int32"), end.fun, end.jac, end.hess_inv,
        end.evaluations, end.evaluations, end.steps,
    )  # fmt: skip


_advise("plait.scipy.optimize", globals())
