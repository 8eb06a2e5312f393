"""Programs of flax.linen: the README's, layers, states, lifted transformations.

Invariant: each returns numbers.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

_K = jax.random.PRNGKey(0)
_X = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)).astype("float32"))
_IMAGE = jnp.asarray(np.random.default_rng(1).normal(size=(2, 8, 8, 3)).astype("float32"))


def _leaves(tree):
    return jax.tree_util.tree_leaves(tree)


def readme():
    class MLP(nn.Module):
        features: tuple

        @nn.compact
        def __call__(self, x):
            for feat in self.features[:-1]:
                x = nn.relu(nn.Dense(feat)(x))
            return nn.Dense(self.features[-1])(x)

    model = MLP((12, 8, 4))
    variables = model.init(_K, _X)
    return model.apply(variables, _X), _leaves(variables)


def training():
    import optax
    from flax.training.train_state import TrainState

    model = nn.Sequential([nn.Dense(8), nn.gelu, nn.Dense(1)])
    params = model.init(_K, _X)
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(0.01))

    @jax.jit
    def step(state):
        loss = lambda p: jnp.mean((state.apply_fn(p, _X)[:, 0] - _X.sum(1)) ** 2)
        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    values = []
    for _ in range(15):
        state, value = step(state)
        values.append(value)
    return values


def convolutions():
    class CNN(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.avg_pool(nn.relu(nn.Conv(4, (3, 3))(x)), (2, 2), (2, 2))
            x = nn.ConvTranspose(3, (2, 2), strides=(2, 2))(x)
            x = nn.max_pool(nn.Conv(4, (3, 3), feature_group_count=1)(x), (2, 2))
            return nn.Dense(5)(x.reshape(x.shape[0], -1))

    model = CNN()
    variables = model.init(_K, _IMAGE)
    grads = jax.grad(lambda v: (model.apply(v, _IMAGE) ** 2).mean())(variables)
    return model.apply(variables, _IMAGE), [jnp.linalg.norm(g) for g in _leaves(grads)]


def normalisation():
    found = []
    for layer in (nn.LayerNorm(), nn.RMSNorm(), nn.GroupNorm(3), nn.InstanceNorm()):
        found.append(layer.apply(layer.init(_K, _IMAGE), _IMAGE))
    norm = nn.BatchNorm(use_running_average=False, momentum=0.9)
    variables = norm.init(_K, _X)
    out, updates = norm.apply(variables, _X * 3 + 1, mutable=["batch_stats"])
    wn = nn.WeightNorm(nn.Dense(3))
    return found, out, _leaves(updates), wn.apply(wn.init(_K, _X), _X)


def dropout():
    model = nn.Dropout(0.4, deterministic=False)
    return model.apply({}, _X, rngs={"dropout": jax.random.PRNGKey(3)})


def attention():
    x = _X.reshape(2, 2, 6)
    model = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=4)
    variables = model.init(_K, x)
    mask = nn.make_causal_mask(jnp.ones((2, 2)))
    out = model.apply(variables, x, mask=mask)
    return out, nn.dot_product_attention(x[:, :, None], x[:, :, None], x[:, :, None])


def recurrent():
    x = _X.reshape(2, 2, 6)
    found = []
    for cell in (nn.LSTMCell(5), nn.GRUCell(5), nn.SimpleCell(5)):
        model = nn.RNN(cell)
        found.append(model.apply(model.init(_K, x), x))
    both = nn.Bidirectional(nn.RNN(nn.GRUCell(3)), nn.RNN(nn.GRUCell(3)))
    return found, both.apply(both.init(_K, x), x)


def scanned():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return nn.tanh(nn.Dense(6)(x)), None

    stack = nn.scan(
        nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True}, length=3
    )
    model = stack()
    variables = model.init(_K, _X, None)
    f = lambda v: model.apply(v, _X, None)[0]
    return f(variables), _leaves(jax.grad(lambda v: f(v).sum())(variables))


def mapped():
    dense = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=0)
    model = dense(3)
    variables = model.init(_K, _X)
    return model.apply(variables, _X), _leaves(variables)


def collections():
    class Counter(nn.Module):
        @nn.compact
        def __call__(self, x):
            count = self.variable("state", "count", lambda: jnp.zeros(()))
            if not self.is_initializing():
                count.value = count.value + 1
            self.sow("intermediates", "double", x * 2)
            return x * count.value + self.param("bias", nn.initializers.ones, (6,))

    model = Counter()
    variables = model.init(_K, _X)
    out, new = model.apply(variables, _X, mutable=["state", "intermediates"])
    return out, _leaves(new)


def embeddings():
    embed = nn.Embed(7, 5)
    variables = embed.init(_K, jnp.arange(3))
    return embed.apply(variables, jnp.array([1, 5])), embed.apply(
        variables, jnp.ones((2, 5)), method="attend"
    )


def jitted():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.jit(nn.Dense)(4)(nn.checkpoint(nn.Dense)(5)(x))

    model = Net()
    variables = jax.jit(model.init)(_K, _X)
    loss = lambda v: model.apply(v, _X).sum()
    return _leaves(jax.jit(jax.grad(loss))(variables)), jax.eval_shape(
        model.init, _K, _X
    ) is not None


def saving():
    from flax import serialization, traverse_util

    model = nn.Dense(3)
    variables = model.init(_K, _X)
    data = serialization.to_bytes(variables)
    back = serialization.from_bytes(variables, data)
    flat = traverse_util.flatten_dict(back, sep="/")
    return model.apply(back, _X), sorted(flat)


def tables():
    model = nn.Dense(3)
    return len(model.tabulate(_K, _X).splitlines()) > 5
