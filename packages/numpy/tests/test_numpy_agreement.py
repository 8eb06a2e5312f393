"""Options that numpy refuses are refused, and those that it takes are taken.

Reductions are given masks of every shape, dtypes of every kind, and complex numbers where an order
is needed; whether they raise, and the shape of what they return, is compared with numpy.  Functions
are traced only, so that nothing is compiled.

Invariant: each case is one call that is right but for the option in question.
"""

import itertools
import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import PlaitError

F4 = np.float32
SHAPES = (), (3,), (2, 1), (2, 3)
MASKS = (), (1,), (2,), (3,), (2, 3), (2, 1), (1, 3), (2, 1, 3)
AXES = None, 0, -1, (), (0,)
WHERE = [
    "sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "nansum", "nanprod", "nanmean",
    "nanstd", "nanvar", "nanmax", "nanmin", "amax", "amin",
]  # fmt: skip


def found(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def shape_of(call):
    """The shape that a call of numpy returns, or None if it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return np.shape(call())
        except Exception:  # noqa: BLE001
            return None


def traced_shape(f, *arrays):
    try:
        return plait.eval_shape(f, *arrays).shape
    except PlaitError as e:
        assert e.fix
        return None


@pytest.mark.parametrize("name", WHERE)
def test_masks(name):
    """A mask broadcasts to the array, and never the array to the mask."""
    failures = []
    ours, theirs = getattr(pnp, name), getattr(np, name)
    initial = {"initial": 1} if "max" in name or "min" in name else {}
    for shape, mask, axis in itertools.product(SHAPES, MASKS, AXES):
        if shape == () and axis.__class__ is int:
            continue  # numpy takes an axis of an array without axes here and there
        x, where = np.ones(shape, F4), np.ones(mask, bool)
        how = {"axis": axis, **initial}
        want = shape_of(lambda: theirs(x, where=where, **how))
        got = traced_shape(lambda x, w: ours(x, where=w, **how), x, where)
        if got != want:
            failures.append((shape, mask, axis, f"numpy {want}, plait {got}"))
    assert not failures


ORDERED = {
    "median": (), "nanmedian": (), "quantile": (0.5,), "nanquantile": (0.5,), "percentile": (50,),
    "nanpercentile": (50,),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_quantiles_of_complex_numbers(name):
    x = np.array([1 + 1j, 2, 3], np.complex64)
    with pytest.raises(TypeError, match="complex"):
        getattr(pnp, name)(x, *ORDERED[name])
    if ORDERED[name]:  # whose probability is one
        with pytest.raises(TypeError):
            getattr(pnp, name)(x.real, np.complex64(0.5))


KINDS = ["bool", "uint8", "uint16", "int32", "float16", "float32", "complex64"]
TYPED = {
    "sum": (np.ones(3, F4),), "mean": (np.ones(3, F4),), "var": (np.ones(3, F4),),
    "nansum": (np.ones(3, F4),), "nanmean": (np.ones(3, F4),), "nanvar": (np.ones(3, F4),),
    "nanstd": (np.ones(3, F4),), "cumsum": (np.ones(3, F4),), "trace": (np.ones((2, 2), F4),),
    "linalg.trace": (np.ones((2, 2), F4),), "cov": (np.eye(2, dtype=F4),),
    "corrcoef": (np.eye(2, dtype=F4),), "indices": ((2, 3),), "arange": (3,), "linspace": (0, 1, 3),
    "eye": (3,), "tri": (3,),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_dtypes(name):
    ours, theirs, args = found(pnp, name), found(np, name), TYPED[name]
    failures = []
    for kind in KINDS:
        want = shape_of(lambda: theirs(*args, dtype=kind))
        got = traced_shape(lambda: ours(*args, dtype=kind))
        if got != want:
            failures.append((kind, f"numpy {want}, plait {got}"))
    assert not failures


@pytest.mark.parametrize("name", ["fft.fftfreq", "fft.rfftfreq"])
def test_frequencies_are_no_integers(name):
    for kind in ("bool", "uint16", "int32", int):
        with pytest.raises(TypeError, match="float"):
            found(pnp, name)(7, dtype=kind)
    want = found(np, name)(7)
    np.testing.assert_allclose(found(pnp, name)(7, dtype="float64"), want)


SETS = {
    "unique": 1, "unique_values": 1, "unique_counts": 1, "unique_inverse": 1, "unique_all": 1,
    "union1d": 2, "intersect1d": 2, "setdiff1d": 2, "setxor1d": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_sets_of_no_elements(name):
    """`size=0` leaves out all of them, as it does for `nonzero`."""
    xs = [np.array([3, 1, 3]), np.array([1, 7])][: SETS[name]]
    f = getattr(pnp, name)
    for found_ in (f(*xs, size=0), plait.jit(lambda *xs: f(*xs, size=0))(*xs)):
        for got in plait.tree.leaves(found_):
            assert got.shape in ((0,), (3,))  # the number of each element among none of them
        assert plait.tree.leaves(found_)[0].shape == (0,)
    empty = f(*[x[:0] for x in xs], size=0)
    assert all(v.shape == (0,) for v in plait.tree.leaves(empty))
    rows = pnp.unique(np.ones((2, 3)), axis=0, size=0)
    assert rows.shape == (0, 3)


WRONG = {
    "a hermitian matrix that is not square": lambda m: m.linalg.pinv(
        np.ones((1, 5)), hermitian=True
    ),
    "histogramdd, one weight": lambda m: m.histogramdd(np.ones((3, 3)), 2, weights=np.asarray(0.5)),
    "histogramdd, other weights": lambda m: m.histogramdd(np.ones((3, 3)), 2, weights=np.ones(2)),
    "histogram, other weights": lambda m: m.histogram(np.ones(3), 2, weights=np.ones(1)),
    "histogram2d of matrices": lambda m: m.histogram2d(np.ones((1, 3)), np.ones((1, 3)), bins=2),
    "histogram2d of two lengths": lambda m: m.histogram2d(np.ones(3), np.ones(1), bins=2),
    "bincount, one weight": lambda m: m.bincount(np.arange(3), weights=np.asarray(0.5)),
    "bincount, other weights": lambda m: m.bincount(np.arange(3), weights=np.ones(1)),
    "matvec of a vector": lambda m: m.matvec(np.ones(3), np.ones(3)),
    "vecmat of a vector": lambda m: m.vecmat(np.ones(3), np.ones(3)),
    "vsplit of a vector": lambda m: m.vsplit(np.ones(4), 2),
    "dsplit of a matrix": lambda m: m.dsplit(np.ones((4, 4)), 2),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit(what):
    with pytest.raises((ValueError, TypeError, np.linalg.LinAlgError)):
        WRONG[what](np)
    with pytest.raises(PlaitError) as e:
        WRONG[what](pnp)
    assert e.value.fix and __file__ in e.value.where


def test_options_of_ours():
    """numpy has no such option; the answer could not be what is asked for."""
    with pytest.raises(TypeError, match="integer"):
        pnp.argsort(np.array([3, 1, 2]), dtype=bool)
    with pytest.raises(ValueError, match="fill"):
        pnp.put(np.ones(3), 5, 1.0, mode="fill", inplace=False)
    assert pnp.trace(np.eye(2), dtype=bool).item() is True
