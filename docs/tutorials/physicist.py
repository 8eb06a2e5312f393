# %% [markdown]
# # A physicist's afternoon
#
# Four problems in one notebook: fit the rates of a differential equation by its adjoint, solve a
# partial differential equation with a network, minimise a function by products with its Hessian,
# and sample a posterior by Hamiltonian Monte Carlo (HMC). Each is checked against an independent
# answer.
#
# Physicists expect 64 bits. One setting makes `float64` the dtype of everything that names none.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp
from sklearn.datasets import load_diabetes

import plait
import plait.numpy as pnp
from plait import lax, random

plait.config.default_float = "float64"
print(pnp.linspace(0, 1, 3).dtype)

# %% [markdown]
# ## 1. The rates of a differential equation
#
# Hares and lynxes: `x' = a x - b x y`, `y' = c x y - d y`. A Runge-Kutta step of fourth order,
# repeated by `scan`, which compiles it once.

# %%
TIMES, STEP = 300, 0.05


def field(s, rates):
    (x, y), (a, b, c, d) = s, rates
    return pnp.array([a * x - b * x * y, c * x * y - d * y])


def solve(rates, start):
    def step(s, _):
        k1 = field(s, rates)
        k2 = field(s + STEP / 2 * k1, rates)
        k3 = field(s + STEP / 2 * k2, rates)
        k4 = field(s + STEP * k3, rates)
        s = s + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return s, s

    # As lax.scan, but reverse mode keeps some of the states and computes the others again.
    return plait.checkpoint_scan(step, start, None, length=TIMES)[1]


truth, start = pnp.array([1.0, 0.4, 0.2, 0.6]), pnp.array([5.0, 2.0])
path = plait.jit(solve)(truth, start)

scipys = solve_ivp(
    plait.jit(lambda t, s: field(s, truth)),
    (0, TIMES * STEP),
    start,
    t_eval=STEP * np.arange(1, TIMES + 1),
    rtol=1e-9,
    atol=1e-9,
)
print("largest difference from scipy's:", abs(path - scipys.y.T).max())
assert abs(path - scipys.y.T).max() < 1e-3

# %% [markdown]
# Here scipy called a jitted function of Plait, which takes numpy arrays and returns what numpy
# can use.
#
# Now the rates are unknown, and the path is measured with noise. `grad` through `solve` is the
# *discrete adjoint*: one sweep back in time gives the derivatives with respect to all rates.

# %%
measured = path + 0.3 * random.normal(random.key(0), path.shape)


def misfit(logs):
    return ((solve(pnp.exp(logs), start) - measured) ** 2).mean()


slope = plait.jit(plait.grad(misfit))
at, h = pnp.log(truth * 1.3), 1e-5
for i in range(2):  # beside central differences
    e = h * np.eye(4)[i]
    print(slope(at)[i], (misfit(at + e) - misfit(at - e)) / (2 * h))

# %% [markdown]
# `plait.scipy.optimize.minimize` has BFGS as one compiled program, and it can be differentiated
# and mapped. scipy's own optimisers take our gradients, too: [beside scipy](../how-to/scipy.md).

# %%
fit = plait.scipy.optimize.minimize(misfit, pnp.log(truth * 1.3), method="BFGS")
rates = pnp.exp(fit.x)
print("rates:", np.round(rates, 3), "truth:", truth)
assert abs(rates / truth - 1).max() < 0.1

times = STEP * np.arange(1, TIMES + 1)
plt.plot(times, measured, ".", markersize=2)
plt.gca().set_prop_cycle(None)
plt.plot(times, solve(rates, start), label=["hares", "lynxes"])
plt.xlabel("time")
plt.legend()
plt.show()

# %% [markdown]
# ## 2. A partial differential equation with a network
#
# A physics-informed network (PINN) for Poisson's equation on a square, `u_xx + u_yy = -2 π²
# sin(πx) sin(πy)`, zero at the edge. The network times `x (1-x) y (1-y)` is zero at the edge by
# itself. The loss is the mean squared residual of the equation at random points;
# `plait.fwd_laplacian` gives value, gradient and Laplacian in one pass.


# %%
def init(key, sizes=(2, 32, 32, 1)):
    keys = random.split(key, len(sizes))
    return [
        (random.normal(k, (n, m)) / np.sqrt(n), pnp.zeros(m))
        for k, n, m in zip(keys, sizes[:-1], sizes[1:])
    ]


def u(params, p):
    h = p
    for w, b in params[:-1]:
        h = pnp.tanh(h @ w + b)
    w, b = params[-1]
    x, y = p
    return (h @ w + b)[0] * x * (1 - x) * y * (1 - y) * 16


def exact(p):
    return pnp.sin(np.pi * p[..., 0]) * pnp.sin(np.pi * p[..., 1])


def residual(params, p):
    laplacian = plait.fwd_laplacian(lambda p: u(params, p))(p)[2]
    return laplacian + 2 * np.pi**2 * exact(p)


def pde_loss(params, points):
    return (plait.vmap(residual, in_axes=(None, 0))(params, points) ** 2).mean()


STEPS = 600


@plait.jit
def train(params, key):
    """All steps of Adam, as one compiled loop."""
    zeros = plait.tree.map(pnp.zeros_like, params)

    def step(carry, tk):
        params, mean, square = carry
        t, key = tk
        points = random.uniform(key, (128, 2))
        value, grads = plait.value_and_grad(pde_loss)(params, points)
        mean = plait.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = plait.tree.map(lambda s, g: 0.99 * s + 0.01 * g**2, square, grads)
        rate = 5e-3 * pnp.cos(np.pi / 2 * t / STEPS)

        def moved(p, m, s):
            m, s = m / (1 - 0.9 ** (t + 1)), s / (1 - 0.99 ** (t + 1))
            return p - rate * m / (pnp.sqrt(s) + 1e-8)

        params = plait.tree.map(moved, params, mean, square)
        return (params, mean, square), value

    rows = pnp.arange(STEPS), random.split(key, STEPS)
    (params, _, _), values = lax.scan(step, (params, zeros, zeros), rows)
    return params, values


params, values = train(init(random.key(1)), random.key(2))
grid = pnp.stack(pnp.meshgrid(*2 * [pnp.linspace(0, 1, 41)], indexing="ij"), -1)
found = plait.vmap(plait.vmap(u, (None, 0)), (None, 0))(params, grid)
error = abs(found - exact(grid))
print("largest error:", error.max())
assert error.max() < 0.05

figure, axes = plt.subplots(1, 3, figsize=(10, 2.8))
axes[0].semilogy(values, linewidth=0.7)
axes[0].set(xlabel="step", ylabel="residual²")
for ax, z, name in zip(axes[1:], (found, error), ("u", "error")):
    figure.colorbar(ax.imshow(z, origin="lower", extent=(0, 1, 0, 1)), ax=ax)
    ax.set_title(name)

# %% [markdown]
# ## 3. Newton's method without a Hessian
#
# A thousand variables have a Hessian of a million numbers. `plait.hvp` multiplies by it without
# making it, and conjugate gradients need nothing else.


# %%
def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@plait.jit
def newton_step(x):
    g = plait.grad(rosenbrock)(x)

    def damped(v):
        return plait.hvp(rosenbrock, (x,), (v,))[0] + 1e-3 * v

    direction, _ = plait.scipy.sparse.linalg.cg(damped, -g, maxiter=200)
    rates = 0.5 ** pnp.arange(12)
    along = plait.vmap(lambda r: rosenbrock(x + r * direction))(rates)
    return x + rates[along.argmin()] * direction, pnp.linalg.norm(g)


x, norms = pnp.full(1000, 0.8), []
for _ in range(14):
    x, norm = newton_step(x)
    norms.append(norm)
print("largest distance from the minimum:", abs(x - 1).max())
assert abs(x - 1).max() < 1e-6

plt.semilogy(norms, "o-")
plt.xlabel("step of Newton's method"), plt.ylabel("norm of the gradient")
plt.show()

# %% [markdown]
# `vmap` over the step lengths is the line search: twelve function values in one call.
#
# ## 4. A posterior, by Hamiltonian Monte Carlo
#
# Linear regression on the diabetes data of scikit-learn: ten measurements of 442 patients. The
# posterior is Gaussian, so that there is an exact answer to compare with. Four chains are one
# chain under `vmap`.

# %%
inputs, outputs = load_diabetes(return_X_y=True)
inputs = inputs / inputs.std(0)
outputs = (outputs - outputs.mean()) / outputs.std()
NOISE, PRIOR = 0.7, 1.0


def log_density(w):
    left = ((outputs - inputs @ w) ** 2).sum() / NOISE**2
    return -0.5 * (left + (w**2).sum() / PRIOR**2)


def leapfrog(w, p, size, steps):
    def turn(_, state):
        w, p = state
        p = p + size / 2 * plait.grad(log_density)(w)
        w = w + size * p
        return w, p + size / 2 * plait.grad(log_density)(w)

    return lax.fori_loop(0, steps, turn, (w, p))


def chain(key, draws):
    def draw(w, key):
        first, second, third = random.split(key, 3)
        p = random.normal(first, w.shape)
        size = 0.022 * random.uniform(third, minval=0.7, maxval=1.3)
        new_w, new_p = leapfrog(w, p, size, 20)
        before = log_density(w) - 0.5 * p @ p
        after = log_density(new_w) - 0.5 * new_p @ new_p
        accept = pnp.log(random.uniform(second)) < after - before
        w = pnp.where(accept, new_w, w)
        return w, (w, accept)

    return lax.scan(draw, pnp.zeros(10), random.split(key, draws))[1]


DRAWS = 1000
keys = random.split(random.key(3), 4)
draws, accepted = plait.jit(plait.vmap(chain, (0, None)), static_argnums=1)(keys, DRAWS)
draws = np.asarray(draws[:, 200:]).reshape(-1, 10)  # without the way from zero

precision = inputs.T @ inputs / NOISE**2 + np.eye(10) / PRIOR**2
mean = np.linalg.solve(precision, inputs.T @ outputs / NOISE**2)
deviation = np.sqrt(np.diag(np.linalg.inv(precision)))
print(f"accepted: {accepted.mean():.0%}")
print("largest error of a mean, in deviations:", abs((draws.mean(0) - mean) / deviation).max())
assert abs((draws.mean(0) - mean) / deviation).max() < 0.3

plt.violinplot(draws, showextrema=False)
plt.errorbar(range(1, 11), mean, 2 * deviation, fmt="k.", label="exact mean, two deviations")
plt.xticks(range(1, 11), load_diabetes().feature_names)
plt.ylabel("weight")
plt.legend()
plt.show()

# %% [markdown]
# Beyond a page of such code, [libraries of JAX](../libraries.md) run on Plait unmodified: diffrax
# for differential equations, optimistix and optax for optimisation, blackjax and numpyro for
# sampling.
