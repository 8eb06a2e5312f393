"""Products inside of functions that are not products have the platform's highest precision.

Accelerators round the operands of products of float32 to ten bits by default.  So a covariance or
a solver would be wrong in the fourth digit, though the user wrote no product.  The law calls each
public function with operands of many kinds, lowers it for an accelerator, and reads the module.

Invariant: only functions that are products, or take `precision`, may multiply less exactly.
"""

import importlib
import inspect
import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp

PLACES = (
    *("numpy", "numpy.linalg", "numpy.fft", "image", "random", "nn"),
    *("scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage"),
    *("scipy.optimize", "scipy.signal", "scipy.sparse.linalg", "scipy.special", "scipy.stats"),
)
NAMED_PRODUCTS = {"matvec", "vecmat"}
"""Products whose signature, numpy's, has no precision: the setting's holds."""

_r = np.random.RandomState(0)
MATRIX = (_r.randn(4, 4) + 4 * np.eye(4)).astype(np.float32)
SQUARED = MATRIX @ MATRIX.T
THIN = _r.randn(4, 3).astype(np.float32)
VECTOR = _r.rand(4).astype(np.float32)
LONGER = _r.rand(9).astype(np.float32)
COMPLEX = (MATRIX + 1j * MATRIX.T).astype(np.complex64)
OPERANDS = (
    *((MATRIX,), (SQUARED,), (VECTOR,), (THIN,), (COMPLEX,), ([MATRIX, MATRIX, THIN],)),
    *((MATRIX, VECTOR), (VECTOR, VECTOR), (MATRIX, MATRIX), (COMPLEX, COMPLEX), (VECTOR, MATRIX)),
    *((MATRIX, 3), (VECTOR, 2), (MATRIX, (3, 3)), (VECTOR, VECTOR, 2), (MATRIX, VECTOR, VECTOR)),
    *((MATRIX, MATRIX, MATRIX), (LONGER, VECTOR, VECTOR), (VECTOR, LONGER)),
)


def functions():
    """The public functions that take no precision, by name."""
    found = {}
    for place in PLACES:
        module = importlib.import_module("plait." + place)
        for name in dir(module):
            f = getattr(module, name)
            if name.startswith("_") or inspect.isclass(f) or not inspect.isroutine(f):
                continue
            if "precision" not in inspect.signature(f).parameters and name not in NAMED_PRODUCTS:
                found[f"{place}.{name}"] = f
    return found


def calls(name, f):
    """Functions of arrays alone that call `f`, with arrays to give them."""
    first = (plait.random.key(0),) if name.startswith("random.") else ()
    for operands in OPERANDS:
        at = [i for i, x in enumerate(operands) if isinstance(x, np.ndarray | list)]

        def call(*xs, operands=operands, at=at):
            given = list(operands)
            for i, x in zip(at, xs, strict=True):
                given[i] = x
            return f(*first, *given)

        yield call, [operands[i] for i in at]
    if name == "scipy.optimize.minimize":
        yield lambda x: f(lambda y: (y**2).sum(), x, method="BFGS").x, [VECTOR]


def scalar(f):
    """The sum of all results that have derivatives."""

    def sums(*xs):
        leaves = plait.tree.leaves(f(*xs))
        return sum(pnp.real(y).sum() for y in leaves if np.dtype(y.dtype).kind in "fc")

    return sums


def products(f, xs):
    """The products of floating-point numbers in the module of `f`; None if it refuses `xs`."""
    try:
        with warnings.catch_warnings(action="ignore"), plait.default_matmul_precision("high"):
            text = plait.jit(f).trace(*xs).lower(lowering_platforms=("cuda",)).as_text()
    except Exception:  # operands of another kind are for this function
        return None
    wanted = "stablehlo.dot_general", "stablehlo.convolution"
    lines = [line.strip() for line in text.splitlines() if any(w in line for w in wanted)]
    return [line for line in lines if "f32" in line.rpartition(":")[2]]


def judge(transformed, least, place=""):
    seen, bad = 0, {}
    for name, f in functions().items():
        for call, xs in calls(name, f) if name.startswith(place) else ():
            found = products(*transformed(call, xs))
            seen += found is not None
            wrong = [line for line in found or () if line.count("HIGHEST") != 2]
            if wrong:
                bad[name] = wrong[0]
    assert seen > least
    assert not bad


@pytest.mark.wide
def test_values():
    judge(lambda f, xs: (f, xs), 1500)


@pytest.mark.wide
def test_gradients():
    judge(lambda f, xs: (plait.grad(scalar(f), argnums=tuple(range(len(xs)))), xs), 1500)


def stacked(xs):
    return [np.stack([x, x]) for x in xs if isinstance(x, np.ndarray)]


def test_maps():
    judge(lambda f, xs: (plait.vmap(f), stacked(xs)), 50, "numpy.linalg")


def of_two_sizes(xs):
    return [plait.Pile.from_list([x, x[:-1]]) for x in xs if isinstance(x, np.ndarray)]


def test_maps_over_piles():
    judge(lambda f, xs: (plait.vmap(f, plait.pile_axis, plait.pile_axis), of_two_sizes(xs)), 5,
          "numpy.linalg")  # fmt: skip
