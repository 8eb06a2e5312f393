"""Programs that call LAPACK: exported once for all sizes, and read back.

Invariant: what is compared with is numpy.
"""

import numpy as np

import weft as wf

X = np.random.default_rng(0).standard_normal((4, 3, 3))


def test_factorisations_of_any_size():
    (b, n) = wf.symbolic_dims("b, n")
    f = lambda x: (wf.numpy.linalg.inv(x), wf.numpy.linalg.svdvals(x))  # noqa: E731
    made = wf.export.export(f)(wf.ShapeDtypeStruct((b, n, n), np.float64))
    again = wf.export.deserialize(made.serialize())
    for x in (X, X[:2, :2, :2].copy()):
        inverse, values = again.call(x)
        np.testing.assert_allclose(np.asarray(inverse), np.linalg.inv(x), rtol=1e-9)
        want = np.linalg.svd(x, compute_uv=False)
        np.testing.assert_allclose(np.asarray(values), want, rtol=1e-9)
