"""Functions that compute with floats, of a weak integer beside an array of a narrow dtype.

The integer becomes a float with its own value: a -1 beside uint8 must not become 255 on the way.

Invariant: the expected values are those of operands that were converted to floats beforehand.
"""

import inspect

import numpy as np
import pytest

import plait
import plait.numpy as pnp

ARRAYS = {
    "uint8": np.array([3, 1, 200], np.uint8),
    "bool": np.array([True, False, True]),
    "int8": np.array([1, -2, 100], np.int8),
}
WEAK = {"uint8": -1, "bool": 3, "int8": 300}


def takes_two_arrays(f):
    """Return True for functions of exactly two required arguments."""
    try:
        given = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return False
    required = [p for p in given if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return len(required) == 2 and all(p.kind is not p.VAR_POSITIONAL for p in required)


def result(f, x, y):
    """Return the floating array that `f` gives, or None for another result."""
    try:
        out = f(x, y)
    except (plait.PlaitError, TypeError, ValueError, OverflowError):
        return None
    floats = isinstance(out, plait.Array) and out.dtype.kind == "f"
    return np.asarray(out, np.float64) if floats else None


FUNCTIONS = {
    f"{prefix}{name}": getattr(module, name)
    for prefix, module in (("", pnp), ("special.", plait.scipy.special))
    for name in sorted(set(dir(module)))
    if name[0] != "_" and takes_two_arrays(getattr(module, name))
}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_weak_integers_keep_their_value(name):
    f = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        for dtype, x in ARRAYS.items():
            n = WEAK[dtype]
            if result(f, x, x) is None:  # not a function that computes with floats
                continue
            for swap in (False, True):
                pair = (x, pnp.asarray(n)) if swap else (pnp.asarray(n), x)
                floats = [np.asarray(v).astype(np.float32) for v in pair]
                got, want = result(f, *pair), result(f, *floats)
                if want is not None:
                    np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=f"{dtype} {swap}")


def test_there_are_such_functions():
    assert {"arctan2", "true_divide", "hypot", "logaddexp", "special.xlogy"} <= set(FUNCTIONS)


def test_interpolation():
    x = ARRAYS["uint8"][[1, 0, 2]]
    assert pnp.interp(pnp.asarray(-1), x, x) == 1
    assert pnp.isclose(pnp.asarray(-1), np.uint8([255, 1])).tolist() == [False, False]
