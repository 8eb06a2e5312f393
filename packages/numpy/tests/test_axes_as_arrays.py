"""Axes and widths given as vectors: of numpy, of Plait, and as lists of their integers.

Invariant: the functions are found by their signatures; numpy, or scipy, is given a tuple.
"""

import inspect

import numpy as np
import pytest
import scipy.special

import plait
from plait import numpy as pnp

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
MORE = dict.fromkeys(("quantile", "nanquantile", "percentile", "nanpercentile"), (0.5,))
FORMS = {
    "numpy": np.array,
    "plait": pnp.array,
    "numpy's integers": lambda axes: [np.int64(a) for a in axes],
    "plait's integers": lambda axes: [pnp.int32(a) for a in axes],
}
PLACES = [
    (pnp, np),
    (pnp.linalg, np.linalg),
    (pnp.fft, np.fft),
    (plait.nn, scipy.special),
    (plait.scipy.special, scipy.special),
]


def calls():
    """Every function that takes several axes: (function of kwargs, the same of numpy, kwargs)."""
    for ours, theirs in PLACES:
        for name in sorted(set(dir(ours)) & set(dir(theirs))):
            f, g = getattr(ours, name), getattr(theirs, name)
            if name[0] == "_" or not callable(f) or inspect.isclass(f):
                continue
            parameters = inspect.signature(f).parameters
            for key in {"axis", "axes", "source"} & set(parameters):
                kwargs = {key: (2, 0, 1)} if name == "transpose" else {key: (2, 0)}
                if "destination" in parameters:
                    kwargs["destination"] = (0, 2)
                args = (X, (1, 2)) if name == "roll" else (X, *MORE.get(name, ()))
                try:
                    want = g(*args, **kwargs)
                except (TypeError, ValueError):  # numpy takes one axis
                    continue
                yield pytest.param(f, args, kwargs, want, id=f"{ours.__name__}.{name}")


def same(got, want):
    parts = got if isinstance(got, tuple | list) else [got]
    wants = want if isinstance(want, tuple | list) else [want]
    assert len(parts) == len(wants)
    for g, w in zip(parts, wants):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5, atol=1e-5)


CALLS = [*calls()]


@pytest.mark.parametrize("f, args, kwargs, want", CALLS)
def test_a_vector_of_axes_is_a_tuple_of_them(f, args, kwargs, want):
    for form in FORMS.values():
        same(f(*args, **{k: form(v) for k, v in kwargs.items()}), want)


def test_the_functions_are_found():
    found = {case.id.rpartition(".")[2] for case in CALLS}
    assert len(found) > 35
    assert {"sum", "moveaxis", "roll", "flip", "expand_dims", "norm", "fftn", "softmax"} <= found


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_widths_and_pairs_of_axes(form):
    pairs = [[1, 2], [0, 1], [2, 0]]
    rows = [form(pair) for pair in pairs]
    np.testing.assert_array_equal(pnp.pad(X, rows), np.pad(X, pairs))
    np.testing.assert_array_equal(pnp.pad(X[0, 0], form([1, 2])), np.pad(X[0, 0], (1, 2)))
    got = pnp.tensordot(X, X, (form((0, 1)), form((0, 1))))
    np.testing.assert_allclose(got, np.tensordot(X, X, ((0, 1), (0, 1))), rtol=1e-5)


@pytest.mark.parametrize("array", [np.array, pnp.array])
def test_a_matrix_is_two_lists(array):
    pairs = [[1, 2], [0, 1], [2, 0]]
    np.testing.assert_array_equal(pnp.pad(X, array(pairs)), np.pad(X, pairs))
    got = pnp.tensordot(X, X, array([[0, 1], [0, 1]]))
    np.testing.assert_allclose(got, np.tensordot(X, X, ((0, 1), (0, 1))), rtol=1e-5)


def test_what_is_not_a_vector_of_integers_is_refused():
    for axes in (np.array([[0], [1]]), np.array([0.0]), [0.5]):
        for f in (pnp.sum, pnp.flip, pnp.mean, plait.nn.softmax):
            with pytest.raises(TypeError):
                f(X, axis=axes)
    with pytest.raises(TypeError):
        pnp.pad(X, np.array([0.5, 1]))
    with pytest.raises(plait.errors.ConcretizationError):
        plait.jit(lambda a: pnp.sum(X, axis=a))(np.array([0, 1]))
