"""Every law over solutions and factorisations of small matrices.

Invariant: what is determined up to a phase only is compared with what the library that makes it
chooses near the operands; complex matrices are one case of each rule.
"""

import numpy as np

from plait._core.primitive import primitives
from plait.ext.values import asarray
from plait_numpy.primitives.linalg import families

assert families
PRIM = primitives()
M = np.array([[1.3, 0.4, -0.5], [0.2, -1.1, 0.7], [0.6, 0.3, 0.9]])
X, B = M[:2, :2], np.array([[0.5], [-0.8]])
TALL = M[:, :2]
Z = X + 1j * X[::-1]
S = X @ X.T + np.eye(2)
H = Z @ Z.conj().T + np.eye(2)
D = M + 3 * np.eye(3)
TRIANGLE = {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False,
            "unit_diagonal": False}  # fmt: skip
OTHER = {"left_side": False, "lower": False, "transpose_a": True, "conjugate_a": True,
         "unit_diagonal": True}  # fmt: skip
REDUCED = {"full_matrices": False, "pivoting": False}
VALUES = {"full_matrices": False, "compute_uv": False}
VECTORS = {"full_matrices": False, "compute_uv": True}
CUT = np.array(1e-12)


def case(name, *args, options=None, **params):
    return PRIM[f"linalg.{name}"], args, params, options or {}


def solved(a, b):
    """A solution by factors that do not vary."""
    lu, pivots = PRIM["linalg.lu"].bind(PRIM["core.stop"].bind(a))
    order = PRIM["linalg.pivots_to_permutation"].bind(pivots, size=2)
    return PRIM["linalg.solve"].bind(a, b, lu, order, kind="lu", transposed=False)


CASES = {
    "linalg.cholesky": case("cholesky", S),
    "linalg.cholesky, complex": case("cholesky", H),
    "linalg.lu": case("lu", X),
    "linalg.lu, tall": case("lu", TALL),
    "linalg.qr": case("qr", X, **REDUCED),
    "linalg.qr, tall": case("qr", TALL, **REDUCED),
    "linalg.triangular_solve": case("triangular_solve", X, B, **TRIANGLE),
    "linalg.triangular_solve, complex": case("triangular_solve", Z, B.T + 1j, **OTHER),
    "linalg.tridiagonal_solve": case("tridiagonal_solve", D[0], D[1] + 4, D[2], M),
    "linalg.solve": (solved, (X, B)),
    "linalg.eigh": case("eigh", S, lower=True, vectors=True),
    "linalg.eigh, values": case("eigh", H, lower=True, vectors=False),
    "linalg.svd": case("svd", X, **VECTORS),
    "linalg.svd, values": case("svd", TALL, **VALUES),
    "linalg.eig": case("eig", Z, left=False, right=True),
    "linalg.det": case("det", X),
    "linalg.det, singular": case("det", X * np.array([1.0, 0.0])),
    "linalg.slogdet": case("slogdet", X),
    "linalg.slogdet, complex": case("slogdet", Z),
    "linalg.pinv": (lambda x: PRIM["linalg.pinv"].bind(x, asarray(CUT)), (TALL,)),
    "linalg.lstsq": (lambda a, b: PRIM["linalg.lstsq"].bind(a, b, asarray(CUT)),
                     (TALL, M[:, :1])),
    "linalg.sqrtm": case("sqrtm", S),
    "linalg.sylvester": case("sylvester", X, Z.real + 3, B @ B.T),
    "linalg.ormqr": (
        lambda c: PRIM["linalg.ormqr"].bind(*reflectors(TALL), c, left=True, adjoint=True),
        (M[:, :2],),
    ),
}  # fmt: skip


def reflectors(x):
    return PRIM["linalg.geqrf"].bind(asarray(x))


MAPPED = {
    "linalg.geqrf": case("geqrf", TALL),
    "linalg.geqp3": case("geqp3", TALL),
    "linalg.householder_product": case("householder_product", TALL, M[0, :2]),
    "linalg.hessenberg": case("hessenberg", M),
    "linalg.tridiagonal": case("tridiagonal", M @ M.T, lower=True),
    "linalg.schur": case("schur", M @ M.T, vectors=True),
    "linalg.pivots_to_permutation": case("pivots_to_permutation", np.int32([1, 1]), size=2),
}


def test_derivatives(judge):
    judge.derivatives(CASES)


def test_mapping(judge):
    judge.mapping({**CASES, **MAPPED})
