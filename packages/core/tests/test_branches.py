"""What the branches of cond and switch may return.

Invariant: dtypes and shapes must agree; Python numbers take the dtypes of arrays.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import TypeRule

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


WAYS = {
    "eager": lambda f, *xs: f(*xs),
    "jit": lambda f, *xs: plait.jit(lambda *a: f(*a))(*xs),
    "vmap": lambda f, *xs: plait.vmap(f)(*[pnp.asarray(x)[None] for x in xs])[0],
    "scan": lambda f, *xs: lax.scan(
        lambda c, _: (c, f(*xs)), f32(0), None, length=1
    )[1][0],
}  # fmt: skip


DTYPES = ["bool", "int8", "int32", "uint8", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("way", ["eager", "jit"])
def test_arrays_of_different_dtypes_are_refused(way):
    for i, a in enumerate(DTYPES):
        for b in DTYPES[i:]:
            x, y = pnp.ones((), a), pnp.ones((), b)
            fs = [lambda: lax.cond(True, lambda: x, lambda: y),  # noqa: B023
                  lambda: lax.cond(True, lambda: (1, y), lambda: (1, x)),  # noqa: B023
                  lambda: lax.switch(1, [lambda: x, lambda: x, lambda: y])]  # noqa: B023  # fmt: skip
            for f in fs:
                if a == b:
                    assert plait.tree.leaves(WAYS[way](f))[-1].dtype == a
                else:
                    with pytest.raises(TypeError, match=r"different dtypes.*\n.*\n.*astype"):
                        WAYS[way](f)


@pytest.mark.parametrize("way", ["eager", "jit"])
@pytest.mark.parametrize("number", [2, 2.5, 2j, True])
def test_python_numbers_take_the_dtype_of_an_array_of_no_narrower_kind(way, number):
    order = [bool, int, float, complex]
    for dtype in DTYPES:
        x = pnp.ones((), dtype)
        kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[x.dtype.kind]
        f = lambda: lax.cond(True, lambda: number, lambda: x)  # noqa: E731, B023
        fits = order.index(type(number)) <= order.index(kind)
        if number is True:  # which is no weaker than an array of booleans
            fits = kind is bool
        if fits:
            out = WAYS[way](f)
            assert out.dtype == dtype and complex(out.item()) == complex(number)
        else:
            with pytest.raises(TypeError, match="different dtypes"):
                WAYS[way](f)


# ---- what branches may return ----------------------------------------------------------------


def test_shapes_must_agree():
    """Promotion is for dtypes only."""
    with pytest.raises(TypeRule, match="different shapes"):
        lax.cond(True, lambda: f32(1), lambda: f32([1]))
