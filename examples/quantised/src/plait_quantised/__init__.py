"""Weights in eight bits: int8 values with one scale for each column, which act as floats.

    q = quantise(w)           # a quarter of the memory
    y = x @ q                 # as x @ q.floats(), and the rounding of w is all that is lost

A `Quantised` is a tree of two arrays: it goes through jit, vmap, loops and files like a weight.
`matmul` is a primitive that is said with others (`expand`), so its derivative, its mapping and
whatever is installed next year are known; it scales the product, and never makes the floats.

Invariant: `floats()` is `values * scales`; neither is what a derivative is taken by.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import ext, lax, tree

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller


@ext.primitive("quantised.matmul")
def matmul(x: ext.Aval, values: ext.Aval, scales: ext.Aval) -> ext.Aval:
    """x @ (values * scales), of floats [..., k], int8 [k, n] and floats like those of x [n]."""
    given = f"{x!r} @ ({values!r} * {scales!r})"
    if not x.inexact or x.dtype != scales.dtype or values.dtype != np.int8:
        raise ext.PlaitError(
            f"quantised.matmul takes floats, int8 and floats: {given}",
            fix="convert the first operand with .astype(numpy.float32)",
        )
    if not x.ndim or values.shape != (x.shape[-1], *scales.shape) or scales.ndim != 1:
        raise ext.PlaitError(
            f"the axes of {given} do not meet",
            fix="the last axis of x is the first of the weights, and each column has a scale",
        )
    return x.strong().with_shape((*x.shape[:-1], *scales.shape))


@ext.expand_rules.rule(matmul)
def _(x, values, scales):
    return pnp.matmul(x, values.astype(x.dtype)) * scales


@tree.register_dataclass
@dataclass
class Quantised:
    """A matrix in eight bits: `values` int8 [k, n], `scales` float32 [n].

    With more axes in front (a stack of layers) it is what `vmap` and `scan` take apart.
    """

    values: Any
    scales: Any
    __array_ufunc__ = None  # numpy's `@` leaves it to ours

    @property
    def shape(self):
        """The shape of the matrix."""
        return self.values.shape

    def floats(self):
        """The matrix that it stands for."""
        return self.values.astype(np.float32) * self.scales[..., None, :]

    def __rmatmul__(self, x):
        return matmul(pnp.asarray(x), pnp.asarray(self.values), pnp.asarray(self.scales))


def quantise(w):
    """The nearest `Quantised` to floats [..., k, n]: each element within half a scale.

    Raises PlaitError if `w` is no matrix of floats.

    >>> import numpy as np
    >>> quantise(np.float32([[1.0, -4.0], [0.5, 2.0]])).values
    Array([[ 127, -127],
           [  64,   64]], dtype=int8)
    """
    w = pnp.asarray(w)
    if w.ndim < 2 or not pnp.issubdtype(w.dtype, pnp.floating):
        raise ext.PlaitError(
            f"quantise is for matrices of floats, not {w.aval!r}", fix="give floats [k, n]"
        )
    w = lax.stop_gradient(w.astype(np.float32))
    scales = pnp.max(abs(w), axis=-2) / 127
    scales = pnp.where(scales == 0, 1.0, scales)  # a column of zeros
    return Quantised(pnp.round(w / scales[..., None, :]).astype(np.int8), scales)
