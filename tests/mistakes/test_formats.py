"""Formats of values that transformations own: the text of the number, or an error in three parts.

A format shows a number where Python may know it.  Otherwise the error names the value, and says to
print while the program runs.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import PlaitError

CODES = ("x", "X", "o", "d", "i", "c", "f", "e", "g", "5.2f")
SPECS = ("x", "d", "b", "f", ".2f", "e", "g", "5", ">5", "%", ",")
WAYS = {
    "jit": lambda f, x: plait.jit(f)(x),
    "grad": lambda f, x: plait.grad(lambda v: f(v).real.astype("float32"), allow_int=True)(x),
    "jvp": lambda f, x: plait.jvp(f, (x,), (x,)),
    "linearize": lambda f, x: plait.linearize(f, x),
    "vmap": lambda f, x: plait.vmap(f)(np.stack([x, x + x.dtype.type(1)])),
    "jit of grad": lambda f, x: plait.jit(plait.grad(f, allow_int=True))(x),
    "vmap of grad": lambda f, x: plait.vmap(plait.grad(f))(np.stack([x, x])),
    "scan": lambda f, x: lax.scan(lambda c, v: (f(c), v), x, np.ones(2)),
    "checkpoint": lambda f, x: plait.grad(plait.checkpoint(f), allow_int=True)(x),
    "size": lambda f, x: plait.eval_shape(lambda v: f(v.shape[0]) * v, plait.ShapeDtypeStruct(
        plait.symbolic_shape("n"), x.dtype)),
}  # fmt: skip
FLOATS = [np.float32(3), np.float16(3)]


def by_percent(code):
    return lambda x: f"%{code}" % x


def by_format(spec):
    return lambda x: format(x, spec)


def shown(write, way, x):
    """Return what was written, the texts, and the error that ended it, if any."""
    texts = []

    def f(v):
        texts.append(write(v))
        return v * 1

    try:
        WAYS[way](f, x)
    except Exception as e:
        return texts, e
    return texts, None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "write",
    [*map(by_percent, CODES), *map(by_format, SPECS)],
    ids=[*[f"%{c}" for c in CODES], *[f"{{:{s}}}" for s in SPECS]],
)
@pytest.mark.parametrize("x", [*FLOATS, np.int32(3)], ids=lambda x: x.dtype.name)
def test_a_format_shows_the_number_or_says_what_to_write(write, way, x):
    if x.dtype.kind == "i" and "grad" in way:
        pytest.skip("an integer has no gradient")
    texts, error = shown(write, way, x)
    if error is None:
        assert texts and all(isinstance(t, str) for t in texts)
        if way in ("grad", "jvp", "linearize"):
            assert texts[0] == write(x.item())
        return
    assert isinstance(error, PlaitError), repr(error)
    assert error.fix and "test_formats.py" in str(error)
