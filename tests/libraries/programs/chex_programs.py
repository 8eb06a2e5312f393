"""Programs of chex: dataclasses, assertions, variants, fakes.

Invariant: each returns numbers; an assertion that fails is one of them.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

_X = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)).astype("float32"))


def _fails(f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except AssertionError:
        return 1
    return 0


@chex.dataclass
class _Parameters:
    x: chex.ArrayDevice
    y: chex.ArrayDevice


def readme():
    parameters = _Parameters(x=jnp.ones((2, 2)), y=jnp.ones((1, 2)))
    doubled = jax.tree_util.tree_map(lambda v: 2.0 * v, parameters)
    return doubled.x, doubled["y"], parameters.replace(x=_X).x


def shapes():
    return [
        _fails(chex.assert_shape, _X, (3, 4)),
        _fails(chex.assert_shape, _X, (3, 5)),
        _fails(chex.assert_shape, [_X, _X], (3, None)),
        _fails(chex.assert_rank, _X, 2),
        _fails(chex.assert_rank, _X, {1, 3}),
        _fails(chex.assert_equal_shape, [_X, _X.T]),
        _fails(chex.assert_is_broadcastable, (4,), (3, 4)),
        _fails(chex.assert_axis_dimension, _X, 0, 3),
        _fails(chex.assert_size, _X, 12),
    ]


def types():
    return [
        _fails(chex.assert_type, _X, jnp.float32),
        _fails(chex.assert_type, _X, int),
        _fails(chex.assert_scalar, 1.0),
        _fails(chex.assert_scalar_positive, -1.0),
        _fails(chex.assert_is_divisible, 6, 4),
        _fails(chex.assert_tree_has_only_ndarrays, {"a": _X}),
        _fails(chex.assert_tree_is_on_host, {"a": np.ones(2)}),
    ]


def trees():
    a, b = {"x": _X, "y": [_X]}, {"x": _X, "y": [_X + 1e-8]}
    c = {"x": _X, "y": [_X + 1.0]}
    return [
        _fails(chex.assert_trees_all_close, a, b),
        _fails(chex.assert_trees_all_close, a, c),
        _fails(chex.assert_trees_all_equal, a, a),
        _fails(chex.assert_trees_all_equal, a, c),
        _fails(chex.assert_trees_all_equal_structs, a, {"x": _X}),
        _fails(chex.assert_trees_all_equal_shapes_and_dtypes, a, c),
        _fails(chex.assert_tree_all_finite, a),
        _fails(chex.assert_tree_all_finite, {"x": _X / 0}),
        _fails(chex.assert_tree_shape_prefix, a, (3,)),
    ]


def traces():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def f(x):
        return x * 2

    first = f(_X)
    again = _fails(f, _X)
    other = _fails(f, _X[0])
    chex.clear_trace_counter()
    return first, again, other


def gradients():
    f = lambda p: (p.x * p.y).sum()
    grads = jax.jit(jax.grad(f))(_Parameters(x=_X, y=_X + 1))
    return grads.x, grads.y


def mapped():
    f = lambda p: _Parameters(x=p.x.sum(), y=p.y[0])
    out = jax.vmap(f)(_Parameters(x=_X, y=_X))
    return out.x, out.y


def numerical():
    return _fails(chex.assert_numerical_grads, lambda x: jnp.sin(x).sum(), (_X,), 1, atol=0.05), (
        _fails(chex.assert_numerical_grads, lambda x: jax.lax.stop_gradient(x).sum(), (_X,), 1)
    )


def fakes():
    with chex.fake_jit():
        seen = []
        jax.jit(lambda x: seen.append(float(x.sum())))(_X)
    return seen


def orders():
    @chex.dataclass(mappable_dataclass=False, frozen=True)
    class Pair:
        b: chex.Array
        a: chex.Array

    leaves = jax.tree_util.tree_leaves(Pair(b=_X[0], a=_X[1]))
    return leaves, chex.Dimensions(B=3, N=4)["BN"]


def errors_as_values():
    from jax.experimental import checkify

    @chex.chexify
    @jax.jit
    def logs(x):
        chex.assert_tree_all_finite(x)
        return jnp.log(x)

    found = [logs(jnp.ones(2))]
    try:
        logs(jnp.array([1.0, jnp.nan]))
        logs.wait_checks()
    except AssertionError:
        found.append(jnp.array(1.0))
    chex.block_until_chexify_assertions_complete()
    checked = checkify.checkify(lambda x: checkify.check(x > 0, "x"))
    return found, checked(jnp.array(1.0))[0].get() is None
