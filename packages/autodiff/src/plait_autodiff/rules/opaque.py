"""Derivatives of arrays with opaque elements, random keys among them.

The tangents of opaque elements, if they have any, are numbers.  Keys and bits have no derivatives;
values computed from bits and parameters do, by the rules of the operations that compute them.

Invariant: a tangent of an opaque value is an array of numbers, of `aval.tangent_type`; no
operation is linear in an opaque operand.
"""

from plait.ext.ir import Primitive
from plait.ext.ops import random
from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.ops.shape import convert
from plait.ext.trace import Value

from ..forward import ZERO, jvp_rules


@jvp_rules.rule(wrap_)
def _(xs: list[Value], ts, *, dtype):
    out = wrap_.bind(*xs, dtype=dtype)
    same = out.aval.varies and not dtype.shape
    return out, convert(ts[0], dtype.tangent_dtype) if same and ts[0] is not ZERO else ZERO


@jvp_rules.rule(unwrap_)
def _(xs: list[Value], ts):
    out = unwrap_.bind(*xs)
    same = out.aval.inexact and out.aval.shape == xs[0].aval.shape
    return out, convert(ts[0], out.aval.dtype) if same and ts[0] is not ZERO else ZERO


def _constant(prim: Primitive) -> None:
    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: object, /, **params: object):
        return prim.bind(*xs, **params), ZERO


for _prim in (
    random.random_seed,
    random.random_split,
    random.random_fold_in,
    random.random_bits,
    random.random_clone,
):
    _constant(_prim)


@jvp_rules.rule(random.rng_bit_generator)
def _(xs: list[Value], ts: object, /, **params: object):
    return random.rng_bit_generator.bind(*xs, **params), [ZERO, ZERO]


@jvp_rules.rule(random.threefry2x32)
def _(xs: list[Value], ts: object):
    return random.threefry2x32.bind(*xs), [ZERO, ZERO]
