"""Programs of dm-haiku.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(8, 6)).astype("float32")
KEY = jax.random.PRNGKey(0)


def _run(f, *args):
    """The result of a transformed function, and the norm of its gradient."""
    f = hk.transform_with_state(f)
    params, state = f.init(KEY, *args)
    out, state = jax.jit(f.apply)(params, state, KEY, *args)

    def loss(p):
        return sum(jnp.sum(y**2) for y in jax.tree.leaves(f.apply(p, state, KEY, *args)[0]))

    grads = jax.tree.leaves(jax.grad(loss)(params))
    return out, state, jnp.sqrt(sum(jnp.sum(g**2) for g in grads))


def readme():
    def loss(x, labels):
        mlp = hk.Sequential([hk.Linear(10), jax.nn.relu, hk.Linear(4)])
        logits = jax.nn.log_softmax(mlp(x))
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))

    f = hk.without_apply_rng(hk.transform(loss))
    labels = np.arange(8) % 4
    params = f.init(KEY, X, labels)
    values = []
    for _ in range(4):
        value, grads = jax.value_and_grad(f.apply)(params, X, labels)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        values.append(value)
    return values


def layers():
    return _run(
        lambda x: hk.nets.MLP([5, 3], activation=jnp.tanh)(hk.LayerNorm(-1, True, True)(x)), X
    )


def convolutions():
    def net(x):
        x = hk.Conv2D(4, 3)(x)
        x = hk.BatchNorm(True, True, 0.9)(x, is_training=True)
        x = hk.max_pool(jax.nn.relu(x), 2, 2, "SAME")
        return hk.Conv2DTranspose(2, 3, stride=2)(x)

    return _run(net, rng.normal(size=(2, 6, 6, 3)).astype("float32"))


def recurrent_nets():
    def net(x):
        core = hk.LSTM(5)
        ys, state = hk.dynamic_unroll(core, x[:, None], core.initial_state(1))
        zs, _ = hk.dynamic_unroll(hk.GRU(4), ys, jnp.zeros((1, 4)))
        return zs, state.hidden

    return _run(net, X)


def attention():
    return _run(
        lambda x: hk.MultiHeadAttention(2, 3, w_init=hk.initializers.VarianceScaling())(x, x, x), X
    )


def random_layers():
    return _run(lambda x: hk.dropout(hk.next_rng_key(), 0.5, hk.Linear(4)(x)), X)


def state_and_control():
    def net(x):
        count = hk.get_state("count", (), jnp.float32, jnp.zeros)
        hk.set_state("count", count + 1)
        step = hk.Linear(6)
        x = (
            hk.fori_loop(0, 3, lambda i, v: jnp.tanh(step(v)), x)
            if not hk.running_init()
            else step(x)
        )
        return hk.cond(x.sum() > 0, lambda v: step(v), lambda v: -step(v), x)

    return _run(net, X)


def stacked_layers():
    def net(x):
        stack = hk.experimental.layer_stack(3)
        return stack(lambda v: jnp.sin(hk.Linear(6)(v)))(x)

    return _run(net, X)


def lifted_maps():
    def net(x):
        f = hk.vmap(hk.Linear(3, name="a"), split_rng=False)
        return f(x), hk.remat(hk.Linear(2, name="b"))(x)

    return _run(net, X)
