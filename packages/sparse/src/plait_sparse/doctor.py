"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import plait
from plait import sparse

__all__ = ["check"]


def check() -> None:
    """Multiply a sparse matrix by a vector, in a compiled program."""
    x = sparse.BCOO.fromdense(plait.numpy.array([[0.0, 3.0], [1.0, 0.0]]))
    assert plait.jit(lambda x, v: x @ v)(x, plait.numpy.array([1.0, 2.0])).tolist() == [6.0, 1.0]
    assert plait.jit(sparse.sparsify(lambda x: x.T))(x).todense().tolist() == [[0, 1], [3, 0]]
