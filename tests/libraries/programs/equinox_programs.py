"""Programs of equinox: the README's, layers, filtered transformations, errors, loops.

Invariant: each returns numbers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

_X = jnp.asarray(np.random.default_rng(0).normal(size=(8, 3)).astype("float32"))
_K = jax.random.PRNGKey(0)


def readme():
    class Linear(eqx.Module):
        weight: jax.Array
        bias: jax.Array

        def __init__(self, in_size, out_size, key):
            wkey, bkey = jax.random.split(key)
            self.weight = jax.random.normal(wkey, (out_size, in_size))
            self.bias = jax.random.normal(bkey, (out_size,))

        def __call__(self, x):
            return self.weight @ x + self.bias

    @jax.jit
    @jax.grad
    def loss_fn(model, x, y):
        pred_y = jax.vmap(model)(x)
        return jax.numpy.mean((y - pred_y) ** 2)

    grads = loss_fn(Linear(3, 4, _K), _X, jnp.zeros((8, 4)))
    return grads.weight, grads.bias


def training():
    model = eqx.nn.MLP(3, 1, 16, 2, key=_K)

    @eqx.filter_value_and_grad
    def loss(model):
        return jnp.mean((jax.vmap(model)(_X)[:, 0] - _X.sum(1)) ** 2)

    @eqx.filter_jit
    def step(model):
        value, grads = loss(model)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -0.05 * g, grads)), value

    values = []
    for _ in range(20):
        model, value = step(model)
        values.append(value)
    return values, model(_X[0])


def layers():
    k = jax.random.split(_K, 6)
    image = jnp.asarray(np.random.default_rng(1).normal(size=(2, 6, 6)).astype("float32"))
    found = {
        "conv": eqx.nn.Conv2d(2, 3, 3, padding=1, key=k[0])(image),
        "transpose": eqx.nn.ConvTranspose2d(2, 3, 3, stride=2, key=k[0])(image),
        "pool": eqx.nn.MaxPool2d(2, 2)(image),
        "mean": eqx.nn.AvgPool2d(2, 1)(image),
        "adaptive": eqx.nn.AdaptiveAvgPool2d(3)(image),
        "norm": eqx.nn.LayerNorm((2, 6, 6))(image),
        "group": eqx.nn.GroupNorm(1, 2)(image),
        "rms": eqx.nn.RMSNorm(3)(_X[0]),
        "gru": eqx.nn.GRUCell(3, 4, key=k[1])(_X[0], jnp.ones(4)),
        "lstm": eqx.nn.LSTMCell(3, 4, key=k[2])(_X[0], (jnp.ones(4), jnp.zeros(4))),
        "embedding": eqx.nn.Embedding(5, 3, key=k[3])(2),
        "dropout": eqx.nn.Dropout(0.5)(_X, key=k[4]),
        "prelu": eqx.nn.PReLU(0.1)(_X),
        "spectral": eqx.nn.Identity()(_X[0]),
    }
    return found


def attention():
    attn = eqx.nn.MultiheadAttention(2, 4, key=_K)
    x = jnp.asarray(np.random.default_rng(2).normal(size=(5, 4)).astype("float32"))
    mask = jnp.tril(jnp.ones((5, 5), bool))
    f = lambda a, x: a(x, x, x, mask=mask).sum()
    grads = eqx.filter_jit(eqx.filter_grad(f))(attn, x)
    rope = eqx.nn.RotaryPositionalEmbedding(4)
    return attn(x, x, x, mask=mask), grads.query_proj.weight, rope(x)


def states():
    model, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="b", mode="batch")
    run = jax.vmap(model, axis_name="b", in_axes=(0, None), out_axes=(0, None))
    outs = []
    for i in range(3):
        out, state = run(_X * (i + 1), state)
        outs.append(out)
    frozen = eqx.nn.inference_mode(model)
    return outs, jax.vmap(frozen, axis_name="b", in_axes=(0, None), out_axes=(0, None))(_X, state)[
        0
    ]


def filters():
    model = eqx.nn.MLP(3, 2, 4, 1, key=_K)
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    spec = jax.tree.map(lambda _: False, model)
    spec = eqx.tree_at(lambda m: m.layers[-1].weight, spec, True)
    train, fixed = eqx.partition(model, spec)
    grads = jax.grad(lambda t: jax.vmap(eqx.combine(t, fixed))(_X).sum())(train)
    same = eqx.tree_equal(eqx.combine(arrays, rest), model)
    changed = eqx.tree_at(lambda m: m.layers[0].bias, model, replace_fn=lambda b: b + 1)
    return jax.tree.leaves(grads), int(same), changed(_X[0])


def transformations():
    f = lambda model, x: model(x)
    model = eqx.nn.Linear(3, 2, key=_K)
    mapped = eqx.filter_vmap(f, in_axes=(None, 0))(model, _X)
    ensemble = eqx.filter_vmap(lambda k: eqx.nn.Linear(3, 2, key=k))(jax.random.split(_K, 4))
    each = eqx.filter_vmap(f, in_axes=(eqx.if_array(0), None))(ensemble, _X[0])
    out, dot = eqx.filter_jvp(lambda x: model(x), (_X[0],), (_X[1],))
    out2, pull = eqx.filter_vjp(lambda x: model(x), _X[0])
    hess = eqx.filter_hessian(lambda x: (model(x) ** 3).sum())(_X[0])
    jac = eqx.filter_jacrev(lambda x: model(x) ** 2)(_X[0])
    return mapped, each, out, dot, out2, pull(jnp.ones(2)), hess, jac


def custom_rules():
    @eqx.filter_custom_vjp
    def f(x, scale):
        return jnp.sin(x) * scale

    @f.def_fwd
    def _(perturbed, x, scale):
        return f(x, scale), jnp.cos(x)

    @f.def_bwd
    def _(res, ct, perturbed, x, scale):
        return ct * res * 2.0

    @eqx.filter_custom_jvp
    def g(x, *, power):
        return x**power

    @g.def_jvp
    def _(primals, tangents, *, power):
        (x,), (t,) = primals, tangents
        return g(x, power=power), t * x

    return (
        jax.grad(f)(0.7, 3.0),
        jax.grad(lambda x: g(x, power=3))(2.0),
        jax.vmap(jax.grad(f), (0, None))(_X[0], 3.0),
    )


def errors():
    @eqx.filter_jit
    def f(x):
        x = eqx.error_if(x, x < 0, "x must be >= 0")
        return jnp.sqrt(x)

    try:
        f(jnp.array(-1.0))
        told = ""
    except Exception as e:
        told = "x must be >= 0" if "x must be >= 0" in str(e) else type(e).__name__
    return f(4.0), told, jax.grad(f)(4.0)


def loops():
    loop = eqx.internal.while_loop
    body = lambda c: (c[0] + 1, jnp.sin(c[1]) * 1.5)
    cond = lambda c: c[0] < 6
    found = []
    for kind in ("lax", "bounded", "checkpointed"):
        run = lambda x, kind=kind: loop(cond, body, (0, x), max_steps=16, kind=kind)[1]
        found.append(run(0.7))
        if kind != "lax":
            found.append(jax.grad(run)(0.7))
            found.append(jax.jit(jax.vmap(jax.grad(run)))(_X[0]))
    return found


def programs_closed():
    f = lambda x, y: (jnp.sin(x) * y, 3)
    closed, shape, static = eqx.filter_make_jaxpr(f)(_X[0], 2.0)
    g = eqx.filter_closure_convert(lambda x: x * _X[1], _X[0])
    struct = eqx.filter_eval_shape(f, _X, 1.0)
    checked = eqx.filter_checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    return len(closed.eqns), g(_X[2]), struct[0].shape, jax.grad(lambda x: checked(x).sum())(_X[0])


def saving():
    import io

    model = eqx.nn.MLP(3, 2, 4, 1, key=_K)
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    like = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.PRNGKey(1))
    return eqx.tree_deserialise_leaves(file, like)(_X[0]), len(eqx.tree_pformat(model).splitlines())
