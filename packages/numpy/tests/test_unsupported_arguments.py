"""Arguments of numpy without a meaning here are refused as NotImplementedError.

Invariant: each call is valid without the argument that is refused.
"""

import numpy as np
import pytest

import plait
from plait import errors

pnp = plait.numpy
X, M = np.float32([1, 2, 3]), np.eye(3, dtype=np.float32)
WRITTEN = {
    "sum": (X,), "prod": (X,), "max": (X,), "min": (X,), "mean": (X,), "var": (X,), "std": (X,),
    "any": (X,), "all": (X,), "cumsum": (X,), "cumprod": (X,), "nansum": (X,), "nanmean": (X,),
    "median": (X,), "percentile": (X, 3), "quantile": (X, 0.5), "argmax": (X,), "argmin": (X,),
    "take": (X, 0), "compress": (X > 1, X), "round": (X,), "trace": (M,), "outer": (X, X),
    "add": (X, X), "isposinf": (X,), "ptp": (X,), "einsum": ("i", X),
    "choose": (np.int32([0]), [X[:1]]), "stack": ([X],),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_results_are_not_written_into_arrays(name):
    getattr(pnp, name)(*WRITTEN[name])
    with pytest.raises(NotImplementedError, match="out") as caught:
        getattr(pnp, name)(*WRITTEN[name], out=np.zeros(3))
    assert isinstance(caught.value, errors.Unsupported) and caught.value.fix


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(out=X),
        lambda x: x.take(0, out=X),
        lambda x: pnp.ravel(x, order="K"),
        lambda x: x.flatten(order="A"),
        lambda x: pnp.reshape(x, (3, 1), order="A"),
        lambda x: pnp.sort(x, order="name"),
        lambda x: pnp.argsort(x, order="name"),
        lambda x: pnp.pad(x, 1, mode="mirrored"),
        lambda x: plait.scipy.ndimage.map_coordinates(x, [X], order=2),
        lambda x: plait.scipy.ndimage.map_coordinates(x, [X], order=1, mode="grid-wrap"),
        lambda x: plait.scipy.ndimage.map_coordinates(x, [X], order=1, mode="grid-mirror"),
        lambda x: plait.scipy.ndimage.map_coordinates(x, [X], order=1, mode="grid-constant"),
        lambda x: plait.scipy.linalg.eigh_tridiagonal(
            x, x[1:], select="v", select_range=(0.0, 1.0), eigvals_only=True
        ),
    ],
)
def test_methods_orders_and_modes(call):
    with pytest.raises(NotImplementedError) as caught:
        call(pnp.asarray(X))
    assert isinstance(caught.value, errors.Unsupported) and caught.value.fix


def test_a_wrong_order_is_not_an_unsupported_one():
    for wrong in ("X", 3):
        with pytest.raises(ValueError, match="order") as caught:
            pnp.reshape(X, (3, 1), order=wrong)
        assert not isinstance(caught.value, NotImplementedError)


def test_a_wrong_mode_or_selection_is_not_an_unsupported_one():
    for wrong in (
        lambda: plait.scipy.ndimage.map_coordinates(X, [X], order=1, mode="grid"),
        lambda: plait.scipy.linalg.eigh_tridiagonal(X, X[1:], select="w", eigvals_only=True),
        lambda: plait.scipy.linalg.eigh_tridiagonal(X, X[1:], select="i", eigvals_only=True),
    ):
        with pytest.raises(ValueError, match="mode|select") as caught:
            wrong()
        assert not isinstance(caught.value, NotImplementedError)
