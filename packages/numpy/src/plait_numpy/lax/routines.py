"""JAX's arguments that select a routine for a factorisation.

Each factorisation has one routine for each platform here.  Requests for it are accepted, and
requests for another one are errors.

Invariant: no request is silently ignored, unless it would not change results.
"""

import enum
from typing import Any

from plait.errors import ArgumentError
from plait.ext.surface import value
from plait.typing import Array

from ..primitives.linalg.batched_matrices import stack_of


class EigImplementation(enum.Enum):
    """Routines for eigenvalues of any matrices."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Routines for eigenvalues of Hermitian matrices."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Routines for singular values."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


_THERE = (
    None,
    EigImplementation.LAPACK,
    EighImplementation.QR,
    SvdAlgorithm.DEFAULT,
    SvdAlgorithm.DIVIDE_AND_CONQUER,
)

_KINDS = {"eig": EigImplementation, "eigh": EighImplementation, "svd": SvdAlgorithm}


def routine(what: str, name: str, asked: object) -> None:
    """Raise TypeRule unless the routine requested is the available one."""
    if not any(asked is r for r in _THERE):
        mine = [str(r) for r in _THERE if r is not None and type(r) is _KINDS[what]]
        raise ArgumentError(
            f"{what}: there is no {name}={asked!r} here",
            fix=f"leave {name} out, or give {' or '.join(mine)}: there is the platform's own alone",
        )


def absent(what: str, **asked: object) -> None:
    """Raise TypeRule if one of these arguments is set: nothing here implements them."""
    for name, given in asked.items():
        if given is not None and given is not False:
            raise ArgumentError(f"{what} has nothing for {name}={given!r}", fix=f"leave {name} out")


def square(name: str, x: Any) -> Array:
    """Return the value; raise TypeRule unless it is square matrices."""
    x = value(x)
    stack_of(name, x.aval, square=True)
    return x
