"""Programs of pennylane, through its jax interface.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import pennylane as qml

DEVICE = qml.device("default.qubit", wires=2)


@qml.qnode(DEVICE, interface="jax")
def _circuit(x):
    qml.RX(x[0], wires=0)
    qml.RY(x[1], wires=1)
    qml.CNOT(wires=[0, 1])
    qml.Rot(x[2], x[0], x[1], wires=1)
    return qml.expval(qml.PauliZ(0) @ qml.PauliX(1))


X = jnp.array([0.3, -0.7, 1.1])


def readme():
    return _circuit(X), jax.grad(_circuit)(X)


def jitted():
    return jax.jit(_circuit)(X), jax.jit(jax.grad(_circuit))(X)


def mapped():
    return jax.vmap(_circuit)(jnp.stack([X, 2 * X, -X]))


def hessians():
    return jax.hessian(_circuit)(X)


def shift_rule():
    f = qml.QNode(_circuit.func, DEVICE, interface="jax", diff_method="parameter-shift")
    return jax.grad(f)(X)


def states_and_probabilities():
    @qml.qnode(DEVICE, interface="jax")
    def f(x):
        qml.Hadamard(0)
        qml.CRZ(x, wires=[0, 1])
        qml.QubitUnitary(jnp.array([[0, 1], [1, 0]]) * jnp.exp(1j * x), wires=1)
        return qml.state(), qml.probs(wires=0), qml.var(qml.PauliY(1))

    return f(0.4)


def mixed_states():
    dev = qml.device("default.mixed", wires=1)

    @qml.qnode(dev, interface="jax")
    def f(p):
        qml.RX(0.5, wires=0)
        qml.AmplitudeDamping(p, wires=0)
        return qml.expval(qml.PauliZ(0))

    return f(0.2), jax.grad(f)(0.2)


def optimisation():
    import optax

    opt = optax.adam(0.1)
    x, state, out = X, opt.init(X), []
    for _ in range(5):
        value, g = jax.value_and_grad(_circuit)(x)
        updates, state = opt.update(g, state)
        x = optax.apply_updates(x, updates)
        out.append(value)
    return out
