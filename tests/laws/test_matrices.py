"""Every law over solutions and factorisations of small matrices.

Invariant: what is determined up to a phase only is compared with what the library that makes it
chooses near the operands; complex matrices are one case of each rule.
"""

import numpy as np

from plait._core.primitive import primitives
from plait._ops import families
from plait.ext.values import asarray

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
    return PRIM[f"core.{name}"], args, params, options or {}


def solved(a, b):
    """A solution by factors that do not vary."""
    lu, pivots = PRIM["core.lu"].bind(PRIM["core.stop"].bind(a))
    order = PRIM["core.pivots_to_permutation"].bind(pivots, size=2)
    return PRIM["core.solve"].bind(a, b, lu, order, kind="lu", transposed=False)


CASES = {
    "core.cholesky": case("cholesky", S),
    "core.cholesky, complex": case("cholesky", H),
    "core.lu": case("lu", X),
    "core.lu, tall": case("lu", TALL),
    "core.qr": case("qr", X, **REDUCED),
    "core.qr, tall": case("qr", TALL, **REDUCED),
    "core.triangular_solve": case("triangular_solve", X, B, **TRIANGLE),
    "core.triangular_solve, complex": case("triangular_solve", Z, B.T + 1j, **OTHER),
    "core.tridiagonal_solve": case("tridiagonal_solve", D[0], D[1] + 4, D[2], M),
    "core.solve": (solved, (X, B)),
    "core.eigh": case("eigh", S, lower=True, vectors=True),
    "core.eigh, values": case("eigh", H, lower=True, vectors=False),
    "core.svd": case("svd", X, **VECTORS),
    "core.svd, values": case("svd", TALL, **VALUES),
    "core.eig": case("eig", Z, left=False, right=True),
    "core.det": case("det", X),
    "core.det, singular": case("det", X * np.array([1.0, 0.0])),
    "core.slogdet": case("slogdet", X),
    "core.slogdet, complex": case("slogdet", Z),
    "core.pinv": (lambda x: PRIM["core.pinv"].bind(x, asarray(CUT)), (TALL,)),
    "core.lstsq": (lambda a, b: PRIM["core.lstsq"].bind(a, b, asarray(CUT)),
                   (TALL, M[:, :1])),
    "core.sqrtm": case("sqrtm", S),
    "core.sylvester": case("sylvester", X, Z.real + 3, B @ B.T),
    "core.ormqr": (lambda c: PRIM["core.ormqr"].bind(*reflectors(TALL), c, left=True, adjoint=True),
                   (M[:, :2],)),
}  # fmt: skip


def reflectors(x):
    return PRIM["core.geqrf"].bind(asarray(x))


MAPPED = {
    "core.geqrf": case("geqrf", TALL),
    "core.geqp3": case("geqp3", TALL),
    "core.householder_product": case("householder_product", TALL, M[0, :2]),
    "core.hessenberg": case("hessenberg", M),
    "core.tridiagonal": case("tridiagonal", M @ M.T, lower=True),
    "core.schur": case("schur", M @ M.T, vectors=True),
    "core.pivots_to_permutation": case("pivots_to_permutation", np.int32([1, 1]), size=2),
}


def test_derivatives(judge):
    judge.derivatives(CASES)


def test_mapping(judge):
    judge.mapping({**CASES, **MAPPED})
