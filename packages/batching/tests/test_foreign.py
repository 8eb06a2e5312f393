"""Foreign functions under vmap, by each of the ways that they can offer."""

import numpy as np
import pytest

import plait

A = np.stack([np.eye(2) * k + 1 for k in (2, 3, 5)]).astype(np.float32)
KIND = (plait.ShapeDtypeStruct((2, 2), np.float32), plait.ShapeDtypeStruct((), np.int32))


def factor(x, method):
    call = plait.ffi.ffi_call(
        "lapack_spotrf_ffi", KIND, vmap_method=method,
        input_layouts=[(1, 0)], output_layouts=[(1, 0), ()],
    )  # fmt: skip
    return plait.numpy.tril(call(x, uplo=np.uint8(ord("L")))[0])


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_each_way(method, axis):
    f = plait.vmap(lambda x: factor(x, method), in_axes=axis)
    for g in (f, plait.jit(f)):
        got = g(np.moveaxis(A, 0, axis))
        np.testing.assert_allclose(got, np.linalg.cholesky(A), rtol=1e-6)


def test_none_is_said():
    with pytest.raises(NotImplementedError, match="vmap_method"):
        plait.vmap(lambda x: factor(x, None))(A)
