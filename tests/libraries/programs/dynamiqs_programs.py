"""Programs of dynamiqs.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import dynamiqs as dq
import jax
import jax.numpy as jnp

dq.set_progress_meter(False)
A = dq.destroy(6)
TIMES = jnp.linspace(0, 1.0, 5)


def _numbers(x):
    return x.to_jax() if hasattr(x, "to_jax") else x


def readme():
    H = 2.0 * dq.dag(A) @ A
    result = dq.mesolve(H, [jnp.sqrt(0.5) * A], dq.coherent(6, 0.7), TIMES, exp_ops=[dq.dag(A) @ A])
    return result.expects, _numbers(result.states[-1])


def schroedinger():
    H = dq.sigmaz() + 0.3 * dq.sigmax()
    return _numbers(dq.sesolve(H, dq.basis(2, 0), TIMES).states)


def driven():
    H = dq.modulated(lambda t: jnp.cos(3 * t), dq.sigmax()) + dq.sigmaz()
    return _numbers(dq.sesolve(H, dq.basis(2, 0), TIMES).states)


def derivatives():

    def loss(omega):
        out = dq.sesolve(omega * dq.sigmax(), dq.basis(2, 0), TIMES, exp_ops=[dq.sigmaz()])
        return out.expects[0, -1].real

    return jax.value_and_grad(loss)(0.8)


def batches():
    omegas = jnp.array([0.1, 0.5, 1.0])
    H = omegas[:, None, None] * dq.sigmax()
    return _numbers(dq.sesolve(H, dq.basis(2, 0), TIMES).states)


def states():
    x = dq.coherent_dm(6, 0.5)
    cat = dq.unit(dq.coherent(6, 1.0) + dq.coherent(6, -1.0))
    return (
        dq.purity(x), dq.fidelity(x, cat), dq.trace(x), dq.entropy_vn(x), dq.expect(A, cat),
        _numbers(dq.ptrace(dq.tensor(cat, dq.basis(2, 1)), 1, (6, 2))), dq.norm(cat),
    )  # fmt: skip


def propagators():
    return _numbers(dq.sepropagator(dq.sigmay(), TIMES).propagators)
