"""Derivatives of functions of elements are computed in one loop, without arrays between.

The law finds the public functions that treat each element alone, compiles their gradients, and
counts the arrays that the compiled program writes.

Invariant: only functions that are listed here write others than the result.
"""

import importlib
import inspect
import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp

SIZE = 64
X = np.random.RandomState(0).uniform(0.2, 0.8, (SIZE, SIZE)).astype(np.float32)
Y = X[::-1] + np.float32(0.1)

EXPECTED = {
    "numpy": "angle arctan2 floor_divide logaddexp2 mod sinc tanh",
    "nn": "gelu log_sigmoid mish silu soft_sign softplus",
    "scipy.special": "entr erfcx kl_div logit xlog1py xlogy",
}
MORE = {
    "numpy.hypot": 8, "numpy.stack": 2, "numpy.unwrap": 2, "numpy.vstack": 2,
    "scipy.special.beta": 4, "scipy.special.betaln": 4, "scipy.special.comb": 5,
    "scipy.special.erfinv": 4, "scipy.special.exp1": 11, "scipy.special.expi": 18,
    "scipy.special.gammainc": 48, "scipy.special.gammaincc": 51, "scipy.special.loggamma": 2,
    "scipy.special.ndtri": 6, "scipy.special.owens_t": 4, "scipy.special.poch": 3,
    "scipy.special.spence": 3,
}  # fmt: skip
"""The arrays that some functions write, at most: the compiler itself expands parts of them."""


def arrays(f, args):
    """Return how many arrays of the operands' shape the gradient of a sum of squares writes."""
    g = plait.grad(lambda *xs: pnp.sum(f(*xs) ** 2))
    with plait.config(cache_dir=None):
        text = plait.jit(g, tier="full").lower(*args).compile().as_text()
    steps = text[text.index("ENTRY") :].splitlines()[1:]
    return sum(f"[{SIZE},{SIZE}]" in s for s in steps if " parameter(" not in s)


def operands_of(f):
    """Return operands that a function treats element by element, or None."""
    for args in ((X,), (X, Y)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = f(*args)
                turned = f(*[x.T for x in args])
                plait.eval_shape(plait.grad(lambda *xs: pnp.sum(f(*xs))), *args)  # noqa: B023
        except Exception:  # whatever a function says of operands that are not its own
            continue
        whole = getattr(got, "shape", None) == X.shape and got.dtype == X.dtype
        if whole and np.allclose(np.asarray(turned).T, got) and _is_apart(f, args, got):
            return args
    return None


def _is_apart(f, args, got):
    """Return whether a changed element changes no other element of the result."""
    changed = [x.copy() for x in args]
    for x in changed:
        x[3, 5] = 0.5
    same = np.asarray(f(*changed)) == np.asarray(got)
    same[3, 5] = True
    return same.all()


@pytest.mark.parametrize("name", [f"{p}.{n}" for p in EXPECTED for n in EXPECTED[p].split()])
def test_gradients(name):
    place, _, last = name.rpartition(".")
    f = getattr(importlib.import_module(f"plait.{place}"), last)
    assert arrays(f, operands_of(f)) == 1


@pytest.mark.wide
@pytest.mark.parametrize("place", EXPECTED)
def test_all_gradients(place):
    module, met, wrong = importlib.import_module(f"plait.{place}"), 0, {}
    for name in sorted(module.__all__):
        f = getattr(module, name)
        if not callable(f) or inspect.isclass(f):
            continue
        args = operands_of(f)
        if args is not None:
            met += 1
            found = arrays(f, args)
            if found > MORE.get(f"{place}.{name}", 1):
                wrong[name] = found
    assert not wrong
    assert met > 20
