"""Programs of diffrax: the README's, solvers, adjoints, events, noise, interpolation.

Invariant: each returns numbers.
"""

import diffrax as dfx
import jax
import jax.numpy as jnp

_Y0 = jnp.array([1.0, 0.5])
_TERM = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], -args * y[0]]))


def _solve(y0=_Y0, args=1.3, solver=None, **options):
    options = {"saveat": dfx.SaveAt(t1=True), "dt0": 0.1, "t1": 2.0, **options}
    t1, dt0 = options.pop("t1"), options.pop("dt0")
    solver = solver or dfx.Tsit5()
    return dfx.diffeqsolve(_TERM, solver, t0=0, t1=t1, dt0=dt0, y0=y0, args=args, **options)


def readme():
    def f(t, y, args):
        return -y

    term, solver, y0 = dfx.ODETerm(f), dfx.Dopri5(), jnp.array([2.0, 3.0])
    solution = dfx.diffeqsolve(term, solver, t0=0, t1=1, dt0=0.1, y0=y0)
    return solution.ts, solution.ys


def solvers():
    kinds = (dfx.Euler, dfx.Heun, dfx.Midpoint, dfx.Ralston, dfx.Bosh3, dfx.Tsit5, dfx.Dopri5,
             dfx.Dopri8)  # fmt: skip
    return [_solve(solver=kind()).ys for kind in kinds]


def implicit():
    controller = dfx.PIDController(rtol=1e-4, atol=1e-5)
    return _solve(solver=dfx.Kvaerno3(), stepsize_controller=controller).ys


def adaptive():
    controller = dfx.PIDController(rtol=1e-5, atol=1e-6)
    saveat = dfx.SaveAt(ts=jnp.linspace(0, 2, 7))
    out = _solve(stepsize_controller=controller, saveat=saveat)
    return out.ys, out.stats["num_steps"]


def reverse():
    f = lambda y0, args: jnp.sum(_solve(y0, args).ys ** 2)
    return jax.jit(jax.grad(f, argnums=(0, 1)))(_Y0, 1.3)


def adjoints():
    kinds = (dfx.RecursiveCheckpointAdjoint(), dfx.DirectAdjoint(), dfx.BacksolveAdjoint())
    grads = []
    for adjoint in kinds:
        f = lambda y0: jnp.sum(_solve(y0, adjoint=adjoint, max_steps=64).ys ** 2)
        grads.append(jax.grad(f)(_Y0))
    forward = lambda a: _solve(args=a, adjoint=dfx.ForwardMode(), max_steps=64).ys
    return grads, jax.jvp(forward, (1.3,), (1.0,))


def rows():
    return jax.vmap(lambda y: _solve(y).ys)(jnp.stack([_Y0, _Y0 * 2, -_Y0]))


def dense():
    out = _solve(saveat=dfx.SaveAt(dense=True))
    ts = jnp.linspace(0.0, 2.0, 5)
    return jax.vmap(out.evaluate)(ts), jax.vmap(out.derivative)(ts)


def events():
    event = dfx.Event(lambda t, y, args, **kwargs: y[0], None)
    out = _solve(event=event, t1=5.0, dt0=0.05)
    return out.ts, out.ys


def noise():
    brownian = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=jax.random.PRNGKey(0))
    drift = dfx.ODETerm(lambda t, y, args: -y)
    diffusion = dfx.ControlTerm(lambda t, y, args: 0.1 * t, brownian)
    terms = dfx.MultiTerm(drift, diffusion)
    saveat = dfx.SaveAt(ts=jnp.linspace(0, 1, 5))
    return dfx.diffeqsolve(terms, dfx.Euler(), 0.0, 1.0, dt0=0.05, y0=1.0, saveat=saveat).ys


def controls():
    ts = jnp.linspace(0.0, 1.0, 6)
    ys = jnp.sin(ts * 3)
    linear = dfx.LinearInterpolation(ts, ys)
    cubic = dfx.CubicInterpolation(ts, dfx.backward_hermite_coefficients(ts, ys))
    term = dfx.ControlTerm(lambda t, y, args: jnp.cos(y), cubic).to_ode()
    out = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, dt0=0.1, y0=0.3)
    return linear.evaluate(0.37), cubic.evaluate(0.1, 0.77), out.ys


def network():
    import equinox as eqx

    field = eqx.nn.MLP(2, 2, 8, 1, activation=jnp.tanh, key=jax.random.PRNGKey(1))
    term = dfx.ODETerm(lambda t, y, args: args(y))

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(field):
        controller = dfx.PIDController(rtol=1e-3, atol=1e-6)
        out = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, dt0=0.1, y0=_Y0, args=field,
                              stepsize_controller=controller)  # fmt: skip
        return jnp.sum(out.ys**2)

    value, grads = loss(field)
    return value, jax.tree.leaves(eqx.filter(grads, eqx.is_array))
