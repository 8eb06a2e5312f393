"""`jax.experimental.ode`: initial value problems, by an explicit Runge-Kutta method.

The method is that of Dormand and Prince (1980), of order 5.  The interpolation of order 4 is from
Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.6.
Reverse mode integrates the adjoint equation backwards in time.

Invariant: memory does not depend on the number of steps.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax, tree_util
from plait.errors import ShapeError
from plait.flatten_util import ravel_pytree

__all__ = ["odeint"]

Flow = Callable[[Any, Any], Any]

_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
_STAGES = [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
_ERROR = [71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]
_INSIDE = [
    -12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
]  # fmt: skip
"""Weights of the slopes in the highest coefficient of the interpolation."""


class Limits(NamedTuple):
    """Tolerances, the largest number of steps between two times, and the longest step."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solve dy/dt = func(y, t, *args), and return the solution at the times `t`.

    Args:
      func: returns the derivatives, a tree like `y0`.
      y0: a tree of arrays of floats, the solution at `t[0]`.
      t: a vector of increasing times.
      args: trees of arrays, by which the solution can be differentiated.
      rtol, atol: tolerances of the error of one step.
      mxstep: the largest number of steps between two times.
      hmax: the longest step.

    Returns a tree like `y0`, whose arrays have a first axis for the times.  Raises ShapeError
    unless `t` is a vector.

    >>> odeint(lambda y, t: -y, 1.0, np.array([0.0, 1.0])).round(4).tolist()
    [1.0, 0.3679]
    """
    if pnp.ndim(t) != 1:
        raise ShapeError(
            f"odeint: t must be a vector of times, got shape {pnp.shape(t)}",
            fix="write t=jnp.array([t0, t1])",
        )
    times = pnp.asarray(t)
    times = times.astype(pnp.result_type(times, float))
    flow, more = plait.closure_convert(func, y0, times[0], *args)
    flat, unravel = ravel_pytree(y0)

    def slope(y: Any, at: Any, *rest: Any) -> Any:
        return ravel_pytree(flow(unravel(y), at, *rest))[0]

    limits = Limits(rtol, atol, mxstep, hmax)
    found = _differentiable()(slope, limits, flat, times, *args, *more)
    return plait.vmap(unravel)(found)


# ---- steps -----------------------------------------------------------------------------------


class Step(NamedTuple):
    """The integration after a step.

    Attributes:
      count: the number of steps since the last requested time.
      y, slope, t: the solution, its derivative and the time.
      dt: the length of the next step.
      before: the time before the step.
      curve: five coefficients of the interpolation over the step.
    """

    count: Any
    y: Any
    slope: Any
    t: Any
    dt: Any
    before: Any
    curve: Any


def _norm(x: Any) -> Any:
    """Return the root of the mean of squares."""
    return pnp.sqrt(pnp.mean(pnp.square(pnp.abs(x))))


def _combined(weights: list[float], slopes: list[Any]) -> Any:
    return sum((k * w for w, k in zip(weights[1:], slopes[1:]) if w), slopes[0] * weights[0])


def _first_length(flow: Flow, y: Any, t: Any, slope: Any, limits: Limits) -> Any:
    """Return the length of a first step, by the sizes of two derivatives (Hairer, II.4)."""
    scale = limits.atol + pnp.abs(y) * limits.rtol
    d0, d1 = _norm(y / scale), _norm(slope / scale)
    flat = (d0 < 1e-5) | (d1 < 1e-5)
    trial = pnp.where(flat, 1e-6, 0.01 * d0 / pnp.where(flat, 1.0, d1))
    other = flow(y + trial * slope, t + trial)
    d2 = pnp.maximum(d1, _norm((other - slope) / scale) / trial)
    tiny = d2 <= 1e-15
    by_slopes = pnp.where(
        tiny, pnp.maximum(1e-6, trial * 1e-3), (0.01 / pnp.where(tiny, 1.0, d2)) ** 0.2
    )
    return pnp.minimum(100 * trial, by_slopes)


def _attempt(flow: Flow, limits: Limits, s: Step) -> Step:
    """Return the state after a step, or the state before it with a shorter step to try."""
    slopes = [s.slope]
    y = s.y
    for weights, part in zip(_STAGES, _TIMES):
        y = s.y + s.dt * _combined(weights, slopes)
        slopes.append(flow(y, s.t + part * s.dt))
    scale = limits.atol + limits.rtol * pnp.maximum(pnp.abs(s.y), pnp.abs(y))
    error = _norm(s.dt * _combined(_ERROR, slopes) / scale)
    factor = pnp.clip(0.9 * pnp.maximum(error, 1e-10) ** -0.2, 0.2, 10.0)
    # A step that succeeds is not followed by a shorter one.
    factor = pnp.where(error < 1, pnp.maximum(factor, 1.0), factor)
    dt = pnp.clip(s.dt * factor, 0.0, limits.hmax).astype(s.dt.dtype)
    change = y - s.y
    start = s.dt * slopes[0] - change
    curve = pnp.stack(
        [s.y, change, start, change - s.dt * slopes[-1] - start, s.dt * _combined(_INSIDE, slopes)]
    )
    after = Step(s.count + 1, y, slopes[-1], s.t + s.dt, dt, s.t, curve)
    stays = s._replace(count=s.count + 1, dt=dt)
    return Step(*[pnp.where(error <= 1, a, b) for a, b in zip(after, stays)])


def _between(s: Step, t: Any) -> Any:
    """Return the solution at a time in the last step."""
    length = s.t - s.before
    x = pnp.where(length > 0, (t - s.before) / pnp.where(length > 0, length, 1), 0)
    a, b, c, d, e = s.curve
    return a + x * (b + (1 - x) * (c + x * (d + (1 - x) * e)))


def _integrate(flow: Flow, limits: Limits, y0: Any, times: Any) -> Any:
    """Return the solutions at the times, in rows."""
    slope = flow(y0, times[0])
    length = pnp.clip(_first_length(flow, y0, times[0], slope, limits), 0.0, limits.hmax)
    curve = pnp.concatenate([y0[None], pnp.zeros((4, *y0.shape), y0.dtype)])
    start = Step(0, y0, slope, times[0], length.astype(times.dtype), times[0], curve)

    def until(s: Step, t: Any) -> tuple[Step, Any]:
        def goes_on(s: Step) -> Any:
            return (s.t < t) & (s.count < limits.mxstep) & (s.dt > 0)

        s = lax.while_loop(goes_on, lambda s: _attempt(flow, limits, s), s._replace(count=0))
        return s, _between(s, t)

    _, rows = lax.scan(until, start, times[1:])
    return pnp.concatenate([y0[None], rows])


# ---- derivatives -----------------------------------------------------------------------------


def _forward(slope: Any, limits: Limits, y0: Any, times: Any, *args: Any) -> tuple[Any, Any]:
    ys = _solve(slope, limits, y0, times, *args)
    return ys, (ys, times, args)


def _solve(slope: Any, limits: Limits, y0: Any, times: Any, *args: Any) -> Any:
    return _integrate(lambda y, t: slope(y, t, *args), limits, y0, times)


def _backward(slope: Any, limits: Limits, kept: Any, cts: Any) -> Any:
    """Integrate the adjoint equation from the last time to the first."""
    ys, times, args = kept
    leaves, tree = tree_util.tree_flatten(args)
    varies = [pnp.issubdtype(pnp.result_type(x), pnp.inexact) for x in leaves]
    inputs = [x for x, v in zip(leaves, varies) if v]

    def of(y: Any, t: Any, given: Any) -> Any:
        rest = iter(given)
        whole = [next(rest) if v else x for x, v in zip(leaves, varies)]
        return slope(y, t, *tree_util.tree_unflatten(tree, whole))

    state, unravel = ravel_pytree((ys[-1], cts[-1], times[-1], inputs))

    def adjoint(flat: Any, back: Any) -> Any:
        # Time runs backwards: `back` is minus the time.
        y, ct, _, _ = unravel(flat)
        dy, pull = plait.vjp(of, y, -back, inputs)
        return ravel_pytree((-dy, *pull(ct)))[0]

    def through(carry: Any, i: Any) -> tuple[Any, Any]:
        ct, ct_first, ct_inputs = carry
        ct_time = pnp.vdot(of(ys[i], times[i], inputs), cts[i])
        start = ravel_pytree((ys[i], ct, ct_first - ct_time, ct_inputs))[0]
        ends = pnp.stack([-times[i], -times[i - 1]])
        end = _integrate(adjoint, limits, start, ends)[1]
        _, ct, ct_first, ct_inputs = unravel(end)
        return (ct + cts[i - 1], ct_first, ct_inputs), ct_time

    zeros = tree_util.tree_map(pnp.zeros_like, inputs)
    start = (cts[-1], pnp.zeros_like(times[0]), zeros)
    order = pnp.arange(len(times) - 1, 0, -1)
    (ct, ct_first, ct_inputs), ct_times = lax.scan(through, start, order)
    ct_times = pnp.concatenate([ct_first[None], ct_times[::-1]])
    rest = iter(ct_inputs)
    whole = [
        next(rest) if v else np.zeros(pnp.shape(x), plait.float0) for x, v in zip(leaves, varies)
    ]
    return (ct, ct_times, *tree_util.tree_unflatten(tree, whole))


@functools.cache
def _differentiable() -> Callable[..., Any]:
    """Return the solver with its derivative; only a call needs the package of derivatives."""
    solve = plait.custom_vjp(_solve, nondiff_argnums=(0, 1))
    solve.defvjp(_forward, _backward)
    return solve
