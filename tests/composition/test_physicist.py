"""Thirty tasks of a physicist who comes from numpy and scipy, written as they are typed.

Invariant: each task gives (ours, wanted); what is wanted comes from numpy, scipy or a formula.
"""

import io

import numpy as np
import pytest

import plait
import plait.numpy as pnp

scipy = pytest.importorskip("scipy")
from scipy import constants, integrate, interpolate, linalg, optimize, special  # noqa: E402

TASKS = {}
X5 = np.array([0.3, -0.5, 1.2, 0.7, 0.1])
BAND = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])


def task(f):
    """Register a function as a task."""
    TASKS[f.__name__.replace("_", " ")] = f
    return f


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def lorenz(s, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = s
    return pnp.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def rk4(f, s, dt, n):
    """Return the state after n steps of Runge and Kutta's method."""

    def step(s, _):
        k1 = f(s)
        k2 = f(s + dt / 2 * k1)
        k3 = f(s + dt / 2 * k2)
        k4 = f(s + dt * k3)
        return s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return plait.lax.scan(step, s, None, length=n)[0]


def for_scipy(f):
    """Return a function and its gradient as scipy takes them."""
    both = plait.jit(plait.value_and_grad(f))

    def call(x):
        value, slope = both(x)
        return float(value), np.asarray(slope)

    return call


@task
def heat_equation_by_scan():
    u0 = np.exp(-(np.linspace(-5, 5, 51) ** 2))
    step = lambda u, _: (u.at[1:-1].add(0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])), None)
    ours = plait.lax.scan(step, pnp.asarray(u0), None, length=40)[0]
    u = u0.copy()
    for _ in range(40):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return ours, u


@task
def orbit_of_an_ode():
    at = integrate.solve_ivp(
        lambda t, s: np.asarray(lorenz(s)), (0, 0.5), np.ones(3), rtol=1e-10, atol=1e-10
    )
    return rk4(lorenz, pnp.ones(3), 0.002, 250), at.y[:, -1]


@task
def gradient_through_an_ode():
    end = lambda rho: rk4(lambda s: lorenz(s, rho=rho), pnp.ones(3), 0.01, 50)[0]
    h = 1e-5
    return plait.grad(end)(28.0), (end(28.0 + h) - end(28.0 - h)) / (2 * h)


@task
def jacobian_of_a_flow():
    flow = lambda s: rk4(lorenz, s, 0.01, 20)
    h, base = 1e-6, np.ones(3)
    columns = [(flow(base + h * e) - flow(base - h * e)) / (2 * h) for e in np.eye(3)]
    return plait.jacfwd(flow)(base), np.stack(columns, 1)


@task
def conserved_energy_of_leapfrog():
    force = plait.grad(lambda q: -0.5 * (q**2).sum())

    def step(c, _):
        q, p = c
        p = p + 0.005 * force(q)
        q = q + 0.01 * p
        return (q, p + 0.005 * force(q)), None

    q, p = plait.lax.scan(step, (pnp.ones(2), pnp.zeros(2)), None, length=500)[0]
    return 0.5 * (q**2 + p**2).sum(), pytest.approx(1.0, abs=1e-4)


@task
def minimise_by_scipy_with_our_gradient():
    return optimize.minimize(for_scipy(rosenbrock), np.zeros(5), jac=True).x, np.ones(5)


@task
def newton_by_scipy_with_our_hessian():
    slope, curve = plait.jit(plait.grad(rosenbrock)), plait.jit(plait.hessian(rosenbrock))
    found = optimize.minimize(
        rosenbrock, np.zeros(5), jac=slope, hess=curve, method="trust-ncg", options={"gtol": 1e-9}
    )
    return found.x, np.ones(5)


@task
def minimise_by_plait():
    return plait.scipy.optimize.minimize(rosenbrock, pnp.zeros(5), method="BFGS").x, np.ones(5)


@task
def fit_a_curve():
    t = np.linspace(0, 3, 30)
    model = lambda t, a, k: a * pnp.exp(-k * t)
    jac = lambda t, a, k: np.stack(plait.jacfwd(model, argnums=(1, 2))(t, a, k), 1)
    data = 2.0 * np.exp(-0.7 * t)
    return optimize.curve_fit(model, t, data, p0=(1.0, 1.0), jac=jac)[0], [2.0, 0.7]


@task
def root_of_a_system():
    f = lambda x: pnp.array([x[0] ** 2 + x[1] ** 2 - 4, x[0] - x[1]])
    found = optimize.root(plait.jit(f), np.array([1.0, 0.5]), jac=plait.jit(plait.jacfwd(f)))
    return found.x, np.full(2, np.sqrt(2))


@task
def newton_in_while_loop():
    step = lambda x: x - (x**3 - 2) / (3 * x**2)
    return plait.lax.while_loop(lambda x: abs(x**3 - 2) > 1e-10, step, 1.0), 2 ** (1 / 3)


@task
def solve_ivp_with_our_right_side():
    got = integrate.solve_ivp(plait.jit(lambda t, s: -s), (0, 1), np.ones(3), rtol=1e-9, atol=1e-9)
    return got.y[:, -1], np.full(3, np.exp(-1))


@task
def odeint_with_our_jacobian():
    f = lambda s, t: -(s**2)
    jac = lambda s, t: np.asarray(plait.jacfwd(f)(s, t))
    got = integrate.odeint(f, np.ones(2), np.linspace(0, 1, 3), Dfun=jac, rtol=1e-9, atol=1e-9)
    return got[-1], np.full(2, 0.5)


@task
def quadrature():
    return integrate.quad(lambda x: pnp.sin(x), 0, np.pi)[0], 2.0


@task
def trapezoids():
    x = np.linspace(0, 1, 11)
    ours = plait.scipy.integrate.trapezoid(pnp.asarray(x**2), pnp.asarray(x))
    return ours, integrate.trapezoid(x**2, x)


@task
def eigenvalues_of_a_hamiltonian():
    return pnp.linalg.eigh(BAND)[0], linalg.eigh(BAND, eigvals_only=True)


@task
def eigenvalues_of_a_rotation():
    a = np.array([[0.0, 1.0], [-1.0, 0.0]])
    return pnp.sort(pnp.linalg.eig(a)[0].imag), [-1.0, 1.0]


@task
def derivative_of_an_eigenvalue():
    least = lambda t: pnp.linalg.eigh(BAND + t * np.eye(3)[::-1])[0][0]
    v = linalg.eigh(BAND)[1][:, 0]
    return plait.grad(least)(0.0), v @ np.eye(3)[::-1] @ v


@task
def matrix_exponential():
    return plait.scipy.linalg.expm(BAND / 3), linalg.expm(BAND / 3)


@task
def factor_once_and_solve():
    factors = plait.scipy.linalg.lu_factor(BAND)
    return plait.scipy.linalg.lu_solve(factors, np.ones(3)), np.linalg.solve(BAND, np.ones(3))


@task
def conjugate_gradients():
    got, _ = plait.scipy.sparse.linalg.cg(lambda v: BAND @ v, np.ones(3), tol=1e-12)
    return got, np.linalg.solve(BAND, np.ones(3))


@task
def spectral_derivative():
    x = np.arange(16) * 2 * np.pi / 16
    k = pnp.fft.fftfreq(16, 1 / 16)
    return pnp.fft.ifft(1j * k * pnp.fft.fft(np.sin(x))).real, np.cos(x)


@task
def convolution_by_fourier():
    a, b = np.arange(5.0), np.array([1.0, 2.0, 1.0])
    return plait.scipy.signal.fftconvolve(a, b), np.convolve(a, b)


@task
def special_functions():
    x = np.array([0.3, 1.5])
    s = plait.scipy.special
    ours = [s.erf(x), s.gamma(x), s.hyp2f1(0.5, 1.0, 1.5, x / 4), s.i0(x)]
    s = special
    return ours, [s.erf(x), s.gamma(x), s.hyp2f1(0.5, 1.0, 1.5, x / 4), s.i0(x)]


@task
def spline_of_scipy_on_our_arrays():
    x = pnp.linspace(0.0, 1.0, 9)
    return interpolate.CubicSpline(x, pnp.sin(x))(0.4), pytest.approx(np.sin(0.4), abs=1e-4)


@task
def linear_interpolation():
    x = np.linspace(0, 1, 5)
    return pnp.interp(0.3, x, x**2), np.interp(0.3, x, x**2)


@task
def derivative_of_a_complex_function():
    return plait.grad(lambda z: pnp.abs(z) ** 2)(1 + 2j), 2 - 4j


@task
def hessian_of_two_hundred_variables():
    x = np.random.default_rng(0).normal(size=200)
    h = plait.jit(plait.hessian(rosenbrock))(x)
    return np.diag(h)[-1], 200.0


@task
def ufuncs_and_files_of_numpy():
    file, x = io.BytesIO(), pnp.linspace(0.0, 1.0, 3)
    np.savez(file, u=np.sin(x) + x)
    file.seek(0)
    return np.load(file)["u"], np.sin([0, 0.5, 1]) + [0, 0.5, 1]


@task
def units_by_constants_of_scipy():
    energy = plait.jit(lambda k: (constants.hbar * k) ** 2 / (2 * constants.m_e))
    k = np.array([1e10, 2e10])
    return energy(k), (constants.hbar * k) ** 2 / (2 * constants.m_e)


@task
def monte_carlo_of_pi():
    points = plait.random.uniform(plait.random.key(0), (100_000, 2))
    return 4 * ((points**2).sum(1) < 1).mean(), pytest.approx(np.pi, abs=0.02)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TASKS)
def test_a_task(name):
    with plait.config(default_float="float64"):
        ours, wanted = TASKS[name]()
    if isinstance(wanted, type(pytest.approx(1.0))):
        assert float(ours) == wanted
    else:
        np.testing.assert_allclose(np.asarray(ours), np.asarray(wanted), rtol=1e-5, atol=1e-7)


def test_there_are_thirty():
    assert len(TASKS) >= 30
