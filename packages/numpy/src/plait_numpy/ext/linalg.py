"""Linear algebra: factorisations, solvers, and helpers on stacks of matrices.

Invariant: nothing is defined here.
"""

from ..primitives.linalg.batched_matrices import (
    adjoint,
    as_columns,
    as_rows,
    conjugate,
    diagonal,
    halved_diagonal,
    identity,
    nothing,
    off_diagonal,
    on_diagonal,
    real_part,
    times,
    transposed,
    triangle,
)
from ..primitives.linalg.factorisation import (
    cholesky_,
    geqp3,
    geqrf,
    householder_product_,
    lu_,
    ormqr_,
    pivots_to_permutation,
    qr_,
)
from ..primitives.linalg.matrix_equations import sqrtm_, sylvester
from ..primitives.linalg.matrix_inverses import det_, lstsq_, pinv_, slogdet_
from ..primitives.linalg.scaled_products import scaled_product
from ..primitives.linalg.solving import (
    columns_in_order,
    general,
    inverse,
    order_back,
    rows_in_order,
    solve_,
    triangular,
    triangular_solve_,
    tridiagonal_solve_,
)
from ..primitives.linalg.spectral import eig_, eigh_, hessenberg_, schur_, svd_, tridiagonal_

__all__ = [
    "adjoint", "as_columns", "as_rows", "cholesky_", "columns_in_order", "conjugate", "det_",
    "diagonal", "eig_", "eigh_", "general", "geqp3", "geqrf", "halved_diagonal", "hessenberg_",
    "householder_product_", "identity", "inverse", "lstsq_", "lu_", "nothing", "off_diagonal",
    "on_diagonal", "order_back", "ormqr_", "pinv_", "pivots_to_permutation", "qr_", "real_part",
    "rows_in_order", "scaled_product", "schur_", "slogdet_", "solve_", "sqrtm_", "svd_",
    "sylvester", "times", "transposed", "triangle", "triangular", "triangular_solve_",
    "tridiagonal_", "tridiagonal_solve_",
]  # fmt: skip
