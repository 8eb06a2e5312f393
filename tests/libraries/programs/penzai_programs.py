"""Programs of penzai: the README's, named axes, layers, selectors, a step of training.

Invariant: each returns numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np
from penzai import pz
from penzai.models import simple_mlp

_X = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)).astype("float32"))


def _mlp():
    return simple_mlp.MLP.from_config(
        name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[6, 8, 2]
    )


def _rows():
    return pz.nx.wrap(_X).tag("batch", "features")


def _plain(x, *names):
    return x.untag(*names).unwrap() if names else x.unwrap()


def readme():
    mlp = simple_mlp.MLP.from_config(
        name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[8, 32, 32, 8]
    )
    out = mlp(pz.nx.ones({"features": 8}))
    return _plain(out, "features")


def named_axes():
    x = _rows()
    y = pz.nx.wrap(jnp.arange(6.0)).tag("features")
    dot = pz.nx.nmap(jnp.dot)(x.untag("features"), y.untag("features"))
    return (
        _plain(x + y, "batch", "features"),
        _plain(pz.nx.nmap(jnp.sin)(x), "features", "batch"),
        _plain(dot, "batch"),
        _plain(x.untag("features").sum(), "batch"),
    )


def slicing():
    x = _rows()
    index = pz.nx.wrap(jnp.array([2, 0])).tag("new")
    return (
        _plain(x[{"batch": 1}], "features"),
        _plain(x[{"features": pz.slice[1:4]}], "batch", "features"),
        _plain(x[{"batch": index}], "new", "features"),
    )


def layers():
    key = jax.random.key(1)
    linear = pz.nn.Linear.from_config(
        "linear", key, input_axes={"features": 6}, output_axes={"out": 3}
    )
    norm = pz.nn.LayerNorm.from_config("norm", key, across_axes={"features": 6})
    both = pz.nn.Sequential([norm, linear, pz.nn.Elementwise(jax.nn.relu)])
    return _plain(both(_rows()), "batch", "out")


def selectors():
    mlp = _mlp()
    params = pz.select(mlp).at_instances_of(pz.Parameter).get_sequence()
    half = (
        pz.select(mlp)
        .at_instances_of(pz.nn.Linear)
        .insert_after(pz.nn.Elementwise(lambda x: x * 0.5))
    )
    return len(params), sorted(p.label for p in params), _plain(half(_rows()), "batch", "features")


def gradients():
    model, variables = pz.unbind_params(_mlp())
    frozen = pz.freeze_params(variables)

    def loss(values):
        bound = pz.bind_variables(model, values, unfreeze_as_copy=True)
        return (bound(_rows()).untag("batch", "features").unwrap() ** 2).mean()

    value, grads = jax.jit(jax.value_and_grad(loss))(frozen)
    return value, [jnp.linalg.norm(g) for g in jax.tree_util.tree_leaves(grads)]


def randomness():
    stream = pz.RandomStream.from_base_key(jax.random.key(3))
    return jax.random.uniform(stream.next_key(), (3,)), jax.random.normal(stream.next_key(), (2,))


def states():
    counter = pz.StateVariable(value=jnp.array(0), label="count")
    counter.value = counter.value + 2
    (free,), found = pz.unbind_state_vars((counter,))
    return counter.value, [v.value for v in found], type(free).__name__


def scanned():
    block = pz.nn.Elementwise(jnp.tanh)
    x = _rows()
    out = pz.nx.scan(lambda c, row: (c + row, block(c)), "batch", pz.nx.zeros({"features": 6}), x)
    return _plain(out[0], "features"), _plain(out[1], "batch", "features")
