"""Programs of lineax: operators, solvers, derivatives and rows of solutions.

Invariant: each returns numbers.
"""

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

_rng = np.random.default_rng(0)
_A = jnp.asarray(_rng.normal(size=(4, 4)).astype("float32")) + 3 * jnp.eye(4)
_S = _A @ _A.T
_T = jnp.asarray(_rng.normal(size=(6, 3)).astype("float32"))
_B = jnp.asarray(_rng.normal(size=4).astype("float32"))
_C = jnp.asarray(_rng.normal(size=6).astype("float32"))
_POSITIVE = lx.positive_semidefinite_tag


def _solve(a, b, solver=None, *tags):
    operator = lx.MatrixLinearOperator(a, tags) if isinstance(a, jax.Array) else a
    return lx.linear_solve(operator, b, solver or lx.AutoLinearSolver(well_posed=True)).value


def readme():
    operator = lx.MatrixLinearOperator(_A)
    return lx.linear_solve(operator, _B, solver=lx.QR()).value, lx.linear_solve(operator, _B).value


def solvers():
    dense = [lx.LU(), lx.QR(), lx.SVD(), lx.AutoLinearSolver(well_posed=None)]
    steps = [lx.Normal(lx.CG(1e-5, 1e-5))]
    found = [_solve(_A, _B, s) for s in dense + steps]
    found += [_solve(_S, _B, s, _POSITIVE) for s in (lx.Cholesky(), lx.CG(1e-5, 1e-5))]
    return found


def least_squares():
    found = [lx.linear_solve(lx.MatrixLinearOperator(_T), _C, s).value for s in (lx.QR(), lx.SVD())]
    wide = lx.MatrixLinearOperator(_T.T)
    found.append(lx.linear_solve(wide, _C[:3], lx.SVD()).value)
    return found


def gradients():
    f = lambda a, b: jnp.sum(_solve(a, b) ** 2)
    return jax.grad(f, argnums=(0, 1))(_A, _B), jax.jit(jax.grad(f))(_A, _B)


def tangents():
    return jax.jvp(lambda a: _solve(a, _B, lx.QR()), (_A,), (_S,))


def rows():
    many = jnp.stack([_A, _A.T, _S])
    return jax.vmap(lambda a: _solve(a, _B))(many), jax.vmap(_solve, (None, 0))(_A, many[0])


def structure():
    diagonal = lx.DiagonalLinearOperator(jnp.arange(1.0, 5))
    tri = lx.TridiagonalLinearOperator(jnp.full(4, 4.0), jnp.ones(3), jnp.ones(3))
    lower = jnp.tril(_A)
    found = [_solve(diagonal, _B), _solve(tri, _B, lx.Tridiagonal())]
    found.append(_solve(lower, _B, lx.Triangular(), lx.lower_triangular_tag))
    return found, tri.as_matrix()


def operators():
    f = lambda x: _A @ x * 2
    fun = lx.FunctionLinearOperator(f, jax.eval_shape(lambda: _B))
    jac = lx.JacobianLinearOperator(lambda x, _: jnp.tanh(x) + x, _B)
    summed = lx.MatrixLinearOperator(_A) + lx.IdentityLinearOperator(jax.eval_shape(lambda: _B))
    composed = lx.MatrixLinearOperator(_A) @ lx.MatrixLinearOperator(_S)
    solver = lx.LU()
    found = [lx.linear_solve(op, _B, solver).value for op in (fun, jac, summed, composed)]
    return found, composed.mv(_B), summed.T.as_matrix()


def trees():
    tree = {"a": _B[:2], "b": _B[2:]}
    blocks = {"a": {"a": _A[:2, :2], "b": _A[:2, 2:]}, "b": {"a": _A[2:, :2], "b": _A[2:, 2:]}}
    operator = lx.PyTreeLinearOperator(blocks, jax.eval_shape(lambda: tree))
    return lx.linear_solve(operator, tree, lx.LU()).value


def singular():
    bad = jnp.zeros((3, 3)).at[0, 0].set(1.0)
    out = lx.linear_solve(lx.MatrixLinearOperator(bad), _B[:3], lx.LU(), throw=False)
    good = lx.linear_solve(lx.MatrixLinearOperator(_A), _B, lx.LU(), throw=False)
    return int(out.result == lx.RESULTS.successful), int(good.result == lx.RESULTS.successful)


def states():
    solver = lx.LU()
    operator = lx.MatrixLinearOperator(_A)
    state = solver.init(operator, {})
    f = lambda b: lx.linear_solve(operator, b, solver, state=state).value
    return f(_B), jax.jacobian(f)(_B)
