"""Programs of optax: the README's, every optimiser, schedules, losses, wrappers.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

_rng = np.random.default_rng(0)
_X = _rng.normal(size=(64, 5)).astype("float32")
_Y = (_X @ np.arange(5, dtype="float32") + 0.1 * _rng.normal(size=64)).astype("float32")


def _loss(params, x=_X, y=_Y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def _train(optimizer, steps=30, **extra):
    params = {"w": jnp.zeros(5), "b": jnp.zeros(1)}
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(_loss)(params)
        more = {k: f(params, value, grads) for k, f in extra.items()}
        updates, state = optimizer.update(grads, state, params, **more)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for _ in range(steps):
        params, state, value = step(params, state)
        losses.append(value)
    return params, losses


def readme():
    optimizer = optax.adam(1e-1)
    params = {"w": jnp.ones((5,))}
    state = optimizer.init(params)
    compute_loss = lambda params, x, y: optax.l2_loss(params["w"].dot(x), y)
    for x, y in zip(_X, _Y):
        grads = jax.grad(compute_loss)(params, x, y)
        updates, state = optimizer.update(grads, state)
        params = optax.apply_updates(params, updates)
    return params


def optimisers():
    names = [
        *("adabelief", "adadelta", "adagrad", "adam", "adamax", "adamaxw", "adamw", "adan"),
        *("amsgrad", "fromage", "lamb", "lars", "lion", "nadam", "nadamw", "noisy_sgd"),
        *("novograd", "optimistic_gradient_descent", "radam", "rmsprop", "rprop", "sgd"),
        *("sign_sgd", "sm3", "yogi"),
    ]
    found = {}
    for name in names:
        make = getattr(optax, name)
        more = {"eta": 0.01, "gamma": 0.55, "key": 0} if name == "noisy_sgd" else {}
        try:
            optimizer = make(0.02, **more)
        except TypeError:
            optimizer = make(0.02, seed=0)
        found[name] = _train(optimizer, 20)
    return found


def schedules():
    steps = jnp.arange(40)
    found = [
        optax.constant_schedule(0.1),
        optax.linear_schedule(1.0, 0.1, 20, 5),
        optax.cosine_decay_schedule(1.0, 30, 0.1),
        optax.exponential_decay(1.0, 10, 0.5, staircase=True),
        optax.warmup_cosine_decay_schedule(0.0, 1.0, 10, 35, 0.01),
        optax.piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.1}),
        optax.polynomial_schedule(1.0, 0.0, 2, 30),
        optax.cosine_onecycle_schedule(40, 1.0),
        optax.sgdr_schedule(
            [dict(init_value=0.0, peak_value=1.0, warmup_steps=5, decay_steps=15)] * 2
        ),
        optax.join_schedules(
            [optax.constant_schedule(1.0), optax.linear_schedule(1.0, 0.0, 5)], [9]
        ),
    ]
    return [jax.vmap(f)(steps) if i else jnp.asarray(f(0)) for i, f in enumerate(found)]


def losses():
    p, t = jnp.asarray(_X[:8]), jnp.asarray(_X[8:16])
    labels = jnp.arange(8) % 5
    probs = jax.nn.softmax(t)
    found = {
        "l2": optax.l2_loss(p, t),
        "huber": optax.huber_loss(p, t),
        "log_cosh": optax.log_cosh(p, t),
        "cosine": optax.cosine_similarity(p, t),
        "softmax": optax.softmax_cross_entropy(p, probs),
        "integer": optax.softmax_cross_entropy_with_integer_labels(p, labels),
        "sigmoid": optax.sigmoid_binary_cross_entropy(p, (t > 0).astype("float32")),
        "focal": optax.sigmoid_focal_loss(p, (t > 0).astype("float32")),
        "hinge": optax.hinge_loss(p, jnp.sign(t)),
        "kl": optax.kl_divergence(jax.nn.log_softmax(p), probs),
        "ranking": optax.losses.ranking_softmax_loss(p, t),
        "triplet": optax.losses.triplet_margin_loss(p, t, p[::-1]),
    }
    grads = jax.grad(lambda p: optax.huber_loss(p, t).sum() + optax.log_cosh(p, t).sum())(p)
    return found, grads


def ctc():
    logits = jnp.asarray(_rng_logits())
    pads = jnp.zeros((2, 8))
    labels = jnp.array([[1, 2, 2, 0], [3, 1, 0, 0]])
    label_pads = jnp.array([[0.0, 0, 0, 1], [0, 0, 1, 1]])
    loss = lambda x: optax.ctc_loss(x, pads, labels, label_pads).sum()
    return jax.value_and_grad(loss)(logits)


def _rng_logits():
    return np.random.default_rng(3).normal(size=(2, 8, 5)).astype("float32")


def chains():
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.add_decayed_weights(1e-3),
        optax.scale_by_adam(),
        optax.scale_by_schedule(optax.cosine_decay_schedule(0.3, 30)),
        optax.scale(-1.0),
    )
    masked = optax.masked(optax.sgd(0.1, momentum=0.9), {"w": True, "b": False})
    parts = optax.partition({"a": optax.adam(0.1), "b": optax.sgd(0.1)}, {"w": "a", "b": "b"})
    ema = optax.chain(optax.sgd(0.05), optax.ema(0.9))
    return [_train(o) for o in (optimizer, masked, parts, ema)]


def wrappers():
    steps = optax.MultiSteps(optax.adam(0.1), every_k_schedule=3)
    finite = optax.apply_if_finite(optax.sgd(0.1), 3)
    hyper = optax.inject_hyperparams(optax.adam)(optax.linear_schedule(0.2, 0.0, 30))
    look = optax.lookahead(optax.sgd(0.1), 5, 0.5)
    params = optax.LookaheadParams.init_synced({"w": jnp.zeros(5), "b": jnp.zeros(1)})
    state = look.init(params)
    for _ in range(11):
        updates, state = look.update(jax.grad(_loss)(params.fast), state, params)
        params = optax.apply_updates(params, updates)
    return [_train(o) for o in (steps.gradient_transformation(), finite, hyper)], params.slow


def lbfgs():
    optimizer = optax.lbfgs()
    fun = lambda p: jnp.sum((1 - p[:-1]) ** 2 + 10 * (p[1:] - p[:-1] ** 2) ** 2)
    value_and_grad = optax.value_and_grad_from_state(fun)

    def step(carry, _):
        params, state = carry
        value, grad = value_and_grad(params, state=state)
        more = dict(value=value, grad=grad, value_fn=fun)
        updates, state = optimizer.update(grad, state, params, **more)
        params = optax.apply_updates(params, updates)
        return (params, state), value

    start = jnp.array([-0.5, 0.3, 0.8])
    (params, _), values = jax.lax.scan(step, (start, optimizer.init(start)), None, length=25)
    return params, values[:12]


def projections():
    x = jnp.asarray(_X[0]) * 2
    p = optax.projections
    found = [
        p.projection_simplex(x),
        p.projection_l1_ball(x, 1.0),
        p.projection_l2_ball(x, 1.0),
        p.projection_box(x, -0.5, 0.5),
        p.projection_non_negative(x),
        p.projection_linf_ball(x, 0.7),
    ]
    return found, jax.jacobian(p.projection_simplex)(x)


def trees():
    t = optax.tree_utils
    a = {"x": jnp.asarray(_X[0]), "y": [jnp.asarray(_X[1])]}
    b = jax.tree.map(lambda v: v * 2 + 1, a)
    random = t.tree_random_like(jax.random.PRNGKey(0), a)
    return [
        t.tree_add(a, b),
        t.tree_vdot(a, b),
        t.tree_norm(a),
        t.tree_add_scale(a, 0.5, b),
        random,
        optax.global_norm(b),
        t.tree_sum(a),
    ]


def contrib():
    c = optax.contrib
    found = {
        "dadapt": _train(c.dadapt_adamw(), 20),
        "prodigy": _train(c.prodigy(), 20),
        "schedule_free": _train(c.schedule_free_sgd(0.1), 20),
        "sophia": _train(c.cocob(), 20),
        "momo": _train(c.momo(), 10, value=lambda p, v, g: v),
    }
    sam = c.sam(optax.sgd(0.05), optax.sgd(0.05), sync_period=2)
    return found, _train(sam, 20)


def hessians():
    params = {"w": jnp.zeros(5), "b": jnp.zeros(1)}
    flat, back = jax.flatten_util.ravel_pytree(params)
    loss = lambda p, x, y: _loss(back(p), x, y)
    diagonal = optax.second_order.hessian_diag(loss, flat, _X, _Y)
    fisher = optax.second_order.fisher_diag(loss, flat, _X, _Y)
    return diagonal, fisher, optax.second_order.hvp(loss, flat, flat + 1.0, _X, _Y)
