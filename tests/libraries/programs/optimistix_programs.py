"""Programs of optimistix: roots, fixed points, minima, least squares, and their derivatives.

Invariant: each returns numbers.
"""

import jax
import jax.numpy as jnp
import optimistix as optx

_Y0 = jnp.array([0.5, -0.3])
_TOL = dict(rtol=1e-5, atol=1e-5)


def _bowl(y, args):
    return jnp.sum((y - args) ** 2) + 0.1 * jnp.sum(y**4)


def _residual(y, args):
    return jnp.stack([10 * (y[1] - y[0] ** 2), args - y[0]])


def readme():
    def fn(y, args):
        return jnp.tanh(y + 1)

    solver = optx.Newton(rtol=1e-5, atol=1e-5)
    step = lambda y, args: y - 0.1 * fn(y, args)
    found = optx.fixed_point(lambda y, a: jnp.cos(y), optx.FixedPointIteration(**_TOL), 0.3)
    return optx.root_find(fn, solver, jnp.array(0.0)).value, step(0.1, None), found.value


def roots():
    f = lambda y, args: jnp.stack([y[0] ** 2 + y[1] - args, y[0] - y[1] ** 3])
    solvers = (optx.Newton(**_TOL), optx.Chord(**_TOL), optx.Dogleg(**_TOL))
    return [optx.root_find(f, s, jnp.array([0.9, 0.8]), 1.7, max_steps=200).value for s in solvers]


def bisection():
    f = lambda y, args: y**3 - y - args
    options = dict(lower=1.0, upper=2.0)
    run = lambda a: optx.root_find(f, optx.Bisection(**_TOL), 1.5, a, options=options).value
    return run(2.0), jax.grad(run)(2.0)


def derivatives():
    f = lambda y, args: jnp.tanh(y) - args
    run = lambda a: optx.root_find(f, optx.Newton(**_TOL), jnp.array(0.1), a).value
    return jax.grad(run)(0.4), jax.jvp(run, (0.4,), (1.0,)), jax.vmap(run)(jnp.array([0.1, 0.5]))


def minima():
    solvers = (
        optx.BFGS(**_TOL),
        optx.NonlinearCG(**_TOL),
        optx.NelderMead(**_TOL),
        optx.GradientDescent(0.1, **_TOL),
    )
    return [optx.minimise(_bowl, s, _Y0, 0.7, max_steps=1000).value for s in solvers]


def minima_derived():
    run = lambda a: optx.minimise(_bowl, optx.BFGS(**_TOL), _Y0, a, max_steps=200).value.sum()
    return jax.grad(run)(0.7), jax.jit(jax.vmap(run))(jnp.array([0.3, 0.7, 1.0]))


def golden():
    options = dict(lower=-1.0, upper=3.0)
    f = lambda y, args: (y - 0.4) ** 2
    return optx.minimise(f, optx.GoldenSearch(**_TOL), 0.0, options=options).value


def least_squares():
    solvers = (
        optx.LevenbergMarquardt(**_TOL),
        optx.GaussNewton(**_TOL),
        optx.Dogleg(**_TOL),
    )
    return [optx.least_squares(_residual, s, _Y0, 1.0, max_steps=200).value for s in solvers]


def least_squares_derived():
    solver = optx.LevenbergMarquardt(**_TOL)
    run = lambda a: optx.least_squares(_residual, solver, _Y0, a, max_steps=200).value
    return jax.jacrev(run)(1.0), jax.jacfwd(run)(1.0)


def with_optax():
    import optax

    solver = optx.OptaxMinimiser(optax.adam(0.1), rtol=1e-4, atol=1e-4)
    return optx.minimise(_bowl, solver, _Y0, 0.7, max_steps=2000).value


def statuses():
    f = lambda y, args: y**2 + 1
    out = optx.root_find(f, optx.Newton(**_TOL), jnp.array(0.7), max_steps=8, throw=False)
    return int(out.result == optx.RESULTS.successful), out.stats["num_steps"]
