"""Every public function of arrays, exported for all sizes at once.

A function is called in each way that it takes at two sizes.  Then it is exported for symbolic
sizes, and the artifact is compared with the function itself at both sizes.

Invariant: what cannot be exported is in a list here, with the words of its refusal.
"""

import importlib
import inspect
import re
import warnings

import numpy as np
import pytest

import plait
from plait.errors import PlaitError
from plait_export import export, symbolic_args_specs

MODULES = [
    "numpy", "numpy.linalg", "numpy.fft", "lax", "nn", "nn.initializers", "ops", "scipy.special",
    "scipy.signal", "scipy.ndimage", "scipy.linalg", "scipy.fft", "scipy.integrate", "scipy.stats",
    "scipy.stats.norm",
]  # fmt: skip
KEY = plait.random.key(0)
WAYS = {
    "matrix": lambda f, x: f(x),
    "vector": lambda f, x: f(x[:, 0]),
    "square matrix": lambda f, x: f(x @ x.T + 3 * plait.numpy.eye(x.shape[0], dtype=x.dtype)),
    "axis": lambda f, x: f(x, axis=0),
    "two matrices": lambda f, x: f(x, x),
    "two vectors": lambda f, x: f(x[:, 0], x[0]),
    "matrix and number": lambda f, x: f(x, 1),
    "matrix, number, axis": lambda f, x: f(x, 0, axis=0),
    "matrix, number, value, axis": lambda f, x: f(x, 0, 1.0, axis=0),
    "three matrices": lambda f, x: f(x, x, x),
    "integers": lambda f, x: f((x * 3).astype("int32")),
    "booleans": lambda f, x: f(x > 0),
    "list": lambda f, x: f([x, x]),
    "size": lambda f, x: f(x.shape[0]),
    "matrix and size": lambda f, x: f(x.T, x.shape[0]),
    "key and shape": lambda f, x: f()(KEY, x.shape),
    "square pooling": lambda f, x: f(x, -np.inf, plait.lax.max, (3, 2), (2, 2), "SAME"),
    "heads": lambda f, x: f(*[x[None, :, None]] * 3),
}
SIZES = (4, 3), (2, 5)

WITH_A_SIZE = {"lax.top_k", "nn.one_hot", "numpy.repeat", "numpy.tile", "numpy.roll", "numpy.pad"}
"""Functions that take the size of an axis as their second argument."""

A_LIST, UNKNOWN, TRANSFORMED = "the size .* is not known here", "depends|decided", "transform"
REFUSED = {
    # Lists of rows: their number has to be known.
    **{f"numpy.{name}": f"{A_LIST}|{UNKNOWN}" for name in (
        "column_stack", "concat", "concatenate", "dstack", "histogramdd", "hstack", "lexsort",
        "poly", "polydiv", "select", "stack", "vstack")},
    "lax.stack": A_LIST, "lax.unstack": A_LIST, "lax.concatenate": A_LIST,
    # The number of results, or a choice between two ways, depends on sizes.
    "numpy.argwhere": "depends on values", "numpy.flatnonzero": "depends on values",
    "numpy.nonzero": "depends on values", "numpy.unstack": "has no fixed size",
    **{f"numpy.{name}": "how many places there are is not known" for name in (
        "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from")},
    "numpy.array_equiv": UNKNOWN, "numpy.unwrap": UNKNOWN, "numpy.squeeze": UNKNOWN,
    "lax.index_in_dim": UNKNOWN, "scipy.linalg.companion": UNKNOWN, "scipy.linalg.lu": UNKNOWN,
    "scipy.linalg.convolution_matrix": UNKNOWN, "scipy.linalg.fiedler_companion": UNKNOWN,
    "scipy.signal.csd": UNKNOWN, "scipy.signal.stft": UNKNOWN, "scipy.signal.welch": UNKNOWN,
    "nn.initializers.orthogonal": UNKNOWN, "nn.glu": "glu along axis",
    # The compiler's transforms take numbers.
    **{f"{module}.{name}": f"{TRANSFORMED}|a cosine" for module in ("numpy.fft", "scipy.fft")
       for name in (
           "fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "rfft", "rfft2", "rfftn", "irfft",
           "irfft2", "irfftn", "hfft", "ihfft", "dct", "dctn", "idct", "idctn")},
    "scipy.linalg.hessenberg": "whose size is not known", "lax.DotDimensionNumbers": A_LIST,
    "scipy.signal.istft": f"{A_LIST}|{TRANSFORMED}", "scipy.signal.fftconvolve": TRANSFORMED,
    # Matrices of numbers are made by numpy.
    **{f"scipy.linalg.{name}": "n must be an integer" for name in (
        "dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")},
    "scipy.special.bernoulli": "n must be an integer",
}  # fmt: skip

NOT_OF_ARRAYS = re.compile(r"print|callback|debug|psum|pmean|axis_|all_|ppermute|pcast|pvary|save")


def functions():
    for module in MODULES:
        found = plait
        for part in module.split("."):
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                found = getattr(found, part)
        for name in sorted(vars(found) if not hasattr(found, "__all__") else found.__all__):
            f = getattr(found, name, None)
            plain = callable(f) and not inspect.isclass(f) and not name.startswith("_")
            inner = getattr(f, "__module__", "").startswith(("plait._", "plait.ext"))
            if plain and not NOT_OF_ARRAYS.search(name) and not (inner and "scipy" in module):
                yield f"{module}.{name}", f


FUNCTIONS = dict(functions())


def given(shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def traced(f, way, x):
    """Return the types of the results; None if the function does not take this."""
    try:
        return plait.make_program(lambda x: WAYS[way](f, x))(x).out_avals
    except Exception:  # whatever it is that it does not take
        return None


def ways_of(name):
    """Return the ways in which a function is called at both sizes, four at most."""
    ways = [way for way in WAYS if way != "matrix and size" or name in WITH_A_SIZE]
    f = FUNCTIONS[name]
    return [w for w in ways if all(traced(f, w, given(s)) is not None for s in SIZES)][:4]


def is_refused(name, act):
    """Return whether an action raises the error that is listed for a function."""
    try:
        act()
    except PlaitError as e:
        assert name in REFUSED, f"{name}: {type(e).__name__} {e}"
        assert re.search(REFUSED[name], e.what) and e.fix, f"{name}: {e}"
        return True
    return False


@pytest.mark.sampled(80)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_exported_for_all_sizes(name):
    f, (types,) = FUNCTIONS[name], symbolic_args_specs((given(SIZES[0]),), "b, c")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [lambda x, way=way: WAYS[way](f, x) for way in ways_of(name)]
        calls = [c for c in calls if not is_refused(name, lambda c=c: plait.make_program(c)(types))]
        every = plait.jit(lambda x: [c(x) for c in calls])
        if is_refused(name, lambda: export(every)(types)):
            return
        artifact = export(every)(types)
        for shape in SIZES:
            found, wanted = (plait.tree.leaves(g(given(shape))) for g in (artifact.call, every))
            for got, want in zip(found, wanted, strict=True):
                assert got.shape == want.shape and got.dtype == want.dtype, (name, shape)
                np.testing.assert_allclose(
                    *map(np.asarray, (got, want)), 1e-3, 1e-4, err_msg=f"{name}, {shape}"
                )
