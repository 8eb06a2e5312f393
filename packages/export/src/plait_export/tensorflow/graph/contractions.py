"""Contractions, Fourier transforms, factorisations and triangular systems.

Invariant: sums are computed in the dtype of the result; operands are not narrowed before.
"""

from string import ascii_letters
from typing import Any

from ...reader.contractions import numbers
from ...reader.table import enum
from ..library import tf
from . import integers
from .table import graphs


@graphs("stablehlo.dot_general")
def _(walk, op, xs):
    if "algorithm" in op.attributes:
        raise walk.unsaid(f"{op.name} asks for the algorithm {op.attributes['algorithm']}")
    said, dtype = op.attributes["dot_dimension_numbers"], tf.as_dtype(op.types[0].dtype)
    summed, together = (
        [numbers(said, f"{side}_{kind}_dimensions") for side in ("lhs", "rhs")]
        for kind in ("contracting", "batching")
    )
    x, y = [tf.cast(v, dtype) for v in xs]
    if (x.shape.rank, y.shape.rank) == (2, 2) and summed == [(1,), (0,)]:
        return _multiplied(lambda a, b: tf.matmul(a, b), x, y)
    text = equation(x.shape.rank, y.shape.rank, summed, together)
    return _multiplied(lambda a, b: tf.einsum(text, a, b), x, y)


@graphs("stablehlo.dot")
def _(walk: object, op, xs):
    """Multiply matrices and vectors: sum over the last axis of x and the first axis of y."""
    x, y = [tf.cast(v, tf.as_dtype(op.types[0].dtype)) for v in xs]
    summed = [(x.shape.rank - 1,), (0,)]
    text = equation(x.shape.rank, y.shape.rank, summed, [(), ()])
    return _multiplied(lambda a, b: tf.einsum(text, a, b), x, y)


def _multiplied(f: Any, x: Any, y: Any) -> Any:
    """Apply a product, also to booleans and integers of widths that TensorFlow cannot multiply."""
    if x.dtype == tf.bool:
        return tf.not_equal(f(tf.cast(x, tf.int32), tf.cast(y, tf.int32)), 0)
    if x.dtype.is_integer and x.dtype not in (tf.int32, tf.int64):
        return integers.wide(f, x, y)
    return f(x, y)


def equation(x: int, y: int, summed: Any, together: Any) -> str:
    """Return the equation for `einsum`; results have batch axes, the rest of x, the rest of y."""
    letters = iter(ascii_letters)
    left, right = [""] * x, [""] * y
    for first, second in ((together[0], together[1]), (summed[0], summed[1])):
        for i, j in zip(first, second, strict=True):
            left[i] = right[j] = next(letters)
    left, right = ([c or next(letters) for c in side] for side in (left, right))
    rest = [
        c
        for side, k in ((left, 0), (right, 1))
        for i, c in enumerate(side)
        if i not in (*together[k], *summed[k])
    ]
    out = [left[i] for i in together[0]] + rest
    return f"{''.join(left)},{''.join(right)}->{''.join(out)}"


# ---- transforms and factorisations ---------------------------------------------------------


@graphs("stablehlo.fft")
def _(walk: object, op, xs):
    kind, lengths = enum(op.attributes["fft_type"]).lower(), list(op.attributes["fft_length"])
    suffix = "" if len(lengths) == 1 else f"{len(lengths)}d"
    f = getattr(tf.signal, f"{kind}{suffix}")
    return f(xs[0], fft_length=lengths) if kind in ("rfft", "irfft") else f(xs[0])


@graphs("stablehlo.cholesky")
def _(walk: object, op, xs):
    """Factorise without reading the other triangle."""
    if op.attributes.get("lower", False):
        return tf.linalg.cholesky(xs[0])
    return tf.linalg.adjoint(tf.linalg.cholesky(tf.linalg.adjoint(xs[0])))


@graphs("stablehlo.triangular_solve")
def _(walk: object, op, xs):
    (a, b), at = xs, op.attributes
    lower, how = at["lower"], enum(at["transpose_a"])
    if at["unit_diagonal"]:
        a = tf.linalg.set_diag(a, tf.ones_like(tf.linalg.diag_part(a)))
    if how == "TRANSPOSE":
        a, lower = tf.linalg.matrix_transpose(a), not lower
    adjoint = how == "ADJOINT"
    if at["left_side"]:
        return tf.linalg.triangular_solve(a, b, lower=lower, adjoint=adjoint)
    # TensorFlow solves a x = b only: x a = b is solved as a^T x^T = b^T.
    if adjoint:
        a, adjoint = tf.linalg.adjoint(a), False
        lower = not lower
    turned = tf.linalg.triangular_solve(
        tf.linalg.matrix_transpose(a), tf.linalg.matrix_transpose(b), lower=not lower, adjoint=False
    )
    return tf.linalg.matrix_transpose(turned)
