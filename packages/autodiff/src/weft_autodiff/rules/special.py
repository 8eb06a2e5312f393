"""Derivatives of special functions.

Where a closed form is known it is used.  Derivatives in shape parameters that have none are those
of the algorithm that works the function out, along one parameter; the tangent is multiplied by
them, so they are transposed like any factor.

Invariant: orders (n of polygamma and expn) and the exponent of zeta are no variables: a tangent of
one is refused, not ignored.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

from weft.carrier import expand_rules
from weft.errors import TypeRule
from weft.interpreter import current, opened
from weft.ir import Program
from weft.ops.elementwise import (
    add,
    digamma,
    div,
    eq,
    exp,
    log,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    select,
    sign,
)
from weft.ops.higher import call
from weft.ops.incomplete import (
    beta_density,
    gamma_density,
    igamma,
    igamma_grad_a,
    igammac,
    random_gamma_grad,
    regularized_incomplete_beta,
)
from weft.ops.integrals import expi, expn, spence
from weft.ops.special import (
    bessel_i0e,
    bessel_i1e,
    far_left,
    lbeta,
    log_ndtr,
    mills,
    ndtri,
    polygamma,
    zeta,
)
from weft.staging import staged
from weft.types import Aval
from weft.values import Literal

from ..forward import JVP, ZERO, jvp_rules

# ---- by partial derivatives ------------------------------------------------------------------

Slope = Callable[..., Any] | None


def _partials(prim: Any, *slopes: Slope) -> None:
    """slope(*xs, out): the derivative in each operand, in the type of the result; None: there is
    none."""

    @jvp_rules.rule(prim)
    def _(xs, ts):
        out, total = prim.bind(*xs), ZERO
        for i, (t, slope) in enumerate(zip(ts, slopes, strict=True)):
            if t is ZERO:
                continue
            if slope is None:
                raise TypeRule(
                    f"{prim} has no derivative in operand {i}",
                    fix="differentiate in the others only, or stop this one: "
                    "weft.lax.stop_gradient(...)",
                )
            term = mul.bind(t, slope(*xs, out))
            total = term if total is ZERO else add.bind(total, term)
        return out, total


@functools.cache
def _program(prim: Any, i: int, avals: tuple[Aval, ...]) -> Program:
    """The derivative in operand `i`, by going through what the primitive is made of."""
    say = expand_rules[prim]

    def slope(*xs: Any) -> list[Any]:
        j = JVP(current())
        with opened(j):
            duals = [j.dual(x, Literal(1, x.aval)) if k == i else x for k, x in enumerate(xs)]
            out = say(*duals)
        form, parts = j.split(out)
        return [parts[1] if form is not None else Literal(0, avals[0])]

    return staged(slope, avals, f"{prim.name.rpartition('.')[2]}_slope")


def _through(prim: Any, i: int) -> Callable[..., Any]:
    def slope(*xs: Any) -> Any:
        *xs_, _out = xs
        avals = tuple([x.aval.strong() for x in xs_])
        return call.bind(*xs_, program=_program(prim, i, avals))[0]

    return slope


# ---- gamma and beta --------------------------------------------------------------------------

_partials(zeta, None, lambda s, q, out: neg(mul(s, zeta(add(s, 1.0), q))))
_partials(polygamma, None, lambda n, x, out: polygamma(add(n, 1.0), x))
_partials(
    lbeta,
    lambda a, b, out: digamma(a) - digamma(add(a, b)),
    lambda a, b, out: digamma(b) - digamma(add(a, b)),
)
_partials(
    igamma,
    lambda a, x, out: igamma_grad_a(a, x),
    lambda a, x, out: gamma_density(a, x),
)
_partials(
    igammac,
    lambda a, x, out: neg(igamma_grad_a(a, x)),
    lambda a, x, out: neg(gamma_density(a, x)),
)
_partials(
    igamma_grad_a,
    _through(igamma_grad_a, 0),
    lambda a, x, out: gamma_density(a, x) * (log(x) - digamma(a)),
)
_partials(random_gamma_grad, _through(random_gamma_grad, 0), _through(random_gamma_grad, 1))
_partials(
    regularized_incomplete_beta,
    _through(regularized_incomplete_beta, 0),
    _through(regularized_incomplete_beta, 1),
    lambda a, b, x, out: beta_density(a, b, x),
)

# ---- Bessel functions ------------------------------------------------------------------------


def _i1e_slope(x: Any, out: Any) -> Any:
    """DLMF 10.29.2; 1/2 at 0."""
    zero = eq(x, 0.0)
    r = div(1.0, select(zero, 1.0, x))
    return select(zero, 0.5, bessel_i0e(x) - out * (sign(x) + r))


_partials(bessel_i0e, lambda x, out: bessel_i1e(x) - sign(x) * out)
_partials(bessel_i1e, _i1e_slope)

# ---- the normal distribution -------------------------------------------------------------------

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def _hazard(x: Any, out: Any) -> Any:
    """The density divided by the distribution function."""
    far = far_left(x)
    left = lt(x, far)
    y, o = select(left, 0.0, x), select(left, 0.0, out)
    z = minimum(x, far)
    return select(left, neg(z) / mills(z), exp(-0.5 * y * y - _LOG_ROOT - o))


_partials(log_ndtr, _hazard)
_partials(ndtri, lambda p, out: exp(0.5 * out * out + _LOG_ROOT))

# ---- integrals -----------------------------------------------------------------------------


def _expn_slope(n: Any, x: Any, out: Any) -> Any:
    """DLMF 8.19.13; E_0 is e ** -x / x."""
    last = neg(out) * (1.0 + div(1.0, x))
    return select(lt(n, 1.0), last, neg(expn(maximum(n - 1.0, 0.0), x)))


def _spence_slope(x: Any, out: Any) -> Any:
    one = eq(x, 1.0)
    y = select(one, 2.0, x)
    return select(one, -1.0, log(y) / (1.0 - y))


_partials(expn, None, _expn_slope)
_partials(expi, lambda x, out: exp(x) / x)
_partials(spence, _spence_slope)
