"""Rules of `sparsify` for the operations of core.

Invariant: a rule gets at least one BCOO, and returns the value that the operation has on the dense
arrays, where elements without an entry are exactly zero.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import plait.numpy as pnp
from plait import ext
from plait.ext.errors import ArgumentError
from plait.ext.ir import Primitive
from plait.ext.ops import contraction as ct
from plait.ext.ops import elementwise as el
from plait.ext.ops import indexing as ix
from plait.ext.ops import reduction as rd
from plait.ext.ops import shape as sh
from plait.ext.trace import Value

from . import arithmetic, structure
from .conversion import densified
from .entries import Entries
from .products import dot_general
from .transform import sparsify_rules, todense_p

if TYPE_CHECKING:
    from .bcoo import BCOO

__all__: list[str] = []

rule = sparsify_rules.rule


@rule(ext.ZeroPreserving)
def _(prim: Primitive, /, *args: "BCOO", **params: object):
    """Apply a function of one operand that maps zero to zero to the values."""
    if len(args) != 1:
        raise arithmetic.dense_refused(str(prim))
    is_linear = ext.Linear in prim.traits
    return arithmetic.mapped(args[0], lambda v: prim.bind(v, **params), is_linear)


def _of_values(prim: Primitive) -> None:
    """Register a function of one operand that maps zero to zero, without that trait."""

    @rule(prim)
    def _(x: "BCOO", /, **params: object):
        is_linear = ext.Linear in prim.traits
        return arithmetic.mapped(x, lambda v: prim.bind(v, **params), is_linear)


for _prim in (el.floor, el.ceil, el.round_even, el.round_away, el.real, el.imag, el.conj, el.stop,
              el.reduce_precision, sh.convert_):  # fmt: skip
    _of_values(_prim)


@rule(ext.Elementwise)
def _(prim: Primitive, /, *args: "BCOO", **params: object):
    """Refuse a function that does not map zero to zero."""
    raise arithmetic.dense_refused(str(prim))


@rule(el.integer_pow)
def _(x: "BCOO", exponent: int):
    if exponent <= 0:
        raise arithmetic.dense_refused(f"the power {exponent}")
    return arithmetic.mapped(x, lambda v: el.integer_pow.bind(v, exponent=exponent))


@rule(el.mul)
def _(x, y):
    sparse, dense = (x, y) if isinstance(x, Entries) else (y, x)
    if isinstance(dense, ext.Literal):
        return arithmetic.mapped(sparse, lambda v: el.mul.bind(v, _alike(dense, v)), True)
    return arithmetic.multiplied(x, y)


@rule(el.add)
def _(x: "BCOO", y: Value):
    return _sum("a sum with a number", x, y)


@rule(el.sub)
def _(x, y):
    minus = arithmetic.mapped(y, lambda v: -v, True) if isinstance(y, Entries) else y
    if isinstance(y, Entries | ext.Literal):
        return _sum("a difference with a number", x, minus)
    return arithmetic.added(x, -y)


def _sum(name: str, x: "Value | BCOO", y: "Value | BCOO") -> Any:
    """Return a sum; a number stands for a dense array, and is refused."""
    if isinstance(x, ext.Literal) or isinstance(y, ext.Literal):
        raise arithmetic.dense_refused(name)
    return arithmetic.added(x, y)


def _quotient(prim: Primitive, x: Any, y: "Value | BCOO", is_linear: bool) -> Any:
    """Return a quotient, or a remainder, of a sparse array by a dense one."""
    if isinstance(y, ext.Literal):
        return arithmetic.mapped(x, lambda v: prim.bind(v, _alike(y, v)), is_linear)
    x = x if is_linear or isinstance(y, Entries) else arithmetic.with_single_entries(x)
    return arithmetic.divided(x, y, lambda v, w: prim.bind(v, pnp.broadcast_to(w, v.shape)))


@rule(el.div)
def _(x: "BCOO", y: Value):
    return _quotient(el.div, x, y, x.dtype.kind not in "iu")


@rule(el.rem)
def _(x, y):
    return _quotient(el.rem, x, y, False)


@rule(el.pow_)
def _(x, y):
    power = y.value if isinstance(y, ext.Literal) else None
    if power is None or isinstance(power, complex) or not power > 0:
        raise arithmetic.dense_refused("a power that is not a positive number")
    return arithmetic.mapped(x, lambda v: el.pow_.bind(v, _alike(y, v)))


def _alike(number: Any, v: Any) -> Any:
    """Return a number in the shape of an array."""
    return pnp.full(v.shape, number.value, v.dtype)


@rule(ct.dot_general)
def _(x: "BCOO", y: "Value | BCOO", contract, shared, precision: str, out_dtype: object):
    return dot_general(x, y, (contract, shared), precision, out_dtype)


@rule(sh.transpose_)
def _(x: "BCOO", perm: tuple[int, ...]):
    return structure.transposed(x, perm)


@rule(sh.reshape_)
def _(x: "BCOO", shape: tuple[int, ...]):
    return structure.reshaped(x, shape)


@rule(sh.squeeze_)
def _(x, axes: Sequence[int]):
    return structure.squeezed(x, axes)


@rule(sh.rev)
def _(x, axes: Sequence[int]):
    return structure.reversed_along(x, axes)


@rule(sh.slice_)
def _(x, starts, limits, strides):
    return structure.piece(x, starts, limits, strides)


@rule(sh.broadcast_in_dim)
def _(x, shape, dims):
    return structure.broadcast(x, shape, dims)


@rule(sh.concatenate_)
def _(*xs, axis):
    if not all(isinstance(x, Entries) for x in xs):
        raise ArgumentError(
            "concatenate expected all arrays sparse or all dense, got both",
            fix="make them all dense, plait.sparse.todense(x), or all sparse",
        )
    return structure.concatenated(xs, axis)


@rule(ix.dynamic_slice_)
def _(x, *starts, sizes):
    if not isinstance(x, Entries) or any(isinstance(k, Entries) for k in starts):
        raise arithmetic.dense_refused("an index that is")
    return structure.dynamic_piece(x, starts, sizes)


@rule(rd.reduce_sum)
def _(x: "BCOO", axes: tuple[int, ...]):
    out = structure.summed(x, axes)
    return out if out.ndim else densified(out)


@rule(sh.barrier)
def _(*xs):
    return list(xs)


@rule(todense_p)
def _(x):
    return densified(x)
