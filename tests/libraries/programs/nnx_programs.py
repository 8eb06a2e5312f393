"""Programs of flax.nnx: the README's, layers, states, transformations, training, saving.

Invariant: each returns numbers.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

_X = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)).astype("float32"))
_IMAGE = jnp.asarray(np.random.default_rng(1).normal(size=(2, 8, 8, 3)).astype("float32"))


def _leaves(tree):
    return [np.asarray(x) for x in jax.tree_util.tree_leaves(tree) if hasattr(x, "shape")]


class _MLP(nnx.Module):
    def __init__(self, din, dmid, dout, rngs):
        self.linear1 = nnx.Linear(din, dmid, rngs=rngs)
        self.dropout = nnx.Dropout(rate=0.1, rngs=rngs)
        self.bn = nnx.BatchNorm(dmid, rngs=rngs)
        self.linear2 = nnx.Linear(dmid, dout, rngs=rngs)

    def __call__(self, x):
        return self.linear2(nnx.relu(self.dropout(self.bn(self.linear1(x)))))


def readme():
    model = _MLP(6, 16, 3, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    y = jnp.sin(_X[:, :3])

    @nnx.jit
    def train_step(model, optimizer, x, y):
        loss_fn = lambda model: ((model(x) - y) ** 2).mean()
        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return loss

    losses = [train_step(model, optimizer, _X, y) for _ in range(5)]
    # not the bias before the normalisation: its gradient is rounding, and Adam makes steps of that
    return losses, _leaves((nnx.state(model.linear2), nnx.state(model.bn, nnx.Param)))


def linear():
    rngs = nnx.Rngs(1)
    einsum = nnx.Einsum("bi,io->bo", (6, 4), (4,), rngs=rngs)
    general = nnx.LinearGeneral((2, 3), (5, 2), axis=(-2, -1), rngs=rngs)
    return nnx.Linear(6, 3, rngs=rngs)(_X), einsum(_X), general(_X.reshape(4, 2, 3))


def convolutions():
    rngs = nnx.Rngs(0)
    conv = nnx.Conv(3, 4, kernel_size=(3, 3), strides=2, rngs=rngs)
    up = nnx.ConvTranspose(4, 2, kernel_size=(2, 2), strides=(2, 2), rngs=rngs)
    x = nnx.avg_pool(nnx.gelu(conv(_IMAGE)), (2, 2), (1, 1))
    loss = lambda conv: (up(conv(_IMAGE)) ** 2).mean()
    return up(x), _leaves(nnx.grad(loss)(conv))


def normalisation():
    rngs = nnx.Rngs(0)
    found = [nnx.LayerNorm(6, rngs=rngs)(_X), nnx.RMSNorm(6, rngs=rngs)(_X)]
    found.append(nnx.GroupNorm(3, num_groups=3, rngs=rngs)(_IMAGE))
    norm = nnx.BatchNorm(6, momentum=0.8, rngs=rngs)
    found += [norm(_X * 3 + 1), norm.mean[...], norm.var[...]]
    norm.eval()
    return *found, norm(_X)


def dropout():
    layer = nnx.Dropout(0.4, rngs=nnx.Rngs(dropout=3))
    first, second = layer(_X), layer(_X)
    layer.eval()
    return first, second, layer(_X)


def randomness():
    rngs = nnx.Rngs(0, params=1, noise=2)
    a = jax.random.normal(rngs.params(), (3,))
    b = rngs.noise.uniform((2,))
    c, d = rngs.normal((2,)), jax.random.bits(rngs.other(), (2,))
    forked = rngs.fork(split=3)
    return a, b, c, d, jax.random.key_data(forked.params.key[...])


def attention():
    x = _X.reshape(2, 2, 6)
    layer = nnx.MultiHeadAttention(2, 6, qkv_features=4, decode=False, rngs=nnx.Rngs(0))
    mask = nnx.make_causal_mask(jnp.ones((2, 2)))
    return (
        layer(x, mask=mask),
        layer(x, x * 2),
        nnx.dot_product_attention(x[:, :, None], x[:, :, None], x[:, :, None]),
    )


def decoding():
    layer = nnx.MultiHeadAttention(2, 6, decode=True, rngs=nnx.Rngs(0))
    layer.init_cache((1, 3, 6))
    outs = [layer(_X[None, i : i + 1]) for i in range(3)]
    return outs, layer.cache_index[...], layer.cached_key[...]


def recurrent():
    x = _X.reshape(2, 2, 6)
    found = []
    for cell in (nnx.LSTMCell, nnx.GRUCell, nnx.SimpleCell, nnx.OptimizedLSTMCell):
        found.append(nnx.RNN(cell(6, 5, rngs=nnx.Rngs(0)))(x))
    rows = lambda seed: nnx.RNN(nnx.GRUCell(6, 3, rngs=nnx.Rngs(seed)))
    return found, nnx.Bidirectional(rows(1), rows(2))(x)


def embeddings():
    embed = nnx.Embed(7, 5, rngs=nnx.Rngs(0))
    return embed(jnp.array([1, 5])), embed.attend(jnp.ones((2, 5)))


def sequential():
    rngs = nnx.Rngs(2)
    layers = [nnx.Linear(6, 5, rngs=rngs), nnx.relu, nnx.Linear(5, 2, rngs=rngs), jnp.tanh]
    model = nnx.Sequential(*layers)
    return model(_X), len(nnx.state(model).flat_state())


def adapters():
    layer = nnx.LoRALinear(6, 3, lora_rank=2, rngs=nnx.Rngs(0))
    layer.lora.lora_b[...] = jnp.ones((2, 3))
    only = nnx.DiffState(0, nnx.LoRAParam)
    return layer(_X), _leaves(nnx.grad(lambda m: m(_X).sum(), argnums=only)(layer))


def splitting():
    model = _MLP(6, 4, 2, rngs=nnx.Rngs(0))
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    doubled = jax.tree.map(lambda x: x * 2, params)
    other = nnx.merge(graphdef, doubled, rest)
    other.eval()
    nnx.update(model, doubled)
    popped = nnx.pop(model, nnx.BatchStat)
    paths = sorted("/".join(map(str, p)) for p in nnx.to_flat_state(params).paths)
    return other(_X), _leaves(params), _leaves(popped), paths


def pure():
    model = _MLP(6, 4, 2, rngs=nnx.Rngs(0))
    graphdef, state = nnx.split(model)

    @jax.jit
    def step(state, x):
        model = nnx.merge(graphdef, state)
        return model(x).sum(), nnx.state(model)

    out, state = step(state, _X)
    out2, state = step(state, _X)
    nnx.update(model, state)
    return out, out2, model.bn.mean[...]


def counters():
    class Count(nnx.Variable):
        pass

    class Counter(nnx.Module):
        def __init__(self):
            self.count = Count(jnp.array(0))
            self.seen = nnx.Variable(jnp.zeros((6,)))

        def __call__(self, x):
            self.count[...] += 1
            self.seen[...] = self.seen + x.sum(0)
            self.sow(nnx.Intermediate, "double", x * 2)
            return x * self.count

    model = Counter()
    f = nnx.jit(lambda m, x: m(x))
    model(_X)
    return f(model, _X), f(model, _X), model.count[...], model.seen[...]


def gradients():
    model = nnx.Linear(6, 3, rngs=nnx.Rngs(0))
    loss = lambda m, x: (m(x) ** 2).mean()
    value, grads = nnx.value_and_grad(loss)(model, _X)
    both = nnx.grad(loss, argnums=(0, 1))(model, _X)
    aux = nnx.grad(lambda m: ((m(_X) ** 2).sum(), m(_X)[0]), has_aux=True)(model)
    return value, _leaves(grads), _leaves(both), _leaves(aux)


def gradients_of_kinds():
    model = _MLP(6, 4, 2, rngs=nnx.Rngs(0))
    model.eval()
    only = nnx.DiffState(0, nnx.All(nnx.Param, lambda path, _: "linear1" in path))
    return _leaves(nnx.grad(lambda m: m(_X).sum(), argnums=only)(model))


def custom_derivatives():
    @nnx.custom_vjp
    def halved(m, x):
        return m(x)

    def forward(m, x):
        return halved(m, x), (m, x)

    def backward(kept, g):
        updates, out_g = g
        m, x = kept
        _, pull = jax.vjp(lambda x: x @ m.kernel[...] + m.bias[...], x)
        return (jax.tree.map(lambda v: 0.5 * jnp.ones_like(v), updates[0]), 0.5 * pull(out_g)[0])

    halved.defvjp(forward, backward)
    model = nnx.Linear(6, 3, rngs=nnx.Rngs(0))
    return _leaves(nnx.grad(lambda m, x: halved(m, x).sum(), argnums=(0, 1))(model, _X))


def mapped():
    @nnx.vmap(in_axes=0, out_axes=0)
    def build(key):
        return nnx.Linear(6, 3, rngs=nnx.Rngs(key))

    models = build(jax.random.split(jax.random.key(0), 4))
    out = nnx.vmap(lambda m, x: m(x))(models, _X)
    shared = nnx.vmap(lambda m, x: m(x), in_axes=(None, 0))(nnx.Linear(6, 2, rngs=nnx.Rngs(1)), _X)
    return models.kernel[...], out, shared


def mapped_states():
    axes = nnx.StateAxes({nnx.Param: None, ...: 0})

    @nnx.split_rngs(splits=4)
    @nnx.vmap(in_axes=(axes, 0))
    def noisy(m, x):
        return m(x)

    return noisy(nnx.Dropout(0.5, rngs=nnx.Rngs(0)), _X)


def scanned():
    @nnx.split_rngs(splits=3)
    @nnx.vmap(in_axes=(0,), out_axes=0)
    def build(rngs):
        return nnx.Linear(6, 6, rngs=rngs)

    layers = build(nnx.Rngs(0))

    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    def forward(x, layer):
        return jnp.tanh(layer(x))

    grads = nnx.grad(lambda m: forward(_X, m).sum())(layers)
    return forward(_X, layers), _leaves(grads)


def scanned_states():
    norm = nnx.BatchNorm(6, momentum=0.5, rngs=nnx.Rngs(0))
    axes = nnx.StateAxes({...: nnx.Carry})

    @nnx.scan(in_axes=(axes, 0), out_axes=0)
    def run(norm, x):
        return norm(x)

    return run(norm, jnp.stack([_X, _X + 1, _X * 2])), norm.mean[...], norm.var[...]


def conditions():
    model = nnx.Linear(6, 6, rngs=nnx.Rngs(0))
    count = nnx.Variable(jnp.array(0))

    def twice(m, c, x):
        c[...] += 2
        return m(m(x))

    def once(m, c, x):
        c[...] += 1
        return m(x)

    outs = [nnx.cond(jnp.array(b), twice, once, model, count, _X) for b in (True, False)]
    switched = nnx.switch(jnp.array(1), (twice, once), model, count, _X)
    return outs, switched, count[...]


def loops():
    class State(nnx.Module):
        def __init__(self):
            self.linear = nnx.Linear(6, 6, rngs=nnx.Rngs(0))
            self.steps = nnx.Variable(jnp.array(0))

    def body(pair):
        m, x = pair
        m.steps[...] += 1
        return m, jnp.tanh(m.linear(x))

    model = State()
    model, x = nnx.while_loop(lambda pair: pair[0].steps[...] < 4, body, (model, _X))
    model, y = nnx.fori_loop(0, 3, lambda i, pair: body(pair), (model, x))
    return x, y, model.steps[...]


def rematerialised():
    class Block(nnx.Module):
        def __init__(self, rngs):
            self.linear = nnx.Linear(6, 6, rngs=rngs)

        @nnx.remat
        def __call__(self, x):
            return jnp.sin(self.linear(x))

    block = Block(nnx.Rngs(0))
    return block(_X), _leaves(nnx.grad(lambda m: m(m(_X)).sum())(block))


def shapes():
    model = nnx.eval_shape(lambda: _MLP(6, 16, 3, rngs=nnx.Rngs(0)))
    sizes = sorted(x.shape for x in jax.tree_util.tree_leaves(nnx.state(model, nnx.Param)))
    made = nnx.jit(lambda: _MLP(6, 4, 2, rngs=nnx.Rngs(5)))()
    return sizes[-1], len(sizes), _leaves(nnx.state(made, nnx.Param))


def training():
    model = nnx.Sequential(
        nnx.Linear(6, 8, rngs=nnx.Rngs(0)), nnx.gelu, nnx.Linear(8, 1, rngs=nnx.Rngs(1))
    )
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.01))
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
    metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), accuracy=nnx.metrics.Accuracy())

    @nnx.jit
    def step(model, optimizer, metrics, x):
        want = x.sum(1)

        def loss(model):
            out = model(x)[:, 0]
            return jnp.mean((out - want) ** 2), out

        (value, out), grads = nnx.value_and_grad(loss, has_aux=True)(model)
        logits = jnp.stack([-out, out], -1)
        metrics.update(loss=value, logits=logits, labels=(want > 0).astype(jnp.int32))
        optimizer.update(model, grads)

    for _ in range(12):
        step(model, optimizer, metrics, _X)
    found = metrics.compute()
    return found["loss"], found["accuracy"], optimizer.step[...], _leaves(nnx.state(model))


def cached():
    model = _MLP(6, 8, 2, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        grads = nnx.grad(lambda m: (m(_X) ** 2).mean())(model)
        optimizer.update(model, grads)
        return (model(_X) ** 2).mean()

    fast = nnx.cached_partial(step, model, optimizer)
    return [fast() for _ in range(4)]


def averages():
    model = nnx.Linear(6, 2, rngs=nnx.Rngs(0))
    ema = nnx.EMA(model, decay=0.5)
    nnx.update(model, jax.tree.map(lambda x: x + 1, nnx.state(model)))
    ema.update(model)
    return _leaves(nnx.state(ema.apply_to(model)))


def surgery():
    model = _MLP(6, 4, 2, rngs=nnx.Rngs(0))
    model.linear2 = nnx.Linear(4, 5, rngs=nnx.Rngs(9))
    twin = nnx.clone(model)
    twin.linear1.kernel[...] = jnp.zeros((6, 4))
    shared = nnx.Sequential(model.linear1, nnx.relu)
    shared.layers[0].bias[...] += 1.0
    model.set_attributes(deterministic=True, use_running_average=True)
    kinds = sorted(type(m).__name__ for _, m in nnx.iter_modules(model))
    return model(_X), twin.linear1(_X), kinds, model.linear1.bias[...]


def bridged():
    from flax import linen as nn

    model = nnx.bridge.ToNNX(nn.Dense(3), rngs=nnx.Rngs(0)).lazy_init(_X)
    linen = nnx.bridge.to_linen(nnx.Linear, 6, out_features=3)
    variables = linen.init(jax.random.key(0), _X)
    return model(_X), linen.apply(variables, _X)


def saving():
    from flax import serialization

    model = _MLP(6, 4, 2, rngs=nnx.Rngs(0))
    graphdef, state = nnx.split(model)
    data = serialization.msgpack_serialize(
        jax.tree.map(
            lambda x: np.asarray(jax.random.key_data(x) if _is_key(x) else x),
            nnx.to_pure_dict(state),
        )
    )
    back = serialization.msgpack_restore(data)
    params = nnx.state(nnx.clone(model), nnx.Param)
    nnx.replace_by_pure_dict(
        params,
        {k: back[k] for k in nnx.to_pure_dict(params)}
        | {"bn": {k: back["bn"][k] for k in ("scale", "bias")}},
    )
    return _leaves(params), sorted(back)


def _is_key(x):
    return jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def tables():
    model = _MLP(6, 4, 2, rngs=nnx.Rngs(0))
    text = nnx.tabulate(model, _X, console_kwargs={"width": 120})
    return "linear1" in text, "Total Parameters" in text, repr(model.linear1).count("\n") > 3


def shards():
    init = nnx.with_partitioning(nnx.initializers.lecun_normal(), (None, "data"))
    with nnx.use_eager_sharding(False):
        model = nnx.Linear(6, 4, kernel_init=init, rngs=nnx.Rngs(0))
    state = nnx.state(model)
    specs = nnx.get_partition_spec(state)
    mesh = jax.make_mesh((1,), ("data",))
    named = jax.sharding.NamedSharding(mesh, specs["kernel"].get_value())
    kernel = jax.device_put(model.kernel[...], named)
    return kernel, str(tuple(specs["kernel"].get_value()))


def transposed_axes():
    @partial(nnx.vmap, in_axes=(None, 1), out_axes=1)
    def columns(m, x):
        return m(x)

    return columns(nnx.Linear(4, 2, rngs=nnx.Rngs(0)), _X)
