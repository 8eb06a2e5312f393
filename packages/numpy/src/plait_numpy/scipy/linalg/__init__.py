"""The names of scipy.linalg.

SciPy's arguments about overwriting and checking (`overwrite_a`, `check_finite`, ...) are accepted
and have no effect: arrays are immutable, and no value raises an error.  Functions of matrices take
stacks of them: any leading axes.

Invariant: functions with the name of one in `plait.numpy.linalg` compute the same.
"""

from .factors import (
    cho_factor,
    cholesky,
    eigh,
    eigh_tridiagonal,
    hessenberg,
    lu,
    lu_factor,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from .functions import expm, expm_frechet, funm, polar, sqrtm
from .patterns import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from .systems import cho_solve, det, inv, lu_solve, solve, solve_sylvester, solve_triangular

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]
