"""Programs of jaxopt: solvers of every kind, differentiated through their solutions.

Invariant: each returns numbers.
"""

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

_rng = np.random.default_rng(0)
_X = jnp.asarray(_rng.normal(size=(30, 4)).astype("float32"))
_Y = jnp.asarray((_X @ jnp.arange(4.0) + 0.1 * _rng.normal(size=30)).astype("float32"))


def _ridge(w, l2, x=_X, y=_Y):
    return jnp.mean((x @ w - y) ** 2) + l2 * jnp.sum(w**2)


def readme():
    @jax.jacrev
    def solution(l2):
        solver = jaxopt.GradientDescent(fun=_ridge, maxiter=300, tol=1e-5, implicit_diff=True)
        return solver.run(jnp.zeros(4), l2=l2).params

    return solution(0.5)


def bfgs():
    found = []
    for make in (jaxopt.LBFGS, jaxopt.BFGS, jaxopt.NonlinearCG):
        found.append(make(fun=_ridge, maxiter=100).run(jnp.zeros(4), l2=0.1).params)
    return found


def implicit():
    solver = jaxopt.LBFGS(fun=_ridge, maxiter=100, tol=1e-6)
    loss = lambda l2: jnp.sum(solver.run(jnp.zeros(4), l2=l2).params ** 2)
    return jax.grad(loss)(0.3), jax.jit(jax.vmap(jax.grad(loss)))(jnp.array([0.1, 0.5]))


def proximal():
    solver = jaxopt.ProximalGradient(
        fun=lambda w, data: jnp.mean((data[0] @ w - data[1]) ** 2),
        prox=jaxopt.prox.prox_lasso,
        maxiter=200,
    )
    run = lambda l1: solver.run(jnp.zeros(4), hyperparams_prox=l1, data=(_X, _Y)).params
    return run(0.5), jax.jacrev(run)(0.5)


def projected():
    solver = jaxopt.ProjectedGradient(
        fun=lambda w, data: jnp.mean((data[0] @ w - data[1]) ** 2),
        projection=jaxopt.projection.projection_simplex,
    )
    return solver.run(jnp.full(4, 0.25), data=(_X, _Y)).params


def projections():
    p = jaxopt.projection
    x = _X[0] * 2
    found = [p.projection_simplex(x), p.projection_l1_ball(x, 1.0), p.projection_l2_ball(x, 1.0)]
    found += [p.projection_box(x, (-0.5, 0.5)), p.projection_hyperplane(x, (jnp.ones(4), 1.0))]
    found += [p.projection_halfspace(x, (jnp.ones(4), 0.0))]
    return found, jax.jacobian(p.projection_simplex)(x)


def roots():
    f = lambda x, a: x**3 - x - a
    bisection = jaxopt.Bisection(optimality_fun=f, lower=1.0, upper=2.0)
    run = lambda a: bisection.run(a=a).params
    newton = jaxopt.ScipyRootFinding(optimality_fun=f, method="hybr")
    return run(2.0), jax.grad(run)(2.0), newton.run(jnp.array(1.5), 2.0).params


def fixed_points():
    f = lambda x, a: jnp.cos(x) * a
    plain = jaxopt.FixedPointIteration(f, maxiter=200, implicit_diff=True)
    fast = jaxopt.AndersonAcceleration(f, maxiter=50, implicit_diff=True)
    x = jnp.array([0.5, 0.2])
    run = lambda a: plain.run(x, a).params.sum()
    return run(0.9), jax.grad(run)(0.9), fast.run(x, 0.9).params


def quadratic():
    q = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    c, a, b = jnp.ones(2), jnp.ones((1, 2)), jnp.ones(1)
    g, h = -jnp.eye(2), jnp.zeros(2)
    solver = jaxopt.OSQP(maxiter=4000, tol=1e-5)
    equality = jaxopt.EqualityConstrainedQP()
    run = lambda c: equality.run(params_obj=(q, c), params_eq=(a, b)).params.primal
    found = solver.run(params_obj=(q, c), params_eq=(a, b), params_ineq=(g, h)).params.primal
    return found, run(c), jax.jacobian(run)(c)


def least_squares():
    residual = lambda w: jnp.tanh(_X @ w) - jnp.tanh(_Y * 0.1)
    gn = jaxopt.GaussNewton(residual, maxiter=10).run(jnp.zeros(4)).params
    lm = jaxopt.LevenbergMarquardt(residual, maxiter=30).run(jnp.zeros(4)).params
    return gn, lm


def stochastic():
    solver = jaxopt.PolyakSGD(fun=lambda w, x, y: jnp.mean((x @ w - y) ** 2), maxiter=20)
    params = jnp.zeros(4)
    state = solver.init_state(params, x=_X, y=_Y)
    for i in range(10):
        rows = slice(3 * i, 3 * i + 3)
        params, state = solver.update(params, state, x=_X[rows], y=_Y[rows])
    armijo = jaxopt.ArmijoSGD(fun=lambda w, x, y: jnp.mean((x @ w - y) ** 2), maxiter=20)
    return params, armijo.run(jnp.zeros(4), x=_X, y=_Y).params


def losses():
    logits = _X[:5]
    labels = jnp.arange(5) % 4
    f = jaxopt.loss.multiclass_logistic_loss
    g = jaxopt.loss.multiclass_sparsemax_loss
    return jax.vmap(f)(labels, logits), jax.vmap(jax.grad(g, 1))(labels, logits)
