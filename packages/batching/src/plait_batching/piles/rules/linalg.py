"""Factorisations of ragged matrices: each is embedded as a block into a larger one.

The entries beside the block are chosen such that the factors of the larger matrix contain those of
the block: the identity, zero, or a number greater than all eigenvalues.

Invariant: both axes of a square matrix have one size.
"""

from collections.abc import Sequence
from typing import Any

import plait.numpy as pnp
from plait.ext.errors import MissingRule
from plait.ext.ir import Primitive
from plait.ext.trace import Value, use
from plait.ext.types import Aval
from plait_numpy.ext import linalg as la

from ...interpreter import batching_rules
from ..carrier import Ragged, pile_rules
from ..layouts import fit
from ..operation import PADDED


def _along(r: Ragged, x: Value) -> tuple[int, ...]:
    """Return which of the matrix axes are ragged."""
    return tuple([a for a in r.axes(x.aval) if a >= x.aval.ndim - 2])


def _filled(r: Ragged, x: Value, value: int = 0) -> Any:
    """Return padded matrices with `value` beyond the block."""
    return r.masked(r.data(x, PADDED), x.aval, _along(r, x), value)


def _beside_block(r: Ragged, x: Value, y: Value) -> Any:
    """Return a mask of the diagonal beyond the block, of padded square matrices."""
    n = x.aval.shape[-1]
    size = y.shape[-1]
    outside = pnp.arange(size)[None] >= r.lengths(n)[:, None]
    return (pnp.eye(size, dtype=bool) & outside[:, None]).reshape(
        (r.size, *(1,) * (y.ndim - 3), size, size)
    )


def _embedded(r: Ragged, x: Value, value: Any) -> Any:
    """Return padded matrices with `value` on the diagonal beyond the block, zero elsewhere."""
    y = _filled(r, x)
    if not _along(r, x):
        return y
    return pnp.where(_beside_block(r, x, y), pnp.asarray(value, y.dtype), y)


def _bound(r: Ragged, x: Value) -> Any:
    """Return a number greater than all eigenvalues and singular values of each example: twice a
    norm, plus one."""
    y = pnp.abs(_filled(r, x))
    axes = tuple(range(1, y.ndim))
    n = pnp.sqrt((y * y).sum(axes, keepdims=True))
    return 2 * n + 1


def _done(r: Ragged, prim: Primitive, xs: list, out: Any, params: dict) -> Any:
    """Apply the operation to padded operands."""
    rule: Any = batching_rules.find(prim)
    got, at = rule(r, xs, [0] * len(xs), **params)
    if not prim.many:
        return _result(r, out, got, at)
    return [_result(r, a, y, d) for a, y, d in zip(out, got, at, strict=True)]


def _result(r: Ragged, aval: Aval, y: Value, at: int) -> Any:
    y = r.move(y, at, 0)
    for a in r.axes(aval):
        y = fit(y, a + 1, r.caps.longest(aval.shape[a]))
    return r.result(aval, y, PADDED)


@pile_rules.rule(la.cholesky_)
def _(r, args, out, /, **params):
    return _done(r, la.cholesky_, [_embedded(r, args[0], 1)], out, params)


@pile_rules.rule(la.lu_)
def _(r, args, out):
    (x,) = args
    m, n = x.aval.shape[-2:]
    # Beside a block that is not square, rows of zeros are exchanged with none.
    return _done(r, la.lu_, [_embedded(r, x, 1) if m == n else _filled(r, x)], out, {})


def _by_zero(prim: Primitive) -> None:
    @pile_rules.rule(prim)
    def _(r, args: tuple[Value, ...], out: list[Aval]):
        return _done(r, prim, [_filled(r, args[0])], out, {})


for _prim in (la.geqp3, la.geqrf):  # pivoting takes columns of zeros last
    _by_zero(_prim)


def _of_reflectors(prim: Primitive) -> None:
    @pile_rules.rule(prim)
    def _(r, args: Sequence[Value], out: Aval, /, **params: object):
        x, taus, *others = args
        # A padded reflector has tau = 0, which makes it the identity.
        ts = r.masked(r.data(taus, PADDED), taus.aval, (taus.aval.ndim - 1,), 0)
        xs = [_filled(r, x), ts, *[_filled(r, c) for c in others]]
        return _done(r, prim, xs, out, params)


for _prim in (la.householder_product_, la.ormqr_):
    _of_reflectors(_prim)


@pile_rules.rule(la.pivots_to_permutation)
def _(r, args, out: Aval, *, size):
    (x,) = args
    last = x.aval.ndim - 1
    y = r.data(x, PADDED)
    count = y.shape[-1]
    own = pnp.broadcast_to(pnp.arange(count, dtype=y.dtype), y.shape)
    d = x.aval.shape[last]
    if r.caps.mine(d):  # rows in the padding are not exchanged
        inside = r.rows(d).inside.reshape((r.size, *(1,) * (y.ndim - 2), count))
        y = pnp.where(inside, y, own)
    n = r.caps.longest(size) if r.caps.mine(size) else size
    rule: Any = batching_rules.find(la.pivots_to_permutation)
    got, at = rule(r, [y], [0], size=max(n, count))
    return _result(r, out, r.move(got, at, 0)[..., :n], 0)  # exchanges stay among the first n


@pile_rules.rule(la.triangular_solve_)
def _(r, args, out: Aval, /, **params: object):
    a, b = args
    return _done(r, la.triangular_solve_, [_embedded(r, a, 1), _filled(r, b)], out, params)


@pile_rules.rule(la.eigh_)
def _(r, args, out: Aval, /, **params: object):
    (x,) = args
    y = _filled(r, x)
    if _along(r, x):  # eigenvalues ascend, so those beside the block come last
        y = pnp.where(_beside_block(r, x, y), _bound(r, x).astype(y.dtype), y)
    return _done(r, la.eigh_, [y], out, params)


@pile_rules.rule(la.svd_)
def _(r, args: Sequence[Value], out: Sequence[Aval], *, full_matrices: bool, compute_uv: bool):
    (x,) = args
    params = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    m, n = x.aval.shape[-2:]
    if not compute_uv or not _along(r, x):
        return _done(r, la.svd_, [_filled(r, x)], out, params)
    if m != n and full_matrices:
        raise MissingRule(
            f"{r.does}: all singular vectors of {x.aval!r}, whose sizes differ between examples "
            "and from each other",
            fix="take as many as there are singular values: full_matrices=False",
        )
    if m != n:
        return _by_square(r, x)
    y = _filled(r, x)
    y = pnp.where(_beside_block(r, x, y), _bound(r, x).astype(y.dtype), y)
    rule: Any = batching_rules.find(la.svd_)
    (values, left, right), _ = rule(r, [y], [0], **params)
    # Singular values descend, so those beside the block come first.
    size = y.shape[-1]
    at = pnp.minimum(pnp.arange(size)[None] + (size - r.lengths(n))[:, None], size - 1)
    moved = [_taken(values, at, -1), _taken(left, at, -1), _taken(right, at, -2)]
    return [_result(r, a, z, 0) for a, z in zip(out, moved, strict=True)]


def _by_square(r: Ragged, x: Value) -> list:
    """Return (singular values, left and right vectors) by those of a square matrix.

    If a matrix lacks rank, the vectors of zero are arbitrary orthonormal ones, and those of a
    padded matrix could reach beyond the block.  A square matrix gets larger singular values
    there."""
    with use(r):
        q, rest = pnp.linalg.qr(x)
        p, rest = pnp.linalg.qr(pnp.matrix_transpose(rest))
        k = q.shape[-1]  # the same size may be written in another way in `rest`
        rest = pnp.matrix_transpose(pnp.reshape(rest, (*rest.shape[:-2], k, k)))
        left, values, right = pnp.linalg.svd(rest, full_matrices=False)
        return [values, la.times(q, left), la.times(right, pnp.matrix_transpose(p))]


def _taken(x: Value, at: Any, axis: int) -> Any:
    """Take positions of each example along an axis."""
    shape = [1] * x.ndim
    shape[0], shape[axis] = at.shape
    return pnp.take_along_axis(x, at.reshape(shape), axis=axis)
