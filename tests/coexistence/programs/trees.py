"""tree_util and tree: mapping, flattening, transposing, paths, reductions."""

import functools
import operator

import jax
import jax.numpy as jnp
from jax import tree_util as tu
from jax.flatten_util import ravel_pytree


def main():
    tree = {"b": [1.0, (2.0, None)], "a": jnp.arange(3.0)}
    leaves, treedef = tu.tree_flatten(tree)
    flat, unravel = ravel_pytree(tree)
    outer, inner = tu.tree_structure([0, 0]), tu.tree_structure({"x": 0})
    turned = tu.tree_transpose(outer, inner, [{"x": 1}, {"x": 2}])
    paths = [tu.keystr(p) for p, _ in tu.tree_flatten_with_path(tree)[0]]
    half = tu.Partial(operator.mul, 0.5)
    assert paths == ["['a']", "['b'][0]", "['b'][1][0]"], paths
    assert treedef.num_leaves == 3 and tu.treedef_is_leaf(tu.tree_structure(1))
    assert tu.tree_all(tu.tree_map(lambda x: x is not None, tree))
    assert tu.all_leaves([1, 2]) and not tu.all_leaves([1, [2]])
    assert not isinstance(half, type(None)) and isinstance(half, functools.partial)
    return (
        tu.tree_unflatten(treedef, [x * 2 for x in leaves]),
        tu.tree_unflatten(treedef=treedef, leaves=leaves),
        unravel(flat + 1),
        turned,
        tu.tree_reduce(lambda a, b: a + jnp.sum(b), tree, 0.0),
        jax.tree.map(lambda x, y: x + y, tree, tree),
        jax.tree.map(lambda x: 0 if x is None else 1, tree, is_leaf=lambda x: x is None),
        jax.tree.map_with_path(lambda p, x: len(p) * x, tree),
        jax.tree.leaves(jax.tree.broadcast(1, tree)),
        jax.jit(lambda f, x: f(x))(half, 3.0),
        tu.tree_leaves(tu.treedef_tuple([treedef, treedef]).unflatten(leaves * 2)),
    )
