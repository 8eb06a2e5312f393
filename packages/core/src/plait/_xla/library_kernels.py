"""Names of the numerical libraries' kernels: LAPACK, cuSOLVER, hipSOLVER, the compiler for TPUs.

Invariant: these names are facts about jaxlib and its compilers, which no primitive changes.
"""

from .._base.jaxlib_api import LAPACK

__all__ = ["LETTERS", "SOLVERS", "STABLE"]

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
"""The letter of a dtype in LAPACK's names."""

_REAL = "orgqr sytrd syevd"
_COMPLEX = "ungqr hetrd heevd"
_EVERY = "potrf getrf geqrf gesdd geev gees gehrd trsm gtsv"
_LAPACK = (
    f"{LAPACK}{letter}{routine}_ffi"
    for letter in LETTERS.values()
    for routine in (*_EVERY.split(), *(_REAL if letter in "sd" else _COMPLEX).split())
)
SOLVERS = {"cuda": "cusolver", "rocm": "hipsolver"}
"""The solver library of a platform, in the names of its kernels."""
_SOLVER = "potrf getrf geqrf orgqr syevd gesvdj sytrd"
_TPU = "Eigh LuDecomposition ProductOfElementaryHouseholderReflectors Qr"
STABLE = frozenset(
    [
        *_LAPACK,
        *(
            f"{library}_{routine}_ffi"
            for library in SOLVERS.values()
            for routine in _SOLVER.split()
        ),
        "cusparse_gtsv2_ffi",
        *_TPU.split(),
    ]
)
"""Kernels that the makers of the libraries promise to keep, under the same name and with the same
arguments."""
