"""Matrices divided over devices: stacks stay divided, and what is divided within is right.

Invariant: results are those of numpy.
"""

import numpy as np

import plait
from plait_sharding import P, device_put, make_mesh, shard_map

RNG = np.random.default_rng(1)
X = RNG.standard_normal((8, 4, 4))


def test_stacks_and_parts(close):
    mesh = make_mesh((4,), "i")
    f = lambda x: (  # noqa: E731
        plait.numpy.linalg.inv(x), plait.numpy.linalg.svdvals(x), plait.numpy.linalg.det(x)
    )  # fmt: skip
    for spec in (P("i"), P(None, "i")):
        x = device_put(X, plait.NamedSharding(mesh, spec))
        want = np.linalg.inv(X), np.linalg.svd(X, compute_uv=False), np.linalg.det(X)
        for got, w in zip(plait.jit(f)(x), want):
            close(got, w)
            assert spec != P("i") or got.sharding.spec == spec


def test_stacks_of_many_axes(close):
    x = X.reshape(2, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 4, 4)
    close(plait.numpy.linalg.svdvals(x), np.linalg.svd(x, compute_uv=False))


def test_each_device_its_own(close):
    mesh = make_mesh((4,), "i")
    f = shard_map(plait.numpy.linalg.inv, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    close(plait.jit(f)(X), np.linalg.inv(X))
