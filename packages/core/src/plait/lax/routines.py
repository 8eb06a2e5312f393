"""Which routine a factorisation is done by, as JAX lets callers ask for it.

There is one routine for each factorisation and platform here, so what asks for it is taken, and
what asks for another one is an error.

Invariant: nothing asked for is silently ignored, unless the results are the same without it.
"""

import enum
from typing import Any

from .._api.surfaces import value
from .._base.errors import ArgumentError
from .._ops.batched_matrices import stack_of


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


def routine(what: str, name: str, asked: Any) -> None:
    """Raises TypeRule unless the routine asked for is the one that there is."""
    if not any(asked is r for r in _THERE):
        mine = [str(r) for r in _THERE if r is not None and type(r) is _KINDS[what]]
        raise ArgumentError(
            f"{what}: there is no {name}={asked!r} here",
            fix=f"leave {name} out, or give {' or '.join(mine)}: there is the platform's own alone",
        )


def absent(what: str, **asked: Any) -> None:
    """Raises TypeRule if one of these arguments asks for something: nothing here does it."""
    for name, given in asked.items():
        if given is not None and given is not False:
            raise ArgumentError(f"{what} has nothing for {name}={given!r}", fix=f"leave {name} out")


def square(name: str, x: Any) -> Any:
    """The value, which must be square matrices; TypeRule if it is not."""
    x = value(x)
    stack_of(name, x.aval, square=True)
    return x
