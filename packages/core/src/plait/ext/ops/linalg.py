"""Linear algebra: factorisations, solvers, and helpers on stacks of matrices.

Invariant: nothing is defined here.
"""

from ..._ops.batched_matrices import (
    adjoint as adjoint,
)
from ..._ops.batched_matrices import (
    as_columns as as_columns,
)
from ..._ops.batched_matrices import (
    as_rows as as_rows,
)
from ..._ops.batched_matrices import (
    conjugate as conjugate,
)
from ..._ops.batched_matrices import (
    diagonal as diagonal,
)
from ..._ops.batched_matrices import (
    halved_diagonal as halved_diagonal,
)
from ..._ops.batched_matrices import (
    identity as identity,
)
from ..._ops.batched_matrices import (
    nothing as nothing,
)
from ..._ops.batched_matrices import (
    off_diagonal as off_diagonal,
)
from ..._ops.batched_matrices import (
    on_diagonal as on_diagonal,
)
from ..._ops.batched_matrices import (
    real_part as real_part,
)
from ..._ops.batched_matrices import (
    times as times,
)
from ..._ops.batched_matrices import (
    transposed as transposed,
)
from ..._ops.batched_matrices import (
    triangle as triangle,
)
from ..._ops.factorisation import (
    cholesky_ as cholesky_,
)
from ..._ops.factorisation import (
    geqp3 as geqp3,
)
from ..._ops.factorisation import (
    geqrf as geqrf,
)
from ..._ops.factorisation import (
    householder_product_ as householder_product_,
)
from ..._ops.factorisation import (
    lu_ as lu_,
)
from ..._ops.factorisation import (
    ormqr_ as ormqr_,
)
from ..._ops.factorisation import (
    pivots_to_permutation as pivots_to_permutation,
)
from ..._ops.factorisation import (
    qr_ as qr_,
)
from ..._ops.matrix_equations import (
    sqrtm_ as sqrtm_,
)
from ..._ops.matrix_equations import (
    sylvester as sylvester,
)
from ..._ops.matrix_inverses import (
    det_ as det_,
)
from ..._ops.matrix_inverses import (
    lstsq_ as lstsq_,
)
from ..._ops.matrix_inverses import (
    pinv_ as pinv_,
)
from ..._ops.matrix_inverses import (
    slogdet_ as slogdet_,
)
from ..._ops.solving import (
    columns_in_order as columns_in_order,
)
from ..._ops.solving import (
    general as general,
)
from ..._ops.solving import (
    inverse as inverse,
)
from ..._ops.solving import (
    order_back as order_back,
)
from ..._ops.solving import (
    rows_in_order as rows_in_order,
)
from ..._ops.solving import (
    solve_ as solve_,
)
from ..._ops.solving import (
    triangular as triangular,
)
from ..._ops.solving import (
    triangular_solve_ as triangular_solve_,
)
from ..._ops.solving import (
    tridiagonal_solve_ as tridiagonal_solve_,
)
from ..._ops.spectral import (
    eig_ as eig_,
)
from ..._ops.spectral import (
    eigh_ as eigh_,
)
from ..._ops.spectral import (
    hessenberg_ as hessenberg_,
)
from ..._ops.spectral import (
    schur_ as schur_,
)
from ..._ops.spectral import (
    svd_ as svd_,
)
from ..._ops.spectral import (
    tridiagonal_ as tridiagonal_,
)

__all__ = [
    "adjoint",
    "as_columns",
    "as_rows",
    "cholesky_",
    "columns_in_order",
    "conjugate",
    "det_",
    "diagonal",
    "eig_",
    "eigh_",
    "general",
    "geqp3",
    "geqrf",
    "halved_diagonal",
    "hessenberg_",
    "householder_product_",
    "identity",
    "inverse",
    "lstsq_",
    "lu_",
    "nothing",
    "off_diagonal",
    "on_diagonal",
    "order_back",
    "ormqr_",
    "pinv_",
    "pivots_to_permutation",
    "qr_",
    "real_part",
    "rows_in_order",
    "schur_",
    "slogdet_",
    "solve_",
    "sqrtm_",
    "svd_",
    "sylvester",
    "times",
    "transposed",
    "triangle",
    "triangular",
    "triangular_solve_",
    "tridiagonal_",
    "tridiagonal_solve_",
]
