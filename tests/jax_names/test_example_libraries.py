"""JAX's small optimisers and networks, compared with loops in numpy.

Invariant: the loops are written from the papers' formulas, in double precision.
"""

import numpy as np
import pytest

import plait_jax

rng = np.random.default_rng(0)
START = rng.normal(size=(3, 4))
GRADS = rng.normal(size=(6, 3, 4))


def running(step):
    """The loop: `step(i, x, g, memory)` returns the new x; memory is a dictionary of zeros."""
    x, memory = START.copy(), {k: np.zeros_like(START) for k in "abc"}
    for i, g in enumerate(GRADS):
        x = step(i, x, g, memory)
    return x


def adam(i, x, g, m):
    m["a"] = 0.9 * m["a"] + 0.1 * g
    m["b"] = 0.999 * m["b"] + 0.001 * g**2
    mean, square = m["a"] / (1 - 0.9 ** (i + 1)), m["b"] / (1 - 0.999 ** (i + 1))
    return x - 0.1 * mean / (np.sqrt(square) + 1e-8)


def adamax(i, x, g, m):
    m["a"] = 0.9 * m["a"] + 0.1 * g
    m["b"] = np.maximum(0.999 * m["b"], abs(g))
    return x - 0.1 / (1 - 0.9 ** (i + 1)) * m["a"] / (m["b"] + 1e-8)


def adagrad(i, x, g, m):
    m["a"] += g**2
    m["b"] = 0.9 * m["b"] + 0.1 * g / np.sqrt(m["a"])
    return x - 0.1 * m["b"]


def rmsprop(i, x, g, m):
    m["a"] = 0.9 * m["a"] + 0.1 * g**2
    return x - 0.1 * g / np.sqrt(m["a"] + 1e-8)


def rmsprop_momentum(i, x, g, m):
    m["a"] = 0.9 * m["a"] + 0.1 * g**2
    m["b"] = 0.9 * m["b"] + 0.1 * g / np.sqrt(m["a"] + 1e-8)
    return x - m["b"]


def momentum(i, x, g, m):
    m["a"] = 0.8 * m["a"] + g
    return x - 0.1 * m["a"]


def nesterov(i, x, g, m):
    m["a"] = 0.8 * m["a"] + g
    return x - 0.1 * (0.8 * m["a"] + g)


def sm3(i, x, g, m):
    rows, columns = m.get("rows", np.zeros(3)), m.get("columns", np.zeros(4))
    bound = np.minimum(rows[:, None], columns[None]) + g**2
    m["a"] = 0.9 * m["a"] + 0.1 * g / np.sqrt(bound)
    m["rows"], m["columns"] = bound.max(1), bound.max(0)
    return x - 0.1 * m["a"]


RULES = {
    "sgd": ((0.1,), lambda i, x, g, m: x - 0.1 * g),
    "momentum": ((0.1, 0.8), momentum),
    "nesterov": ((0.1, 0.8), nesterov),
    "adagrad": ((0.1,), adagrad),
    "rmsprop": ((0.1,), rmsprop),
    "rmsprop_momentum": ((0.1,), rmsprop_momentum),
    "adam": ((0.1,), adam),
    "adamax": ((0.1,), adamax),
    "sm3": ((0.1,), sm3),
}


@pytest.mark.parametrize("name", RULES)
def test_optimisers(load, name):
    jax, optimizers = load("jax"), load("jax.example_libraries.optimizers")
    arguments, step = RULES[name]
    init, update, params = getattr(optimizers, name)(*arguments)
    state = init({"w": START, "more": [START]})
    for i, g in enumerate(GRADS):
        state = jax.jit(update)(i, {"w": g, "more": [0 * g]}, state)
    np.testing.assert_allclose(params(state)["w"], running(step), rtol=1e-7)
    np.testing.assert_allclose(params(state)["more"][0], START)
    with pytest.raises(TypeError, match="made for parameters like"):
        update(0, {"w": START}, state)


def test_schedules(load):
    o = load("jax.example_libraries.optimizers")
    cases = [
        (o.constant(0.3), lambda i: 0.3),
        (o.make_schedule(0.3), lambda i: 0.3),
        (o.exponential_decay(1.0, 3, 0.5), lambda i: 0.5 ** (i / 3)),
        (o.inverse_time_decay(1.0, 3, 0.5), lambda i: 1 / (1 + 0.5 * i / 3)),
        (o.inverse_time_decay(1.0, 3, 0.5, True), lambda i: 1 / (1 + 0.5 * (i // 3))),
        (o.polynomial_decay(1.0, 4, 0.2, 2.0), lambda i: max(1 - i / 4, 0) ** 2 * 0.8 + 0.2),
        (
            o.piecewise_constant([2, 4], [1.0, 0.5, 0.1]),
            lambda i: [1.0, 0.5, 0.1][(i > 2) + (i > 4)],
        ),
    ]
    for schedule, want in cases:
        for i in range(7):
            np.testing.assert_allclose(schedule(i), want(i), rtol=1e-12)
    with pytest.raises(ValueError, match="one more"):
        o.piecewise_constant([1, 2], [0.1, 0.2])
    with pytest.raises(TypeError, match="a number or a function"):
        o.sgd(np.ones(2))


def test_gradients_are_clipped(load):
    o = load("jax.example_libraries.optimizers")
    tree = {"a": np.array([3.0, 0.0]), "b": np.array([4.0])}
    np.testing.assert_allclose(o.l2_norm(tree), 5.0)
    np.testing.assert_allclose(o.clip_grads(tree, 1.0)["b"], 0.8)
    np.testing.assert_allclose(o.clip_grads(tree, 10.0)["b"], 4.0)


def test_networks(load):
    jax, stax = load("jax"), load("jax.example_libraries.stax")
    net_init, net = stax.serial(
        stax.FanOut(2),
        stax.parallel(stax.serial(stax.Dense(4), stax.Tanh), stax.Identity),
        stax.FanInConcat(),
        stax.Flatten,
        stax.shape_dependent(lambda shape: stax.Dense(shape[-1])),
        stax.Dropout(0.5, mode="test"),
        stax.LogSoftmax,
    )
    shape, params = net_init(jax.random.PRNGKey(0), (3, 4))
    assert shape == (3, 8)
    (w, b), (v, c) = params[1][0][0], params[4]
    hidden = np.concatenate([np.tanh(START @ w + b), START], axis=-1)
    out = hidden @ np.asarray(v) + np.asarray(c)
    want = out - np.log(np.exp(out).sum(-1, keepdims=True))
    np.testing.assert_allclose(net(params, START), want, rtol=1e-6)
    both = stax.serial(stax.FanOut(3), stax.FanInSum)
    np.testing.assert_allclose(both[1](both[0](jax.random.PRNGKey(0), (3, 4))[1], START), 3 * START)


def test_dropping(load):
    jax, stax = load("jax"), load("jax.example_libraries.stax")
    _, drop = stax.Dropout(0.25)
    x = np.ones((50, 50))
    got = np.asarray(drop((), x, rng=jax.random.PRNGKey(0)))
    assert {*np.unique(got)} == {0.0, 4.0} and abs((got > 0).mean() - 0.25) < 0.05
    with pytest.raises(ValueError, match="needs a key"):
        drop((), x)
    with pytest.raises(plait_jax.MissingName, match="stax.Conv"):
        stax.Conv(3, (2, 2))


def test_states_as_trees_of_leaves_and_back(load):
    jax, optimizers = load("jax"), load("jax.example_libraries.optimizers")
    params = [{"w": START, "b": START[0]}, START[1]]
    init, update, get = optimizers.momentum(0.1, mass=0.9)
    state = update(0, params, init(params))
    tree = optimizers.unpack_optimizer_state(state)
    points, kind = jax.tree.flatten(tree)
    assert kind == jax.tree.structure(params)
    for point, x in zip(points, jax.tree.leaves(params), strict=True):
        assert isinstance(point, optimizers.JoinPoint)
        (kept,) = point
        assert kept is point.subtree
        np.testing.assert_allclose(kept[0], 0.9 * x)  # x - 0.1 * x
        np.testing.assert_allclose(kept[1], x)
    again = optimizers.pack_optimizer_state(tree)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    jax.tree.map(np.testing.assert_array_equal, get(again), get(state))
    with pytest.raises(TypeError, match="JoinPoint"):
        optimizers.pack_optimizer_state(params)


def test_a_state_of_another_structure_is_refused_where_it_is_made(load):
    optimizers = load("jax.example_libraries.optimizers")

    @optimizers.optimizer
    def forgetful():
        return lambda x: (x, x), lambda i, g, s: (s[0] - g,), lambda s: s[0]

    init, update, _ = forgetful()
    with pytest.raises(TypeError, match="same tree as `init`"):
        update(0, START, init(START))
