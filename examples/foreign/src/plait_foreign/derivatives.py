"""Derivatives of the recurrence, for plait-autodiff's tables.

With y = recur(x, decay), dy[i] = decay[i] * dy[i - 1] + (dx[i] + ddecay[i] * y[i - 1]): the
recurrence of another input. It is linear in x; its transpose runs from the other end, with each
decay used one step earlier.

Invariant: a tangent is linear in the tangents, and made by `recur` itself.
"""

import plait.numpy as pnp
from plait_autodiff.ext import ZERO, jvp_rules, transpose_rules

from . import recur


def before(y, reverse):
    """y[i - 1], or y[i + 1] if `reverse`; zero outside."""
    zero = pnp.zeros_like(y[..., :1])
    parts = [y[..., 1:], zero] if reverse else [zero, y[..., :-1]]
    return pnp.concatenate(parts, axis=-1)


@jvp_rules.rule(recur)
def _(xs, ts, reverse=False):
    (x, decay), (dx, ddecay) = xs, ts
    y = recur.bind(x, decay, reverse=reverse)
    t = dx if ddecay is ZERO else ddecay * before(y, reverse)
    if dx is not ZERO and ddecay is not ZERO:
        t = t + dx
    return y, recur.bind(t, decay, reverse=reverse)


@transpose_rules.rule(recur)
def _(ct, x, decay, reverse=False):
    return recur.bind(ct, before(decay, not reverse), reverse=not reverse), None
