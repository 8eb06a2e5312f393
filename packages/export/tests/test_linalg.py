"""Programs that call LAPACK: exported once for all sizes, and read back.

Invariant: what is compared with is numpy.
"""

import numpy as np

import plait

X = np.random.default_rng(0).standard_normal((4, 3, 3))


def test_factorisations_of_any_size():
    (b, n) = plait.symbolic_dims("b, n")
    f = lambda x: (plait.numpy.linalg.inv(x), plait.numpy.linalg.svdvals(x))  # noqa: E731
    made = plait.export.export(f)(plait.ShapeDtypeStruct((b, n, n), np.float64))
    again = plait.export.deserialize(made.serialize())
    for x in (X, X[:2, :2, :2].copy()):
        inverse, values = again.call(x)
        np.testing.assert_allclose(np.asarray(inverse), np.linalg.inv(x), rtol=1e-9)
        want = np.linalg.svd(x, compute_uv=False)
        np.testing.assert_allclose(np.asarray(values), want, rtol=1e-9)
