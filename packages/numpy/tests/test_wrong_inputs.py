"""What users may get wrong in calls of random and scipy: each is refused in three parts.

Invariant: the calls are made of signatures, one wrong argument at a time; what is wrong here is
wrong whatever the function is, and nothing is compiled to find it out.
"""

import inspect

import numpy as np
import pytest

import plait
from plait.errors import NotAnArrayError, PlaitError

KEY = plait.random.key(0)
V, M = np.array([0.25, 0.5, 0.25], np.float32), np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
NAMES = np.array(["a"])
WRONG = {
    "key": [0, None, "key", np.zeros(2, np.float32), np.zeros(3, np.uint32)],
    "shape": [(-1,), (1.5,), "a"],
    "dtype": ["int33", object],
    "number": [[1.0], "x", NAMES, 1.5, None],
    "array": [[1.0, 2.0], "x", NAMES],
}
SIZED = ("convolution_matrix", "dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal",
         "pascal")  # fmt: skip
NUMBERS = {(name, "n") for name in (*SIZED, "orthogonal", "bernoulli")}
NUMBERS |= {("ball", "d"), ("multigammaln", "d"), ("lu_pivots_to_permutation", "permutation_size")}
CALLS = {
    "categorical": (KEY, V), "dirichlet": (KEY, V), "fold_in": (KEY, 1), "choice": (KEY, 3),
    "multinomial": (KEY, 5.0, V), "multivariate_normal": (KEY, V[:2], M), "permutation": (KEY, 3),
    "randint": (KEY, (2,), 0, 5), "key": (0,), "PRNGKey": (0,), "key_dtype": ("rbg",),
    "ball": (KEY, 3), "orthogonal": (KEY, 3), "wrap_key_data": (np.zeros(2, np.uint32),),
    "sph_harm_y": (np.arange(3), np.arange(3), V, V), "multigammaln": (V, 2), "bernoulli": (3,),
    "cho_solve": ((M, True), V[:2]), "lu_solve": ((M, np.int32([0, 1])), V[:2]),
    "eigh_tridiagonal": (V, V[:2]), "toeplitz": (V,), "hankel": (V,), "circulant": (V,),
    "companion": (V,), "fiedler": (V,), "fiedler_companion": (V,), "leslie": (V, V[:2]),
    "convolution_matrix": (V, 3), "cholesky_update": (M, V[:2]), "householder_product": (M, V[:1]),
    "lu_pivots_to_permutation": (np.int32([0, 1]), 2), "ormqr": (M, V[:1], M),
    "tridiagonal_solve": (V, V, V, V[:, None]), **dict.fromkeys(SIZED[1:] + ("dft",), (4,)),
}  # fmt: skip
SKIP = {"funm", "block_diag", "bessel_jn"}
MODULES = {
    "random": plait.random, "special": plait.scipy.special, "linalg": plait.scipy.linalg,
    "lax.linalg": plait.lax.linalg,
}  # fmt: skip


def calls(module, name, fun):
    """(name of the argument, arguments, keywords) with one wrong thing each."""
    params = list(inspect.signature(fun).parameters.values())
    needed = [p for p in params if p.default is p.empty and p.kind in (0, 1)]
    matrices = module.__name__.endswith("linalg")
    usual = CALLS.get(name) or tuple(
        [KEY if p.name == "key" else M if matrices else V for p in needed]
    )
    for i, p in enumerate(params):
        kind = "number" if (name, p.name) in NUMBERS else p.name
        kind = kind if kind in WRONG else "array" if i < len(usual) else None
        for bad in WRONG[kind] if kind else ():
            if i < len(usual):
                yield p.name, (*usual[:i], bad, *usual[i + 1 :]), {}
            else:
                yield p.name, usual, {p.name: bad}


@pytest.mark.parametrize("name", MODULES)
def test_what_is_wrong_is_refused(name):
    module, told, count = MODULES[name], [], 0
    for fun in (f for f in module.__all__ if f not in SKIP):
        f = getattr(module, fun)
        if inspect.isclass(f):
            continue
        for wrong, args, kwargs in calls(module, fun, f):
            count += 1
            try:
                f(*args, **kwargs)
            except PlaitError as e:
                if str(e).count("\n") < 2 or "test_wrong_inputs.py" not in str(e):
                    told.append(f"{fun}{args} {kwargs}: not in three parts: {e}")
                if isinstance(e, NotAnArrayError) and f"`{wrong}" not in str(e):
                    told.append(f"{fun}{args} {kwargs}: does not say that it is {wrong}: {e}")
            except Exception as e:
                told.append(f"{fun}{args} {kwargs}: {type(e).__name__}: {e}")
    assert not told, "\n".join(told)
    assert count > 30


def test_values_that_no_formula_has():
    """nan in, nan out; nothing for no elements; a singular matrix is no error."""
    special = plait.scipy.special
    for f in (special.dawsn, special.erfcx, special.ndtri, special.wofz, special.loggamma):
        got = np.asarray(f(np.array([np.nan, 0.5])))
        assert np.isnan(got[0]) and np.isfinite(got[1])
        assert f(np.zeros((0, 2), np.float32)).shape == (0, 2)
    assert np.isnan(special.hyp2f1(np.nan, 1.0, 2.0, 0.5)) and np.isnan(
        special.owens_t(1.0, np.nan)
    )
    assert not np.isfinite(np.asarray(plait.scipy.linalg.inv(np.zeros((2, 2))))).any()
    assert np.isnan(np.asarray(plait.random.gamma(KEY, -1.0)))
