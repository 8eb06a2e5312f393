"""Positions of arguments: numpy's integers say what Python's say.

Every public function that takes positions of arguments (`argnums`, `static_argnums`, ...) has an
entry in `WAYS` for each such parameter.

Invariant: the truth is what the function returns for Python's integers, whose results are checked
elsewhere.
"""

import collections
import inspect
import itertools
from types import ModuleType

import numpy as np
import pytest

import plait
from plait import sparse

pnp = plait.numpy
X, Y = np.float32([1.0, 2.0]), np.float32([3.0, 5.0])


def product(x, y):
    return (x * y * y).sum()


def chosen(x, which):
    return x * 2 if which == "twice" else x


def scaled(how):
    """Return a custom function whose second argument is static."""

    def of(at):
        f = how(chosen, nondiff_argnums=at)
        if how is plait.custom_jvp:
            f.defjvp(lambda which, xs, dots: (chosen(*xs, which), 3 * dots[0]))
        else:
            f.defvjp(lambda x, which: (chosen(x, which), None), lambda which, _, ct: (3 * ct,))
        return plait.grad(lambda x: f(x, "twice").sum())(X)

    return of


def deleted(make):
    """Return which argument a function that is donated one deletes."""

    def of(at):
        x, y = plait.device_put(X[:1]), plait.device_put(Y[:1])
        make(at)(x, y)
        return np.array([x.is_deleted(), y.is_deleted()])

    return of


def derived(take):
    return lambda at: take(product, argnums=at)(X, Y)


def sparsely(take):
    matrix = sparse.BCOO.fromdense(np.eye(2, dtype=np.float32))
    return lambda at: take(lambda x, m: (m @ x).sum(), argnums=at)(X, matrix)


def both_ways(at):
    forward, backward = plait.fwd_and_bwd(product, argnums=at)
    value, residuals = forward(X, Y)
    return value, backward(residuals, np.float32(1))


WAYS = {
    "checkpoint static_argnums": lambda at: plait.grad(
        lambda x: plait.checkpoint(chosen, static_argnums=at)(x, "twice").sum()
    )(X),
    "custom_jvp nondiff_argnums": scaled(plait.custom_jvp),
    "custom_vjp nondiff_argnums": scaled(plait.custom_vjp),
    "fwd_and_bwd argnums": both_ways,
    "fwd_laplacian argnums": lambda at: plait.fwd_laplacian(product, argnums=at)(X, Y),
    "grad argnums": derived(plait.grad),
    "hessian argnums": derived(plait.hessian),
    "jacfwd argnums": derived(plait.jacfwd),
    "jacrev argnums": derived(plait.jacrev),
    "jit donate_argnums": deleted(lambda at: plait.jit(lambda x, y: x + y, donate_argnums=at)),
    "jit static_argnums": lambda at: plait.jit(chosen, static_argnums=at)(X, "twice"),
    "make_program static_argnums": lambda at: (
        plait.make_program(chosen, static_argnums=at)(X, "twice").consts
    ),
    "pmap donate_argnums": deleted(
        lambda at: plait.pmap(lambda x, y: x + y, donate_argnums=at),
    ),
    "pmap static_broadcasted_argnums": lambda at: plait.pmap(
        chosen, static_broadcasted_argnums=at, in_axes=(0, None)
    )(X[:1], "twice"),
    "sparse.grad argnums": sparsely(sparse.grad),
    "sparse.jacfwd argnums": sparsely(sparse.jacfwd),
    "sparse.jacrev argnums": sparsely(sparse.jacrev),
    "sparse.value_and_grad argnums": sparsely(sparse.value_and_grad),
    "value_and_grad argnums": derived(plait.value_and_grad),
    "xmap donate_argnums": deleted(
        lambda at: plait.xmap(
            lambda x, y: x + y, in_axes=(["i"], ["i"]), out_axes=["i"], donate_argnums=at
        )
    ),
}


def positions():
    """Return "function parameter" of all public functions that take positions of arguments."""
    found, seen = {}, set()
    left = collections.deque([("", plait)])  # short paths first
    while left:
        path, module = left.popleft()
        names = dir(module) if module is plait else getattr(module, "__all__", dir(module))
        for name in [n for n in names if not n.startswith("_")]:
            thing = getattr(module, name, None)
            if isinstance(thing, ModuleType):
                if thing.__name__.startswith("plait") and thing.__name__ not in seen:
                    seen.add(thing.__name__)
                    left.append((f"{path}{name}.", thing))
                continue
            try:
                parameters = inspect.signature(thing).parameters
            except (TypeError, ValueError):
                continue
            taken = [p for p in parameters if p.endswith("argnums")]
            if taken and id(thing) not in found and not path.startswith("ext."):
                found[id(thing)] = [f"{path}{name} {p}" for p in taken]
    return set(itertools.chain.from_iterable(found.values()))


def test_every_parameter_has_a_way():
    """A function with two names has its way under one of them."""
    others = {"jacobian argnums", "make_jaxpr static_argnums", "sparse.jacobian argnums"}
    found = positions()
    assert found - WAYS.keys() <= others
    assert WAYS.keys() - found <= {
        "jacrev argnums",
        "make_program static_argnums",
        "sparse.jacrev argnums",
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint8])
@pytest.mark.parametrize("way", WAYS)
def test_integers_of_numpy_are_positions(way, kind):
    of = WAYS[way]
    n = 0 if way.split()[1] in ("argnums", "donate_argnums") else 1
    for want, given in ((of(n), kind(n)), (of((n,)), (kind(n),))):
        got = of(given)
        assert plait.tree.structure(got) == plait.tree.structure(want)
        for a, b in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
